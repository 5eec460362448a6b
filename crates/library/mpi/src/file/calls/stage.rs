//! Collective accesses through memory that all ranks of a host share: the *stage*.
//!
//! The range of the file that the ranks access is divided into windows. Each window has an
//! aggregator, which moves it between the file and its slot of the stage in one piece; all ranks
//! copy their own data between the slot and their memory. So a byte is copied twice, and messages
//! only report that a window is filled or has been read.
//!
//! Invariants:
//! - a window is written once all ranks with bytes there have copied them in, and these are all
//!   bytes of the window;
//! - a slot gets another window only after all ranks have synchronised, so nobody still uses the
//!   previous one;
//! - an aggregator whose access fails reports that or continues, so nobody waits for it; the ranks
//!   agree on the error at the end.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ::file_io::Strided;
use channel::SharedMemory;
use datatype::{Buffer, Predefined};

use crate::Result;
use crate::coll::calls::parcels::{Parcel, Parcels};
use crate::file::calls::access::FileAccess;
use crate::file::calls::plan::{Extent, overlap};
use crate::file::calls::round::FileRound;
use crate::file::{Direction, Switch};
use crate::rank::Rank;

/// Bytes of a window for each rank: several windows fit the second-level cache of a core.
const WINDOW_OF_RANK: u64 = 64 << 10;
const LEAST_WINDOW: u64 = 128 << 10;
const LARGEST_WINDOW: u64 = 1 << 20;
/// The number of windows of an aggregator that are in the stage at once: the aggregator reads or
/// writes one while the others use another.
const SLOTS: u64 = 4;
/// The greatest number of bytes of a stage (memory that ranks of a host share).
const LARGEST_STAGE: u64 = 16 << 20;
/// The number of aggregators, unless a hint sets another. The system serializes writes to one file.
const AGGREGATORS: usize = 8;
/// The length of a run in bytes from which on no stage is used.
const LONG_RUN: u64 = 16 << 10;
/// The length of a message about a window in bytes: a number.
const WORD: usize = 8;
/// The message that an aggregator's read of a window has failed.
const FAILED: u64 = u64::MAX;

/// The plan of an access through the stage, which is equal on all ranks.
pub(super) struct StagePlan {
    extents: Vec<Extent>,
    range: Range<u64>,
    window: u64,
    /// The number of ranks that access the file: those with the lowest numbers.
    aggregators: usize,
}

/// The length of a stage for `ranks` ranks, in bytes.
pub(super) fn stage_len(ranks: usize) -> usize {
    let window = window_len(ranks) as usize;
    (window * SLOTS as usize * ranks.min(AGGREGATORS)).min(LARGEST_STAGE as usize)
}

fn window_len(ranks: usize) -> u64 {
    (WINDOW_OF_RANK * ranks as u64).clamp(LEAST_WINDOW, LARGEST_WINDOW)
}

impl StagePlan {
    /// Plans an access by ranks of one host. `None`: the stage is impossible, or another method is
    /// better.
    pub(super) fn new(extents: &[Extent], access: &FileAccess) -> Option<StagePlan> {
        let hints = &access.hints;
        let switch = match access.direction {
            Direction::Read => hints.collective_read,
            Direction::Write => hints.collective_write,
        };
        let ranks = extents.len();
        let is_impossible = extents.iter().any(|extent| extent.run == Extent::ALONE);
        if is_impossible || ranks == 1 || switch == Switch::Disabled {
            return None;
        }
        let busy = || extents.iter().filter(|extent| extent.start < extent.end);
        let start = busy().map(|extent| extent.start).min()?;
        let end = busy().map(|extent| extent.end).max()?;
        let is_short = busy().all(|extent| extent.run < LONG_RUN);
        if switch == Switch::Automatic && !(is_short && Extent::interleave(extents)) {
            return None;
        }
        let data = busy().fold(0u64, |sum, extent| sum.saturating_add(extent.bytes));
        let fits = match access.direction {
            // Bytes that no rank writes must keep their values, or may not even exist.
            Direction::Write => data == end - start && are_apart(extents),
            Direction::Read => data >= (end - start) / 2 && hints.sieve_read != Switch::Disabled,
        };
        let given = match hints.aggregators {
            0 => AGGREGATORS,
            given => given as usize,
        };
        fits.then(|| StagePlan {
            extents: extents.to_vec(),
            range: start..end,
            window: window_len(ranks).min(hints.collective_buffer),
            aggregators: given.clamp(1, ranks.min(AGGREGATORS)),
        })
    }

