//! Promises of collectives in shared memory beside their results: equal bits, and errors about
//! calls that do not fit together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{elements, gapped, pattern, room, run_shared, typed};
use datatype::{Elements, Op, Predefined};
use mpi::algorithms::{self, Collective};
use mpi::coll::{Blocks, Counts, Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;
use mpi::{Class, Error, Rank, Result};
use sim::Random;

const NAME: &str = "MPI_Test";

/// Makes the members agree on collective buffers, by a few calls that use them.
fn warm_up(rank: &Arc<Rank>) {
    for _ in 0..4 {
        rank.collective(NAME, &Work::Barrier, WORLD).unwrap();
    }
}

fn perform(rank: &Arc<Rank>, work: Work, blocking: bool) -> Result<()> {
    if blocking {
        return rank.collective(NAME, &work, WORLD);
    }
    let request = rank.start_collective(work, WORLD)?;
    let status = rank.wait("MPI_Wait", request)?;
    match status.error {
        Class::SUCCESS => Ok(()),
        _ => Err(rank.result_of(status).unwrap_err()),
    }
}

fn doubles(memory: &mut [u8]) -> Elements {
    elements(memory, memory.len() / 8, &Predefined::DOUBLE.into())
}

/// Numbers of all magnitudes, so that their sum depends on the order.
fn numbers(rank: usize, count: usize) -> Vec<u8> {
    let mut random = Random::new(rank as u64 + 1);
    let mut number = || {
        let exponent = random.below(60) as i32 - 30;
        let digits = random.below(1 << 50) as f64 - (1u64 << 49) as f64;
        digits * 2f64.powi(exponent)
    };
    (0..count).flat_map(|_| number().to_ne_bytes()).collect()
}

/// The result of a reduction: of an allreduce the same on all ranks, otherwise this rank's part.
fn reduced(rank: &Arc<Rank>, collective: Collective, count: usize, blocking: bool) -> Vec<u8> {
    let (me, size) = (rank.rank(), rank.size());
    let mut ours = numbers(me, count);
    let counts = Counts::Even(count / size);
    let room = match collective {
        Collective::ReduceScatter => count / size,
        _ => count,
    };
    ours.truncate(match collective {
        Collective::ReduceScatter => count / size * size * 8,
        _ => count * 8,
    });
    let mut result = vec![0; room * 8];
    let gets = collective != Collective::Reduce || me == 0;
    let reduction = Reduction {
        send: Some(doubles(&mut ours)),
        receive: gets.then(|| doubles(&mut result)),
        op: Operation::Predefined(Op::Sum),
    };
    let work = match collective {
        Collective::Reduce => Work::Reduce { reduction, root: 0 },
        Collective::ReduceScatter => Work::ReduceScatter { reduction, counts },
        _ => Work::Allreduce(reduction),
    };
    perform(rank, work, blocking).unwrap();
    result
}

/// Bits of results, by count, form and rank.
type Seen = HashMap<(usize, bool, usize), Vec<u8>>;

/// Runs reductions with one algorithm several times, and compares the bits of all runs, and of all
/// ranks where all get the result.
fn bits_are_equal(collective: Collective, algorithm: &'static str, size: usize) {
    let choice = format!("{}={algorithm}", collective.name());
    let seen: Arc<Mutex<Seen>> = Arc::default();
    for run in 0..2 {
        let seen = seen.clone();
        run_shared(size, &[("FISHPLATE_COLLECTIVES", &choice)], move |rank| {
            let me = rank.rank();
            warm_up(rank);
            for count in [1, 100, 3_001, 40_000] {
                for blocking in [true, false] {
                    // Another rank is last each time.
                    if (run + count) % size == me {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    let result = reduced(rank, collective, count, blocking);
                    let of = match collective {
                        Collective::Allreduce => 0,
                        _ => me,
                    };
                    let mut seen = seen.lock().unwrap();
                    let first = seen
                        .entry((count, blocking, of))
                        .or_insert_with(|| result.clone());
                    assert!(
                        *first == result,
                        "other bits on rank {me} in run {run}: {count} numbers, {collective:?} by \
                             {algorithm} on {size} ranks, blocking: {blocking}"
                    );
                }
            }
        });
    }
}

#[test]
fn reductions_give_the_same_bits_on_all_ranks_and_in_all_runs() {
    for collective in [
        Collective::Allreduce,
        Collective::Reduce,
        Collective::ReduceScatter,
    ] {
        let mut names: Vec<_> = algorithms::rows(collective)
            .iter()
            .map(|row| row.algorithm.name())
            .collect();
        names.sort_unstable();
        names.dedup();
        for algorithm in names {
            for size in [2, 3, 5] {
                bits_are_equal(collective, algorithm, size);
            }
        }
    }
}

/// The others come late, when the first rank has started an operation that needs memory, too.
fn late_readers(collective: Collective) {
    let choice = format!("{}=direct", collective.name());
    run_shared(3, &[("FISHPLATE_COLLECTIVES", &choice)], move |rank| {
        warm_up(rank);
        let (me, count) = (rank.rank(), 9_000);
        let packed = pattern(count * 16, 5);
        let mut spread = vec![0xee; count * 32];
        let whole = typed(&mut spread, count, &gapped());
        whole.unpack(0, &packed);
        let mut got = vec![0; 3 * packed.len()];
        if me > 0 {
            std::thread::sleep(Duration::from_millis(30));
        }
        let block = packed.len() / 3;
        let (work, expected) = match collective {
            Collective::Alltoall => {
                let work = Work::Alltoall {
                    send: Some(Blocks::even(whole, 3)),
                    receive: Blocks::even(room(&mut got[..packed.len()]), 3),
                };
                (work, packed[me * block..(me + 1) * block].repeat(3))
            }
            _ => {
                let work = Work::Allgather {
                    send: Some(whole),
                    receive: Blocks::even(room(&mut got), 3),
                };
                (work, packed.repeat(3))
            }
        };
        let first = rank.start_collective(work, WORLD).unwrap();
        let (mut ours, mut sum) = (vec![0u8; count * 16], vec![0; count * 16]);
        let scan = Work::Scan {
            reduction: Reduction {
                send: Some(doubles(&mut ours)),
                receive: Some(doubles(&mut sum)),
                op: Operation::Predefined(Op::Sum),
            },
            exclusive: false,
        };
        let second = rank.start_collective(scan, WORLD).unwrap();
        for request in [first, second] {
            rank.wait("MPI_Wait", request).unwrap();
        }
        assert!(
            got[..expected.len()] == expected,
            "rank {me} read other data in {collective:?}"
        );
    });
}

#[test]
fn packed_copies_stay_until_all_have_read_them() {
    for collective in [Collective::Alltoall, Collective::Allgather] {
        late_readers(collective);
    }
}

/// Each operation exposes its buffers when its turn in the lane comes, so there may be any number.
#[test]
fn hundreds_of_direct_operations_are_under_way_at_once() {
    run_shared(3, &DIRECT, |rank| {
        warm_up(rank);
        let (me, size) = (rank.rank(), rank.size());
        let sources = vec![me as u8 + 1; size * LONG];
        let mut source = sources.clone();
        let mut results = vec![vec![0; size * LONG]; 200];
        let start = |result: &mut Vec<u8>| {
            let work = Work::Alltoall {
                send: Some(Blocks::even(room(&mut source), size)),
                receive: Blocks::even(room(result), size),
            };
            rank.start_collective(work, WORLD).unwrap()
        };
        let requests: Vec<_> = results.iter_mut().map(start).collect();
        for request in requests {
            let status = rank.wait("MPI_Wait", request).unwrap();
            assert_eq!(status.error, Class::SUCCESS);
        }
        for result in &results {
            for (member, block) in result.chunks(LONG).enumerate() {
                assert!(block.iter().all(|byte| *byte == member as u8 + 1));
            }
        }
    });
}

/// Calls with this much memory, which differ from rank to rank.
struct Calls {
    bytes: Vec<u8>,
    more: Vec<u8>,
}

impl Calls {
    fn new() -> Calls {
        Calls {
            bytes: vec![1; 4 * LONG],
            more: vec![2; 4 * LONG],
        }
    }

    fn allreduce(&mut self, bytes: usize) -> Work {
        Work::Allreduce(Reduction {
            send: Some(doubles(&mut self.bytes[..bytes])),
            receive: Some(doubles(&mut self.more[..bytes])),
            op: Operation::Predefined(Op::Max),
        })
    }

    fn alltoall(&mut self, size: usize, bytes: usize) -> Work {
        Work::Alltoall {
            send: Some(Blocks::even(room(&mut self.bytes[..size * bytes]), size)),
            receive: Blocks::even(room(&mut self.more[..size * bytes]), size),
        }
    }

    fn allgather(&mut self, size: usize, bytes: usize) -> Work {
        Work::Allgather {
            send: Some(room(&mut self.bytes[..bytes])),
            receive: Blocks::even(room(&mut self.more[..size * bytes]), size),
        }
    }

    fn bcast(&mut self, bytes: usize, root: i32) -> Work {
        Work::Bcast {
            buffer: room(&mut self.bytes[..bytes]),
            root,
        }
    }
}

/// Bytes of a vector that takes pieces.
const LONG: usize = 200_000;
const RANKS: usize = 3;

/// The errors of all ranks after their calls on a communicator whose members have agreed on
/// buffers. `None`: a rank's call succeeded.
fn errors(
    settings: &[(&str, &str)],
    blocking: bool,
    call: impl Fn(usize, &mut Calls) -> Work + Send + Sync + 'static,
) -> Vec<Option<Error>> {
    let all = Arc::new(Mutex::new(vec![None; RANKS]));
    let found = all.clone();
    // All ranks sleep: an error must wake those that wait for its rank.
    let mut settings = settings.to_vec();
    settings.push(("FISHPLATE_WAIT", "sleep"));
    run_shared(RANKS, &settings, move |rank| {
        warm_up(rank);
        let mut calls = Calls::new();
        let work = call(rank.rank(), &mut calls);
        let error = perform(rank, work, blocking).err();
        found.lock().unwrap()[rank.rank()] = error;
        // Peers may still copy from and to this rank's memory.
        std::mem::forget(calls);
    });
    let all = all.lock().unwrap();
    all.clone()
}

/// All ranks have an error of truncation that contains these texts.
fn assert_named(errors: &[Option<Error>], texts: &[&str]) {
    for (rank, error) in errors.iter().enumerate() {
        let error = error.as_ref();
        let error = error.unwrap_or_else(|| panic!("rank {rank} has no error; {texts:?} is due"));
        assert_eq!(error.class, Class::TRUNCATE, "{error}");
        let said = error.to_string();
        for text in texts {
            assert!(
                said.contains(text),
                "rank {rank} says '{said}' without '{text}'"
            );
        }
    }
}

const SHARED: [(&str, &str); 1] = [(
    "FISHPLATE_COLLECTIVES",
    "allreduce=shared,bcast=shared,alltoall=shared,allgather=shared",
)];
const DIRECT: [(&str, &str); 1] = [(
    "FISHPLATE_COLLECTIVES",
    "allreduce=direct,alltoall=direct,allgather=direct",
)];

#[test]
fn vectors_of_other_lengths_are_named_with_both_calls() {
    for blocking in [true, false] {
        let small = errors(&SHARED, blocking, |me, calls| {
            calls.allreduce(if me == 1 { 16 } else { 800 })
        });
        assert_named(&small, &["rank", "allreduce", "16", "800"]);
        let blocks = errors(&SHARED, blocking, |me, calls| {
            calls.alltoall(RANKS, if me == 2 { 100 } else { 300 })
        });
        assert_named(&blocks, &["alltoall"]);
        let direct = errors(&DIRECT, blocking, |me, calls| {
            calls.allreduce(if me == 1 { LONG } else { LONG / 2 })
        });
        assert_named(&direct, &["allreduce", "200000", "100000"]);
        let blocks = errors(&DIRECT, blocking, |me, calls| {
            calls.allgather(RANKS, if me == 2 { LONG } else { LONG / 2 })
        });
        assert_named(&blocks, &["allgather", "600000", "300000"]);
    }
}

#[test]
fn other_collectives_are_named_with_both_calls() {
    for settings in [&SHARED, &DIRECT] {
        for (blocking, bytes) in [(true, 600), (false, 600), (true, LONG), (false, LONG)] {
            let found = errors(settings, blocking, move |me, calls| match me {
                1 => calls.allgather(RANKS, bytes),
                _ => calls.alltoall(RANKS, bytes),
            });
            assert_named(&found, &["allgather", "alltoall"]);
        }
    }
}

#[test]
fn single_copy_that_is_off_takes_no_direct_algorithm() {
    // Direct calls know the whole length, calls by pieces that of a piece.
    let lengths = ["200000", "100000"];
    for off in [false, true] {
        let mut settings = DIRECT.to_vec();
        if off {
            settings.push(("FISHPLATE_SINGLE_COPY", "off"));
        }
        let found = errors(&settings, true, |me, calls| {
            calls.allreduce(if me == 1 { LONG } else { LONG / 2 })
        });
        for error in &found {
            let said = error.as_ref().unwrap().to_string();
            let direct = lengths.iter().all(|length| said.contains(length));
            assert_eq!(direct, !off, "{said}");
        }
    }
}

/// An operation with this root: a broadcast, a reduction to it, a gather or a scatter.
fn rooted(collective: Collective, me: usize, root: usize, calls: &mut Calls, bytes: usize) -> Work {
    let at_root = me == root;
    let root = root as i32;
    let one = room(&mut calls.bytes[..bytes]);
    let all = || Blocks::even(room(&mut calls.more[..RANKS * bytes]), RANKS);
    match collective {
        Collective::Bcast => Work::Bcast { buffer: one, root },
        Collective::Gather => Work::Gather {
            send: Some(one),
            receive: at_root.then(all),
            root,
        },
        Collective::Scatter => Work::Scatter {
            send: at_root.then(all),
            receive: Some(one),
            root,
        },
        _ => Work::Reduce {
            reduction: Reduction {
                send: Some(doubles(&mut calls.bytes[..bytes])),
                receive: at_root.then(|| doubles(&mut calls.more[..bytes])),
                op: Operation::Predefined(Op::Max),
            },
            root,
        },
    }
}

/// The ranks that find an error where one rank names another root than all others.
fn find_another_root(collective: Collective, bytes: usize, roots: [usize; RANKS], who: &[usize]) {
    for blocking in [true, false] {
        let found = errors(&ROOTED, blocking, move |me, calls| {
            rooted(collective, me, roots[me], calls, bytes)
        });
        let failed: Vec<usize> = (0..RANKS).filter(|&rank| found[rank].is_some()).collect();
        assert_eq!(failed, who, "{collective:?} of {bytes} bytes: {found:?}");
        for error in found.iter().flatten() {
            assert_eq!(error.class, Class::TRUNCATE, "{error}");
            assert!(error.to_string().contains("root"), "{error}");
        }
    }
}

const ROOTED: [(&str, &str); 1] = [(
    "FISHPLATE_COLLECTIVES",
    "bcast=shared,reduce=shared,gather=shared,scatter=shared",
)];

#[test]
fn ranks_that_wait_for_another_root_say_so() {
    for bytes in [80, 20_000] {
        // Rank 2 waits for data of rank 1, which takes those of rank 0.
        find_another_root(Collective::Bcast, bytes, [0, 0, 1], &[2]);
        find_another_root(Collective::Scatter, bytes, [0, 0, 1], &[2]);
        // Rank 1 reads that rank 2 means another root; rank 0 then misses rank 1.
        find_another_root(Collective::Gather, bytes, [0, 1, 0], &[0, 1]);
    }
    // Both roots read the contributions of all.
    find_another_root(Collective::Reduce, 80, [0, 1, 0], &[0, 1]);
}

/// The root of a broadcast has another length than all others: all that read its message say so,
/// and the root returns.
fn a_root_with_another_length(settings: &[(&str, &str)]) {
    for (root, others) in [(16, 600), (LONG, LONG / 2)] {
        for blocking in [true, false] {
            let mut found = errors(settings, blocking, move |me, calls| {
                calls.bcast(if me == 0 { root } else { others }, 0)
            });
            assert!(found.remove(0).is_none(), "the root reads nothing");
            assert_named(&found, &["bcast"]);
        }
    }
}

#[test]
fn all_that_read_name_a_root_with_another_length() {
    a_root_with_another_length(&SHARED);
}

#[test]
fn a_root_whose_memory_is_read_returns_though_others_fail() {
    a_root_with_another_length(&DIRECT);
}
