//! The sends, receives and computing of a rank that are in progress or complete.

use crate::slab::Slab;

/// The operations that are bits of words beside each other. Further ones, which few ranks have at
/// one time, lie elsewhere.
const NEAR: u32 = u64::BITS;

/// The operations of a rank by number: for each whether it is complete.
#[derive(Debug, Default)]
pub(super) struct Operations {
    used: u64,
    done: u64,
    further: Option<Box<Slab<bool>>>,
}

impl Operations {
    /// Adds an operation that is not complete; returns its number.
    pub(super) fn begin(&mut self) -> u32 {
        let number = self.used.trailing_ones();
        if number < NEAR {
            self.used |= 1 << number;
            self.done &= !(1 << number);
            return number;
        }
        NEAR + self.further.get_or_insert_default().insert(false)
    }

    pub(super) fn complete(&mut self, number: u32) {
        match number.checked_sub(NEAR) {
            None => self.done |= 1 << number,
            Some(further) => self.further.get_or_insert_default()[further] = true,
        }
    }

    pub(super) fn is_complete(&self, number: u32) -> bool {
        match (number.checked_sub(NEAR), &self.further) {
            (None, _) => self.done & 1 << number != 0,
            (Some(number), Some(further)) => further[number],
            (Some(_), None) => false,
        }
    }

    /// Forgets an operation, whose number may then be used again.
    pub(super) fn forget(&mut self, number: u32) {
        match (number.checked_sub(NEAR), &mut self.further) {
            (None, _) => self.used &= !(1 << number),
            (Some(number), Some(further)) => further.remove(number),
            (Some(_), None) => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_complete_until_it_is_forgotten() {
        let mut all = Operations::default();
        let numbers: Vec<u32> = (0..70).map(|_| all.begin()).collect();
        assert!(
            numbers
                .iter()
                .enumerate()
                .all(|(at, number)| at == *number as usize)
        );
        for number in [3, 63, 64, 69] {
            assert!(!all.is_complete(number));
            all.complete(number);
            assert!(all.is_complete(number) && !all.is_complete(number - 1));
            all.forget(number);
            assert_eq!(all.begin(), number);
            assert!(!all.is_complete(number));
        }
    }
}
