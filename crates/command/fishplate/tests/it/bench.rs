//! Tests of `fishplate bench`, mostly with the tree that `make stage` makes: our own library under
//! our own launcher. They do not judge figures, only that these are measured, correct and in the
//! right format.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command in the tests' build, which has clap's checks of the command line's definition.
fn built(words: &str) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_fishplate"))
        .args(words.split(' '))
        .output();
    command.expect("the command starts")
}

#[test]
fn arguments_are_understood_or_refused() {
    for words in [
        "bench --help",
        "bench latency --help",
        "bench limits --help",
        "bench table --help",
    ] {
        let output = built(words);
        assert!(
            output.status.success(),
            "{words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    for (words, reason) in [
        ("bench latency -n 3", "between 2 ranks, not 3"),
        (
            "bench latency --library /nonexistent/lib/x.so",
            "no MPI library /nonexistent/lib/x.so",
        ),
        (
            "bench iallreduce --form persistent",
            "use allreduce --form persistent",
        ),
        ("bench first-touch -n 4", "between 2 ranks, not 4"),
        ("bench bw --plot a.pdf", "must end in .svg or .png"),
        (
            "bench bw --plot /nonexistent/a.svg",
            "--plot /nonexistent/a.svg: cannot write this file: /nonexistent does not exist",
        ),
        ("bench-worker", "started by `fishplate bench`"),
    ] {
        let output = built(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(reason),
            "{words}: {errors}"
        );
    }
}

#[test]
fn limits_are_measured_without_any_library() {
    let output = built("bench limits --rounds 1 --json");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    for name in [
        "cache-line",
        "ring-latency",
        "ring-rate",
        "memcpy",
        "vm-readv",
        "tcp-bw",
    ] {
        assert!(
            text.contains(&format!(
                r#""benchmark":"limits/{name}","library":"machine""#
            )),
            "{text}"
        );
    }
}

fn stage() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../build");
    let stage = PathBuf::from(root);
    let library = stage.join("lib/libmpi_abi.so.1");
    assert!(
        library.is_file(),
        "{} is not there: `make stage` makes it",
        library.display()
    );
    stage
}

fn bench(words: &str) -> Output {
    let command = stage().join("bin/fishplate");
    let output = Command::new(command)
        .arg("bench")
        .args(words.split(' '))
        .output();
    output.expect("the staged command starts")
}

/// The JSON objects of a run, which must succeed.
fn objects(words: &str) -> Vec<Value> {
    let output = bench(&format!("{words} --json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {errors}");
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect()
}

#[test]
fn latency_is_one_object_a_size() {
    let all = objects("latency -m 1:64K -i 50 --rounds 3");
    let sizes: Vec<u64> = all.iter().filter_map(|one| one["size"].as_u64()).collect();
    assert_eq!(sizes, (0..=16).map(|bits| 1 << bits).collect::<Vec<u64>>());
    for one in &all {
        let number = |name: &str| one[name].as_f64().expect("a number");
        assert_eq!(
            (&one["library"], &one["unit"], &one["ranks"]),
            (&"fishplate".into(), &"us".into(), &2.into())
        );
        assert!(0.0 < number("min") && number("min") <= number("median"));
        assert!(number("median") <= number("max"));
        let interval = |at: usize| one["interval"][at].as_f64().expect("a number");
        assert!(number("min") <= interval(0) && interval(1) <= number("max"));
        assert_eq!(one["binding"].as_array().map(Vec::len), Some(2));
        for name in ["host", "cpu", "kernel", "version", "date", "cpus"] {
            assert!(
                !one["conditions"][name].as_str().unwrap_or("").is_empty(),
                "{name}"
            );
        }
        for name in ["load", "stolen", "throttled", "waited", "seconds"] {
            assert!(one["disturbances"][name].as_f64() >= Some(0.0), "{name}");
        }
    }
}

#[test]
fn an_empty_message_has_a_size_and_modelled_results_have_no_conditions() {
    let words = "latency --fabric qdr -m 0:0 -i 1 -x 0";
    let text = String::from_utf8(bench(words).stdout).unwrap();
    assert!(text.contains("Size") && text.contains("0 B"), "{text}");
    assert!(!text.contains("Cores: "), "{text}");
    let one = &objects(words)[0];
    assert!(one.get("conditions").is_none() && one.get("binding").is_none());
}

#[test]
fn choices_are_explained_after_the_results() {
    let words = "latency --fabric qdr,fdr -m 8:8 -i 1 -x 0 --explain";
    let all = objects(words);
    let explained: Vec<&Value> = all
        .iter()
        .filter(|one| one["explained"].is_object())
        .collect();
    let labels: Vec<&Value> = explained.iter().map(|one| &one["library"]).collect();
    assert_eq!(labels, ["qdr", "fdr"]);
    for one in explained {
        let peer = &one["explained"]["peers"][0];
        assert_eq!(peer["ranks"], serde_json::json!([1]));
        assert_eq!(peer["sizes"][0]["protocol"], "eager");
        assert!(peer["sizes"][0]["rails"]["predicted_ns"].as_u64() > Some(0));
    }
    let text = String::from_utf8(bench(words).stdout).unwrap();
    let part = "\nfdr:\nMessages of rank 0 to rank 1 (RDMA";
    assert!(text.contains(part), "{text}");
    let refused = bench("latency -n 2,3 --explain");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("one number of ranks"));
}

