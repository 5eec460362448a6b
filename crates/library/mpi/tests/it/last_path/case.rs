//! A case: a fault that cuts all paths between two parts of a job, for how long, on which machine,
//! and amid which traffic. All of it follows from a seed.

use fabric::System;
use model::config::MachineConfig;
use model::{Faults, IntraHost, PortFault, PortFaultKind};
use sim::Random;

use super::traffic::{BETWEEN, TRAFFICS, Traffic};
use crate::common::modelled::system;

/// Nanoseconds.
pub(super) const MILLI: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MILLI;
/// The limit of FISHPLATE_OUTAGE in these cases.
pub(super) const PATIENCE: u64 = 40 * SECOND;
/// The start of a fault after the end of every program, in nanoseconds.
pub(super) const NEVER: u64 = 10_000_000 * SECOND;

/// The lengths of faults that the patience outlasts.
const SPANS: [u64; 6] = [
    100 * MILLI,
    500 * MILLI,
    SECOND,
    3 * SECOND,
    10 * SECOND,
    30 * SECOND,
];

/// The kind of the fault of each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The cable is cut, and the port reports it to the host's ranks.
    Down,
    /// Nothing passes, and no port reports it.
    Silent,
    /// Packets to the port are not acknowledged, while out-of-band messages pass.
    Unacknowledged,
    /// The cable has a loose contact.
    Flapping,
}

/// The parts of the job that the fault separates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separated {
    /// One host from all others.
    Host(u32),
    /// One host from one other: each has lost the rails that the other has.
    Pair(u32, u32),
}

/// The part of the program into which the fault falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before the first message.
    Start,
    /// After this many thousandths of the traffic.
    Amid(u64),
    /// After this many thousandths of the rank's end.
    Finish(u64),
}

/// A case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) traffic: &'static Traffic,
    /// Requests of one rank for each partner in a round.
    pub(super) requests: usize,
    pub(super) rounds: u64,
    /// The longest computing of a rank between two rounds, in nanoseconds.
    pub(super) computing: u64,
    pub(super) how: How,
    /// The length of the fault in nanoseconds. None: for ever.
    pub(super) span: Option<u64>,
    pub(super) when: When,
    pub(super) separated: Separated,
    /// Nanoseconds by which each rail fails later than the one before.
    stagger: u64,
    system: &'static str,
    pub(super) ranks: usize,
    pub(super) per_host: usize,
    intra_host: IntraHost,
    /// The devices give up early.
    hasty: bool,
    pub(super) settings: Vec<(&'static str, &'static str)>,
}

impl Case {
    /// The case of a seed.
    pub(super) fn of(seed: u64) -> Case {
        Case::amid(&TRAFFICS[seed as usize % TRAFFICS.len()], seed)
    }

    /// The case of a seed amid this traffic.
    pub(super) fn amid(traffic: &'static Traffic, seed: u64) -> Case {
        let mut random = Random::new(seed ^ 0x1a57_9a74);
        let mut pick = |of: usize| random.below(of as u64) as usize;
        let (system, rails) = [("qdr", 1), ("edr", 1), ("2xqdr", 2), ("2x-unequal", 2)][pick(4)];
        let (ranks, per_host) = [(2, 1), (2, 1), (8, 1), (8, 2)][pick(4)];
        let hosts = ranks / per_host;
        let separated = match rails == 2 && hosts > 2 && pick(2) == 0 {
            true => {
                let first = pick(hosts);
                let second = (first + 1 + pick(hosts - 1)) % hosts;
                Separated::Pair(first as u32, second as u32)
            }
            false => Separated::Host(pick(hosts) as u32),
        };
        let span = match pick(3) {
            0 => None,
            _ => Some(SPANS[pick(SPANS.len())]),
        };
        let how = match pick(7) {
            0 | 1 => How::Silent,
            2 => How::Unacknowledged,
            3 if span.is_some() => How::Flapping,
            _ => How::Down,
        };
        let most = traffic.most_requests;
        Case {
            seed,
            traffic,
            requests: [1, 2, 8, 100][pick(4)].min(most),
            rounds: 3 + pick(4) as u64,
            computing: [0, 50_000, 2 * SECOND, 100 * SECOND][pick(4)],
            how,
            span,
            when: match pick(8) {
                0 => When::Start,
                1 => When::Finish(pick(1000) as u64),
                _ => When::Amid(pick(1000) as u64),
            },
            separated,
            stagger: [0, 0, MILLI, 200 * MILLI][pick(4)],
            system,
            ranks,
            per_host,
            // A port that fails also fails between ranks of its host.
            intra_host: match separated {
                Separated::Host(_) => IntraHost::Memory,
                Separated::Pair(..) => [IntraHost::Memory, IntraHost::Hca][pick(2)],
            },
            hasty: pick(2) == 0,
            settings: vec![
                ("FISHPLATE_OUTAGE", "40s"),
                ("FISHPLATE_RDMA_RINGS", ["64", "64", "1", "0"][pick(4)]),
                ("FISHPLATE_RTR", ["auto", "off"][pick(2)]),
                ("FISHPLATE_RENDEZVOUS", ["auto", "read", "write"][pick(3)]),
                ("FISHPLATE_RDMA_RING_BYTES", ["16K", "256K"][pick(2)]),
                ("FISHPLATE_UNEXPECTED_LIMIT", ["64K", "16M"][pick(2)]),
                (
                    "FISHPLATE_RAIL_POLICY",
                    ["adaptive", "stripe", "single", "round-robin"][pick(4)],
                ),
            ],
        }
    }

