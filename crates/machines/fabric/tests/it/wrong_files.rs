//! Errors of a file name the line, the key, and the valid values.

use fabric::catalogue::Catalogue;

/// The error message about a wrong file.
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
            "mine.toml:3: hca.x.mtuu: not a key of a hca; did you mean mtu? valid: year, link, width, bus",
        ),
        (
            "[hca.x]\nfrom = \"connectx-33\"\n",
            "mine.toml:2: there is no hca named connectx-33; did you mean connectx-3",
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

/// The warnings about a file without errors.
fn slips(text: &str) -> Vec<String> {
    let mut catalogue = Catalogue::builtin();
    catalogue.add("mine.toml", text).unwrap();
    let slips = catalogue.slips("mine.toml");
    slips.iter().map(ToString::to_string).collect()
}

#[test]
fn each_plausible_slip_has_its_warning() {
    let cases = [
        (
            "[hca.x]\nfrom = \"connectx-3\"\nread_engine = \"6350 Mb/s\"\n",
            "mine.toml:3: hca.x.read_engine: \"6350 Mb/s\" is 1/8 of the least value of the catalogue, \"6350 MB/s\": are bytes meant?",
        ),
        (
            "[link.x]\nfrom = \"fdr\"\nlane = \"14 GB/s\"\n",
            "mine.toml:3: link.x.lane: \"14 GB/s\" is a rate of bytes, and lanes are given in bits: is 14 Gb/s meant?",
        ),
        (
            "[hca.x]\nfrom = \"connectx-3\"\nsend = \"130 us\"\n",
            "mine.toml:3: hca.x.send: \"130 us\" is 20 times the greatest value of the catalogue, \"6500 ns\"",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nhca = { link = \"edr\" }\n",
            "mine.toml:3: system.x: the port of the HCA is faster than that of the switch (25.78125 Gb/s a lane, 14.0625 Gb/s)",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\nhca = { link = \"edr\" }\n",
            "mine.toml:3: system.x.hca.link: has no effect",
        ),
        (
            "[system.x]\nfrom = \"qdr\"\nhca.width = 12\n",
            "is wider than that of the switch (12 lanes, 4)",
        ),
        (
            "[system.x]\nfrom = \"edr\"\nhca = { lanes = 2 }\n",
            "mine.toml:3: system.x: the slot of 2 lanes carries 15.4 Gb/s each way, and the link 100 Gb/s",
        ),
        (
            "[system.x]\nfrom = \"fdr\"\noversubscription = 2\n",
            "mine.toml:3: system.x.oversubscription: has no effect",
        ),
        (
            "[system.x]\nfrom = \"2x-unequal\"\nhca = \"connectx-2\"\n",
            "mine.toml:3: system.x.hca: has no effect",
        ),
    ];
    for (text, message) in cases {
        let slips = slips(text);
        let said = slips.iter().any(|slip| slip.contains(message));
        assert!(said, "{text}\n{slips:#?}\nshould say\n{message}");
    }
}

#[test]
fn an_ordinary_file_has_no_warning() {
    for text in [
        "[system.x]\nfrom = \"fdr\"\nhca = { mtu = \"4096 B\" }\nnodes = 200\n",
        "[system.x]\nfrom = \"qdr\"\ncable = { from = \"fibre\", length = \"30 m\" }\nhops = 3\n",
        "[system.x]\nfrom = \"edr\"\nsoftware = \"openib\"\nhost = { poll = \"70 ns\" }\nrails = 2\n",
        "[system.x]\nfrom = \"fdr\"\nnodes = 100\noversubscription = 2\n",
        "[system.x]\nfrom = \"2xqdr\"\nhosts = [{ host = 1, rails = 1 }]\n",
        "[hca.x]\nfrom = \"connectx-3\"\nsend = \"150 ns\"\n",
        // A value that equals the inherited one may be there on purpose.
        "[system.x]\nfrom = \"fdr\"\nnodes = 36\n",
    ] {
        assert!(slips(text).is_empty(), "{text}\n{:#?}", slips(text));
    }
    for name in Catalogue::builtin().systems_of("systems.toml") {
        let text = format!("[system.x]\nfrom = \"{name}\"\n");
        assert!(slips(&text).is_empty(), "{name}: {:#?}", slips(&text));
    }
}

#[test]
fn errors_point_at_the_file_and_tell_everything() {
    let problem = wrong("[system.x]\nfrom = \"fdr\"\n\nhost = \"xeon-2003\"\n");
    assert!(
        problem.starts_with("mine.toml:4: system.x.hca: the HCA does not fit"),
        "{problem}"
    );
    assert!(
        problem.contains("(the value is inherited: systems.toml:"),
        "{problem}"
    );
    let problem = wrong("[software.x]\nsend = \"1 us\"\n");
    assert!(problem.contains("receive is missing"), "{problem}");
    assert!(
        problem.contains("; also missing: control, eager, buffers, "),
        "{problem}"
    );
    let problem = wrong("[system.mine]\nfrom = \"qdrr\"\n");
    assert!(
        problem.contains("did you mean qdr") && !problem.contains("mine,"),
        "{problem}"
    );
    assert!(problem.contains("; did you mean qdr"), "{problem}");
    assert!(
        problem.contains("`fishplate fabric list system` lists all "),
        "{problem}"
    );
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