#[test]
fn data_is_right_in_every_benchmark() {
    for words in [
        "latency -m 0:1M",
        "bw -m 1:1M -W 8",
        "bibw -m 1:1M -W 8",
        "mbw-mr -n 4 -m 1:64K -W 8",
    ] {
        assert!(!objects(&format!("{words} -c -i 5 -x 1 --rounds 1")).is_empty());
    }
}

/// The collective operations that the help names.
fn collectives() -> Vec<String> {
    let help = String::from_utf8(built("bench --help").stdout).expect("text");
    let line = |line: &str| {
        let (name, about) = line.trim().split_once("  ")?;
        let is_one_sided = about.contains("MPI_Win_flush");
        let is = about.trim().starts_with("MPI_") && name != "init" && !is_one_sided;
        is.then(|| name.to_owned())
    };
    help.lines().filter_map(line).collect()
}

#[test]
fn data_is_right_in_every_collective_and_form() {
    let all = collectives();
    assert_eq!(all.len(), 22, "{all:?}");
    assert_eq!(objects("barrier -n 1,2,4 -i 20 --rounds 1").len(), 3);
    for name in all {
        for form in ["blocking", "nonblocking", "persistent"] {
            // One short message, and one that uses another protocol, which is that of all forms.
            let sizes: &[&str] = match (name.as_str(), form) {
                ("barrier", _) => &[""],
                (_, "blocking") => &["-c -m 12:12", "-c -m 24K:24K"],
                _ => &["-c -m 12:12"],
            };
            for size in sizes {
                let words = format!("{name} --form {form} -n 3 -i 2 -x 1 --rounds 1 {size}");
                let found = objects(words.trim_end());
                let figures = if form == "nonblocking" { 4 } else { 1 };
                assert_eq!(found.len(), figures, "{words}");
                assert!(found[0]["median"].as_f64() > Some(0.0), "{words}");
            }
        }
    }
}

#[test]
fn neighbourhoods_are_grids_and_graphs() {
    for name in [
        "neighbor-alltoall",
        "neighbor-allgatherv",
        "ineighbor-alltoallw",
    ] {
        for topology in ["grid:1", "grid:3", "graph"] {
            let words = format!("{name} --topology {topology} -n 2,6 -m 8:32 -c -i 4 --rounds 1");
            assert!(!objects(&words).is_empty());
        }
    }
}

#[test]
fn overlap_is_a_share_of_the_communication() {
    let all = objects("iallreduce -m 1K:2K -i 20 -x 2 --rounds 2 --test-calls 10");
    let names: BTreeSet<&str> = all
        .iter()
        .filter_map(|one| one["benchmark"].as_str())
        .collect();
    let expected = [
        "iallreduce",
        "iallreduce/compute",
        "iallreduce/overall",
        "iallreduce/overlap",
    ];
    assert_eq!(names, BTreeSet::from(expected));
    let value = |name: &str, size: u64| {
        let is = |one: &&Value| one["benchmark"] == name && one["size"] == size;
        all.iter()
            .find(is)
            .and_then(|one| one["min"].as_f64())
            .expect("measured")
    };
    for size in [1024, 2048] {
        assert!(value("iallreduce/overall", size) >= value("iallreduce/compute", size));
        // The rank computes for as long as the operation takes.
        assert!(value("iallreduce/compute", size) >= 0.5 * value("iallreduce", size));
        assert!((0.0..=100.0).contains(&value("iallreduce/overlap", size)));
    }
    let text = String::from_utf8(bench("ibcast -m 8:8 -i 3 --rounds 1").stdout).unwrap();
    assert!(
        // Each column is as wide as its figures.
        text.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words == ["Size", "Overall", "Compute", "Pure", "Overlap"]
        }),
        "{text}"
    );
}

#[test]
fn first_messages_are_timed_and_their_memory_counted() {
    let all = objects("first-touch -m 4K:8K --messages 5,50 --rounds 2 -c");
    let value = |name: &str, size: u64| {
        let is = |one: &&Value| one["benchmark"] == name && one["size"] == size;
        all.iter()
            .find(is)
            .and_then(|one| one["median"].as_f64())
            .expect("measured")
    };
    assert_eq!(all.len(), 2 * 2 * 3);
    for size in [4096, 8192] {
        for count in [5, 50] {
            assert!(value(&format!("first-touch/{count}"), size) > 0.0);
            // No library should need tens of megabytes for a pair of ranks.
            assert!(value(&format!("first-touch/{count}/pair"), size) < 20_000.0);
        }
    }
}

