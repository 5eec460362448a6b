//! Tests of the prediction of another MPI library by a job on a modelled machine.

use std::process::{Command, Output};

/// The environment of a rank, as its program sees it.
fn environment(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fishplate"))
        .args(["run", "-n", "1", "--fabric"])
        .args(words)
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
