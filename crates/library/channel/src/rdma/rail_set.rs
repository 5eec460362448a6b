//! Sets of rails, and the keys of memory that is registered on several rails.

/// The most rails of a rank.
pub(super) const MAX_RAILS: usize = u8::BITS as usize;

/// A set of rails, as a bit mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RailSet(u8);

impl RailSet {
    /// The set that contains only `rail`.
    pub(super) fn only(rail: usize) -> RailSet {
        assert!(rail < MAX_RAILS);
        RailSet(1 << rail)
    }

    /// The set of all rails below `rails`.
    pub(super) fn below(rails: usize) -> RailSet {
        (0..rails).fold(RailSet::default(), |set, rail| set.with(rail))
    }

    /// This set with `rail` added.
    pub(super) fn with(self, rail: usize) -> RailSet {
        RailSet(self.0 | RailSet::only(rail).0)
    }

    /// This set with `rail` removed.
    pub(super) fn without(self, rail: usize) -> RailSet {
        RailSet(self.0 & !(1 << rail))
    }

    /// The number of rails in the set.
    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn contains(self, rail: usize) -> bool {
        rail < MAX_RAILS && self.0 >> rail & 1 == 1
    }

    /// The rails of the set, in ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_RAILS).filter(move |&rail| self.contains(rail))
    }

    /// The set as a bit mask, which the handshake sends.
    pub(super) fn mask(self) -> u8 {
        self.0
    }

    /// The set with this bit mask.
    pub(super) fn of_mask(mask: u8) -> RailSet {
        RailSet(mask)
    }
}

/// The local and the remote key of a memory region on one rail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPair {
    /// The key in work requests of this rank.
    pub lkey: u32,
    /// The key in work requests of peers.
    pub rkey: u32,
}

/// The keys of one block of memory on each rail on which it is registered.
///
/// An array rather than a list: the keys are read for every packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RailKeys {
    on: RailSet,
    pairs: [KeyPair; MAX_RAILS],
}

impl RailKeys {
    pub(super) fn insert(&mut self, rail: usize, pair: KeyPair) {
        self.on = self.on.with(rail);
        self.pairs[rail] = pair;
    }

    /// The rails on which the memory is registered.
    pub(super) fn rails(&self) -> RailSet {
        self.on
    }

    /// The keys on `rail`, on which the memory must be registered.
    #[inline(always)]
    pub(super) fn on(&self, rail: usize) -> KeyPair {
        debug_assert!(self.on.contains(rail), "no registration on rail {rail}");
        self.pairs[rail]
    }

    /// The keys for peers, by rail, and the number of rails up to the last one on which the memory
    /// is registered. A key of 0: the memory is not registered on that rail.
    pub(super) fn rkeys(&self) -> ([u32; MAX_RAILS], usize) {
        let rails = self.on.iter().last().map_or(0, |last| last + 1);
        (self.pairs.map(|pair| pair.rkey), rails)
    }

    /// The key for peers on `rail`. 0: the memory is not registered there.
    pub(super) fn rkey(&self, rail: usize) -> u32 {
        self.pairs[rail].rkey
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_was_put_in_and_survives_its_mask() {
        let set = RailSet::only(1).with(7);
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 7]);
        assert!(!set.contains(0) && !set.contains(MAX_RAILS));
        assert_eq!(RailSet::of_mask(set.mask()), set);
        assert_eq!(RailSet::below(3).mask(), 0b111);
    }

    #[test]
    fn keys_belong_to_their_rail() {
        let mut keys = RailKeys::default();
        let pair = |lkey, rkey| KeyPair { lkey, rkey };
        keys.insert(0, pair(1, 2));
        keys.insert(2, pair(3, 4));
        assert_eq!((keys.on(0), keys.on(2)), (pair(1, 2), pair(3, 4)));
        assert_eq!(keys.rails(), RailSet::only(0).with(2));
        assert_eq!((keys.rkey(2), keys.rkey(5)), (4, 0));
        let (rkeys, rails) = keys.rkeys();
        assert_eq!(rkeys[..rails], [2, 0, 4]);
    }
}
