//! The profile of this rank's calls: the time of each procedure, on the rank's clock.

use crate::state::Rank;
use profile::RankProfile;
use std::sync::Arc;
use std::time::Instant;

/// The profile in which this rank's calls are counted.
pub struct CallProfile {
    profile: Arc<RankProfile>,
    /// The name of the procedure that starts MPI.
    first: &'static str,
    start: Instant,
}

impl CallProfile {
    /// A profile whose first call is that of `first` at the time `start`.
    pub fn new(profile: Arc<RankProfile>, first: &'static str, start: Instant) -> CallProfile {
        CallProfile {
            profile,
            first,
            start,
        }
    }

    /// Records that MPI has started on the rank.
    pub fn begin(&self, rank: &Rank) {
        rank.mpi.count_messages(self.profile.clone());
        self.profile.begin(self.first, self.time(rank).now);
    }

    /// Records that the program calls procedure `call`.
    pub fn enter(&self, rank: &Rank, call: &'static str) {
        self.profile.enter(call, self.time(rank).now);
    }

    /// Records that the running procedure returns to the program.
    pub fn leave(&self, rank: &Rank) {
        let time = self.time(rank);
        self.profile.leave(time.now, time.waited);
    }

    /// Records that the rank leaves MPI with the present call.
    pub fn finish(&self, rank: &Rank) {
        let time = self.time(rank);
        self.profile.worked(time.worked);
        self.profile.delayed(time.delayed);
        self.profile.finish(time.now, time.waited);
    }

    /// Records that the rank has computed for `nanos` nanoseconds, with this number of involuntary
    /// context switches, and with this number of threads at a time.
    pub fn computed(&self, switches: u64, nanos: u64, threads: usize) {
        self.profile.computed(switches, nanos, threads);
    }

    /// Records that the program requested MPI_THREAD_MULTIPLE, and gets a lower level.
    pub fn lacks_threads(&self) {
        self.profile.lacks_threads();
    }

    /// The times of the rank from its start until now.
    fn time(&self, rank: &Rank) -> RankTime {
        let time = rank.in_virtual_time.then(|| rank.mpi.virtual_time());
        match time.flatten() {
            Some(time) => RankTime {
                now: time.now,
                waited: Some(time.waited),
                worked: time.worked,
                delayed: time.delayed,
            },
            None => RankTime {
                now: self.start.elapsed().as_nanos() as u64 * 1000,
                waited: None,
                worked: 0,
                delayed: 0,
            },
        }
    }
}

/// The times of a rank, in picoseconds since its start.
struct RankTime {
    now: u64,
    /// The part of the time in which the rank was idle, if it is known.
    waited: Option<u64>,
    /// The part of the time in which the rank has worked on its own memory inside MPI.
    worked: u64,
    /// The part of the time by which the progress thread has delayed the program's computing.
    delayed: u64,
}
