//! The measured time for the transfer of a cache line between two cores, which shows whether the
//! cores share a cache.
//!
//! It is measured, because no description of the topology can be trusted: the cores of a virtual
//! machine move. A measurement takes only some microseconds.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

/// The number of tries of a measurement; the shortest is its result.
const TRIES: u32 = 4;
/// Round trips in a try. During the first try both threads move to their cores.
const TURNS: u32 = 100;
/// The longest one-way time of a cache line between two hardware threads of one core.
const ONE_CORE: Duration = Duration::from_nanos(35);
/// The longest one-way time of a cache line between cores that share a cache.
const NEAR: Duration = Duration::from_nanos(80);
/// The longest time of a measurement. Threads that share one core run one at a time and exceed it;
/// they measure nothing.
const PATIENCE: Duration = Duration::from_millis(2);

/// The cache distance of two hardware threads, judged by the transfer time of a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proximity {
    /// The two places are hardware threads of one core.
    OneCore,
    /// The two cores share a cache.
    Near,
    /// The two cores have no cache in common.
    Far,
}

impl Proximity {
    /// The distance of two hardware threads between which a cache line takes the time `one_way`.
    pub fn of(one_way: Duration) -> Proximity {
        match one_way {
            time if time <= ONE_CORE => Proximity::OneCore,
            time if time <= NEAR => Proximity::Near,
            _ => Proximity::Far,
        }
    }

    /// The name of the distance in messages.
    pub fn words(self) -> &'static str {
        match self {
            Proximity::OneCore => "threads of one core",
            Proximity::Near => "near cores",
            Proximity::Far => "far cores",
        }
    }
}

#[repr(align(128))]
struct CacheLine(AtomicU32);

/// Measures the one-way time of a cache line between the hardware threads of `pair`, or the first
/// two that this process may use. `None`: there is only one, or they are too busy.
pub fn between_two_cores(pair: Option<[usize; 2]>) -> Option<Duration> {
    let allowed = sched_getaffinity(None).ok()?;
    let one_way = one_way(pair.or_else(|| two_cores(&allowed))?);
    // Undoes the binding of this thread.
    sched_setaffinity(None, &allowed).ok()?;
    one_way
}

/// Measures the one-way time of a cache line between two hardware threads. Leaves the calling
/// thread bound to the first.
fn one_way([first, second]: [usize; 2]) -> Option<Duration> {
    let line = CacheLine(AtomicU32::new(0));
    let give_up = Instant::now() + PATIENCE;
    // One thread writes the odd numbers, the other the even ones.
    let play = |first_turn: u32, mine: u32| {
        let begin = Instant::now();
        for turn in first_turn..first_turn + TURNS {
            let wanted = 2 * turn + mine;
            let mut polls = 0u32;
            while line.0.load(Ordering::Acquire) != wanted {
                spin_loop();
                polls += 1;
                if polls.is_multiple_of(1024) && Instant::now() > give_up {
                    return None;
                }
            }
            line.0.store(wanted + 1, Ordering::Release);
        }
        Some(begin.elapsed() / (2 * TURNS))
    };
    // Disturbances only lengthen a try, so the least time is the best.
    let least = |mine| {
        let tries: Option<Vec<_>> = (0..TRIES).map(|at| play(at * TURNS, mine)).collect();
        tries?.into_iter().min()
    };
    thread::scope(|scope| {
        // Where the system refuses a thread, there is no result.
        let other = thread::Builder::new()
            .spawn_scoped(scope, || pin(second).and_then(|()| least(1)))
            .ok()?;
        let own = pin(first).and_then(|()| least(0));
        other.join().ok().flatten().and(own)
    })
}

fn two_cores(allowed: &CpuSet) -> Option<[usize; 2]> {
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
    Some([cores.next()?, cores.next()?])
}

fn pin(core: usize) -> Option<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_core_is_near_to_none() {
        let none = thread::spawn(|| {
            let allowed = sched_getaffinity(None).unwrap();
            pin((0..CpuSet::MAX_CPU)
                .find(|&core| allowed.is_set(core))
                .unwrap())
            .unwrap();
            between_two_cores(None)
        });
        assert_eq!(none.join().unwrap(), None);
    }

    proptest! {
        #[test]
        fn a_longer_time_is_never_nearer(one in 0u64..500, more in 0u64..500) {
            let place = |nanos| Proximity::of(Duration::from_nanos(nanos)) as u8;
            prop_assert!(place(one) <= place(one + more));
        }
    }
}
