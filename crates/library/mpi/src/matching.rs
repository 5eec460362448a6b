//! Matching of messages and receives (MPI 5.0 §3.5).
//!
//! A receive that names source and tag is kept in a bin, chosen by its envelope; receives with a
//! wildcard are kept in one list. Unexpected messages are kept in bins, too. Each entry has the
//! number of its insertion (`order`).
//!
//! Invariant: the earliest entry that matches wins, in whatever bin or list it is; a receive
//! without wildcards is compared with its bin only.

use std::collections::VecDeque;

use crate::{ANY_SOURCE, ANY_TAG};

/// An envelope: the fields that matching compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The context of the message's communicator.
    pub context: u64,
    /// Rank of the sender in the communicator, or `MPI_ANY_SOURCE` in a receive.
    pub source: i32,
    /// Tag of the message, or `MPI_ANY_TAG` in a receive.
    pub tag: i32,
}

impl Key {
    /// True if a receive with this envelope matches a message with the envelope `sent`.
    #[inline(always)]
    pub fn takes(&self, sent: &Key) -> bool {
        self.context == sent.context
            && (self.source == sent.source || self.source == ANY_SOURCE)
            && (self.tag == sent.tag || self.tag == ANY_TAG)
    }

    /// True if this is the envelope of a receive from any source or with any tag.
    #[inline(always)]
    pub fn has_wildcard(&self) -> bool {
        self.source == ANY_SOURCE || self.tag == ANY_TAG
    }

    #[inline(always)]
    fn bin(&self) -> usize {
        let mixed =
            self.context ^ (u64::from(self.tag as u32) << 32 | u64::from(self.source as u32));
        (mixed.wrapping_mul(SPREAD) >> (64 - BIN_BITS)) as usize
    }
}

const BIN_BITS: u32 = 6;
/// Multiplier that spreads neighbouring sources and tags over the bins. Its halves are the
/// fractions of the golden ratio and of the square root of two.
const SPREAD: u64 = 0x9e37_79b9_6a09_e667;
const BINS: usize = 1 << BIN_BITS;

/// An entry of the matching: a posted receive's request, or an unexpected message.
struct Entry<T> {
    key: Key,
    order: u64,
    what: T,
}

/// The receives that a rank has posted and not matched, by envelope.
pub(crate) struct Posted {
    exact: [VecDeque<Entry<u32>>; BINS],
    wild: VecDeque<Entry<u32>>,
    next: u64,
    count: usize,
}

impl Default for Posted {
    fn default() -> Self {
        Posted {
            exact: std::array::from_fn(|_| VecDeque::new()),
            wild: VecDeque::new(),
            next: 0,
            count: 0,
        }
    }
}

impl Posted {
    /// Posts a receive.
    #[inline]
    pub(crate) fn post(&mut self, key: Key, request: u32) {
        let waiting = Entry {
            key,
            order: self.next,
            what: request,
        };
        self.next += 1;
        self.count += 1;
        if key.has_wildcard() {
            self.wild.push_back(waiting);
        } else {
            self.exact[key.bin()].push_back(waiting);
        }
    }

    /// True if no receive is posted.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if a posted receive matches a message with this envelope.
    #[inline(always)]
    pub(crate) fn has(&self, sent: &Key) -> bool {
        self.count > 0
            && (self.exact[sent.bin()]
                .iter()
                .any(|posted| posted.key == *sent)
                || self.wild.iter().any(|posted| posted.key.takes(sent)))
    }

