//! The profile of this rank's calls: the time of each procedure, on the rank's clock.

use crate::state::Rank;
use model::compute_trace::Differences;
use profile::RankProfile;
use std::sync::Arc;
use std::time::Instant;

/// The profile of this rank's calls.
pub struct CallProfile {
    profile: Arc<RankProfile>,
    /// The procedure that starts MPI, and the time of its call on a real machine.
    first: &'static str,
    start: Instant,
}

impl CallProfile {
    /// A profile that begins with the call of `first` at `start`.
    pub fn new(profile: Arc<RankProfile>, first: &'static str, start: Instant) -> CallProfile {
        CallProfile {
            profile,
            first,
            start,
        }
    }

    /// MPI has started.
    pub fn begin(&self, rank: &Rank) {
        rank.mpi.count_messages(self.profile.clone());
        self.profile.begin(self.first, self.time(rank).now);
    }

    /// The program calls a procedure.
    pub fn enter(&self, rank: &Rank, call: &'static str) {
        self.profile.enter(call, self.time(rank).now);
    }

    /// The procedure returns.
    pub fn leave(&self, rank: &Rank) {
        let time = self.time(rank);
        self.profile.leave(time.now, time.waited);
    }

    /// The rank leaves MPI with the present call.
    pub fn finish(&self, rank: &Rank) {
        let time = self.time(rank);
        self.profile.worked(time.worked);
        self.profile.delayed(time.delayed);
        self.profile.finish(time.now, time.waited);
    }

    /// The rank has computed for so many nanoseconds, with so many involuntary switches, and with
    /// so many threads side by side.
    pub fn computed(&self, switches: u64, nanos: u64, threads: usize) {
        self.profile.computed(switches, nanos, threads);
    }

    /// Notes the differences between the replay of the rank's computing and the recording.
    pub fn differs(&self, found: &Differences) {
        if let Some(first) = &found.first {
            self.profile.differs(found.invented, found.left_out, first);
        }
    }

    /// The program asked for MPI_THREAD_MULTIPLE, and gets less.
    pub fn lacks_threads(&self) {
        self.profile.lacks_threads();
    }

    /// The times of the rank at this moment.
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
    /// The idle part of them, if it is known.
    waited: Option<u64>,
    /// The part for which it has worked inside MPI on its own memory.
    worked: u64,
    /// The part by which the progress thread has made computing longer.
    delayed: u64,
}
