//! Tests of tables and texts on terminals of several widths: no line is too long, and no word is
//! lost.

use std::process::Command;

use crate::common::{FISHPLATE, Folder, staged_heat};

const WIDTHS: [usize; 3] = [60, 80, 132];

/// The output on a terminal of `columns` columns, or, for `None`, into a pipe.
fn shown(words: &str, columns: Option<usize>) -> String {
    shown_by(FISHPLATE, words, columns)
}

fn shown_by(program: &str, words: &str, columns: Option<usize>) -> String {
    let player = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/width.py");
    let mut command = match columns {
        None => Command::new(program),
        Some(columns) => {
            let mut command = Command::new("python3");
            command.args([player, &columns.to_string(), program]);
            command
        }
    };
    // The variable COLUMNS of the shell is not the width of the test's terminal.
    let command = command.args(words.split(' ')).env_remove("COLUMNS");
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn assert_fits(words: &str, text: &str, columns: usize) {
    for line in text.lines() {
        // A single word beside its label, such as a path, cannot be broken.
        let text = line.trim().rsplit("  ").next().unwrap_or(line);
        let breaks = text.contains(' ');
        let length = line.chars().count();
        assert!(
            length <= columns || !breaks,
            "{words}, {columns} columns: {line}"
        );
    }
}

#[test]
fn no_line_is_longer_than_the_terminal_and_no_word_is_lost() {
    for words in [
        "fabric list",
        "fabric show qdr",
        "fabric show connectx-3",
        "fabric explain qdr --size 64K",
        "knobs",
        "info --fabric 2xqdr",
        "perf write-lat --fabric sdr,qdr,fdr,edr,ndr --iterations 3",
        "perf send-bw --fabric qdr --transport ud --iterations 20",
    ] {
        let full = shown(words, None);
        for columns in WIDTHS {
            let text = shown(words, Some(columns));
            assert_fits(words, &text, columns);
            let seen: Vec<&str> = text.split_whitespace().collect();
            let lost = full
                .split_whitespace()
                .find(|word| !word.starts_with('─') && !seen.contains(word));
            assert_eq!(lost, None, "{words}, {columns} columns:\n{text}");
        }
    }
}

#[test]
fn this_machine_is_shown_on_any_terminal() {
    for columns in WIDTHS {
        assert_fits("info", &shown("info", Some(columns)), columns);
    }
}

/// Results on modelled machines, with the tree that `make stage` makes.
#[test]
fn results_are_shown_on_any_terminal() {
    let folder = Folder::new("width");
    let (program, heat) = staged_heat(&folder);
    let compare = |options: &str| {
        let heat = heat.display();
        format!("compare{options} --fabrics qdr,2xqdr,edr -n 2 {heat} 32 3")
    };
    let bench = "bench latency --fabric sdr,qdr,fdr,edr,ndr -m 8:64 -i 2 -x 0";
    let info = format!("info {}", heat.display());
    let fits = |words: &str, columns: usize| {
        assert_fits(words, &shown_by(&program, words, Some(columns)), columns);
    };
    // A whole comparison takes many runs: one, where it is hardest to show.
    fits(&compare(""), WIDTHS[0]);
    for words in [&compare(" --quick"), bench, &info, "info sh"] {
        for columns in WIDTHS {
            fits(words, columns);
        }
    }
}

#[test]
fn a_pipe_has_the_full_width() {
    let full = shown("fabric list", None);
    assert!(full.lines().any(|line| line.chars().count() > 132));
}
