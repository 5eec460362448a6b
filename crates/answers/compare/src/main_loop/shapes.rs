//! Tests: sequences of calls as real programs make them, and the loops found in them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use std::collections::HashMap;

/// The calls of ranks, written as words: the name of a call without `MPI_`, optionally with `/` and
/// a size class, and `@` and a peer. `on` and `off` are `MPI_Pcontrol`, optionally with `:` and a
/// region.
pub(super) fn program(ranks: &[&str]) -> Calls {
    let mut calls = Calls::default();
    let mut numbers = HashMap::new();
    for words in ranks {
        let own = words.split_whitespace().map(|word| {
            let symbol = *numbers
                .entry(word.to_owned())
                .or_insert(calls.symbols.len());
            if symbol == calls.symbols.len() {
                calls.symbols.push(symbol_of(word));
            }
            let symbol = symbol as u32;
            Call {
                symbol,
                nanos: 1000,
            }
        });
        let own = own.collect();
        calls.ranks.push(own);
    }
    calls
}

fn symbol_of(word: &str) -> Symbol {
    let (word, peer) = word
        .split_once('@')
        .map_or((word, None), |(word, peer)| (word, Some(peer)));
    let (word, size) = word
        .split_once('/')
        .map_or((word, None), |(word, size)| (word, Some(size)));
    let (word, region) = word
        .split_once(':')
        .map_or((word, None), |(word, name)| (word, Some(name)));
    let level = match word {
        "on" => Some(1),
        "off" => Some(if region.is_some() { -1 } else { 0 }),
        _ => None,
    };
    let mut letters = word.chars();
    let first = letters.next().unwrap().to_ascii_uppercase();
    Symbol {
        name: match level {
            Some(_) => "MPI_Pcontrol".into(),
            None => format!("MPI_{first}{}", letters.as_str()),
        },
        communicator: Some(0),
        size: size.map(|size| size.parse().unwrap()),
        peer: peer.map(|peer| peer.parse().unwrap()),
        constructs: ["init", "finalize", "comm_dup", "win_allocate"].contains(&word),
        everywhere: ["allreduce", "barrier", "bcast"].contains(&word),
        control: level.map(|level| Control {
            level,
            region: region.map(str::to_owned),
        }),
    }
}

/// The loop of ranks with these calls.
fn found(ranks: &[String]) -> Result<Loop, NoLoop> {
    let ranks: Vec<&str> = ranks.iter().map(String::as_str).collect();
    find(&program(&ranks))
}

/// The first call and the number of iterations on each of two equal ranks, with the number of
/// classes.
fn of_two(words: &str) -> Option<(usize, usize, usize)> {
    let found = found(&[words.to_owned(), words.to_owned()]).ok()?;
    Some((
        found.boundaries[0][0],
        found.iterations(),
        found.classes.len(),
    ))
}

#[test]
fn exact_periods() {
    for body in [
        "allreduce",
        "isend/3@1 waitall",
        "put/10@1 put/10@-1 win_fence",
        "irecv@1 irecv@-1 isend@1 isend@-1 waitall",
        "alltoallw/9 alltoallw/9 alltoallw/8 alltoallw/8 allreduce/3 allreduce/3 bcast",
        // Three equal calls several times in an iteration, as if both neighbours were the same
        // rank.
        "isend@1 irecv@1 wait isend@1 irecv@1 wait isend@2 irecv@2 wait isend@2 irecv@2 wait \
         isend@1 irecv@1 wait",
        "isend isend irecv irecv waitall allreduce/3 allreduce/3 irecv irecv isend isend waitall \
         allreduce/4 bcast",
    ] {
        for steps in [4, 5, 20, 300] {
            let text = format!("init scan {} finalize", format!("{body} ").repeat(steps));
            assert_eq!(of_two(&text), Some((2, steps, 1)), "{steps} times {body}");
        }
    }
}

#[test]
fn ranks_of_a_pipeline_make_different_numbers_of_calls() {
    let ranks = ["send@1 ", "recv@-1 send@1 ", "recv@-1 "];
    let ranks = ranks.map(|body| format!("init {}finalize", body.repeat(500)));
    let found = found(&ranks).unwrap();
    assert_eq!(found.iterations(), 500);
    let firsts: Vec<usize> = found.boundaries.iter().map(|own| own[0]).collect();
    assert_eq!(firsts, [1, 1, 1]);
    assert_eq!([0, 1, 2].map(|rank| found.calls(rank, 7)), [1, 2, 1]);
    assert_eq!((found.counted, found.covered()), (1, 2000));
}

