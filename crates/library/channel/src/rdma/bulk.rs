//! The bulk engine: the transfers of a rank, and the notices that peers owe it.
//!
//! It posts nothing itself; `transfers` drives it. The transfers of one peer are posted in the
//! order in which they were started; over several links writes and reads have an order each.
//!
//! Invariant: an expected notice stands for one transfer, and is forgotten only when every part of
//! the transfer has been reported or by `forget`. A notice that is not expected is a fault of the
//! peer.

use std::collections::{HashMap, VecDeque};

use super::fence::Fence;
use super::flow::Flow;
use super::notice::{NOTICE_NUMBERS, NoticeWord, Shares};
use super::qp_link::PieceId;
use super::rail_set::RailSet;
use super::transfer::{BulkTransfer, Unfinished};
use crate::{Done, Family, Token};

/// The receives that are reserved for one notice: one on each of these rails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserved {
    /// In the receive queues for notices of these rails.
    Rails(RailSet),
    /// In the receive queues for packets of these links, by position.
    Links(RailSet),
}

/// A notice that a peer owes.
struct ExpectedNotice {
    reserved: Reserved,
    /// Receives that were reserved when a link had failed.
    again: Vec<Reserved>,
    shares: Shares,
    done: Done,
}

/// The answer to a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Noticed {
    /// Another part of the transfer is missing.
    Part,
    /// The transfer is whole. Its reserved receives are free: those of the beginning, and those
    /// that followed when a link failed.
    Whole(Reserved, Vec<Reserved>),
    /// The peer was not given this notice, or contradicts itself.
    Unexpected,
}

/// The transfers of one peer that are not posted to their end, by flow, each in the order in which
/// they were started. The endpoint keeps it for the engine.
///
/// On a single link both flows are one queue: the order of their starts.
#[derive(Default)]
pub(super) struct TransferQueue([VecDeque<usize>; Flow::COUNT]);

impl TransferQueue {
    /// Nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(VecDeque::is_empty)
    }

    /// The number of the first transfer in the queue of a flow that is not posted to its end.
    #[inline]
    pub(super) fn first(&self, flow: Flow) -> Option<usize> {
        self.0[flow as usize].front().copied()
    }

    /// The first transfer in the queue of a flow has been posted to its end.
    pub(super) fn advance(&mut self, flow: Flow) {
        self.0[flow as usize].pop_front();
    }

    /// Transfer `number`, of which nothing waited, has bytes that must be posted again.
    fn put_back(&mut self, number: usize, flow: Flow) {
        if self.0.iter().all(|queue| !queue.contains(&number)) {
            self.0[flow as usize].push_front(number);
        }
    }
}

/// The transfers of a rank.
#[derive(Default)]
pub(super) struct BulkEngine {
    /// By number. Those that are complete are empty.
    transfers: Vec<Option<Unfinished>>,
    free: Vec<usize>,
    /// Completions that nobody has asked for yet, by family.
    done: [VecDeque<Done>; Family::COUNT],
    /// Transfers that have not completed.
    started: usize,
    expected: HashMap<u32, ExpectedNotice>,
    next_notice: u32,
}

