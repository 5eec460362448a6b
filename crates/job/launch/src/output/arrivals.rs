//! The order of writes of ranks to their pipes.
//!
//! Programs print in an order that they have set themselves, with a barrier between two ranks, and
//! their users expect it. `poll` gives ranks with output by their numbers, and does not tell two
//! writes of one rank from one. So a pipe delivers each write by itself (`O_DIRECT`, see pipe(2)),
//! and announces it by a real-time signal: these are queued in their order, with the descriptor
//! (`F_SETSIG`, see fcntl(2)).
//!
//! If the system refuses the signals, or its queue is full, writes are read as `poll` announces
//! them: nothing is lost but the order.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::libc;
use nix::sys::signalfd::siginfo;
use rustix::fd::{FromRawFd, OwnedFd};

/// The most writes that are taken at once, so that other work has its turn.
pub(crate) const AT_ONCE: usize = 256;

/// The pipes from ranks of this host, and the queue of writes to them.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// The descriptor from which signals are read. `None` if the order of writes is unknown.
    queue: Option<OwnedFd>,
    /// The rank of each pipe, with the index of its stream.
    pipes: HashMap<RawFd, (usize, usize)>,
}

impl Arrivals {
    /// Watches pipes, each with the number of its rank and the index of its stream. For the thread
    /// that calls it.
    pub(crate) fn of<'a>(pipes: impl Iterator<Item = (usize, usize, BorrowedFd<'a>)>) -> Self {
        let mut arrivals = Arrivals::default();
        for (rank, stream, pipe) in pipes {
            if arrivals.queue.is_none() {
                match queue() {
                    Ok(queue) => arrivals.queue = Some(queue),
                    Err(_) => return arrivals,
                }
            }
            if announce(pipe).is_err() {
                return Arrivals::default();
            }
            arrivals.pipes.insert(pipe.as_raw_fd(), (rank, stream));
        }
        arrivals
    }

    /// The writes since the last call in their order, at most [`AT_ONCE`]: for each the rank and
    /// the index of its stream.
    pub(crate) fn take(&mut self) -> Vec<(usize, usize)> {
        let mut writes = Vec::new();
        let Some(queue) = &self.queue else {
            return writes;
        };
        let size = size_of::<siginfo>();
        let mut bytes = vec![0; AT_ONCE * size];
        // An interruption, or an empty queue: `poll` announces what is left.
        let length = rustix::io::read(queue, &mut bytes[..]).unwrap_or(0);
        for info in bytes[..length].chunks_exact(size) {
            let at = std::mem::offset_of!(siginfo, ssi_fd);
            let pipe = RawFd::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
            writes.extend(self.pipes.get(&pipe));
        }
        writes
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
        let mut arrivals =
            Arrivals::of(readers.map(|(rank, (reader, _))| (rank, rank % 2, reader.as_fd())));
        let write = |rank: usize, text: &str| (&pipes[rank].1).write_all(text.as_bytes()).unwrap();
        let read = |rank: usize| {
            let mut bytes = [0; 100];
            let length = (&pipes[rank].0).read(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        assert!(arrivals.take().is_empty());
        let writes = [(2, "a"), (0, "b"), (2, "c"), (2, "d"), (1, "e"), (0, "f")];
        writes.iter().for_each(|(rank, text)| write(*rank, text));
        let order = arrivals.take();
        assert_eq!(order, writes.map(|(rank, _)| (rank, rank % 2)));
        let texts: Vec<String> = order.into_iter().map(|(rank, _)| read(rank)).collect();
        assert_eq!(texts.concat(), "abcdef");
        assert!(arrivals.take().is_empty());
    }

    #[test]
    fn without_pipes_there_is_no_order() {
        assert!(Arrivals::of(std::iter::empty()).take().is_empty());
    }
}