/// An MPI library of one rank without persistent collectives: procedures that succeed and do
/// nothing.
const IDLE_LIBRARY: &str = "\
int MPI_Comm_rank(void *comm, int *rank) { *rank = 0; return 0; }
int MPI_Comm_size(void *comm, int *size) { *size = 1; return 0; }
int MPI_Get_library_version(char *text, int *length) { text[0] = *length = 0; return 0; }
double MPI_Wtime(void) { return 0; }
#define DO(name) int MPI_##name(void) { return 0; }
DO(Init) DO(Finalize) DO(Abort) DO(Comm_set_errhandler) DO(Error_string) DO(Send) DO(Recv)
DO(Isend) DO(Irecv) DO(Waitall) DO(Wait) DO(Test) DO(Start) DO(Request_free) DO(Comm_free)
DO(Barrier) DO(Reduce) DO(Allreduce) DO(Reduce_scatter) DO(Reduce_scatter_block) DO(Scan)
DO(Gather) DO(Gatherv) DO(Scatter) DO(Scatterv) DO(Allgather) DO(Allgatherv) DO(Alltoall)
DO(Alltoallv) DO(Alltoallw)
";

#[test]
fn wrong_data_and_missing_procedures_are_reported() {
    let folder = std::env::temp_dir().join(format!("bench-idle-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("lib")).expect("a folder");
    let (source, library) = (folder.join("mpi.c"), folder.join("lib/libmpi_abi.so.1"));
    std::fs::write(&source, IDLE_LIBRARY).expect("a file");
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-shared", "-fPIC", "-o"]);
    let compiled = compiled.arg(&library).arg(&source).status();
    assert!(compiled.expect("the C compiler starts").success());
    let run = |words: &str| {
        let library = library.display();
        // `nice -n 1 COMMAND` serves as a launcher of one rank.
        built(&format!(
            "bench {words} -n 1 -i 2 --rounds 1 --library {library} --launcher nice"
        ))
    };
    assert!(run("barrier").status.success());
    let refused = run("barrier --form persistent");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        errors.contains("libmpi_abi.so.1 has no MPI_Barrier_init"),
        "{errors}"
    );
    let names = collectives();
    // In these operations a single rank receives nothing; neighbourhoods need communicators.
    let receives = |name: &&String| {
        !matches!(name.as_str(), "barrier" | "bcast" | "exscan") && !name.starts_with("neighbor")
    };
    for name in names.iter().filter(receives) {
        assert!(run(&format!("{name} -m 8:8")).status.success(), "{name}");
        let wrong = run(&format!("{name} -m 8:8 -c"));
        let errors = String::from_utf8_lossy(&wrong.stderr);
        let found = !wrong.status.success()
            && errors.contains("validation of iteration 0 failed: byte 0 of 8");
        assert!(found, "{name}: {errors}");
    }
    std::fs::remove_dir_all(folder).expect("the folder can be removed");
}

#[test]
fn init_measures_time_and_memory() {
    let all = objects("init -n 2 --rounds 1");
    let names: BTreeSet<&str> = all
        .iter()
        .filter_map(|one| one["benchmark"].as_str())
        .collect();
    assert_eq!(
        names,
        BTreeSet::from(["init", "init/call", "init/private", "init/resident"])
    );
    assert!(all.iter().all(|one| one["median"].as_f64() > Some(0.0)));
}

#[test]
fn two_libraries_stand_side_by_side_and_are_drawn() {
    let library = stage().join("lib/libmpi_abi.so.1");
    let plot = std::env::temp_dir().join(format!("bench-{}.png", std::process::id()));
    let (library, file) = (library.display(), plot.display());
    let words = format!("latency -m 8:64 -i 50 --rounds 2 --against {library} --plot {file}");
    let output = bench(&words);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("latency, 2 ranks, µs, median of 2 rounds\n"),
        "{text}"
    );
    assert!(
        text.contains("fishplate") && text.contains(&format!("/ {library}")),
        "{text}"
    );
    assert!(
        text.contains("Ratios divide ") && text.contains("\nCores: "),
        "{text}"
    );
    assert!(
        std::fs::read(&plot)
            .expect("a plot")
            .starts_with(b"\x89PNG")
    );
    std::fs::remove_file(plot).expect("the plot can be removed");
}

/// The figures of a benchmark on a modelled machine, by size.
fn modelled(words: &str) -> Vec<(u64, f64)> {
    let figure = |one: &Value| Some((one["size"].as_u64()?, one["median"].as_f64()?));
    objects(words).iter().filter_map(figure).collect()
}

#[test]
fn a_size_on_a_modelled_machine_does_not_depend_on_those_before_it() {
    for benchmark in ["bw", "bibw"] {
        let of = |sizes| modelled(&format!("{benchmark} --fabric edr -i 20 -m {sizes}"));
        let all = of("128:1K");
        assert_eq!(all.len(), 4);
        assert_eq!(all[2..3], of("512:512"), "{benchmark}");
    }
}

#[test]
fn pairs_send_no_more_than_their_link_carries() {
    let words = "mbw-mr --fabric edr -n 16 --ppn 8 -m 2K:2K";
    for words in [words, &format!("{words} -i 4 -x 1")] {
        for (size, rate) in modelled(words) {
            let rate = rate * size as f64 / 1e9;
            assert!((8.0..12.5).contains(&rate), "{words}: {rate} GB/s");
        }
    }
}
