//! Tests of graphs: from the texts of files to routes.

use std::fmt::Write;

use proptest::prelude::*;

use super::compiled;
use super::files::NetworkFile;
use super::{Graph, GraphKey, Rule};
use crate::network::path::Choice;

/// The text of `ibnetdiscover` for switches with `hosts` hosts each, and these cables.
fn text(switches: u32, hosts: u32, cables: &[(u32, u32)]) -> String {
    let mut ports: Vec<Vec<String>> = vec![Vec::new(); switches as usize];
    for host in 0..switches * hosts {
        let at = &mut ports[(host / hosts) as usize];
        let port = at.len() + 1;
        let lid = 100 + host;
        at.push(format!(
            "[{port}]\t\"H-{host:016x}\"[1](ab) \t\t# \"n{host} mlx5_0\" lid {lid} 4xHDR"
        ));
    }
    for (one, other) in cables {
        let [here, there] = [one, other].map(|switch| ports[*switch as usize].len() + 1);
        let there = there + usize::from(one == other);
        let line = |port: usize, peer: u32, end: usize| {
            format!(
                "[{port}]\t\"S-{peer:016x}\"[{end}]\t\t# \"s{peer}\" lid {} 4xHDR",
                peer + 1
            )
        };
        ports[*one as usize].push(line(here, *other, there));
        ports[*other as usize].push(line(there, *one, here));
    }
    let mut text = String::from("#\n# Topology file\n#\n\n");
    for (switch, ports) in ports.iter().enumerate() {
        let _ = writeln!(text, "vendid=0x2c9\nswitchguid=0x{switch:x}({switch:x})");
        let _ = writeln!(
            text,
            "Switch\t40 \"S-{switch:016x}\"\t\t# \"s{switch}\" port 0 lid {} lmc 0",
            switch + 1
        );
        let _ = writeln!(text, "{}\n", ports.join("\n"));
    }
    text
}

fn graph(text: &str) -> Result<Graph, String> {
    Graph::read(("net.txt", text), None).map_err(|(_, why)| why)
}

fn with_routes(text: &str, routes: &str) -> Result<Graph, String> {
    let graph = Graph::read(("net.txt", text), Some(("lfts.txt", routes)));
    graph.map_err(|(_, why)| why)
}

/// Checks that each route leads to its host, and returns the greatest use of a link by routes.
fn walk(graph: &Graph) -> usize {
    let mut uses = vec![0; graph.links().len()];
    for (from, to) in
        (0..graph.hosts()).flat_map(|from| (0..graph.hosts()).map(move |to| (from, to)))
    {
        for choice in [Choice::ByDestination, Choice::Number(from + 3 * to)] {
            let path = graph.path(from, to, choice);
            let mut at = graph.home(from);
            for link in path.links() {
                let link = graph.links()[*link as usize];
                assert_eq!(link.from, at);
                at = link.to;
            }
            assert_eq!(at, graph.home(to), "{from} {to} {choice:?}");
            if choice == Choice::ByDestination {
                path.links()
                    .iter()
                    .for_each(|link| uses[*link as usize] += 1);
            }
        }
    }
    uses.into_iter().max().unwrap_or(0)
}

/// The cables of a fat tree: each of `leaves` leaves has a cable to each of `tops` tops.
fn tree(leaves: u32, tops: u32) -> Vec<(u32, u32)> {
    (0..leaves)
        .flat_map(|leaf| (0..tops).map(move |top| (leaf, leaves + top)))
        .collect()
}

/// The text of a tree whose tops have no hosts.
fn tree_text(leaves: u32, tops: u32, hosts: u32) -> String {
    let all = text(leaves + tops, hosts, &tree(leaves, tops));
    let first_of_top = leaves * hosts;
    let is_kept = |line: &&str| {
        let host = line.split("\"H-").nth(1).and_then(|rest| rest.get(..16));
        let host = host.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        host.is_none_or(|host| host < first_of_top)
    };
    all.lines()
        .filter(is_kept)
        .collect::<Vec<&str>>()
        .join("\n")
}

