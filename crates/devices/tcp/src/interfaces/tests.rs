//! The choice among interfaces, from facts made up, and the facts of this host.

use std::fs;
use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Address {
    let address: IpAddr = text.parse().unwrap();
    let (scope, prefix) = match reach(address) {
        Reach::GlobalV4 | Reach::LinkV4 => (0, 24),
        Reach::GlobalV6 => (0, 64),
        Reach::LinkV6 => (7, 64),
    };
    Address {
        address,
        scope,
        prefix,
    }
}

fn found(name: &str, kind: Kind, addresses: &[&str]) -> Found {
    Found {
        name: name.into(),
        kind,
        addresses: addresses.iter().map(|text| at(text)).collect(),
        mtu: 1500,
        ..Found::default()
    }
}

fn used(interfaces: &[Interface]) -> Vec<&str> {
    let places = choose(interfaces).into_iter();
    places
        .map(|place| interfaces[place].name.as_str())
        .collect()
}

#[test]
fn every_interface_of_a_usual_host_is_a_rail_but_the_virtual_ones() {
    let interfaces = judge(vec![
        found("lo", Kind::Loopback, &["127.0.0.1", "::1"]),
        found(
            "eth0",
            Kind::Plain,
            &["fe80::1", "2001:db8::1", "10.0.0.1", "10.0.0.9"],
        ),
        found("eth1", Kind::Plain, &["fe80::2", "2001:db8:1::1"]),
        found("eth2", Kind::Plain, &["fe80::3"]),
        found("docker0", Kind::Bridge, &["172.17.0.1"]),
        found("wg0", Kind::Tunnel, &["10.8.0.1"]),
    ]);
    assert_eq!(used(&interfaces), ["eth0", "eth1"]);
    let addresses = interfaces.iter().map(|one| one.address.to_string());
    let expected = [
        "127.0.0.1",
        "10.0.0.1",
        "2001:db8:1::1",
        "fe80::3",
        "172.17.0.1",
        "10.8.0.1",
    ];
    assert_eq!(addresses.collect::<Vec<_>>(), expected);
    assert_eq!([interfaces[1].scope, interfaces[3].scope], [0, 7]);
    assert_eq!(interfaces[1].why_this_address(), "its first IPv4 address");
    assert_eq!(interfaces[3].why_this_address(), "its only address");
    let docker = Verdict::LeftOut("a bridge without a network card");
    assert_eq!(interfaces[4].verdict, docker);
}

#[test]
fn a_link_that_is_down_is_never_used() {
    for (link, why) in [
        (Link::Down, "it is down"),
        (Link::NoCarrier, "its link is down"),
    ] {
        let mut eth = found("eth0", Kind::Plain, &["10.0.0.1"]);
        eth.link = link;
        let interfaces = judge(vec![eth]);
        assert!(choose(&interfaces).is_empty());
        assert_eq!(interfaces[0].verdict, Verdict::LeftOut(why));
    }
}

#[test]
fn the_next_best_kind_serves_where_nothing_else_is() {
    let mut all = vec![
        found("lo", Kind::Loopback, &["127.0.0.1"]),
        found("virbr0", Kind::Bridge, &["192.168.122.1"]),
        found("tun0", Kind::Tunnel, &["10.8.0.1"]),
        found("usb0", Kind::Plain, &["169.254.3.1", "fe80::7"]),
        found("port0", Kind::Port, &["fe80::8"]),
        found("eth0", Kind::Plain, &["10.0.0.1"]),
        // A card without an address hides no other interface.
        found("eth1", Kind::Plain, &[]),
    ];
    for best in ["eth0", "usb0", "tun0", "virbr0", "port0", "lo"] {
        assert_eq!(used(&judge(all.clone())), [best]);
        let one = all.iter_mut().find(|one| one.name == best).unwrap();
        one.link = Link::NoCarrier;
    }
    assert!(used(&judge(all)).is_empty());
}

#[test]
fn an_interface_is_named_by_name_or_by_any_of_its_addresses() {
    let interfaces = judge(vec![
        found("eth0", Kind::Plain, &["10.0.0.1", "10.0.0.2", "fe80::1"]),
        found("eth1", Kind::Plain, &["fe80::1"]),
        found("docker0", Kind::Bridge, &["172.17.0.1"]),
    ]);
    let of = |wanted: &str| {
        let one = named(&interfaces, wanted)?;
        Some((one.name, one.address.to_string()))
    };
    let pair = |name: &str, address: &str| Some((name.to_string(), address.to_string()));
    assert_eq!(of("eth0"), pair("eth0", "10.0.0.1"));
    assert_eq!(of("10.0.0.2"), pair("eth0", "10.0.0.2"));
    assert_eq!(of("fe80::1%eth1"), pair("eth1", "fe80::1"));
    assert_eq!(of("docker0"), pair("docker0", "172.17.0.1"));
    for unknown in ["eth7", "10.0.0.3", "fe80::1%eth7", "", "localhost"] {
        assert_eq!(of(unknown), None, "{unknown}");
    }
    let second = named(&interfaces, "10.0.0.2").unwrap();
    assert_eq!(second.others, [at("fe80::1"), at("10.0.0.1")]);
}

