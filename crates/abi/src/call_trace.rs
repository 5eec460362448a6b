//! Tracing of a program's MPI calls and of its computing between them. On a modelled machine,
//! computing may take virtual time, and a trace records when each call began and ended.
//!
//! While a traced program computes, the library's pointer to the rank is null (`state`). An entry
//! point that finds null announces the call here and retries it. An untraced rank pays nothing.

use crate::error::Error;
use crate::raise;
use crate::state::Rank;

use model::compute_trace::{CallKind, Replay};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The trace of this rank's calls.
pub struct Watch(Mutex<Inner>);

struct Inner {
    time: Time,
    /// The processor time at which the last call returned.
    since: u64,
    /// The processor time that one reading of the clock takes.
    reading: u64,
}

/// The source of the time that computing takes.
pub enum Time {
    /// Computing takes no virtual time.
    None,
    /// Measured processor time, scaled by this many thousandths.
    Measured(u64),
    /// Durations recorded in an earlier run.
    Replayed(Replay),
}

impl Watch {
    /// A trace before the first call.
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
    pub fn enter(&self, rank: &Rank, call: &'static str, kind: CallKind) {
        let mut inner = self.lock();
        let (since, reading) = (inner.since, inner.reading);
        let computed = match &mut inner.time {
            Time::None => 0,
            Time::Measured(scale) => {
                let time = processor_time().saturating_sub(since + reading);
                (u128::from(time) * u128::from(*scale) / 1000) as u64
            }
            Time::Replayed(replay) => replay
                .enter(call, kind)
                .unwrap_or_else(|why| another_run(rank, call, &why)),
        };
        rank.mpi.enter(call, computed);
    }

    /// The call returns to the program.
    pub fn leave(&self, rank: &Rank, call: &'static str, kind: CallKind, has_result: bool) {
        if let Time::Replayed(replay) = &mut self.lock().time
            && let Err(why) = replay.leave(call, kind, has_result)
        {
            another_run(rank, call, &why);
        }
        rank.mpi.leave(has_result);
        self.begin();
    }

    /// The program computes from now on.
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

/// The program makes other calls than in the recorded run.
#[cold]
fn another_run(rank: &Rank, call: &'static str, why: &str) -> ! {
    let why = format!(
        "rank {}: {why}: the replayed compute trace was recorded from a different run (another program, other arguments), or \
         the program's calls depend on time; record it again on a machine more like this one",
        rank.rank()
    );
    raise::fatal(rank, call, &Error::new(mpi::Class::OTHER, why))
}

/// Processor time of all threads of this process, in nanoseconds. Wall-clock time would include
/// other ranks that share the core.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is a local variable, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
