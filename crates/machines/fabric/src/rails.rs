//! The rails of a system: each one an HCA's port with its slot, cable and switches. Rails may
//! differ from each other, and hosts may have different ones.

use crate::components::{Bus, Cable, Hca, InvalidValue, Link, Part, PartList, Switch, lanes, part};
use crate::network::counts::Counts;
use crate::network::graph::files::NetworkFile;
use crate::network::{Oversubscription, Routing, Shape, Topology};
use crate::quantity::{Quantity, Raw};
use crate::units::{GbPerSec, Nanos};

/// The greatest number of rails of a system.
pub const MOST_RAILS: usize = 8;
/// The greatest number of hosts with rails of their own.
pub const MOST_OWN_HOSTS: usize = 8;

part! {
    /// A rail of a host: a port of an HCA, the slot of the HCA, and the network of the port.
    Rail "rail" {
        part hca: Hca, "The HCA.";
        part slot: Bus, "The fastest bus of its slot.";
        value lanes: u32, "Lanes of its slot.";
        value socket: u32, "Number of the socket that its slot is attached to; ranks run on socket 0.";
        value card: u32, "Number of its card; rails of one card are ports that share its slot, its chip and its protection domain.";
        value subnet: u32, "Number of its subnet; only ports of one subnet reach each other.";
        part cable: Cable, "The cables, all of equal length.";
        part switch: Switch, "The switches.";
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
    }
    check |rail| {
        lanes(rail.lanes)?;
        InvalidValue::unless(rail.slot.half_duplex == rail.hca.bus.half_duplex, "hca", || {
            "the HCA does not fit the host's slot: one is PCI-X, the other PCI Express".into()
        })?;
        let Oversubscription(times) = rail.oversubscription;
        InvalidValue::unless((1..=64).contains(&times), "oversubscription", || {
            format!("{times} hosts for each link are not possible; valid are 1 to 64")
        })?;
        let direct = rail.switch.ports == 0;
        InvalidValue::unless(rail.hops.is_none_or(|hops| direct == (hops == 0)), "hops", || match direct {
            true => "this system has no switch; name one, or leave hops out".into(),
            false => "hosts on a switch are at least 1 hop apart; for hosts back to back set switch = \"none\"".into(),
        })?;
        InvalidValue::unless(rail.hops.is_none_or(|hops| hops <= 16), "hops", || "more than 16 hops are not possible".into())
    }
}

impl Rail {
    /// The link between HCA and switch, or between two HCAs: of the slower of the two generations.
    pub fn link(&self) -> &Link {
        let (hca, switch) = (&self.hca.link, &self.switch.link);
        match self.switch.ports > 0 && switch.data() < hca.data() {
            true => switch,
            false => hca,
        }
    }

    /// The number of lanes of the link between HCA and switch: the smaller of both ports'.
    pub fn link_width(&self) -> u32 {
        match self.switch.ports {
            0 => self.hca.width,
            _ => self.hca.width.min(self.switch.width),
        }
    }

    /// The packet rate of the rail's port, headers included.
    pub fn link_rate(&self) -> GbPerSec {
        self.link().data() * self.link_width()
    }

    /// The bus between host and HCA: the slower of their two generations.
    pub fn bus(&self) -> &Bus {
        let (slot, hca) = (&self.slot, &self.hca.bus);
        if slot.data() < hca.data() { slot } else { hca }
    }

    /// The number of lanes of the bus: the smaller of the slot's and the HCA's.
    pub fn bus_lanes(&self) -> u32 {
        self.lanes.min(self.hca.lanes)
    }

    /// The packet rate of the bus in each direction, headers included.
    pub fn bus_rate(&self) -> GbPerSec {
        self.bus().data() * self.bus_lanes()
    }

    /// Latency of one cable with its connectors.
    pub fn cable_time(&self) -> Nanos {
        self.cable.length.time(self.cable.metre) + self.cable.conversion
    }

    /// The latency of a packet's first bit through cables and `hops` switches.
    pub fn flight(&self, hops: u32) -> Nanos {
        let cable = self.cable_time() + self.link().correction;
        cable * u64::from(hops + 1) + self.switch.latency * u64::from(hops)
    }

    /// The shape of the network of the rail.
    pub fn shape(&self) -> Shape {
        Shape {
            topology: self.topology,
            ports: self.switch.ports,
            oversubscription: self.oversubscription.0,
            hosts: self.switch_hosts,
            dimensions: self.dimensions,
            cables: self.cables,
            graph: self.graph,
            routes: self.routes,
        }
    }

