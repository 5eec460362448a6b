use device::Operation;

use super::super::notice::tests::word;
use super::super::rail_set::{KeyPair, RailKeys};
use super::super::transfer::{Direction, LocalMemory, Piece, RailPair};
use super::*;
use crate::{RemoteKey, suite};

const RAILS: RailPair = RailPair { ours: 0, theirs: 0 };

fn transfer(peer: usize, direction: Direction, len: u64, token: u64) -> BulkTransfer {
    let mut keys = RailKeys::default();
    keys.insert(0, KeyPair { lkey: 1, rkey: 5 });
    BulkTransfer {
        peer,
        direction,
        local: LocalMemory {
            address: 1000,
            keys,
        },
        remote: RemoteKey::new(9000, 1 << 30, &[2]),
        len,
        token: suite::token(token),
    }
}

/// Gives everything to one link, as an endpoint with one link does, and posts one piece of at most
/// 100 bytes.
fn post(bulk: &mut BulkEngine, queue: &mut TransferQueue) -> Option<Piece> {
    post_of(bulk, queue, Flow::Out)
}

/// As `post`, for the transfers in the queue of a flow.
fn post_of(bulk: &mut BulkEngine, queue: &mut TransferQueue, of: Flow) -> Option<Piece> {
    let unfinished = bulk.unfinished(queue.first(of)?);
    if unfinished.is_undecided() {
        let left = unfinished.unassigned();
        unfinished.assign(0, left);
        unfinished.decide(0);
    }
    let piece = unfinished.next_piece(0, RAILS, 100)?;
    unfinished.posted(&piece.id, piece.id.last);
    if unfinished.is_posted() {
        queue.advance(of);
    }
    Some(piece)
}

#[test]
fn a_transfer_is_cut_and_only_its_last_piece_gives_notice_and_ends_it() {
    let (mut bulk, mut queue) = (BulkEngine::default(), TransferQueue::default());
    let notice = Some(77);
    bulk.start(
        &mut queue,
        Flow::Out,
        transfer(3, Direction::Write { notice }, 250, 5),
    );
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
        (1200, 50, 9200, Some(word(77, 0, 1).encode())),
    ];
    assert_eq!(shapes, expected);
    assert!(bulk.is_active() && bulk.next_done(Family::Messages).is_none());
    bulk.completed(3, &pieces[2].id);
    let done = Done {
        peer: 3,
        token: suite::token(5),
    };
    assert_eq!(bulk.next_done(Family::Messages), Some(done));
    assert!(!bulk.is_active());
}

#[test]
fn transfers_of_a_peer_are_posted_in_order_and_do_not_wait_for_other_peers() {
    let mut bulk = BulkEngine::default();
    let mut queues: [TransferQueue; 3] = Default::default();
    for (peer, token) in [(1, 10), (2, 20), (1, 11)] {
        let transfer = transfer(peer, Direction::Read, 60, token);
        bulk.start(&mut queues[peer], Flow::Out, transfer);
    }
    let ids = [2, 1, 1].map(|peer| post(&mut bulk, &mut queues[peer]).unwrap().id);
    assert!(
        queues
            .iter_mut()
            .all(|queue| post(&mut bulk, queue).is_none())
    );
    for (peer, id) in [(1, ids[1]), (1, ids[2]), (2, ids[0])] {
        bulk.completed(peer, &id);
    }
    let tokens: Vec<u64> = std::iter::from_fn(|| bulk.next_done(Family::Messages))
        .map(|done| done.token.id)
        .collect();
    assert_eq!(tokens, [10, 11, 20]);
}

#[test]
fn neither_flow_waits_for_the_other() {
    let (mut bulk, mut queue) = (BulkEngine::default(), TransferQueue::default());
    let write = transfer(1, Direction::Write { notice: None }, 60, 1);
    bulk.start(&mut queue, Flow::In, transfer(1, Direction::Read, 250, 0));
    bulk.start(&mut queue, Flow::Out, write);
    let is_read = |piece: Piece| matches!(piece.operation, Operation::Read { .. });
    assert_eq!(
        post_of(&mut bulk, &mut queue, Flow::In).map(is_read),
        Some(true)
    );
    let written = post_of(&mut bulk, &mut queue, Flow::Out).unwrap();
    assert_eq!(bulk.completed(1, &written.id), Flow::Out);
    let done = bulk.next_done(Family::Messages).unwrap();
    assert_eq!(done.token, suite::token(1), "before the read");
    assert!(queue.first(Flow::Out).is_none() && !queue.is_empty());
}

