//! `fishplate bench`, mostly with the tree that `make stage` makes: our own library under our own
//! launcher. Figures are not judged here, only that they are measured, correct and in the right
//! form.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// The command as the tests build it, with clap's checks of the command line's definition.
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
        ("bench bw --plot a.pdf", "must end in .svg or .png"),
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
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build");
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

/// The objects of a run that ends well.
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
    }
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
        "bcast -n 2,3,4 -m 1:64K",
        "reduce -n 2,3,4 -m 4:64K",
        "allreduce -n 2,3,4 -m 4:64K",
        "gather -n 2,3,4 -m 1:64K",
        "scatter -n 2,3,4 -m 1:64K",
        "allgather -n 2,3,4 -m 1:64K",
        "alltoall -n 2,3,4 -m 1:64K",
    ] {
        assert!(!objects(&format!("{words} -c -i 5 -x 1 --rounds 1")).is_empty());
    }
    assert_eq!(objects("barrier -n 1,2,4 -i 20 --rounds 1").len(), 3);
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
        std::fs::read(&plot)
            .expect("a plot")
            .starts_with(b"\x89PNG")
    );
    std::fs::remove_file(plot).expect("the plot can be removed");
}