    /// The packet rate of a link between switches, headers included.
    pub fn inner_rate(&self) -> GbPerSec {
        let width = self.inner_width.unwrap_or(self.switch.width);
        self.switch.link.data() * width.max(1)
    }

    /// True if packets of the rail choose their paths.
    pub fn is_adaptive(&self) -> bool {
        self.routing == Some(Routing::Adaptive)
    }

    /// Checks two ports of one card: an error if they differ in slot or chip.
    fn check_card(&self, other: &Rail) -> Result<(), &'static str> {
        let slot = |rail: &Rail| (rail.slot, rail.lanes, rail.socket);
        let chip = |rail: &Rail| {
            let hca = &rail.hca;
            (
                (hca.bus, hca.lanes, hca.read_engine, hca.internal),
                (hca.chip_rate, hca.answer_rate, hca.atomic_rate),
            )
        };
        match (slot(self) == slot(other), chip(self) == chip(other)) {
            (false, _) => Err("slots (slot, lanes, socket)"),
            (true, false) => Err("HCAs (bus, lanes, read_engine, internal, rates of the chip)"),
            (true, true) => Ok(()),
        }
    }
}

/// The rails of a system: a number of equal ones, or a list.
#[derive(Clone, Copy, Debug, PartialEq)]
// A system is copied into the memory of a world, which holds no pointers, so the list is stored
// inline.
#[allow(clippy::large_enum_variant)]
pub enum Rails {
    /// Rails with the system's HCA, cable and switches, each with a slot of its own; all but the
    /// first are attached to the other socket.
    Equal(u32),
    /// The rails may differ: the list has an entry for each.
    Listed(Parts<Rail, MOST_RAILS>),
}

impl Rails {
    /// The number of rails of the system's hosts.
    pub fn count(&self) -> u32 {
        match self {
            Rails::Equal(number) => *number,
            Rails::Listed(rails) => rails.as_slice().len() as u32,
        }
    }

    /// Checks that the number of rails is valid, and that ports of one card fit together.
    pub(crate) fn check(&self) -> Result<(), InvalidValue> {
        let count = self.count();
        InvalidValue::unless((1..=MOST_RAILS as u32).contains(&count), "rails", || {
            format!("{count} rails are not possible; valid are 1 to {MOST_RAILS}")
        })?;
        let Rails::Listed(rails) = self else {
            return Ok(());
        };
        let rails = rails.as_slice();
        for (number, rail) in rails.iter().enumerate() {
            let first = rails.iter().position(|other| other.card == rail.card);
            let first = first.unwrap_or(number);
            if let Err(what) = rail.check_card(&rails[first]) {
                let why = format!(
                    "rails {first} and {number} are ports of card {}, but have different {what}; a card has one slot and one chip: \
                     give both rails the same, or another card",
                    rail.card
                );
                return Err(InvalidValue { key: "rails", why });
            }
        }
        Ok(())
    }
}

impl PartList for Rails {
    type Item = Rail;
    const MOST: usize = MOST_RAILS;
    const NUMBER: Option<&'static str> = Some("a number of equal rails, 1 to 8");

    fn absent() -> Option<Rails> {
        None
    }
    fn of_number(number: u32) -> Option<Rails> {
        Some(Rails::Equal(number))
    }
    fn of_parts(parts: &[Rail]) -> Option<Rails> {
        Parts::of(parts).map(Rails::Listed)
    }
    fn parts(&self) -> Result<&[Rail], u32> {
        match self {
            Rails::Equal(number) => Err(*number),
            Rails::Listed(rails) => Ok(rails.as_slice()),
        }
    }
}

part! {
    /// A host whose rails differ from those of the others.
    OwnRails "host's rails" {
        value host: u32, "Number of the host, counted from 0.";
        value rails: RailNumbers, "Its rails: numbers in the system's list of rails, in the order of the host's own numbering.";
    }
    check |_| Ok(())
}

/// The hosts whose rails differ from those of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnHosts(Parts<OwnRails, MOST_OWN_HOSTS>);

impl OwnHosts {
    /// The rails of a host that has rails of its own. `None`: the host has the rails of all others.
    pub fn rails_of(&self, host: u32) -> Option<RailNumbers> {
        let mut hosts = self.0.as_slice().iter();
        hosts.find(|own| own.host == host).map(|own| own.rails)
    }