impl BulkEngine {
    /// Completions may report something to this engine.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.started > 0 || !self.expected.is_empty()
    }

    /// Transfers of this rank are in flight.
    #[inline(always)]
    pub(super) fn is_moving(&self) -> bool {
        self.started > 0
    }

    /// Starts a transfer, behind the earlier ones in the queue of `flow` of its peer, whose queues
    /// are `queue`.
    pub(super) fn start(&mut self, queue: &mut TransferQueue, flow: Flow, transfer: BulkTransfer) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        queue.0[flow as usize].push_back(number);
        self.started += 1;
        self.transfers[number] = Some(Unfinished::new(number, transfer));
    }

    /// A transfer that is not complete.
    pub(super) fn unfinished(&mut self, number: usize) -> &mut Unfinished {
        let unfinished = self.transfers[number].as_mut();
        unfinished.expect("a transfer is complete only after its last piece")
    }

    /// A piece is complete, and with it every earlier piece of its queue pair. Returns its flow.
    pub(super) fn completed(&mut self, peer: usize, piece: &PieceId) -> Flow {
        let unfinished = self.unfinished(piece.transfer);
        let flow = unfinished.flow();
        let BulkTransfer {
            peer: of, token, ..
        } = *unfinished.transfer();
        assert_eq!(of, peer, "a completion of another connection's transfer");
        if unfinished.completed() {
            self.transfers[piece.transfer] = None;
            self.free.push(piece.transfer);
            self.started -= 1;
            self.report(Done { peer, token });
        }
        flow
    }

    fn report(&mut self, done: Done) {
        self.done[done.token.family as usize].push_back(done);
    }

    /// The notices that `peer` owes, each with the set of shares that have been reported.
    pub(super) fn expected_of(&self, peer: usize) -> Vec<(u32, u8)> {
        let of_peer = self
            .expected
            .iter()
            .filter(|(_, notice)| notice.done.peer == peer);
        let mut all: Vec<(u32, u8)> = of_peer
            .map(|(number, notice)| (*number, notice.shares.arrived().mask()))
            .collect();
        all.sort_unstable();
        all
    }

    /// The receives in `wanted`, one, are among those that are reserved for a notice.
    pub(super) fn has_reserved(&self, notice: u32, wanted: Reserved) -> bool {
        let includes = |reserved: &Reserved| match (*reserved, wanted) {
            (Reserved::Rails(all), Reserved::Rails(one))
            | (Reserved::Links(all), Reserved::Links(one)) => one.iter().all(|at| all.contains(at)),
            _ => false,
        };
        self.expected.get(&notice).is_some_and(|expected| {
            includes(&expected.reserved) || expected.again.iter().any(includes)
        })
    }

    /// The number of the next notice.
    pub(super) fn next_notice(&self) -> u32 {
        self.next_notice
    }

    /// Further receives are reserved for a notice.
    pub(super) fn reserved_again(&mut self, notice: u32, reserved: Reserved) {
        if let Some(expected) = self.expected.get_mut(&notice) {
            expected.again.push(reserved);
        }
    }

    /// Expects a notice of `peer`, for which these receives are reserved. Returns its number.
    /// `done` reports its arrival with the token.
    pub(super) fn expect(&mut self, peer: usize, reserved: Reserved, token: Token) -> u32 {
        let notice = self.next_notice;
        self.next_notice = notice.wrapping_add(1) & NOTICE_NUMBERS;
        let expected = ExpectedNotice {
            reserved,
            again: Vec::new(),
            shares: Shares::default(),
            done: Done { peer, token },
        };
        let before = self.expected.insert(notice, expected);
        assert!(before.is_none(), "notice {notice} is expected already");
        notice
    }

    /// A notice of `peer` has arrived.
    pub(super) fn notice(&mut self, peer: usize, word: NoticeWord) -> Noticed {
        let expected = self.expected.get_mut(&word.number);
        let Some(expected) = expected.filter(|expected| expected.done.peer == peer) else {
            return Noticed::Unexpected;
        };
        match expected.shares.insert(word) {
            Err(_) => Noticed::Unexpected,
            Ok(false) => Noticed::Part,
            Ok(true) => match self.expected.remove(&word.number) {
                Some(expected) => {
                    self.report(expected.done);
                    Noticed::Whole(expected.reserved, expected.again)
                }
                None => Noticed::Unexpected,
            },
        }
    }

    /// Stops expecting a notice. Returns its peer and its receives. None: it has arrived.
    pub(super) fn forget(&mut self, notice: u32) -> Option<(usize, Reserved, Vec<Reserved>)> {
        let expected = self.expected.remove(&notice)?;
        Some((expected.done.peer, expected.reserved, expected.again))
    }

    /// Link `link` to `peer` is dead, and the peer has sent `fence`: `lost` are the pieces that
    /// failed with the link. Those that the peer has been notified of are complete; the others, and
    /// what the link was to carry, go to link `carrier`.
    pub(super) fn link_died(
        &mut self,
        peer: usize,
        (link, carrier): (usize, usize),
        lost: &[PieceId],
        fence: &Fence,
        queue: &mut TransferQueue,
    ) {
        for piece in lost {
            match self.unfinished(piece.transfer).is_confirmed(piece, fence) {
                true => {
                    self.completed(peer, piece);
                }
                false => self.unfinished(piece.transfer).give_back(piece, carrier),
            }
        }
        for (number, transfer) in self.transfers.iter_mut().enumerate() {
            let Some(transfer) = transfer.as_mut().filter(|own| own.transfer().peer == peer) else {
                continue;
            };
            transfer.leave(link, carrier);
            if !transfer.is_posted() {
                queue.put_back(number, transfer.flow());
            }
        }
    }

    /// Link `carrier` to `peer` works, and carries the shares of `dead` links. Both ends of those
    /// are drained.
    pub(super) fn carry_all(&mut self, peer: usize, carrier: usize, dead: RailSet) {
        let transfers = self.transfers.iter_mut().flatten();
        for transfer in transfers.filter(|own| own.transfer().peer == peer) {
            for link in dead.iter() {
                transfer.leave(link, carrier);
            }
        }
    }

    /// `peer` is lost, and its links are drained: its transfers end without a report. Returns the
    /// receives that were reserved for its notices.
    pub(super) fn lose(&mut self, peer: usize) -> Vec<Reserved> {
        for (number, place) in self.transfers.iter_mut().enumerate() {
            let is_its = |own: &Unfinished| own.transfer().peer == peer;
            if place.as_ref().is_some_and(is_its) {
                *place = None;
                self.free.push(number);
                self.started -= 1;
            }
        }
        let its = |_: &u32, notice: &mut ExpectedNotice| notice.done.peer == peer;
        let lost = self.expected.extract_if(its);
        lost.flat_map(|(_, notice)| [notice.reserved].into_iter().chain(notice.again))
            .collect()
    }

    /// Prints the transfers that are not complete.
    #[cfg(test)]
    pub(super) fn describe(&self) {
        for transfer in self.transfers.iter().flatten() {
            println!("  {}", transfer.describe());
        }
    }

    /// The next transfer of a family that is complete: one of this rank's, or one that a peer has
    /// reported by a notice.
    pub(super) fn next_done(&mut self, family: Family) -> Option<Done> {
        self.done[family as usize].pop_front()
    }
}

#[cfg(test)]
#[path = "bulk_tests.rs"]
mod tests;
