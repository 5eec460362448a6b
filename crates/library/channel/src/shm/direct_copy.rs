//! Copies between a buffer of this rank and the memory of a peer on this host, at once.
//!
//! Invariant: a copy touches memory of the peer only where the peer's own table exposes it.

use std::ops::Range;

use datatype::Buffer;

use super::exposures::{self, Table};
use super::{HERE, Shm};
use crate::zero_copy::{BEYOND, Origin};
use crate::{Error, Exposed, Exposure, Family, RemoteKey, Result, Token, Transfer, ZeroCopy};

/// The fault of a peer or caller whose key names nothing, or has outlived its exposure.
const NOT_EXPOSED: &str = "a key of memory that is not exposed";

/// Bytes of the intermediate buffer of a copy from or to scattered memory.
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
        let run = buffer.as_dense().filter(|(_, whole)| len <= *whole);
        let Some((address, _)) = run else {
            return Ok(None);
        };
        let table = self.segment.exposed(self.place);
        let number = self.exposures.open(table, (address, len), exposed, family);
        Ok(number.map(|number| {
            let key = RemoteKey::new(number, len, &[]);
            Exposure::new(buffer, len, exposed, key, Origin::Shm)
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
        let address = self.locate(peer, from, &range, Exposed::ToRead)?;
        let read = self.copy_in(peer, address, &to.buffer.slice(range.start, range.len()))?;
        self.check_exposed(peer, from)?;
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
        let address = self.locate(peer, to, &range, Exposed::ToWrite)?;
        let written = self.copy_out(peer, address, &from.buffer.slice(range.start, range.len()))?;
        self.check_exposed(peer, to)?;
        Ok(written)
    }
}

impl Shm {
    /// The address of bytes `range` of the memory that a key names, by the table of its owner.
    ///
    /// # Errors
    /// The peer does not expose that memory for this access, or not as much of it.
    fn locate(
        &self,
        peer: usize,
        key: &RemoteKey,
        range: &Range<usize>,
        access: Exposed,
    ) -> Result<u64> {
        let part = key.part_for(peer, range)?;
        let found = exposures::find(self.exposed_by(peer), key.address);
        let Some(found) = found.filter(|found| found.exposed.grants(access)) else {
            return Err(Error::broken(peer, NOT_EXPOSED));
        };
        match key.end().is_some_and(|end| end <= found.len) {
            true => Ok(found.address.wrapping_add(part.offset() as u64)),
            false => Err(Error::broken(peer, BEYOND)),
        }
    }

    /// The exposure has lasted until now, so the bytes that were moved were its.
    fn check_exposed(&self, peer: usize, key: &RemoteKey) -> Result<()> {
        match exposures::is_exposed(self.exposed_by(peer), key.address) {
            true => Ok(()),
            false => Err(Error::broken(peer, NOT_EXPOSED)),
        }
    }

    fn exposed_by(&self, peer: usize) -> &Table {
        self.segment.exposed(self.local.of(peer).expect(HERE))
    }

    /// Copies the peer's bytes from this address on into the whole of `to`.
    fn copy_in(&mut self, peer: usize, from: u64, to: &Buffer) -> Result<Transfer> {
        let len = to.len();
        let mut copy = |position: usize, room: &mut [u8]| {
            let board = self.segment.board(self.local.of(peer).expect(HERE));
            let address = from.wrapping_add(position as u64);
            self.single_copy.read(peer, board, address, room)
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

    /// Copies the whole of `from` into the peer's memory, from this address on.
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