#[test]
fn the_routes_of_a_tree_use_all_links_evenly() {
    let graph = graph(&tree_text(4, 3, 3)).unwrap();
    assert_eq!(
        (graph.hosts(), graph.switches(), graph.rule()),
        (12, 7, Rule::Shortest)
    );
    assert_eq!(
        (graph.hops(0, 1), graph.hops(0, 3), graph.choices(0, 3)),
        (1, 3, 3)
    );
    // Three hosts have nine peers elsewhere each, over three links.
    assert_eq!(walk(&graph), 9);
    assert_eq!(graph.lanes(), 1);
    assert_eq!(graph.names().hosts[11], "n11");
    assert_eq!(graph.names().switches[6], "s6");
}

#[test]
fn a_ring_gets_routes_up_and_down() {
    let ring: Vec<(u32, u32)> = (0..6).map(|at| (at, (at + 1) % 6)).collect();
    let graph = graph(&text(6, 2, &ring)).unwrap();
    assert_eq!((graph.rule(), graph.lanes()), (Rule::UpDown, 1));
    walk(&graph);
    let triangle = self::graph(&text(3, 1, &[(0, 1), (1, 2), (2, 0)])).unwrap();
    assert_eq!((triangle.rule(), walk(&triangle)), (Rule::Shortest, 1));
}

#[test]
fn a_large_torus_gets_lanes() {
    let torus = (0..144u32).flat_map(|at| {
        let (column, row) = (at % 12, at / 12);
        let right = row * 12 + (column + 1) % 12;
        [(at, right), (at, (at + 12) % 144)]
    });
    let graph = graph(&text(144, 1, &torus.collect::<Vec<_>>())).unwrap();
    assert_eq!((graph.rule(), graph.hops(0, 78)), (Rule::Shortest, 13));
    assert!((2..=8).contains(&graph.lanes()), "{}", graph.lanes());
    walk(&graph);
}

/// The tables of a ring of `switches` switches with one host each, all routes clockwise.
fn clockwise(switches: u32, text: &str) -> String {
    let mut tables = String::new();
    for switch in 0..switches {
        let next = (switch + 1) % switches;
        let section = text.split("Switch\t").nth(switch as usize + 1).unwrap();
        let line = section
            .lines()
            .find(|line| line.contains(&format!("\"S-{next:016x}\"")));
        let port: u32 = line.unwrap()[1..]
            .split(']')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let _ = writeln!(
            tables,
            "Unicast lids [0x0-0x70] of switch Lid {} guid 0x{switch:016x} (s{switch}):",
            switch + 1
        );
        let _ = writeln!(tables, "  Lid  Out   Destination\n       Port     Info");
        for host in 0..switches {
            let port = if host == switch { 1 } else { port };
            let _ = writeln!(tables, "0x{:04x} {port:03} : (Channel Adapter)", 100 + host);
        }
        let _ = writeln!(tables, "{switches} valid lids dumped\n");
    }
    tables
}

#[test]
fn given_routes_with_a_cycle_get_lanes() {
    let ring: Vec<(u32, u32)> = (0..5).map(|at| (at, (at + 1) % 5)).collect();
    let text = text(5, 1, &ring);
    let routes = clockwise(5, &text);
    let graph = with_routes(&text, &routes).unwrap();
    assert_eq!(
        (graph.rule(), graph.hops(0, 4), graph.hops(4, 0)),
        (Rule::Given, 5, 2)
    );
    assert!((2..=5).contains(&graph.lanes()), "{}", graph.lanes());
    walk(&graph);
}

#[test]
fn routes_for_which_no_lanes_suffice_are_refused() {
    let ring: Vec<(u32, u32)> = (0..17).map(|at| (at, (at + 1) % 17)).collect();
    let text = text(17, 1, &ring);
    let why = with_routes(&text, &clockwise(17, &text)).unwrap_err();
    let expected = "lfts.txt: these routes can deadlock: packets on the links of this cycle wait for each other";
    assert!(
        why.starts_with(expected) && why.contains("s0 port 2 to s1"),
        "{why}"
    );
}

