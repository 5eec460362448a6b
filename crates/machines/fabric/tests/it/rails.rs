//! Lists of rails: their defaults, their inheritance, their encoding, and errors about them.

use fabric::catalogue::Catalogue;
use fabric::{Bytes, Costs, GbPerSec, Rails, System};

use crate::system;

fn read(text: &str) -> Result<System, String> {
    let mut catalogue = Catalogue::builtin();
    let added = catalogue.add("mine.toml", text);
    added.map_err(|why| why.to_string())?;
    Ok(catalogue.system("mine").unwrap())
}

#[test]
fn a_list_of_empty_tables_is_that_number_of_equal_rails() {
    let listed = read("[system.mine]\nfrom = \"2xqdr\"\nrails = [{}, {}]\n").unwrap();
    let equal = system("2xqdr");
    assert_eq!(listed.rails.count(), 2);
    for rail in 0..2 {
        assert_eq!(listed.rail(rail), equal.rail(rail), "rail {rail}");
    }
    assert_eq!(equal.rails, Rails::Equal(2));
    let far = equal.rail(1);
    assert_eq!((far.socket, far.card, far.subnet), (1, 1, 0));
}

#[test]
fn rails_inherit_from_the_final_system() {
    let text = "
[system.base]
from = \"qdr\"
rails = [{ lanes = 4, socket = 1 }, { cable = { length = \"9 m\" }, subnet = 3 }]
[system.mine]
from = \"base\"
hca = \"connectx-3\"
cable = \"fibre\"
";
    let mine = read(text).unwrap();
    let [first, second] = [0, 1].map(|rail| mine.rail(rail));
    // Both rails have the HCA and the cable that only the derived system names.
    assert_eq!([first.hca, second.hca], [mine.hca; 2]);
    assert_eq!(first.cable, mine.cable);
    assert_eq!(second.cable.conversion, mine.cable.conversion);
    assert_eq!(second.cable.length.millimetres(), 9_000);
    assert_eq!((first.lanes, first.socket), (4, 1));
    assert_eq!((second.lanes, second.socket, second.subnet), (16, 1, 3));
    // A list in the derived system replaces the whole list, and so does a number.
    let other = text.to_owned() + "rails = [{}]\n";
    assert_eq!(read(&other).unwrap().rail(0).lanes, 16);
    let number = text.to_owned() + "rails = 3\n";
    assert_eq!(read(&number).unwrap().rails, Rails::Equal(3));
}

#[test]
fn each_rail_has_its_own_costs() {
    let unequal = system("2x-unequal");
    let rate = |rail| unequal.rail(rail).link_rate();
    assert_eq!(rate(0), GbPerSec::from_bits_per_sec(32_000_000_000));
    assert_eq!(rate(1), GbPerSec::from_bits_per_sec(8_000_000_000));
    let wire = |rail| Costs::of(&unequal, rail).wire(4096);
    assert_eq!(wire(1).picos(), 4 * wire(0).picos());
    let wide = system("12x-qdr").rail(0);
    assert_eq!(wide.link_rate().as_gb_per_sec(), 96.0);
    assert_eq!(wide.bus_lanes(), 16);
    let eight = system("8xqdr");
    let far = (0..8).filter(|&rail| eight.rail(rail).socket > 0).count();
    assert_eq!((eight.rails.count(), far), (8, 4));
    assert_eq!(system("2xqdr").with_mtu(Bytes(256)).rail(1).hca.mtu.0, 256);
    assert_eq!(eight.with_mtu(Bytes(512)).rail(7).hca.mtu.0, 512);
}

#[test]
fn a_host_may_have_fewer_rails_and_in_another_order() {
    let text = "
[system.mine]
from = \"2x-unequal\"
hosts = [{ host = 3, rails = [1, 0] }, { host = 1, rails = 1 }]
";
    let mine = read(text).unwrap();
    let rails = [0, 1, 2, 3].map(|host| mine.rails_of(host));
    assert_eq!(rails[0], [0, 1]);
    assert_eq!(rails[1], [0]);
    assert_eq!(rails[2], [0, 1]);
    assert_eq!(rails[3], [1, 0]);
    assert_eq!(System::decode(&mine.encode()).as_ref(), Ok(&mine));
}

#[test]
fn each_mistake_in_a_list_has_its_message() {
    let cases = [
        (
            "rails = \"two\"",
            "mine.toml:3: system.mine.rails: \"two\" is not valid; valid is a number of equal rails, 1 to 8, or a list of tables, one \
             for each rail",
        ),
        (
            "rails = { hca = \"connectx-3\" }",
            "mine.toml:3: system.mine.rails: must be a number of equal rails, 1 to 8, or a list of tables, one for each rail: [{ … }, { … }]",
        ),
        (
            "rails = 9",
            "mine.toml:3: system.mine.rails: 9 rails are not possible; valid are 1 to 8",
        ),
        (
            "rails = []",
            "mine.toml:3: system.mine.rails: 0 rails are not possible; valid are 1 to 8",
        ),
        (
            "rails = [{}, {}, {}, {}, {}, {}, {}, {}, {}]",
            "mine.toml:3: system.mine.rails: 9 of them is not valid; valid is a number of equal rails, 1 to 8, or a list of tables, one for \
             each rail, with at most 8 entries",
        ),
        (
            "rails = [\n{},\n{ hcaa = \"connectx-3\" }]",
            "mine.toml:5: system.mine.rails.1.hcaa: not a key of a rail; did you mean hca? valid: hca, slot, lanes, socket, card",
        ),
        (
            "rails = [{ hca = \"conectx-3\" }]",
            "mine.toml:3: there is no hca named conectx-3; did you mean connectx-3",
        ),
        (
            "rails = [{ hca = { mtu = \"3 KiB\" } }]",
            "mine.toml:3: system.mine.rails.0.hca.mtu: 3072 B is not possible",
        ),
        (
            "rails = [{}, 3]",
            "mine.toml:3: system.mine.rails.1: must be a table with keys of a rail, such as { hca = … }",
        ),
        (
            "rails = [{ from = \"fast\" }]",
            "mine.toml:3: system.mine.rails.0.from: a rail has no name to start from; its keys come from the system",
        ),
        (
            "rails = [{ lanes = 3 }]",
            "mine.toml:3: system.mine.rails.0.lanes: 3 is not a slot width",
        ),
        (
            "rails = [{}, { hca = \"infinihost\" }]",
            "system.mine.rails.1.hca: the HCA does not fit the host's slot: one is PCI-X, the other PCI Express",
        ),
        (
            "rails = [{ card = 4 }, { card = 4, lanes = 4 }]",
            "mine.toml:3: system.mine.rails: rails 0 and 1 are ports of card 4, but have different slots (slot, lanes, socket); a card has \
             one slot and one chip: give both rails the same, or another card",
        ),
        (
            "rails = [{ card = 0, socket = 0 }, { card = 0, socket = 0, hca = \"connectx-4\" }]",
            "but have different HCAs (bus, lanes, read_engine, internal, rates of the chip)",
        ),
        (
            "rails = [{}, { switch = \"none\" }]",
            "system.mine.nodes: 36 hosts cannot be connected back to back",
        ),
        (
            "hosts = 1",
            "mine.toml:3: system.mine.hosts: must be a list of tables, one for each host's rails",
        ),
        (
            "hosts = [{ host = 36, rails = 1 }]",
            "mine.toml:3: system.mine.hosts: there is no host 36: the system has 36 hosts, counted from 0",
        ),
        (
            "hosts = [{ host = 1, rails = [0, 2] }]",
            "mine.toml:3: system.mine.hosts: host 1 has rail 2 in its list, but the system has 2 rails, counted from 0",
        ),
        (
            "hosts = [{ host = 1, rails = 1 }, { host = 1, rails = 2 }]",
            "mine.toml:3: system.mine.hosts: host 1 has two lists of rails; keep one",
        ),
        (
            "hosts = [{ host = 1, rails = [0, 0] }]",
            "mine.toml:3: system.mine.hosts.0.rails: [0, 0] is not valid; valid is the number of its rails, which are then the first of \
             the system, or a list of their numbers, such as [0, 2]",
        ),
        (
            "hosts = [{ host = 1, rails = 0 }]",
            "mine.toml:3: system.mine.hosts.0.rails: 0 is not valid",
        ),
        (
            "hosts = [{ rails = 1 }]",
            "mine.toml:3: system.mine.hosts.0: host is missing (Number of the host, counted from 0); give it a whole number",
        ),
    ];
    for (line, message) in cases {
        let text = format!("[system.mine]\nfrom = \"2xqdr\"\n{line}\n");
        let problem = read(&text).expect_err(line);
        assert!(
            problem.contains(message),
            "{line}\n{problem}\nshould say\n{message}"
        );
    }
}
