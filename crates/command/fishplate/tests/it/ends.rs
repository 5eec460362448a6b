//! Tests of the end of a job: the exit code, one line of error, and no process left behind.

use crate::common::{nothing_left, ranks, run};
use nix::sys::signal::{Signal, kill};

#[test]
fn a_job_without_failure_is_silent() {
    let job = ranks(
        &["-n", "3"],
        &["init", "nonsense", "finalize", "print=done\\n"],
    )
    .finish();
    job.code(0).silent();
    assert_eq!(job.stdout, "done\ndone\ndone\n");
}

#[test]
fn a_program_that_knows_nothing_of_mpi_is_fine() {
    run(&["-n", "2", "true"]).finish().code(0).silent();
    run(&["true"]).finish().code(0).silent();
}

#[test]
fn the_exit_code_is_that_of_the_first_rank_that_failed() {
    let steps = ["init", "meet", "2:exit=3", "recv=2 tag=7"];
    let others = "; 0-1,3: MPI_Recv from 2 tag 7 on MPI_COMM_WORLD";
    ranks(&["-n", "4"], &steps).finish().code(3).one_line(&[
        "rank 2 (pid ",
        ") exited with code 3",
        others,
    ]);
}

#[test]
fn a_failure_after_finalize_lets_the_others_go_on() {
    let steps = [
        "init",
        "finalize",
        "1:exit=5",
        "0:sleep=1",
        "0:print=still here\\n",
    ];
    let job = ranks(&["-n", "2"], &steps).finish();
    job.code(5).one_line(&["rank 1 ", "exited with code 5"]);
    assert_eq!(job.stdout, "still here\n");
}

#[test]
fn a_signal_is_named() {
    let steps = ["init", "meet", "0:kill=SIGSEGV", "recv=any tag=any"];
    let parts = [
        "rank 0 (pid ",
        "was killed by SIGSEGV (access to memory",
        "; 1: MPI_Recv from any tag any on",
    ];
    ranks(&["-n", "2"], &steps)
        .finish()
        .code(139)
        .one_line(&parts);
}

#[test]
fn a_rank_killed_from_outside_ends_the_job() {
    let mut job = ranks(&["-n", "3"], &["init", "meet", "pid", "recv=1 tag=7"]).start();
    let pids = job.pids(3);
    kill(pids[1], Signal::SIGKILL).unwrap();
    job.finish()
        .code(137)
        .one_line(&["rank 1 ", "SIGKILL", "; 0,2: MPI_Recv from 1 tag 7"]);
}

#[test]
fn leaving_without_finalize_is_a_failure() {
    let job = ranks(&["-n", "2"], &["init", "meet", "1:exit=0", "sleep=1000"]).finish();
    job.code(1).one_line(&[
        "rank 1 ",
        "left without MPI_Finalize",
        "; 0: no answer (outside MPI, or busy in a call)",
    ]);
}

#[test]
fn a_rank_that_never_joins_the_others_is_a_failure() {
    // The rank ends before the others have shown that they are MPI programs, or after.
    for order in [["0:sleep=0.5", "0:init"], ["0:init", "1:sleep=0.5"]] {
        let steps = [order[0], order[1], "1:exit=0", "recv=1 tag=0"];
        ranks(&["-n", "2"], &steps)
            .finish()
            .code(1)
            .one_line(&["rank 1 ", "left without MPI_Init"]);
    }
}

#[test]
fn abort_gives_its_code_and_message() {
    let job = ranks(
        &["-n", "3"],
        &["init", "meet", "1:abort=259 bad input: x", "recv=1 tag=1"],
    )
    .finish();
    job.code(3).one_line(&[
        "rank 1 ",
        "called MPI_Abort with code 259: bad input: x; 0,2: MPI_Recv",
    ]);
    // The lower eight bits of 256 are zero, but the exit code must not be 0.
    ranks(&["-n", "1"], &["init", "abort=256"])
        .finish()
        .code(1)
        .one_line(&["with code 256"]);
    ranks(&["-n", "1"], &["init", "abort=0"])
        .finish()
        .code(0)
        .one_line(&["with code 0"]);
}

