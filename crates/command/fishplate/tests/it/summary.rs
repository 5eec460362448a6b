//! Tests of `fishplate run --summary` and `--profile` with programs that do not use MPI. Programs
//! that do are tested in `tests/robust`.

use crate::common::{Folder, output, run};

#[test]
fn a_program_without_mpi_has_no_summary_unless_one_is_wanted() {
    let fabric = ["--fabric", "qdr"];
    run(&[&fabric[..], &["true"]].concat())
        .finish()
        .code(0)
        .silent();
    let wanted = [&fabric[..], &["--summary", "text", "true"]].concat();
    run(&wanted)
        .finish()
        .code(0)
        .one_line(&["1 rank on qdr", "no rank has called MPI_Init"]);
    run(&["-n", "3", "--profile", "true"])
        .finish()
        .code(0)
        .one_line(&["3 ranks", "no rank has called MPI_Init"]);
    run(&["-n", "3", "true"]).finish().code(0).silent();
}

#[test]
fn a_summary_is_written_to_a_file() {
    let folder = Folder::new("summary");
    let file = folder.0.join("summary.json");
    for option in ["--summary=json=", "--profile="] {
        let option = format!("{option}{}", file.display());
        run(&["-n", "2", &option, "echo", "a b"])
            .finish()
            .code(0)
            .silent();
        let text = std::fs::read_to_string(&file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["program"], "echo a b");
        assert_eq!(
            (&json["ranks"], &json["ranks_per_host"]),
            (&2.into(), &2.into())
        );
        assert!(json["fabric"].is_null() && json["virtual_s"].is_null());
        assert!(json["wall_s"].as_f64().unwrap() > 0.0);
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_summary_that_cannot_be_written_is_an_error() {
    run(&["--summary", "json=/nowhere/file", "true"])
        .finish()
        .code(2)
        .one_line(&["--summary json /nowhere/file: No such file"]);
    run(&["--summary", "json=/dev/full", "true"])
        .finish()
        .code(1)
        .one_line(&["--summary json /dev/full: No space left on device"]);
    run(&["--profile=/dev/full", "sh", "-c", "exit 3"])
        .finish()
        .code(3)
        .errors(&["--profile /dev/full: No space left on device"]);
}

#[test]
fn forms_that_do_not_exist_are_refused() {
    let refused = |words: &[&str]| {
        let done = output(words);
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8(done.stderr).unwrap()
    };
    let text = refused(&["run", "--summary", "yaml", "true"]);
    assert!(
        text.contains("valid are text, matrix, json, json=FILE and none"),
        "{text}"
    );
    let text = refused(&["run", "--summary", "json=", "true"]);
    assert!(text.contains("json= needs a file"), "{text}");
    let text = refused(&["run", "--summary", "text", "--profile", "true"]);
    assert!(text.contains("--profile"), "{text}");
}
