//! A description of the rails of hosts, as text and as JSON: their networks and cards, the pairs
//! that they form between hosts, and the rails that cannot reach each other.

use std::net::Ipv4Addr;

use channel::rdma::pairing::{Network, pairs};
use device::LinkLayer;
use results::table::lines;
use serde_json::{Value, json};

/// The rails that all hosts of a group have.
pub(crate) struct HostRails {
    /// The hosts as text, such as `hosts 0-3`.
    pub(crate) hosts: String,
    /// The rails, in the order of their numbers.
    pub(crate) rails: Vec<RailFacts>,
}

/// A rail: a port with its network and its card.
#[derive(Clone)]
pub(crate) struct RailFacts {
    /// The name of the port.
    pub(crate) port: String,
    /// The network of the port.
    pub(crate) network: Network,
    /// The payload rate in one direction, in bytes per second.
    pub(crate) bandwidth: u64,
    /// The card, if it is known. Rails of one card share its slot.
    pub(crate) card: Option<String>,
    /// A description of the card's slot, if it is known.
    pub(crate) slot: Option<String>,
    /// The payload rate of the slot in one direction, in bytes per second, if it is known.
    pub(crate) slot_bandwidth: Option<u64>,
}

impl RailFacts {
    fn row(&self, number: usize) -> Vec<String> {
        let or_dash = |words: &Option<String>| words.clone().unwrap_or("–".into());
        vec![
            number.to_string(),
            self.port.clone(),
            layer(self.network).into(),
            subnet(self.network),
            or_dash(&self.card),
            or_dash(&self.slot),
            megabytes(self.bandwidth),
        ]
    }

    fn object(&self, number: usize) -> Value {
        json!({
            "rail": number,
            "port": self.port,
            "link_layer": layer(self.network),
            "subnet": subnet(self.network),
            "bytes_per_second": self.bandwidth,
            "card": self.card,
            "slot": self.slot,
            "slot_bytes_per_second": self.slot_bandwidth,
        })
    }
}

impl HostRails {
    /// The table of the rails, and lines about rails that share a slot.
    pub(crate) fn text(&self) -> String {
        let header = ["rail", "port", "link", "subnet", "card", "slot", "MB/s"];
        let rows = self.rails.iter().enumerate();
        let rows = rows.map(|(number, rail)| rail.row(number)).collect();
        let header = header.map(String::from).to_vec();
        let left = header.len() - 1;
        let mut text = lines(header, rows, left);
        for (card, numbers) in self.shared_cards() {
            let carried = self.rails[numbers[0]].slot_bandwidth;
            let carried = carried.map_or(String::new(), |slot| {
                format!(", at most {} MB/s", megabytes(slot))
            });
            text += &format!(
                "Rails {} are ports of one card, {card}: together they carry what its slot carries{carried}.\n",
                words(&numbers)
            );
        }
        text
    }

    /// The rail as a JSON object.
    pub(crate) fn object(&self) -> Value {
        let rails = self.rails.iter().enumerate();
        let rails = rails.map(|(number, rail)| rail.object(number));
        let shared = self.shared_cards().into_iter();
        let shared = shared.map(|(card, numbers)| json!({ "card": card, "rails": numbers }));
        json!({
            "hosts": self.hosts,
            "rails": rails.collect::<Vec<_>>(),
            "shared_cards": shared.collect::<Vec<_>>(),
        })
    }

    /// The cards with several rails, each with the numbers of its rails.
    fn shared_cards(&self) -> Vec<(&str, Vec<usize>)> {
        let mut cards: Vec<(&str, Vec<usize>)> = Vec::new();
        for (number, rail) in self.rails.iter().enumerate() {
            let Some(card) = rail.card.as_deref() else {
                continue;
            };
            match cards.iter_mut().find(|(known, _)| *known == card) {
                Some((_, numbers)) => numbers.push(number),
                None => cards.push((card, vec![number])),
            }
        }
        cards.retain(|(_, numbers)| numbers.len() > 1);
        cards
    }

