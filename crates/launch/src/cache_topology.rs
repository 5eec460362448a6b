//! How far apart the cores of this machine are at the moment: how long a cache line takes from one to another.
//!
//! Messages best go through the cache where cores share one, and past it where every line would be fetched from another
//! core's only to be taken away again. Which of the two a machine is cannot be read anywhere that can be
//! trusted (a virtual machine's cores move), but it takes some microseconds to find out.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const TRIES: u32 = 4;
/// Turns of a try. The first try brings both threads to their cores.
const TURNS: u32 = 100;
/// A line that takes longer, one way, is not handed on by a cache that both share.
const NEAR: Duration = Duration::from_nanos(80);
/// Who has not been answered for so long shares his core with somebody else, and measures nothing.
const PATIENCE: Duration = Duration::from_millis(2);

#[repr(align(128))]
struct Line(AtomicU32);

/// Whether two cores that this process may use share a cache. None: there are no two, or they are too busy to tell.
pub(crate) fn cores_are_near() -> Option<bool> {
    let allowed = sched_getaffinity(None).ok()?;
    let one_way = one_way(two_cores(&allowed)?);
    // This thread began on any of them, and goes on so.
    sched_setaffinity(None, &allowed).ok()?;
    Some(one_way? <= NEAR)
}

/// How long a cache line takes from one core to the other; this thread is on the first afterwards.
fn one_way([first, second]: [usize; 2]) -> Option<Duration> {
    let line = Line(AtomicU32::new(0));
    let give_up = Instant::now() + PATIENCE;
    // Even numbers are answered by one side, odd ones by the other.
    let play = |first_turn: u32, mine: u32| {
        let begin = Instant::now();
        for turn in first_turn..first_turn + TURNS {
            let wanted = 2 * turn + mine;
            let mut looks = 0u32;
            while line.0.load(Ordering::Acquire) != wanted {
                spin_loop();
                looks += 1;
                if looks.is_multiple_of(1024) && Instant::now() > give_up {
                    return None;
                }
            }
            line.0.store(wanted + 1, Ordering::Release);
        }
        Some(begin.elapsed() / (2 * TURNS))
    };
    // Whatever disturbs them makes it longer.
    let least = |mine| {
        let tries: Option<Vec<_>> = (0..TRIES).map(|at| play(at * TURNS, mine)).collect();
        tries?.into_iter().min()
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| pin(second).and_then(|()| least(1)));
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
    use super::*;

    #[test]
    fn one_core_is_near_to_none() {
        let none = thread::spawn(|| {
            let allowed = sched_getaffinity(None).unwrap();
            pin((0..CpuSet::MAX_CPU)
                .find(|&core| allowed.is_set(core))
                .unwrap())
            .unwrap();
            cores_are_near()
        });
        assert_eq!(none.join().unwrap(), None);
    }
}
