//! The transfer of bytes between a buffer and a file, through a view.

use std::io::{Error, ErrorKind, Result};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use datatype::Buffer;

use crate::backing::{Backing, Lock, read_full, write_all};
use crate::view::View;
use crate::windows::{Window, Windows};

/// The most bytes that are packed or unpacked at a time where memory has gaps and the file has
/// none.
const STAGE: u64 = 1 << 20;

/// The ranges of the file that a transfer locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locking {
    /// No range. Others never rewrite bytes outside of the data of their accesses.
    None,
    /// The transfer locks each window that it writes, because others may rewrite gaps.
    Writes,
    /// All bytes between the first and the last, at once (MPI 5.0 §14.6.1: atomic mode).
    Whole,
}

/// A transfer of bytes between memory and a file, through a view.
pub struct Transfer<'a> {
    /// The open file of the transfer.
    pub file: &'a dyn Backing,
    /// Excludes threads of this process from each other, which file locks do not.
    pub turn: &'a Mutex<()>,
    /// The view, by which the process sees the file.
    pub view: &'a View,
    /// The longest gap, in bytes, that is moved with the data around it.
    pub gap: u64,
    /// The longest window in bytes.
    pub span: u64,
    /// The ranges of the file that the transfer locks.
    pub locking: Locking,
}

