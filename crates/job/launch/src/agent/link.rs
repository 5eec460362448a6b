//! A connection between launcher and agent that carries frames: two pipes, and buffers for bytes in
//! flight.
//!
//! A frame is a length of four bytes in little-endian order and a body in postcard's encoding.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::timespec;

/// The length of the longest line before frames begin, in bytes; a longer one is split.
const LONGEST_LINE: usize = 4 << 10;
/// The number of bytes of a frame's length field.
const HEAD: usize = 4;
/// The most bytes of one read; and the number of consumed bytes from which on the rest is moved to
/// the front of the buffer.
const READ: usize = 64 << 10;

/// A connection between launcher and agent: two pipes, and buffers for bytes in flight.
pub(crate) struct FrameLink {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
    arrived: Passing,
    leaving: Passing,
    /// The length of the longest frame that the other end may send, in bytes.
    longest: usize,
}

/// A buffer to which bytes are appended, and from whose front they are removed without moving the
/// rest each time.
#[derive(Default)]
struct Passing {
    bytes: Vec<u8>,
    /// The number of bytes at the front that have been removed and still take memory.
    gone: usize,
}

impl Passing {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes `count` bytes at the front of the queue.
    fn remove(&mut self, count: usize) {
        self.gone += count;
        if self.gone == self.bytes.len() {
            self.bytes.clear();
            self.gone = 0;
            // Releases the memory that one long frame took.
            self.bytes.shrink_to(2 * READ);
        } else if self.gone >= READ.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
    }
}

impl FrameLink {
    /// Makes a link whose other end sends frames of at most `longest` bytes.
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

    /// True if the other end has closed the connection and all complete frames have been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.reader.is_none() && !self.has_frame()
    }

    /// True if everything has been written, or nothing more can be written.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.leaving.rest().is_empty() || self.writer.is_none()
    }

    /// The number of bytes that are queued for the other end.
    pub(crate) fn backlog(&self) -> usize {
        self.writer
            .as_ref()
            .map_or(0, |_| self.leaving.rest().len())
    }

    /// Closes the connection to the other end: nothing more is read or written.
    pub(crate) fn shut(&mut self) {
        self.reader = None;
        self.writer = None;
        self.arrived = Passing::default();
        self.leaving = Passing::default();
    }

    /// Takes the text after the last line, once the other end has closed the connection. Empty
    /// before.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        match self.reader {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut self.arrived).rest().to_vec(),
        }
    }

    /// True if a frame has arrived completely, or bytes that cannot be a frame.
    pub(crate) fn has_frame(&self) -> bool {
        self.length().is_some_and(|length| {
            length > self.longest || self.arrived.rest().len() - HEAD >= length
        })
    }

    /// The length of the next frame, in bytes, if its length field has arrived.
    pub(crate) fn length(&self) -> Option<usize> {
        let head = self.arrived.rest().first_chunk::<HEAD>()?;
        Some(u32::from_le_bytes(*head) as usize)
    }

    /// True if there is room for more bytes only after some frames have been read.
    fn is_full(&self) -> bool {
        self.arrived.rest().len() >= self.longest + HEAD
    }

    /// Closes the pipe to the other end, which then reads end of file.
    pub(crate) fn close(&mut self) {
        self.writer = None;
    }

    /// The descriptors of the link to poll, each with its events.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let reader = self.reader.iter().filter(|_| !self.is_full());
        let reader = reader.map(|fd| (fd.as_fd(), PollFlags::IN));
        let writer = self
            .writer
            .iter()
            .filter(|_| !self.leaving.rest().is_empty());
        reader.chain(writer.map(|fd| (fd.as_fd(), PollFlags::OUT)))
    }

    /// Queues a frame for the other end.
    pub(crate) fn post(&mut self, frame: &impl Serialize) {
        let Ok(bytes) = postcard::to_stdvec(frame) else {
            return;
        };
        self.leaving.push(&(bytes.len() as u32).to_le_bytes());
        self.leaving.push(&bytes);
        self.flush();
    }

    /// Queues a line of text. Only before the first frame.
    pub(crate) fn post_line(&mut self, line: &str) {
        self.leaving.push(format!("{line}\n").as_bytes());
        self.flush();
    }

    /// Writes queued frames without blocking.
    pub(crate) fn flush(&mut self) {
        while !self.leaving.rest().is_empty() {
            let Some(writer) = &self.writer else { break };
            match rustix::io::write(writer, self.leaving.rest()) {
                Ok(length) => self.leaving.remove(length),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The other end is gone, which the reader will detect.
                Err(_) => self.writer = None,
            }
        }
        if self.writer.is_none() {
            self.leaving = Passing::default();
        }
    }

    /// Waits until all queued frames have been written, at most until the time `until`.
    pub(crate) fn drain(&mut self, until: Instant) {
        while !self.has_sent_all() && Instant::now() < until {
            let wanted = self.wanted();
            let writers = wanted.filter(|(_, flags)| *flags == PollFlags::OUT);
            let mut writers: Vec<PollFd> = writers
                .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
                .collect();
            // An interrupted poll is repeated.
            let _ = poll(&mut writers, Some(&timespec(until)));
            self.flush();
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

    /// The next frame, if it has arrived completely. An error: the bytes are not a valid frame.
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

    /// The next line, without its newline, if it has arrived. Only before the first frame. A long
    /// line is returned in pieces.
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

/// The descriptors of a link, in the form for `poll`.
pub(super) fn polled(link: &FrameLink) -> Vec<PollFd<'_>> {
    let wanted = link.wanted();
    wanted
        .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::agent::frame::{FromAgent, LONGEST};
    use crate::output::OutputTarget;

    pub(crate) fn link() -> (FrameLink, FrameLink) {
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
