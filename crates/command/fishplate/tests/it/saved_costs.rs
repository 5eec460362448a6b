//! `--save-costs` and `FISHPLATE_COSTS=FILE`: with a stand-in for rank 0, and with the tree that
//! `make stage` makes.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use knobs::{CopyPath, CoreDistance, CostTable};
use serde_json::Value;

use crate::common::{Done, Folder, command, ranks};
use crate::explain::explanation;

/// Rank 0 has learned two situations.
const LEARNED: &str = r#"{"rank":0,"peers":[],"learned":[
{"from":1048576,"cores":"far","others_wait":true,"ps_per_byte":[70,90,null]},
{"from":0,"cores":"near","others_wait":false,"ps_per_byte":[300,200,100]}]}"#;

fn save(file: &Path, explained: &str) -> Done {
    let steps = explanation(&explained.replace('\n', ""));
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let option = format!("--save-costs={}", file.display());
    ranks(&["-n", "2", &option], &steps).finish()
}

fn fastest(table: &CostTable, len: usize, cores: CoreDistance, wait: bool) -> Option<CopyPath> {
    table.costs(len, cores, wait)?.fastest(|_| true)
}

#[test]
fn what_rank_0_has_learned_is_added_to_the_file() {
    use CoreDistance::{Far, Near};
    let folder = Folder::new("save-costs");
    let file = folder.0.join("site.toml");
    save(&file, LEARNED).code(0).silent();
    let table = CostTable::parse(&read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        fastest(&table, 1 << 20, Far, true),
        Some(CopyPath::CooperativeCopy)
    );
    assert_eq!(
        fastest(&table, 1 << 20, Near, false),
        Some(CopyPath::Packets)
    );
    assert!(table.processor().is_some());
    // Another run knows better about one of them.
    let other = r#"{"learned":[{"from":1048576,"cores":"far","others_wait":true,"ps_per_byte":[70,60,null]}]}"#;
    save(&file, other).code(0).silent();
    let table = CostTable::parse(&read_to_string(&file).unwrap()).unwrap();
    assert_eq!(fastest(&table, 1 << 20, Far, true), Some(CopyPath::Read));
    assert_eq!(
        fastest(&table, 1 << 20, Near, false),
        Some(CopyPath::Packets)
    );
}

#[test]
fn a_file_that_cannot_take_costs_is_refused_before_the_job() {
    let folder = Folder::new("refused-costs");
    let other = LEARNED.replace("near", "close");
    let file = folder.0.join("new.toml");
    save(&file, &other)
        .code(1)
        .one_line(&["--save-costs=", "damaged"]);
    let nothing = save(&file, r#"{"rank":0,"peers":[],"learned":[]}"#);
    nothing
        .code(1)
        .one_line(&["has learned no costs", "128 KiB", "FISHPLATE_COSTS=learn"]);
    assert!(!file.exists());
    let bad = folder.file("bad.toml", "answer = 42\n", 0o644);
    save(&bad, LEARNED)
        .code(2)
        .one_line(&["bad.toml: line 1: ", "name another file"]);
    let row = "[[messages]]\nfrom = 0\ncores = \"far\"\nothers_wait = true\nread_ps_per_byte = 1\n";
    let text = format!("processor = \"Another\"\n{row}");
    let elsewhere = folder.file("elsewhere.toml", &text, 0o644);
    save(&elsewhere, LEARNED)
        .code(2)
        .one_line(&["\"Another\"", "name another file"]);
    assert_eq!(read_to_string(&elsewhere).unwrap(), text);
    let nowhere = save(Path::new("/nowhere/site.toml"), LEARNED);
    nowhere
        .code(2)
        .one_line(&["--save-costs=/nowhere/site.toml: No such file"]);
}

fn staged() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../build")).join("bin/fishplate")
}

