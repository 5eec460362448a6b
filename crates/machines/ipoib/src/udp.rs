//! UDP: datagrams cut into fragments of IP, and put together again. Whatever is incomplete, or does
//! not fit into the socket's buffer, is lost.

use std::collections::VecDeque;

use crate::frame::Head;

/// The most datagrams that are incomplete at a time.
const INCOMPLETE: usize = 64;
/// The memory that the kernel counts for a packet is a multiple of this many bytes.
const COUNTED: usize = 2048;

/// A UDP socket.
pub struct Socket {
    /// The bytes of a datagram that a fragment carries.
    payload: usize,
    buffer: usize,
    sent: u64,
    /// Whole datagrams, and the memory that the kernel counts for them.
    arrived: VecDeque<Vec<u8>>,
    counted: usize,
    incomplete: VecDeque<Incomplete>,
    /// Datagrams that found the buffer full.
    dropped: u64,
}

struct Incomplete {
    datagram: u64,
    bytes: Vec<u8>,
    missing: usize,
}

impl Socket {
    /// A socket whose datagrams are cut into fragments of `payload` bytes, and which keeps at most
    /// `buffer` bytes that have arrived.
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

    /// The fragments of a datagram: headers and parts of it.
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

    /// Takes a fragment that has arrived. True: a datagram can be read.
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

    /// Reads the next datagram, as far as it fits; returns the number of bytes.
    pub fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        let datagram = self.arrived.pop_front()?;
        self.counted -= counted(datagram.len());
        let len = datagram.len().min(into.len());
        into[..len].copy_from_slice(&datagram[..len]);
        Some(len)
    }

    /// The number of datagrams that found the buffer full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

fn counted(len: usize) -> usize {
    len.next_multiple_of(COUNTED)
}
