//! Costs that one job keeps for the next, in the tree that `make stage` makes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cost_cache::{Cache, CostLines, host_name};
use serde_json::Value;

use crate::common::{Done, Folder, command};

fn staged() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../build")).join("bin/fishplate")
}

/// Whether ranks can read each other's memory here: without that there is one path only.
fn has_several_paths() -> bool {
    let info = command(staged()).arguments(&["info", "--json"]).finish();
    let info: Value = serde_json::from_str(&info.stdout).unwrap();
    let does = info["single_copy"].as_str().unwrap().starts_with("yes");
    if !does {
        println!("skipped: ranks cannot read each other's memory here");
    }
    does
}

/// The cache of a user with this home.
fn cache(home: &Path) -> Cache {
    let version = concat!("fishplate ", env!("CARGO_PKG_VERSION"));
    let variable = |name: &str| (name == "HOME").then(|| home.into());
    Cache::of_user(variable, host_name(version)).unwrap()
}

/// A benchmark of long messages by a user with this home and settings.
fn bench(words: &str, home: &str, costs: &str) -> Done {
    let words: Vec<&str> = words.split(' ').collect();
    let job = command(staged()).arguments(&words);
    let job = job.env("HOME", home).env("XDG_CACHE_HOME", "");
    job.env("FISHPLATE_COSTS", costs).finish()
}

/// The protocol for messages of 1 MiB in the explanation of a short run.
fn protocol(home: &Path, costs: &str) -> String {
    let words = "bench latency -m 1M:1M -i 8 -x 2 --rounds 1 --explain --json";
    let done = bench(words, home.to_str().unwrap(), costs);
    done.code(0);
    let last = done.stdout.lines().last().expect("an explanation");
    let explained: Value = serde_json::from_str(last).unwrap();
    let sizes = explained["explained"]["peers"][0]["sizes"].as_array();
    let mut sizes = sizes.unwrap().iter();
    let of_size = sizes.find(|row| row["size"] == 1 << 20).unwrap();
    of_size["protocol"].as_str().unwrap().to_string()
}

const LEARNING: &str = "bench bibw -m 1M:1M -i 20 -x 2 --rounds 1";

#[test]
fn a_job_begins_with_the_costs_that_earlier_ones_have_kept() {
    if !has_several_paths() {
        return;
    }
    let folder = Folder::new("kept-costs");
    let cache = cache(&folder.0);
    for (fastest, expected) in [
        ("packets", "rendezvous by packets"),
        ("read", "read rendezvous"),
    ] {
        let mut lines = CostLines::default();
        for path in ["together", "read", "packets"] {
            // The slow paths are so slow that none is tried.
            let ps = if path == fastest { 100 } else { 1_000_000_000 };
            for cores in ["near", "far"] {
                lines.set(&format!("fetch.{path}.1M.{cores}.alone"), ps);
                lines.set(&format!("fetch.{path}.1M.{cores}.queued"), ps);
            }
        }
        cache.replace(&lines).unwrap();
        assert_eq!(protocol(&folder.0, "keep"), expected);
        cache.replace(&lines).unwrap();
        protocol(&folder.0, "learn");
        assert_eq!(cache.read(), Some(lines), "a job that keeps nothing");
    }
}

#[test]
fn a_job_keeps_what_it_has_measured_unless_it_may_not() {
    if !has_several_paths() {
        return;
    }
    let folder = Folder::new("keeps-costs");
    let (home, cache) = (folder.0.to_str().unwrap(), cache(&folder.0));
    for costs in ["learn", "fixed"] {
        bench(LEARNING, home, costs).code(0);
        assert!(!cache.path().exists(), "{costs}");
    }
    bench(LEARNING, home, "keep").code(0);
    let kept = cache.read().expect("a file of costs");
    assert!(
        kept.iter().any(|(name, _)| name.contains(".1M.")),
        "{kept:?}"
    );
    let mode = fs::metadata(cache.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A damaged file is replaced.
    fs::write(cache.path(), "fishplate costs 1\nhost").unwrap();
    bench(LEARNING, home, "keep").code(0);
    assert!(cache.read().is_some());
}

#[test]
fn a_home_that_cannot_be_used_is_no_error() {
    for home in ["", "relative", "/proc/nowhere"] {
        let done = bench(LEARNING, home, "keep");
        done.code(0);
        assert!(!done.stderr.contains("cache"), "{home}: {}", done.stderr);
    }
    assert!(!Path::new("relative").exists());
}
