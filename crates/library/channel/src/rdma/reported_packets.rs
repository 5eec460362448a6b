//! The packets that completions have reported and that are not consumed, where only a completion
//! shows that a packet is complete.
//!
//! Completions of several rails come in any order, and a packet that was written again is reported
//! again. So the receiver keeps a set of numbers, not a count. Numbers that are known, or consumed
//! already, change nothing.

use super::immediate::NUMBER_BITS;

/// The packets that completions have reported, among those that fit into the ring after the last
/// consumed packet.
pub(super) struct ReportedPackets {
    /// The size class of each reported packet, by the packet's number modulo the length of this
    /// table.
    places: Box<[Option<u8>]>,
    /// The largest difference between a packet's number and the last consumed one.
    most: u64,
}

impl ReportedPackets {
    /// An empty set for the packets of a ring with `slots` slots.
    pub(super) fn new(slots: usize) -> ReportedPackets {
        ReportedPackets {
            places: vec![None; (slots + 1).next_power_of_two()].into(),
            most: slots as u64,
        }
    }

    fn place(&mut self, number: u64) -> &mut Option<u8> {
        let mask = self.places.len() as u64 - 1;
        &mut self.places[(number & mask) as usize]
    }

    /// Records that a completion has reported the packet with the lower bits `lower` in a slot of
    /// size class `class`; `consumed` is the last consumed packet. False: no such packet is
    /// possible.
    pub(super) fn insert(&mut self, class: usize, lower: u32, consumed: u64) -> bool {
        let ahead = lower.wrapping_sub(consumed as u32) & NUMBER_BITS;
        if ahead == 0 || ahead > NUMBER_BITS / 2 {
            // Consumed already.
            return true;
        }
        let number = consumed + u64::from(ahead);
        let fits = u64::from(ahead) <= self.most;
        if fits {
            *self.place(number) = Some(class as u8);
        }
        fits
    }

    /// The size class of packet `number`, if the packet has been reported.
    #[inline]
    pub(super) fn class(&self, number: u64) -> Option<usize> {
        let mask = self.places.len() as u64 - 1;
        self.places[(number & mask) as usize].map(usize::from)
    }

    /// Removes packet `number`, which has been consumed.
    #[inline]
    pub(super) fn remove(&mut self, number: u64) {
        *self.place(number) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_any_order_and_more_than_once() {
        let mut known = ReportedPackets::new(4);
        let base = u64::from(NUMBER_BITS) - 1;
        let lower = |number: u64| number as u32 & NUMBER_BITS;
        for number in [base + 3, base + 1, base + 3] {
            assert!(known.insert(2, lower(number), base));
        }
        assert_eq!(
            (known.class(base + 1), known.class(base + 2)),
            (Some(2), None)
        );
        known.remove(base + 1);
        assert!(
            known.insert(0, lower(base + 1), base + 1),
            "consumed already"
        );
        assert_eq!(known.class(base + 1), None);
        assert!(
            !known.insert(0, lower(base + 6), base + 1),
            "beyond the ring"
        );
    }
}
