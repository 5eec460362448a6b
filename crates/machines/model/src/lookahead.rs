//! How far a rank may run ahead of the others: as far as nothing that they do, and no pending
//! event, can become visible to it. Each handover of the turn that this saves is a switch between
//! processes.
//!
//! A rank sees its inbox only, and everything enters it by way of an HCA's write to memory
//! (`write_latency`). An event writes to a rank that it is *near* to: a packet for that rank, or an
//! answer to its request. Every other event, and every request that a rank posts, first has to
//! cross a cable and a chip. So the bounds are the times of the near events, of the first event,
//! and of the first other rank, each with the least latency behind it. Invariants:
//! - a run has the virtual times of a run in lockstep, to the picosecond;
//! - an access to what others share goes in the order of time (`settle`, `catch_up`); one that sees
//!   nothing but the inbox may be ahead (`observe`), and so may one to the rank's own (`stay`);
//! - events of one time happen in the order in which lockstep would have scheduled them.
//!
//! Ranks run in lockstep where there are faults, a record, or ranks that share a host: there an
//! event may be visible at once. They do so from the moment at which a queue pair is made that
//! completes requests as soon as they have left, or that reaches its own host, or at which an
//! atomic changes memory. A request that fails in its own HCA, which is a program's error, may be
//! noticed later than in lockstep, by the time of a cable and a chip.

use device::Transport;
use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::faults::Faults;
use super::message::RequestKind;
use super::{Event, MachineModel};

/// The least times until something becomes visible to a rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lookahead {
    /// After an event that is near to the rank.
    near: Time,
    /// After another event.
    far: Time,
    /// After an action of another rank.
    rank: Time,
}

/// The times of the pending events that are near to a rank, in order.
pub(super) struct NearEvents {
    times: Vec<Time>,
    /// The place of the first.
    first: usize,
}

impl NearEvents {
    pub(super) fn new(memory: WorldMemory) -> NearEvents {
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

    /// Removes the first, which happens now.
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

impl MachineModel {
    /// True if no fault, record or shared host keeps ranks in lockstep.
    pub(super) fn may_run_ahead(&self) -> bool {
        let Faults {
            loss,
            late,
            scatter,
            breaks,
            completions,
            ports,
            ..
        } = &self.faults;
        let calm = *loss == 0
            && *late == 0
            && scatter.is_none()
            && *breaks == 0
            && *completions == u32::MAX
            && ports.as_slice().is_empty();
        let mut hosts: std::vec::Vec<u32> = self.ranks.iter().map(|rank| rank.host).collect();
        hosts.sort_unstable();
        let shared = hosts.windows(2).any(|two| two[0] == two[1]);
        calm && !shared && !self.is_recording()
    }

    /// Works out the lookahead of a machine whose ranks may run ahead.
    pub(super) fn look_ahead(&mut self) {
        if !self.may_run_ahead() {
            return;
        }
        let rails = &self.timings[..self.timings.len() - 1];
        let least = |time: &dyn Fn(&super::Timing) -> Time| {
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
        self.lookahead = Some(Lookahead { near, far, rank });
    }

    /// A queue pair is made. Without acknowledgements, requests complete as soon as they have left.
    pub(super) fn keep_in_step_with(&mut self, transport: Transport) {
        if transport != Transport::Rc {
            self.keep_in_step();
        }
    }

    /// Keeps ranks from running ahead from now on: something may be visible at once.
    pub(super) fn keep_in_step(&mut self) {
        if let Some(lookahead) = &mut self.lookahead {
            *lookahead = Lookahead::default();
        }
    }

    /// The time before which a rank sees nothing of the first event, the first other rank, and
    /// anything after them.
    #[inline]
    pub(super) fn horizon_of(&self, rank: u32, event: Time, other: Time) -> Time {
        let Some(Lookahead {
            near,
            far,
            rank: by,
        }) = self.lookahead
        else {
            return event.min(other);
        };
        let own = self.ranks[rank as usize].near_events.first();
        own.saturating_add(near)
            .min(event.saturating_add(far))
            .min(other.saturating_add(by))
    }

    /// The rank that an event may write to.
    #[inline]
    fn near_to(&self, event: &Event) -> Option<u32> {
        let q = match *event {
            Event::Arrive { message, .. } => self.messages[message].to,
            Event::Answered { message, .. }
            | Event::Acknowledged { message }
            | Event::Refused { message, .. } => self.messages[message].from,
            // The last one fails the requests.
            Event::Timeout { qp, .. } => qp,
            _ => return None,
        };
        Some(self.qps[q as usize].rank)
    }

    /// An event has been scheduled.
    #[inline]
    pub(super) fn expect(&mut self, at: Time, event: &Event) {
        if self.lookahead.is_none() {
            return;
        }
        if let Event::Serve { message } = *event
            && self.messages[message].kind != RequestKind::Read
        {
            // An atomic changes memory at once.
            self.keep_in_step();
        }
        if let Some(rank) = self.near_to(event) {
            self.ranks[rank as usize].near_events.insert(at);
        }
    }

    /// An event happens.
    #[inline]
    pub(super) fn happens(&mut self, event: &Event) {
        if self.lookahead.is_some()
            && let Some(rank) = self.near_to(event)
        {
            self.ranks[rank as usize].near_events.remove_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use sim::memory::Memory;

    use super::*;

    /// A machine with these hosts of ranks.
    fn machine(memory: &Memory, hosts: &[u32], faults: Faults) -> MachineModel {
        let system = fabric::catalogue::Catalogue::builtin()
            .system("edr")
            .unwrap();
        let mut machine = MachineModel::new(memory.shared(), &system, hosts, faults);
        machine.look_ahead();
        machine
    }

    #[test]
    fn the_horizon_is_the_least_of_three_bounds() {
        let memory = Memory::private().unwrap();
        let mut machine = machine(&memory, &[0, 1], Faults::default());
        let Lookahead { near, far, rank } = machine.lookahead.unwrap();
        assert!(0 < near && near < far && far < rank, "{near} {far} {rank}");
        assert!(
            rank < crate::node::OOB_LATENCY,
            "a datagram would be too early"
        );
        let never = Time::MAX;
        assert_eq!(machine.horizon_of(0, 5, never), 5 + far);
        assert_eq!(machine.horizon_of(0, never, 5), 5 + rank);
        machine.ranks[0].near_events.insert(5);
        assert_eq!(machine.horizon_of(0, 5, 5), 5 + near);
        assert_eq!(machine.horizon_of(1, 5, 5), 5 + far, "near to rank 0 only");
        machine.keep_in_step();
        assert_eq!(machine.horizon_of(1, 7, 6), 6);
    }

    #[test]
    fn shared_hosts_and_faults_keep_ranks_in_lockstep() {
        let lossy = Faults {
            loss: 1,
            ..Faults::default()
        };
        let memory = Memory::private().unwrap();
        let runs_ahead = |hosts, faults| machine(&memory, hosts, faults).lookahead.is_some();
        assert!(runs_ahead(&[0, 1], Faults::default()));
        assert!(!runs_ahead(&[0, 0], Faults::default()));
        assert!(!runs_ahead(&[0, 1], lossy));
        let recording = machine(&memory, &[0, 1], Faults::default()).recording();
        assert_eq!(recording.horizon_of(0, 7, 6), 6);
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
