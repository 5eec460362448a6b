//! Costs of collective operations that follow a barrier: ranks begin them at different times,
//! because they leave the barrier at different times.

use super::trees::Ends;
use super::{Algorithm, Case, Collective};

/// The greatest number of ranks that are followed one by one through the barrier before an
/// operation.
const MOST_FOLLOWED: usize = 512;
/// The number of operations and barriers that are simulated before the operation whose time counts.
const ROUNDS: usize = 2;

impl Case {
    /// The times at which ranks leave a barrier that they enter at the times `entered`, in
    /// nanoseconds.
    fn left_barrier(&self, entered: &[u64]) -> Vec<u64> {
        let case = Case { bytes: 0, ..*self };
        let most = self.spread.most.max(1);
        let is_even = self.spread.contiguous && self.ranks == self.spread.hosts * most;
        if !is_even || super::cheapest(Collective::Barrier, &case) != Some(Algorithm::TwoLevel) {
            return self.left_exchanges(entered);
        }
        let host = case.inside_hosts(0);
        let collected = entered
            .chunks(most)
            .map(|of_host| host.up_from(of_host, |_| 0));
        let mut now: Vec<u64> = collected.flatten().collect();
        let leaders: Vec<u64> = now.iter().copied().step_by(most).collect();
        let leaders = case.among_leaders(0, 1).left_exchanges(&leaders);
        for (time, leader) in now.iter_mut().step_by(most).zip(leaders) {
            *time = leader;
        }
        let released = now.chunks(most);
        let released = released.map(|of_host| host.down_from(of_host, |_| 0, false));
        released.flatten().collect()
    }

    /// The times at which ranks end exchanges at the distances 1, 2, 4… that they begin at the
    /// times `entered`, in nanoseconds.
    fn left_exchanges(&self, entered: &[u64]) -> Vec<u64> {
        let mut now = entered.to_vec();
        let mut distance = 1;
        while distance < self.ranks {
            let before = now.clone();
            for (rank, time) in now.iter_mut().enumerate() {
                let from = (rank + self.ranks - distance) % self.ranks;
                let message = self.between(from, rank, 0, 0);
                let arrival = before[from] + message.sending + message.flight;
                *time = arrival.max(before[rank] + message.sending) + message.receiving;
            }
            distance *= 2;
        }
        now
    }

    /// The time that each rank spends in an operation behind a barrier, which follows an equal
    /// operation. Ranks do not leave a barrier together: the last to enter leave it first.
    pub(super) fn behind_barrier(&self, operation: impl Fn(&[u64]) -> Vec<u64>) -> Ends {
        if self.ranks > MOST_FOLLOWED {
            return Ends::of(&operation(&self.together()));
        }
        let mut starts = self.together();
        for _ in 0..ROUNDS {
            starts = self.left_barrier(&operation(&starts));
            let first = starts.iter().copied().min().unwrap_or(0);
            starts.iter_mut().for_each(|start| *start -= first);
        }
        let mut times = operation(&starts);
        for (time, start) in times.iter_mut().zip(&starts) {
            *time -= start;
        }
        Ends::of(&times)
    }
}