    /// Removes and returns the earliest posted receive that matches this envelope.
    #[inline(always)]
    pub(crate) fn take(&mut self, sent: &Key) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let bin = &mut self.exact[sent.bin()];
        let taken = if self.wild.is_empty() {
            match bin.front() {
                Some(first) if first.key == *sent => bin.pop_front().map(|first| first.what),
                _ => take_behind(bin, sent),
            }
        } else {
            self.take_beside_wildcards(sent)
        };
        self.count -= usize::from(taken.is_some());
        taken
    }

    #[inline(never)]
    fn take_beside_wildcards(&mut self, sent: &Key) -> Option<u32> {
        let bin = &mut self.exact[sent.bin()];
        let exact = bin.iter().position(|posted| posted.key == *sent);
        match self.wild.iter().position(|posted| posted.key.takes(sent)) {
            Some(wild) if exact.is_none_or(|exact| self.wild[wild].order < bin[exact].order) => {
                remove(&mut self.wild, wild)
            }
            _ => remove(bin, exact?),
        }
    }

    /// True if this receive, which names source and tag, is posted, no earlier receive with a
    /// wildcard could match its message, and every earlier receive with its envelope satisfies
    /// `known`.
    pub(crate) fn is_only_behind(
        &self,
        key: &Key,
        request: u32,
        known: impl Fn(u32) -> bool,
    ) -> bool {
        let bin = &self.exact[key.bin()];
        let Some(at) = bin.iter().position(|posted| posted.what == request) else {
            return false;
        };
        let order = bin[at].order;
        let mut earlier = bin.iter().take(at).filter(|posted| posted.key == *key);
        let mut wild = self.wild.iter().take_while(|posted| posted.order < order);
        earlier.all(|posted| known(posted.what)) && !wild.any(|posted| posted.key.takes(key))
    }

    /// The number of receives with this envelope that were posted before the receive `request`,
    /// which names source and tag. `None`: `request` is not posted.
    pub(crate) fn behind(&self, key: &Key, request: u32) -> Option<usize> {
        let bin = &self.exact[key.bin()];
        let at = bin.iter().position(|posted| posted.what == request)?;
        Some(
            bin.iter()
                .take(at)
                .filter(|posted| posted.key == *key)
                .count(),
        )
    }

    /// Removes a posted receive. False: it is not posted, because it has been matched.
    pub(crate) fn withdraw(&mut self, key: &Key, request: u32) -> bool {
        let list = if key.has_wildcard() {
            &mut self.wild
        } else {
            &mut self.exact[key.bin()]
        };
        let Some(at) = list.iter().position(|posted| posted.what == request) else {
            return false;
        };
        list.remove(at);
        self.count -= 1;
        true
    }
}

/// The messages of a rank that no receive has matched, by envelope.
pub(crate) struct Unexpected<M> {
    bins: [VecDeque<Entry<M>>; BINS],
    next: u64,
    count: usize,
}

impl<M> Default for Unexpected<M> {
    fn default() -> Self {
        Unexpected {
            bins: std::array::from_fn(|_| VecDeque::new()),
            next: 0,
            count: 0,
        }
    }
}

impl<M> Unexpected<M> {
    /// Adds a message that no receive has matched.
    pub(crate) fn add(&mut self, key: Key, message: M) {
        self.bins[key.bin()].push_back(Entry {
            key,
            order: self.next,
            what: message,
        });
        self.next += 1;
        self.count += 1;
    }

    /// True if there is an unexpected message.
    #[inline(always)]
    pub(crate) fn is_some(&self) -> bool {
        self.count > 0
    }

    /// The bin and the index of the earliest message that a receive with this envelope matches.
    #[inline(always)]
    fn find(&self, wanted: &Key) -> Option<(usize, usize)> {
        if self.count == 0 {
            return None;
        }
        if !wanted.has_wildcard() {
            let bin = wanted.bin();
            return Some((
                bin,
                self.bins[bin]
                    .iter()
                    .position(|waiting| waiting.key == *wanted)?,
            ));
        }
        let first_of = |bin: usize| {
            let at = self.bins[bin]
                .iter()
                .position(|waiting| wanted.takes(&waiting.key))?;
            Some((self.bins[bin][at].order, (bin, at)))
        };
        Some((0..BINS).filter_map(first_of).min()?.1)
    }

    /// The earliest message that a receive with this envelope matches.
    #[inline]
    pub(crate) fn peek(&self, wanted: &Key) -> Option<(Key, &M)> {
        let (bin, at) = self.find(wanted)?;
        let waiting = &self.bins[bin][at];
        Some((waiting.key, &waiting.what))
    }

    /// Removes and returns the earliest message that a receive with this envelope matches.
    #[inline]
    pub(crate) fn take(&mut self, wanted: &Key) -> Option<(Key, M)> {
        let (bin, at) = self.find(wanted)?;
        self.remove(bin, at)
    }