    /// Checks that the system has these hosts and their rails.
    pub(crate) fn check(&self, nodes: u32, rails: u32) -> Result<(), InvalidValue> {
        let hosts = self.0.as_slice();
        for (at, own) in hosts.iter().enumerate() {
            let host = own.host;
            InvalidValue::unless(host < nodes, "hosts", || {
                format!("there is no host {host}: the system has {nodes} hosts, counted from 0")
            })?;
            let twice = hosts[..at].iter().any(|other| other.host == host);
            InvalidValue::unless(!twice, "hosts", || {
                format!("host {host} has two lists of rails; keep one")
            })?;
            let wrong = own.rails.iter().find(|&rail| rail >= rails);
            if let Some(rail) = wrong {
                let why = format!(
                    "host {host} has rail {rail} in its list, but the system has {rails} rails, counted from 0"
                );
                return Err(InvalidValue { key: "hosts", why });
            }
        }
        Ok(())
    }
}

impl PartList for OwnHosts {
    type Item = OwnRails;
    const MOST: usize = MOST_OWN_HOSTS;
    const NUMBER: Option<&'static str> = None;

    fn absent() -> Option<OwnHosts> {
        Some(OwnHosts::default())
    }
    fn of_number(_: u32) -> Option<OwnHosts> {
        None
    }
    fn of_parts(parts: &[OwnRails]) -> Option<OwnHosts> {
        Parts::of(parts).map(OwnHosts)
    }
    fn parts(&self) -> Result<&[OwnRails], u32> {
        Ok(self.0.as_slice())
    }
}

/// Numbers of rails in a fixed order: at least one, and each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailNumbers {
    len: u8,
    rails: [u8; MOST_RAILS],
}

impl RailNumbers {
    /// The rails with these numbers, in this order; `None` if the list is empty, or if a number
    /// occurs twice or is too great.
    pub fn of(numbers: &[u32]) -> Option<RailNumbers> {
        let mut rails = [0; MOST_RAILS];
        for (at, &number) in numbers.iter().enumerate() {
            let valid = number < MOST_RAILS as u32 && !numbers[..at].contains(&number);
            *rails.get_mut(at).filter(|_| valid)? = number as u8;
        }
        let len = numbers.len() as u8;
        (len > 0).then_some(RailNumbers { len, rails })
    }

    /// The numbers of the rails, in their order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let own = &self.rails[..usize::from(self.len)];
        own.iter().map(|&rail| u32::from(rail))
    }
}

impl Quantity for RailNumbers {
    const VALID: &'static str = "the number of its rails, which are then the first of the system, or a list of their numbers, such as [0, 2]";

    fn read(raw: &Raw) -> Option<RailNumbers> {
        let numbers: Vec<u32> = match raw {
            Raw::Integer(count) => (0..u32::try_from(*count).ok()?.min(99)).collect(),
            Raw::Other(text) => {
                let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
                let words = inner.strip_suffix(',').unwrap_or(inner).split(',');
                let numbers: Result<_, _> = words.map(|word| word.trim().parse()).collect();
                numbers.ok()?
            }
            _ => return None,
        };
        RailNumbers::of(&numbers)
    }
    fn show(&self) -> String {
        let numbers: Vec<String> = self.iter().map(|rail| rail.to_string()).collect();
        format!("[{}]", numbers.join(", "))
    }
    /// The rails as a word: four bits for the length, and then four for each number.
    fn to_word(&self) -> u64 {
        let word = |word, (at, rail): (usize, u32)| word | u64::from(rail) << (4 * (at + 1));
        self.iter().enumerate().fold(u64::from(self.len), word)
    }
    fn from_word(word: u64) -> Option<RailNumbers> {
        let len = (word & 15) as usize;
        let numbers: Vec<u32> = (1..=len).map(|at| (word >> (4 * at) & 15) as u32).collect();
        RailNumbers::of(&numbers).filter(|numbers| numbers.to_word() == word)
    }
}

/// A list of at most `N` components, stored inline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts<P: Copy, const N: usize> {
    len: usize,
    // Entries after the last component repeat the first, so that equal lists are equal bytes.
    parts: Option<[P; N]>,
}

impl<P: Copy, const N: usize> Default for Parts<P, N> {
    fn default() -> Parts<P, N> {
        Parts {
            len: 0,
            parts: None,
        }
    }
}

impl<P: Part + Copy, const N: usize> Parts<P, N> {
    /// The list of these components; `None` if there are more than `N`.
    pub fn of(parts: &[P]) -> Option<Parts<P, N>> {
        let Some(&first) = parts.first() else {
            return Some(Parts::default());
        };
        let mut all = [first; N];
        all.get_mut(..parts.len())?.copy_from_slice(parts);
        Some(Parts {
            len: parts.len(),
            parts: Some(all),
        })
    }

    /// The components of the list, as a slice.
    pub fn as_slice(&self) -> &[P] {
        self.parts.as_ref().map_or(&[], |all| &all[..self.len])
    }
}
