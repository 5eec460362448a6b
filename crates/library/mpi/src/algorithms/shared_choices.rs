//! Choices that the ranks of one process share.
//!
//! The costs of n ranks take a time of the order of n to compute, and all n ranks of a simulation
//! would compute them. A choice by costs depends on its case alone, so it is computed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::case::Case;
use super::names::{Algorithm, Collective};

/// The greatest number of stored choices. Beyond it all are computed anew.
const MOST: usize = 1 << 12;

/// Choices of algorithms by costs, which clones of the value share.
#[derive(Clone, Default)]
pub struct SharedChoices(Arc<Mutex<HashMap<(Collective, Case), Algorithm>>>);

impl SharedChoices {
    /// The stored choice for a case, or that of `choose`, which is then stored.
    pub(super) fn get_or(
        &self,
        of: (Collective, Case),
        choose: impl FnOnce() -> Option<Algorithm>,
    ) -> Option<Algorithm> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(choice) = known().get(&of) {
            return Some(*choice);
        }
        let choice = choose()?;
        let mut known = known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(of, choice);
        Some(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_computed_once_and_their_number_is_bounded() {
        let choices = SharedChoices::default();
        let get = |bytes, choice: Option<Algorithm>| {
            let of = (Collective::Bcast, Case::usual(bytes, 4));
            choices.clone().get_or(of, || choice)
        };
        assert_eq!(get(8, None), None);
        assert_eq!(get(8, Some(Algorithm::Chain)), Some(Algorithm::Chain));
        assert_eq!(get(8, Some(Algorithm::Linear)), Some(Algorithm::Chain));
        for bytes in 0..3 * MOST {
            get(bytes, Some(Algorithm::Ring));
            assert!(choices.0.lock().unwrap().len() <= MOST);
        }
    }
}
