//! The packets that completions have reported and that are not consumed, where only a completion
//! tells that a packet is whole.
//!
//! Completions of several rails come in any order, and a packet that was written again is reported
//! again. So the receiver keeps a set of numbers, not a count. Numbers that are known, or consumed
//! already, change nothing.

use super::put::NUMBER_BITS;

/// A set of the numbers from the last consumed packet to the end of the ring behind it.
pub(super) struct Known {
    /// One place for each number, by the number's remainder.
    places: Box<[bool]>,
    /// The largest distance of a number from the last consumed packet.
    most: u64,
}

impl Known {
    /// The set for a ring with `slots` slots.
    pub(super) fn new(slots: usize) -> Known {
        Known {
            places: vec![false; (slots + 1).next_power_of_two()].into(),
            most: slots as u64,
        }
    }

    fn place(&mut self, number: u64) -> &mut bool {
        let mask = self.places.len() as u64 - 1;
        &mut self.places[(number & mask) as usize]
    }

    /// A completion has reported the packet with the lower bits `lower`; `consumed` is the last
    /// consumed one. False: no such packet can come.
    pub(super) fn insert(&mut self, lower: u32, consumed: u64) -> bool {
        let ahead = lower.wrapping_sub(consumed as u32) & NUMBER_BITS;
        if ahead == 0 || ahead > NUMBER_BITS / 2 {
            // Consumed already.
            return true;
        }
        let number = consumed + u64::from(ahead);
        let fits = u64::from(ahead) <= self.most;
        if fits {
            *self.place(number) = true;
        }
        fits
    }

    /// Packet `number` has been reported.
    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        let mask = self.places.len() as u64 - 1;
        self.places[(number & mask) as usize]
    }

    /// Packet `number` has been consumed.
    #[inline]
    pub(super) fn remove(&mut self, number: u64) {
        *self.place(number) = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_any_order_and_more_than_once() {
        let mut known = Known::new(4);
        let base = u64::from(NUMBER_BITS) - 1;
        let lower = |number: u64| number as u32 & NUMBER_BITS;
        for number in [base + 3, base + 1, base + 3] {
            assert!(known.insert(lower(number), base));
        }
        assert!(known.contains(base + 1) && !known.contains(base + 2));
        known.remove(base + 1);
        assert!(known.insert(lower(base + 1), base + 1), "consumed already");
        assert!(!known.contains(base + 1));
        assert!(!known.insert(lower(base + 6), base + 1), "beyond the ring");
    }
}
