//! The catalogue is complete, every value has a source, and rates of links and buses are those of
//! the specifications.

use fabric::catalogue::{Catalogue, FieldValue, STANDINGS, Sheet};
use fabric::network::dragonfly::Dragonfly;
use fabric::{Bus, GbPerSec, Host, Link, System, Tree};

use crate::system;

fn link(name: &str) -> Link {
    Catalogue::builtin()
        .sheet("link", name)
        .unwrap()
        .build()
        .unwrap()
}

#[test]
fn every_value_has_a_source_that_says_what_stands_behind_it() {
    fn check(sheet: &Sheet, values: &mut usize) {
        for field in &sheet.fields {
            let (standing, text) = field.source.split_once(": ").unwrap_or((&field.source, ""));
            let where_ = format!(
                "{}: {}.{}: {}",
                field.location, sheet.path, field.key.name, field.source
            );
            assert!(STANDINGS.contains(&standing) && text.len() > 3, "{where_}");
            match &field.value {
                FieldValue::Value(_) => *values += 1,
                FieldValue::Part(part) => check(part, values),
                FieldValue::List(parts) => parts.iter().for_each(|part| check(part, values)),
            }
        }
    }
    let (catalogue, mut values) = (Catalogue::builtin(), 0);
    for entry in catalogue.entries() {
        assert!(!entry.about.is_empty(), "{}", entry.name);
        check(
            &catalogue.sheet(entry.kind, entry.name).unwrap(),
            &mut values,
        );
    }
    assert!(values > 1000, "{values}");
}

#[test]
fn every_host_has_its_cores_and_files_may_leave_them_out() {
    let catalogue = Catalogue::builtin();
    for host in catalogue.entries().filter(|entry| entry.kind == "host") {
        let sheet = catalogue.sheet("host", host.name).unwrap();
        let host: Host = sheet.build().unwrap();
        assert!(host.cores.is_some_and(|cores| cores % 2 == 0), "{sheet:?}");
    }
    let mut sheet = catalogue.sheet("host", "milan-vm").unwrap();
    assert_eq!(sheet.build::<Host>().unwrap().cores, Some(120));
    sheet.fields.retain(|field| field.key.name != "cores");
    assert_eq!(sheet.build::<Host>().unwrap().cores, None);
}

#[test]
fn links_carry_what_the_specification_says() {
    let lanes = [
        ("sdr", 2.0),
        ("ddr", 4.0),
        ("qdr", 8.0),
        ("fdr10", 10.0),
        ("fdr", 14.0625 * 64.0 / 66.0),
        ("edr", 25.0),
        ("hdr", 50.0),
        ("ndr", 100.0),
        ("xdr", 200.0),
        ("ethernet-10g", 10.0),
        ("ethernet-25g", 25.0),
        ("ethernet-50g", 50.0),
        ("ethernet-100g-tcp", 100.0),
    ];
    for (name, gb) in lanes {
        for width in [1, 2, 4, 8, 12] {
            let rate = (link(name).data() * width).as_gb_per_sec();
            assert!(
                (rate - gb * f64::from(width)).abs() < 1e-6,
                "{name} {width}x: {rate}"
            );
        }
    }
}

#[test]
fn buses_carry_what_the_specification_says() {
    let raw = |name: &str, lanes: u32| {
        let bus: Bus = Catalogue::builtin()
            .sheet("bus", name)
            .unwrap()
            .build()
            .unwrap();
        (bus.lane.part(bus.encoding) * lanes).as_mb_per_sec()
    };
    assert_eq!(raw("pcie-1", 8), 2000.0);
    assert_eq!(raw("pcie-2", 8), 4000.0);
    assert!((raw("pcie-3", 8) - 7876.9).abs() < 0.1);
    assert!((raw("pcie-4", 16) - 31507.7).abs() < 0.1);
    assert!((raw("pcie-5", 16) - 63015.4).abs() < 0.1);
    assert!((raw("pcix-133", 64) - 1066.7).abs() < 0.1);
}

#[test]
fn the_slower_of_two_generations_is_agreed_on() {
    let ddr = system("ddr");
    assert_eq!(ddr.bus().lane, GbPerSec::from_bits_per_sec(2_500_000_000));
    assert_eq!(ddr.lanes(), 8);
    let mut mixed = system("edr");
    mixed.switch.link = link("qdr");
    assert_eq!(mixed.link_rate().as_gb_per_sec(), 32.0);
    mixed.switch.ports = 0;
    assert_eq!(mixed.link_rate().as_gb_per_sec(), 100.0);
}

#[test]
fn a_system_compiled_is_the_same_system() {
    let catalogue = Catalogue::builtin();
    for entry in catalogue.entries().filter(|entry| entry.kind == "system") {
        let system = catalogue.system(entry.name).unwrap();
        assert_eq!(System::decode(&system.encode()).as_ref(), Ok(&system));
    }
    let bytes = system("fdr").encode();
    for length in 0..bytes.len() {
        assert!(System::decode(&bytes[..length]).is_err(), "{length}");
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0; 8]).collect();
    assert!(
        System::decode(&longer)
            .unwrap_err()
            .to_string()
            .contains("longer")
    );
    // A damaged byte at any position gives an error or a system, never a panic.
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        let _ = System::decode(&damaged);
    }
}

