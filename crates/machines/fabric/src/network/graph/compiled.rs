//! The compiled form of a graph, which a launcher passes to ranks with the system.

use super::cabling::{Cabling, GraphLink, MOST_HOSTS, MOST_SWITCHES, NO_ROUTE};
use super::known::GraphKey;
use super::routed::{Graph, Names, Rule};
use super::walk;
use crate::network::lanes::MOST_LANES;
use crate::quantity::Quantity;

/// The bytes of a host: its switch and its port there.
const HOST: usize = 5;
/// The bytes of a link: its end and its port.
const LINK: usize = 5;

const RULES: [Rule; 3] = [Rule::Shortest, Rule::UpDown, Rule::Given];

/// Appends the words of a graph that this process has.
pub fn encode(key: GraphKey, words: &mut Vec<u64>) {
    let graph = key.graph();
    let rule = RULES.iter().position(|rule| *rule == graph.rule);
    let (graph_word, routes_word) = (Some(key.graph).to_word(), key.routes.to_word());
    let counts = [graph.hosts(), graph.switches(), graph.links().len() as u32];
    let mut bytes = Vec::new();
    for (switch, port) in &graph.cabling.homes {
        bytes.extend(switch.to_le_bytes());
        bytes.push(*port);
    }
    for end in &graph.cabling.first[1..] {
        bytes.extend(end.to_le_bytes());
    }
    for link in graph.links() {
        bytes.extend(link.to.to_le_bytes());
        bytes.push(link.port);
    }
    bytes.extend(&graph.lanes);
    bytes.extend(&graph.table);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    words.extend([graph_word, routes_word, rule.unwrap_or(0) as u64]);
    words.extend(counts.map(u64::from));
    let (packed, _) = bytes.as_chunks::<8>();
    words.extend(packed.iter().map(|word| u64::from_le_bytes(*word)));
}

/// Reads a graph from the words that [`encode`] wrote, and adds it to those of the process. The
/// words may be of any origin. `None`: they are no graph.
pub fn decode(words: &mut impl Iterator<Item = u64>) -> Option<()> {
    let mut head = [0; 6];
    for word in &mut head {
        *word = words.next()?;
    }
    let [graph, routes, rule, hosts, switches, links] = head;
    let key = GraphKey {
        graph: Quantity::from_word(graph).flatten()?,
        routes: Quantity::from_word(routes)?,
    };
    let rule = *RULES.get(usize::try_from(rule).ok()?)?;
    let count = |number: u64, most: usize| usize::try_from(number).ok().filter(|n| *n <= most);
    let (hosts, switches) = (count(hosts, MOST_HOSTS)?, count(switches, MOST_SWITCHES)?);
    let links = count(links, MOST_SWITCHES * usize::from(NO_ROUTE))?;
    let len = hosts * HOST + switches * 5 + links * LINK + hosts * switches;
    // The words are read one by one, so that a false number takes no memory.
    let packed: Vec<u64> = words.take(len.div_ceil(8)).collect();
    let bytes: Vec<u8> = packed.into_iter().flat_map(u64::to_le_bytes).collect();
    let cabling_len = hosts * HOST + switches * 4 + links * LINK;
    let (cabling, rest) = bytes.get(..len)?.split_at_checked(cabling_len)?;
    let cabling = self::cabling(cabling, hosts, switches)?;
    let (lanes, table) = rest.split_at_checked(switches)?;
    let is_valid = lanes.iter().all(|lane| usize::from(*lane) < MOST_LANES)
        && hosts > 0
        && walk::dependencies(&cabling, table).is_ok();
    let routes = (table.to_vec(), lanes.to_vec());
    let graph = is_valid.then(|| Graph::new(cabling, routes, rule, Names::default()))?;
    match key.find() {
        Some(_) => Some(()),
        None => key.keep(graph).ok().map(drop),
    }
}

/// The cabling of these bytes, if all its numbers are valid.
fn cabling(bytes: &[u8], hosts: usize, switches: usize) -> Option<Cabling> {
    let number = |bytes: &[u8]| {
        bytes
            .first_chunk::<4>()
            .map(|word| u32::from_le_bytes(*word))
    };
    let (homes, rest) = bytes.split_at_checked(hosts * HOST)?;
    let (ends, ports) = rest.split_at_checked(switches * 4)?;
    let is_switch = |switch: &u32| (*switch as usize) < switches;
    let homes = homes.chunks_exact(HOST).map(|host| {
        let switch = number(host).filter(is_switch)?;
        Some((switch, host[4]))
    });
    let ends: Option<Vec<u32>> = ends.chunks_exact(4).map(number).collect();
    let mut first = vec![0];
    first.extend(ends?);
    let count = ports.len() / LINK;
    let is_even = first.windows(2).all(|two| {
        two[0] <= two[1] && two[1] - two[0] < u32::from(NO_ROUTE) && two[1] as usize <= count
    });
    if !is_even || first.last().map(|last| *last as usize) != Some(count) {
        return None;
    }
    let links = ports.chunks_exact(LINK).enumerate().map(|(at, link)| {
        let from = first.partition_point(|first| *first as usize <= at) - 1;
        Some(GraphLink {
            from: from as u32,
            to: number(link).filter(is_switch)?,
            port: link[4],
        })
    });
    let links = links.collect::<Option<Vec<GraphLink>>>()?;
    Some(Cabling {
        homes: homes.collect::<Option<Vec<(u32, u8)>>>()?,
        first,
        links,
    })
}
