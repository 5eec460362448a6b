//! Tests of the placement of jobs on modelled machines.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Ten hosts on a leaf switch, which has two links up.
const TREE: &str = "[system.narrow]\nfrom = \"qdr\"\nsource = \"assumed: a test\"\nnodes = 60\n\
    oversubscription = 5\nswitch = { ports = 12 }\n[system.wide]\nfrom = \"narrow\"\n\
    source = \"assumed: a test\"\noversubscription = 1\n";

fn fishplate(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fishplate"));
    let words = words.split(' ');
    let command = command.args(words).current_dir(folder);
    command.stdin(Stdio::null()).output().unwrap()
}

fn json(folder: &Path, words: &str) -> Value {
    let output = fishplate(folder, words);
    assert!(output.status.success(), "{words}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with the machines and a trace in which each of ten ranks sends to the rank half of all further.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tree.toml"), TREE).unwrap();
    let make = "trace make shift -n 10 --steps 12 --size 262144 -o all.trace";
    let made = fishplate(folder.path(), make);
    assert!(made.status.success(), "{made:?}");
    folder
}

const COMPARE: &str = "compare -q --json --fabrics tree.toml:narrow,tree.toml:wide";

#[test]
fn scattered_jobs_are_slow_where_links_are_shared() {
    let folder = folder();
    for fast in ["", " --fast"] {
        let words = format!("{COMPARE}{fast} --placement packed,random --placements 3 all.trace");
        let found = json(folder.path(), &words);
        assert_eq!(found, json(folder.path(), &words), "the same bytes");
        let seconds = |placement: usize, machine: usize| {
            let row = &found["comparisons"][placement]["rows"][machine];
            row["seconds"].as_f64().unwrap()
        };
        let slower = [0, 1].map(|machine| seconds(1, machine) / seconds(0, machine));
        assert!(slower[0] > 1.5 && slower[0] > 1.3 * slower[1], "{slower:?}");
        let row = &found["comparisons"][1]["rows"][0];
        let placements = row["placements"].as_array().unwrap();
        let mut times: Vec<f64> = placements
            .iter()
            .map(|one| one["seconds"].as_f64().unwrap())
            .collect();
        times.sort_by(f64::total_cmp);
        assert_eq!((times.len(), times[1]), (3, seconds(1, 0)));
        assert_eq!(placements[2]["placement"], "random:3");
        let answer = &found["answers"][1];
        assert_eq!(answer["placement"], "random");
        assert_eq!(answer["best"], "tree:wide");
        assert_eq!(answer["holds_on"], 3);
        let contention = |placement: usize| {
            let row = &found["comparisons"][placement]["rows"][0];
            (row["shares"]["contention"].as_f64(), &row["fullest_link"])
        };
        // Packed, all ranks are below one switch.
        assert_eq!(contention(0), (None, &Value::Null));
        let (share, link) = contention(1);
        assert!(share > Some(0.4), "{share:?}");
        let name = link["name"].as_str().unwrap();
        assert!(
            name.starts_with("leaf ") && name.contains(", link "),
            "{name}"
        );
        assert!(link["share"].as_f64() > Some(0.8), "{link}");
    }
}

#[test]
fn packed_is_the_default_and_lists_choose_hosts() {
    let folder = folder();
    let compared = |placement: &str| {
        let words = format!("{COMPARE} --quick{placement} all.trace");
        json(folder.path(), &words)
    };
    let packed = compared("");
    assert_eq!(packed, compared(" --placement packed"));
    let seconds = |found: &Value| found["rows"][0]["seconds"].as_f64().unwrap();
    let list = compared(" --placement 20-29");
    assert_eq!(
        seconds(&list),
        seconds(&packed),
        "a leaf switch is like another"
    );
    assert_eq!(list["placement"], "20-29");
    let apart = compared(" --placement 0-4,10-14");
    assert!(
        seconds(&apart) > 1.3 * seconds(&packed),
        "{}",
        seconds(&apart)
    );
    let spread = compared(" --placement spread");
    assert!(
        seconds(&spread) > 1.1 * seconds(&packed),
        "{}",
        seconds(&spread)
    );
}

#[test]
fn a_job_that_does_not_fit_is_refused_before_any_run() {
    let folder = folder();
    for (words, says) in [
        (
            "random --set nodes=8",
            "--placement random: tree.toml:narrow: a machine of 8 hosts has no room for a job of 10 nodes; --set nodes=COUNT",
        ),
        ("0-8", "9 hosts are listed, and the job has 10 nodes"),
        ("0-8,60", "a machine of 60 hosts has no host 60"),
        ("0-8,3", "--placement: host 3 is named twice"),
        ("random:-1", "'-1' is not a seed"),
        ("packet", "'packet' is no placement; valid are packed"),
        ("packed,packed", "packed is named twice"),
        (
            "random --points 1/2 --results one.points",
            "--points and --merge are for one setting and one placement",
        ),
    ] {
        let command = "compare --fabrics tree.toml:narrow --placement";
        let output = fishplate(folder.path(), &format!("{command} {words} all.trace"));
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && why.contains(says),
            "{words}: {why}"
        );
    }
    let run = "run --fabric qdr --placement random:2 --set nodes=4 all.trace";
    let output = fishplate(folder.path(), run);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(
        why.contains("4 hosts has no room for a job of 10 nodes"),
        "{why}"
    );
}

#[test]
fn a_run_has_the_time_of_its_placement() {
    let folder = folder();
    let seconds = |placement: &str| {
        let run = "run --fabric tree.toml:narrow --summary json=sum.json --placement";
        let output = fishplate(folder.path(), &format!("{run} {placement} all.trace"));
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read(folder.path().join("sum.json")).unwrap();
        let summary: Value = serde_json::from_slice(&text).unwrap();
        summary["virtual_s"].as_f64().unwrap()
    };
    assert!(seconds("0-4,10-14") > 1.3 * seconds("packed"));
}
