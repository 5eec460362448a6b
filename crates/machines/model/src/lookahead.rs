//! Lookahead: the time by which a rank may run ahead of the others, because nothing that they do,
//! and no pending event, can become visible to it before. Each handover of the turn that this saves
//! is a switch between processes.
//!
//! A rank sees only its inbox, and everything enters the inbox by an HCA's write to memory
//! (`write_latency`). An event writes to a rank that it is *near* to: it is a packet for that rank,
//! or an answer to its request. The effect of every other event, and of every request that a rank
//! posts, first has to cross a cable and a chip. So the bounds are the times of the near events, of
//! the first event, and of the first other rank, each plus the least latency after it. Invariants:
//! - a run has the virtual times of a run in lockstep, to the picosecond;
//! - an access to shared state is made in the order of time (`settle`, `catch_up`); an access that
//!   sees only the inbox may be made ahead (`observe`), and so may one to the rank's own state
//!   (`stay`);
//! - events of one time happen in the order in which lockstep would have scheduled them.
//!
//! Ranks run in lockstep if there are faults, a record, or ranks that share a host: there an event
//! may be visible at once. They also do so from the time at which a queue pair is made that
//! completes requests as soon as they have left, or a queue pair is connected within its own host,
//! or an atomic changes memory. A request that fails in its own HCA, which is an error of the
//! program, may be noticed later than in lockstep, by the time of a cable and a chip.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::faults::Faults;
use super::timing::Timing;

/// The least times until something becomes visible to a rank, by its cause.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    /// The least time from an event near to a rank until something becomes visible to the rank.
    near: Time,
    /// The least time from any other event until something becomes visible to a rank.
    far: Time,
    /// The least time from an action of another rank until something becomes visible to a rank.
    rank: Time,
}

/// The lookahead of a machine: the time until which each rank may run ahead of the others.
pub(crate) struct Lookahead {
    least: Least,
    /// The pending events near to each rank, in order.
    near_events: Vec<NearEvents>,
}

/// The times of the pending events that are near to one rank, in order.
struct NearEvents {
    times: Vec<Time>,
    /// The index, in `times`, of the first event that is still pending.
    first: usize,
}

impl NearEvents {
    fn new(memory: WorldMemory) -> NearEvents {
        NearEvents {
            times: Vec::new_in(memory),
            first: 0,
        }
    }

    fn insert(&mut self, at: Time) {
        let mut place = self.times.len();
        while place > self.first && self.times[place - 1] > at {
            place -= 1;
        }
        self.times.insert(place, at);
    }

    /// Removes the first event of the list, which happens now.
    fn remove_first(&mut self) {
        self.first += 1;
        if self.first == self.times.len() {
            self.times.clear();
            self.first = 0;
        } else if self.first >= 1024 {
            self.times.drain(..self.first);
            self.first = 0;
        }
    }

    fn first(&self) -> Time {
        self.times.get(self.first).copied().unwrap_or(Time::MAX)
    }
}

/// True if ranks on these hosts need not run in lockstep: there is no fault and no shared host.
pub(crate) fn may_run_ahead(faults: &Faults, hosts: impl Iterator<Item = u32>) -> bool {
    let Faults {
        loss,
        late,
        scatter,
        breaks,
        completions,
        ports,
        ..
    } = faults;
    let calm = *loss == 0
        && *late == 0
        && scatter.is_none()
        && *breaks == 0
        && *completions == u32::MAX
        && ports.as_slice().is_empty();
    let mut hosts: std::vec::Vec<u32> = hosts.collect();
    hosts.sort_unstable();
    let shared = hosts.windows(2).any(|two| two[0] == two[1]);
    calm && !shared
}

