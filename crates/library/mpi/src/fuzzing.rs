//! Targets of the fuzzer for the packets of a peer and for active messages: crate `fuzzed` runs
//! them. They take any bytes, and panic where a promise is broken.

use channel::{RemoteKey, Router};
use datatype::Buffer;
use fuzz_input::Script;

use crate::matching::Key;
use crate::p2p::Messages;
use crate::p2p::protocol::{CopyCostSource, Limits};
use crate::packet::{
    ClearToSend, Envelope, Invitation, Kind, Offer, RunClass, Started, Target, encode,
};

/// The peer that sends the packets.
const PEER: usize = 1;

/// Handles packets of a peer, with receives posted among them.
///
/// The promise: no packet ends this rank by a panic, and an error about a packet that breaks the
/// protocol names the peer.
pub fn packets(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let limits = limits(&mut script);
    let mut messages = Messages::new(&mut Router::alone(), 1 + PEER, limits);
    while !script.is_over() && messages.broken.is_none() {
        let key = Key {
            context: 0,
            source: script.of(&[0, 1]),
            tag: script.of(&[0, 1, -1]),
        };
        if script.is_one_in(4) {
            let _ = messages.receive(Buffer::empty(), key);
            continue;
        }
        let kind = script.of(Kind::ALL);
        let token = script.number() as u32;
        let mut head = Envelope { kind, key, token }.encode();
        if script.is_one_in(8) {
            head[0] ^= script.number();
        }
        let body = body(&mut script);
        let _ = messages.on_packet(PEER, head, &body);
    }
    if let Some(broken) = &messages.broken {
        assert!(broken.to_string().contains("rank 1"), "{broken}");
    }
}

/// Active messages of an origin of one-sided communication. `window::fuzzing` states the promise.
pub fn windows(bytes: &[u8]) {
    crate::window::fuzzing::run(bytes, limits(&mut Script::new(&[])));
}

#[cfg(test)]
pub(crate) fn limits_of_tests() -> Limits {
    limits(&mut Script::new(&[]))
}

fn limits(script: &mut Script) -> Limits {
    Limits {
        eager: None,
        pieces: 0,
        blocking_pieces: 0,
        single_copy: 128 << 10,
        cooperative: 128 << 10,
        unexpected: 1 << 10,
        rendezvous: script.of(&[
            knobs::Rendezvous::Auto,
            knobs::Rendezvous::Read,
            knobs::Rendezvous::Write,
        ]),
        announces: script.is_one_in(2),
        copy_costs: script.of(&[CopyCostSource::Learned, CopyCostSource::Estimated]),
        announces_all: false,
        forced: None,
    }
}

/// A body of some kind of packet, or any bytes.
fn body(script: &mut Script) -> Vec<u8> {
    let (number, kind) = (script.number(), script.below(8));
    let mut key = number.to_ne_bytes().to_vec();
    key.extend(script.bytes(8 * 4).as_chunks::<4>().0.as_flattened());
    let key = RemoteKey::decode(&key, number).expect("an address, and keys of at most eight rails");
    let receive = script.byte().into();
    let notice = script.byte().into();
    match kind {
        0 => encode(&Offer {
            len: number >> 7,
            shared: script.is_one_in(2),
            push: script.is_one_in(2),
            settled: script.is_one_in(2),
            runs: RunClass::from_code(script.byte().into()),
            key,
        }),
        1 => encode(&ClearToSend { receive }),
        2 => encode(&Target {
            len: number,
            notice,
            receive,
            key,
        }),
        3 => encode(&Started { len: number }),
        4 => encode(&Invitation {
            len: number,
            generation: notice,
            piece: script.byte().into(),
            push: script.is_one_in(2).then_some(receive),
            key,
        }),
        5 => {
            // Announcements: the progress of the receiver, then targets.
            let mut bytes = number.to_ne_bytes().to_vec();
            for _ in 0..script.below(3) {
                let target = Target {
                    len: 64,
                    notice,
                    receive,
                    key,
                };
                bytes.extend(encode(&target));
            }
            bytes.extend(script.bytes(24));
            bytes
        }
        _ => script.bytes(100).to_vec(),
    }
}
