//! The bulk engine: the account of zero-copy transfers, and of the notices that peers owe this
//! rank.
//!
//! It posts nothing itself: [`BulkEngine::next_piece`] says what is to be posted for a peer. The
//! transfers of one peer are posted in the order in which they were started.
//!
//! Invariant: an expected notice stands for one write, and is forgotten only by the
//! completion of that write or by `forget`. A notice that is not expected is a fault of the peer.

use std::collections::{HashMap, VecDeque};

use device::{Operation, Remote, Slice};

use super::qp_link::PieceId;
use crate::{Done, Head};

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the peer's memory to this rank's.
    Read,
    /// From this rank's memory to the peer's. The notice reports the end to the peer.
    Write { notice: Option<u32> },
}

/// A transfer, as it is asked for. The keys are those of `rail`.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkTransfer {
    pub peer: usize,
    /// The rail that carries the transfer.
    pub rail: usize,
    pub direction: Direction,
    /// The beginning of the memory of this rank.
    pub local: LocalMemory,
    /// The beginning of the memory of the peer.
    pub remote: Remote,
    pub len: usize,
    /// Comes back when the transfer is complete.
    pub token: Head,
}

/// Memory of this rank, as work requests name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalMemory {
    pub address: u64,
    pub lkey: u32,
}

/// A work request of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub id: PieceId,
    pub operation: Operation,
    pub local: Slice,
}

/// A transfer that has not completed.
struct Unfinished {
    transfer: BulkTransfer,
    /// Bytes that have been posted.
    posted: usize,
}

/// A notice that a peer owes.
struct ExpectedNotice {
    /// The rail over which the peer writes.
    rail: usize,
    done: Done,
}

/// The transfers of one peer that are not posted to their end, in the order in which they were
/// started. The endpoint keeps it for the engine.
#[derive(Default)]
pub(super) struct TransferQueue(VecDeque<usize>);

/// The transfers of a rank.
#[derive(Default)]
pub(super) struct BulkEngine {
    /// By number. Those that are complete are empty.
    transfers: Vec<Option<Unfinished>>,
    free: Vec<usize>,
    done: VecDeque<Done>,
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