    fn networks(&self) -> Vec<Network> {
        self.rails.iter().map(|rail| rail.network).collect()
    }
}

/// The pairs of rails between two hosts, and the rails without a partner.
pub(crate) struct Pairing<'a> {
    hosts: [&'a HostRails; 2],
    pairs: Vec<(usize, usize)>,
}

impl Pairing<'_> {
    /// Pairs the rails of two kinds of hosts.
    pub(crate) fn new<'a>(one: &'a HostRails, other: &'a HostRails) -> Pairing<'a> {
        Pairing {
            pairs: pairs(&one.networks(), &other.networks()),
            hosts: [one, other],
        }
    }

    /// The rails without a partner: the index of the host (0 or 1), the rail, and the reason.
    fn alone(&self) -> Vec<(usize, usize, String)> {
        let mut alone = Vec::new();
        for end in 0..2 {
            let paired: Vec<usize> = self
                .pairs
                .iter()
                .map(|pair| [pair.0, pair.1][end])
                .collect();
            for (number, rail) in self.hosts[end].rails.iter().enumerate() {
                if paired.contains(&number) {
                    continue;
                }
                let mut others = self.hosts[1 - end].networks().into_iter();
                let why = match others.any(|network| network == rail.network) {
                    true => "all ports of its network there have other partners".into(),
                    false => format!(
                        "no port there is on its network, {} subnet {}",
                        layer(rail.network),
                        subnet(rail.network)
                    ),
                };
                alone.push((end, number, why));
            }
        }
        alone
    }

    /// The pairs of rails that are on different networks.
    fn unreachable(&self) -> Vec<(usize, usize)> {
        let [one, other] = self.hosts.map(HostRails::networks);
        let all = (0..one.len()).flat_map(|at| (0..other.len()).map(move |to| (at, to)));
        let mut apart: Vec<(usize, usize)> = all.filter(|&(at, to)| one[at] != other[to]).collect();
        if self.is_alike() {
            apart.retain(|(at, to)| at < to);
        }
        apart
    }

    /// True if both hosts are of one kind.
    fn is_alike(&self) -> bool {
        std::ptr::eq(self.hosts[0], self.hosts[1])
    }

    /// A description of the pairs, and of rails without a partner.
    pub(crate) fn text(&self) -> String {
        let shown = self.pairs.iter();
        let shown: Vec<String> = shown.map(|(at, to)| format!("{at}–{to}")).collect();
        let mut text = match shown.is_empty() {
            true => "No rails pair".to_string(),
            false => format!("Rails pair {}", shown.join(", ")),
        };
        let [one, other] = self.hosts.map(|kind| &kind.hosts);
        text += &match self.is_alike() {
            true => format!(" between {one}.\n"),
            false => format!(" between {one} and {other}.\n"),
        };
        for (end, number, why) in self.alone() {
            let of = &self.hosts[end].hosts;
            text += &format!("Rail {number} of {of} carries nothing then: {why}.\n");
        }
        let apart = self.unreachable();
        if !apart.is_empty() {
            let apart: Vec<String> = apart.iter().map(|(at, to)| format!("{at}–{to}")).collect();
            text += &format!(
                "Cannot reach each other, because their networks differ: {}.\n",
                apart.join(", ")
            );
        }
        text
    }

    /// The pairs of rails as a JSON object.
    pub(crate) fn object(&self) -> Value {
        let alone = self.alone().into_iter().map(|(end, number, why)| {
            json!({ "hosts": self.hosts[end].hosts, "rail": number, "why": why })
        });
        json!({
            "between": self.hosts.map(|kind| &kind.hosts),
            "pairs": self.pairs,
            "without_partner": alone.collect::<Vec<_>>(),
            "cannot_reach": self.unreachable(),
        })
    }
}