#[test]
fn wrong_files_have_errors_with_lines() {
    let good = tree_text(2, 1, 1);
    let cases = [
        (
            String::new(),
            "net.txt: no line of this file begins a switch",
        ),
        (
            good.replace("4xHDR\n[2]", "4xHDR\nhello\n[2]"),
            "net.txt:9: this is no line of the output of ibnetdiscover",
        ),
        (
            good.replacen("[2]\t\"S-", "[0]\t\"S-", 1),
            "net.txt:9: a port needs its number from 1 to 255 and its peer",
        ),
        (
            good.replace("Switch\t40 \"S-", "Switch\t40 \"X-"),
            "net.txt:7: a switch needs its identifier",
        ),
        (
            format!("{good}\n\n{good}"),
            "net.txt:30: switch S-0000000000000000 stands in line 7, too",
        ),
        (
            good.replace("[2]\t\"S-", "[1]\t\"S-"),
            "stands in line 8, too",
        ),
        (
            good.replace("\"S-0000000000000002\"[2]", "\"S-0000000000000003\"[2]"),
            "the file has no section of the switch S-0000000000000003",
        ),
        (
            good.replace("\"S-0000000000000002\"[2]", "\"S-0000000000000002\"[9]"),
            "has no port 9",
        ),
        (
            good.replace("\"S-0000000000000002\"[2]", "\"S-0000000000000002\"[3]"),
            "port 3 of S-0000000000000002 has another peer in line 21",
        ),
        (
            good.replace("\"H-", "\"R-"),
            "net.txt: no switch of this file has a host at a port",
        ),
        (
            text(2, 1, &[]),
            "net.txt: no cables connect the hosts n0 and n1",
        ),
    ];
    for (wrong, expected) in cases {
        let why = graph(&wrong).expect_err(expected);
        assert!(why.contains(expected), "{why}\n{expected}");
    }
    let long: Vec<(u32, u32)> = (0..19).map(|at| (at, at + 1)).collect();
    let why = graph(&text(20, 1, &long)).unwrap_err();
    assert!(why.contains("has more than 16 links"), "{why}");
}

#[test]
fn wrong_tables_have_errors_with_lines() {
    let net = text(3, 1, &[(0, 1), (1, 2), (2, 0)]);
    let good = clockwise(3, &net);
    assert_eq!(with_routes(&net, &good).unwrap().hops(0, 2), 3);
    let cases = [
        (
            good.replace("0x0065 002", "0x0065 zwei"),
            "lfts.txt:5: a route needs an address and a port",
        ),
        (
            good.replace("0x0065 002", "hello"),
            "lfts.txt:5: this is no line of the output of dump_lfts",
        ),
        (
            good.replace("0x0065 002 :", "0x0065 009 :"),
            "lfts.txt: the switch s0 has no route to the host n1",
        ),
        (
            good.replace("guid 0x0000000000000001", "guid 0x1234"),
            "lfts.txt:9: the graph has no switch with the guid",
        ),
        (
            good.replace("guid 0x0000000000000001", "guid 0x0"),
            "lfts.txt:9: this switch has a table in line 1, too",
        ),
        (
            good.replacen("Unicast", "#", 1),
            "lfts.txt:4: a route stands before the line that names its switch",
        ),
        (String::new(), "lfts.txt: the file has no table"),
    ];
    for (wrong, expected) in cases {
        let why = with_routes(&net, &wrong).expect_err(expected);
        assert!(why.contains(expected), "{why}\n{expected}");
    }
    let why = with_routes(&net.replace("lid 102", "lid 101"), &good).unwrap_err();
    assert!(
        why.contains("lacks the address (lid) of a host, or has one twice"),
        "{why}"
    );
    // The routes to n2 from s0 and s1 lead to each other.
    let back = good.replacen("0x0066 003", "0x0066 002", 2);
    let why = with_routes(&net, &back);
    assert!(why.is_ok() || why.unwrap_err().contains("is a cycle"));
}

