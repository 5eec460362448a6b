//! The claim on exposed memory that its owner copies away while a reader may read it.
//!
//! The owner copies the bytes from the front, and records each step. A reader that is there claims
//! all that is not recorded: it reads the recorded bytes from the copy, and the others where they
//! are. Neither waits to find out whether the other is there. The owner may use the memory again
//! once all is recorded, or once the reader has reported the end of its reads.
//!
//! Invariants: the recorded bytes and the claimed ones are the whole exposure, and no byte is both;
//! what is recorded does not change after the claim; a claim of an earlier exposure of the entry
//! takes nothing.

use crate::sync::{AtomicU64, Ordering};

/// The state of a claim: the low half of the generation, whether the rest is claimed, and the
/// number of recorded bytes.
#[derive(Default)]
pub(crate) struct Claim(AtomicU64);

/// The bit of the low half that says that the rest is claimed.
const TAKEN: u32 = 1 << 31;
/// The longest memory of which a claim can keep account, in bytes.
pub(crate) const LONGEST: usize = (TAKEN - 1) as usize;

impl Claim {
    /// Begins a new exposure: nothing is recorded, and nothing is claimed. Only the owner calls
    /// this.
    pub(crate) fn open(&self, generation: u64) {
        self.0.store(generation << 32, Ordering::Release);
    }

    /// Records that the first `copied` bytes are in the copy, at most [`LONGEST`]. False: the
    /// reader has claimed the rest of what was recorded before. Only the owner calls this.
    pub(crate) fn advance(&self, copied: u32) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        // Release: a reader that claims the rest sees the bytes of the copy.
        seen as u32 & TAKEN == 0
            && (self.0)
                .compare_exchange(
                    seen,
                    seen >> 32 << 32 | u64::from(copied),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// True if a reader has claimed all bytes that are not recorded as copied.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) as u32 & TAKEN != 0
    }

    /// Claims the bytes that are not recorded, as the reader of the exposure with this generation.
    /// False: that exposure has ended, or the bytes are claimed already.
    pub(crate) fn take(&self, generation: u64) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen >> 32 != u64::from(generation as u32) || seen as u32 & TAKEN != 0 {
                return false;
            }
            let taken = seen | u64::from(TAKEN);
            match (self.0).compare_exchange_weak(seen, taken, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// The number of recorded bytes of the exposure with this generation, which is claimed. Zero if
    /// it is not.
    pub(crate) fn copied(&self, generation: u64) -> u32 {
        let seen = self.0.load(Ordering::Relaxed);
        let is_taken = seen as u32 & TAKEN != 0 && seen >> 32 == u64::from(generation as u32);
        if is_taken { seen as u32 & !TAKEN } else { 0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_and_what_is_claimed_are_the_whole() {
        let claim = Claim::default();
        claim.open(7);
        assert!(claim.advance(100) && claim.advance(300));
        assert!(!claim.is_taken() && claim.copied(7) == 0);
        assert!(claim.take(7) && claim.is_taken());
        assert_eq!(claim.copied(7), 300);
        assert!(!claim.advance(400) && !claim.take(7));
        assert_eq!(claim.copied(7), 300);
    }

    #[test]
    fn a_late_claim_takes_nothing_of_the_next_exposure() {
        let claim = Claim::default();
        claim.open(7);
        claim.open(8);
        assert!(!claim.take(7) && !claim.is_taken());
        assert!(claim.advance(LONGEST as u32) && claim.take(8));
        assert_eq!((claim.copied(7), claim.copied(8)), (0, LONGEST as u32));
        claim.open(u64::from(u32::MAX) + 9);
        assert!(claim.take(u64::from(u32::MAX) + 9) && claim.copied(8) == 0);
    }
}
