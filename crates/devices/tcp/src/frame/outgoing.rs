//! The bytes that the socket has not taken yet.

use std::collections::VecDeque;

use device::{Slice, Status};

use super::host::{Break, Host, Right};
use super::requests::MOST_REQUESTS;

/// The longest payload that is copied when the socket does not take it, in bytes. A longer one is
/// sent from its memory, which its owner leaves alone until the request completes.
const COPIED: usize = 1024;
/// Copied bytes are added to a chunk only while it has fewer bytes than this, so that sent bytes
/// are freed.
const CHUNK: usize = 64 << 10;
/// The number of copied bytes from which on a peer gets no more answers, because it reads none: far
/// more than any full send queue causes.
const FLOOD: usize = 64 << 20;

/// The bytes of frames that wait for the socket, in order.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    chunks: VecDeque<Chunk>,
    /// The number of bytes of the first chunk that have been sent.
    sent: usize,
    /// The number of chunks that are answers from memory.
    answers: usize,
    /// The number of bytes of the copied chunks.
    copied: usize,
}

#[derive(Debug)]
enum Chunk {
    Copied(Vec<u8>),
    Memory { from: Slice, right: Right },
}

/// A contiguous part of the bytes that wait for the socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    /// Bytes of this process: headers and copied payload.
    Bytes(&'a [u8]),
    /// Registered memory: an address and a length.
    Memory(u64, usize),
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// True if the peer has requested more answers than it receives.
    pub(super) fn is_flooded(&self) -> bool {
        self.answers >= MOST_REQUESTS || self.copied >= FLOOD
    }

    /// Adds bytes to those that wait for the socket.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.copied += bytes.len();
            self.open_chunk().extend_from_slice(bytes);
        }
    }

    /// The last chunk, to which the caller adds copied bytes.
    fn open_chunk(&mut self) -> &mut Vec<u8> {
        let is_open = matches!(self.chunks.back(), Some(Chunk::Copied(last)) if last.len() < CHUNK);
        if !is_open {
            self.chunks.push_back(Chunk::Copied(Vec::new()));
        }
        match self.chunks.back_mut() {
            Some(Chunk::Copied(last)) => last,
            _ => unreachable!("just opened"),
        }
    }

    /// Adds an answer from memory that the peer may read.
    pub(super) fn answer(&mut self, from: Slice) {
        self.answers += 1;
        let right = Right::RemoteRead;
        self.chunks.push_back(Chunk::Memory { from, right });
    }

    /// Adds a frame without its first `sent` bytes. `take` copies bytes out of memory.
    pub(super) fn frame(
        &mut self,
        (head, payload): (&[u8], &[Slice]),
        mut sent: usize,
        is_copied: bool,
        mut take: impl FnMut(u64, usize, &mut Vec<u8>),
    ) {
        self.bytes(head.get(sent..).unwrap_or(&[]));
        sent = sent.saturating_sub(head.len());
        let len: usize = payload.iter().map(|slice| slice.len as usize).sum();
        let is_copied = is_copied || len <= COPIED;
        for slice in payload {
            let skipped = sent.min(slice.len as usize);
            sent -= skipped;
            let from = Slice {
                address: slice.address + skipped as u64,
                len: slice.len - skipped as u32,
                lkey: slice.lkey,
            };
            if from.len == 0 {
                continue;
            }
            if !is_copied {
                let right = Right::LocalRead;
                self.chunks.push_back(Chunk::Memory { from, right });
                continue;
            }
            self.copied += from.len as usize;
            take(from.address, from.len as usize, self.open_chunk());
        }
    }

    /// Fills `pieces` with the first bytes to be sent. Returns their number. An error: memory is no
    /// longer registered.
    pub(crate) fn gather<'a>(
        &'a self,
        host: &impl Host,
        pieces: &mut [Piece<'a>],
    ) -> Result<usize, Break> {
        let mut skip = self.sent;
        let mut count = 0;
        for (chunk, piece) in self.chunks.iter().zip(pieces) {
            *piece = match chunk {
                Chunk::Copied(bytes) => Piece::Bytes(&bytes[skip..]),
                Chunk::Memory { from, right } => {
                    if !host.allows(from.lkey, from.address, from.len.into(), *right) {
                        return match count {
                            0 => Err(right.loss()),
                            // The chunks before this one leave first.
                            _ => Ok(count),
                        };
                    }
                    Piece::Memory(from.address + skip as u64, from.len as usize - skip)
                }
            };
            skip = 0;
            count += 1;
        }
        Ok(count)
    }

    /// Records that the socket has taken this number of bytes.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        while let Some(first) = self.chunks.front() {
            let len = match first {
                Chunk::Copied(bytes) => bytes.len(),
                Chunk::Memory { from, .. } => from.len as usize,
            };
            if self.sent < len {
                return;
            }
            self.sent -= len;
            match self.chunks.pop_front() {
                Some(Chunk::Copied(bytes)) => self.copied -= bytes.len(),
                Some(Chunk::Memory { right, .. }) => {
                    self.answers -= usize::from(right == Right::RemoteRead);
                }
                None => {}
            }
        }
    }

    /// The number of bytes of the copied chunks.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn held(&self) -> usize {
        self.copied
    }

    /// Drops all bytes that wait for the socket.
    pub(super) fn clear(&mut self) {
        *self = Outgoing::default();
    }
}

impl Right {
    /// The consequence for the connection if memory was deregistered while it was being sent.
    fn loss(self) -> Break {
        match self {
            Right::LocalRead => Break::Local(Status::LocalProtection),
            _ => Break::Refuse(Status::RemoteOperation),
        }
    }
}