    fn aggregator(&self, window: u64) -> usize {
        (window % self.aggregators as u64) as usize
    }

    /// The file offset at which windows begin: a multiple of their length.
    fn base(&self) -> u64 {
        self.range.start / self.window * self.window
    }

    /// The number of windows of the file that the access divides its range into.
    fn windows(&self) -> u64 {
        (self.range.end - self.base()).div_ceil(self.window)
    }

    /// The range of file offsets that a window covers.
    fn window(&self, number: u64) -> Range<u64> {
        let start = self.base() + number * self.window;
        let end = start.saturating_add(self.window).min(self.range.end);
        start.max(self.range.start)..end
    }

    /// The number of windows that fit into a stage of `stage` bytes together.
    fn slots(&self, stage: u64) -> u64 {
        let aggregators = self.aggregators as u64;
        (stage / self.window).min(SLOTS * aggregators)
    }

    fn has_part(&self, rank: usize, window: &Range<u64>) -> bool {
        overlap(&self.extents[rank].range(), window)
    }
}

/// True if the runs of all ranks have one distance and no byte belongs to two ranks.
fn are_apart(extents: &[Extent]) -> bool {
    let busy = || extents.iter().filter(|extent| extent.start < extent.end);
    let stride = busy().map(|extent| extent.stride).next().unwrap_or(0);
    let mut runs: Vec<_> = busy().map(|extent| (extent.phase, extent.run)).collect();
    stride > 0
        && busy().all(|extent| extent.stride == stride)
        && Strided::are_apart(stride, &mut runs)
}

/// A collective access through the stage, as one rank executes it.
pub(super) struct Staged<'a> {
    pub(super) round: &'a FileRound,
    pub(super) access: &'a FileAccess,
    pub(super) plan: &'a StagePlan,
    /// The position of the access in the view, in bytes.
    pub(super) position: u64,
    pub(super) stage: Buffer,
}

