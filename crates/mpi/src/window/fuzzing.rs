//! The target of the fuzzer for the active messages of an origin.

use std::sync::Arc;

use channel::Router;
use datatype::{Pool, Predefined, Type};
use script::Script;

use super::messages::{Answer, HEAD, Head};
use super::{Facts, Flavor, Memory, Part, Ports, Window};
use crate::comm::{Core, Members};
use crate::p2p::Messages;
use crate::p2p::protocol::Limits;

/// Bytes around the window, which no message may change.
const MARGIN: usize = 64;
/// Bytes of the window.
const SIZE: usize = 256;

/// Messages of an origin, which is this rank itself, and answers of a target.
///
/// The promise: no message ends this rank by a panic or changes a byte outside of the window; one
/// that breaks the protocol is an error.
pub(crate) fn run(bytes: &[u8], limits: Limits) {
    let mut script = Script::new(bytes);
    let mut router = Router::alone();
    let mut messages = Messages::new(&mut router, 1, limits);
    let mut scratch = Pool::default();
    let byte = Predefined::BYTE.into();
    let whole = scratch.elements(SIZE + 2 * MARGIN, &byte);
    let whole = whole.expect("a few bytes").buffer();
    whole.unpack(0, &[0xa5; SIZE + 2 * MARGIN]);
    let part = Part {
        size: SIZE as u64,
        disp_unit: 1,
        address: 0,
    };
    let mut window = Window::new(
        (0, Arc::new(Core::new(7, Members::All(1), 0))),
        (Facts::new(0, SIZE, 1, Flavor::Create), Flavor::Create),
        vec![part],
        Memory::Run(whole.slice(MARGIN, SIZE)),
    );
    let mut ports = Ports {
        messages: &mut messages,
        router: &mut router,
        scratch: &mut scratch,
    };
    while !script.is_over() {
        let went_on = match script.is_one_in(6) {
            true => {
                let answer = Answer::decode(script.bytes(20));
                answer.is_none_or(|answer| window.on_answer(&mut ports, 0, answer).is_ok())
            }
            false => {
                let message = message(&mut script);
                window.apply(&mut ports, 0, &message).is_ok()
            }
        };
        if !went_on {
            break;
        }
    }
    let mut now = [0; SIZE + 2 * MARGIN];
    whole.pack(0, &mut now);
    assert!(now[..MARGIN] == [0xa5; MARGIN] && now[SIZE + MARGIN..] == [0xa5; MARGIN]);
}

/// A message that is nearly one, or any bytes.
fn message(script: &mut Script) -> Vec<u8> {
    if script.is_one_in(8) {
        return script.bytes(100).to_vec();
    }
    let mut description = Vec::new();
    if script.is_one_in(3) {
        description.extend(script.bytes(60));
    } else {
        let int = Predefined::INT.into();
        let count = i64::from(script.byte() % 8);
        let stride = script.number() as i64;
        let ty = Type::vector(count, 1 + i64::from(script.byte() % 3), stride, &int);
        ty.unwrap_or(int).describe(&mut description);
    }
    let data = script.bytes(64);
    let mut head = [0; HEAD];
    head[0] = script.byte() % 24;
    head[1] = script.byte() % 8;
    head[2] = script.byte();
    head[4..8].copy_from_slice(&(description.len() as u32).to_ne_bytes());
    for place in head[8..].chunks_exact_mut(8) {
        let small = u64::from(script.byte());
        let number = match script.is_one_in(4) {
            true => script.number(),
            false => small,
        };
        place.copy_from_slice(&number.to_ne_bytes());
    }
    if script.is_one_in(2) {
        head[32..].copy_from_slice(&(data.len() as u64).to_ne_bytes());
    }
    let message = [&head[..], &description, data].concat();
    // A decoded head comes back as it was.
    if let Some((decoded, ..)) = Head::decode(&message) {
        assert_eq!(decoded.encode()[..2], head[..2]);
    }
    message
}
