//! The configuration of a job's modelled machine, and its encoding. A launcher passes it to each
//! rank.

use fabric::System;

use crate::faults::Faults;
use crate::placement::Placement;
use crate::port_faults::{PortFault, PortFaultKind, PortFaults};
use crate::ports::IntraHost;

/// The configuration of a modelled machine, which is equal on all ranks of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineConfig {
    /// The catalogue's description of the machine's hardware.
    pub system: System,
    /// For each rank, the number of the host that it runs on.
    pub hosts: Vec<u32>,
    /// The seed of all random numbers in the world.
    pub seed: u64,
    /// The faults of the machine, such as lost packets.
    pub faults: Faults,
    /// The path between ranks of one host.
    pub intra_host: IntraHost,
    /// True if the activity of resources is recorded.
    pub traced: bool,
    /// True if the notes of ranks are recorded: their accesses to windows, for a check after the
    /// run.
    pub keeps_notes: bool,
    /// True if the ranks note their messages and collective calls, for a check after the run.
    pub notes_messages: bool,
    /// True if making connections, registrations, communicators, windows and files takes no time.
    pub free_start: bool,
    /// True if links between switches carry any number of messages at once.
    pub wide_links: bool,
    /// The virtual time that the program's own computing takes.
    pub compute: Compute,
}

/// The virtual time of a program's own computing between MPI calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// Computing takes no virtual time.
    #[default]
    Ignored,
    /// Computing takes this many thousandths of its time on this host.
    Measured(u64),
    /// Computing takes its time on this host, and the times of work inside MPI are recorded.
    Recorded,
}

/// The error of bytes that are not an encoded configuration.
#[derive(Debug, PartialEq)]
pub struct Damaged(String);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(
            f,
            "the configuration of the modelled machine that the launcher handed over is damaged: {}",
            self.0
        )
    }
}

impl std::error::Error for Damaged {}

impl MachineConfig {
    /// A configuration of `ranks` ranks, with `per_host` on each host, one host filled after the
    /// other, from the first on. The system gets the necessary number of hosts. Only the costs of
    /// its MPI library are kept, so that the machine predicts this library. An error states the
    /// limit of the system.
    pub fn new(
        system: &System,
        ranks: usize,
        per_host: usize,
        seed: u64,
    ) -> Result<MachineConfig, String> {
        MachineConfig::placed(system, (ranks, per_host), &Placement::default(), seed)
    }

    /// A configuration of `ranks` ranks, with `per_host` on each host, on the hosts of a placement.
    /// If the job is packed, the system gets the necessary number of hosts, otherwise it has its
    /// own. An error states why the job does not fit.
    pub fn placed(
        system: &System,
        (ranks, per_host): (usize, usize),
        placement: &Placement,
        seed: u64,
    ) -> Result<MachineConfig, String> {
        let per_host = per_host.max(1);
        let nodes = ranks.div_ceil(per_host).max(1) as u32;
        let needed = nodes.max(2);
        let mut system = match system.nodes >= needed || !placement.is_packed() {
            true => *system,
            false => system.with_nodes(needed).map_err(|wrong| {
                format!(
                    "{ranks} ranks, {per_host} on a host, need {needed} hosts: {}",
                    wrong.why
                )
            })?,
        };
        let chosen = placement.hosts(system.nodes, nodes)?;
        let hosts = (0..ranks).map(|rank| chosen[rank / per_host]).collect();
        system.software = system.software.costs_alone();
        Ok(MachineConfig {
            system,
            hosts,
            seed,
            faults: Faults::default(),
            intra_host: IntraHost::default(),
            traced: false,
            keeps_notes: false,
            notes_messages: false,
            free_start: false,
            wide_links: false,
            compute: Compute::Ignored,
        })
    }

    /// Encodes the configuration, for the launcher to pass to the ranks.
    pub fn encode(&self) -> Vec<u8> {
        let system = self.system.encode();
        let by_hca = u64::from(self.intra_host == IntraHost::Hca);
        let head = [
            self.seed,
            by_hca,
            self.hosts.len() as u64,
            system.len() as u64,
            u64::from(self.traced)
                | u64::from(self.keeps_notes) << 1
                | u64::from(self.free_start) << 2
                | u64::from(self.wide_links) << 3
                | u64::from(self.notes_messages) << 4,
            self.compute.encode(),
        ];
        let words = head.into_iter().chain(fault_words(&self.faults));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        bytes.extend(self.hosts.iter().flat_map(|host| host.to_le_bytes()));
        bytes.extend(system);
        bytes
    }

