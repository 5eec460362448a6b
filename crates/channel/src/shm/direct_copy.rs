//! Copies between a buffer of this rank and the memory of a peer on this host, at once.

use datatype::Buffer;

use super::{HERE, Shm};
use crate::{RemoteKey, Result, Router, Transfer};

/// Bytes of the intermediate buffer of a copy from or to scattered memory.
const UNPACK_BYTES: usize = 64 << 10;

impl Shm {
    /// Copies the peer's bytes from position `at` on into the whole of `to`.
    pub(super) fn copy_in(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        at: usize,
        to: &Buffer,
    ) -> Result<Transfer> {
        let len = to.len();
        let mut copy = |position: usize, room: &mut [u8]| {
            let board = self.segment.board(self.local.of(peer).expect(HERE));
            let address = from.address.wrapping_add((at + position) as u64);
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

    /// Copies the whole of `from` into the peer's memory, from its position `at` on.
    pub(super) fn copy_out(
        &mut self,
        peer: usize,
        to: &RemoteKey,
        at: usize,
        from: &Buffer,
    ) -> Result<Transfer> {
        let len = from.len();
        let mut copy = |position: usize, bytes: &[u8]| {
            let board = self.segment.board(self.local.of(peer).expect(HERE));
            let address = to.address.wrapping_add((at + position) as u64);
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

/// Copies at once, between ranks that share memory. The keys are those of
/// [`direct_key`](Router::direct_key).
impl Router {
    /// This rank can read and write the memory of each of these world ranks, all of which have
    /// joined the job.
    pub fn copies_directly(&mut self, mut group: impl Iterator<Item = usize>) -> bool {
        let rank = self.rank;
        let Some(shm) = &mut self.shm else {
            return false;
        };
        group.all(|peer| peer == rank || shm.reaches(peer) && shm.single_copy_works(peer))
    }

    /// The name of a buffer's memory for peers of this host. `None`: it is not one run of bytes.
    pub fn direct_key(&self, buffer: &Buffer) -> Option<RemoteKey> {
        let (address, _) = buffer.as_dense()?;
        Some(RemoteKey::new(address as u64, &[]))
    }

    /// Copies the peer's bytes from position `at` on into the whole of `to`.
    pub fn copy_in(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        at: usize,
        to: &Buffer,
    ) -> Result<Transfer> {
        match &mut self.shm {
            Some(shm) => shm.copy_in(peer, from, at, to),
            None => Ok(Transfer::Refused),
        }
    }

    /// Copies the whole of `from` into the peer's memory, from its position `at` on.
    pub fn copy_out(
        &mut self,
        peer: usize,
        to: &RemoteKey,
        at: usize,
        from: &Buffer,
    ) -> Result<Transfer> {
        match &mut self.shm {
            Some(shm) => shm.copy_out(peer, to, at, from),
            None => Ok(Transfer::Refused),
        }
    }
}