/// The protocol of messages of 1 MiB in the last object that a benchmark prints.
fn protocol(costs: &str) -> String {
    let words = "bench latency -m 1M:1M -i 8 -x 2 --rounds 1 --explain --json";
    let words: Vec<&str> = words.split(' ').collect();
    let job = command(staged())
        .arguments(&words)
        .env("FISHPLATE_COSTS", costs);
    let done = job.finish();
    done.code(0);
    let last = done.stdout.lines().last().expect("an explanation");
    let explained: Value = serde_json::from_str(last).unwrap();
    let sizes = explained["explained"]["peers"][0]["sizes"]
        .as_array()
        .unwrap();
    let of_size = sizes.iter().find(|row| row["size"] == 1 << 20).unwrap();
    assert_eq!(explained["explained"]["learned"], serde_json::json!([]));
    of_size["protocol"].as_str().unwrap().to_string()
}

#[test]
fn a_run_that_has_learned_writes_what_later_runs_follow() {
    let info = command(staged()).arguments(&["info", "--json"]).finish();
    let info: Value = serde_json::from_str(&info.stdout).unwrap();
    if !info["single_copy"].as_str().unwrap().starts_with("yes") {
        println!("skipped: ranks cannot read each other's memory here");
        return;
    }
    let folder = Folder::new("costs");
    let file = folder.0.join("site.toml");
    let option = format!("--save-costs={}", file.display());
    let words = "bench bibw -m 1M:1M -i 10 -x 2 --rounds 1";
    let words: Vec<&str> = words.split(' ').chain([option.as_str()]).collect();
    command(staged())
        .arguments(&words)
        .env("FISHPLATE_COSTS", "learn")
        .finish()
        .code(0);
    let text = read_to_string(&file).unwrap();
    let table = CostTable::parse(&text).unwrap();
    let learned = [CoreDistance::Near, CoreDistance::Far]
        .into_iter()
        .any(|cores| table.costs(1 << 20, cores, true).is_some());
    assert!(learned, "{text}");
    // Files of which each makes another path the fastest, the second one for two runs.
    let file_of = |fastest: &str| {
        let mut text = String::new();
        for (cores, wait) in [
            ("near", true),
            ("near", false),
            ("far", true),
            ("far", false),
        ] {
            text += &format!("[[messages]]\nfrom = 0\ncores = \"{cores}\"\nothers_wait = {wait}\n");
            for path in ["packets", "read"] {
                let ps = if path == fastest { 10 } else { 1000 };
                text += &format!("{path}_ps_per_byte = {ps}\n");
            }
        }
        let path = folder.file(&format!("{fastest}.toml"), &text, 0o644);
        path.to_string_lossy().into_owned()
    };
    let (packets, read) = (file_of("packets"), file_of("read"));
    assert_eq!(protocol(&packets), "rendezvous by packets");
    assert_eq!(protocol(&read), "read rendezvous");
    assert_eq!(protocol(&read), "read rendezvous");
}

#[test]
fn a_file_that_cannot_be_used_ends_the_start_with_the_reason() {
    let folder = Folder::new("bad-costs");
    let words = "bench latency -m 8:8 -i 1 -x 0 --rounds 1";
    let words: Vec<&str> = words.split(' ').collect();
    let run = |costs: &str| {
        let job = command(staged()).arguments(&words);
        job.env("FISHPLATE_COSTS", costs).finish()
    };
    let missing = run("/nowhere/site.toml");
    missing.errors(&[
        "FISHPLATE_COSTS=/nowhere/site.toml: there is no such file",
        "learn, fixed",
    ]);
    let row = "[[messages]]\nfrom = 0\ncores = \"far\"\nothers_wait = true\nread_ps_per_byte = ";
    let bad = folder.file("bad.toml", &format!("{row}-5\n"), 0o644);
    run(bad.to_str().unwrap()).errors(&["bad.toml: line 5: 'read_ps_per_byte': expected a whole"]);
    let text = format!("processor = \"Another\"\n{row}5\n");
    let elsewhere = folder.file("elsewhere.toml", &text, 0o644);
    let warned = run(elsewhere.to_str().unwrap());
    warned
        .code(0)
        .errors(&["of the processor \"Another\"", "--save-costs=FILE"]);
    let said = warned.stderr.matches("of the processor").count();
    assert_eq!(said, 1, "one rank of a host warns: {}", warned.stderr);
}
