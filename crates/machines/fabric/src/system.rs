//! A machine: hosts of one kind, with their rails and the networks between them.

use crate::components::{
    Bus, Cable, Hca, Host, InvalidValue, Key, KeyType, Part, PartList, PartSource, Switch, part,
};
use crate::family::Family;
use crate::kernel::Kernel;
use crate::network::counts::Counts;
use crate::network::graph::files::NetworkFile;
use crate::network::graph::{GraphKey, compiled};
use crate::network::{Network, Oversubscription, Routing, Topology};
use crate::quantity::Quantity;
use crate::rails::{MOST_RAILS, OwnHosts, Rail, Rails};
use crate::software::Software;
use crate::storage::Storage;
use crate::units::{Bytes, GbPerSec};

part! {
    /// A machine: hosts of one kind. All have the same rails, except those listed in `hosts`.
    System "system" {
        part host: Host, "The hosts.";
        part hca: Hca, "The HCA of each rail.";
        list rails: Rails, "The rails of a host: a number of equal HCAs, all but the first attached to the other socket, or a list.";
        list hosts: OwnHosts, "Hosts whose rails differ from those of the others.";
        part cable: Cable, "The cables, all of equal length.";
        part switch: Switch, "The switches.";
        value nodes: u32, "Number of hosts.";
        value hops: Option<u32>, "Number of switches between any two hosts; \"none\": as in the smallest fat tree.";
        value topology: Topology, "The network: \"fat-tree\", \"dragonfly\", \"hypercube\", \"torus\" or \"mesh\".";
        value oversubscription: Oversubscription, "Hosts of a leaf switch for each of its links to the level above, where a tree has several levels; 1: as many links as hosts.";
        optional switch_hosts: Option<u32>, "Hosts of a switch of a hypercube, a torus, a mesh, or a dragonfly of grids, or of a leaf switch of a fat tree with dimensions; may be left out: 1.";
        optional dimensions: Option<Counts>, "Switches of a torus or a mesh along each dimension, columns and rows of a group of a dragonfly, or switches below a switch of each level of a fat tree, from the second on, such as \"16x6\"; may be left out: a balanced dragonfly, the smallest fat tree.";
        optional cables: Option<Counts>, "Cables between two neighbouring switches by dimension, or of a dragonfly in a row, in a column and between two groups, or links up of a switch of each level of a fat tree with dimensions; the last number is that of all further ones; may be left out: 1, in a fat tree as many up as down.";
        optional graph: Option<NetworkFile>, "File with the network as a graph, in place of a topology: the output of ibnetdiscover; may be left out.";
        optional routes: Option<NetworkFile>, "File with the routes of the graph: the output of dump_lfts; may be left out: shortest paths.";
        optional inner_width: Option<u32>, "Lanes of a link between switches; may be left out: those of the switch.";
        optional routing: Option<Routing>, "Choice of paths: \"destination\", as in tables of routes, or \"adaptive\", the path that is expected to be the fastest; may be left out: destination.";
        part software: Software, "The MPI library.";
        part kernel: Kernel, "The kernel's network path, of sockets.";
        extra storage: Option<Storage>, "The storage of files, which all hosts share; may be left out: files take no virtual time.";
        optional family: Option<Family>, "Family under which lists show it; may be left out.";
    }
    check |system| {
        system.rails.check()?;
        system.hosts.check(system.nodes, system.rails.count())?;
        for rail in (0..system.rails.count()).map(|rail| system.rail(rail)) {
            rail.check()?;
            rail.shape().check(system.nodes)?;
        }
        Ok(())
    }
}

impl System {
    /// This machine with `nodes` hosts. An error if the switches cannot connect that many.
    pub fn with_nodes(&self, nodes: u32) -> Result<System, InvalidValue> {
        let system = System { nodes, ..*self };
        system.check()?;
        Ok(system)
    }

    /// This machine with packets of at most `mtu` on every link.
    pub fn with_mtu(&self, mtu: Bytes) -> System {
        self.with_hcas(|hca| hca.mtu = mtu)
    }

    /// This machine with the same change to all its HCAs.
    pub fn with_hcas(&self, change: impl Fn(&mut Hca)) -> System {
        let mut system = *self;
        change(&mut system.hca);
        if let Rails::Listed(rails) = &system.rails {
            let mut all = rails.as_slice().to_vec();
            all.iter_mut().for_each(|rail| change(&mut rail.hca));
            system.rails = Rails::of_parts(&all).unwrap_or(system.rails);
        }
        system
    }

    /// The rail with this number in the list, counted from 0. Panics if there is no such rail.
    pub fn rail(&self, number: u32) -> Rail {
        match &self.rails {
            Rails::Listed(rails) => rails.as_slice()[number as usize],
            Rails::Equal(count) => {
                assert!(number < *count, "rail {number} of {count}");
                Rail {
                    hca: self.hca,
                    slot: self.host.bus,
                    lanes: self.host.lanes,
                    socket: u32::from(number > 0),
                    card: number,
                    subnet: 0,
                    cable: self.cable,
                    switch: self.switch,
                    hops: self.hops,
                    topology: self.topology,
                    oversubscription: self.oversubscription,
                    switch_hosts: self.switch_hosts,
                    dimensions: self.dimensions,
                    cables: self.cables,
                    graph: self.graph,
                    routes: self.routes,
                    inner_width: self.inner_width,
                    routing: self.routing,
                }
            }
        }
    }

