//! The copy that a sender makes of a message that its receiver may read meanwhile.
//!
//! Invariant: what the copy holds is recorded before more is copied, and nothing is copied after
//! the receiver's claim.

use datatype::{Buffer, Elements, Pool, Predefined};

/// The number of steps that only poll for the claim. A receiver that has arrived claims within the
/// time of a packet and a cache line back, and what was copied before is copied twice.
const FIRST_POLLS: u32 = 2;
/// The length of the first copied piece in bytes: short, because a receiver that claims early
/// copies these bytes again.
const FIRST_PIECE: usize = 4 << 10;
/// Length of the longest copied piece in bytes. Each piece takes a pass of progress.
const LONGEST_PIECE: usize = 16 << 10;

/// A sender's copy of a shared message, made in steps.
pub(super) struct CopyOut {
    len: usize,
    /// The number of steps that only poll, before the copy begins.
    polls: u32,
    /// Number of bytes that have been copied.
    copied: usize,
    /// The memory of the copy; `None` until something is copied.
    memory: Option<Elements>,
}

/// The state of a sender's copy after a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Goes,
    /// The receiver has claimed the rest, or there is no memory for a copy.
    Ends,
    /// Every byte of the message is copied.
    Copied,
}

impl CopyOut {
    /// The copy of a message of `len` bytes, of which nothing is copied yet.
    pub(super) fn of(len: usize) -> CopyOut {
        CopyOut {
            len,
            polls: FIRST_POLLS,
            copied: 0,
            memory: None,
        }
    }

    /// The length of the message in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The memory of the copied bytes. `None`: nothing is copied.
    pub(super) fn buffer(&self) -> Option<Buffer> {
        self.memory.as_ref().map(Elements::buffer)
    }

    /// Copies the next piece of `message`. `record` gets the address of the copy and the number of
    /// bytes in it; false: the receiver has claimed the bytes that were not recorded before.
    pub(super) fn step(
        &mut self,
        pool: &mut Pool,
        message: &Buffer,
        record: impl FnOnce(usize, usize) -> bool,
    ) -> Step {
        if self.polls > 0 {
            self.polls -= 1;
            return Step::Goes;
        }
        if self.memory.is_none() {
            // Without memory the send completes with its receive.
            self.memory = pool.elements(self.len, &Predefined::BYTE.into()).ok();
        }
        let Some(memory) = self.buffer() else {
            return Step::Ends;
        };
        let Some((address, _)) = memory.as_dense() else {
            return Step::Ends;
        };
        let start = self.copied;
        let piece = start.clamp(FIRST_PIECE, LONGEST_PIECE);
        let piece = piece.min(self.len - start);
        memory.with_dense_mut(start, piece, |room| message.pack(start, room));
        if !record(address, start + piece) {
            return Step::Ends;
        }
        self.copied += piece;
        match self.copied == self.len {
            true => Step::Copied,
            false => Step::Goes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 50_000;

    fn message(pool: &mut Pool) -> Buffer {
        let elements = pool.elements(LEN, &Predefined::BYTE.into()).unwrap();
        let buffer = elements.buffer();
        let bytes: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
        buffer.unpack(0, &bytes);
        buffer
    }

    #[test]
    fn a_message_that_nobody_claims_is_copied_whole() {
        let mut pool = Pool::default();
        let (message, mut copy) = (message(&mut pool), CopyOut::of(LEN));
        let mut recorded = Vec::new();
        let mut step = |copy: &mut CopyOut| {
            copy.step(&mut pool, &message, |_, copied| {
                recorded.push(copied);
                true
            })
        };
        while step(&mut copy) == Step::Goes {}
        assert_eq!(recorded, [4096, 8192, 16384, 32768, 49152, LEN]);
        let (mut sent, mut kept) = (vec![0; LEN], vec![1; LEN]);
        message.pack(0, &mut sent);
        copy.buffer().unwrap().pack(0, &mut kept);
        assert!(sent == kept && sent[300] == 49);
    }

    #[test]
    fn a_claim_ends_the_copy() {
        let mut pool = Pool::default();
        let (message, mut copy) = (message(&mut pool), CopyOut::of(LEN));
        let steps: Vec<Step> = (0..5)
            .map(|_| copy.step(&mut pool, &message, |_, copied| copied <= 8192))
            .collect();
        assert!(steps[..4].iter().all(|step| *step == Step::Goes));
        assert_eq!((&steps[4], copy.copied), (&Step::Ends, 8192));
    }
}
