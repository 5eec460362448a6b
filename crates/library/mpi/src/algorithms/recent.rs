//! The recent choices of a communicator: costs of many ranks take microseconds to compute, and
//! programs repeat their calls.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Algorithm, Case, Collective};

/// Sizes of a collective that are kept at once.
const SLOTS: usize = 16;

/// The recent choices of a communicator. An entry has all that the choice depends on, so a wrong
/// one is never taken; entries of calls that share a slot replace each other.
#[derive(Debug)]
pub(crate) struct RecentChoices {
    entries: Box<[AtomicU64]>,
}

impl Default for RecentChoices {
    fn default() -> RecentChoices {
        let entries = (0..Collective::ALL.len() * SLOTS).map(|_| AtomicU64::new(0));
        RecentChoices {
            entries: entries.collect(),
        }
    }
}

impl RecentChoices {
    /// The choice for a case of this communicator. `part`: a number below 4 that tells the cases of
    /// the whole communicator from those of its parts, each of which has one spread.
    pub(crate) fn get_or(
        &self,
        (collective, part): (Collective, u64),
        case: &Case,
        choose: impl FnOnce() -> Algorithm,
    ) -> Algorithm {
        let flags = u64::from(case.commutative) | u64::from(case.even) << 1;
        // The lowest byte is that of the algorithm, which is never 0.
        let key = (case.bytes as u64) << 12 | part << 10 | flags << 8;
        let slot =
            (u64::from(case.bytes.checked_ilog2().unwrap_or(0)) ^ part << 2) as usize % SLOTS;
        let entry = &self.entries[collective as usize * SLOTS + slot];
        let known = entry.load(Ordering::Relaxed);
        if known & !0xff == key
            && let Some(&algorithm) = Algorithm::ALL.get((known as u8).wrapping_sub(1) as usize)
        {
            return algorithm;
        }
        let algorithm = choose();
        entry.store(key | (algorithm as u64 + 1), Ordering::Relaxed);
        algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_made_once_for_each_case() {
        let recent = RecentChoices::default();
        let case = |bytes| Case::usual(bytes, 4);
        let get = |part, bytes, choice: Option<Algorithm>| {
            let of = (Collective::Bcast, part);
            recent.get_or(of, &case(bytes), || choice.expect("a choice that is known"))
        };
        assert_eq!(get(0, 0, Some(Algorithm::Chain)), Algorithm::Chain);
        assert_eq!(get(0, 0, None), Algorithm::Chain);
        assert_eq!(get(1, 0, Some(Algorithm::Linear)), Algorithm::Linear);
        assert_eq!(get(0, 100, Some(Algorithm::Shared)), Algorithm::Shared);
        // Sizes of one class replace each other.
        assert_eq!(get(0, 101, Some(Algorithm::Binomial)), Algorithm::Binomial);
        assert_eq!(get(0, 100, Some(Algorithm::Ring)), Algorithm::Ring);
        assert_eq!(get(0, 0, None), Algorithm::Chain);
        assert_eq!(get(1, 0, None), Algorithm::Linear);
    }
}
