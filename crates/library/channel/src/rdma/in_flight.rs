//! The ring writes of an endpoint that are posted and not known to be complete, by link.
//!
//! Invariant: [`InFlight::completed`] never exceeds the number before the first packet with a write
//! in flight, on any link.

use super::rail_set::MAX_RAILS;

/// The value for the first packet in flight if no packet is in flight.
const NONE: u64 = u64::MAX;

/// The writes to one peer's ring that may be in flight.
pub(super) struct InFlight {
    /// For each link: the first packet whose write may be in flight, and the last one posted.
    links: [(u64, u64); MAX_RAILS],
    /// Packets that are being written again, each with its link.
    replays: Vec<(usize, u64)>,
    /// The number of the packet before the first one that may be in flight on any link.
    completed: u64,
}

impl Default for InFlight {
    fn default() -> InFlight {
        InFlight {
            links: [(NONE, 0); MAX_RAILS],
            replays: Vec::new(),
            completed: NONE - 1,
        }
    }
}

impl InFlight {
    /// The number of a packet: the writes of every packet up to it have completed.
    #[inline(always)]
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// Records that the write of packet `sequence` has been posted on `link`.
    #[inline(always)]
    pub(super) fn posted(&mut self, link: usize, sequence: u64) {
        let (first, last) = &mut self.links[link];
        *last = (*last).max(sequence);
        if sequence < *first {
            *first = sequence;
            self.completed = self.completed.min(sequence - 1);
        }
    }

    /// Records that the writes on `link` of every packet up to `sequence` have completed.
    pub(super) fn completed_on(&mut self, link: usize, sequence: u64) {
        let (first, last) = &mut self.links[link];
        match sequence >= *last {
            true => *first = NONE,
            false if *first != NONE => *first = (*first).max(sequence + 1),
            false => (),
        }
        self.count();
    }

    fn count(&mut self) {
        let firsts = self.links.iter().map(|(first, _)| *first);
        let replays = self.replays.iter().map(|(_, sequence)| *sequence);
        self.completed = firsts.chain(replays).fold(NONE, u64::min) - 1;
    }

    /// Records that packet `sequence` is being written again on `link`.
    pub(super) fn replayed(&mut self, link: usize, sequence: u64) {
        self.replays.push((link, sequence));
        self.count();
    }

    /// Records that the repeated write of packet `sequence` has completed.
    pub(super) fn replay_completed(&mut self, sequence: u64) {
        self.replays.retain(|(_, replayed)| *replayed != sequence);
        self.count();
    }

    /// Records that no write is in flight on `link` any more: its queue pair is fenced.
    pub(super) fn fenced(&mut self, link: usize) {
        self.links[link].0 = NONE;
        self.replays.retain(|(of, _)| *of != link);
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_slowest_link_decides() {
        let mut flight = InFlight::default();
        for (link, sequence) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
            flight.posted(link, sequence);
        }
        assert_eq!(flight.completed(), 0);
        flight.completed_on(0, 3);
        assert_eq!(flight.completed(), 1, "packet 2 is in flight");
        flight.completed_on(1, 2);
        assert_eq!(flight.completed(), 2);
        flight.completed_on(1, 4);
        assert!(flight.completed() >= 4);
    }

    #[test]
    fn a_packet_that_is_written_again_is_in_flight_again() {
        let mut flight = InFlight::default();
        (1..=3).for_each(|sequence| flight.posted(1, sequence));
        flight.posted(0, 4);
        flight.fenced(1);
        flight.replayed(0, 2);
        assert_eq!(flight.completed(), 1);
        flight.completed_on(0, 4);
        assert_eq!(
            flight.completed(),
            1,
            "a completion of the link does not report replays"
        );
        flight.replay_completed(2);
        assert!(flight.completed() >= 4);
        flight.replayed(0, 2);
        flight.fenced(0);
        assert!(flight.completed() >= 4);
    }

    proptest! {
        /// Each packet is posted on one of three links; completions report a prefix of a link.
        #[test]
        fn no_packet_in_flight_is_taken_for_complete(
            steps in prop::collection::vec((0usize..3, any::<bool>()), 1..200),
        ) {
            let mut flight = InFlight::default();
            let mut open: [Vec<u64>; 3] = Default::default();
            let mut last = 0;
            for (link, post) in steps {
                if post {
                    last += 1;
                    open[link].push(last);
                    flight.posted(link, last);
                } else if !open[link].is_empty() {
                    let some = open[link].len().div_ceil(2);
                    let sequence = open[link][some - 1];
                    open[link].drain(..some);
                    flight.completed_on(link, sequence);
                }
                let first = open.iter().flatten().min();
                prop_assert!(first.is_none_or(|first| flight.completed() < *first));
                if first.is_none() {
                    prop_assert!(flight.completed() >= last);
                }
            }
        }
    }
}
