//! Zero copy between a buffer of this rank and the memory of a peer on this host. A transfer is
//! complete when its call returns.
//!
//! Invariant: a copy touches memory of the peer only where the peer's own table exposes it.

use std::ops::Range;

use datatype::Buffer;

use super::exposures::{self, Exposures, Found, Memory, Table};
use super::single_copy::{self, Source};
use super::{HERE, Shm};
use crate::run_list::{LEAST_RUN, RunList};
use crate::zero_copy::{BEYOND, Origin};
use crate::{End, Error, Exposed, Exposure, Family, RemoteKey, Result, Token, Transfer, ZeroCopy};

/// Error text: a peer or caller used a key of memory that is not, or no longer, exposed.
const NOT_EXPOSED: &str = "a key of memory that is not exposed";

/// Error text: a peer exposes memory by a list of runs that is none.
const NO_LIST: &str = "a list of runs that is not what it exposes";

/// Longest intermediate buffer for a copy between the peer and noncontiguous memory, in bytes.
const UNPACK_BYTES: usize = 64 << 10;

impl ZeroCopy for Shm {
    fn expose(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        family: Family,
    ) -> Result<Option<Exposure>> {
        let dense = buffer.as_dense().filter(|(_, whole)| len <= *whole);
        let runs = match dense {
            None if (exposed, family) == (Exposed::ToRead, Family::Messages) => {
                RunList::of(buffer, len, len / LEAST_RUN)
            }
            _ => None,
        };
        let memory = match (dense, &runs) {
            (Some((address, _)), _) => Memory::Run(address),
            (None, Some(list)) => Memory::Runs(list),
            (None, None) => return Ok(None),
        };
        let table = self.segment.exposed(self.place);
        let number = (self.exposures).open(table, (memory, len), exposed, family);
        Ok(number.map(|number| {
            let key = RemoteKey::new(number, len, &[]);
            Exposure {
                _runs: runs,
                ..Exposure::new(buffer, len, exposed, key, Origin::Shm)
            }
        }))
    }

    fn prepare(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        let exposure = Exposure::new(buffer, len, exposed, RemoteKey::NONE, Origin::Shm);
        Ok(Some(exposure))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        if exposure.is_held() {
            let table = self.segment.exposed(self.place);
            self.exposures.close(table, exposure.key.address);
        }
        Ok(())
    }

    fn read(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        _token: Token,
    ) -> Result<Transfer> {
        to.check(peer, &range)?;
        let read = self.read_located(peer, from, &range, to)?;
        self.check_exposed(peer, from)?;
        if read == Transfer::Refused && !self.single_copy_works(peer) {
            let preference = self.preference(peer, End::Receiver);
            preference.inspect(|preference| preference.set_readable(false));
        }
        Ok(read)
    }

    fn write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        _token: Token,
    ) -> Result<Transfer> {
        from.check(peer, &range)?;
        let (found, offset) = self.locate(peer, to, &range, Exposed::ToWrite)?;
        let address = found.address.wrapping_add(offset as u64);
        let written = self.copy_out(peer, address, &from.buffer.slice(range.start, range.len()))?;
        self.check_exposed(peer, to)?;
        Ok(written)
    }
}

impl Shm {
    /// The memory that `key` names, from the peer's own table, and the offset in it of bytes
    /// `range` of the named bytes.
    ///
    /// # Errors
    /// The peer does not expose that memory for `access`, or exposes less of it.
    fn locate(
        &self,
        peer: usize,
        key: &RemoteKey,
        range: &Range<usize>,
        access: Exposed,
    ) -> Result<(Found, usize)> {
        let part = key.part_for(peer, range)?;
        let found = exposures::find(self.exposed_by(peer), key.address);
        let grants = |found: &Found| {
            // Several runs are only ever read.
            found.exposed.grants(access) && (found.runs == 0 || access == Exposed::ToRead)
        };
        let Some(found) = found.filter(grants) else {
            return Err(Error::broken(peer, NOT_EXPOSED));
        };
        match key.end().is_some_and(|end| end <= found.len) {
            true => Ok((found, part.offset())),
            false => Err(Error::broken(peer, BEYOND)),
        }
    }

    /// Reads bytes `range` of the memory that `key` names into `to`, at equal offsets.
    fn read_located(
        &mut self,
        peer: usize,
        key: &RemoteKey,
        range: &Range<usize>,
        to: &Exposure,
    ) -> Result<Transfer> {
        let (found, offset) = self.locate(peer, key, range, Exposed::ToRead)?;
        let to = to.buffer.slice(range.start, range.len());
        let (copy, copied) = (found.copy.0, found.copy.1 as usize);
        let from = |rest| {
            let whole = Source { rest, copy, copied };
            whole.behind(offset)
        };
        // The owner's copy is one run, also of a message in several.
        if found.runs == 0 || copied >= offset + range.len() {
            let run = single_copy::Memory::Run(found.address);
            return self.copy_in(peer, from(run), &to);
        }
        let listed = self.list_runs(peer, key, &found)?;
        let latest = std::mem::take(&mut self.latest_runs);
        let read = match latest.of(peer, key.address) {
            Some(runs) => self.copy_in(peer, from(single_copy::Memory::Runs(runs, 0)), &to),
            None => Ok(listed),
        };
        self.latest_runs = latest;
        read
    }