#[test]
fn an_edge_that_repeats_itself_within_an_iteration_is_grouped() {
    let inner = "send@1 send@-1 recv@1 recv@-1 ".repeat(100);
    let edge = "sendrecv@1 sendrecv@1 ".repeat(100);
    let found = found(&[
        format!("init {inner}finalize"),
        format!("init {edge}finalize"),
    ])
    .unwrap();
    assert_eq!(found.iterations(), 100);
    assert_eq!(found.calls(1, 3), 2);
}

#[test]
fn a_step_with_a_sum_now_and_then_is_one_step() {
    let step = "irecv@1 irecv@2 irecv@3 irecv@4 isend@1 isend@2 isend@3 isend@4 waitall ";
    let text = format!(
        "init cart_create {}reduce finalize",
        (step.repeat(10) + "allreduce ").repeat(10)
    );
    let found = found(&vec![text; 4]).unwrap();
    assert_eq!((found.boundaries[0][0], found.iterations()), (2, 100));
    let numbers: Vec<usize> = found.classes.iter().map(|class| class.iterations).collect();
    assert_eq!(numbers, [90, 10]);
    assert_eq!(found.classes[1].representative, 9);
    assert_eq!((found.class_of[9], found.class_of[10]), (1, 0));
}

#[test]
fn rebuilding_steps_are_a_class() {
    let exchange = |peers: &[&str], calls: &str| {
        let calls = |peer: &&str| calls.replace('@', &format!("@{peer}"));
        peers.iter().map(calls).collect::<String>()
    };
    let (there, back) = (["1", "1", "2", "2"], ["2", "2", "1", "1"]);
    let message = "irecv@ send@ wait ";
    let (forward, reverse) = (exchange(&there, message), exchange(&back, message));
    let step = format!("{forward}{reverse}");
    let migrate = exchange(&["1", "2"], "sendrecv/0@ irecv/9@ send/9@ wait ");
    let borders = exchange(&there, "sendrecv/0@ irecv/8@ send/8@ wait ");
    let rebuild = format!("allreduce {migrate}{borders}{reverse}");
    let mut text = format!("init bcast bcast {}", "allreduce/2 bcast/7 ".repeat(3));
    let mut steps = 0;
    for gap in [19, 11, 17, 12, 19, 10, 13, 18, 14, 19, 15] {
        text += &(step.repeat(gap) + &rebuild);
        steps += gap + 1;
    }
    text += &format!("{} finalize", step.repeat(5));
    let found = found(&vec![text; 4]).unwrap();
    // A boundary may be in the middle of a step, so one step may be missing.
    assert!(
        (steps + 4..=steps + 5).contains(&found.iterations()),
        "{}",
        found.iterations()
    );
    let numbers: Vec<usize> = found.classes.iter().map(|class| class.iterations).collect();
    assert!(numbers[0] >= steps - 11 && numbers[1] == 11, "{numbers:?}");
}

#[test]
fn steps_of_many_kinds_are_about_as_long() {
    // Each step has 11 to 16 calls.
    let more = [
        "",
        "allreduce ",
        "bcast allreduce ",
        "gather bcast allreduce allreduce/2 allreduce/3 ",
    ];
    let mut text = String::from("init bcast comm_dup ");
    let mut chance = 1u64;
    for _ in 0..200 {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        text += "irecv@1 isend@1 irecv@2 isend@2 waitall alltoall ";
        text += "isend@1 irecv@1 isend@2 irecv@2 waitall ";
        text += more[(chance >> 20) as usize % 4];
    }
    let found = found(&vec![text + "finalize"; 2]).unwrap();
    assert!(
        (199..=200).contains(&found.iterations()),
        "{}",
        found.iterations()
    );
    assert!(found.classes.len() <= 4);
}