impl Lookahead {
    /// The lookahead of `ranks` ranks on a machine whose rails have these timings.
    pub(crate) fn new(memory: WorldMemory, rails: &[Timing], ranks: usize) -> Lookahead {
        let least = |time: &dyn Fn(&Timing) -> Time| {
            let times = rails.iter().map(time);
            times.min().unwrap_or(0)
        };
        let near = least(&|timing| timing.write_latency);
        let cable = least(&|timing| {
            let rail = timing.costs.rail();
            let hops = u32::from(rail.switch.ports > 0);
            rail.flight(hops).picos() + timing.receive
        });
        let far = cable + near;
        let rank = far + least(&|timing| timing.mmio(0));
        let mut near_events = Vec::new_in(memory);
        near_events.extend((0..ranks).map(|_| NearEvents::new(memory)));
        Lookahead {
            least: Least { near, far, rank },
            near_events,
        }
    }

    /// Keeps ranks from running ahead from now on: something may be visible at once.
    pub(crate) fn keep_in_step(&mut self) {
        self.least = Least::default();
    }

    /// The time before which a rank sees nothing of the first pending event (due at `event`), of
    /// the first other rank (due at `other`), and of anything after them.
    #[inline]
    pub(crate) fn horizon(&self, rank: u32, event: Time, other: Time) -> Time {
        let Least {
            near,
            far,
            rank: by,
        } = self.least;
        let own = self.near_events[rank as usize].first();
        own.saturating_add(near)
            .min(event.saturating_add(far))
            .min(other.saturating_add(by))
    }

    /// Records that an event near to a rank has been scheduled for the time `at`.
    #[inline]
    pub(crate) fn expect(&mut self, rank: u32, at: Time) {
        self.near_events[rank as usize].insert(at);
    }

    /// Records that the first pending event near to a rank happens.
    #[inline]
    pub(crate) fn happens(&mut self, rank: u32) {
        self.near_events[rank as usize].remove_first();
    }
}

#[cfg(test)]
mod tests {
    use sim::memory::Memory;

    use super::*;

    #[test]
    fn the_horizon_is_the_least_of_three_bounds() {
        let memory = Memory::private().unwrap();
        let system = fabric::catalogue::Catalogue::builtin()
            .system("edr")
            .unwrap();
        let rails = [Timing::new(memory.shared(), &system, 0)];
        let mut lookahead = Lookahead::new(memory.shared(), &rails, 2);
        let Least { near, far, rank } = lookahead.least;
        assert!(0 < near && near < far && far < rank, "{near} {far} {rank}");
        assert!(
            rank < crate::efforts::OOB_LATENCY,
            "a datagram would be too early"
        );
        let never = Time::MAX;
        assert_eq!(lookahead.horizon(0, 5, never), 5 + far);
        assert_eq!(lookahead.horizon(0, never, 5), 5 + rank);
        lookahead.expect(0, 5);
        assert_eq!(lookahead.horizon(0, 5, 5), 5 + near);
        assert_eq!(lookahead.horizon(1, 5, 5), 5 + far, "near to rank 0 only");
        lookahead.keep_in_step();
        assert_eq!(lookahead.horizon(1, 7, 6), 6);
    }

    #[test]
    fn shared_hosts_and_faults_keep_ranks_in_lockstep() {
        let lossy = Faults {
            loss: 1,
            ..Faults::default()
        };
        let runs_ahead = |hosts: [u32; 2], faults| may_run_ahead(&faults, hosts.into_iter());
        assert!(runs_ahead([0, 1], Faults::default()));
        assert!(!runs_ahead([0, 0], Faults::default()));
        assert!(!runs_ahead([0, 1], lossy));
    }

    #[test]
    fn near_events_are_kept_in_order() {
        let memory = Memory::private().unwrap();
        let mut events = NearEvents::new(memory.shared());
        assert_eq!(events.first(), Time::MAX);
        [5, 3, 9, 3].into_iter().for_each(|at| events.insert(at));
        for wanted in [3, 3, 5, 9] {
            assert_eq!(events.first(), wanted);
            events.remove_first();
        }
        assert_eq!((events.first(), events.times.len()), (Time::MAX, 0));
    }
}
