//! Tests of the prediction of another MPI library by a job on a modelled machine.

use std::process::{Command, Output};

/// The environment of a rank, as its program sees it.
fn environment(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fishplate"))
        .args(["run", "--fabric"])
        .args(words)
        .args(match words.contains(&"-n") {
            true => &[][..],
            false => &["-n", "1"],
        })
        .args(["sh", "-c", "env | grep ^FISHPLATE_ | sort"])
        .env_remove("FISHPLATE_EAGER_LIMIT")
        .output()
        .unwrap()
}

fn settings(words: &[&str]) -> String {
    let output = environment(words);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_named_library_is_predicted_by_settings_and_only_on_request() {
    let eager = "FISHPLATE_EAGER_LIMIT=";
    assert!(!settings(&["blog-qdr"]).contains(eager));
    assert!(!settings(&["qdr", "--predict", "named"]).contains(eager));
    let named = settings(&["blog-qdr", "--predict", "named"]);
    for setting in [
        "FISHPLATE_EAGER_LIMIT=12288\n",
        "FISHPLATE_RENDEZVOUS=write\n",
        "FISHPLATE_RAIL_QPS=shared\n",
    ] {
        assert!(named.contains(setting), "{setting} in\n{named}");
    }
    let output = environment(&["c6320-edr", "--predict", "named"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("predicting the MPI library that c6320-edr names: eager-limit=32768"),
        "{said}"
    );
}

#[test]
fn a_setting_of_the_user_wins_by_any_of_its_names() {
    let words = [
        "blog-qdr",
        "--predict",
        "named",
        "-x",
        "FISHPLATE_EAGER_LIMIT=4K",
    ];
    let own = settings(&words);
    assert!(own.contains("FISHPLATE_EAGER_LIMIT=4K\n"), "{own}");
    assert!(!own.contains("12288"), "{own}");
    let words = [
        "blog-qdr",
        "--predict",
        "named",
        "-x",
        "MV2_IBA_EAGER_THRESHOLD=4K",
    ];
    assert!(!settings(&words).contains("FISHPLATE_EAGER_LIMIT"));
}

/// A machine that names Open MPI 1.6, as a file in a folder that lives as long as it.
fn with_open_mpi() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = "[system.mine]\nfrom = \"qdr\"\nsoftware = \"openib\"\nabout = \"Open MPI\"\n\
                source = \"assumed: a test\"\n";
    std::fs::write(&file, text).unwrap();
    let word = file.to_str().unwrap().to_owned();
    (folder, word)
}

#[test]
fn a_named_release_chooses_algorithms_and_a_setting_of_the_user_wins() {
    let (_folder, machine) = with_open_mpi();
    let named = environment(&[&machine, "--predict", "named", "-n", "16"]);
    let said = String::from_utf8(named.stderr).unwrap();
    assert!(said.contains(" collectives=openmpi-1.3\n"), "{said}");
    let variable = String::from_utf8(named.stdout).unwrap();
    let ring = "allreduce@10000/2=ring";
    assert!(variable.contains(ring), "{variable}");
    assert!(!settings(&[&machine]).contains("FISHPLATE_COLLECTIVES"));
    let wish = "FISHPLATE_COLLECTIVES=allreduce=rabenseifner";
    let own = settings(&[&machine, "--predict", "named", "-x", wish]);
    assert!(own.contains(&format!("{wish}\n")), "{own}");
    assert!(!own.contains(ring), "{own}");
}

#[test]
fn a_machine_says_which_algorithms_its_library_chooses_and_what_is_nearest() {
    let (_folder, machine) = with_open_mpi();
    let show = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fishplate"));
        let output = command
            .args(["fabric", "show"])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for word in [machine.as_str(), "software.openib"] {
        let shown = show(&[word]);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "library openmpi-1.6",
            "Algorithms of collectives: table openmpi-1.3 (Open MPI before 4.1), for barrier, bcast",
            "Published: source of Open MPI 1.6.5",
            "allreduce segmented_ring ring pieces of 1 MiB",
            "reduce linear own choice the root receives all vectors",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }
    assert!(!show(&["qdr"]).contains("Algorithms of collectives"));
    let object: serde_json::Value = serde_json::from_str(&show(&["openib", "--json"])).unwrap();
    assert_eq!(object["algorithms"]["table"], "openmpi-1.3");
}

#[test]
fn a_release_without_a_table_is_refused_with_the_valid_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = "[software.mine]\nfrom = \"ucx\"\nlibrary = \"mvapich2-2.3\"\nabout = \"mine\"\n\
                source = \"assumed: a test\"\n";
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fishplate"));
    let output = command
        .args(["fabric", "check"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("mine.toml:3: software.mine.library: \"mvapich2-2.3\" is not valid; valid is \"none\", or a library with its version"),
        "{said}"
    );
}

#[test]
fn replays_on_a_machine_that_names_open_mpi_have_its_algorithms() {
    let (folder, machine) = with_open_mpi();
    let folder = folder.path();
    let fishplate = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fishplate"));
        let output = command.args(words).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let virtual_seconds = |trace: &str, words: &[&str]| {
        let run = ["run", "--fabric", &machine, "--summary", "json=run.json"];
        fishplate(&[&run[..], words, &[trace]].concat());
        let summary = std::fs::read_to_string(folder.join("run.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        summary["virtual_s"].as_f64().unwrap()
    };
    for (size, theirs, other) in [
        ("8192", "recursive-doubling", "ring"),
        ("65536", "ring", "rabenseifner"),
    ] {
        let make = ["trace", "make", "allreduce", "-n", "8", "--steps", "4"];
        fishplate(&[&make[..], &["--size", size, "-o", "sums.trace"]].concat());
        let named = ["--predict", "named"];
        let forced = |algorithm: &str| {
            let wish = format!("FISHPLATE_COLLECTIVES=allreduce={algorithm}");
            virtual_seconds("sums.trace", &[&named[..], &["-x", &wish]].concat())
        };
        let taken = virtual_seconds("sums.trace", &named);
        assert_eq!(taken, forced(theirs), "{size}");
        assert_ne!(taken, forced(other), "{size}");
    }
}