    /// Removes the message with exactly this envelope that satisfies `is_it`.
    pub(crate) fn take_if(&mut self, key: &Key, is_it: impl Fn(&M) -> bool) -> Option<(Key, M)> {
        let bin = key.bin();
        let at = self.bins[bin]
            .iter()
            .position(|waiting| waiting.key == *key && is_it(&waiting.what))?;
        self.remove(bin, at)
    }

    fn remove(&mut self, bin: usize, at: usize) -> Option<(Key, M)> {
        self.count -= 1;
        let list = &mut self.bins[bin];
        let waiting = if at == 0 {
            list.pop_front()
        } else {
            list.remove(at)
        }?;
        Some((waiting.key, waiting.what))
    }

    /// All unexpected messages, with their envelopes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &M)> {
        self.bins
            .iter()
            .flatten()
            .map(|waiting| (&waiting.key, &waiting.what))
    }
}

/// Removes the earliest receive with this envelope, which need not be the first of its bin.
#[inline(never)]
fn take_behind(bin: &mut VecDeque<Entry<u32>>, sent: &Key) -> Option<u32> {
    let at = bin.iter().position(|posted| posted.key == *sent)?;
    remove(bin, at)
}

fn remove(list: &mut VecDeque<Entry<u32>>, at: usize) -> Option<u32> {
    list.remove(at).map(|waiting| waiting.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: i32, tag: i32) -> Key {
        Key {
            context: 9,
            source,
            tag,
        }
    }

    #[test]
    fn the_earliest_posted_receive_wins_wildcard_or_not() {
        let mut posted = Posted::default();
        posted.post(key(1, 5), 10);
        posted.post(key(ANY_SOURCE, 5), 11);
        posted.post(key(1, 5), 12);
        posted.post(key(1, ANY_TAG), 13);
        let order: Vec<_> = (0..5).map(|_| posted.take(&key(1, 5))).collect();
        assert_eq!(order, [Some(10), Some(11), Some(12), Some(13), None]);
    }

    #[test]
    fn the_earliest_unexpected_message_is_taken_across_bins() {
        let mut unexpected = Unexpected::default();
        for (number, (source, tag)) in [(3, 1), (2, 9), (1, 1), (2, 1)].into_iter().enumerate() {
            unexpected.add(key(source, tag), number);
        }
        assert_eq!(unexpected.peek(&key(ANY_SOURCE, ANY_TAG)).unwrap().1, &0);
        assert_eq!(unexpected.take(&key(2, ANY_TAG)).unwrap().1, 1);
        assert_eq!(unexpected.take(&key(ANY_SOURCE, 1)).unwrap().1, 0);
        assert_eq!(unexpected.take(&key(2, 1)).unwrap().1, 3);
        assert_eq!(unexpected.take(&key(ANY_SOURCE, ANY_TAG)).unwrap().1, 2);
        assert!(unexpected.take(&key(ANY_SOURCE, ANY_TAG)).is_none());
    }

    #[test]
    fn contexts_never_mix() {
        let mut posted = Posted::default();
        posted.post(
            Key {
                context: 8,
                source: ANY_SOURCE,
                tag: ANY_TAG,
            },
            1,
        );
        assert_eq!(posted.take(&key(0, 0)), None);
    }

    #[test]
    fn a_receive_knows_what_stands_before_it() {
        let mut posted = Posted::default();
        posted.post(key(1, 5), 10);
        posted.post(key(1, 5), 11);
        posted.post(key(1, ANY_TAG), 12);
        posted.post(key(1, 5), 13);
        assert!(posted.is_only_behind(&key(1, 5), 10, |_| false));
        assert!(!posted.is_only_behind(&key(1, 5), 11, |_| false));
        assert!(posted.is_only_behind(&key(1, 5), 11, |earlier| earlier == 10));
        assert!(!posted.is_only_behind(&key(1, 5), 13, |_| true));
        assert!(!posted.is_only_behind(&key(1, 5), 99, |_| true));
    }

    #[test]
    fn a_withdrawn_receive_takes_nothing() {
        let mut posted = Posted::default();
        posted.post(key(1, 5), 10);
        assert!(posted.withdraw(&key(1, 5), 10));
        assert!(!posted.withdraw(&key(1, 5), 10));
        assert_eq!(posted.take(&key(1, 5)), None);
    }
}