impl Transfer<'_> {
    /// Reads into a buffer from a position of the view on. The result is the number of bytes
    /// before the end of the file.
    ///
    /// # Errors
    /// Those of the system, and positions that no file has.
    pub fn read(&self, position: u64, memory: &Buffer) -> Result<u64> {
        let range = self.checked(position, memory.len() as u64)?;
        self.locked(range, Lock::Shared, || {
            let mut stage = Vec::new();
            let mut end = memory.len() as u64;
            self.windows(position, memory.len() as u64, |window| {
                let read = self.read_window(&window, memory, &mut stage)?;
                if read < window.data {
                    end = window.position + read;
                }
                // At the end of the file the transfer stops: an ascending view has no data behind
                // it.
                Ok(read == window.data)
            })?;
            Ok(end)
        })
    }

    /// Writes a buffer from a position of the view on.
    ///
    /// # Errors
    /// Those of the system, and positions that no file has.
    pub fn write(&self, position: u64, memory: &Buffer) -> Result<()> {
        let range = self.checked(position, memory.len() as u64)?;
        self.locked(range, Lock::Exclusive, || {
            let mut stage = Vec::new();
            self.windows(position, memory.len() as u64, |window| {
                self.write_window(&window, memory, &mut stage)?;
                Ok(true)
            })
        })
    }

    /// Checks that the bytes have offsets that a file can have. Returns the range that is locked
    /// during the whole transfer; empty except for [`Locking::Whole`].
    fn checked(&self, position: u64, count: u64) -> Result<Range<u64>> {
        if count == 0 {
            return Ok(0..0);
        }
        if self.view.is_empty() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let last = position.checked_add(count - 1);
        let last = last.and_then(|last| self.view.offset_of(last));
        if last.is_none() {
            return Err(Error::from_raw_os_error(libc::EFBIG));
        }
        if self.locking != Locking::Whole {
            return Ok(0..0);
        }
        let bounds = self.view.bounds(position, count);
        Ok(bounds.map_or(0..u64::MAX, |(start, end)| start..end))
    }

    /// Calls `then` while it holds a lock on a range of the file.
    fn locked<T>(
        &self,
        range: Range<u64>,
        lock: Lock,
        then: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if range.is_empty() {
            return then();
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.lock(range.clone(), lock)?;
        let result = then();
        let unlocked = self.file.unlock(range);
        result.and_then(|value| unlocked.map(|()| value))
    }

    /// Calls `each` with the windows of a range of the view, while it returns true.
    fn windows(
        &self,
        position: u64,
        count: u64,
        mut each: impl FnMut(Window) -> Result<bool>,
    ) -> Result<()> {
        let mut windows = Windows::new(self.span, self.gap);
        let mut failed = Ok(());
        let mut visit = |window: Option<Window>| match window.map_or(Ok(true), &mut each) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        };
        let flow = self.view.runs(position, count, &mut |offset, len| {
            visit(windows.push(offset, len))
        });
        if flow.is_continue() {
            let _ = visit(windows.finish());
        }
        failed
    }

    /// Reads a window. Returns the number of data bytes before the end of the file.
    fn read_window(&self, window: &Window, memory: &Buffer, stage: &mut Vec<u8>) -> Result<u64> {
        if window.runs.is_empty() {
            return self.read_run(window, memory, stage);
        }
        stage.resize(window.len as usize, 0);
        let read = read_full(self.file, window.offset, stage)? as u64;
        let mut done = 0;
        let present = window.runs.iter().map(|&(start, len)| {
            let present = read.saturating_sub(start).min(len) as usize;
            let start = start as usize;
            &stage[start..start + present]
        });
        let (at, data) = (window.position as usize, window.data as usize);
        let direct = memory.with_dense_mut(at, data, |room| {
            for bytes in present.clone() {
                room[done..done + bytes.len()].copy_from_slice(bytes);
                done += bytes.len();
            }
        });
        if direct.is_none() {
            for bytes in present {
                memory.unpack(at + done, bytes);
                done += bytes.len();
            }
        }
        Ok(done as u64)
    }

    fn read_run(&self, run: &Window, memory: &Buffer, stage: &mut Vec<u8>) -> Result<u64> {
        let (at, len) = (run.position as usize, run.len as usize);
        let direct =
            memory.with_dense_mut(at, len, |bytes| read_full(self.file, run.offset, bytes));
        if let Some(read) = direct {
            return Ok(read? as u64);
        }
        let mut done = 0;
        while done < run.len {
            let count = (run.len - done).min(STAGE) as usize;
            stage.resize(count, 0);
            let read = read_full(self.file, run.offset + done, stage)?;
            memory.unpack(at + done as usize, &stage[..read]);
            done += read as u64;
            if read < count {
                break;
            }
        }
        Ok(done)
    }

    fn write_window(&self, window: &Window, memory: &Buffer, stage: &mut Vec<u8>) -> Result<()> {
        let range = window.offset..window.offset + window.len;
        let is_locked = self.locking == Locking::Whole;
        match window.has_gaps() || self.locking == Locking::Writes {
            true if !is_locked => self.locked(range, Lock::Exclusive, || {
                self.write_window_now(window, memory, stage)
            }),
            _ => self.write_window_now(window, memory, stage),
        }
    }

    fn write_window_now(
        &self,
        window: &Window,
        memory: &Buffer,
        stage: &mut Vec<u8>,
    ) -> Result<()> {
        if window.runs.is_empty() {
            return self.write_run(window, memory, stage);
        }
        stage.resize(window.len as usize, 0);
        if window.has_gaps() {
            let read = read_full(self.file, window.offset, stage)?;
            // Gaps behind the end of the file are zeros.
            stage[read..].fill(0);
        }
        let mut done = window.position as usize;
        for &(start, len) in &window.runs {
            let (start, len) = (start as usize, len as usize);
            memory.pack(done, &mut stage[start..start + len]);
            done += len;
        }
        write_all(self.file, window.offset, stage)
    }

    fn write_run(&self, run: &Window, memory: &Buffer, stage: &mut Vec<u8>) -> Result<()> {
        let (at, len) = (run.position as usize, run.len as usize);
        let direct = memory.with_dense(at, len, |bytes| write_all(self.file, run.offset, bytes));
        if let Some(written) = direct {
            return written;
        }
        let mut done = 0;
        while done < run.len {
            let count = (run.len - done).min(STAGE) as usize;
            stage.resize(count, 0);
            memory.pack(at + done as usize, stage);
            write_all(self.file, run.offset + done, stage)?;
            done += count as u64;
        }
        Ok(())
    }
}
