//! Frames between launcher and agent, over the agent's standard streams.
//!
//! A frame is a length of four bytes in little-endian order and a body in postcard's encoding. Both
//! ends are the same version of the same command, as the agent's first line shows, so frames carry
//! no version.
//!
//! Invariant: neither end blocks on the other. Frames wait at the sender for room, and
//! large data (output and input) is limited by a window that the receiver's confirmations reopen.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use pmi::{Hosts, MOST_RANKS};
use rustix::event::PollFlags;
use rustix::io::Errno;
use secret::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Program;
use crate::binding::BindingRequest;
use crate::exchange::{Down, Up};
use crate::output::{OutputOptions, OutputTarget};
use crate::process_exit::ProcessExit;

/// The line by which an agent answers. Lines before it come from other programs.
pub(crate) const HELLO: &str = concat!("fishplate agent ", env!("CARGO_PKG_VERSION"));

/// The window: the most bytes of one output stream, or of input, without confirmation.
pub(crate) const WINDOW: usize = 256 << 10;

/// The most bytes of one output stream that all agents together may have sent without
/// confirmation, as far as each still has a piece.
const ALL_WINDOWS: usize = 8 << 20;

/// The window of an output stream of each of this many agents.
pub(crate) fn output_window(agents: usize) -> usize {
    (ALL_WINDOWS / agents.max(1)).clamp(PIECE, WINDOW)
}

/// The most bytes in one frame of output or input.
pub(crate) const PIECE: usize = 16 << 10;

/// The longest frame of an agent.
pub(crate) const LONGEST: usize = 96 << 10;

/// The longest frame of the launcher: an order with arguments and variables.
pub(crate) const LONGEST_ORDER: usize = 16 << 20;

/// The longest line before frames begin; a longer one is cut.
const LONGEST_LINE: usize = 4 << 10;

/// The bytes of a frame's length.
const HEAD: usize = 4;

/// The bytes of one read, and the consumed bytes that are kept before the rest moves to the front.
const READ: usize = 64 << 10;

/// The order to start the ranks of one host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub programs: Vec<Program>,
    pub output: OutputOptions,
    /// The rank that reads the launcher's standard input.
    pub input: Option<usize>,
    /// Whether more ranks than cores are an error.
    pub one_core_each: bool,
    /// Whether a program may be linked with the MPI library of another ABI.
    pub allow_other_mpi: bool,
    /// Whether to report the MPI libraries of each program.
    pub verbose: bool,
    /// Whether ranks stop before their first instruction, until SIGCONT.
    pub held: bool,
    /// The number of the first rank.
    pub first: usize,
    /// The number of ranks to start.
    pub count: usize,
    /// The host of each rank of the job, as ranks read it; and the number of ranks of the job.
    pub hosts: String,
    pub ranks: usize,
    /// Whether rank 0 is to explain its choices.
    pub explain: bool,
    /// The user's wishes for the binding of ranks.
    pub binding: BindingRequest,
    /// Whether the ranks count for the job's profile.
    pub counts: bool,
    /// The most bytes of one output stream without confirmation.
    pub window: usize,
    /// The longest silence of either end. Zero: for ever.
    pub patience: Duration,
    /// The secret of the job.
    #[serde(with = "secret_bytes")]
    pub secret: Secret,
}

/// The form of a secret in a frame: its bytes.
mod secret_bytes {
    use secret::Secret;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        secret.as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        Deserialize::deserialize(from).map(Secret::from_bytes)
    }
}

impl StartOrder {
    /// Checks the numbers, which come from another process. The error is the reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        let last = self.first.checked_add(self.count);
        let programs = self.programs.iter().map(|program| program.ranks);
        let places = programs.fold(0, usize::saturating_add);
        let fits = self.count > 0 && last.is_some_and(|last| last <= self.ranks.min(places));
        match fits && self.ranks <= MOST_RANKS {
            true => Ok(()),
            false => Err(format!(
                "it orders {} ranks from {} of a job of {}, and a job has from 1 to {MOST_RANKS}",
                self.count, self.first, self.ranks
            )),
        }
    }

    /// The hosts of the job, if the order is possible. The error is the reason.
    pub(crate) fn placed(&self) -> Result<Hosts, String> {
        self.check()?;
        let hosts = Hosts::parse(&self.hosts, self.ranks).map_err(|why| why.to_string())?;
        let own = self.first..self.first + self.count;
        match hosts.beside(self.first).eq(own) {
            true => Ok(hosts),
            false => Err(format!(
                "it orders {} ranks from {}, which are not those of one host",
                self.count, self.first
            )),
        }
    }
}

