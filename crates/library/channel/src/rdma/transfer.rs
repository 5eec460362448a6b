//! A bulk transfer: the account of its bytes, from the assignment to links to the last completion.
//!
//! Each byte is first *unassigned*, then part of the *share* of a link, then *posted* in a piece,
//! then *confirmed* by the completion of the piece. A link that fails gives its unconfirmed bytes
//! back: they become unassigned again.
//!
//! A transfer with notice ends with one notice on each link that carries a share of it. Once every
//! byte is assigned, the number of notices is fixed. Every notice contains that number, so the
//! receiver knows when it has all of them.
//!
//! Invariant: the transfer is complete only when every byte is confirmed and every notice has left.

use std::ops::Range;

use device::{Operation, Remote, Slice};

use super::fence::Fence;
use super::flow::Flow;
use super::notice::NoticeWord;
use super::qp_link::PieceId;
use super::rail_set::{MAX_RAILS, RailKeys, RailSet};
use crate::{RemoteKey, Token};

/// The direction of a transfer: a read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// A read: from the peer's memory to this rank's.
    Read,
    /// A write: from this rank's memory to the peer's. The notice reports its end to the peer.
    Write { notice: Option<u32> },
}

impl Direction {
    pub(super) fn flow(self) -> Flow {
        match self {
            Direction::Read => Flow::In,
            Direction::Write { .. } => Flow::Out,
        }
    }
}

/// A transfer between exposed memory of both ranks, as the caller requested it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkTransfer {
    pub peer: usize,
    pub direction: Direction,
    /// The beginning of this rank's memory in the transfer.
    pub local: LocalMemory,
    /// The memory of the peer, by the key that the peer has sent.
    pub remote: RemoteKey,
    pub len: u64,
    /// The token with which the transfer's completion is reported.
    pub token: Token,
}

/// Memory of this rank, as work requests name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalMemory {
    pub address: u64,
    pub keys: RailKeys,
}

/// The rails at the two ends of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct RailPair {
    pub ours: usize,
    pub theirs: usize,
}

/// One work request of a transfer, ready to be posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub id: PieceId,
    pub operation: Operation,
    pub local: Slice,
}

/// The part of a transfer that one link was given. It keeps the position of that link as its
/// number, whichever link carries it.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// The offset of the first byte that is not posted.
    from: u64,
    /// The offset behind the last byte that is not posted.
    end: u64,
    /// The position of the link that carries the share.
    carrier: u8,
}

/// A transfer that is not complete, with a record of its bytes by share.
pub(super) struct Unfinished {
    number: usize,
    transfer: BulkTransfer,
    /// The offset from which on every byte is unassigned.
    assigned: u64,
    /// Further unassigned bytes, which failed links have given back.
    returned: Vec<Range<u64>>,
    shares: [Share; MAX_RAILS],
    /// Bytes that are to be posted again, on another link, each range with its share.
    again: Vec<(usize, Range<u64>)>,
    /// The shares to which bytes have been assigned.
    used: RailSet,
    /// The shares whose notice has been posted.
    noticed: RailSet,
    /// The number of notices of the transfer, once it is fixed.
    notices: Option<usize>,
    /// The number of pieces whose completion is expected.
    outstanding: u32,
    /// True if a piece of the transfer has been posted.
    begun: bool,
}

impl Unfinished {
    pub(super) fn new(number: usize, transfer: BulkTransfer) -> Unfinished {
        let share = |link| Share {
            carrier: link as u8,
            ..Share::default()
        };
        Unfinished {
            number,
            transfer,
            assigned: 0,
            returned: Vec::new(),
            shares: std::array::from_fn(share),
            again: Vec::new(),
            used: RailSet::default(),
            noticed: RailSet::default(),
            notices: None,
            outstanding: 0,
            begun: false,
        }
    }

    pub(super) fn transfer(&self) -> &BulkTransfer {
        &self.transfer
    }

    pub(super) fn flow(&self) -> Flow {
        self.transfer.direction.flow()
    }

