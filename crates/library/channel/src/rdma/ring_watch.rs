//! The rings that may hold packets, where the node knows the memory that peers have written to. A
//! poll of a thousand rings then costs as much as a poll of the rings that have been written to.
//!
//! Invariant: a ring that is not due holds no packet that could be taken, and owes no tail.

use device::Node;

/// The rings of a rank from all peers, by the keys of their memory.
#[derive(Default)]
pub(super) struct RingWatch {
    /// The remote keys of the rings, each with the number of a ring behind it, in order: several
    /// devices may give the same key to different rings.
    rings: Vec<(u32, usize)>,
    /// The numbers of the rings to be polled next.
    due: Vec<usize>,
    /// The keys of memory that peers have written to; kept for its capacity.
    keys: Vec<u32>,
}

impl RingWatch {
    /// A watch over the rings of a rank on `node`. `None` if the node cannot report writes.
    pub(super) fn on(node: &mut dyn Node) -> Option<Box<RingWatch>> {
        let knows = node.is_virtual() || node.written(&mut Vec::new());
        knows.then(Box::default)
    }

    /// Adds a ring, whose memory has these remote keys, and makes it due for a poll.
    pub(super) fn begin(&mut self, ring: usize, keys: impl Iterator<Item = u32>) {
        for key in keys {
            let entry = (key, ring);
            let place = self.rings.partition_point(|other| *other < entry);
            self.rings.insert(place, entry);
        }
        self.due.push(ring);
    }

    /// The numbers of the rings that are due, in order, which are due no more. `None`: any ring may
    /// contain packets.
    pub(super) fn take_due(&mut self, node: &mut dyn Node) -> Option<Vec<usize>> {
        self.keys.clear();
        if !node.written(&mut self.keys) {
            self.due.clear();
            return None;
        }
        for &key in &self.keys {
            let first = self.rings.partition_point(|(other, _)| *other < key);
            let rings = self.rings[first..].iter();
            let rings = rings.take_while(|(other, _)| *other == key);
            self.due.extend(rings.map(|(_, ring)| ring));
        }
        self.due.sort_unstable();
        self.due.dedup();
        Some(std::mem::take(&mut self.due))
    }

    /// Makes a ring due, so that the next poll includes it.
    pub(super) fn demand(&mut self, ring: usize) {
        self.due.push(ring);
    }

    /// Takes back the list that [`take_due`](RingWatch::take_due) returned, for its capacity.
    pub(super) fn recycle(&mut self, mut list: Vec<usize>) {
        if self.due.is_empty() {
            list.clear();
            self.due = list;
        }
    }
}
