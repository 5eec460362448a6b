//! The use of a machine's resources, stored for a reader after the run: for each, the sum of the
//! times for which it has been occupied.
//!
//! The last rank that leaves the machine writes the sums to a log of the world, so that the
//! launcher can read them after the ranks have ended. Ranks that are killed leave no sums.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use sim::Time;
use sim::log::{self, Log};
use sim::memory::WorldMemory;

use super::ports::Ports;
use super::ranks::Ranks;
use super::record::USES;
use super::span::HcaPart;
use super::storage::Server;
use super::sums::{ProcessorWork, Sums};

/// The length of an entry of the log, in 64-bit words.
const USE: usize = 3;
/// The greatest number of entries of the log.
const MOST: u64 = 4 << 20;
/// The kind of an entry about a link between switches. The bits above it are the number of the
/// rail.
const BETWEEN: u64 = 16;
/// The kind that stands for the storage in an entry.
const STORAGE: u64 = 15;
const RAIL: u32 = 8;
const KIND: u64 = (1 << RAIL) - 1;

/// A kind of resource of a modelled machine, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The link from a rail's HCA to its switch. The field is the number of the rail.
    LinkOut(u32),
    /// The link from the switch to a rail's HCA. The field is the number of the rail.
    LinkIn(u32),
    /// The bus from memory to a rail's HCA; both directions if it is half duplex.
    BusDown(u32),
    /// The bus from a rail's HCA to memory.
    BusUp(u32),
    /// The data path through the chip of a rail's HCA.
    Chip(u32),
    /// The part of the chip of a rail's HCA that takes work requests.
    Requests(u32),
    /// The part of the chip of a rail's HCA that answers reads and atomics.
    Answers(u32),
    /// The memory of the host.
    Memory,
    /// The storage, which all hosts share. Its host is given as 0.
    Storage,
    /// A link between switches of a rail's network: the number of the rail, and that of the link.
    /// Its host is that of the sender of the last packet.
    Between(u32, u32),
    /// The processor of the rank with this number, and the kind of work that took most of its time.
    Processor(u32, ProcessorWork),
}

/// The use of one resource during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The number of the resource's host.
    pub host: u32,
    /// The resource that was busy.
    pub resource: Resource,
    /// The time for which the resource was busy.
    pub busy: Time,
}

impl Usage {
    /// Reads the uses of all resources, busiest first, from the file of a world. Empty if some rank
    /// has not left the machine.
    pub fn read(world: &File) -> io::Result<std::vec::Vec<Usage>> {
        let kept = log::read::<USE>(world, USES, MOST)?;
        let mut uses: std::vec::Vec<Usage> =
            kept.entries.into_iter().filter_map(Usage::decode).collect();
        uses.sort_by_key(|usage| (std::cmp::Reverse(usage.busy), usage.host, usage.resource));
        Ok(uses)
    }

    fn encode(&self) -> [u64; USE] {
        let (kind, number) = match self.resource {
            Resource::LinkOut(rail) => (0, rail),
            Resource::LinkIn(rail) => (1, rail),
            Resource::BusDown(rail) => (2, rail),
            Resource::BusUp(rail) => (3, rail),
            Resource::Chip(rail) => (4, rail),
            Resource::Requests(rail) => (5, rail),
            Resource::Answers(rail) => (6, rail),
            Resource::Memory => (7, 0),
            Resource::Storage => (STORAGE, 0),
            Resource::Processor(rank, work) => (8 + work as u64, rank),
            Resource::Between(rail, link) => (BETWEEN | u64::from(rail) << RAIL, link),
        };
        [
            u64::from(self.host) << 32 | u64::from(number),
            kind,
            self.busy,
        ]
    }

    /// Decodes an entry. `None`: the words are not an encoded use.
    fn decode([place, kind, busy]: [u64; USE]) -> Option<Usage> {
        let number = place as u32;
        let resource = match kind {
            0 => Resource::LinkOut(number),
            1 => Resource::LinkIn(number),
            2 => Resource::BusDown(number),
            3 => Resource::BusUp(number),
            4 => Resource::Chip(number),
            5 => Resource::Requests(number),
            6 => Resource::Answers(number),
            7 => Resource::Memory,
            STORAGE => Resource::Storage,
            kind if kind & KIND == BETWEEN => {
                Resource::Between(u32::try_from(kind >> RAIL).ok()?, number)
            }
            _ => {
                let work = usize::try_from(kind - 8).ok()?;
                Resource::Processor(number, *ProcessorWork::ALL.get(work)?)
            }
        };
        Some(Usage {
            host: (place >> 32) as u32,
            resource,
            busy,
        })
    }
}