    /// Decodes a configuration. The bytes may be of any origin.
    pub fn decode(bytes: &[u8]) -> Result<MachineConfig, Damaged> {
        let short = || Damaged("it is too short".into());
        let mut rest = bytes;
        let mut word = || {
            let (first, others) = rest.split_first_chunk::<8>().ok_or_else(short)?;
            rest = others;
            Ok(u64::from_le_bytes(*first))
        };
        let [seed, by_hca, ranks, system, kept, compute] =
            [word()?, word()?, word()?, word()?, word()?, word()?];
        let faults = faults(&mut word)?;
        let placed = usize::try_from(ranks)
            .ok()
            .and_then(|ranks| ranks.checked_mul(4));
        let (hosts, rest) = placed
            .and_then(|placed| rest.split_at_checked(placed))
            .ok_or_else(short)?;
        if rest.len() as u64 != system {
            return Err(Damaged("its length is not what it says".into()));
        }
        let system = System::decode(rest).map_err(|why| Damaged(why.to_string()))?;
        let (hosts, _) = hosts.as_chunks::<4>();
        let hosts: Vec<u32> = hosts.iter().map(|host| u32::from_le_bytes(*host)).collect();
        match hosts.iter().find(|&&host| host >= system.nodes) {
            Some(host) => Err(Damaged(format!(
                "a rank is on host {host} of {}",
                system.nodes
            ))),
            None if faults.ports.check(&system).is_err() => Err(Damaged(
                "a fault is that of a port that does not exist".into(),
            )),
            None => Ok(MachineConfig {
                system,
                hosts,
                seed,
                faults,
                intra_host: match by_hca {
                    0 => IntraHost::Memory,
                    _ => IntraHost::Hca,
                },
                traced: kept & 1 == 1,
                keeps_notes: kept >> 1 & 1 == 1,
                free_start: kept >> 2 & 1 == 1,
                wide_links: kept >> 3 & 1 == 1,
                notes_messages: kept >> 4 & 1 == 1,
                compute: Compute::decode(compute),
            }),
        }
    }
}

impl Compute {
    fn encode(self) -> u64 {
        match self {
            Compute::Ignored => 0,
            Compute::Recorded => 1,
            Compute::Measured(scale) => scale.saturating_add(2),
        }
    }

    fn decode(word: u64) -> Compute {
        match word {
            0 => Compute::Ignored,
            1 => Compute::Recorded,
            scale => Compute::Measured(scale - 2),
        }
    }
}

/// The number of words of the faults, without those of ports.
const FAULT_WORDS: usize = 15;

/// Encodes faults as words; an optional one has an extra word for its presence. The number of
/// faults of ports and these faults come last.
fn fault_words(faults: &Faults) -> Vec<u64> {
    let (slow, percent) = faults.slow.unwrap_or_default();
    let first: [u64; FAULT_WORDS] = [
        faults.loss.into(),
        faults.late.into(),
        faults.latest,
        faults.scatter.is_some().into(),
        faults.scatter.unwrap_or_default(),
        faults.breaks.into(),
        faults.completions.into(),
        faults.slow.is_some().into(),
        slow.into(),
        percent.into(),
        faults.timeout,
        faults.retries.into(),
        faults.rnr_wait,
        faults.rnr_retries.into(),
        faults.no_immediates.into(),
    ];
    let ports = faults.ports.as_slice();
    let mut words = first.to_vec();
    words.push(ports.len() as u64);
    for fault in ports {
        let (kind, value) = match fault.kind {
            PortFaultKind::Down => (0, 0),
            PortFaultKind::Silent => (1, 0),
            PortFaultKind::Flapping(period) => (2, period),
            PortFaultKind::LostAcknowledgements => (3, 0),
            PortFaultKind::Rate(share) => (4, share.into()),
        };
        words.extend([u64::from(fault.host), u64::from(fault.rail)]);
        words.extend([fault.from, fault.until, kind, value]);
    }
    words
}