#[test]
fn hosts_are_in_natural_order_and_have_one_port_each() {
    let net = tree_text(2, 1, 2)
        .replace("n0 mlx5_0", "n10 mlx5_0")
        .replace("n1 mlx5_0", "n10 mlx5_1")
        .replace("n3 mlx5_0", "Mellanox Technologies Aggregation Node");
    let graph = graph(&net).unwrap();
    assert_eq!(graph.names().hosts, ["n2", "n10"]);
    assert_eq!(
        (graph.home(0), graph.home(1), graph.host_port(1)),
        (1, 0, 1)
    );
    // Descriptions that no one has changed name no host.
    let unnamed = net
        .replace("n10 mlx5_0", "MT4123 ConnectX6")
        .replace("n10 mlx5_1", "MT4123 ConnectX6");
    assert_eq!(self::graph(&unnamed).unwrap().hosts(), 3);
}

#[test]
fn the_compiled_form_is_the_graph_and_damage_is_found() {
    let key = GraphKey {
        graph: NetworkFile::add("compiled.txt", &tree_text(3, 2, 2)),
        routes: None,
    };
    let graph = key.load().unwrap();
    let mut words = Vec::new();
    compiled::encode(key, &mut words);
    // Another name for the graph, so that it is decoded anew.
    words[0] ^= 1;
    let mut rest = words.iter().copied().chain([7]);
    assert_eq!(compiled::decode(&mut rest), Some(()));
    assert_eq!(rest.next(), Some(7));
    let file = NetworkFile::add("compiled.txt", &tree_text(3, 2, 2));
    assert_eq!(key.graph, file);
    let again = GraphKey {
        graph: crate::quantity::Quantity::from_word(words[0])
            .flatten()
            .unwrap(),
        routes: None,
    };
    let again = again.find().unwrap();
    assert_eq!(
        (&again.cabling, &again.table, again.rule()),
        (&graph.cabling, &graph.table, graph.rule())
    );
    for len in 0..words.len() {
        assert_eq!(
            compiled::decode(&mut words[..len].iter().copied()),
            None,
            "{len}"
        );
    }
    for at in 2..words.len() {
        let mut damaged = words.clone();
        damaged[at] ^= 0x8000_0000_0000_0040;
        let _ = compiled::decode(&mut damaged.into_iter());
    }
}

proptest! {
    #[test]
    fn any_connected_graph_has_routes_without_cycles(
        switches in 2u32..12,
        hosts in 1u32..3,
        chords in prop::collection::vec((0u32..12, 0u32..12), 0..20),
    ) {
        let mut cables: Vec<(u32, u32)> = (1..switches).map(|at| (at / 2, at)).collect();
        cables.extend(chords.into_iter().filter(|(one, other)| one != other && (*one).max(*other) < switches));
        let graph = graph(&text(switches, hosts, &cables)).unwrap();
        walk(&graph);
        let sets = super::walk::dependencies(&graph.cabling, &graph.table).unwrap();
        let lanes = crate::network::lanes::assign(graph.links().len(), &sets).unwrap();
        prop_assert!(lanes.iter().all(|lane| *lane == 0));
    }

    #[test]
    fn any_text_is_a_graph_or_an_error(lines in prop::collection::vec(line(), 0..30), routes in prop::collection::vec(line(), 0..9)) {
        let (net, routes) = (lines.join("\n"), routes.join("\n"));
        if let Ok(graph) = graph(&net) {
            walk(&graph);
        }
        let _ = with_routes(&net, &routes);
        let _ = with_routes(&tree_text(2, 1, 1), &routes);
    }
}

/// A line that may occur in a file.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u8..3).prop_map(|switch| format!("Switch 4 \"S-{switch:016x}\" # \"s{switch}\"")),
        (0u8..6, 0u8..3, 0u8..6)
            .prop_map(|(port, to, end)| format!("[{port}] \"S-{to:016x}\"[{end}] # \"s\" lid 3")),
        (0u8..6, 0u8..4).prop_map(|(port, to)| format!(
            "[{port}] \"H-{to:016x}\"[1] # \"h{to} mlx5_0\" lid {}",
            100 + u32::from(to)
        )),
        (0u8..4)
            .prop_map(|guid| format!("Unicast lids [0-9] of switch Lid 1 guid 0x{guid:016x} (s):")),
        (0u8..9, 0u8..9)
            .prop_map(|(lid, port)| format!("0x{:04x} {port:03} : (x)", 96 + u32::from(lid))),
        "\\PC{0,20}",
        Just(String::new()),
    ]
}
