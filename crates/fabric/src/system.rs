//! A machine: hosts of one kind, their rails, and the network between them.

use crate::components::{
    Bus, Cable, Hca, Host, InvalidValue, Key, KeyType, Link, Part, PartSource, Software, Switch,
    part,
};
use crate::quantity::Quantity;
use crate::tree::Tree;
use crate::units::{GbPerSec, Nanos};

part! {
    /// A machine: hosts of one kind, each with the same rails.
    System "system" {
        part host: Host, "The hosts.";
        part hca: Hca, "The HCA of each rail.";
        value rails: u32, "Number of HCAs of a host; all but the first are attached to the other socket.";
        part cable: Cable, "The cables, all of equal length.";
        part switch: Switch, "The switches.";
        value nodes: u32, "Number of hosts.";
        value hops: Option<u32>, "Number of switches between any two hosts; \"none\": as in the smallest fat tree.";
        part software: Software, "Costs of the MPI library's work.";
    }
    check |system| {
        let most = 8;
        InvalidValue::unless((1..=most).contains(&system.rails), "rails", || {
            format!("{} rails are not possible; valid are 1 to {most}", system.rails)
        })?;
        let room = Tree::room(system.switch.ports);
        InvalidValue::unless((2..=room).contains(&u64::from(system.nodes)), "nodes", || match system.switch.ports {
            0 => format!("{} hosts cannot be connected back to back; name a switch, or set nodes = 2", system.nodes),
            ports => format!("three levels of {ports}-port switches cannot connect {} hosts; valid are 2 to {room}", system.nodes),
        })?;
        let direct = system.switch.ports == 0;
        InvalidValue::unless(system.hops.is_none_or(|hops| direct == (hops == 0)), "hops", || match direct {
            true => "this system has no switch; name one, or leave hops out".into(),
            false => "hosts on a switch are at least 1 hop apart; for hosts back to back set switch = \"none\"".into(),
        })?;
        InvalidValue::unless(system.hops.is_none_or(|hops| hops <= 16), "hops", || "more than 16 hops are not possible".into())?;
        let (host, hca) = (&system.host.bus, &system.hca.bus);
        InvalidValue::unless(host.half_duplex == hca.half_duplex, "hca", || {
            "the HCA does not fit the host's slot: one is PCI-X, the other PCI Express".into()
        })
    }
}

impl System {
    /// This machine with `nodes` hosts. An error if the switches cannot connect that many.
    pub fn with_nodes(&self, nodes: u32) -> Result<System, InvalidValue> {
        let system = System { nodes, ..*self };
        system.check()?;
        Ok(system)
    }

    /// The link between HCA and switch: the slower of their two generations.
    pub fn link(&self) -> &Link {
        let (hca, switch) = (&self.hca.link, &self.switch.link);
        match self.switch.ports > 0 && switch.data() < hca.data() {
            true => switch,
            false => hca,
        }
    }

    /// The packet rate of a port in bits, headers included.
    pub fn link_rate(&self) -> GbPerSec {
        self.link().data() * self.hca.width
    }

    /// The bus between host and HCA: the slower of their two generations.
    pub fn bus(&self) -> &Bus {
        let (host, hca) = (&self.host.bus, &self.hca.bus);
        if host.data() < hca.data() { host } else { hca }
    }

    /// The number of lanes of the bus: the smaller of the host's and the HCA's.
    pub fn lanes(&self) -> u32 {
        self.host.lanes.min(self.hca.lanes)
    }

    /// The packet rate of the bus in bits, in each direction, headers included.
    pub fn bus_rate(&self) -> GbPerSec {
        self.bus().data() * self.lanes()
    }

    /// The fat tree that connects the hosts.
    pub fn tree(&self) -> Tree {
        Tree::new(self.nodes, self.switch.ports)
    }

    /// The number of switches between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match self.hops {
            Some(hops) if from != to => hops,
            _ => self.tree().hops(from, to),
        }
    }

    /// The number of switches between the two hosts that are furthest apart.
    pub fn most_hops(&self) -> u32 {
        self.hops(0, self.nodes - 1)
    }

    /// Latency of the first bit through cables and `hops` switches.
    pub fn flight(&self, hops: u32) -> Nanos {
        let cable = self.cable_time() + self.link().correction;
        cable * u64::from(hops + 1) + self.switch.latency * u64::from(hops)
    }

    /// Latency of one cable with its connectors.
    pub fn cable_time(&self) -> Nanos {
        self.cable.length.time(self.cable.metre) + self.cable.conversion
    }

    /// The compiled system, which a launcher passes to the library: the library reads no files.
    pub fn encode(&self) -> Vec<u8> {
        let mut words = vec![format()];
        self.to_words(&mut words);
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads what [`encode`](System::encode) wrote. The bytes may come from anywhere: all values
    /// are checked.
    pub fn decode(bytes: &[u8]) -> Result<System, DecodeError> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        if !rest.is_empty() {
            return Err(DecodeError("its length is not a multiple of 8".into()));
        }
        if words.next() != Some(format()) {
            return Err(DecodeError("another version of fishplate made it".into()));
        }
        let mut words = Words(words);
        let system: System = words.part("system")?;
        match words.0.next() {
            None => Ok(system),
            Some(_) => Err(DecodeError("it is longer than a system".into())),
        }
    }
}

/// The first word of a compiled system: a digest (FNV-1a) of all key names. It refuses systems of a
/// version with other keys.
fn format() -> u64 {
    digest(System::KEYS, 0xcbf2_9ce4_8422_2325)
}

fn digest(keys: &[Key], seed: u64) -> u64 {
    keys.iter().fold(seed, |digest_so_far, key| {
        let hash = key.name.bytes().fold(digest_so_far, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        match key.holds {
            KeyType::Value { .. } => hash,
            KeyType::Part { keys, .. } => digest(keys, hash),
        }
    })
}

/// The error of bytes that are not a compiled system.
#[derive(Debug, PartialEq)]
pub struct DecodeError(String);

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "the compiled fabric is damaged: {}", self.0)
    }
}

impl std::error::Error for DecodeError {}

struct Words<I>(I);

impl<I: Iterator<Item = u64>> PartSource for Words<I> {
    type Error = DecodeError;

    fn value<Q: Quantity>(&mut self, key: &'static str) -> Result<Q, DecodeError> {
        let word = self
            .0
            .next()
            .ok_or_else(|| DecodeError(format!("it ends before {key}")))?;
        Q::from_word(word).ok_or_else(|| DecodeError(format!("{key} cannot be {word:#x}")))
    }

    fn part<P: Part>(&mut self, _: &'static str) -> Result<P, DecodeError> {
        let part = P::build(self)?;
        part.check()
            .map_err(|wrong| DecodeError(format!("{} of {}: {}", wrong.key, P::KIND, wrong.why)))?;
        Ok(part)
    }
}
