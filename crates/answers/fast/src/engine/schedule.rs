//! Events in the order of their times. Those of one time come in the order in which they were
//! added.
//!
//! No event is added before the time of the last one that was taken, so a radix heap has them: an
//! event lies in the bucket of the highest bit in which its time differs from that time. An event
//! moves to lower buckets only, many at once, in their order, where a binary heap of as many events
//! reads memory here and there for each.

/// The number of buckets: one for the time of the last event, and one for each bit of a time.
const BUCKETS: usize = 65;

/// The most events of a bucket that come soon: what they need is then read from memory at once, and
/// stays in a cache until they are taken.
const SOON: usize = 64;

/// Events that are due.
pub(super) struct Schedule<E> {
    /// The time of the last event that was taken.
    last: u64,
    /// Those of that time, the first ones taken already.
    taken: usize,
    buckets: [Vec<(u64, E)>; BUCKETS],
    /// The bits of the buckets that may have events, without the first.
    filled: u64,
}

impl<E: Copy> Schedule<E> {
    pub(super) fn new() -> Schedule<E> {
        Schedule {
            last: 0,
            taken: 0,
            buckets: [const { Vec::new() }; BUCKETS],
            filled: 0,
        }
    }

    /// Adds an event, whose time is not before that of the last one that was taken.
    pub(super) fn push(&mut self, at: u64, event: E) {
        debug_assert!(at >= self.last, "{at} is before {}", self.last);
        let at = at.max(self.last);
        let bucket = bucket(at, self.last);
        if bucket > 0 {
            self.filled |= 1 << (bucket - 1);
        }
        self.buckets[bucket].push((at, event));
    }

    /// Takes the first event and its time. `comes` gets events that are taken soon.
    pub(super) fn pop(&mut self, comes: impl FnMut(E)) -> Option<(u64, E)> {
        if self.taken == self.buckets[0].len() {
            self.buckets[0].clear();
            self.taken = 0;
            self.refill(comes)?;
        }
        let first = self.buckets[0][self.taken];
        self.taken += 1;
        Some(first)
    }

    /// Distributes the events of the first bucket that has some. `None`: there are none.
    fn refill(&mut self, mut comes: impl FnMut(E)) -> Option<()> {
        if self.filled == 0 {
            return None;
        }
        let from = self.filled.trailing_zeros() as usize + 1;
        self.filled &= self.filled - 1;
        let mut events = std::mem::take(&mut self.buckets[from]);
        let first = events.iter().map(|(at, _)| *at).min()?;
        self.last = first;
        if (2..=SOON).contains(&events.len()) {
            events.iter().for_each(|(_, event)| comes(*event));
        }
        for (at, event) in events.drain(..) {
            self.push(at, event);
        }
        // Its memory stays with the bucket.
        self.buckets[from] = events;
        Some(())
    }
}

/// The bucket of a time.
fn bucket(at: u64, last: u64) -> usize {
    (u64::BITS - (at ^ last).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_times_and_of_their_numbers(
            steps in proptest::collection::vec((any::<bool>(), 0u32..40, any::<u64>()), 0..300),
        ) {
            let (mut all, mut heap) = (Schedule::new(), BinaryHeap::new());
            let mut now = 0;
            for (number, (is_pop, bits, later)) in steps.into_iter().enumerate() {
                if is_pop {
                    let wanted = heap.pop().map(|Reverse(first)| first);
                    prop_assert_eq!(all.pop(|_| ()), wanted);
                    now = wanted.map_or(now, |(at, _)| at);
                } else {
                    let at = now + later % (1 << bits);
                    all.push(at, number);
                    heap.push(Reverse((at, number)));
                }
            }
            while let Some(Reverse(wanted)) = heap.pop() {
                prop_assert_eq!(all.pop(|_| ()), Some(wanted));
            }
            prop_assert_eq!(all.pop(|_| ()), None);
        }
    }
}
