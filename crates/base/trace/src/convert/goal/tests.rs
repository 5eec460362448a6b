use super::*;
use crate::{Pattern, Recipe};
use proptest::collection::vec;
use proptest::prelude::*;

fn imported(text: &str) -> Result<Trace, String> {
    super::read(text, "trace import".into())
}

fn exported(trace: &Trace) -> Result<String, String> {
    write(trace, &|datatype| (datatype == 0x247).then_some(1))
}

/// The calls of a rank: names and computing.
fn calls(trace: &Trace, rank: usize) -> Vec<(&str, u64)> {
    let calls = trace.calls_of(rank);
    calls
        .map(|(call, nanos)| (trace.signature(call).name.as_str(), nanos))
        .collect()
}

#[test]
fn a_chain_of_operations_is_a_sequence_of_blocking_calls() {
    let text = "num_ranks 2\n// two ranks\nrank 0 {\nl1: calc 100\nl2: send 10b to 1 tag 5 cpu 0 nic 0\n\
        l3: recv 8 b from 1\nl2 requires l1\nl3 requires l2 }\n";
    let why = imported(text).unwrap_err();
    assert!(why.contains("line 8: `}` is one word too many"), "{why}");
    let text = text.replace(
        " }",
        "\n}\n/* the\nother */ rank 1 {\nl1: recv 10b from 0 tag 5\nsend 8b to 0\n}",
    );
    let trace = imported(&text).unwrap();
    let wanted = [("MPI_Send", 100), ("MPI_Recv", 0), ("MPI_Finalize", 0)];
    assert_eq!(calls(&trace, 0), wanted);
    // Without dependencies both begin, and the rank waits for both at its end.
    let wanted = ["MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Finalize"];
    assert_eq!(calls(&trace, 1), wanted.map(|name| (name, 0)));
}

#[test]
fn chains_that_wait_for_one_another_through_other_ranks_do_not_stop() {
    // Rank 0 answers two messages of rank 1, which sends the first of them last.
    let text = "num_ranks 2\nrank 0 {\na: recv 1b from 1 tag 1\nb: send 1b to 1 tag 2\nb requires a\n\
        c: recv 1b from 1 tag 3\nd: send 1b to 1 tag 4\nd requires c\n}\nrank 1 {\nc: send 1b to 0 tag 3\n\
        d: recv 1b from 0 tag 4\na: send 1b to 0 tag 1\na requires d\nb: recv 1b from 0 tag 2\nb requires a\n}\n";
    let trace = imported(text).unwrap();
    let sends: Vec<&Value> = trace
        .calls_of(0)
        .filter(|(call, _)| trace.signature(*call).position("dest").is_some())
        .map(|(call, _)| &trace.calls[call as usize].values[4])
        .collect();
    assert_eq!(sends, [&Value::Number(4), &Value::Number(2)]);
}

use crate::Value;