/// The pairings between each two kinds of hosts, and within each kind for which `has_several` is
/// true.
pub(crate) fn pairings<'a>(
    kinds: &'a [HostRails],
    has_several: impl Fn(usize) -> bool,
) -> Vec<Pairing<'a>> {
    let mut all = Vec::new();
    for (at, one) in kinds.iter().enumerate() {
        if has_several(at) {
            all.push(Pairing::new(one, one));
        }
        all.extend(kinds[at + 1..].iter().map(|other| Pairing::new(one, other)));
    }
    all
}

fn layer(network: Network) -> &'static str {
    match network.link_layer {
        LinkLayer::InfiniBand => "InfiniBand",
        LinkLayer::Ethernet => "Ethernet",
        LinkLayer::Internet => "TCP",
    }
}

/// The subnet as text, in the notation of its technology.
fn subnet(network: Network) -> String {
    /// The upper bits of an IPv4 address in the form of an IPv6 address.
    const IPV4: u64 = 0xffff;
    match (network.link_layer, network.subnet) {
        (LinkLayer::Ethernet | LinkLayer::Internet, subnet) if subnet >> 32 == IPV4 => {
            Ipv4Addr::from(subnet as u32).to_string()
        }
        (_, small) if small < 1 << 16 => small.to_string(),
        (_, other) => format!("{other:x}"),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

/// Joins numbers to text: `0 and 1`, `0, 1 and 2`.
fn words(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match numbers.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rail(port: &str, subnet: u64, card: Option<&str>) -> RailFacts {
        RailFacts {
            port: port.into(),
            network: Network {
                link_layer: LinkLayer::InfiniBand,
                subnet,
            },
            bandwidth: 3_200_000_000,
            card: card.map(String::from),
            slot: None,
            slot_bandwidth: Some(6_000_000_000),
        }
    }

    fn hosts(hosts: &str, rails: Vec<RailFacts>) -> HostRails {
        HostRails {
            hosts: hosts.into(),
            rails,
        }
    }

    #[test]
    fn alike_hosts_pair_rail_by_rail_and_name_what_cannot_reach() {
        let kind = hosts("hosts 0-1", vec![rail("a", 1, None), rail("b", 2, None)]);
        let pairing = Pairing::new(&kind, &kind);
        assert_eq!(
            pairing.text(),
            "Rails pair 0–0, 1–1 between hosts 0-1.\n\
             Cannot reach each other, because their networks differ: 0–1.\n"
        );
        assert_eq!(pairing.object()["pairs"], json!([[0, 0], [1, 1]]));
    }

    #[test]
    fn a_rail_without_a_partner_is_named_with_the_reason() {
        let two = hosts("host 0", vec![rail("a", 1, None), rail("b", 1, None)]);
        let one = hosts("host 1", vec![rail("a", 1, None)]);
        let text = Pairing::new(&two, &one).text();
        assert!(
            text.starts_with("Rails pair 0–0 between host 0 and host 1.\n"),
            "{text}"
        );
        let why = "Rail 1 of host 0 carries nothing then: all ports of its network";
        assert!(text.contains(why), "{text}");
        let far = hosts("host 2", vec![rail("a", 9, None)]);
        let text = Pairing::new(&two, &far).text();
        assert!(text.starts_with("No rails pair between"), "{text}");
        assert!(
            text.contains("Rail 0 of host 2 carries nothing then: no port there"),
            "{text}"
        );
        assert!(text.contains("differ: 0–0, 1–0."), "{text}");
    }

    #[test]
    fn ports_of_one_card_count_as_what_its_slot_carries() {
        let rails = vec![
            rail("a", 1, Some("card 0")),
            rail("b", 1, Some("card 0")),
            rail("c", 1, Some("card 1")),
        ];
        let kind = hosts("hosts 0-1", rails);
        let line = "Rails 0 and 1 are ports of one card, card 0: together they carry what its slot carries, at most 6000 MB/s.\n";
        assert!(kind.text().ends_with(line), "{}", kind.text());
        let shared = &kind.object()["shared_cards"];
        assert_eq!(*shared, json!([{ "card": "card 0", "rails": [0, 1] }]));
    }
}
