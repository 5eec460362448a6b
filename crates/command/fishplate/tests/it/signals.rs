//! Tests of signals to the launcher, and of their effect on the ranks.

use crate::common::ranks;
use nix::sys::signal::Signal;

#[test]
fn two_interrupts_at_once_end_the_job_with_the_code_of_one() {
    let mut job = ranks(
        &["-n", "2"],
        &["init", "ignore=SIGINT", "pid", "sleep=1000"],
    )
    .start();
    job.pids(2);
    job.signal(Signal::SIGTERM);
    job.signal(Signal::SIGINT);
    let done = job.finish();
    let code = done.status.code().unwrap_or_default();
    assert!([130, 143].contains(&code), "{code}");
    done.code(code).one_line(&["ended by SIG"]);
}

#[test]
fn an_interrupt_ends_the_job_and_says_what_it_was_at() {
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let mut job = ranks(&["-n", "2"], &["init", "meet", "pid", "recv=any tag=4"]).start();
        job.pids(2);
        job.signal(signal);
        let line = [
            signal.as_str(),
            "; 0-1: MPI_Recv from any tag 4 on MPI_COMM_WORLD",
        ];
        job.finish().code(code).one_line(&line);
    }
}

#[test]
fn ranks_may_clean_up_on_an_interrupt() {
    let mut job = ranks(&["-n", "2"], &["catch=SIGINT", "pid", "sleep=1000"]).start();
    job.pids(2);
    job.signal(Signal::SIGINT);
    let done = job.finish();
    done.code(130).one_line(&["SIGINT"]);
    assert_eq!(
        done.stdout.matches("caught SIGINT").count(),
        2,
        "{}",
        done.stdout
    );
}

#[test]
fn ranks_that_ignore_an_interrupt_are_killed() {
    let steps = [
        "ignore=SIGINT",
        "ignore=SIGTERM",
        "init",
        "pid",
        "sleep=1000",
    ];
    let mut job = ranks(&["-n", "2"], &steps).start();
    job.pids(2);
    job.signal(Signal::SIGINT);
    job.finish().code(130).one_line(&[
        "SIGINT",
        "; 0-1: no answer (outside MPI, or busy in a call)",
    ]);
}

#[test]
fn an_interrupt_in_the_middle_of_starting_leaves_nothing() {
    let job = ranks(&["-n", "16"], &["sleep=1000"]).start();
    std::thread::sleep(std::time::Duration::from_millis(20));
    job.signal(Signal::SIGTERM);
    // Until the launcher blocks signals, this one kills it; after that, the launcher ends the job.
    let done = job.finish();
    if done.status.code().is_some() {
        done.code(143);
    }
}

#[test]
fn user_signals_are_passed_on() {
    let mut job = ranks(
        &["-n", "2"],
        &["catch=SIGUSR1", "catch=SIGUSR2", "pid", "sleep=1000"],
    )
    .start();
    job.pids(2);
    for signal in [Signal::SIGUSR1, Signal::SIGUSR2] {
        job.signal(signal);
        job.read_until(&format!("caught {signal}"));
        job.read_until(&format!("caught {signal}"));
    }
    job.signal(Signal::SIGTERM);
    job.finish().code(143);
}

#[test]
fn quit_prints_a_report_and_the_job_goes_on() {
    let status = "status=op=MPI_Waitall progress=1|waits from=3 tag=7 comm=MPI_COMM_WORLD|\
                  waits to=1 tag=2 comm=halo%20exchange|unexpected from=2 tag=9 comm=MPI_COMM_WORLD bytes=64";
    let status = format!("0:{status}");
    let mut job = ranks(
        &["-n", "4"],
        &[
            "init",
            "meet",
            "pid",
            &status,
            "1:recv=0 tag=5",
            "sleep=1000",
        ],
    )
    .start();
    job.pids(4);
    job.signal(Signal::SIGQUIT);
    // The wait is long enough for a complete report: ranks 2 and 3 never answer.
    std::thread::sleep(std::time::Duration::from_secs(2));
    job.signal(Signal::SIGTERM);
    job.finish().code(143).errors(&[
        "fishplate: what the ranks wait for:\n",
        "  0: MPI_Waitall: from 3 tag 7 on MPI_COMM_WORLD, to 1 tag 2 on halo exchange\n",
        "  1: MPI_Recv from 0 tag 5 on MPI_COMM_WORLD\n",
        "  2-3: no answer (outside MPI, or busy in a call)\n",
        "  0: unexpected: 64 bytes from 2 tag 9 on MPI_COMM_WORLD\n",
        "ended by SIGTERM",
    ]);
}

#[test]
fn a_job_that_is_stuck_is_told_once() {
    let job = ranks(
        &["-n", "2", "--report-stuck", "0.4", "--timeout", "3"],
        &["init", "recv=1 tag=5"],
    )
    .finish();
    job.code(124).errors(&[
        "no rank made progress for ",
        "  0-1: MPI_Recv from 1 tag 5 on",
        "(--timeout)",
    ]);
    assert_eq!(
        job.stderr.matches("no rank made progress").count(),
        1,
        "{}",
        job.stderr
    );
}

#[test]
fn the_setting_does_the_same_as_the_option() {
    let job = ranks(&["-n", "1", "--timeout", "3"], &["init", "recv=1 tag=5"])
        .env("FISHPLATE_REPORT_STUCK", "0.3");
    job.finish()
        .code(124)
        .errors(&["no rank made progress for "]);
}

#[test]
fn a_job_that_moves_is_not_stuck() {
    let steps = ["init", "0:moving", "1:recv=0 tag=0"];
    let job = ranks(
        &["-n", "2", "--report-stuck", "1", "--timeout", "3"],
        &steps,
    )
    .finish();
    job.code(124).one_line(&["(--timeout)"]);
}

#[test]
fn a_job_outside_mpi_is_not_stuck() {
    let job = ranks(
        &["-n", "2", "--report-stuck", "0.3"],
        &["init", "sleep=2", "finalize"],
    )
    .finish();
    job.code(0).silent();
}

#[test]
fn ranks_begin_with_no_signal_held_back() {
    let job = crate::common::run(&["-n", "2", "grep", "SigBlk", "/proc/self/status"]).finish();
    job.code(0);
    let masks: Vec<&str> = job
        .stdout
        .lines()
        .map(|line| line.trim_start_matches("SigBlk:").trim())
        .collect();
    let mine = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let mine = mine
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:"))
        .unwrap()
        .trim();
    assert_eq!(masks, [mine, mine]);
}
