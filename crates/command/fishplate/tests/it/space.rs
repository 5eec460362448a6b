//! Tests of the job's key-value store, as ranks use it through the launcher.

use crate::common::ranks;

#[test]
fn a_value_reaches_whoever_asked_before_it_was_put_and_after() {
    let steps = [
        "1:get=late",
        "0:sleep=0.2",
        "0:put=late one",
        "meet",
        "2:get=late",
    ];
    let job = ranks(&["-n", "3"], &steps).finish();
    job.code(0).silent();
    assert_eq!(job.stdout, "got 1 one\ngot 2 one\n");
}

#[test]
fn a_value_stays_as_it_was_put() {
    let steps = [
        "0:put=key one",
        "0:put=key one",
        // This answer arrives after the value was put.
        "0:get=key",
        "meet",
        "1:put=key two",
        "sleep=1000",
    ];
    ranks(&["-n", "2"], &steps).finish().code(1).one_line(&[
        "rank 1 ",
        "the key key has another value already, put by rank 0",
    ]);
}

#[test]
fn what_cannot_be_put_is_refused() {
    let long = format!("put=key {}", "x".repeat(3073));
    for (step, expected) in [
        (
            long.as_str(),
            "3073 bytes, but a value of the job's key-value store has at most 3072",
        ),
        ("put=key two words", "without spaces"),
    ] {
        ranks(&["-n", "1"], &[step, "sleep=1000"])
            .finish()
            .code(1)
            .one_line(&["rank 0 ", expected]);
    }
}

#[test]
fn a_rank_that_does_not_listen_holds_up_nobody() {
    // Rank 0 requests more than its socket can hold, and less than the launcher queues for it,
    // before it reads the first answer.
    let put = format!("1:put=big {}", "v".repeat(3000));
    let steps = [
        &put,
        "meet",
        "0:ask=300 big",
        "0:put=small 1",
        "1:get=small",
        "meet",
        "0:answers=300",
    ];
    let job = ranks(&["-n", "2"], &steps).finish();
    job.code(0).silent();
    assert_eq!(job.stdout, "got 1 1\nanswers 300\n");
}

#[test]
fn what_was_put_before_a_fence_is_known_after_it() {
    let one_host = &["-n", "4"][..];
    // The command must name the host; this one runs the agent here.
    let three_hosts = &[
        "-n",
        "4",
        "--hosts",
        "a,b,c:2",
        "--launch-with",
        "env HOST={host}",
    ];
    for options in [one_host, three_hosts] {
        let steps = [
            "3:sleep=0.1",
            "3:put=first one",
            "fence",
            "0:get=first",
            "0:put=second two",
            "fence",
            "2:get=second",
        ];
        let job = ranks(options, &steps).finish();
        job.code(0).silent();
        // The output of different hosts arrives in any order.
        let mut lines: Vec<&str> = job.stdout.lines().collect();
        lines.sort();
        assert_eq!(lines, ["got 0 one", "got 2 two"]);
    }
}

#[test]
fn a_rank_that_leaves_before_a_fence_ends_the_job() {
    for steps in [
        &["1:exit=0", "fence"][..],
        &["1:sleep=0.1", "1:exit=0", "fence"],
    ] {
        ranks(&["-n", "3"], steps)
            .finish()
            .code(1)
            .one_line(&["rank 1 ", "left without entering the fence"]);
    }
}

#[test]
fn a_rank_that_enters_a_fence_twice_ends_the_job() {
    let steps = ["0:enter", "0:enter", "sleep=1000"];
    ranks(&["-n", "2"], &steps)
        .finish()
        .code(1)
        .one_line(&["rank 0 ", "only after its previous fence is complete"]);
}
