//! The order of writes of ranks to their pipes.
//!
//! Programs print in an order that they have set themselves, with a barrier between two ranks, and
//! their users expect it. `poll` gives ranks with output by their numbers, and does not tell two
//! writes of one rank from one. So a pipe delivers each write by itself (`O_DIRECT`, see pipe(2)),
//! and announces it by a real-time signal: these are queued in their order, with the descriptor
//! (`F_SETSIG`, see fcntl(2)).
//!
//! The kernel lets a write be read before it announces it. Such a write is read as `poll` announces
//! the pipe, because its announcement may also have been lost. If the announcement comes after all,
//! it is passed over: otherwise it would stand for the next write of the rank. A write that waits
//! for room in a full pipe is announced twice. After it, a write of its rank may come early.
//!
//! If the system refuses the signals, or its queue is full, writes are read as `poll` announces
//! them: nothing is lost but the order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::libc;
use nix::sys::signalfd::siginfo;
use rustix::fd::{FromRawFd, OwnedFd};

use super::pipes::SLOTS;

/// The most writes that are taken at once, so that other work has its turn.
const AT_ONCE: usize = 256;

/// A stream of a rank of this host: the number of the rank, and the index of its stream.
pub(crate) type StreamId = (usize, usize);

/// Announced writes, one entry for each, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Announced {
    pub writes: Vec<StreamId>,
    /// True if more announcements may wait, so that it is not known which writes lack theirs.
    pub may_be_more: bool,
}

/// The pipes from ranks of this host, and the queue of writes to them.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// The descriptor from which signals are read. `None` if the order of writes is unknown.
    queue: Option<OwnedFd>,
    /// The stream of each pipe.
    pipes: HashMap<RawFd, StreamId>,
    book: Book,
}

/// The announcements that have been received, and those that are to come.
#[derive(Default)]
struct Book {
    /// The announced writes that could not be moved, in their order.
    waiting: VecDeque<StreamId>,
    /// The number of entries of `waiting` for each stream, at most [`SLOTS`].
    waiting_of: HashMap<StreamId, usize>,
    /// The streams with a write that was read before its announcement. A rank cannot write again
    /// before the announcement, so that there is one write at most.
    ahead: HashSet<StreamId>,
}

impl Book {
    /// Adds announcements. Returns the writes that are to be read, in their order.
    fn add(&mut self, announced: impl Iterator<Item = StreamId>) -> Vec<StreamId> {
        self.waiting_of.clear();
        let mut writes = Vec::from(std::mem::take(&mut self.waiting));
        writes.extend(announced.filter(|write| !self.ahead.remove(write)));
        writes
    }

    /// Adds an announced write that could not be moved. A pipe has no more unread writes than
    /// slots: another announcement is of a write that was read together with the one before it.
    fn put_back(&mut self, stream: StreamId) {
        let count = self.waiting_of.entry(stream).or_default();
        if *count < SLOTS {
            *count += 1;
            self.waiting.push_back(stream);
        }
    }
}

impl Arrivals {
    /// Watches the pipe of a stream, before the rank can write to it. For the thread that reads
    /// announcements.
    pub(crate) fn watch(&mut self, stream: StreamId, pipe: BorrowedFd<'_>) {
        if self.queue.is_none() && self.pipes.is_empty() {
            self.queue = queue().ok();
        }
        if self.queue.is_some() && announce(pipe).is_err() {
            self.queue = None;
        }
        self.pipes.insert(pipe.as_raw_fd(), stream);
    }

    /// The announced writes that are to be read now: those that were put back, and those since the
    /// last call, at most [`AT_ONCE`].
    pub(crate) fn take(&mut self) -> Announced {
        let size = size_of::<siginfo>();
        let mut bytes = vec![0; AT_ONCE * size];
        // An interruption, or an empty queue: `poll` announces what is left.
        let length = match &self.queue {
            Some(queue) => rustix::io::read(queue, &mut bytes[..]).unwrap_or(0),
            None => 0,
        };
        let pipes = bytes[..length].chunks_exact(size).filter_map(|info| {
            let at = std::mem::offset_of!(siginfo, ssi_fd);
            let pipe = RawFd::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
            self.pipes.get(&pipe).copied()
        });
        Announced {
            writes: self.book.add(pipes),
            may_be_more: length == bytes.len(),
        }
    }

    /// Takes back an announced write that cannot be moved now.
    pub(crate) fn put_back(&mut self, stream: StreamId) {
        self.book.put_back(stream);
    }

    /// Notes that a write has been read which was not announced.
    pub(crate) fn was_read_ahead(&mut self, stream: StreamId) {
        self.book.ahead.insert(stream);
    }
}

/// The signal that announces a write.
fn write_signal() -> i32 {
    libc::SIGRTMIN()
}