impl Staged<'_> {
    /// Makes the access. Returns the number of its bytes before the end of the file.
    pub(super) async fn run(&self) -> Result<u64> {
        let slots = self.plan.slots(self.stage.len() as u64);
        let (mut failed, mut end) = (Ok(()), u64::MAX);
        let mut first = 0;
        while first < self.plan.windows() {
            if first > 0 {
                self.round.synchronise().await?;
            }
            let windows = first..(first + slots).min(self.plan.windows());
            first = windows.end;
            match self.access.direction {
                Direction::Write => self.write(windows, &mut failed).await?,
                Direction::Read => end = end.min(self.read(windows, &mut failed).await?),
            }
        }
        failed?;
        let len = self.memory().len() as u64;
        let before = |end| self.access.view.bytes.bytes_before(end);
        Ok(match end {
            u64::MAX => len,
            end => before(end).saturating_sub(self.position).min(len),
        })
    }

    fn rank(&self) -> &Arc<Rank> {
        &self.round.rank
    }

    fn me(&self) -> usize {
        self.round.file.core.rank
    }

    fn memory(&self) -> &Buffer {
        self.access.bytes()
    }

    fn parcels(&self) -> Parcels<'_> {
        Parcels::new(self.rank(), &self.round.file.core, self.round.tag, 0)
    }

    fn word(&self) -> Result<Buffer> {
        let byte = Predefined::BYTE.into();
        Ok(self
            .rank()
            .lock()
            .engine
            .scratch
            .elements(WORD, &byte)?
            .buffer())
    }

    /// The memory in the stage that a window uses.
    fn slot(&self, number: u64) -> Buffer {
        let slots = self.plan.slots(self.stage.len() as u64);
        let at = number % slots * self.plan.window;
        let window = self.plan.window(number);
        self.stage
            .slice(at as usize, (window.end - window.start) as usize)
    }

    /// The numbers of the windows whose aggregator is this rank.
    fn own(&self, windows: &Range<u64>) -> Vec<u64> {
        let (me, plan) = (self.me(), self.plan);
        windows
            .clone()
            .filter(|number| plan.aggregator(*number) == me)
            .collect()
    }

    /// Copies this rank's data into windows, and writes the windows whose aggregator it is.
    async fn write(&self, windows: Range<u64>, failed: &mut Result<()>) -> Result<()> {
        let parcels = self.parcels();
        let mut filled = Vec::new();
        for number in self.own(&windows) {
            let window = self.plan.window(number);
            let mut waits = Vec::new();
            for from in 0..self.plan.extents.len() {
                if from != self.me() && self.plan.has_part(from, &window) {
                    waits.push(parcels.receive(from, self.word()?)?);
                }
            }
            filled.push((number, waits));
        }
        let (mut next, mut sends) = (windows.start, Vec::new());
        // The first rank begins to write at once, and the others fill windows further ahead, so
        // that one rank writes while the rest copy.
        let ahead = match self.rank().waiter.is_crowded() {
            true => windows.end - windows.start,
            false => self.plan.aggregators as u64 + u64::from(self.me() > 0),
        };
        for (number, waits) in filled {
            let until = (number + ahead).min(windows.end);
            self.fill(&parcels, next..until, &mut sends)?;
            next = next.max(until);
            for wait in waits {
                wait.await?;
            }
            let window = self.plan.window(number);
            if failed.is_ok() {
                let written = self.access.move_at(window.start, &self.slot(number));
                *failed = written.map(drop);
            }
        }
        self.fill(&parcels, next..windows.end, &mut sends)?;
        for send in sends {
            send.await?;
        }
        Ok(())
    }

    /// Copies this rank's data into windows, and reports that to the windows' aggregators.
    fn fill<'b>(
        &self,
        parcels: &Parcels<'b>,
        windows: Range<u64>,
        sends: &mut Vec<Parcel<'b>>,
    ) -> Result<()> {
        for number in windows {
            let window = self.plan.window(number);
            if !self.plan.has_part(self.me(), &window) {
                continue;
            }
            self.copy(&window, &self.slot(number));
            let aggregator = self.plan.aggregator(number);
            if aggregator != self.me() {
                let word = self.word()?;
                word.unpack(0, &[0; WORD]);
                sends.push(parcels.send(aggregator, word)?);
            }
        }
        Ok(())
    }

    /// Reads the windows whose aggregator is this rank, and copies its data out of all. Returns the
    /// end of the file if these reads have reached it, otherwise `u64::MAX`.
    async fn read(&self, windows: Range<u64>, failed: &mut Result<()>) -> Result<u64> {
        let parcels = self.parcels();
        let mut ready = Vec::new();
        for number in windows.clone() {
            let window = self.plan.window(number);
            let from = self.plan.aggregator(number);
            ready.push(
                match from != self.me() && self.plan.has_part(self.me(), &window) {
                    true => {
                        let word = self.word()?;
                        Some((word.clone(), parcels.receive(from, word)?))
                    }
                    false => None,
                },
            );
        }
        let (mut own, mut counts) = (self.own(&windows).into_iter(), Vec::new());
        let (mut sends, mut end) = (Vec::new(), u64::MAX);
        // Others read their windows while this rank reads its next one. If ranks share a core, a
        // wait costs more than the loss of data from the cache.
        let ahead = match self.rank().waiter.is_crowded() {
            true => windows.end - windows.start,
            false => self.plan.aggregators as u64,
        };
        let mut next = own.next();
        for (number, ready) in windows.zip(ready) {
            while let Some(mine) = next.filter(|mine| *mine <= number + ahead) {
                let count = self.read_window(mine, failed);
                self.report(&parcels, mine, count, &mut sends)?;
                counts.push((mine, count));
                next = own.next();
            }
            let count = match ready {
                Some((word, parcel)) => {
                    parcel.await?;
                    let mut bytes = [0; WORD];
                    word.pack(0, &mut bytes);
                    u64::from_ne_bytes(bytes)
                }
                None => match counts.iter().find(|(mine, _)| *mine == number) {
                    Some((_, count)) => *count,
                    None => continue,
                },
            };
            if count == FAILED {
                continue;
            }
            let window = self.plan.window(number);
            let present = window.start..(window.start + count).min(window.end);
            if present.end < window.end {
                end = end.min(present.end);
            }
            let slot = self.slot(number);
            self.copy(&present, &slot.slice(0, count as usize));
        }
        for send in sends {
            send.await?;
        }
        Ok(end)
    }

    /// Reads a window. Returns the number of its bytes before the end of the file, or `FAILED`.
    fn read_window(&self, number: u64, failed: &mut Result<()>) -> u64 {
        if failed.is_err() {
            return FAILED;
        }
        let window = self.plan.window(number);
        match self.access.move_at(window.start, &self.slot(number)) {
            Ok(count) => count,
            Err(error) => {
                *failed = Err(error);
                FAILED
            }
        }
    }

    /// Reports to the ranks with bytes in a window that it has been read.
    fn report<'b>(
        &self,
        parcels: &Parcels<'b>,
        number: u64,
        count: u64,
        sends: &mut Vec<Parcel<'b>>,
    ) -> Result<()> {
        let window = self.plan.window(number);
        for to in 0..self.plan.extents.len() {
            if to != self.me() && self.plan.has_part(to, &window) {
                let word = self.word()?;
                word.unpack(0, &count.to_ne_bytes());
                sends.push(parcels.send(to, word)?);
            }
        }
        Ok(())
    }

    /// Copies this rank's bytes of a part of the file between its memory and the stage.
    fn copy(&self, part: &Range<u64>, slot: &Buffer) {
        let view = &self.access.view.bytes;
        let len = self.memory().len() as u64;
        let at = |offset| {
            let before = view.bytes_before(offset);
            before.saturating_sub(self.position).min(len) as usize
        };
        let (at, end) = (at(part.start), at(part.end));
        if at == end {
            return;
        }
        let (data, position) = (self.memory().slice(at, end - at), self.position + at as u64);
        if let Some(strided) = view.strided()
            && self.copy_strided(&strided, position, &data, part.start, slot)
        {
            return;
        }
        let mut done = 0;
        let _ = view.runs(position, data.len() as u64, &mut |offset, len| {
            let place = slot.slice((offset - part.start) as usize, len as usize);
            let run = data.slice(done, len as usize);
            done += match self.access.direction {
                Direction::Write => run.copy_to(&place),
                Direction::Read => place.copy_to(&run),
            };
            ControlFlow::Continue(())
        });
    }

    /// Copies runs of one length. Returns false if the user's memory has gaps.
    fn copy_strided(
        &self,
        strided: &Strided,
        position: u64,
        data: &Buffer,
        start: u64,
        slot: &Buffer,
    ) -> bool {
        let copied = match self.access.direction {
            Direction::Write => data.with_dense(0, data.len(), |data| {
                slot.with_dense_mut(0, slot.len(), |slot| {
                    strided.spread(position, data, start, slot);
                })
            }),
            Direction::Read => data.with_dense_mut(0, data.len(), |data| {
                slot.with_dense(0, slot.len(), |slot| {
                    strided.collect(position, data, start, slot);
                })
            }),
        };
        copied.flatten().is_some()
    }
}