    /// Copies the list of the runs of a peer's memory to this rank and checks it, unless it is the
    /// list that was copied last.
    ///
    /// # Errors
    /// The memory is not exposed any more, or the list is not one of that memory.
    fn list_runs(&mut self, peer: usize, key: &RemoteKey, found: &Found) -> Result<Transfer> {
        if self.latest_runs.of(peer, key.address).is_some() {
            return Ok(Transfer::Done);
        }
        let number = key.address;
        let place = self.local.of(peer).expect(HERE);
        match exposures::short_list(self.segment.exposed(place), number, found.runs) {
            Some(list) => self.latest_runs.copy_from(list),
            None => {
                let Some(room) = self.latest_runs.room(found.runs) else {
                    return Err(Error::broken(peer, NO_LIST));
                };
                let (board, list) = (self.segment.board(place), Source::run(found.address));
                let read = self.single_copy.read(peer, board, list, room)?;
                if read != Transfer::Done {
                    return Ok(read);
                }
            }
        }
        self.check_exposed(peer, key)?;
        match self.latest_runs.take_copy(peer, number, found.len) {
            true => Ok(Transfer::Done),
            false => Err(Error::broken(peer, NO_LIST)),
        }
    }

    /// Checks that the exposure has lasted until now, so that the copied bytes belonged to it.
    fn check_exposed(&self, peer: usize, key: &RemoteKey) -> Result<()> {
        match exposures::is_exposed(self.exposed_by(peer), key.address) {
            true => Ok(()),
            false => Err(Error::broken(peer, NOT_EXPOSED)),
        }
    }

    /// Records that the first `copied` bytes of an exposure of this rank lie in a copy that begins
    /// at `copy`. False: its reader has claimed them.
    pub(crate) fn advance_copy(&self, exposure: &Exposure, copy: usize, copied: usize) -> bool {
        let table = self.segment.exposed(self.place);
        Exposures::advance(table, exposure.key.address, copy, copied)
    }

    /// True if the reader of an exposure of this rank has claimed what was not copied.
    pub(crate) fn is_claimed(&self, exposure: &Exposure) -> bool {
        Exposures::is_claimed(self.segment.exposed(self.place), exposure.key.address)
    }

    /// Claims what `peer` has not copied of the memory that `key` names.
    ///
    /// # Errors
    /// The peer does not expose that memory, or this rank has claimed it before.
    pub(crate) fn claim(&self, peer: usize, key: &RemoteKey) -> Result<()> {
        match exposures::claim(self.exposed_by(peer), key.address) {
            true => Ok(()),
            false => Err(Error::broken(peer, NOT_EXPOSED)),
        }
    }

    fn exposed_by(&self, peer: usize) -> &Table {
        self.segment.exposed(self.local.of(peer).expect(HERE))
    }

    /// Copies bytes of the peer, from the start of `from` on, until `to` is full.
    fn copy_in(&mut self, peer: usize, from: Source, to: &Buffer) -> Result<Transfer> {
        let len = to.len();
        let mut copy = |position: usize, room: &mut [u8]| {
            let board = self.segment.board(self.local.of(peer).expect(HERE));
            self.single_copy
                .read(peer, board, from.behind(position), room)
        };
        if let Some(answer) = to.with_dense_mut(0, len, |room| copy(0, room)) {
            return answer;
        }
        let mut room = vec![0; len.min(UNPACK_BYTES)];
        let mut done = 0;
        while done < len {
            let piece = room.len().min(len - done);
            let copied = copy(done, &mut room[..piece])?;
            if copied != Transfer::Done {
                return Ok(copied);
            }
            done += to.unpack(done, &room[..piece]);
        }
        Ok(Transfer::Done)
    }

    /// Copies all bytes of `from` into the peer's memory, from address `to` on.
    fn copy_out(&mut self, peer: usize, to: u64, from: &Buffer) -> Result<Transfer> {
        let len = from.len();
        let mut copy = |position: usize, bytes: &[u8]| {
            let board = self.segment.board(self.local.of(peer).expect(HERE));
            let address = to.wrapping_add(position as u64);
            self.single_copy.write(peer, board, address, bytes)
        };
        if let Some(answer) = from.with_dense(0, len, |bytes| copy(0, bytes)) {
            return answer;
        }
        let mut room = vec![0; len.min(UNPACK_BYTES)];
        let mut done = 0;
        while done < len {
            let piece = room.len().min(len - done);
            from.pack(done, &mut room[..piece]);
            let copied = copy(done, &room[..piece])?;
            if copied != Transfer::Done {
                return Ok(copied);
            }
            done += piece;
        }
        Ok(Transfer::Done)
    }
}
