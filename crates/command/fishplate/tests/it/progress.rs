//! Tests of the text of `compare` before and after its first run, and of the numbers of runs and
//! replays that it announces, with the tree that `make stage` makes.

use crate::common::{Folder, command, staged_heat};

/// The number before `word` in a line.
fn number_before(line: &str, word: &str) -> usize {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|known| *known == word);
    let number = at.and_then(|at| words[at - 1].parse().ok());
    number.unwrap_or_else(|| panic!("no number before {word}: {line}"))
}

#[test]
fn a_comparison_announces_its_runs() {
    let folder = Folder::new("progress");
    let (program, heat) = staged_heat(&folder);
    let log = folder.0.join("log");
    let script = format!(
        "#!/bin/sh\n[ $FISHPLATE_RANK != 0 ] || echo >> {}\nexec {} 32 3\n",
        log.display(),
        heat.display()
    );
    let counted = folder.file("counted", &script, 0o755);
    let compare = |options: &[&str]| {
        let _ = std::fs::remove_file(&log);
        let job = command(&program).arguments(&["compare"]).arguments(options);
        let job = job.arguments(&[counted.to_str().unwrap()]).finish();
        job.code(0);
        let runs = std::fs::read_to_string(&log).unwrap_or_default();
        let runs = runs.lines().count();
        // Other lines are output of the program.
        let said = job
            .stderr
            .lines()
            .filter(|line| line.starts_with("fishplate: "));
        let said: Vec<String> = said.map(str::to_owned).collect();
        (runs, said)
    };
    let record = folder.0.join("record").display().to_string();
    let options = ["--fabrics", "qdr,ndr", "-n", "2,4"];
    // A fixed number of recordings: otherwise there are more if recordings differ by chance.
    let three = ["--recordings", "3", "--record", &record];
    let (runs, said) = compare(&[&options[..], &three].concat());
    // Four replays, six without a recording on the first machine, three with a free start (two
    // machines, another number of ranks on the first), and eight ideal ones.
    let replays = 4 + 6 + 3 + 8;
    let replayed = format!("and what it recorded is replayed {replays} times or more");
    assert!(
        said[0].contains(&replayed) && said[0].contains("a folder of its own"),
        "{said:?}"
    );
    assert_eq!((number_before(&said[0], "times,"), runs), (6, 6));
    // A line about disturbed recordings may come before: that depends on the computer.
    let mut lines = said.iter();
    assert!(
        lines.any(|line| line.contains("this takes about")),
        "{said:?}"
    );
    let dry = compare(&[&options[..], &["--dry-run"]].concat());
    assert_eq!((dry.0, dry.1.len()), (0, 0));

    // Recordings stand in place of the program, which does not run.
    let _ = std::fs::remove_file(&log);
    let job = command(&program).arguments(&["compare", "--fabrics", "qdr", &record]);
    let job = job.finish();
    job.code(0);
    assert!(job.stderr.contains("is replayed "), "{}", job.stderr);
    assert!(!log.exists());
}
