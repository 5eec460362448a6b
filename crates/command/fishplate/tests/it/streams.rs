//! Tests of input and output of ranks.

use crate::common::{ranks, run};

#[test]
fn input_goes_to_rank_0() {
    let job = ranks(&["-n", "3", "--tag-output"], &["stdin"]).finish_with_input("one\ntwo\n");
    job.code(0).silent();
    let mut lines: Vec<&str> = job.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "[0] stdin 0 'one\\ntwo\\n'",
            "[1] stdin 1 ''",
            "[2] stdin 2 ''"
        ]
    );
}

#[test]
fn output_is_tagged_line_by_line() {
    let steps = [
        "0:print=a",
        "0:print=b\\nc",
        "1:print=\\n\\nx\\n",
        "error=oops",
    ];
    let job = ranks(&["-n", "2", "--tag-output"], &steps).finish();
    job.code(0);
    let of = |rank: &str, text: &str| {
        let lines = text.lines().filter(|line| line.starts_with(rank));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(of("[0]", &job.stdout), ["[0] ab", "[0] c"]);
    assert_eq!(of("[1]", &job.stdout), ["[1] ", "[1] ", "[1] x"]);
    assert_eq!(job.stdout.lines().count(), 5);
    let mut errors = of("[", &job.stderr);
    errors.sort_unstable();
    assert_eq!(errors, ["[0] oops", "[1] oops"]);
}

#[test]
fn much_tagged_output_arrives_complete_and_unmixed() {
    let job = ranks(
        &["-n", "3", "--tag-output"],
        &["0:flood=a", "1:flood=b", "2:flood=c"],
    )
    .finish();
    job.code(0).silent();
    let expected = ["a", "b", "c"].map(|letter| letter.repeat(100));
    let mut counts = [0; 3];
    for line in job.stdout.lines() {
        let rank: usize = line[1..2].parse().unwrap();
        assert_eq!(line, format!("[{rank}] {}", expected[rank]));
        counts[rank] += 1;
    }
    assert_eq!(counts, [20000; 3]);
}

#[test]
fn output_that_nobody_reads_does_not_hold_up_an_interrupt() {
    use nix::sys::signal::Signal;
    let mut job = ranks(
        &["-n", "2", "--tag-output"],
        &["pid", "flood=x", "sleep=1000"],
    )
    .start();
    job.pids(2);
    std::thread::sleep(std::time::Duration::from_millis(300));
    job.signal(Signal::SIGINT);
    // The output of the job is not read until the launcher has ended.
    crate::common::eventually("the end of the launcher", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", job.child.id())).unwrap();
        stat.contains(") Z ")
    });
    job.finish().code(130);
}

#[test]
fn a_reader_that_leaves_ends_the_writers() {
    let script = format!(
        "{} run -n 2 --tag-output sh -c 'yes; kill -PIPE $$' | head -n 1",
        crate::common::FISHPLATE
    );
    let job = crate::common::command("bash")
        .arguments(&["-o", "pipefail", "-c", &script])
        .finish();
    job.code(141).one_line(&["SIGPIPE"]);
}

#[test]
fn one_rank_writes_straight_to_the_launchers_streams_and_several_through_pipes() {
    let places = |ranks: &str| {
        let script =
            "echo $(readlink /proc/$$/fd/1 /proc/$$/fd/2 /proc/$PPID/fd/1 /proc/$PPID/fd/2)";
        let job = run(&["-n", ranks, "sh", "-c", script]).finish();
        job.code(0).silent();
        let lines = job.stdout.lines().map(|line| {
            let places: Vec<&str> = line.split(' ').collect();
            <[String; 4]>::try_from(
                places
                    .iter()
                    .map(|place| place.to_string())
                    .collect::<Vec<_>>(),
            )
            .unwrap()
        });
        lines.collect::<Vec<_>>()
    };
    let [[out, err, launcher_out, launcher_err]] = &places("1")[..] else {
        panic!("one rank has one line");
    };
    assert_eq!((out, err), (launcher_out, launcher_err));
    let ranks = places("2");
    let mut own: Vec<&String> = ranks.iter().flat_map(|rank| &rank[..2]).collect();
    own.extend(&ranks[0][2..]);
    let all = own.len();
    own.sort_unstable();
    own.dedup();
    assert_eq!((own.len(), all), (6, 6), "{own:?}");
}
