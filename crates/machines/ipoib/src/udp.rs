//! UDP: datagrams are cut into fragments of IP, and reassembled. A datagram that stays incomplete,
//! or does not fit into the socket's buffer, is lost.

use std::collections::VecDeque;

use crate::frame::Head;

/// The greatest number of datagrams of which fragments are missing.
const INCOMPLETE: usize = 64;
/// The memory that the kernel counts for a datagram is a multiple of this number of bytes.
const COUNTED: usize = 2048;

/// A UDP socket.
pub struct Socket {
    /// The number of bytes of a datagram that a fragment carries.
    payload: usize,
    buffer: usize,
    sent: u64,
    /// The datagrams whose fragments have all arrived, in that order.
    arrived: VecDeque<Vec<u8>>,
    /// The memory that the kernel counts for the complete datagrams, in bytes.
    counted: usize,
    incomplete: VecDeque<Incomplete>,
    /// The number of datagrams that were dropped because the buffer was full.
    dropped: u64,
}

struct Incomplete {
    datagram: u64,
    bytes: Vec<u8>,
    missing: usize,
}

impl Socket {
    /// A socket whose datagrams are cut into fragments of `payload` bytes, and which keeps at most
    /// `buffer` bytes of complete datagrams.
    pub fn new(payload: usize, buffer: usize) -> Socket {
        Socket {
            payload,
            buffer,
            sent: 0,
            arrived: VecDeque::new(),
            counted: 0,
            incomplete: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Cuts a datagram into fragments: for each the header and the part of the datagram.
    pub fn cut<'a>(&mut self, datagram: &'a [u8]) -> Vec<(Head, &'a [u8])> {
        self.sent += 1;
        let (number, total) = (self.sent, datagram.len());
        let parts = datagram.chunks(self.payload).enumerate();
        let cut = parts.map(|(at, part)| {
            let head = Head::Fragment {
                datagram: number,
                offset: at * self.payload,
                total,
            };
            (head, part)
        });
        cut.collect()
    }

    /// Processes a fragment that has arrived. True: it completes a datagram, which can be read.
    pub fn take(&mut self, datagram: u64, offset: usize, total: usize, part: &[u8]) -> bool {
        if offset.checked_add(part.len()).is_none_or(|end| end > total) || part.is_empty() {
            return false;
        }
        if part.len() == total {
            return self.keep(part.to_vec());
        }
        let known = self.incomplete.iter();
        let known = known
            .map(|one| one.datagram)
            .position(|one| one == datagram);
        let at = known.unwrap_or_else(|| {
            if self.incomplete.len() == INCOMPLETE {
                self.incomplete.pop_front();
            }
            self.incomplete.push_back(Incomplete {
                datagram,
                bytes: vec![0; total],
                missing: total,
            });
            self.incomplete.len() - 1
        });
        let own = &mut self.incomplete[at];
        if own.bytes.len() != total {
            return false;
        }
        own.bytes[offset..offset + part.len()].copy_from_slice(part);
        own.missing = own.missing.saturating_sub(part.len());
        match own.missing {
            0 => {
                let whole = self.incomplete.remove(at);
                whole.is_some_and(|whole| self.keep(whole.bytes))
            }
            _ => false,
        }
    }

    fn keep(&mut self, datagram: Vec<u8>) -> bool {
        let size = counted(datagram.len());
        if self.counted > 0 && self.counted + size > self.buffer {
            self.dropped += 1;
            return false;
        }
        self.counted += size;
        self.arrived.push_back(datagram);
        true
    }

    /// The length of the datagram that can be read next.
    pub fn next(&self) -> Option<usize> {
        self.arrived.front().map(Vec::len)
    }

    /// Reads the next datagram into `into`, cutting off what does not fit; returns the number of
    /// bytes.
    pub fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        let datagram = self.arrived.pop_front()?;
        self.counted -= counted(datagram.len());
        let len = datagram.len().min(into.len());
        into[..len].copy_from_slice(&datagram[..len]);
        Some(len)
    }

    /// The number of datagrams that were dropped because the buffer was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

fn counted(len: usize) -> usize {
    len.next_multiple_of(COUNTED)
}