    /// The fault outlasts the ranks' patience.
    pub(super) fn is_for_ever(&self) -> bool {
        self.span.is_none()
    }

    /// The traffic is one between two groups.
    pub(super) fn is_between(&self) -> bool {
        std::ptr::eq(self.traffic, &BETWEEN)
    }

    fn host(&self, rank: usize) -> u32 {
        (rank / self.per_host) as u32
    }

    /// The fault separates two ranks.
    pub(super) fn separates(&self, one: usize, other: usize) -> bool {
        let hosts = [self.host(one), self.host(other)];
        match self.separated {
            _ if hosts[0] == hosts[1] => false,
            Separated::Host(alone) => hosts.contains(&alone),
            Separated::Pair(first, second) => hosts.contains(&first) && hosts.contains(&second),
        }
    }

    /// The ranks of a group to which this one belongs, and which the fault leaves together.
    pub(super) fn group(&self, of: usize) -> Vec<usize> {
        let (Separated::Host(alone) | Separated::Pair(alone, _)) = self.separated;
        let side = |rank: usize| self.host(rank) == alone;
        (0..self.ranks)
            .filter(|&rank| side(rank) == side(of))
            .collect()
    }

    /// The machine with the fault, which begins at this time in nanoseconds.
    pub(super) fn machine(&self, begin: u64) -> MachineConfig {
        let system = system(self.system);
        let mut machine =
            MachineConfig::new(&system, self.ranks, self.per_host, self.seed).unwrap();
        machine.intra_host = self.intra_host;
        let mut faults = Faults::default();
        if self.hasty {
            (faults.timeout, faults.retries) = (6_000 * MILLI, 1);
        }
        for fault in self.faults(&system, begin) {
            faults.ports.push(fault).unwrap();
        }
        machine.faults = faults;
        machine
    }

    /// The faults of ports, such that the last path ends at `begin`.
    fn faults(&self, system: &System, begin: u64) -> Vec<PortFault> {
        let rails = |host: u32| system.rails_of(host).len() as u32;
        let ports: Vec<(u32, u32)> = match self.separated {
            Separated::Host(alone) => (0..rails(alone)).map(|rail| (alone, rail)).collect(),
            Separated::Pair(first, second) => vec![(first, 0), (second, 1)],
        };
        let kind = match self.how {
            How::Down => PortFaultKind::Down,
            How::Silent => PortFaultKind::Silent,
            How::Unacknowledged => PortFaultKind::LostAcknowledgements,
            How::Flapping => PortFaultKind::Flapping(300 * MILLI * 1_000),
        };
        let last = ports.len() as u64 - 1;
        let fault = |(at, (host, rail)): (u64, (u32, u32))| PortFault {
            host,
            rail,
            from: 1_000 * begin.saturating_sub((last - at) * self.stagger),
            // The rail that failed first comes back first.
            until: match self.span {
                None => u64::MAX,
                Some(span) => 1_000 * (begin + span + at * self.stagger),
            },
            kind,
        };
        (0..).zip(ports).map(fault).collect()
    }
}
