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
    assert!(why(&["-n", "3", "ring.trace"]).contains("ring.trace is of 4 ranks"));
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
        "0.0001",
        "-o",
        "x",
    ];
    assert!(refusal(folder, &wrong).contains("valid are 0 and 0.001 to 1000"));
}

/// The virtual time of a trace on a machine.
fn seconds(folder: &Path, trace: &str) -> Value {
    let run = [
        "run",
        "--fabric",
        "edr",
        "--summary",
        "json=run.json",
        trace,
    ];
    said(folder, &run);
    let run = std::fs::read_to_string(folder.join("run.json")).unwrap();
    serde_json::from_str::<Value>(&run).unwrap()["virtual_s"].clone()
}

#[test]
fn a_trace_comes_back_from_goal_with_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for pattern in ["halo3d", "sweep"] {
        let make = [
            "trace",
            "make",
            pattern,
            "-n",
            "8",
            "--compute",
            "5000",
            "-o",
            "a.trace",
        ];
        said(folder, &make);
        said(
            folder,
            &["trace", "export", "a.trace", "--to", "goal", "-o", "a.goal"],
        );
        said(
            folder,
            &[
                "trace", "import", "a.goal", "--from", "goal", "-o", "b.trace",
            ],
        );
        assert_eq!(
            seconds(folder, "b.trace"),
            seconds(folder, "a.trace"),
            "{pattern}"
        );
    }
    said(folder, &MAKE);
    let sums = ["trace", "make", "allreduce", "-n", "4", "-o", "sums.trace"];
    said(folder, &sums);
    let why = refusal(
        folder,
        &["trace", "export", "sums.trace", "--to", "goal", "-o", "x"],
    );
    assert!(
        why.contains("rank 0, call 0, MPI_Allreduce: GOAL has no collective"),
        "{why}"
    );
    std::fs::write(folder.join("wrong.goal"), "num_ranks 1\nrank 0 {\nput\n}\n").unwrap();
    let why = refusal(
        folder,
        &["trace", "import", "wrong.goal", "--from", "goal", "-o", "x"],
    );
    assert!(why.contains("wrong.goal: line 3: "), "{why}");
}

#[test]
fn traces_of_simgrid_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let actions = "R init\nR compute 1e6\nR bcast 1000 1 0\nR reduce 100 0 0 0\nR allreduce 8 0\n\
        R alltoall 4 4 1 1\nR alltoallv 6 3 3 6 3 3\nR gather 8 8 1\nR gatherv 8 8 8 1\nR allgather 1 1\n\
        R allgatherv 2 2 2\nR scatter 1 1\nR scatterv 2 2 2 0\nR reducescatter 3 4 11\nR scan 1 1 0\n\
        R exscan 1 1 0\nR barrier\nR irecv P 3 -1\nR test P R 3\nR isend P 3 5000\nR waitall\n\
        R send P 4 10\nR recv P 4 10\nR finalize\n";
    for (rank, peer) in [("0", "1"), ("1", "0")] {
        let text = actions.replace('R', rank).replace('P', peer);
        std::fs::write(folder.join(format!("actions{rank}.txt")), text).unwrap();
    }
    std::fs::write(folder.join("list.txt"), "actions0.txt\nactions1.txt\n").unwrap();
    let import = ["trace", "import", "--from", "simgrid"];
    let why = refusal(
        folder,
        &[&import[..], &["list.txt", "-o", "a.trace"]].concat(),
    );
    assert!(
        why.contains("actions0.txt: line 2: it computes") && why.contains("--rate"),
        "{why}"
    );
    let rest = ["--rate", "1Gflop/s", "list.txt", "-o", "a.trace"];
    assert_eq!(
        said(folder, &[&import[..], &rest].concat()),
        "2 ranks, 44 calls\n"
    );
    let shown = said(folder, &["trace", "show", "a.trace"]);
    assert!(shown.contains("computing      1"), "{shown}");
    assert!(seconds(folder, "a.trace").as_f64().unwrap() > 1e-3);
}

