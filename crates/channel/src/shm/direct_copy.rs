//! Copies between a buffer of this rank and the memory of a peer on this host, at once.

use datatype::Buffer;

use super::{HERE, Shm};
use crate::{Result, Transfer};

/// Bytes of the intermediate buffer of a copy from or to scattered memory.
const UNPACK_BYTES: usize = 64 << 10;

impl Shm {
    /// Copies the peer's bytes from this address on into the whole of `to`.
    pub(super) fn copy_in(&mut self, peer: usize, from: u64, to: &Buffer) -> Result<Transfer> {
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
    pub(super) fn copy_out(&mut self, peer: usize, to: u64, from: &Buffer) -> Result<Transfer> {
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