impl FileRound {
    /// The stage of the file; the first access through a stage makes it. `None`: the ranks cannot
    /// share memory.
    pub(super) async fn stage(&self) -> Result<Option<Buffer>> {
        if let Some(known) = self.file.stage.get() {
            return Ok(known.as_ref().map(SharedMemory::buffer));
        }
        let len = stage_len(self.file.core.size());
        let mut memory = self.is_first().then(|| SharedMemory::new(len).ok());
        let name = memory.iter().flatten().find_map(SharedMemory::name);
        let words = self.words_of_first(name.map_or([0; 3], |name| {
            [u64::from(name.process), name.descriptor as u64, name.token]
        }));
        let [process, descriptor, token] = words.await?;
        let name = channel::SharedName {
            process: process as u32,
            descriptor: descriptor as i32,
            token,
        };
        let opened = memory.get_or_insert_with(|| SharedMemory::open(name, len).ok());
        let all = self.words(u64::from(opened.is_some())).await?;
        let is_there = all.iter().all(|word| *word == 1);
        let mut kept = memory.flatten().filter(|_| is_there);
        if let Some(memory) = &mut kept {
            memory.close();
        }
        let kept = self.file.stage.get_or_init(|| kept);
        Ok(kept.as_ref().map(SharedMemory::buffer))
    }
}

impl Rank {
    /// True if collective accesses may use a stage. On a modelled machine messages have a cost, but
    /// copies in shared memory have none, so they may not.
    pub(super) fn has_stages(&self) -> bool {
        let mut state = self.lock();
        state.objects.files.are_staged_in_model
            || state.engine.router.machine().abilities().maps_memory
    }
}