    /// Starts a transfer, behind the earlier transfers of its peer, whose queue is `queue`.
    pub(super) fn start(&mut self, queue: &mut TransferQueue, transfer: BulkTransfer) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        queue.0.push_back(number);
        let posted = 0;
        self.transfers[number] = Some(Unfinished { transfer, posted });
        self.started += 1;
    }

    /// The next work request of a queue, of at most `longest` bytes. It stays the next one until it
    /// is [`posted`](Self::posted).
    #[inline]
    pub(super) fn next_piece(&self, queue: &TransferQueue, longest: usize) -> Option<Piece> {
        let number = *queue.0.front()?;
        let Unfinished { transfer, posted } = self.unfinished(number);
        let len = (transfer.len - posted).min(longest);
        let last = posted + len == transfer.len;
        let at = *posted as u64;
        let remote = Remote {
            address: transfer.remote.address + at,
            ..transfer.remote
        };
        let operation = match transfer.direction {
            Direction::Read => Operation::Read { from: remote },
            Direction::Write { notice } => Operation::Write {
                to: remote,
                immediate: notice.filter(|_| last),
            },
        };
        Some(Piece {
            id: PieceId {
                rail: transfer.rail,
                transfer: number,
                last,
            },
            operation,
            local: Slice {
                address: transfer.local.address + at,
                len: len as u32,
                lkey: transfer.local.lkey,
            },
        })
    }

    /// The next work request of a queue has been posted.
    pub(super) fn posted(&mut self, queue: &mut TransferQueue, piece: &Piece) {
        let unfinished = self.transfers[piece.id.transfer].as_mut();
        let unfinished = unfinished.expect("a transfer is complete only after its last piece");
        unfinished.posted += piece.local.len as usize;
        if piece.id.last {
            let first = queue.0.pop_front();
            debug_assert_eq!(first, Some(piece.id.transfer));
        }
    }

    /// A piece is complete, and with it every earlier piece on its rail to the same peer.
    pub(super) fn completed(&mut self, peer: usize, piece: PieceId) {
        let unfinished = self.unfinished(piece.transfer);
        assert_eq!(
            (unfinished.transfer.peer, unfinished.transfer.rail),
            (peer, piece.rail),
            "a completion of another connection's transfer"
        );
        if piece.last {
            let token = unfinished.transfer.token;
            self.transfers[piece.transfer] = None;
            self.free.push(piece.transfer);
            self.started -= 1;
            self.done.push_back(Done { peer, token });
        }
    }

    fn unfinished(&self, number: usize) -> &Unfinished {
        let unfinished = self.transfers[number].as_ref();
        unfinished.expect("a transfer is complete only after its last piece")
    }

    /// Expects a notice of `peer` over `rail`. Returns its number. `done` reports its arrival with
    /// the token.
    pub(super) fn expect(&mut self, rail: usize, peer: usize, token: Head) -> u32 {
        let notice = self.next_notice;
        self.next_notice = notice.wrapping_add(1);
        let done = Done { peer, token };
        let before = self.expected.insert(notice, ExpectedNotice { rail, done });
        assert!(before.is_none(), "notice {notice} is expected already");
        notice
    }

    /// A notice of `peer` has arrived over `rail`. False: it is not expected.
    pub(super) fn notice(&mut self, rail: usize, peer: usize, notice: u32) -> bool {
        match self.expected.remove(&notice) {
            Some(expected) if expected.done.peer == peer && expected.rail == rail => {
                self.done.push_back(expected.done);
                true
            }
            _ => false,
        }
    }

    /// Stops expecting a notice. Returns its rail. None: it has arrived.
    pub(super) fn forget(&mut self, notice: u32) -> Option<usize> {
        self.expected.remove(&notice).map(|expected| expected.rail)
    }

    /// The next transfer that is complete: one of this rank's, or one that a peer has reported by a
    /// notice.
    pub(super) fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(peer: usize, direction: Direction, len: usize, token: u64) -> BulkTransfer {
        BulkTransfer {
            peer,
            rail: 1,
            direction,
            local: LocalMemory {
                address: 1000,
                lkey: 1,
            },
            remote: Remote {
                address: 9000,
                rkey: 2,
            },
            len,
            token: [token, 0, 0],
        }
    }

    /// Posts one piece of at most 100 bytes.
    fn post(bulk: &mut BulkEngine, queue: &mut TransferQueue) -> Option<Piece> {
        let piece = bulk.next_piece(queue, 100)?;
        bulk.posted(queue, &piece);
        Some(piece)
    }

    #[test]
    fn a_transfer_is_cut_and_only_its_last_piece_gives_notice_and_ends_it() {
        let (mut bulk, mut queue) = (BulkEngine::default(), TransferQueue::default());
        let notice = Some(77);
        bulk.start(&mut queue, transfer(3, Direction::Write { notice }, 250, 5));
        let pieces: Vec<Piece> = std::iter::from_fn(|| post(&mut bulk, &mut queue)).collect();
        let shape = |piece: &Piece| {
            let Operation::Write { to, immediate } = piece.operation else {
                panic!("a write is asked for");
            };
            (piece.local.address, piece.local.len, to.address, immediate)
        };
        let shapes: Vec<_> = pieces.iter().map(shape).collect();
        let expected = [
            (1000, 100, 9000, None),
            (1100, 100, 9100, None),
            (1200, 50, 9200, Some(77)),
        ];
        assert_eq!(shapes, expected);
        bulk.completed(3, pieces[0].id);
        assert!(bulk.is_active() && bulk.next_done().is_none());
        bulk.completed(3, pieces[2].id);
        let done = Done {
            peer: 3,
            token: [5, 0, 0],
        };
        assert_eq!(bulk.next_done(), Some(done));
        assert!(!bulk.is_active());
    }

    #[test]
    fn transfers_of_a_peer_are_posted_in_order_and_do_not_wait_for_other_peers() {
        let mut bulk = BulkEngine::default();
        let mut queues: [TransferQueue; 3] = Default::default();
        for (peer, token) in [(1, 10), (2, 20), (1, 11)] {
            let transfer = transfer(peer, Direction::Read, 60, token);
            bulk.start(&mut queues[peer], transfer);
        }
        let ids = [2, 1, 1].map(|peer| post(&mut bulk, &mut queues[peer]).unwrap().id);
        assert!(
            queues
                .iter_mut()
                .all(|queue| post(&mut bulk, queue).is_none())
        );
        for (peer, id) in [(1, ids[1]), (1, ids[2]), (2, ids[0])] {
            bulk.completed(peer, id);
        }
        let tokens: Vec<u64> = std::iter::from_fn(|| bulk.next_done())
            .map(|done| done.token[0])
            .collect();
        assert_eq!(tokens, [10, 11, 20]);
    }

    #[test]
    fn a_transfer_of_no_bytes_is_one_piece() {
        let (mut bulk, mut queue) = (BulkEngine::default(), TransferQueue::default());
        bulk.start(&mut queue, transfer(1, Direction::Read, 0, 1));
        let piece = post(&mut bulk, &mut queue).unwrap();
        assert!(piece.id.last && piece.local.len == 0);
    }

    #[test]
    fn a_notice_counts_once_and_only_from_its_peer_and_rail() {
        let mut bulk = BulkEngine::default();
        let expect = |bulk: &mut BulkEngine| bulk.expect(1, 4, [9; 3]);
        let notice = expect(&mut bulk);
        assert!(bulk.is_active());
        assert!(bulk.notice(1, 4, notice) && !bulk.notice(1, 4, notice));
        assert_eq!(bulk.next_done().unwrap().token, [9; 3]);
        for (rail, peer) in [(0, 4), (1, 5)] {
            let notice = expect(&mut bulk);
            assert!(!bulk.notice(rail, peer, notice));
        }
        let notice = expect(&mut bulk);
        assert_eq!(bulk.forget(notice), Some(1));
        assert_eq!(bulk.forget(notice), None);
        assert!(!bulk.notice(1, 4, notice) && bulk.next_done().is_none());
    }
}
