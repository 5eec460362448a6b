//! The job's key-value store, as ranks use it through the launcher.

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
        (long.as_str(), "3073 bytes, and 3072 are possible"),
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
    // Rank 0 asks for more than its socket holds before it takes the first answer.
    let put = format!("1:put=big {}", "v".repeat(3000));
    let steps = [
        &put,
        "meet",
        "0:ask=2000 big",
        "0:put=small 1",
        "1:get=small",
        "meet",
        "0:answers=2000",
    ];
    let job = ranks(&["-n", "2"], &steps).finish();
    job.code(0).silent();
    assert_eq!(job.stdout, "got 1 1\nanswers 2000\n");
}