    /// The length of the transfer if it is a write without notice and has bytes. A short one
    /// travels inline, as the device's own benchmark sends it.
    pub(super) fn unnoticed_write(&self) -> Option<usize> {
        let is_such = self.transfer.direction == Direction::Write { notice: None };
        (is_such && self.transfer.len > 0).then_some(self.transfer.len as usize)
    }

    /// The number of bytes that no link has been given.
    pub(super) fn unassigned(&self) -> u64 {
        let returned = self.returned.iter().map(|range| range.end - range.start);
        self.transfer.len - self.assigned + returned.sum::<u64>()
    }

    /// True if the number of notices is not fixed: bytes may still be assigned.
    pub(super) fn is_undecided(&self) -> bool {
        self.notices.is_none()
    }

    /// Assigns at most `bytes` unassigned bytes, which are contiguous, to a link without a share.
    /// Returns their number.
    pub(super) fn assign(&mut self, link: usize, bytes: u64) -> u64 {
        debug_assert!(!self.has_share(link) && self.is_undecided());
        let (from, end) = match self.returned.last_mut() {
            Some(range) => {
                let from = range.start;
                range.start = range.end.min(from + bytes);
                let end = range.start;
                if range.is_empty() {
                    self.returned.pop();
                }
                (from, end)
            }
            None => {
                let from = self.assigned;
                self.assigned = self.transfer.len.min(from + bytes);
                (from, self.assigned)
            }
        };
        (self.shares[link].from, self.shares[link].end) = (from, end);
        self.used = self.used.with(link);
        end - from
    }

    /// Fixes the number of notices: no byte is unassigned. A transfer without bytes belongs to link
    /// `home`.
    pub(super) fn decide(&mut self, home: usize) {
        debug_assert_eq!(self.unassigned(), 0);
        if self.used.is_empty() {
            self.used = RailSet::only(home);
        }
        self.notices = Some(self.used.len());
    }

    /// True if bytes of the share are assigned and not posted.
    pub(super) fn has_share(&self, share: usize) -> bool {
        let Share { from, end, .. } = self.shares[share];
        from < end || self.again.iter().any(|(of, _)| *of == share)
    }

    /// The number of contiguous bytes of a share that are to be posted next.
    pub(super) fn left_of(&self, share: usize) -> u64 {
        let Share { from, end, .. } = self.shares[share];
        let again = self.again.iter().find(|(of, _)| *of == share);
        match (from < end, again) {
            (false, Some((_, range))) => range.end - range.start,
            _ => end - from,
        }
    }

    /// The position of the link that carries a share.
    pub(super) fn carrier(&self, share: usize) -> usize {
        self.shares[share].carrier.into()
    }

    fn notice(&self) -> Option<u32> {
        match self.transfer.direction {
            Direction::Read => None,
            Direction::Write { notice } => notice,
        }
    }

    /// The next work request of a share, of at most `longest` bytes, for a link between `rails`. It
    /// stays the next one until it is [`posted`](Self::posted).
    pub(super) fn next_piece(
        &mut self,
        share: usize,
        rails: RailPair,
        longest: u64,
    ) -> Option<Piece> {
        self.take_again(share);
        let Share { from, end, .. } = self.shares[share];
        let decided = self.notices.filter(|_| self.used.contains(share));
        let notice = self.notice();
        let owes_notice = notice.is_some() && !self.noticed.contains(share);
        if from == end && !(decided.is_some() && (owes_notice || !self.begun)) {
            return None;
        }
        let len = (end - from).min(longest);
        let is_last = from + len == end && self.again.iter().all(|(of, _)| *of != share);
        let remote = Remote {
            address: self.transfer.remote.address_at(from),
            rkey: self.transfer.remote.rail(rails.theirs)?,
        };
        let word = |count, number| NoticeWord {
            number,
            share,
            count,
        };
        let count = decided.filter(|_| is_last && owes_notice);
        let operation = match self.transfer.direction {
            Direction::Read => Operation::Read { from: remote },
            Direction::Write { notice } => Operation::Write {
                to: remote,
                immediate: count
                    .zip(notice)
                    .map(|(count, notice)| word(count, notice).encode()),
            },
        };
        Some(Piece {
            id: PieceId {
                share,
                transfer: self.number,
                from,
                len: len as u32,
                last: is_last && decided.is_some(),
            },
            operation,
            local: Slice {
                address: self.transfer.local.address + from,
                len: len as u32,
                lkey: self.transfer.local.keys.on(rails.ours).lkey,
            },
        })
    }