    /// The rails of a host: their numbers in the system's list.
    pub fn rails_of(&self, host: u32) -> Vec<u32> {
        match self.hosts.rails_of(host) {
            Some(own) => own.iter().collect(),
            None => (0..self.rails.count()).collect(),
        }
    }

    /// The packet rate of rail 0, headers included.
    pub fn link_rate(&self) -> GbPerSec {
        self.rail(0).link_rate()
    }

    /// The bus between HCA and memory of rail 0.
    pub fn bus(&self) -> Bus {
        *self.rail(0).bus()
    }

    /// The number of lanes of the bus of rail 0.
    pub fn lanes(&self) -> u32 {
        self.rail(0).bus_lanes()
    }

    /// The number of switches between two hosts on rail 0.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        self.hops_on(&self.rail(0), from, to)
    }

    /// The number of switches between two hosts on the rail `rail`.
    pub fn hops_on(&self, rail: &Rail, from: u32, to: u32) -> u32 {
        match rail.hops {
            Some(hops) if from != to => hops,
            _ => self.network_of(rail).hops(from, to),
        }
    }

    /// The network of a rail; `None` if the number of switches between hosts is given instead, and
    /// the network's links are unknown.
    pub fn network(&self, rail: &Rail) -> Option<Network> {
        rail.hops.is_none().then(|| self.network_of(rail))
    }

    fn network_of(&self, rail: &Rail) -> Network {
        Network::new(&rail.shape(), self.nodes)
    }

    /// The graphs from files that are networks of the system's rails, each once.
    fn graphs(&self) -> Vec<GraphKey> {
        let rails = (0..self.rails.count()).map(|rail| self.rail(rail));
        let mut graphs: Vec<GraphKey> = Vec::new();
        for key in rails.filter_map(|rail| rail.shape().graph_key()) {
            if !graphs.contains(&key) {
                graphs.push(key);
            }
        }
        graphs
    }

    /// The number of switches on rail 0 between the two hosts that are furthest apart.
    pub fn most_hops(&self) -> u32 {
        self.hops(0, self.nodes - 1)
    }

    /// The compiled form of the system, which a launcher passes to the library: the library reads
    /// no files.
    pub fn encode(&self) -> Vec<u8> {
        let graphs = self.graphs();
        let mut words = vec![format(), graphs.len() as u64];
        let encode = |graph: &GraphKey| compiled::encode(*graph, &mut words);
        graphs.iter().for_each(encode);
        self.to_words(&mut words);
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads what [`encode`](System::encode) wrote. The bytes may be of any origin: all values are
    /// checked.
    pub fn decode(bytes: &[u8]) -> Result<System, DecodeError> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        if !rest.is_empty() {
            return Err(DecodeError("its length is not a multiple of 8".into()));
        }
        if words.next() != Some(format()) {
            return Err(DecodeError("another version of fishplate made it".into()));
        }
        // The check of a system needs its graphs, so they stand before it.
        let most = MOST_RAILS as u64;
        let graphs = words.next().filter(|graphs| *graphs <= most);
        let decode = |_| compiled::decode(&mut words);
        let decoded = graphs.map(|graphs| (0..graphs).try_for_each(decode));
        if decoded.flatten().is_none() {
            return Err(DecodeError("the graph of its network is not valid".into()));
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
            KeyType::Part { keys, .. } | KeyType::List { keys, .. } => digest(keys, hash),
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

    fn optional<T>(&mut self, key: &'static str) -> Result<Option<T>, DecodeError>
    where
        Option<T>: Quantity,
    {
        self.value(key)
    }

    fn part<P: Part>(&mut self, _: &'static str) -> Result<P, DecodeError> {
        let part = P::build(self)?;
        part.check()
            .map_err(|wrong| DecodeError(format!("{} of {}: {}", wrong.key, P::KIND, wrong.why)))?;
        Ok(part)
    }

    fn extra<P: Part>(&mut self, key: &'static str) -> Result<Option<P>, DecodeError> {
        match self.value(key)? {
            true => self.part(key).map(Some),
            false => Ok(None),
        }
    }

    fn list<L: PartList>(&mut self, key: &'static str) -> Result<L, DecodeError> {
        let mut word = || {
            let word = self.0.next();
            word.ok_or_else(|| DecodeError(format!("it ends before {key}")))
        };
        let (listed, number) = (word()?, word()?);
        let wrong = || DecodeError(format!("{key} cannot be {listed:#x}, {number:#x}"));
        let list = match listed {
            0 => u32::try_from(number).ok().and_then(L::of_number),
            1 if number <= L::MOST as u64 => {
                let parts: Result<Vec<L::Item>, _> = (0..number).map(|_| self.part(key)).collect();
                L::of_parts(&parts?)
            }
            _ => None,
        };
        list.ok_or_else(wrong)
    }
}