#[test]
fn the_reason_that_a_rank_gave_is_in_the_line() {
    let steps = [
        "init",
        "1:fault=15 MPI_Recv: message truncated",
        "recv=1 tag=1",
    ];
    let parts = [
        "rank 1 ",
        "failed: MPI_Recv: message truncated (exit code 15)",
        "; 0: MPI_Recv from 1 tag 1 on",
    ];
    ranks(&["-n", "2"], &steps)
        .finish()
        .code(15)
        .one_line(&parts);
}

#[test]
fn a_rank_that_hangs_after_a_fatal_error_is_ended_with_its_code() {
    let steps = ["init", "meet", "ignore=SIGTERM", "1:fault=15 MPI_Recv: bad"];
    let steps = [&steps[..], &["sleep=1000"]].concat();
    ranks(&["-n", "2"], &steps)
        .finish()
        .code(15)
        .one_line(&["rank 1 ", "failed: MPI_Recv: bad (exit code 15)"]);
}

#[test]
fn only_the_first_failure_is_told() {
    let job = ranks(&["-n", "4"], &["1:exit=9", "ignore=SIGTERM", "sleep=1000"]).finish();
    job.code(9).one_line(&["rank 1 "]);
}

#[test]
fn ranks_that_do_not_want_to_end_are_ended() {
    let steps = [
        "ignore=SIGTERM",
        "ignore=SIGINT",
        "init",
        "pid",
        "child",
        "meet",
        "0:exit=1",
        "sleep=1000",
    ];
    ranks(&["-n", "3"], &steps)
        .finish()
        .code(1)
        .one_line(&["rank 0 ", "; 1-2: "]);
}

#[test]
fn what_ranks_leave_running_ends_with_them() {
    ranks(&["-n", "2"], &["daemon", "child"])
        .finish()
        .code(0)
        .silent();
}

#[test]
fn what_a_rank_leaves_running_does_not_hide_its_failure() {
    ranks(&["-n", "1"], &["daemon", "exit=3"])
        .finish()
        .code(3)
        .one_line(&["rank 0 ", "exited with code 3"]);
}

#[test]
fn a_launcher_that_is_killed_takes_its_ranks_along() {
    let mut job = ranks(
        &["-n", "3"],
        &["0:init", "pid", "0:recv=1 tag=1", "sleep=1000"],
    )
    .start();
    job.pids(3);
    job.signal(Signal::SIGKILL);
    nothing_left(job);
}

#[test]
fn a_program_below_a_wrapper_ends_with_the_launcher() {
    let script = format!(
        "python3 -SE {} init pid 'recv=1 tag=1'; sleep 1000",
        crate::common::RANK
    );
    let mut job = run(&["-n", "1", "sh", "-c", &script]).start();
    job.pids(1);
    // The kernel kills the shell; the program below it detects the launcher's death by its socket.
    job.signal(Signal::SIGKILL);
    nothing_left(job);
}

#[test]
fn a_program_that_dies_below_a_wrapper_is_noticed() {
    let script = format!(
        "exec 2>/dev/null; python3 -SE {} init kill=SIGKILL; sleep 1000",
        crate::common::RANK
    );
    let job = run(&["-n", "2", "sh", "-c", &script]).finish();
    job.code(1).one_line(&["rank ", "lost its program (pid "]);
}

#[test]
fn two_programs_in_one_rank_are_refused() {
    let rank = format!("python3 -SE {} init finalize", crate::common::RANK);
    let job = run(&[
        "-n",
        "1",
        "sh",
        "-c",
        &format!("{rank}; {rank}; sleep 1000"),
    ])
    .finish();
    job.code(1)
        .one_line(&["rank 0 ", "started a second MPI program"]);
}

#[test]
fn the_timeout_ends_the_job() {
    let job = ranks(
        &["-n", "2", "--timeout", "2.5"],
        &["init", "recv=any tag=3"],
    )
    .finish();
    job.code(124)
        .one_line(&["longer than 2.5 s (--timeout)", "0-1: "]);
}

#[test]
fn sixty_four_ranks_end_as_well() {
    run(&["-n", "64", "sh", "-c", "exit 0"])
        .finish()
        .code(0)
        .silent();
    run(&[
        "-n",
        "64",
        "sh",
        "-c",
        "[ $FISHPLATE_RANK = 40 ] && exit 4; sleep 1000",
    ])
    .finish()
    .code(4)
    .one_line(&["rank 40 "]);
}
