//! Fuzz targets for the private parsers of this crate; the crate `fuzzed` runs them. A target
//! accepts any bytes, and panics if a promise is broken.

use fuzz_input::Script;

use crate::ring::{Contents, INLINE, Memory, Receiver, Sender, Slot};
use crate::shm::{Shape, heap};
use crate::sync::Ordering;
use crate::{Head, Put};

pub use crate::rdma::fuzzing::{handshakes, slots};

/// Number of slots of the ring under test.
const SLOTS: usize = 4;
/// Bytes of the arenas of the ring under test.
const ARENA: usize = 8 << 10;

/// A ring in shared memory whose sender follows a script: it sends packets, or writes arbitrary
/// values to a slot or to the receiver's tail.
///
/// The promises: a packet of a correct sender arrives as it was put; whatever a peer writes, a body
/// lies within the ring's memory and is no longer than the longest packet.
pub fn rings(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let shape = Shape::new(SLOTS, ARENA).expect("a shape that a ring can have");
    let (sending, receiving) = heap::ring(shape);
    let most = sending.arenas().max_body();
    let (mut sender, mut receiver) = (Sender::new(sending), Receiver::new(receiving));
    // The packets in flight; `None` once the sender has written an arbitrary value.
    let mut honest = Some(std::collections::VecDeque::new());
    let mut put = 0;
    while !script.is_over() {
        match script.below(8) {
            0..=2 => {
                let (mark, len) = (script.byte(), script.below(most + 1));
                let head = [mark.into(), put, len as u64];
                let accepted = sender.put(head, len, |body| body.fill(mark)) != Put::Full;
                put += u64::from(accepted);
                if let Some(honest) = honest.as_mut().filter(|_| accepted) {
                    honest.push_back((head, len));
                }
            }
            3..=5 => {
                if !take(
                    &mut receiver,
                    &mut sender,
                    honest.as_mut(),
                    most,
                    &mut script,
                ) {
                    return;
                }
            }
            6 => {
                honest = None;
                forge(receiver.memory(), &mut script);
            }
            _ => {
                honest = None;
                let tail = script.number() << 32 | script.number();
                sender.memory().tail().store(tail, Ordering::Release);
            }
        }
    }
}

type InFlight = std::collections::VecDeque<(Head, usize)>;

/// Lets the receiver consume a packet. False: the packet was invalid, which ends the rank.
fn take(
    receiver: &mut Receiver<impl Memory>,
    sender: &mut Sender<impl Memory>,
    honest: Option<&mut InFlight>,
    most: usize,
    script: &mut Script,
) -> bool {
    if receiver.is_empty() {
        assert!(honest.is_none_or(|honest| honest.is_empty()));
        return true;
    }
    let due = honest.map(|honest| honest.pop_front());
    let reports = script.is_one_in(2);
    let on_report = |heard| {
        if reports {
            sender.on_report(heard);
        }
    };
    let taken = receiver.take(on_report, |head, body| {
        assert!(body.len() <= most.max(INLINE));
        if let Some(due) = due {
            assert_eq!(due, Some((head, body.len())));
            assert!(body.iter().all(|byte| u64::from(*byte) == head[0]));
        }
        // Reads every byte of the body.
        body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte))
    });
    taken.is_ok()
}

/// Writes arbitrary contents and an arbitrary flag to a slot.
fn forge(memory: &impl Memory, script: &mut Script) {
    let slot = memory.slot(script.below(SLOTS) as u32);
    let mut inline = [0; INLINE];
    let words = [script.number(), script.number(), script.number()];
    for (to, word) in inline.chunks_mut(4).zip(words) {
        to.copy_from_slice(&(word as u32).to_ne_bytes());
    }
    let len = script.number() as u32;
    slot.contents(|contents| {
        *contents = Contents {
            len,
            head: words,
            inline,
        };
    });
    slot.flag().store(script.byte().into(), Ordering::Release);
}