#[test]
fn parts_of_a_trace_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let make = [
        "trace",
        "make",
        "halo3d",
        "-n",
        "8",
        "--steps",
        "20",
        "--compute",
        "5000",
    ];
    said(folder, &[&make[..], &["--sum", "-o", "a.trace"]].concat());
    fn cut<'a>(words: &[&'a str]) -> Vec<&'a str> {
        [&["trace", "cut", "a.trace", "-o", "b.trace"], words].concat()
    }
    assert_eq!(
        said(folder, &cut(&["--iterations", "5:15"])),
        "iterations 5 to 14 of 20\n"
    );
    let shown = said(folder, &["trace", "show", "b.trace"]);
    let parts = [
        "cut: iterations 5 to 14 of 20",
        "computing      50.0 µs a rank",
    ];
    assert!(parts.iter().all(|part| shown.contains(part)), "{shown}");
    let object = json(folder, &["trace", "show", "--json", "b.trace"]);
    assert_eq!(object["ranks"], 8);
    assert_eq!(object["notes"][0], "cut: iterations 5 to 14 of 20");
    let sums = object["procedures"].as_array().unwrap().iter();
    let mut sums = sums.filter(|one| one["name"] == "MPI_Allreduce");
    assert_eq!(sums.next().unwrap()["calls"], 80);
    let [part, whole] = ["b.trace", "a.trace"].map(|file| seconds(folder, file).as_f64().unwrap());
    assert!(part < whole && part > whole * 0.4, "{part} {whole}");
    assert_eq!(
        said(folder, &cut(&["--seconds", "12e-6:22e-6"])),
        "iterations 3 to 4 of 20\n"
    );
    let why = refusal(folder, &cut(&["--ranks", "0-3"]));
    assert!(
        why.contains("MPI_Irecv: its peer, rank ") && why.contains("outside the part"),
        "{why}"
    );
    let said_of_ranks = said(folder, &cut(&["--ranks", "0-3", "--leave-out-others"]));
    assert!(said_of_ranks.starts_with("4 ranks\n80 collective calls have fewer ranks\n"));
    assert!(seconds(folder, "b.trace").as_f64().unwrap() < whole);
    said(folder, &["trace", "fold-times", "a.trace", "-o", "c.trace"]);
    assert_eq!(seconds(folder, "c.trace"), whole);
}

/// The standard output of a comparison in one run, and of the same in shares and rounds.
fn in_shares(folder: &Path, comparison: &[&str]) -> [Vec<u8>; 2] {
    let run = |words: &[&str]| {
        let output = fishplate(folder, &[&["compare", "-q"], words, comparison].concat());
        assert!(output.status.success(), "{words:?}: {output:?}");
        output
    };
    let whole = run(&[]).stdout;
    let mut files: Vec<String> = Vec::new();
    for round in 0..2 {
        let known = files.clone();
        for share in ["1/3", "2/3", "3/3"] {
            let file = format!("{round}-{}.points", &share[..1]);
            let mut words = vec!["--points", share, "--results", &file];
            if !known.is_empty() {
                words.push("--merge");
                words.extend(known.iter().map(String::as_str));
            }
            run(&words);
            files.push(file);
        }
    }
    let mut words = vec!["--merge"];
    words.extend(files.iter().map(String::as_str));
    let merged = run(&words).stdout;
    [whole, merged]
}

#[test]
fn a_study_replays_a_trace_on_the_machines_of_its_document() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(folder, &MAKE);
    let study = ["study", "pcie", "--ppn", "2", "--trace"];
    let lines = said(folder, &[&study[..], &["ring.trace", "--json"]].concat());
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.len() > 2, "{lines:?}");
    for line in &lines {
        assert!(line["virtual_s"].as_f64() > Some(0.0), "{line}");
    }
    let text = said(folder, &[&study[..], &["ring.trace"]].concat());
    assert!(
        text.contains("time, ms") && text.contains("1.000"),
        "{text}"
    );
    let why = refusal(folder, &[&study[..], &["nowhere.trace"]].concat());
    assert!(why.contains("--trace nowhere.trace: No such file"), "{why}");
    let why = refusal(folder, &["study", "pcie", "--ppn", "2"]);
    assert!(why.contains("--trace"), "{why}");
}

#[test]
fn a_comparison_in_shares_prints_what_one_run_prints() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    said(folder, &MAKE);
    for options in [
        &["--fabrics", "qdr,edr"][..],
        &["--quick", "--fabrics", "qdr,fdr,edr"],
    ] {
        let comparison = [options, &["ring.trace"]].concat();
        let [whole, merged] = in_shares(folder, &comparison);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&merged), text(&whole));
    }
    let share = [
        "compare",
        "-q",
        "--points",
        "1/2",
        "--results",
        "x",
        "--fabrics",
        "qdr",
    ];
    let why = refusal(folder, &[&share[..], &["--", "/bin/true"]].concat());
    assert!(why.contains("one recording for all"), "{why}");
    let start = ["compare", "-q", "--merge", "0-1.points", "--ppn", "2"];
    let why = refusal(
        folder,
        &[&start[..], &["--fabrics", "qdr,edr", "ring.trace"]].concat(),
    );
    assert!(why.contains("it is of another comparison: its "), "{why}");
}
