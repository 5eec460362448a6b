//! Errors of a file name the line, the key, and the valid values.

use fabric::catalogue::Catalogue;

/// The message about a wrong file.
fn wrong(text: &str) -> String {
    let mut catalogue = Catalogue::builtin();
    let before = catalogue.entries().count();
    let problems = catalogue.add("mine.toml", text).expect_err(text);
    assert_eq!(
        catalogue.entries().count(),
        before,
        "a wrong file adds nothing"
    );
    problems.to_string()
}

#[test]
fn each_mistake_has_its_message() {
    let cases = [
        ("[system.mine\n", "mine.toml:1: this is not TOML: "),
        (
            "[sytem.mine]\n",
            "mine.toml:1: sytem: not a kind of part; did you mean system? valid: system, host, hca",
        ),
        (
            "hca = 3\n",
            "mine.toml:1: hca: must be a table with a name, such as [hca.mine]",
        ),
        (
            "[hca]\nmtu = \"2 KiB\"\n",
            "mine.toml:2: hca.mtu: must be part of a named table, such as [hca.mine]",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\nmtuu = 3\n",
            "mine.toml:3: hca.x.mtuu: not a key of a hca; did you mean mtu? valid: link, width, bus",
        ),
        (
            "[hca.x]\nfrom = \"connectx-33\"\n",
            "mine.toml:2: there is no hca named connectx-33; did you mean connectx-3? valid: infinihost,",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\n\nsend = \"2 KiB\"\n",
            "mine.toml:4: hca.x.send: \"2 KiB\" is not valid; valid is a time up to 1 s in ps, ns, us, ms or s, such as \"130 ns\"",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\nwidth = 3\n",
            "mine.toml:3: hca.x.width: 3 is not a link width; valid are 1, 2, 4, 8 and 12",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\nwidth = 4.5\n",
            "hca.x.width: 4.5 is not valid; valid is a whole number",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\nwidth = { source = \"me\" }\n",
            "mine.toml:3: hca.x.width: the value itself is missing",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\nwidth = { value = 4, src = \"me\" }\n",
            "mine.toml:3: hca.x.width.src: a value has no such key; valid: value, source",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\ncable = { length = \"30 m\" }\n",
            "mine.toml:3: system.x.cable.length: 30 m is longer than the reach of this cable, 10 m",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nhca.mtu = \"3000 B\"\n",
            "mine.toml:3: system.x.hca.mtu: 3000 B is not possible; valid are powers of two from 256 B to 4096 B",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nhost = \"xeon-2003\"\n",
            "system.x.hca: the HCA does not fit the host's slot",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nnodes = 1\n",
            "mine.toml:3: system.x.nodes: three levels of 36-port switches cannot connect 1 hosts",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nhops = 0\n",
            "mine.toml:3: system.x.hops: hosts on a switch",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nhost = 7\n",
            "mine.toml:3: system.x.host: must be the name of a host, or a table",
        ),
        (
            "[system.fdr]\nfrom = \"qdr\"\n",
            "mine.toml:1: system.fdr: this name is already used (systems.toml:",
        ),
        (
            "[software.x]\nsend = \"1 us\"\n",
            "mine.toml:1: software.x: receive is missing (Processor: a receive, from the noticed arrival to the return of the call); give it a time",
        ),
        (
            "[link.a]\nfrom = \"b\"\n[link.b]\nfrom = \"a\"\n",
            "inherits from itself",
        ),
        (
            "[link.a]\nfrom = 3\n",
            "mine.toml:2: link.a.from: must be a string in quotes",
        ),
    ];
    for (text, message) in cases {
        let problem = wrong(text);
        assert!(
            problem.contains(message),
            "{text}\n{problem}\nshould say\n{message}"
        );
    }
}

#[test]
fn all_mistakes_are_reported_at_once_by_line() {
    let text = "[hca.a]\nfrom = \"connectx-3\"\nmtu = 1\n[hca.b]\nfrom = \"connectx-3\"\nmtu = 2\n";
    let problem = wrong(text);
    let lines: Vec<&str> = problem.lines().collect();
    assert_eq!(lines.len(), 2, "{problem}");
    assert!(lines[0].starts_with("mine.toml:3: ") && lines[1].starts_with("mine.toml:6: "));
}

#[test]
fn a_file_changes_what_it_names_and_inherits_the_rest() {
    let mut catalogue = Catalogue::builtin();
    let text = "
[system.mine]
from = \"2xqdr\"
hca.mtu = \"4096 B\"
cable = { from = \"fibre\", length = \"30 m\" }
nodes = 100
[system.other]
from = \"mine\"
hca = \"card\"
[hca.card]
from = \"connectx-2\"
width = { value = 12, source = \"published: here\" }
";
    catalogue.add("mine.toml", text).unwrap();
    assert_eq!(catalogue.systems_of("mine.toml"), ["mine", "other"]);
    let base = catalogue.system("2xqdr").unwrap();
    let mine = catalogue.system("mine").unwrap();
    let mut by_hand = base;
    by_hand.hca.mtu = fabric::Bytes(4096);
    by_hand.cable = catalogue.sheet("cable", "fibre").unwrap().build().unwrap();
    by_hand.cable.length = fabric::Metres::from_millimetres(30_000);
    by_hand.nodes = 100;
    assert_eq!(mine, by_hand);
    let other = catalogue.system("other").unwrap();
    assert_eq!(
        (other.rails.count(), other.nodes, other.hca.width),
        (2, 100, 12)
    );
    assert_eq!(other.hca.mtu, base.hca.mtu);
    let card = catalogue.sheet("hca", "card").unwrap();
    let source = |key| {
        &card
            .fields
            .iter()
            .find(|field| field.key.name == key)
            .unwrap()
            .source
    };
    assert_eq!(source("width"), "published: here");
    assert!(source("link").starts_with("datasheet: "));
}
