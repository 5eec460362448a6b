//! Tests of `fishplate fabric`: tables, JSON, and errors in files.

use std::process::{Command, Output};

fn fabric(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fishplate"))
        .arg("fabric")
        .args(words)
        .output()
        .unwrap()
}

fn good(words: &[&str]) -> String {
    let output = fabric(words);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn bad(words: &[&str]) -> String {
    let output = fabric(words);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn object(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn systems_are_listed() {
    let list = good(&["list", "system"]);
    for name in [
        "sdr",
        "ddr",
        "qdr",
        "2xqdr",
        "fdr",
        "edr",
        "hdr",
        "xdr",
        "100gbe-roce",
        "100gbe-tcp",
        "hdr-vm",
        "edr-2port",
        "mpich2-2003",
        "c6320-edr",
        "r620-fdr",
        "lanl-qdr-fibre",
        "blog-2xqdr",
        "hdr100",
        "ndr200",
        "opa-100",
        "cn5000",
        "slingshot-10",
        "slingshot-11",
        "aries",
        "efa-hpc6a",
        "efa-hpc7a",
        "azure-hbv2",
        "azure-hbv4",
        "gcp-c2d",
        "gcp-h3",
        "gcp-h4d",
        "2x10gbe-roce",
        "2x25gbe-roce",
    ] {
        let listed = |line: &str| line.split_whitespace().nth(1) == Some(name);
        assert!(list.lines().any(listed), "{name} in\n{list}");
    }
    let place = |text: &str| {
        list.find(text)
            .unwrap_or_else(|| panic!("{text} in\n{list}"))
    };
    let order = [
        "InfiniBand in virtual",
        " edr-vm ",
        "with RoCEv2",
        " 10gbe-roce ",
        "with TCP",
        " 10gbe-tcp ",
    ];
    assert!(
        order.windows(2).all(|pair| place(pair[0]) < place(pair[1])),
        "{list}"
    );
    assert!(!list.contains("connectx-3 "));
    let lines = good(&["list", "--json"]);
    let names = lines.lines().map(|line| object(line)["name"].clone());
    assert!(names.filter(|name| name.is_string()).count() > 60);
}

#[test]
fn a_part_is_shown_with_its_sources() {
    let shown = good(&["show", "connectx-3"]);
    let line = shown
        .lines()
        .find(|line| line.contains("read_engine"))
        .unwrap();
    assert!(
        line.contains("6350 MB/s") && line.contains("inferred: "),
        "{line}"
    );
    assert!(good(&["show", "fdr"]).ends_with("There is also link.fdr.\n"));
    let link = object(&good(&["show", "link.fdr", "--json"]));
    assert_eq!(link["values"]["lane"]["value"], "14.0625 Gb/s");
    assert!(bad(&["show", "link.fdrr"]).contains("did you mean fdr"));
}

#[test]
fn an_explanation_adds_up() {
    let object = object(&good(&["explain", "qdr", "--size", "64K", "--json"]));
    let rows = object["rows"].as_array().unwrap();
    let sum: f64 = rows.iter().map(|row| row["ns"].as_f64().unwrap()).sum();
    assert!((sum - object["total_ns"].as_f64().unwrap()).abs() < 1e-6);
    let text = good(&["explain", "qdr", "--size", "8"]);
    assert!(
        text.starts_with("qdr: one RDMA write of 8 B, 1 switch on the path"),
        "{text}"
    );
    let last = text
        .lines()
        .find(|line| line.trim_start().starts_with("sum"))
        .unwrap();
    assert_eq!(last.split_whitespace().last(), Some("963.7"));
}

#[test]
fn all_rails_are_shown_where_there_are_several() {
    let text = good(&["explain", "2x-unequal", "--rail", "1"]);
    assert!(text.contains("Rails (this is rail 1)"), "{text}");
    assert!(!good(&["explain", "qdr"]).contains("Rails"));
    let rails = object(&good(&["explain", "2x-unequal", "--json"]))["rails"].clone();
    let rate = |rail: usize| rails[rail]["one_way_mb_per_s"].as_f64().unwrap();
    assert!((3.9..4.1).contains(&(rate(0) / rate(1))), "{rails}");
    let shown = good(&["show", "2x-unequal"]);
    let line = |key: &str| {
        let mut lines = shown.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("{key} in\n{shown}"))
            .to_owned()
    };
    assert!(line("rails.1.hca").contains("connectx-3-sdr"), "{shown}");
    assert_eq!(line("rails.0.card").split_whitespace().nth(1), Some("0"));
}

#[test]
fn a_message_of_mpi_is_a_write_with_what_the_library_does() {
    let total = |words: &[&str]| object(&good(words))["total_ns"].as_f64().unwrap();
    // A body of 24 bytes and the trailer are one write of 64 bytes.
    let mpi = object(&good(&[
        "explain",
        "mpich2-2003",
        "--mpi",
        "--size",
        "24",
        "--json",
    ]));
    let write = total(&["explain", "mpich2-2003", "--size", "64", "--json"]);
    let rows = mpi["rows"].as_array().unwrap();
    let own = [
        "send: prepare a packet",
        "copy into the packet",
        "copy out of the ring",
        "receive: take the packet",
    ];
    let of = |step: &str| {
        rows.iter().find(|row| row["step"] == step).unwrap()["ns"]
            .as_f64()
            .unwrap()
    };
    let software: f64 = own.iter().map(|step| of(step)).sum();
    assert!((mpi["total_ns"].as_f64().unwrap() - write - software).abs() < 1e-6);
}

#[test]
fn a_long_message_of_mpi_is_an_announcement_and_a_read() {
    let total = |words: &[&str]| object(&good(words))["total_ns"].as_f64().unwrap();
    let long = |size: &str| total(&["explain", "qdr", "--mpi", "--json", "--size", size]);
    let read = |size: &str| {
        let read = ["--operation", "read"];
        total(&[&["explain", "qdr", "--json", "--size", size], &read[..]].concat())
    };
    let announcement = long("64");
    for size in ["256K", "4M", "1G"] {
        assert!(
            (long(size) - read(size) - announcement).abs() < 1e-3,
            "{size}"
        );
    }
}

#[test]
fn the_design_of_a_message_is_that_of_the_option_or_of_the_environment() {
    let words = ["explain", "mpich2-2003", "--mpi", "--size", "4", "--json"];
    let of = |design: &str| object(&good(&[&words[..], &["--design", design]].concat()));
    let total = |object: &serde_json::Value| object["total_ns"].as_f64().unwrap();
    let basic = of("basic");
    // What `bench latency` measures there (docs/user/modelled.md).
    assert!(
        (total(&basic) - 17_340.0).abs() < 0.02 * 17_340.0,
        "{basic}"
    );
    assert_eq!(basic["design"], "basic");
    let rows = basic["rows"].as_array().unwrap();
    let posts = rows.iter().filter(|row| row["step"] == "post");
    let parts: Vec<&str> = posts.map(|row| row["part"].as_str().unwrap()).collect();
    assert_eq!(
        parts,
        ["data, until completed", "head pointer", "tail pointer"]
    );
    let usual = of("zero-copy");
    assert_eq!(object(&good(&words))["total_ns"], usual["total_ns"]);
    assert!(usual["rows"][0]["part"].is_null(), "{usual}");
    let output = Command::new(env!("CARGO_BIN_EXE_fishplate"))
        .env("FISHPLATE_RDMA_DESIGN", "basic")
        .arg("fabric")
        .args(words)
        .output()
        .unwrap();
    let set = object(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(set["total_ns"], basic["total_ns"]);
    let words = ["explain", "qdr", "--mpi", "--design"];
    let long = bad(&[&words[..], &["pipeline", "--size", "64K"]].concat());
    assert!(long.contains("goes in several packets"), "{long}");
    let other = bad(&[&words[..], &["fast"]].concat());
    assert!(other.contains("valid are basic, piggyback"), "{other}");
    assert!(bad(&["explain", "qdr", "--design", "basic"]).contains("--mpi"));
}

#[test]
fn what_cannot_be_explained_is_refused() {
    assert!(bad(&["explain", "qrd"]).contains("no system named qrd; did you mean qdr?"));
    assert!(
        bad(&["explain", "qdr", "--rail", "1"])
            .contains("--rail: qdr: there is no rail 1: the system has 1 rail,")
    );
    assert!(bad(&["explain", "qdr", "--hops", "0"]).contains("valid are 1 to 16"));
    assert!(bad(&["explain", "lanl-qdr", "--hops", "1"]).contains("valid is 0"));
    assert!(bad(&["explain", "qdr", "--size", "5G"]).contains("up to 4G"));
    assert!(
        bad(&["explain", "qdr", "--mpi", "--operation", "read"]).contains("cannot be used with")
    );
    assert!(bad(&["explain", "./no-such.toml"]).contains("./no-such.toml: No such file"));
}

#[test]
fn a_file_is_checked_and_used() {
    let name = format!("fishplate-fabric-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = path.to_str().unwrap();
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write("[system.mine]\nfrom = \"fdr\"\nnodes = 200\n");
    let checked = good(&["check", file]);
    assert!(
        checked.starts_with(&format!("{file}: good: system.mine\n")),
        "{checked}"
    );
    assert!(
        checked.contains("system.mine: link 4X, 54.5 Gb/s; write of 8 B 1.26 µs over 3 switches; peak 6350 MB/s (bus, to HCA)"),
        "{checked}"
    );
    assert!(good(&["explain", file]).contains("3 switches on the path"));
    write("[system.mine]\nfrom = \"fdr\"\nnodes = \"many\"\n");
    assert!(
        bad(&["check", file])
            .contains(":3: system.mine.nodes: \"many\" is not valid; valid is a whole number")
    );
    write("[system.a]\nfrom = \"fdr\"\n[system.b]\nfrom = \"fdr\"\n");
    assert!(bad(&["explain", file]).contains(&format!(
        "holds several systems (a, b); name one of them, such as {file}:a"
    )));
    let named = format!("{file}:b");
    assert!(good(&["explain", &named]).starts_with(&format!("{named}: one RDMA write")));
    assert!(bad(&["explain", &format!("{file}:c")]).contains("no system named c; did you mean"));
    write("[system.a]\nfrom = \"fdr\"\nhca = { link = \"edr\", send = \"130 us\" }\n");
    let checked = fabric(&["check", file]);
    assert!(checked.status.success(), "{checked:?}");
    let warned = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(warned.lines().count(), 3, "{warned}");
    assert!(
        warned.contains(":3: system.a.hca.link: has no effect"),
        "{warned}"
    );
    write("");
    assert!(bad(&["check", file]).contains("holds no part"));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_machine_is_calibrated_from_measurements() {
    let file = |name: &str| {
        let name = format!("fishplate-calibrate-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    };
    let (measured, mine) = (file("perf.json"), file("mine.toml"));
    let mut lines = Vec::new();
    for benchmark in ["write-lat", "write-bw", "send-lat"] {
        let perf = Command::new(env!("CARGO_BIN_EXE_fishplate"))
            .args(["perf", benchmark, "--fabric", "r620-fdr", "--json"])
            .output()
            .unwrap();
        assert!(perf.status.success(), "{perf:?}");
        lines.extend(perf.stdout);
    }
    std::fs::write(&measured, lines).unwrap();
    let from = ["calibrate", "--from", measured.to_str().unwrap()];
    let text = good(&[&from[..], &["--base", "r610-qdr"]].concat());
    assert!(
        text.contains("[system.mine]\nfrom = \"r610-qdr\"\nhost.dma_write = { value = "),
        "{text}"
    );
    std::fs::write(&mine, &text).unwrap();
    let checked = good(&["check", mine.to_str().unwrap()]);
    assert!(checked.contains("good: system.mine"), "{checked}");
    let shown = good(&["show", mine.to_str().unwrap()]);
    assert!(
        shown.contains("inferred: write latency of 2 B to 64 B in "),
        "{shown}"
    );
    let total = |system: &str| {
        let explained = good(&["explain", system, "--size", "8", "--json"]);
        object(&explained)["total_ns"].as_f64().unwrap()
    };
    let (found, real) = (total(mine.to_str().unwrap()), total("r620-fdr"));
    assert!((found / real - 1.0).abs() < 0.02, "{found} {real}");
    assert!(
        bad(&["calibrate", "--from", "./none.json", "--base", "qdr"])
            .contains("./none.json: No such file")
    );
    std::fs::write(&measured, "{\"benchmark\": \"write-lat\"}").unwrap();
    assert!(
        bad(&[&from[..], &["--base", "qdr"]].concat())
            .contains("object 1: it has no size or no median")
    );
    for path in [&measured, &mine] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_machine_is_calibrated_from_links_of_known_shapes() {
    let file = |name: &str| {
        let name = format!("fishplate-shapes-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    };
    let (measured, mine) = (file("perf.json"), file("mine.toml"));
    let system = |lane: &str, delay: &str, more: &str| {
        format!(
            "from = \"tcp\"\nhca.link.lane = \"{lane}\"\ncable = {{ length = \"0 m\", conversion = \"{delay}\" }}\n{more}"
        )
    };
    let slow = "host.dma_write = \"40 us\"\nhca.link.encoding = \"9/10\"\n";
    let mut lines = String::new();
    for (lane, delay) in [("20 Mb/s", "1 ms"), ("400 Mb/s", "4 ms")] {
        let text = format!("[system.shape]\n{}", system(lane, delay, slow));
        std::fs::write(&mine, text).unwrap();
        for (benchmark, size) in [("write-lat", "8"), ("write-bw", "1M")] {
            let perf = Command::new(env!("CARGO_BIN_EXE_fishplate"))
                .args(["perf", benchmark, "--size", size, "--json", "--fabric"])
                .arg(&mine)
                .output()
                .unwrap();
            assert!(perf.status.success(), "{perf:?}");
            let found = String::from_utf8(perf.stdout).unwrap();
            let shape = format!("{{\"rate\": \"{lane}\", \"delay\": \"{delay}\", ");
            lines += &found.replacen('{', &shape, 1);
        }
    }
    std::fs::write(&measured, &lines).unwrap();
    let from = [
        "calibrate",
        "--base",
        "tcp",
        "--from",
        measured.to_str().unwrap(),
    ];
    let text = good(&from);
    assert!(
        text.contains("# links of 0.4 Gb/s, 4000 us:\n# write-lat"),
        "{text}"
    );
    std::fs::write(&mine, &text).unwrap();
    let shown = good(&["show", mine.to_str().unwrap(), "--json"]);
    let found = object(&shown);
    assert!(
        found.to_string().contains("over links of 2 shapes"),
        "{found}"
    );
    // For a third shape of link, the prediction is that of the measured machine.
    let text = format!(
        "{text}\n[system.found]\n{}\n[system.real]\n{}",
        system("100 Mb/s", "2 ms", "").replacen("tcp", "mine", 1),
        system("100 Mb/s", "2 ms", slow)
    );
    std::fs::write(&mine, text).unwrap();
    for size in ["8", "1M"] {
        let total = |name: &str| {
            let system = format!("{}:{name}", mine.display());
            let explained = good(&["explain", &system, "--size", size, "--json"]);
            object(&explained)["total_ns"].as_f64().unwrap()
        };
        let error = total("found") / total("real") - 1.0;
        assert!(error.abs() < 0.005, "{size}: {error}");
    }
    for (wrong, says) in [
        (
            "\"rate\": \"20\"",
            "rate: \"20\" is not valid; valid is a rate",
        ),
        ("\"delay\": 1", "rate: null is not valid"),
    ] {
        let line = format!("{{\"benchmark\": \"write-lat\", \"size\": 8, \"median\": 1, {wrong}}}");
        std::fs::write(&measured, line).unwrap();
        assert!(bad(&from).contains(says), "{}", bad(&from));
    }
    for path in [&measured, &mine] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_route_is_shown_with_its_switches() {
    let cluster = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../examples/networks/cluster.toml"
    );
    let spread = format!("{cluster}:cluster");
    let route = object(&good(&[
        "explain",
        &spread,
        "--route",
        "node1:node12",
        "--json",
    ]));
    let stops = route["stops"].as_array().unwrap();
    let names = stops.iter().map(|stop| stop["switch"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<&str>>(), ["leaf1", "spine2", "leaf3"]);
    assert_eq!(route["shortest_routes"], 8);
    assert_eq!((&route["to"], &route["lanes"]), (&11.into(), &1.into()));
    let text = good(&["explain", &spread, "--route", "0:11"]);
    assert!(
        text.contains("the route from host 0, node1 to host 11, node12: 3 switches"),
        "{text}"
    );
    let one = good(&[
        "explain",
        &format!("{cluster}:one-spine"),
        "--route",
        "0:11",
    ]);
    assert!(
        one.contains("spine1") && one.contains("those of its tables"),
        "{one}"
    );
    assert!(good(&["explain", "qdr", "--route", "0:3"]).contains("1 shortest route"));
    let mpi = good(&["explain", "mpich2-2003", "--route", "0:0"]);
    assert!(mpi.contains("0 switches"), "{mpi}");
    for (words, expected) in [
        (
            ["qdr", "--route", "0:4000"],
            "has no host 4000; valid are 0 to",
        ),
        (["qdr", "--route", "0"], "valid are two hosts, such as 0:1"),
        (
            ["blog-fdr", "--route", "0:1"],
            "gives the number of switches between hosts (hops)",
        ),
    ] {
        let why = bad(&[&["explain"], &words[..]].concat());
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_file_that_a_machine_names_must_be_a_graph() {
    let folder = std::env::temp_dir().join(format!("fishplate-graph-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let machine = write(
        "it.toml",
        "[system.it]\nfrom = \"hdr\"\nnodes = 2\ngraph = \"net.txt\"\nsource = \"published: made up\"\n",
    );
    let why = bad(&["check", &machine]);
    assert!(
        why.contains("it.toml:4: graph: net.txt: there is no file"),
        "{why}"
    );
    write(
        "net.txt",
        "Switch 4 \"S-1\"\n[1] \"H-a\"[1]\n[3] \"S-1\"[9]\n",
    );
    let why = bad(&["check", &machine]);
    assert!(why.contains("it.toml:4: system.it.graph: "), "{why}");
    assert!(
        why.contains("net.txt:3: the section of S-1 in line 1 has no port 9"),
        "{why}"
    );
    write(
        "net.txt",
        "Switch 4 \"S-1\"\n[1] \"H-a\"[1]\n[3] \"H-b\"[1]\n",
    );
    assert!(good(&["check", &machine]).contains("over 1 switch"));
    std::fs::remove_dir_all(&folder).unwrap();
}