/// A frame from the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    Start(Box<StartOrder>),
    /// Request the status of this rank.
    RequestStatus(usize),
    /// The launcher's part of the exchange.
    Down(Down),
    /// Bytes for rank 0's standard input.
    Input(Vec<u8>),
    EndOfInput,
    /// This many bytes of output were taken.
    Taken(OutputTarget, usize),
    /// The launcher's stream is closed.
    Closed(OutputTarget),
    /// Forward this signal to the ranks.
    Signal(i32),
    /// A sign of life.
    Beat,
    /// The user has stopped the launcher: it is silent until its next frame.
    Suspended,
    /// End all processes by these signals, one after the other; in a hurry, without waiting for
    /// output to be taken.
    End {
        signals: Vec<i32>,
        hurry: bool,
    },
}

/// A frame from the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromAgent {
    /// The ranks were started, as these processes.
    Started(Vec<i32>),
    /// The ranks could not be started.
    Refused {
        why: String,
        code: u8,
    },
    /// The agent ends all processes for this reason, which the launcher does not know.
    Leaving(String),
    /// A piece of the job's profile, and its place.
    Counted(u64, Vec<u8>),
    /// The last frame.
    Done,
    /// A packet from this rank.
    Packet(usize, String),
    /// The program of this rank that completed MPI_Init has ended, and its wrapper runs.
    ProgramGone(usize),
    /// The rank has ended, after it has entered this many fences.
    Ended(usize, ProcessExit, u64),
    Output(usize, OutputTarget, Vec<u8>),
    EndOfOutput(usize, OutputTarget),
    /// This many bytes of input were taken.
    InputTaken(usize),
    /// Rank 0 has closed its input.
    InputClosed,
    /// A sign of life.
    Beat,
    /// The agent's part of the exchange.
    Up(Up),
    /// This rank broke a rule of the key-value store.
    Misused(usize, String),
}

/// A connection between launcher and agent: two pipes, and the bytes on their way.
pub(crate) struct FrameLink {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
    arrived: Passing,
    leaving: Passing,
    /// The longest frame that the other end may send.
    longest: usize,
}

/// Bytes that enter at the end and leave at the front, without moving the rest each time.
#[derive(Default)]
struct Passing {
    bytes: Vec<u8>,
    /// The number of bytes at the front that have left.
    gone: usize,
}

impl Passing {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes bytes at the front.
    fn remove(&mut self, count: usize) {
        self.gone += count;
        if self.gone == self.bytes.len() {
            self.bytes.clear();
            self.gone = 0;
            // The memory of one long frame is not kept.
            self.bytes.shrink_to(2 * READ);
        } else if self.gone >= READ.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
    }
}

impl FrameLink {
    /// A link whose other end sends frames of at most `longest` bytes.
    pub(crate) fn new(reader: OwnedFd, writer: OwnedFd, longest: usize) -> io::Result<Self> {
        for end in [&reader, &writer] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(FrameLink {
            reader: Some(reader),
            writer: Some(writer),
            arrived: Passing::default(),
            leaving: Passing::default(),
            longest,
        })
    }

