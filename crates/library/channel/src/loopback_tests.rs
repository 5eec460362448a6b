//! The promises of zero copy within one rank.

use super::*;
use crate::suite::{exposed, memory, room, token};

#[test]
fn a_key_is_a_number_and_never_followed() {
    let mut loopback = Loopback::of(3);
    let (sent, mut received) = ([7u8; 100], [0u8; 100]);
    let from = exposed(&mut loopback, 3, &memory(&sent), Exposed::ToRead);
    let to = exposed(&mut loopback, 3, &room(&mut received), Exposed::ToWrite);
    let key = from.key();
    let read = loopback.read(3, &key, &to, 10..60, token(0)).unwrap();
    assert_eq!(read, Transfer::Done);
    assert!(received[10..60] == sent[10..60] && received[..10] == [0; 10]);
    // A part of a key begins at its own offset, and ends where the part ends.
    let part = key.part(60..80).unwrap();
    let read = loopback.read(3, &part, &to, 0..20, token(0)).unwrap();
    assert!(read == Transfer::Done && received[..20] == sent[60..80]);
    let beyond = loopback.read(3, &part, &to, 0..21, token(0)).unwrap_err();
    assert!(beyond.to_string().contains("beyond the memory"), "{beyond}");
    loopback.retract(from).unwrap();
    for stale in [key, RemoteKey::new(0xdead_beef, 100, &[]), RemoteKey::NONE] {
        let error = loopback.read(3, &stale, &to, 0..8, token(0)).unwrap_err();
        assert!(error.to_string().contains("not exposed"), "{error}");
    }
    loopback.retract(to).unwrap();
}