#[test]
fn flags_of_addresses_are_read_from_the_text_of_the_kernel() {
    let text = "fe80000000000000fcfd1bfffe8b2d58 02 40 20 80     eth0\n\
                20010db8000000000000000000000001 02 40 00 40     eth0\n\nnonsense\n";
    let flags = kernel::v6_flags(text);
    let tentative: Ipv6Addr = "2001:db8::1".parse().unwrap();
    assert_eq!(flags.len(), 2);
    assert_eq!(flags[1], (IpAddr::V6(tentative), 0x40));
}

#[test]
fn the_kind_of_an_interface_is_read_from_its_folder() {
    let sys = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = sys.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file("eth0/type", "1\n");
    file("eth1/type", "1\n");
    file("eth0/device/vendor", "0x15b3\n");
    file("eth0/brport/port_id", "0x8001\n");
    file("bond0/lower_eth0/device/vendor", "0x15b3\n");
    file("bond0/brport/port_id", "0x8001\n");
    file("veth0/brport/port_id", "0x8001\n");
    file("wg0/type", "65534\n");
    file("flannel/uevent", "DEVTYPE=vxlan\nINTERFACE=flannel\n");
    for (bridge, port) in [("br0", "eth0"), ("br1", "bond0"), ("docker0", "veth0")] {
        file(&format!("{bridge}/bridge/stp_state"), "0\n");
        let ports = sys.path().join(bridge).join("brif");
        fs::create_dir(&ports).unwrap();
        let target = format!("../../{port}/brport");
        std::os::unix::fs::symlink(target, ports.join(port)).unwrap();
    }
    for (name, expected) in [
        ("eth0", Kind::Port),
        ("eth1", Kind::Plain),
        ("veth0", Kind::Port),
        ("br0", Kind::Plain),
        ("br1", Kind::Plain),
        ("docker0", Kind::Bridge),
        ("wg0", Kind::Tunnel),
        ("flannel", Kind::Tunnel),
    ] {
        let kind = kernel::kind(libc::IFF_UP as u32, Some(&sys.path().join(name)));
        assert_eq!(kind, expected, "{name}");
    }
    let flags = (libc::IFF_UP | libc::IFF_LOOPBACK) as u32;
    assert_eq!(kernel::kind(flags, None), Kind::Loopback);
    assert_eq!(
        kernel::kind(libc::IFF_POINTOPOINT as u32, None),
        Kind::Tunnel
    );
}

#[test]
fn this_host_has_at_least_the_loopback() {
    let interfaces = list().unwrap();
    let loopback = interfaces.iter().find(|one| one.name == "lo").unwrap();
    assert!(loopback.address.is_loopback());
    assert!(loopback.mtu > 0 && loopback.index > 0);
    assert!([8, 128].contains(&loopback.prefix));
    assert_eq!(named(&interfaces, "lo").as_ref(), Some(loopback));
    assert!(!choose(&interfaces).is_empty());
}

fn any_found() -> impl Strategy<Value = Found> {
    let addresses = [
        "10.0.0.1",
        "169.254.1.1",
        "2001:db8::1",
        "fe80::1",
        "192.168.1.1",
    ];
    let addresses = proptest::sample::subsequence(addresses.to_vec(), 0..=5).prop_shuffle();
    let kinds = [
        Kind::Plain,
        Kind::Tunnel,
        Kind::Bridge,
        Kind::Port,
        Kind::Loopback,
    ];
    let links = [Link::Up, Link::NoCarrier, Link::Down];
    let kinds = proptest::sample::select(kinds.to_vec());
    (addresses, kinds, proptest::sample::select(links.to_vec())).prop_map(
        |(addresses, kind, link)| Found {
            link,
            ..found("x", kind, &addresses)
        },
    )
}

proptest! {
    #[test]
    fn the_choice_is_of_one_kind_and_leaves_nothing_better(
        all in proptest::collection::vec(any_found(), 0..8)
    ) {
        let with_address: Vec<&Found> = all.iter().filter(|one| !one.addresses.is_empty()).collect();
        let interfaces = judge(all.clone());
        prop_assert_eq!(interfaces.len(), with_address.len());
        let chosen = choose(&interfaces);
        let standing = |one: &Found| {
            let is_local = |at: &Address| reach(at.address) > Reach::GlobalV6;
            let is_lesser = one.kind == Kind::Plain && one.addresses.iter().all(is_local);
            if is_lesser { Kind::LinkLocal } else { one.kind }
        };
        let best = with_address.iter().filter(|one| one.link == Link::Up);
        let best = best.map(|one| standing(one)).min();
        for (place, one) in with_address.iter().enumerate() {
            let expected = one.link == Link::Up && Some(standing(one)) == best;
            prop_assert_eq!(chosen.contains(&place), expected);
        }
        for interface in &interfaces {
            let own = reach(interface.address);
            prop_assert!(interface.others.iter().all(|other| own <= reach(other.address)));
        }
    }
}
