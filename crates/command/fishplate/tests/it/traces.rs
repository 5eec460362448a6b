//! Tests of traces in place of programs.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn fishplate(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fishplate"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

/// The standard output of a command that succeeds.
fn said(folder: &Path, words: &[&str]) -> String {
    let output = fishplate(folder, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&said(folder, words)).unwrap()
}

/// The reason why a command refuses.
fn refusal(folder: &Path, words: &[&str]) -> String {
    let output = fishplate(folder, words);
    assert!(!output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

const MAKE: [&str; 13] = [
    "trace",
    "make",
    "ring",
    "-n",
    "4",
    "--steps",
    "12",
    "--size",
    "65536",
    "--compute",
    "50000",
    "-o",
    "ring.trace",
];

#[test]
fn a_comparison_of_a_trace_has_the_times_of_its_replays() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(folder, &MAKE);
    let compare = [
        "compare",
        "--quick",
        "--json",
        "--fabrics",
        "qdr,edr",
        "--ppn",
        "2",
    ];
    let compared = json(folder, &[&compare[..], &["ring.trace"]].concat());
    assert_eq!(compared["trace_of"], "trace make ring");
    assert_eq!(compared["recordings"][0]["loop"]["iterations"], 12);
    assert_eq!(compared["advice"]["best"], "edr");
    for row in compared["rows"].as_array().unwrap() {
        let machine = row["machine"].as_str().unwrap();
        let run = ["run", "--fabric", machine, "--ppn", "2"];
        let file = ["--summary", "json=run.json", "ring.trace"];
        said(folder, &[&run[..], &file].concat());
        let run = std::fs::read_to_string(folder.join("run.json")).unwrap();
        let run: Value = serde_json::from_str(&run).unwrap();
        assert_eq!(row["seconds"], run["virtual_s"], "{machine}");
        assert!(row["iteration_seconds"].as_f64().unwrap() > 50e-6, "{row}");
    }
}

#[test]
fn options_of_programs_are_refused_for_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(folder, &MAKE);
    let why = |words: &[&str]| {
        let start = ["compare", "--fabrics", "qdr"];
        refusal(folder, &[&start[..], words].concat())
    };
    assert!(why(&["-n", "3", "ring.trace"]).contains("the trace is of 4 ranks"));
    assert!(why(&["--recordings", "3", "ring.trace"]).contains("--recordings is for programs"));
    assert!(why(&["ring.trace", "7"]).contains("a trace has no arguments"));
}

#[test]
fn computing_can_be_scaled() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(folder, &MAKE);
    let scaled = [
        "trace",
        "scale",
        "ring.trace",
        "--computing",
        "0.5",
        "-o",
        "fast.trace",
    ];
    said(folder, &scaled);
    assert!(said(folder, &["trace", "show", "ring.trace"]).contains("computing      600 µs"));
    assert!(said(folder, &["trace", "show", "fast.trace"]).contains("computing      300 µs"));
    let wrong = [
        "trace",
        "scale",
        "ring.trace",
        "--computing",
        "0",
        "-o",
        "x",
    ];
    assert!(refusal(folder, &wrong).contains("valid are 0.001 to 1000"));
}