#[test]
fn a_transfer_of_no_bytes_is_one_piece() {
    let (mut bulk, mut queue) = (BulkEngine::default(), TransferQueue::default());
    bulk.start(&mut queue, Flow::Out, transfer(1, Direction::Read, 0, 1));
    let piece = post(&mut bulk, &mut queue).unwrap();
    assert!(piece.id.last && piece.local.len == 0);
    assert!(post(&mut bulk, &mut queue).is_none());
}

#[test]
fn every_link_that_carried_a_part_gives_notice_and_names_their_number() {
    let (mut bulk, mut queue) = (BulkEngine::default(), TransferQueue::default());
    let notice = Some(3);
    bulk.start(
        &mut queue,
        Flow::Out,
        transfer(1, Direction::Write { notice }, 300, 1),
    );
    let unfinished = bulk.unfinished(0);
    // Link 2 takes a piece while other bytes are unassigned; links 0 and 1 take the rest.
    assert_eq!(unfinished.assign(2, 100), 100);
    let early = unfinished.next_piece(2, RAILS, 1000).unwrap();
    unfinished.posted(&early.id, true);
    assert!(!early.id.last && unfinished.next_piece(2, RAILS, 1000).is_none());
    assert_eq!(
        (unfinished.assign(0, 120), unfinished.assign(1, 500)),
        (120, 80)
    );
    unfinished.decide(0);
    let mut notices = Vec::new();
    for share in 0..3 {
        let piece = unfinished.next_piece(share, RAILS, 1000).unwrap();
        let Operation::Write { immediate, .. } = piece.operation else {
            panic!("a write is asked for");
        };
        notices.push((immediate.map(NoticeWord::decode), piece.local.len));
        assert!(!unfinished.is_posted());
        unfinished.posted(&piece.id, true);
    }
    let expected = [(0, 120), (1, 80), (2, 0)];
    let expected = expected.map(|(share, len)| (Some(word(3, share, 3)), len));
    assert_eq!(notices, expected);
    assert!(unfinished.is_posted());
    for piece in 0..4 {
        assert!(
            bulk.next_done(Family::Messages).is_none(),
            "after {piece} completions"
        );
        bulk.completed(1, &early.id);
    }
    assert!(bulk.next_done(Family::Messages).is_some());
}

#[test]
fn a_notice_counts_once_and_only_from_its_peer() {
    let mut bulk = BulkEngine::default();
    let reserved = Reserved::Rails(RailSet::below(2));
    let expect = |bulk: &mut BulkEngine| bulk.expect(4, reserved, suite::token(9));
    let notice = expect(&mut bulk);
    assert!(bulk.is_active());
    assert_eq!(bulk.notice(4, word(notice, 1, 2)), Noticed::Part);
    assert_eq!(bulk.notice(4, word(notice, 1, 2)), Noticed::Part);
    assert_eq!(bulk.notice(5, word(notice, 0, 2)), Noticed::Unexpected);
    let whole = bulk.notice(4, word(notice, 0, 2));
    assert_eq!(whole, Noticed::Whole(reserved, Vec::new()));
    assert_eq!(bulk.notice(4, word(notice, 0, 2)), Noticed::Unexpected);
    assert_eq!(
        bulk.next_done(Family::Messages).unwrap().token,
        suite::token(9)
    );
    let notice = expect(&mut bulk);
    assert_eq!(bulk.forget(notice), Some((4, reserved, Vec::new())));
    assert_eq!(bulk.forget(notice), None);
    assert_eq!(bulk.notice(4, word(notice, 0, 1)), Noticed::Unexpected);
    assert!(bulk.next_done(Family::Messages).is_none());
}
