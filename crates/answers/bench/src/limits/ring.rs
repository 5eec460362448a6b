//! A ring of 64-byte slots between two cores, the basis of a shared-memory transport: payload and
//! lap number share a slot, and the receiver publishes its tail from time to time.
//!
//! The rate is measured in two forms: like MPI's message rate, with an answer to each window of
//! messages, and as a stream with one answer at the end.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::figure::Figure;
use super::pinned;
use anyhow::Result;
use results::Unit;

const SLOTS: u64 = 256;
/// The number of slots after which the receiver publishes its tail.
const PUBLISH: u64 = SLOTS / 4;
const PAYLOAD: usize = 8;

const TURNS: u64 = 50_000;
const MESSAGES: u64 = 512_000;
/// The number of messages in a window, as in `bw`.
const WINDOW: u64 = 64;
const SKIP: u64 = 1_000;

/// A slot of the ring: one cache line with payload, header and lap number.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    payload: [AtomicU64; 6],
    header: AtomicU64,
    lap: AtomicU64,
}

#[derive(Default)]
#[repr(align(128))]
struct Tail(AtomicU64);

struct Ring {
    slots: Vec<Slot>,
    tail: Tail,
}

/// The state of one side: its own position, and the last known tail of the receiver.
#[derive(Default)]
struct Cursor {
    at: u64,
    tail: u64,
}

impl Ring {
    fn new() -> Ring {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Ring {
            slots,
            tail: Tail::default(),
        }
    }

    fn put(&self, cursor: &mut Cursor, value: u64) {
        while cursor.at == cursor.tail + SLOTS {
            cursor.tail = self.tail.0.load(Ordering::Acquire);
            spin_loop();
        }
        let slot = &self.slots[(cursor.at % SLOTS) as usize];
        slot.payload[0].store(value, Ordering::Relaxed);
        slot.header.store(PAYLOAD as u64, Ordering::Relaxed);
        slot.lap.store(cursor.at / SLOTS + 1, Ordering::Release);
        cursor.at += 1;
    }

    fn get(&self, cursor: &mut Cursor) -> u64 {
        let slot = &self.slots[(cursor.at % SLOTS) as usize];
        while slot.lap.load(Ordering::Acquire) != cursor.at / SLOTS + 1 {
            spin_loop();
        }
        let value = slot.payload[0].load(Ordering::Relaxed) + slot.header.load(Ordering::Relaxed);
        cursor.at += 1;
        if cursor.at.is_multiple_of(PUBLISH) {
            self.tail.0.store(cursor.at, Ordering::Release);
        }
        value
    }
}

pub(crate) fn latency() -> Result<Vec<Figure>> {
    let (there, back) = (Ring::new(), Ring::new());
    let all = SKIP + TURNS;
    let value = pinned::pair(
        || {
            let (mut put, mut get) = (Cursor::default(), Cursor::default());
            let mut turn = |value| {
                there.put(&mut put, value);
                black_box(back.get(&mut get));
            };
            (0..SKIP).for_each(&mut turn);
            let start = Instant::now();
            (SKIP..all).for_each(turn);
            Ok(start.elapsed().as_secs_f64() * 1e6 / TURNS as f64 / 2.0)
        },
        || {
            let (mut put, mut get) = (Cursor::default(), Cursor::default());
            (0..all).for_each(|_| back.put(&mut put, there.get(&mut get)));
            Ok(())
        },
    )?;
    Ok(vec![Figure {
        name: "ring-latency",
        size: PAYLOAD,
        unit: Unit::Microseconds,
        value,
    }])
}

pub(crate) fn rate() -> Result<Vec<Figure>> {
    let figure = |(name, window)| {
        let unit = Unit::MessagesPerSecond;
        Ok(Figure {
            name,
            size: PAYLOAD,
            unit,
            value: messages_per_second(window)?,
        })
    };
    [("ring-rate", WINDOW), ("ring-stream", MESSAGES)]
        .into_iter()
        .map(figure)
        .collect()
}

/// The rate of a sender that waits for an answer after every `window` messages.
fn messages_per_second(window: u64) -> Result<f64> {
    let (there, back) = (Ring::new(), Ring::new());
    let windows = MESSAGES / window;
    pinned::pair(
        || {
            let (mut put, mut get) = (Cursor::default(), Cursor::default());
            let mut one = || {
                (0..window).for_each(|at| there.put(&mut put, at));
                black_box(back.get(&mut get));
            };
            one();
            let start = Instant::now();
            (0..windows).for_each(|_| one());
            Ok((windows * window) as f64 / start.elapsed().as_secs_f64())
        },
        || {
            let (mut put, mut get) = (Cursor::default(), Cursor::default());
            (0..=windows).for_each(|_| {
                (0..window).for_each(|_| {
                    black_box(there.get(&mut get));
                });
                back.put(&mut put, window);
            });
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_comes_out_in_order_lap_after_lap() {
        let ring = Ring::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut put = Cursor::default();
                (0..10 * SLOTS + 3).for_each(|at| ring.put(&mut put, at));
            });
            let mut get = Cursor::default();
            for at in 0..10 * SLOTS + 3 {
                assert_eq!(ring.get(&mut get), at + PAYLOAD as u64);
            }
        });
    }
}
