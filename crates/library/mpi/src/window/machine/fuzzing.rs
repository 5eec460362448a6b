//! The fuzz target for the active messages of an origin.

use std::sync::Arc;

use channel::Router;
use datatype::{Pool, Predefined, Type};
use fuzz_input::Script;

use super::messages::{Answer, FOLLOWING, HEAD, Head, Kind};
use super::{Facts, Flavor, Memory, Part, Ports, Window};
use crate::comm::{Core, Members};
use crate::p2p::Messages;
use crate::p2p::protocol::Limits;

/// Bytes before and after the window, which no message may change.
const MARGIN: usize = 64;
/// Bytes of the window.
const SIZE: usize = 256;

/// Applies messages of an origin, which is this rank itself, and answers of a target.
///
/// The promise: no message ends this rank by a panic or changes a byte outside of the window. A
/// message that breaks the protocol is an error.
pub(crate) fn run(bytes: &[u8], limits: Limits) {
    let mut script = Script::new(bytes);
    on_a_window(limits, |window, ports| {
        while !script.is_over() {
            let went_on = match script.is_one_in(6) {
                true => {
                    let answer = Answer::decode(script.bytes(20));
                    answer.is_none_or(|answer| window.on_answer(ports, 0, answer).is_ok())
                }
                false => {
                    let message = message(&mut script);
                    let is_followed = message.first() == Some(&(Kind::Describe as u8));
                    let went_on = window.apply(ports, 0, &message).is_ok();
                    if is_followed && script.is_one_in(2) {
                        follow(window, ports, &description(&mut script));
                    }
                    went_on
                }
            };
            if !went_on {
                break;
            }
        }
    });
}

/// Calls `acts` with a window of a rank that is alone, then checks the bytes around the window.
fn on_a_window(limits: Limits, acts: impl FnOnce(&mut Window, &mut Ports)) {
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
    acts(&mut window, &mut ports);
    let mut now = [0; SIZE + 2 * MARGIN];
    whole.pack(0, &mut now);
    assert!(now[..MARGIN] == [0xa5; MARGIN] && now[SIZE + MARGIN..] == [0xa5; MARGIN]);
}

/// Sends the bytes that follow a message, as an origin does, and receives all that has arrived.
fn follow(window: &mut Window, ports: &mut Ports, bytes: &[u8]) {
    let room = ports.room(bytes.len()).expect("a few bytes");
    room.unpack(0, bytes);
    let key = window.data_key(0, FOLLOWING);
    let sent = ports.send_from_library(&room, 0, key);
    sent.expect("this rank is there");
    take_all(ports);
}

fn take_all(ports: &mut Ports) {
    while ports.messages.round(ports.router).expect("no peer") {}
}

/// A description of a datatype, or arbitrary bytes.
fn description(script: &mut Script) -> Vec<u8> {
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
    description
}

/// A message that is nearly valid, or arbitrary bytes.
fn message(script: &mut Script) -> Vec<u8> {
    if script.is_one_in(8) {
        return script.bytes(100).to_vec();
    }
    let description = description(script);
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
    // A description of a length that the fuzzer's own memory limits allow, or of one for which no
    // system has memory.
    if head[0] == Kind::Describe as u8 {
        let len = match script.number() {
            len if len < 1 << 16 => len,
            len => len | 1 << 62,
        };
        head[32..].copy_from_slice(&len.to_ne_bytes());
    } else if script.is_one_in(2) {
        head[32..].copy_from_slice(&(data.len() as u64).to_ne_bytes());
    }
    let message = [&head[..], &description, data].concat();
    // A decoded head encodes to the bytes from which it was decoded.
    if let Some((decoded, ..)) = Head::decode(&message) {
        assert_eq!(decoded.encode()[..2], head[..2]);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::machine::messages::SAME_TYPE;
    use crate::{Class, Error};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_break_the_promise(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            run(&bytes, crate::fuzzing::limits_of_tests());
        }
    }

    fn describe(len: u64) -> Vec<u8> {
        let head = Head {
            len,
            ..Head::of(Kind::Describe)
        };
        head.encode().into()
    }

    /// A put of one byte at the start of the window, with the type of the previous operation.
    fn put(byte: u8) -> Vec<u8> {
        let head = Head {
            flags: SAME_TYPE,
            count: 1,
            len: 1,
            ..Head::of(Kind::Put)
        };
        [&head.encode()[..], &[byte]].concat()
    }

    fn first_byte(window: &Window) -> u8 {
        let byte = Predefined::BYTE.into();
        let mut now = [0];
        window.memory.find(0, 1, &byte).unwrap().pack(0, &mut now);
        now[0]
    }

    fn error_of(window: &mut Window, ports: &mut Ports) -> Option<Error> {
        take_all(ports);
        window.serve(ports).unwrap();
        window.failure.take()
    }

    #[test]
    fn an_operation_waits_for_the_description_of_its_type() {
        on_a_window(crate::fuzzing::limits_of_tests(), |window, ports| {
            let mut description = Vec::new();
            Type::from(Predefined::BYTE).describe(&mut description);
            let len = description.len() as u64;
            assert!(window.apply(ports, 0, &describe(len)).unwrap());
            assert!(!window.apply(ports, 0, &put(1)).unwrap());
            // Neither a flush nor another description overtakes the first description.
            let flush = Head::of(Kind::Flush).encode();
            assert!(!window.apply(ports, 0, &flush).unwrap());
            assert!(!window.apply(ports, 0, &describe(len)).unwrap());
            follow(window, ports, &description);
            assert!(window.apply(ports, 0, &put(1)).unwrap());
            assert_eq!(first_byte(window), 1);
        });
    }

    #[test]
    fn bytes_that_describe_nothing_are_an_error_of_the_protocol() {
        on_a_window(crate::fuzzing::limits_of_tests(), |window, ports| {
            assert!(window.apply(ports, 0, &describe(3)).unwrap());
            follow(window, ports, &[0xee; 3]);
            let error = window.apply(ports, 0, &put(1)).unwrap_err();
            assert_eq!(error.class, Class::INTERN);
            assert_eq!(first_byte(window), 0xa5);
        });
    }

    /// No system has memory for such a type. The operations of that type fail, and the next type
    /// works.
    #[test]
    fn a_description_without_memory_for_it_is_an_error_at_the_origin() {
        on_a_window(crate::fuzzing::limits_of_tests(), |window, ports| {
            assert!(window.apply(ports, 0, &describe(1 << 62)).unwrap());
            // The bytes that follow are received nevertheless.
            follow(window, ports, &[1; 40]);
            for _ in 0..2 {
                assert!(window.apply(ports, 0, &put(1)).unwrap());
                let error = error_of(window, ports).unwrap();
                assert_eq!(error.class, Class::NO_MEM);
                assert!(error.detail.contains("4611686018427387904"), "{error}");
            }
            assert_eq!(first_byte(window), 0xa5);
            let mut description = Vec::new();
            Type::from(Predefined::BYTE).describe(&mut description);
            assert!(window.apply(ports, 0, &describe(3)).unwrap());
            follow(window, ports, &description);
            assert!(window.apply(ports, 0, &put(2)).unwrap());
            assert_eq!((first_byte(window), error_of(window, ports)), (2, None));
        });
    }
}