#[test]
fn what_is_no_sequence_of_calls_is_refused_with_its_line() {
    let ranks = |own: &str| format!("num_ranks 2\nrank 0 {{\n{own}\n}}\nrank 1 {{\n}}\n");
    for (text, why) in [
        (
            ranks("l1: send 8b to 1"),
            "line 3: this operation of rank 0 never ends",
        ),
        (
            ranks("l1: calc 1\nl2: calc 1\nl1 requires l2\nl2 requires l1"),
            "line 3: this operation of rank 0 never ends",
        ),
        (
            ranks("calc 1\ncalc 2 cpu 1"),
            "line 4: cpu 1, and the rank has cpu 0 in line 3",
        ),
        (
            ranks("l1: calc 1\nl1: calc 1"),
            "line 4: the label l1 has come before",
        ),
        (ranks("l1 requires l2"), "line 3: rank 0 has no label l1"),
        (
            ranks("l1: send 8b to 7"),
            "line 3: there is no rank 7: num_ranks is 2",
        ),
        (
            ranks("l1: send 9999999999b to 1"),
            "line 3: 9999999999 bytes; MPI has at most",
        ),
        (
            ranks("l1: send 8b to 0 tag 1\nrecv 4b from 0 tag 1"),
            "line 4: it receives 4 bytes, and the message of line 3 has 8",
        ),
        (
            ranks("l1: put 8b to 1"),
            "line 3: `put`, where `calc`, `send` or `recv`",
        ),
        (
            ranks("l1: calc -1"),
            "line 3: `-1`, where the nanoseconds should be",
        ),
        (
            "rank 0 {\n}\n".into(),
            "line 1: num_ranks is missing before it",
        ),
        ("num_ranks 1\nrank 0 {\n".into(), "rank 0 has no `}`"),
        (String::new(), "it is no GOAL text"),
    ] {
        let said = imported(&text).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}

#[test]
fn a_receive_from_any_source_has_met_one() {
    let text =
        "num_ranks 2\nrank 0 {\nrecv 8b from -1 tag -1\n}\nrank 1 {\nsend 8b to 0 tag 3\n}\n";
    let trace = imported(text).unwrap();
    assert!(trace.has_wildcards());
    let back = exported(&trace).unwrap();
    assert!(back.contains("recv 8b from 1 tag -1"), "{back}");
}

#[test]
fn patterns_come_back_from_goal_as_they_were() {
    use Pattern::*;
    for pattern in [Halo3d, Halo2d, Sweep, Nto1] {
        let recipe = Recipe {
            pattern,
            ranks: 8,
            steps: 3,
            bytes: 64,
            nanos: 50,
            sum_every: 0,
            seed: 1,
        };
        let trace = recipe.make("trace import".into());
        assert_eq!(
            imported(&exported(&trace).unwrap()),
            Ok(trace),
            "{pattern:?}"
        );
    }
}

#[test]
fn calls_that_goal_cannot_say_are_refused_by_name() {
    let recipe = Recipe {
        pattern: Pattern::Ring,
        ranks: 2,
        steps: 1,
        bytes: 8,
        nanos: 0,
        sum_every: 1,
        seed: 1,
    };
    let why = exported(&recipe.make("test".into())).unwrap_err();
    assert!(
        why.starts_with("rank 0, call 1, MPI_Allreduce: GOAL has no collective"),
        "{why}"
    );
}

/// A schedule: for each message its ends, bytes, tag and what each end waits for before.
fn schedules() -> impl Strategy<Value = String> {
    let message = (
        0usize..3,
        0usize..3,
        0u64..5,
        0u64..2,
        any::<[u8; 2]>(),
        0u64..4,
    );
    vec(message, 0..8).prop_map(|messages| {
        let mut ranks: Vec<Vec<String>> = vec![Vec::new(); 3];
        let mut labels = [0u64; 3];
        for (from, to, bytes, tag, before, nanos) in messages {
            let words = [
                (from, format!("send {bytes}b to {to} tag {tag}")),
                (to, format!("recv 9b from {from} tag {tag}")),
                (from, format!("calc {nanos}")),
            ];
            for (at, (rank, words)) in words.into_iter().enumerate() {
                labels[rank] += 1;
                let label = labels[rank];
                ranks[rank].push(format!("l{label}: {words}"));
                // An operation may require an earlier one, or follow its beginning.
                let other = u64::from(before[at % 2]) % label;
                if other > 0 && other != label {
                    let how = if before[0] % 2 == 0 {
                        "requires"
                    } else {
                        "irequires"
                    };
                    ranks[rank].push(format!("l{label} {how} l{other}"));
                }
            }
        }
        let blocks = ranks.iter().enumerate();
        let blocks =
            blocks.map(|(rank, lines)| format!("rank {rank} {{\n{}\n}}\n", lines.join("\n")));
        format!("num_ranks 3\n{}", blocks.collect::<String>())
    })
}

proptest! {
    #[test]
    fn a_schedule_that_becomes_a_trace_keeps_its_messages_and_computing(text in schedules()) {
        let Ok(trace) = imported(&text) else { return Ok(()) };
        let again = exported(&trace).unwrap();
        let operations = |text: &str, word: &str| {
            let lines = text.lines().filter(|line| line.contains(word));
            let mut found: Vec<String> = lines
                .map(|line| line.split_once(": ").map_or(line, |two| two.1).to_string())
                .collect();
            found.sort();
            found
        };
        for word in ["send", "recv"] {
            prop_assert_eq!(operations(&again, word), operations(&text, word));
        }
        let nanos = |text: &str| -> u64 {
            let all = operations(text, "calc");
            all.iter().filter_map(|one| one.strip_prefix("calc ")?.parse::<u64>().ok()).sum()
        };
        prop_assert_eq!(nanos(&again), nanos(&text));
        // What has become a sequence stays as it is.
        let back = imported(&again).unwrap();
        let third = imported(&exported(&back).unwrap()).unwrap();
        prop_assert_eq!(Trace { program: String::new(), ..third }, Trace { program: String::new(), ..back });
    }

    #[test]
    fn any_text_is_read_or_refused(text in "num_ranks [12]\n(rank [01] \\{\n((l[12]: )?(send|recv|calc) [0-9]b?( (to|from|tag|cpu) [0-9-]{1,2}){0,3}\n|l[12] i?requires l[12]\n){0,4}\\}\n){0,3}") {
        if let Ok(trace) = imported(&text) {
            prop_assert_eq!(Trace::read(&trace.write()), Ok(trace));
        }
    }
}