#[test]
fn systems_grow_as_far_as_three_levels_of_switches() {
    let qdr = system("qdr");
    assert_eq!(qdr.most_hops(), 1);
    assert_eq!(qdr.with_nodes(37).unwrap().most_hops(), 3);
    assert_eq!(qdr.with_nodes(649).unwrap().most_hops(), 5);
    assert!(qdr.with_nodes(11_664).is_ok());
    assert!(
        qdr.with_nodes(11_665)
            .unwrap_err()
            .why
            .contains("2 to 11664")
    );
    assert!(
        system("lanl-qdr")
            .with_nodes(3)
            .unwrap_err()
            .why
            .contains("back to back")
    );
    assert_eq!(system("blog-fdr").hops(0, 1), 3);
    assert_eq!(system("blog-fdr").hops(1, 1), 0);
}

#[test]
fn routes_cross_each_switch_once_and_shifts_share_no_link() {
    for (nodes, ports) in [
        (2, 0),
        (8, 8),
        (9, 8),
        (32, 8),
        (33, 8),
        (100, 8),
        (128, 8),
        (36, 36),
    ] {
        let tree = Tree::new(nodes, ports, 1);
        for shift in 1..nodes {
            let mut used = vec![false; tree.links() as usize];
            for from in 0..nodes {
                let to = (from + shift) % nodes;
                let route: Vec<u64> = tree.route(from, to).collect();
                assert_eq!(
                    route.len() as u32,
                    tree.hops(from, to) + 1,
                    "{nodes}/{ports} {from}-{to}"
                );
                assert_eq!(route[0], u64::from(from));
                for link in route {
                    let again = std::mem::replace(&mut used[link as usize], true);
                    // If groups are not full, a shift may lead two flows to one port.
                    let full =
                        tree.links() == 2 * u64::from(nodes) * u64::from(tree.levels().max(1));
                    assert!(
                        !again || !full,
                        "{nodes}/{ports} shift {shift}: link {link}"
                    );
                }
            }
        }
        assert_eq!(tree.route(1, 1).count(), 0);
    }
}

#[test]
fn a_leaf_may_have_fewer_links_up_than_hosts() {
    // A leaf switch with 8 ports has 6 hosts and 2 links up.
    let tree = Tree::new(48, 8, 3);
    assert_eq!((tree.levels(), Tree::room(8, 3)), (2, 8 * 4 * 6));
    assert_eq!((tree.hops(0, 5), tree.hops(0, 6)), (1, 3));
    let ups: std::collections::BTreeSet<u64> = (0..6)
        .flat_map(|from| (6..48).map(move |to| (from, to)))
        .filter_map(|(from, to)| tree.route(from, to).nth(1))
        .collect();
    assert_eq!(ups.len(), 2, "{ups:?}");
    // Six hosts send to another leaf: three of the flows use each link up and each link down.
    let mut users = std::collections::BTreeMap::new();
    for host in 0..6 {
        for link in tree.route(host, host + 12) {
            *users.entry(link).or_insert(0) += 1;
        }
    }
    let shared: Vec<u32> = users.into_values().filter(|&users| users > 1).collect();
    assert_eq!(shared, [3; 4]);
    let three = Tree::new(100, 8, 3);
    assert_eq!(three.levels(), 3);
    for (from, to) in [(0, 99), (99, 0), (30, 70)] {
        let route: Vec<u64> = three.route(from, to).collect();
        assert_eq!(route.len() as u32, three.hops(from, to) + 1);
        assert!(route.iter().all(|&link| link < three.links()));
    }
}

#[test]
fn a_dragonfly_connects_groups_by_minimal_routes() {
    // A switch with 7 ports has two hosts, three links in the group and two global links. A group
    // has 8 hosts.
    assert_eq!(Dragonfly::room(7), 8 * 9);
    for nodes in [8, 16, 24, 72] {
        let dragonfly = Dragonfly::new(nodes, 7);
        let mut users = std::collections::BTreeMap::new();
        for from in 0..nodes {
            for to in (0..nodes).filter(|&to| to != from) {
                let route: Vec<u64> = dragonfly.route(from, to).collect();
                let hops = dragonfly.hops(from, to);
                assert_eq!(route.len() as u32, hops + 1, "{nodes}: {from}-{to}");
                let (switches, groups) = ([from / 2, to / 2], [from / 8, to / 8]);
                let valid = match (switches[0] == switches[1], groups[0] == groups[1]) {
                    (true, _) => 1..=1,
                    (false, true) => 2..=2,
                    (false, false) => 2..=4,
                };
                assert!(valid.contains(&hops), "{nodes}: {from}-{to}: {hops}");
                for link in route {
                    assert!(link < dragonfly.links(), "{nodes}: {link}");
                    *users.entry(link).or_insert(0) += 1;
                }
            }
        }
        assert_eq!(dragonfly.route(3, 3).count(), 0);
        // The links of a host carry all of its messages, and no other link carries more.
        let most = users.values().max();
        assert!(
            nodes < 72 || most == Some(&71) || most == Some(&64),
            "{most:?}"
        );
    }
    // With nine groups, each pair of groups has one global link, which 8 by 8 pairs of hosts share.
    let dragonfly = Dragonfly::new(72, 7);
    let global = |from, to| dragonfly.route(from, to).max().unwrap();
    let links: std::collections::BTreeSet<u64> = (0..8)
        .flat_map(|from| (8..16).map(move |to| (from, to)))
        .map(|(from, to)| global(from, to))
        .collect();
    assert_eq!(links.len(), 1, "{links:?}");
}
