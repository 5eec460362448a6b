//! The account of the transfers of a rank, and of the notices that it expects from peers.
//!
//! It posts nothing itself; `transfers` drives it. The transfers of one peer are posted in the
//! order in which they were started; over several links, writes and reads each have such an order.
//!
//! Invariant: an expected notice stands for one transfer, and is forgotten only when every share of
//! the transfer has been reported, or by `forget`. A notice that is not expected is a fault of the
//! peer.

use std::collections::{HashMap, VecDeque};

use super::fence::Fence;
use super::flow::Flow;
use super::notice::{NOTICE_NUMBERS, NoticeWord, Shares};
use super::qp_link::PieceId;
use super::rail_set::RailSet;
use super::transfer::{BulkTransfer, Unfinished};
use crate::{Done, Family, Token};

/// The receives that are reserved for one notice: one on each of several rails or links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserved {
    /// Receives in the shared receive queues for notices of these rails.
    Rails(RailSet),
    /// Receives in the queues for packets of these links, named by their positions in the endpoint.
    Links(RailSet),
}

/// A notice (the report of a transfer's end) that this rank expects from a peer.
struct ExpectedNotice {
    reserved: Reserved,
    /// Receives that were reserved additionally when a link had failed.
    again: Vec<Reserved>,
    shares: Shares,
    done: Done,
}

/// The effect of a notice on the transfer that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Noticed {
    /// A share of the transfer is complete; others are still missing.
    Part,
    /// The transfer is complete. Its reserved receives are free: those of its start, and those
    /// reserved after a link had failed.
    Whole(Reserved, Vec<Reserved>),
    /// The notice was never given to this peer, or contradicts an earlier one.
    Unexpected,
}

/// The transfers of one peer that are not completely posted, by flow, each flow in the order in
/// which they were started. The endpoint keeps this queue for [`BulkEngine`].
///
/// On a single link both flows share one queue.
#[derive(Default)]
pub(super) struct TransferQueue([VecDeque<usize>; Flow::COUNT]);

impl TransferQueue {
    /// True if no transfer of the queue waits to be posted.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(VecDeque::is_empty)
    }

    /// The number of the first transfer in the queue of a flow, which is not completely posted.
    /// `None`: no transfer waits.
    #[inline]
    pub(super) fn first(&self, flow: Flow) -> Option<usize> {
        self.0[flow as usize].front().copied()
    }

    /// Removes the first transfer from the queue of a flow: it has been completely posted.
    pub(super) fn advance(&mut self, flow: Flow) {
        self.0[flow as usize].pop_front();
    }

    /// Puts transfer `number` back at the front of the queue: some of its bytes must be posted
    /// again.
    fn put_back(&mut self, number: usize, flow: Flow) {
        if self.0.iter().all(|queue| !queue.contains(&number)) {
            self.0[flow as usize].push_front(number);
        }
    }
}

/// The transfers of a rank, and the notices that it expects.
#[derive(Default)]
pub(super) struct BulkEngine {
    /// The transfers by number. The entries of complete ones are empty.
    transfers: Vec<Option<Unfinished>>,
    free: Vec<usize>,
    /// Completed transfers that no caller has taken yet, by family.
    done: [VecDeque<Done>; Family::COUNT],
    /// The number of transfers that have begun and not completed.
    started: usize,
    expected: HashMap<u32, ExpectedNotice>,
    next_notice: u32,
}

impl BulkEngine {
    /// True if completions may concern a transfer or an expected notice.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.started > 0 || !self.expected.is_empty()
    }

    /// True if transfers that this rank has started are in flight.
    #[inline(always)]
    pub(super) fn is_moving(&self) -> bool {
        self.started > 0
    }

    /// Starts a transfer: it joins the queue of `flow` among the queues of its peer, which are
    /// `queue`.
    pub(super) fn start(&mut self, queue: &mut TransferQueue, flow: Flow, transfer: BulkTransfer) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        queue.0[flow as usize].push_back(number);
        self.started += 1;
        self.transfers[number] = Some(Unfinished::new(number, transfer));
    }

    /// The transfer with this number, which is not complete.
    pub(super) fn unfinished(&mut self, number: usize) -> &mut Unfinished {
        let unfinished = self.transfers[number].as_mut();
        unfinished.expect("a transfer is complete only after its last piece")
    }

    /// Records that a piece is complete, and with it every earlier piece of its queue pair. Returns
    /// its flow.
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

    /// The notices that are expected from `peer`: the number of each, and the set of its shares
    /// that have been reported, as a mask.
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

    /// True if the one receive in `wanted` is among those that are reserved for a notice.
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

    /// The number that the next expected notice will get.
    pub(super) fn next_notice(&self) -> u32 {
        self.next_notice
    }

    /// Records that further receives are reserved for a notice.
    pub(super) fn reserved_again(&mut self, notice: u32, reserved: Reserved) {
        if let Some(expected) = self.expected.get_mut(&notice) {
            expected.again.push(reserved);
        }
    }

    /// Expects a notice of `peer`, for which these receives are reserved. Returns its number.
    /// [`next_done`](BulkEngine::next_done) reports its arrival with the token.
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

    /// Records that a notice of `peer` has arrived.
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

    /// Stops expecting a notice. Returns its peer and its receives. `None`: the notice has arrived.
    pub(super) fn forget(&mut self, notice: u32) -> Option<(usize, Reserved, Vec<Reserved>)> {
        let expected = self.expected.remove(&notice)?;
        Some((expected.done.peer, expected.reserved, expected.again))
    }

    /// Moves the work of dead link `link` to `peer` to link `carrier`. `lost` are the pieces that
    /// failed with the link. Those that the peer's `fence` confirms are complete; the others, and
    /// what the link had yet to carry, go to `carrier`.
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

    /// Moves the shares of the `dead` links to `peer` to link `carrier`, which works. Both ends of
    /// the dead links are drained.
    pub(super) fn carry_all(&mut self, peer: usize, carrier: usize, dead: RailSet) {
        let transfers = self.transfers.iter_mut().flatten();
        for transfer in transfers.filter(|own| own.transfer().peer == peer) {
            for link in dead.iter() {
                transfer.leave(link, carrier);
            }
        }
    }

    /// Ends the transfers of `peer` without a report: the peer is lost, and its links are drained.
    /// Returns the receives that were reserved for its notices.
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

    /// The next completed transfer of a family: one of this rank, or one that a peer has reported
    /// by a notice. `None`: no other has completed.
    pub(super) fn next_done(&mut self, family: Family) -> Option<Done> {
        self.done[family as usize].pop_front()
    }
}

#[cfg(test)]
#[path = "bulk_tests.rs"]
mod tests;
