//! A table indexed by rank for state that few ranks of a job have: most ranks of a large job never
//! exchange a message.

/// Number of neighbouring peers whose entries are allocated together.
const GROUP: usize = 32;

/// At most one `T` for each peer. Memory for a group of neighbouring peers is allocated once one of
/// them has an entry.
pub struct PeerTable<T> {
    peers: usize,
    groups: Box<[Option<Box<Group<T>>>]>,
}

type Group<T> = [Option<T>; GROUP];

impl<T> PeerTable<T> {
    /// An empty table for peers 0 to `peers` - 1.
    pub fn new(peers: usize) -> PeerTable<T> {
        let groups = peers.div_ceil(GROUP);
        PeerTable {
            peers,
            groups: std::iter::repeat_with(|| None).take(groups).collect(),
        }
    }

    /// Extends the table to peers 0 to `peers` - 1. It never shrinks.
    pub fn grow(&mut self, peers: usize) {
        let mut groups = std::mem::take(&mut self.groups).into_vec();
        groups.resize_with(peers.div_ceil(GROUP).max(groups.len()), || None);
        self.groups = groups.into();
        self.peers = self.peers.max(peers);
    }

    /// The number of peers of the table, with and without an entry.
    pub fn peers(&self) -> usize {
        self.peers
    }

    /// The entry of a peer, if it has one.
    #[inline(always)]
    pub fn get(&self, peer: usize) -> Option<&T> {
        self.groups[peer / GROUP].as_ref()?[peer % GROUP].as_ref()
    }

    /// The entry of a peer for modification, if it has one.
    #[inline(always)]
    pub fn get_mut(&mut self, peer: usize) -> Option<&mut T> {
        self.groups[peer / GROUP].as_mut()?[peer % GROUP].as_mut()
    }

    /// The `Option` that holds a peer's entry, allocated if necessary.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn entry(&mut self, peer: usize) -> &mut Option<T> {
        assert!(peer < self.peers, "peer {peer} of {}", self.peers);
        let group = &mut self.groups[peer / GROUP];
        let group = group.get_or_insert_with(|| Box::new(std::array::from_fn(|_| None)));
        &mut group[peer % GROUP]
    }

    /// Removes all entries and returns them in the order of their peers.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        let groups = self.groups.iter_mut().filter_map(Option::take);
        groups.flat_map(|group| group.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_and_taken_in_order() {
        let mut table = PeerTable::new(100);
        *table.entry(99) = Some('b');
        *table.entry(3) = Some('a');
        assert_eq!(
            (table.get(3), table.get(4), table.get(50)),
            (Some(&'a'), None, None)
        );
        assert_eq!(table.get_mut(99), Some(&mut 'b'));
        assert_eq!(table.drain().collect::<String>(), "ab");
        assert_eq!((table.get(99), table.peers()), (None, 100));
    }

    #[test]
    fn a_table_that_grows_keeps_its_entries() {
        let mut table = PeerTable::new(GROUP);
        *table.entry(GROUP - 1) = Some('a');
        for peers in [GROUP + 1, 3 * GROUP, 1] {
            table.grow(peers);
        }
        assert_eq!((table.peers(), table.groups.len()), (3 * GROUP, 3));
        *table.entry(3 * GROUP - 1) = Some('b');
        assert_eq!(table.get(GROUP - 1), Some(&'a'));
        assert_eq!(table.drain().collect::<String>(), "ab");
    }

    #[test]
    #[should_panic(expected = "peer 100 of 100")]
    fn an_entry_beyond_the_job_is_refused() {
        *PeerTable::new(100).entry(100) = Some(());
    }
}
