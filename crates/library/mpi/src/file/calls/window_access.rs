//! The access of an aggregator to a window of a file, for the requests of all ranks.

use std::sync::Arc;

use ::file_io::Windows;
use datatype::Buffer;

use crate::Result;
use crate::file::Direction;
use crate::file::calls::access::{FileAccess, SHORT_GAP};

/// Bytes of the number that precedes the data of an answer.
pub(super) const VALID: usize = 8;

/// The request of a rank to an aggregator in one round of an access.
pub(super) struct Request {
    pub(super) from: usize,
    /// The runs of the request: offsets in the file and lengths, in bytes.
    pub(super) runs: Vec<(u64, u64)>,
    /// The data of a write, in the order of the runs.
    pub(super) data: Buffer,
}

impl Request {
    /// The number of bytes of all runs that the request names.
    pub(super) fn len(&self) -> usize {
        self.runs.iter().map(|run| run.1 as usize).sum()
    }
}

/// The access of an aggregator to a window. Another thread may make it: all memory has been
/// allocated.
pub(super) struct WindowAccess {
    pub(super) access: Arc<FileAccess>,
    /// The runs of all ranks' requests, joined.
    pub(super) runs: Vec<(u64, u64)>,
    /// The file offset at which the memory of the window begins.
    pub(super) start: u64,
    pub(super) stage: Buffer,
    /// The data for the ranks that read, in the order of their requests.
    pub(super) answers: Vec<Buffer>,
}

impl WindowAccess {
    /// Accesses the file for all requests, and fills the answers to reads.
    pub(super) fn make(&self, requests: &[Request]) -> Result<()> {
        match self.access.direction {
            Direction::Write => self.write(requests),
            Direction::Read => self.read(requests),
        }
    }

    /// The part of the window's memory that a run occupies.
    fn memory(&self, offset: u64, len: u64) -> Buffer {
        let at = (offset - self.start) as usize;
        self.stage.slice(at, len as usize)
    }

    fn write(&self, requests: &[Request]) -> Result<()> {
        for request in requests {
            self.collect(request);
        }
        for &(offset, len) in &self.runs {
            self.access.move_at(offset, &self.memory(offset, len))?;
        }
        Ok(())
    }

    /// Copies the data of a write to their positions in the window's memory.
    fn collect(&self, request: &Request) {
        let data = &request.data;
        self.access.count_copy(data.len());
        let copied = self.stage.with_dense_mut(0, self.stage.len(), |stage| {
            data.with_dense(0, data.len(), |mut from| {
                for &(offset, len) in &request.runs {
                    let (at, len) = ((offset - self.start) as usize, len as usize);
                    let (run, rest) = from.split_at(len);
                    stage[at..at + len].copy_from_slice(run);
                    from = rest;
                }
            })
        });
        if copied.flatten().is_some() {
            return;
        }
        // The user's memory has gaps.
        let mut from = 0;
        for &(offset, len) in &request.runs {
            let run = data.slice(from, len as usize);
            run.copy_to(&self.memory(offset, len));
            from += len as usize;
        }
    }

    fn read(&self, requests: &[Request]) -> Result<()> {
        let mut windows = Windows::new(u64::MAX, SHORT_GAP);
        let mut read: Vec<_> = self
            .runs
            .iter()
            .filter_map(|run| windows.push(run.0, run.1))
            .collect();
        read.extend(windows.finish());
        // The end of the file, if these reads have reached it.
        let mut end = u64::MAX;
        for window in read {
            let part = self.memory(window.offset, window.len);
            let count = self.access.move_at(window.offset, &part)?;
            if count < window.len {
                end = end.min(window.offset + count);
            }
        }
        for (request, answer) in requests.iter().zip(&self.answers) {
            self.fill(request, answer, end);
        }
        Ok(())
    }

    /// Fills the answer to a read. The file ends at offset `end`.
    fn fill(&self, request: &Request, answer: &Buffer, end: u64) {
        self.access.count_copy(request.len());
        let (mut valid, mut is_over) = (0u64, false);
        self.stage.with_dense(0, self.stage.len(), |stage| {
            answer.with_dense_mut(VALID, request.len(), |mut room| {
                for &(offset, len) in &request.runs {
                    let at = (offset - self.start) as usize;
                    let (run, rest) = room.split_at_mut(len as usize);
                    run.copy_from_slice(&stage[at..at + len as usize]);
                    room = rest;
                }
            })
        });
        for &(offset, len) in &request.runs {
            let present = end.saturating_sub(offset).min(len);
            valid += if is_over { 0 } else { present };
            is_over |= present < len;
        }
        answer.unpack(0, &valid.to_ne_bytes());
    }
}