/// Decodes faults. Numbers that are too large for their type lose their upper half.
fn faults(word: &mut impl FnMut() -> Result<u64, Damaged>) -> Result<Faults, Damaged> {
    let mut words = [0; FAULT_WORDS];
    for place in &mut words {
        *place = word()?;
    }
    let mut ports = PortFaults::default();
    for _ in 0..word()? {
        let [host, rail] = [word()? as u32, word()? as u32];
        let [from, until, kind, value] = [word()?, word()?, word()?, word()?];
        let kind = match kind {
            0 => PortFaultKind::Down,
            1 => PortFaultKind::Silent,
            2 => PortFaultKind::Flapping(value),
            3 => PortFaultKind::LostAcknowledgements,
            4 => PortFaultKind::Rate(value as u32),
            _ => return Err(Damaged(format!("no fault of a port has the kind {kind}"))),
        };
        let fault = PortFault {
            host,
            rail,
            from,
            until,
            kind,
        };
        ports.push(fault).map_err(Damaged)?;
    }
    let short = |at: usize| words[at] as u32;
    Ok(Faults {
        loss: short(0),
        late: short(1),
        latest: words[2],
        scatter: (words[3] != 0).then_some(words[4]),
        breaks: short(5),
        completions: short(6),
        ports,
        slow: (words[7] != 0).then_some((short(8), short(9))),
        timeout: words[10],
        retries: short(11),
        rnr_wait: words[12],
        rnr_retries: short(13),
        no_immediates: words[14] != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    #[test]
    fn more_hosts_than_the_network_connects_are_an_error_with_its_limit() {
        let system = Catalogue::builtin().system("edr").unwrap();
        assert!(MachineConfig::new(&system, 11_664, 1, 1).is_ok());
        let why = MachineConfig::new(&system, 16_384, 1, 1).unwrap_err();
        assert!(why.contains("16384 hosts"), "{why}");
        assert!(why.contains("2 to 11664"), "{why}");
        assert!(MachineConfig::new(&system, 16_384, 2, 1).is_ok());
    }

    #[test]
    fn a_packed_job_makes_the_machine_larger_and_no_other_does() {
        let system = Catalogue::builtin().system("edr").unwrap();
        let placed = |system: &System, ranks: usize, word: &str| {
            MachineConfig::placed(system, (ranks, 2), &word.parse().unwrap(), 1)
        };
        assert_eq!(placed(&system, 100, "packed").unwrap().system.nodes, 50);
        let why = placed(&system, 100, "random:1").unwrap_err();
        assert!(
            why.contains("36 hosts has no room for a job of 50 nodes"),
            "{why}"
        );
        let large = system.with_nodes(100).unwrap();
        let spread = placed(&large, 5, "spread").unwrap();
        assert_eq!(spread.hosts, [0, 0, 33, 33, 66]);
        assert_eq!(MachineConfig::decode(&spread.encode()), Ok(spread));
        let listed = placed(&large, 5, "99,4-8").unwrap();
        assert_eq!(listed.hosts, [99, 99, 4, 4, 5]);
    }

    #[test]
    fn a_scene_comes_back_as_it_was_and_nothing_else_does() {
        let system = Catalogue::builtin().system("qdr").unwrap();
        let mut config = MachineConfig::new(&system, 10, 3, 77).unwrap();
        config.intra_host = IntraHost::Hca;
        config.faults.scatter = Some(7);
        config.faults.slow = Some((1, 300));
        config.faults.no_immediates = true;
        config.traced = true;
        config.keeps_notes = true;
        config.notes_messages = true;
        config.free_start = true;
        config.wide_links = true;
        config.compute = Compute::Measured(1500);
        let kinds = [
            PortFaultKind::Down,
            PortFaultKind::Silent,
            PortFaultKind::Flapping(7_000),
            PortFaultKind::LostAcknowledgements,
            PortFaultKind::Rate(100),
        ];
        for (at, kind) in kinds.into_iter().enumerate() {
            let fault = PortFault {
                host: at as u32,
                rail: 0,
                from: 3,
                until: 4 + at as u64,
                kind,
            };
            config.faults.ports.push(fault).unwrap();
        }
        assert_eq!(config.hosts, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
        let bytes = config.encode();
        assert_eq!(MachineConfig::decode(&bytes), Ok(config));
        for len in 0..bytes.len() {
            assert!(MachineConfig::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