/// The calls of a program that solves repeatedly, with these numbers of inner iterations; and the
/// number of solves.
fn nested(solves: impl IntoIterator<Item = usize>) -> (String, usize) {
    let inner = "irecv@1 isend@1 waitall allreduce/3 irecv@1 isend@1 waitall allreduce/4 ";
    let assembly = "irecv/7@1 isend/7@1 waitall allreduce/5 bcast/2 ";
    let (mut text, mut steps) = (String::from("init bcast comm_dup "), 0);
    for number in solves {
        text += &format!("{}{}", assembly.repeat(6), "gather/3 ".repeat(3));
        text += &format!(
            "bcast/9 {}allreduce/6 bcast/8 gather/4 scatter/4 ",
            inner.repeat(number)
        );
        steps += 1;
    }
    (text + "finalize", steps)
}

#[test]
fn of_nested_loops_with_changing_inner_numbers_the_outer_one_is_found() {
    let changing = (0..60).map(|step| 3 + (step * step * 7) % 40);
    let (text, steps) = nested(changing);
    assert_eq!(of_two(&text), Some((3, steps, 1)));
    let (text, steps) = nested((0..40).map(|step| 60 - step));
    assert_eq!(of_two(&text), Some((3, steps, 1)));
}

#[test]
fn of_nested_loops_with_equal_inner_numbers_the_outer_one_is_found() {
    let swap = |tag: &str| format!("irecv/{tag}@1 send/{tag}@1 wait ");
    let (dot, sum) = (swap("3"), swap("12"));
    let inner = format!("{sum}{dot}{dot}");
    let solve = format!("{dot}{}{sum}{dot}{dot}{dot}", inner.repeat(25));
    let text = format!("init {solve}barrier {}reduce finalize", solve.repeat(15));
    assert_eq!(of_two(&text), Some((1, 16, 2)));
}

#[test]
fn of_loops_in_a_row_the_longest_is_found() {
    let mut text = String::from("init ");
    for size in 0..20 {
        let turns = if size == 13 { 1200 } else { 1000 };
        text += &format!("barrier {}", format!("allreduce/{size} ").repeat(turns));
        text += "gather bcast reduce/3 ";
    }
    assert_eq!(
        of_two(&(text + "finalize")),
        Some((1 + 1004 * 13 + 1, 1200, 1))
    );
}

#[test]
fn where_sizes_shrink_calls_of_all_sizes_are_equal() {
    let mut text = String::from("init comm_split comm_split ");
    for step in 0..12 {
        let size = 12 - step;
        text += &format!(
            "bcast/{size} scatterv/{} allgatherv/{} bcast/{size} ",
            size / 2,
            9 - size / 2
        );
    }
    let two = found(&vec![text + "finalize"; 2]).unwrap();
    assert_eq!((two.boundaries[0][0], two.iterations()), (3, 12));
    assert_eq!(two.by, By::Calls { any_size: true });
    assert_eq!(two.classes.len(), 1);
}

#[test]
fn a_long_start_is_before_the_loop() {
    let planning = "sendrecv/4@1 allreduce/9 alltoall/5 barrier ".repeat(30);
    let reading = "bcast/20 scatter/4 bcast/3 ".repeat(7);
    let steps = "alltoall/8 alltoall/8 allreduce/3 ".repeat(100);
    let text = format!("init {planning}{reading}{steps}finalize");
    assert_eq!(of_two(&text), Some((1 + 120 + 21, 100, 1)));
}

#[test]
fn what_constructs_objects_in_the_loop_does_not_count() {
    let step = "isend@1 irecv@1 waitall allreduce ";
    let text = format!("init {0}{0}comm_dup {1}finalize", step, step.repeat(30));
    let found = found(&vec![text; 2]).unwrap();
    assert_eq!((found.iterations(), found.counted), (32, 2));
    let each = format!("init {}finalize", "comm_dup allreduce bcast ".repeat(30));
    assert_eq!(super::find(&program(&[&each])).unwrap().counted, 1);
}

#[test]
fn iterations_count_once_the_start_is_over() {
    let text = format!("init {}finalize", "send@1 recv@1 ".repeat(20));
    let mut found = found(&vec![text; 2]).unwrap();
    found.count_from(&[1, 2]);
    assert_eq!(found.counted, 1);
    found.count_from(&[7, 8]);
    assert_eq!(found.counted, 4);
    found.count_from(&[0, 0]);
    assert_eq!(found.counted, 4);
    found.count_from(&[100, 0]);
    assert_eq!(found.counted, 20);
}

