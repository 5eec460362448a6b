//! Who looks at a program's calls from between them: on a modelled machine, what the program computes there may take
//! virtual time, and a record may want to know when each call began and ended.
//!
//! While the program computes, the library's pointer to the rank stands elsewhere (`state`), so a call does not find it,
//! comes by here, and is made again. A rank that nobody watches pays nothing for it.

use crate::error::Error;
use crate::raise;
use crate::state::Rank;
use model::compute_trace::Replay;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Watch(Mutex<Inner>);

struct Inner {
    time: Time,
    /// The processor's time when the program was last left alone, and what reading it takes.
    since: u64,
    reading: u64,
}

/// Where the time comes from that computing takes.
pub enum Time {
    None,
    /// So many thousandths of the processor's time.
    Measured(u64),
    Replayed(Replay),
}

impl Watch {
    pub fn new(time: Time) -> Watch {
        let readings = (0..32).map(|_| {
            let before = processor_time();
            processor_time() - before
        });
        Watch(Mutex::new(Inner {
            reading: readings.min().unwrap_or(0),
            time,
            since: 0,
        }))
    }

    /// A call begins.
    pub fn enter(&self, rank: &Rank, call: &'static str) {
        let mut inner = self.lock();
        let (since, reading) = (inner.since, inner.reading);
        let computed = match &mut inner.time {
            Time::None => 0,
            Time::Measured(scale) => {
                let time = processor_time().saturating_sub(since + reading);
                (u128::from(time) * u128::from(*scale) / 1000) as u64
            }
            Time::Replayed(replay) => match replay.next(call) {
                Ok(nanos) => nanos,
                Err(why) => {
                    let why = format!(
                        "rank {}: {why}: what is replayed was recorded from a run that went otherwise (another program, \
                         other arguments, another machine); record it again",
                        rank.rank()
                    );
                    raise::fatal(rank, call, &Error::new(mpi::Class::OTHER, why))
                }
            },
        };
        rank.mpi.enter(call, computed);
    }

    /// It goes back to the program.
    pub fn leave(&self, rank: &Rank) {
        rank.mpi.leave();
        self.begin();
    }

    /// From now on the program computes.
    pub fn begin(&self) {
        let mut inner = self.lock();
        if let Time::Measured(_) = inner.time {
            inner.since = processor_time();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all threads of the process together have had of processors, in nanoseconds: other ranks share the core, so the wall
/// clock would count theirs too.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