/// Blocks the signals of this thread that announce writes. Returns the descriptor from which they
/// are read.
fn queue() -> io::Result<OwnedFd> {
    extern "C" fn nothing(_: i32) {}
    let handler = nothing as extern "C" fn(i32) as libc::sighandler_t;
    // SAFETY: `set` is initialized by `sigemptyset`; the calls only read it. The handler does
    // nothing; it is there because signals may be pending when the launcher unblocks them, and
    // their default action ends the process. Programs that are started have the default action.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        // The kernel sends the second one if the queue is full.
        for signal in [write_signal(), libc::SIGIO] {
            libc::sigaddset(&mut set, signal);
            if libc::signal(signal, handler) == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        if libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::other("the signals cannot be blocked"));
        }
        match libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Makes the kernel announce each write to a pipe to this thread.
fn announce(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let pipe = pipe.as_raw_fd();
    // Not the process: another thread of it does not block the signals.
    let owner = Owner {
        kind: F_OWNER_TID,
        id: rustix::thread::gettid().as_raw_nonzero().get(),
    };
    let checked = |result: i32| match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    };
    // SAFETY: `owner` has the layout of `struct f_owner_ex`, and lives during the call. The other
    // calls have integers only.
    unsafe {
        checked(libc::fcntl(pipe, F_SETOWN_EX, &owner))?;
        checked(libc::fcntl(pipe, F_SETSIG, write_signal()))?;
        let flags = checked(libc::fcntl(pipe, libc::F_GETFL))?;
        checked(libc::fcntl(pipe, libc::F_SETFL, flags | libc::O_ASYNC))?;
    }
    Ok(())
}

const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;

/// `struct f_owner_ex` of Linux.
#[repr(C)]
struct Owner {
    kind: i32,
    id: i32,
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn each_write_is_announced_in_the_order_of_the_writes() {
        let flags = PipeFlags::DIRECT | PipeFlags::NONBLOCK;
        let pipes: Vec<(File, File)> = (0..3)
            .map(|_| pipe_with(flags).unwrap())
            .map(|(reader, writer)| (reader.into(), writer.into()))
            .collect();
        let readers = pipes.iter().enumerate();
        let mut arrivals = Arrivals::default();
        readers.for_each(|(rank, (reader, _))| arrivals.watch((rank, rank % 2), reader.as_fd()));
        let write = |rank: usize, text: &str| (&pipes[rank].1).write_all(text.as_bytes()).unwrap();
        let read = |rank: usize| {
            let mut bytes = [0; 100];
            let length = (&pipes[rank].0).read(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        assert_eq!(arrivals.take(), Announced::default());
        let writes = [(2, "a"), (0, "b"), (2, "c"), (2, "d"), (1, "e"), (0, "f")];
        writes.iter().for_each(|(rank, text)| write(*rank, text));
        let order = arrivals.take();
        assert_eq!(order.writes, writes.map(|(rank, _)| (rank, rank % 2)));
        let texts: Vec<String> = order.writes.iter().map(|&(rank, _)| read(rank)).collect();
        assert_eq!(texts.concat(), "abcdef");
        assert_eq!(arrivals.take(), Announced::default());
    }

    #[test]
    fn a_full_read_of_the_queue_says_that_there_may_be_more() {
        let flags = PipeFlags::DIRECT | PipeFlags::NONBLOCK;
        let (reader, writer) = pipe_with(flags).unwrap();
        let (reader, writer): (File, File) = (reader.into(), writer.into());
        let mut arrivals = Arrivals::default();
        arrivals.watch((0, 0), reader.as_fd());
        for _ in 0..AT_ONCE + 1 {
            (&writer).write_all(b"x").unwrap();
            assert_eq!((&reader).read(&mut [0; 10]).unwrap(), 1);
        }
        let first = arrivals.take();
        assert_eq!((first.writes.len(), first.may_be_more), (AT_ONCE, true));
        let last = arrivals.take();
        assert_eq!((last.writes.len(), last.may_be_more), (1, false));
    }

    #[test]
    fn the_announcement_of_a_write_that_has_been_read_is_passed_over() {
        let mut book = Book::default();
        book.ahead.insert((1, 0));
        let announced = [(1, 1), (1, 0), (0, 0), (1, 0)];
        assert_eq!(book.add(announced.into_iter()), [(1, 1), (0, 0), (1, 0)]);
        assert!(book.ahead.is_empty());
    }

    #[test]
    fn writes_that_could_not_be_moved_come_first() {
        let mut book = Book::default();
        book.put_back((2, 0));
        book.put_back((0, 0));
        assert_eq!(book.add([(1, 0)].into_iter()), [(2, 0), (0, 0), (1, 0)]);
        assert_eq!(book.add(std::iter::empty()), []);
        (0..3 * SLOTS).for_each(|_| book.put_back((2, 0)));
        book.put_back((0, 0));
        assert_eq!(book.add(std::iter::empty()).len(), SLOTS + 1);
    }

    #[test]
    fn without_pipes_there_is_no_order() {
        assert_eq!(Arrivals::default().take(), Announced::default());
    }
}