#[test]
fn some_programs_have_no_loop() {
    let few = |words: &str| found(&vec![words.to_owned(); 2]).unwrap_err();
    assert_eq!(few("init finalize"), NoLoop::FewCalls { most: 2 });
    assert_eq!(few(""), NoLoop::FewCalls { most: 0 });
    let once = "init bcast/2 send bcast/9 recv reduce allreduce/3 gather scatter finalize";
    assert_eq!(few(once), NoLoop::NothingRepeats { rank: 0 });
    // The 26 calls contain a few repeated ones.
    let some = format!("init {} {} {}", once, "bcast ".repeat(5), &once[4..]);
    assert!(
        matches!(few(&some), NoLoop::SmallPart { covered: 10, .. }),
        "{:?}",
        few(&some)
    );
    // A master and its workers.
    let master = format!("init {}finalize", "recv send ".repeat(300));
    let workers =
        [90, 101, 109].map(|tasks| format!("init {}finalize", "send recv ".repeat(tasks)));
    let ranks = [&[master][..], &workers].concat();
    assert_eq!(found(&ranks), Err(NoLoop::RanksDiffer));
    let why = NoLoop::NothingRepeats { rank: 3 };
    assert_eq!(
        why.to_string(),
        "rank 3 repeats no sequence of calls 4 times in a row"
    );
}

#[test]
fn a_rare_checkpoint_is_in_the_loop() {
    let steps = "isend@1 irecv@1 waitall allreduce ".repeat(300);
    let checkpoint = "file_write/20 gather/9 bcast/1 ".repeat(20);
    let text = format!("init {steps}{checkpoint}{steps}{checkpoint}{steps}finalize");
    assert_eq!(of_two(&text), Some((1, 900, 2)));
}

/// A body of calls, of which at least one occurs nowhere else.
fn body() -> impl Strategy<Value = Vec<u32>> {
    vec(0u32..6, 1..15).prop_map(|mut body| {
        body.insert(body.len() / 2, 99);
        body
    })
}

fn words(symbols: &[u32], names: &str) -> String {
    symbols
        .iter()
        .map(|symbol| format!("{names}/{symbol} "))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_random_body_is_found_as_often_as_it_comes(
        bodies in vec(body(), 1..4),
        // At most 38 calls, compared with 40 or more in the loop: the loop is never a small part.
        before in vec(0u32..30, 0..20),
        behind in vec(0u32..30, 0..20),
        steps in 20usize..60,
    ) {
        let ranks: Vec<String> = bodies.iter().map(|body| {
            let steps = words(body, "send").repeat(steps);
            words(&before, "bcast") + &steps + &words(&behind, "reduce")
        }).collect();
        let found = found(&ranks).unwrap();
        prop_assert_eq!(found.iterations(), steps);
        prop_assert_eq!(found.classes.len(), 1);
        for (rank, body) in bodies.iter().enumerate() {
            let wanted = (0..=steps).map(|step| before.len() + step * body.len());
            prop_assert_eq!(&found.boundaries[rank], &wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn random_rebuilding_steps_do_not_break_a_loop(
        body in vec(0u32..6, 8..20),
        more in vec(20u32..30, 1..3),
        rebuilds in vec(any::<bool>(), 30..80),
        before in vec(0u32..30, 0..40),
    ) {
        // Rebuilds are at most a third of the steps, and add at most a quarter of the calls.
        let steps = rebuilds.len();
        let is_rebuild = |step: usize| step % 3 == 2 && rebuilds[step];
        let body = [&body[..], &[99]].concat();
        let mut text = words(&before, "bcast");
        for step in 0..steps {
            text += &words(&body, "send");
            if is_rebuild(step) {
                text += &words(&more, "send");
            }
        }
        let found = found(&[text.clone(), text]).unwrap();
        let all: usize = (0..steps).filter(|step| is_rebuild(*step)).count();
        prop_assert_eq!(found.iterations(), steps);
        prop_assert_eq!(found.classes.get(1).map_or(0, |class| class.iterations), all);
    }
}
