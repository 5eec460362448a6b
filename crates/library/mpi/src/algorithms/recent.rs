//! A cache of recent choices of algorithms. The costs of many ranks take microseconds to compute,
//! and programs repeat their calls.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Algorithm, Case, Collective};

/// The number of choices of a collective that are stored at once.
const SLOTS: usize = 16;

/// The recent choices of algorithms of a communicator. An entry has all facts on which the choice
/// depends, so a wrong one is never used; calls that share a slot replace each other's entry.
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
    /// The stored choice for a case, or that of `choose`, which is then stored. `part` is a number
    /// below 4 that separates the cases of the whole communicator from those of its subsets. All
    /// cases of one part have the same distribution over hosts.
    pub(crate) fn get_or(
        &self,
        (collective, part): (Collective, u64),
        case: &Case,
        choose: impl FnOnce() -> Algorithm,
    ) -> Algorithm {
        let flags = u64::from(case.commutative) | u64::from(case.even) << 1;
        // The lowest byte has the number of the algorithm plus one, which is never 0.
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