    /// Makes bytes that are to be posted again the next ones of their share.
    fn take_again(&mut self, share: usize) {
        let Share { from, end, .. } = self.shares[share];
        if from < end || self.again.is_empty() {
            return;
        }
        if let Some(at) = self.again.iter().position(|(of, _)| *of == share) {
            let (_, range) = self.again.swap_remove(at);
            (self.shares[share].from, self.shares[share].end) = (range.start, range.end);
        }
    }

    /// Records that the next work request of a share has been posted. `reported`: a completion
    /// reports it.
    pub(super) fn posted(&mut self, piece: &PieceId, reported: bool) {
        self.begun = true;
        self.shares[piece.share].from += u64::from(piece.len);
        self.outstanding += u32::from(reported);
        if piece.last && self.notice().is_some() {
            self.noticed = self.noticed.with(piece.share);
        }
    }

    /// The state of the transfer as one line of text.
    #[cfg(test)]
    pub(super) fn describe(&self) -> String {
        let shares = self.used.iter().map(|share| {
            let Share { from, end, carrier } = self.shares[share];
            format!("{share}: {from}..{end} on {carrier}")
        });
        format!(
            "transfer {:?} {:?} of {}: {} unassigned, shares {:?}, again {:?}, noticed {:?} of {:?}, {} outstanding",
            self.transfer.token,
            self.transfer.direction,
            self.transfer.len,
            self.unassigned(),
            shares.collect::<Vec<_>>(),
            self.again,
            self.noticed,
            self.notices,
            self.outstanding
        )
    }

    /// True if nothing of the transfer remains to be posted.
    pub(super) fn is_posted(&self) -> bool {
        let has_left = |share| !self.has_share(share);
        self.notices.is_some()
            && self.begun
            && self.used.iter().all(has_left)
            && (self.notice().is_none() || self.noticed == self.used)
    }

    /// True if the peer's fence shows that the peer got the notice of this piece's share: every
    /// byte of the piece has arrived.
    pub(super) fn is_confirmed(&self, piece: &PieceId, fence: &Fence) -> bool {
        let decided = self.notices.is_some() && self.noticed.contains(piece.share);
        let number = self.notice().filter(|_| decided);
        number.is_some_and(|number| fence.confirms(number, piece.share))
    }

    /// Records that a posted piece failed with its link, and is not confirmed. Its bytes will be
    /// posted again: by any link while bytes may still be assigned, else as part of its share by
    /// `carrier`.
    pub(super) fn give_back(&mut self, piece: &PieceId, carrier: usize) {
        self.outstanding -= 1;
        let range = piece.from..piece.from + u64::from(piece.len);
        if self.is_undecided() {
            if !range.is_empty() {
                self.returned.push(range);
            }
            return;
        }
        if !range.is_empty() {
            self.again.push((piece.share, range));
        }
        if piece.last {
            self.noticed = self.noticed.without(piece.share);
            self.begun &= self.transfer.len > 0;
        }
        self.shares[piece.share].carrier = carrier as u8;
    }

    /// Moves the share of dead link `link` to `carrier`, or back to the unassigned bytes.
    pub(super) fn leave(&mut self, link: usize, carrier: usize) {
        for share in 0..MAX_RAILS {
            if self.carrier(share) != link {
                continue;
            }
            let Share { from, end, .. } = self.shares[share];
            if !self.is_undecided() {
                self.shares[share].carrier = carrier as u8;
            } else {
                // Every byte of the link is confirmed or given back: no notice is needed.
                self.used = self.used.without(share);
                if from < end {
                    self.returned.push(from..end);
                    self.shares[share].from = end;
                }
            }
        }
    }

    /// Records that a piece is complete, and with it every earlier piece on its link. True: the
    /// transfer is complete.
    pub(super) fn completed(&mut self) -> bool {
        self.outstanding -= 1;
        self.outstanding == 0 && self.is_posted()
    }
}