    /// Whether everything has been read, up to the end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.reader.is_none() && !self.has_frame()
    }

    /// Whether everything has been written, or nothing more can be.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.leaving.rest().is_empty() || self.writer.is_none()
    }

    /// The number of bytes that wait for the other end.
    pub(crate) fn backlog(&self) -> usize {
        self.writer
            .as_ref()
            .map_or(0, |_| self.leaving.rest().len())
    }

    /// Ends the link: nothing more is read or written.
    pub(crate) fn shut(&mut self) {
        self.reader = None;
        self.writer = None;
        self.arrived = Passing::default();
        self.leaving = Passing::default();
    }

    /// Takes the text after the last line, once nothing more can come.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        match self.reader {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut self.arrived).rest().to_vec(),
        }
    }

    /// Whether a frame has arrived completely, or bytes that cannot be one.
    pub(crate) fn has_frame(&self) -> bool {
        self.length().is_some_and(|length| {
            length > self.longest || self.arrived.rest().len() - HEAD >= length
        })
    }

    /// The length of the next frame, if its head has arrived.
    pub(crate) fn length(&self) -> Option<usize> {
        let head = self.arrived.rest().first_chunk::<HEAD>()?;
        Some(u32::from_le_bytes(*head) as usize)
    }

    /// Whether there is no room for more bytes before some have been handled.
    fn is_full(&self) -> bool {
        self.arrived.rest().len() >= self.longest + HEAD
    }

    /// Closes the writing direction: the other end reads the end.
    pub(crate) fn close(&mut self) {
        self.writer = None;
    }

    /// The descriptors to poll, and the events.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let reader = self.reader.iter().filter(|_| !self.is_full());
        let reader = reader.map(|fd| (fd.as_fd(), PollFlags::IN));
        let writer = self
            .writer
            .iter()
            .filter(|_| !self.leaving.rest().is_empty());
        reader.chain(writer.map(|fd| (fd.as_fd(), PollFlags::OUT)))
    }

    /// Queues a frame.
    pub(crate) fn post(&mut self, frame: &impl Serialize) {
        let Ok(bytes) = postcard::to_stdvec(frame) else {
            return;
        };
        self.leaving.push(&(bytes.len() as u32).to_le_bytes());
        self.leaving.push(&bytes);
        self.flush();
    }

    /// Queues a line; before frames begin.
    pub(crate) fn post_line(&mut self, line: &str) {
        self.leaving.push(format!("{line}\n").as_bytes());
        self.flush();
    }

    /// Writes the bytes that can be written without blocking.
    pub(crate) fn flush(&mut self) {
        while !self.leaving.rest().is_empty() {
            let Some(writer) = &self.writer else { break };
            match rustix::io::write(writer, self.leaving.rest()) {
                Ok(length) => self.leaving.remove(length),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The other end is gone, as the reader will find.
                Err(_) => self.writer = None,
            }
        }
        if self.writer.is_none() {
            self.leaving = Passing::default();
        }
    }

    /// Reads bytes that have arrived, as far as there is room. True if there were some.
    pub(crate) fn pull(&mut self) -> bool {
        let mut bytes = [0; READ];
        let mut has_read = false;
        while !self.is_full() {
            let Some(reader) = &self.reader else { break };
            match rustix::io::read(reader, &mut bytes) {
                Ok(0) => self.reader = None,
                Ok(length) => {
                    self.arrived.push(&bytes[..length]);
                    has_read = true;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.reader = None,
            }
        }
        has_read
    }

    /// The next frame, if it has arrived completely. An error is the reason why the bytes are no
    /// frame.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let Some(length) = self.length() else {
            return Ok(None);
        };
        if length > self.longest {
            return Err(format!("a frame of {length} bytes"));
        }
        let Some(body) = self.arrived.rest().get(HEAD..HEAD + length) else {
            return Ok(None);
        };
        let frame = postcard::from_bytes(body).map_err(|_| "bytes that are no frame")?;
        self.arrived.remove(HEAD + length);
        Ok(Some(frame))
    }

    /// The next line, without its newline; before frames begin. A long one comes in pieces.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let rest = self.arrived.rest();
        let front = &rest[..rest.len().min(LONGEST_LINE)];
        let (end, taken) = match front.iter().position(|&byte| byte == b'\n') {
            Some(end) => (end, end + 1),
            None if front.len() == LONGEST_LINE => (LONGEST_LINE, LONGEST_LINE),
            None => return None,
        };
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        self.arrived.remove(taken);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (FrameLink, FrameLink) {
        let (here, there) = (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        (
            FrameLink::new(here.0, there.1, LONGEST).unwrap(),
            FrameLink::new(there.0, here.1, LONGEST).unwrap(),
        )
    }

    #[test]
    fn frames_arrive_whole_and_in_order_whatever_the_pipe_holds() {
        let (mut here, mut there) = link();
        here.post_line("noise");
        for rank in 0..500 {
            here.post(&FromAgent::Output(
                rank,
                OutputTarget::Stderr,
                vec![7; 1000],
            ));
        }
        assert!(!here.has_sent_all());
        let mut count = 0;
        there.pull();
        assert_eq!(there.next_line().as_deref(), Some("noise"));
        while count < 500 {
            here.flush();
            there.pull();
            while let Some(frame) = there.next::<FromAgent>().unwrap() {
                let FromAgent::Output(rank, OutputTarget::Stderr, bytes) = frame else {
                    panic!("{frame:?}")
                };
                assert_eq!((rank, bytes.len()), (count, 1000));
                count += 1;
            }
        }
        assert!(here.has_sent_all());
        here.close();
        there.pull();
        assert!(there.is_at_end());
    }

    #[test]
    fn a_flood_fills_a_buffer_of_fixed_size() {
        let (mut here, mut there) = link();
        here.leaving.push(&vec![b'x'; 1 << 20]);
        for _ in 0..64 {
            here.flush();
            there.pull();
        }
        assert!(there.arrived.bytes.len() <= LONGEST + HEAD + READ);
        assert!(there.wanted().count() == 0 && there.has_frame());
        assert_eq!(there.next_line().unwrap().len(), LONGEST_LINE);
        assert!(
            there
                .next::<FromAgent>()
                .unwrap_err()
                .contains("2021161080 bytes")
        );
    }

    #[test]
    fn bytes_leave_in_order_and_leave_no_memory() {
        let mut passing = Passing::default();
        let (mut pushed, mut removed) = (0u32, 0u32);
        for round in 0..2000 {
            for _ in 0..round % 97 {
                passing.push(&pushed.to_le_bytes());
                pushed += 1;
            }
            for _ in 0..round % 89 {
                let Some(word) = passing.rest().first_chunk() else {
                    break;
                };
                assert_eq!(u32::from_le_bytes(*word), removed);
                passing.remove(4);
                removed += 1;
            }
            let most = 2 * passing.rest().len().max(READ) + 4;
            assert!(passing.bytes.len() <= most);
        }
        assert!(removed > 50_000);
    }

    #[test]
    fn many_agents_share_the_windows() {
        assert_eq!(output_window(1), WINDOW);
        assert_eq!(output_window(64), 128 << 10);
        assert_eq!(output_window(10_000), PIECE);
    }

    fn order(first: usize, count: usize, ranks: usize) -> StartOrder {
        StartOrder {
            programs: vec![Program {
                ranks,
                ..Program::default()
            }],
            output: OutputOptions::default(),
            input: None,
            one_core_each: false,
            allow_other_mpi: false,
            verbose: false,
            held: false,
            first,
            count,
            hosts: String::new(),
            ranks,
            explain: false,
            binding: BindingRequest::default(),
            counts: false,
            window: WINDOW,
            patience: Duration::ZERO,
            secret: Secret::from_bytes([0xa5; Secret::LENGTH]),
        }
    }

    #[test]
    fn an_order_carries_the_secret_and_does_not_show_it() {
        let (mut here, mut there) = link();
        here.post(&ToAgent::Start(Box::new(order(0, 1, 1))));
        there.pull();
        let Ok(Some(ToAgent::Start(order))) = there.next() else {
            panic!("no order")
        };
        assert_eq!(order.secret.as_bytes(), &[0xa5; Secret::LENGTH]);
        let shown = format!("{order:?}");
        assert!(!shown.contains("165") && !shown.contains("a5"), "{shown}");
    }

    #[test]
    fn impossible_orders_are_refused() {
        let most = usize::MAX;
        for (first, count, ranks, is_valid) in [
            (0, 2, 2, true),
            (1, 4095, 4096, true),
            (0, 0, 2, false),
            (1, 2, 2, false),
            (most, 1, 4, false),
            (0, 1 << 62, 1 << 62, false),
            (most, most, most, false),
        ] {
            let order = order(first, count, ranks);
            assert_eq!(order.check().is_ok(), is_valid, "{first} {count} {ranks}");
        }
    }

    #[test]
    fn an_order_has_all_ranks_of_one_host() {
        for (first, count, is_valid) in [(0, 2, true), (2, 2, true), (1, 2, false), (2, 1, false)] {
            let hosts = "0*2,1*2".into();
            let order = StartOrder {
                hosts,
                ..order(first, count, 4)
            };
            assert_eq!(order.placed().is_ok(), is_valid, "{first} {count}");
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let (mut here, mut there) = link();
        here.post_line("this is text");
        there.pull();
        assert!(there.next::<FromAgent>().is_err());
        let (mut here, mut there) = link();
        here.leaving.push(&[1, 0, 0, 0, 250]);
        here.flush();
        there.pull();
        assert!(there.next::<FromAgent>().is_err());
    }
}
