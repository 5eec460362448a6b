//! Packets that break the protocol: each is an error that names it, and none makes this rank panic.

use proptest::prelude::*;

use channel::Router;

use super::Messages;
use super::protocol::{CopyCostSource, Limits};
use crate::matching::Key;
use crate::packet::{Control, Cooperative, Eager, Envelope, Kind, ReadyToReceive};

const PEER: usize = 1;

fn messages() -> Messages {
    let limits = Limits {
        pieces: 0,
        blocking_pieces: 0,
        eager: None,
        single_copy: 128 << 10,
        cooperative: 128 << 10,
        unexpected: 16 << 20,
        rendezvous: knobs::Rendezvous::Auto,
        announces: true,
        copy_costs: CopyCostSource::Learned,
        announces_all: false,
        forced: None,
    };
    Messages::new(&mut Router::alone(), 1 + PEER, limits)
}

/// The error after these packets.
fn after(packets: &[(Kind, u32, &[u8])]) -> String {
    let mut messages = messages();
    for &(kind, token, body) in packets {
        let _ = messages.on_packet(PEER, Control::about(kind, token).encode(), body);
    }
    messages
        .broken
        .map_or(String::new(), |error| error.to_string())
}

#[test]
fn pieces_of_no_message_or_of_too_many_bytes_are_named() {
    for (packets, what) in [
        (
            &[(Kind::Eager(Eager::NextPiece), 0, &[1; 8][..])][..],
            "a piece of no message",
        ),
        (
            &[(Kind::Eager(Eager::FirstPiece), 4, &[1; 8])],
            "more bytes than it announced",
        ),
        (
            &[
                (Kind::Eager(Eager::FirstPiece), 10, &[1; 8]),
                (Kind::Eager(Eager::NextPiece), 0, &[1; 8]),
            ],
            "more bytes than it announced",
        ),
        (
            &[
                (Kind::Eager(Eager::FirstPiece), 10, &[1; 8]),
                (Kind::Eager(Eager::FirstPiece), 10, &[1; 8]),
            ],
            "amid the pieces of another",
        ),
        (
            &[(Kind::Cooperative(Cooperative::Pushed), 0, &[1; 8])],
            "that it was not asked for",
        ),
        (
            &[(Kind::Cooperative(Cooperative::Returned), 0, &[])],
            "a piece back of a message that it was not asked for",
        ),
        (
            &[(Kind::Cooperative(Cooperative::Invite), 0, &[0; 32])],
            "an invitation that cannot be read",
        ),
        (
            &[(
                Kind::ReadyToReceive(ReadyToReceive::Announce),
                1 << 16,
                &[0; 30],
            )],
            "announcements of receives that cannot be read",
        ),
        (
            &[(Kind::ReadyToReceive(ReadyToReceive::Announce), 0, &[0; 8])],
            "announcements of receives that cannot be read",
        ),
        (
            &[(Kind::ReadyToReceive(ReadyToReceive::Start), 7, &[0; 8])],
            "a receive that was not announced to it",
        ),
    ] {
        let said = after(packets);
        assert!(
            said.contains(what) && said.contains("rank 1"),
            "{what}: {said}"
        );
    }
}

#[test]
fn a_message_in_pieces_that_is_whole_is_kept() {
    let mut messages = messages();
    for (kind, token, body) in [
        (Kind::Eager(Eager::FirstPiece), 10, 8),
        (Kind::Eager(Eager::NextPiece), 0, 2),
    ] {
        let _ = messages.on_packet(PEER, Control::about(kind, token).encode(), &[1; 8][..body]);
    }
    let kept: Vec<_> = messages
        .unexpected()
        .map(|(_, one)| one.body.bytes())
        .collect();
    assert_eq!((kept, messages.broken.is_none()), (vec![10], true));
}

proptest! {
    /// Any packets, in any order.
    #[test]
    fn no_packet_ends_this_rank(
        packets in prop::collection::vec(
            (any::<u8>(), 0u32..4, any::<i32>(), prop::collection::vec(any::<u8>(), 0..64)),
            0..20,
        ),
    ) {
        let mut messages = messages();
        for (kind, token, tag, body) in packets {
            let key = Key { context: 0, source: 0, tag };
            let mut head = Envelope { kind: Kind::Eager(Eager::Whole), key, token }.encode();
            head[0] = head[0] & !0xff | u64::from(kind);
            let _ = messages.on_packet(PEER, head, &body);
        }
    }
}