impl Usage {
    /// The uses of all resources that have been busy, by host and resource.
    pub(crate) fn of_all(
        sums: &Sums,
        ports: &Ports,
        ranks: &Ranks,
        storage: &Server,
    ) -> std::vec::Vec<Usage> {
        let mut busy: BTreeMap<(u32, Resource), Time> = BTreeMap::new();
        for (adapter, parts) in ports.adapters.iter().zip(&sums.parts) {
            for part in HcaPart::ALL {
                // Ports of a card share all parts but their links.
                let resource = match part {
                    HcaPart::LinkOut => Resource::LinkOut(adapter.rail),
                    HcaPart::LinkIn => Resource::LinkIn(adapter.rail),
                    HcaPart::BusDown => Resource::BusDown(adapter.domain),
                    HcaPart::BusUp => Resource::BusUp(adapter.domain),
                    HcaPart::Buffer => Resource::Chip(adapter.domain),
                };
                *busy.entry((adapter.host, resource)).or_default() += parts[part as usize];
            }
        }
        for (adapter, [requests, answers]) in ports.adapters.iter().zip(&sums.chips) {
            for (resource, time) in [
                (Resource::Requests(adapter.domain), requests),
                (Resource::Answers(adapter.domain), answers),
            ] {
                *busy.entry((adapter.host, resource)).or_default() += time;
            }
        }
        for (host, own) in ports.hosts.iter().enumerate() {
            busy.insert((host as u32, Resource::Memory), own.moved);
        }
        busy.insert((0, Resource::Storage), storage.busy);
        for (rail, network) in ports.crossings.iter().enumerate() {
            for (number, link) in network.links().iter().enumerate() {
                let resource = Resource::Between(rail as u32, number as u32);
                busy.insert((link.host, resource), link.busy);
            }
        }
        for (rank, times) in sums.processors.iter().enumerate() {
            let time = |work: &ProcessorWork| times[*work as usize];
            let most = ProcessorWork::ALL.into_iter().max_by_key(time);
            let work = most.unwrap_or(ProcessorWork::Library);
            let resource = Resource::Processor(rank as u32, work);
            busy.insert((ranks[rank as u32].host, resource), times.iter().sum());
        }
        let busy = busy.into_iter().filter(|(_, busy)| *busy > 0);
        let usage = |((host, resource), busy)| Usage {
            host,
            resource,
            busy,
        };
        busy.map(usage).collect()
    }
}

/// The log of uses in the world, which the last rank that leaves the machine writes.
pub(crate) struct UsageLog {
    log: Log<USE>,
    /// The number of ranks that have left the machine.
    left: usize,
}

impl UsageLog {
    pub(crate) fn new(memory: WorldMemory) -> UsageLog {
        UsageLog {
            log: Log::new(memory, USES, MOST),
            left: 0,
        }
    }

    /// Counts a rank that leaves. True: it is the last of `ranks`.
    pub(crate) fn count_leaving(&mut self, ranks: usize) -> bool {
        self.left += 1;
        self.left == ranks
    }

    pub(crate) fn write(&mut self, uses: &[Usage]) {
        for usage in uses {
            self.log.push(usage.encode());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_comes_back_as_it_was() {
        let processors = ProcessorWork::ALL.map(|work| Resource::Processor(9, work));
        let others = [
            Resource::LinkOut(3),
            Resource::LinkIn(3),
            Resource::BusDown(3),
            Resource::BusUp(3),
            Resource::Chip(3),
            Resource::Requests(3),
            Resource::Answers(3),
            Resource::Memory,
            Resource::Storage,
            Resource::Between(3, 1 << 20),
        ];
        for resource in processors.into_iter().chain(others) {
            let usage = Usage {
                host: 1 << 20,
                resource,
                busy: 1 << 50,
            };
            assert_eq!(Usage::decode(usage.encode()), Some(usage));
        }
        assert_eq!(Usage::decode([0, u64::MAX, 0]), None);
    }
}
