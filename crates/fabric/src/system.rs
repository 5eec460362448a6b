//! A machine: hosts of one kind, their rails, and the network between them.

use crate::components::{
    Bus, Cable, Hca, Holds, Host, Key, Link, Part, Software, Source, Switch, Wrong, part,
};
use crate::quantity::Quantity;
use crate::tree::Tree;
use crate::units::{GbPerSec, Nanos};

part! {
    /// A machine: hosts of one kind, each with the same rails.
    System "system" {
        part host: Host, "Its hosts.";
        part hca: Hca, "The HCA of each rail.";
        value rails: u32, "HCAs of a host, the second and later on the other socket.";
        part cable: Cable, "The cables, all of one length.";
        part switch: Switch, "The switches.";
        value nodes: u32, "Its hosts.";
        value hops: Option<u32>, "Switches between any two hosts; \"none\": counted in the smallest fat tree.";
        part software: Software, "What the library's own work costs.";
    }
    check |system| {
        let most = 8;
        Wrong::unless((1..=most).contains(&system.rails), "rails", || {
            format!("{} rails are not possible; valid are 1 to {most}", system.rails)
        })?;
        let room = Tree::room(system.switch.ports);
        Wrong::unless((2..=room).contains(&u64::from(system.nodes)), "nodes", || match system.switch.ports {
            0 => format!("{} hosts cannot stand back to back; name a switch, or let nodes be 2", system.nodes),
            ports => format!("{} hosts cannot hang on three levels of {ports}-port switches; valid are 2 to {room}", system.nodes),
        })?;
        let direct = system.switch.ports == 0;
        Wrong::unless(system.hops.is_none_or(|hops| direct == (hops == 0)), "hops", || match direct {
            true => "there is no switch to hop over; name a switch, or leave hops out".into(),
            false => "hosts on a switch are at least 1 hop apart; for back to back let switch be \"none\"".into(),
        })?;
        Wrong::unless(system.hops.is_none_or(|hops| hops <= 16), "hops", || "more than 16 hops are not possible".into())?;
        let (host, hca) = (&system.host.bus, &system.hca.bus);
        Wrong::unless(host.half_duplex == hca.half_duplex, "hca", || {
            "the HCA does not fit the host's slot: one is PCI-X, the other PCI Express".into()
        })
    }
}

impl System {
    /// The same machine with another number of hosts.
    pub fn with_nodes(&self, nodes: u32) -> Result<System, Wrong> {
        let system = System { nodes, ..*self };
        system.check()?;
        Ok(system)
    }

    /// The link that HCA and switch agree on: the slower of their generations.
    pub fn link(&self) -> &Link {
        let (hca, switch) = (&self.hca.link, &self.switch.link);
        match self.switch.ports > 0 && switch.data() < hca.data() {
            true => switch,
            false => hca,
        }
    }

    /// What a port carries of packets, headers included.
    pub fn link_rate(&self) -> GbPerSec {
        self.link().data() * self.hca.width
    }

    /// The bus that host and HCA agree on: the slower of their generations.
    pub fn bus(&self) -> &Bus {
        let (host, hca) = (&self.host.bus, &self.hca.bus);
        if host.data() < hca.data() { host } else { hca }
    }

    /// Lanes of the bus: as many as both have.
    pub fn lanes(&self) -> u32 {
        self.host.lanes.min(self.hca.lanes)
    }

    /// What the bus carries each way, its packets' headers included.
    pub fn bus_rate(&self) -> GbPerSec {
        self.bus().data() * self.lanes()
    }

    pub fn tree(&self) -> Tree {
        Tree::new(self.nodes, self.switch.ports)
    }

    /// Switches between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match self.hops {
            Some(hops) if from != to => hops,
            _ => self.tree().hops(from, to),
        }
    }

    /// Switches between the two hosts that are furthest apart.
    pub fn most_hops(&self) -> u32 {
        self.hops(0, self.nodes - 1)
    }

    /// The way through cables and switches of the first bit.
    pub fn flight(&self, hops: u32) -> Nanos {
        let cable = self.cable_time() + self.link().correction;
        cable * u64::from(hops + 1) + self.switch.latency * u64::from(hops)
    }

    /// The way through one cable and its connectors.
    pub fn cable_time(&self) -> Nanos {
        self.cable.length.time(self.cable.metre) + self.cable.conversion
    }

    /// Compiled: what a launcher hands to the library, which reads no files.
    pub fn encode(&self) -> Vec<u8> {
        let mut words = vec![format()];
        self.to_words(&mut words);
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// What `encode` made. The bytes may come from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<System, Damaged> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        if !rest.is_empty() {
            return Err(Damaged("its length is no multiple of 8".into()));
        }
        if words.next() != Some(format()) {
            return Err(Damaged("it is not of this version's format".into()));
        }
        let mut words = Words(words);
        let system: System = words.part("system")?;
        match words.0.next() {
            None => Ok(system),
            Some(_) => Err(Damaged("it is longer than a system".into())),
        }
    }
}

/// First word of a compiled system: a digest (FNV-1a) of all tables of keys, so that another version's system, which has
/// other values, is refused.
fn format() -> u64 {
    digest(System::KEYS, 0xcbf2_9ce4_8422_2325)
}

fn digest(keys: &[Key], seed: u64) -> u64 {
    keys.iter().fold(seed, |digest_so_far, key| {
        let hash = key.name.bytes().fold(digest_so_far, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        match key.holds {
            Holds::Value { .. } => hash,
            Holds::Part { keys, .. } => digest(keys, hash),
        }
    })
}

/// A compiled system that cannot be one.
#[derive(Debug, PartialEq)]
pub struct Damaged(String);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "compiled fabric is damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

struct Words<I>(I);

impl<I: Iterator<Item = u64>> Source for Words<I> {
    type Error = Damaged;

    fn value<Q: Quantity>(&mut self, key: &'static str) -> Result<Q, Damaged> {
        let word = self
            .0
            .next()
            .ok_or_else(|| Damaged(format!("it ends before {key}")))?;
        Q::from_word(word).ok_or_else(|| Damaged(format!("{key} cannot be {word:#x}")))
    }

    fn part<P: Part>(&mut self, _: &'static str) -> Result<P, Damaged> {
        let part = P::build(self)?;
        part.check()
            .map_err(|wrong| Damaged(format!("{} of {}: {}", wrong.key, P::KIND, wrong.why)))?;
        Ok(part)
    }
}
