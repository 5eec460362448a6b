//! Tests of `fishplate perf`: on a modelled machine equal arguments give equal bytes; invalid
//! arguments are refused with a reason.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{FISHPLATE, output};

fn words(words: &str) -> (bool, String, String) {
    let words: Vec<&str> = ["perf"].into_iter().chain(words.split(' ')).collect();
    let output = output(&words);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// The output of a benchmark, which must succeed.
fn said(line: &str) -> String {
    let (good, out, error) = words(line);
    assert!(good && error.is_empty(), "{line}: {error}");
    out
}

const BENCHMARKS: [&str; 8] = [
    "write-lat",
    "write-bw",
    "read-lat",
    "read-bw",
    "send-lat",
    "send-bw",
    "atomic-lat",
    "msg-rate",
];

#[test]
fn every_help_has_an_example() {
    assert!(said("--help").contains("Example:\n  fishplate perf"));
    for benchmark in BENCHMARKS {
        let help = said(&format!("{benchmark} --help"));
        assert!(
            help.contains(&format!("Example:\n  fishplate perf {benchmark}")),
            "{help}"
        );
    }
}

#[test]
fn a_table_says_what_and_in_which_unit() {
    let table = said("write-lat --fabric qdr --size 8");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "write-lat, rc, qdr, µs, half of the round trip");
    assert!(
        lines[1].contains("Median") && lines[1].contains("99.9 %"),
        "{table}"
    );
    assert!(
        lines[3].starts_with("  8 B") || lines[3].starts_with(" 8 B"),
        "{table}"
    );
    let table = said("send-bw --fabric qdr --transport ud --rx-depth 16 --size 64");
    assert!(
        table.contains("MB are 10^6 bytes")
            && table.contains("Received MB/s")
            && table.contains("Lost"),
        "{table}"
    );
    let table = said("write-bw --fabric qdr,fdr --iterations 40");
    assert!(
        table.contains("/ fdr") && table.contains("(N/2)"),
        "{table}"
    );
}

#[test]
fn the_same_words_give_the_same_bytes() {
    for line in [
        "send-bw --fabric qdr --transport ud --rx-depth 8 --iterations 200",
        "write-lat --fabric edr,hdr --iterations 20 --json",
    ] {
        assert_eq!(said(line), said(line));
    }
}

#[test]
fn each_line_of_json_is_an_object_of_one_size() {
    let lines = said("read-bw --fabric qdr --iterations 30 --json");
    let all: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all.len(), 24);
    for (bits, one) in all[..23].iter().enumerate() {
        assert_eq!(one["benchmark"], "read-bw");
        assert_eq!(
            (&one["fabric"], &one["transport"], &one["unit"]),
            (&"qdr".into(), &"rc".into(), &"MB/s".into())
        );
        assert_eq!(one["size"].as_u64(), Some(2 << bits));
        assert!(one["median"].as_f64() > Some(0.0));
    }
    assert_eq!(all[23]["benchmark"], "read-bw/half-peak");
    assert!(
        lines.starts_with("{\"benchmark\":\"read-bw\",\"fabric\":\"qdr\""),
        "{lines}"
    );
}

#[test]
fn a_plot_is_drawn() {
    let file = std::env::temp_dir().join(format!("perf-{}.svg", std::process::id()));
    said(&format!(
        "send-bw --fabric qdr --transport uc --iterations 20 --plot {}",
        file.display()
    ));
    let svg = std::fs::read_to_string(&file).unwrap();
    for text in [
        "send-bw, uc",
        "qdr, sent",
        "qdr, received",
        "bandwidth, MB/s",
        "8 MiB",
    ] {
        assert!(svg.contains(&format!("\n{text}\n")), "{text} is missing");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn what_cannot_be_done_is_said_with_what_can() {
    for (line, reason) in [
        (
            "read-lat --fabric qdr --transport uc",
            "it has no RDMA reads, which read-lat needs; valid: rc",
        ),
        ("atomic-lat --fabric qdr --transport ud", "valid: rc"),
        ("write-bw --fabric qdr --transport ud", "valid: rc, uc"),
        (
            "send-lat --fabric qdr --transport ud --size 4K",
            "a datagram is one packet, here of at most 2048 bytes",
        ),
        ("write-lat --fabric nope", "no system named nope"),
        (
            "write-lat --fabric qdr --mtu 1500",
            "valid are 256, 512, 1024, 2048 and 4096",
        ),
        (
            "write-lat --fabric qdr --inline 1000",
            "at most 128 bytes in a work request",
        ),
        (
            "send-bw --fabric qdr --srq --transport ud",
            "a datagram queue pair has receives of its own",
        ),
        ("write-lat --fabric qdr --srq", "it posts no receives"),
        (
            "write-lat --fabric qdr --plot a.pdf",
            "must end in .svg or .png",
        ),
        ("write-lat --fabric qdr --iterations 1", "two"),
        ("write-lat", "--fabric"),
        ("write-lat --fabric qdr 10.0.0.1", "cannot be used with"),
        (
            "write-lat --device x --timeout 0",
            "valid are seconds above 0",
        ),
        ("pingpong", "unrecognized subcommand"),
        (
            "tcp-lat --no-secret 192.0.2.1",
            "192.0.2.1 is another host, and anybody on its network could take part",
        ),
        (
            "tcp-lat --no-secret --listen 0.0.0.0",
            "with --no-secret the other side must be on this host",
        ),
        ("tcp-lat --secret-file /dev/full", "its mode is 666"),
        ("tcp-lat --no-secret --secret-file x", "cannot be used with"),
        // The test's standard input is empty, so there is no token.
        ("tcp-lat 127.0.0.1", "a token has 32 hexadecimal digits"),
    ] {
        let (good, out, error) = words(line);
        assert!(
            !good && out.is_empty() && error.contains(reason),
            "{line}: {out}{error}"
        );
    }
}

/// Starts one side of a socket benchmark at this port, with further arguments.
fn side(port: u16, more: &[&str]) -> Child {
    let port = port.to_string();
    let words = ["perf", "tcp-lat", "--size", "8", "-n", "20", "-p", &port];
    let mut command = Command::new(FISHPLATE);
    command.args(words).args(more).stdin(Stdio::piped());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Passes `token` to a side that asks for one, and returns its output.
fn given(mut side: Child, token: &str) -> (bool, String) {
    writeln!(side.stdin.take().unwrap(), "{token}").unwrap();
    let done = side.wait_with_output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn one_side_shows_a_token_and_the_other_must_know_it() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut server = side(port, &["--listen", "127.0.0.1"]);
    let mut errors = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let token = line.trim_end().rsplit(' ').next().unwrap();
    assert!(
        line.contains("the other side asks for this token"),
        "{line}"
    );

    let other = "0".repeat(32);
    let (good, text) = given(side(port, &["127.0.0.1"]), &other);
    assert!(
        !good && text.contains("the secrets of the two sides differ"),
        "{text}"
    );
    let (good, text) = given(side(port, &["127.0.0.1"]), token);
    assert!(good && text.contains("tcp-lat"), "{text}");
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert!(server.wait().unwrap().success(), "{rest}");
    assert!(
        rest.contains("closed a connection from 127.0.0.1"),
        "{rest}"
    );
}
