//! Tests of jobs on a terminal: rank 0 reads from it, and its signal keys reach the job.

use crate::common::{Done, FISHPLATE, RANK, command};

/// Two ranks that execute these steps, on a terminal where `keys` are typed once both ranks have
/// shown their `pid`.
fn on_a_terminal(keys: &str, steps: &[&str]) -> Done {
    let player = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal.py");
    let job = [FISHPLATE, "run", "-n", "2", "python3", "-SE", RANK];
    let job = command("python3")
        .arguments(&["-SE", player, keys, "pid "])
        .arguments(&job)
        .arguments(steps)
        .finish();
    job.code(0).silent();
    job
}

fn shows(job: &Done, parts: &[&str]) {
    for part in parts {
        assert!(
            job.stdout.contains(part),
            "{part:?} is missing: {}",
            job.stdout
        );
    }
}

#[test]
fn rank_0_reads_what_is_typed() {
    let job = on_a_terminal(r"hello\n\x04", &["pid", "0:stdin"]);
    shows(&job, &[r"stdin 0 'hello\n'", "EXIT 0"]);
}

#[test]
fn ctrl_c_ends_the_job() {
    let job = on_a_terminal(r"\x03", &["init", "pid", "sleep=1000"]);
    shows(&job, &["fishplate: ended by SIGINT", "EXIT 130"]);
}

#[test]
fn ctrl_backslash_asks_for_a_report_and_ends_nobody() {
    let job = on_a_terminal(
        r"\x1c",
        &["init", "meet", "pid", "1:recv=0 tag=8", "sleep=3", "exit=6"],
    );
    shows(
        &job,
        &[
            "what the ranks wait for:",
            "0: no answer (outside MPI, or busy in a call)",
            "1: MPI_Recv from 0 tag 8",
            "EXIT 6",
        ],
    );
}

#[test]
fn ctrl_z_stops_all_ranks_and_continuing_continues_them() {
    let job = on_a_terminal(r"\x1a", &["pid", "sleep=1", "print=went on\n"]);
    shows(&job, &["STOPPED ['T', 'T']", "EXIT 0"]);
    assert_eq!(job.stdout.matches("went on").count(), 2, "{}", job.stdout);
}
