//! Notices: the immediates by which writers report the end of a transfer.
//!
//! A transfer over several links ends with one notice on each. A notice names the transfer, by the
//! number that the receiver gave, and the share of the transfer, by the position of its link at the
//! sender. A share that another link has carried again keeps its number. The receiver keeps the set
//! of reported shares: a notice that comes twice counts once.
//!
//! ```text
//! bits 6-31    3-5     0-2
//!      number  share   number of shares, less one
//! ```

use super::rail_set::{MAX_RAILS, RailSet};

/// The number of bits of a share's number, and of the number of shares.
const SHARE_BITS: u32 = MAX_RAILS.trailing_zeros();
/// The mask of the bits of a notice's number, which is also the greatest one: numbers wrap behind
/// it.
pub(super) const NOTICE_NUMBERS: u32 = u32::MAX >> (2 * SHARE_BITS);

/// The number in the immediate of a notice: the transfer and its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoticeWord {
    /// The number of the transfer, which the receiver gave.
    pub number: u32,
    /// The number of the share: the position of its link at the sender.
    pub share: usize,
    /// The number of shares of the transfer: at least one.
    pub count: usize,
}

impl NoticeWord {
    pub(super) fn encode(self) -> u32 {
        debug_assert!(self.number <= NOTICE_NUMBERS && self.share < MAX_RAILS);
        debug_assert!((1..=MAX_RAILS).contains(&self.count));
        self.number << (2 * SHARE_BITS)
            | (self.share as u32) << SHARE_BITS
            | (self.count as u32 - 1)
    }

    pub(super) fn decode(word: u32) -> NoticeWord {
        let mask = MAX_RAILS as u32 - 1;
        NoticeWord {
            number: word >> (2 * SHARE_BITS),
            share: (word >> SHARE_BITS & mask) as usize,
            count: (word & mask) as usize + 1,
        }
    }
}

/// The shares of a transfer whose ends have been reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    arrived: RailSet,
    count: Option<usize>,
}

/// A notice that no correct peer sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl Shares {
    /// Records the notice of a share. True: every share has been reported. An error: the notice
    /// contradicts an earlier one.
    pub(super) fn insert(&mut self, word: NoticeWord) -> Result<bool, Contradiction> {
        if *self.count.get_or_insert(word.count) != word.count {
            return Err(Contradiction);
        }
        self.arrived = self.arrived.with(word.share);
        match self.arrived.len().cmp(&word.count) {
            std::cmp::Ordering::Less => Ok(false),
            std::cmp::Ordering::Equal => Ok(true),
            std::cmp::Ordering::Greater => Err(Contradiction),
        }
    }

    /// The numbers of the shares that have been reported.
    pub(super) fn arrived(&self) -> RailSet {
        self.arrived
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::rdma) fn word(number: u32, share: usize, count: usize) -> NoticeWord {
        NoticeWord {
            number,
            share,
            count,
        }
    }

    #[test]
    fn a_notice_comes_back_as_it_was() {
        for number in [0, 1, NOTICE_NUMBERS] {
            for (share, count) in [(0, 1), (7, 8), (3, 2)] {
                let notice = word(number, share, count);
                assert_eq!(NoticeWord::decode(notice.encode()), notice);
            }
        }
        assert_eq!(NOTICE_NUMBERS.count_ones(), 26);
    }

    #[test]
    fn each_part_counts_once_and_all_must_agree() {
        let mut shares = Shares::default();
        assert_eq!(shares.insert(word(5, 2, 2)), Ok(false));
        assert_eq!(shares.insert(word(5, 2, 2)), Ok(false), "a repetition");
        assert_eq!(shares.insert(word(5, 0, 3)), Err(Contradiction));
        assert_eq!(shares.insert(word(5, 0, 2)), Ok(true));
        assert_eq!(shares.insert(word(5, 1, 2)), Err(Contradiction));
        assert_eq!(Shares::default().insert(word(1, 4, 1)), Ok(true));
    }
}
