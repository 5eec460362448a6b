//! Several collectives in flight, beside messages, on many communicators, from many threads; and
//! erroneous calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{elements, out, pattern, room, run_remote, run_shared, run_with};
use datatype::{Elements, Op, Predefined, Type};
use mpi::coll::{Blocks, Counts, Reduction, Work};
use mpi::comm::{SELF, WORLD};
use mpi::op::Operation;
use mpi::{Class, Error, Mode, Rank};
use testdevice::strict::Setup;

const NAME: &str = "MPI_Test";

/// Numbers as the elements of a reduction.
fn numbers(numbers: &mut [u64]) -> Elements {
    // SAFETY: the tests keep the numbers until the operation is complete.
    unsafe {
        Elements::new(
            numbers.as_mut_ptr().cast(),
            numbers.len(),
            &Predefined::UINT64_T.into(),
        )
    }
}

fn sum(send: &mut [u64], receive: &mut [u64]) -> Reduction {
    Reduction {
        send: Some(numbers(send)),
        receive: Some(numbers(receive)),
        op: Operation::Predefined(Op::Sum),
    }
}

/// The sum of all ranks' numbers, by an allreduce of one number.
fn sum_of(rank: &Rank, number: u64, comm: u32) -> u64 {
    let (mut ours, mut total) = ([number], [0]);
    rank.collective(NAME, &Work::Allreduce(sum(&mut ours, &mut total)), comm)
        .unwrap();
    total[0]
}

#[test]
fn many_at_once_complete_in_any_order_beside_messages() {
    for settings in [
        &[][..],
        &[
            ("FISHPLATE_EAGER_LIMIT", "100"),
            ("FISHPLATE_RING_SLOTS", "4"),
        ],
    ] {
        run_with(4, settings, |rank| {
            let (me, size) = (rank.rank(), rank.size());
            const MANY: usize = 24;
            let len = |number: usize| [8, 700, 9000][number % 3];
            let ours: Vec<Vec<u8>> = (0..MANY)
                .map(|number| pattern(len(number), me + number))
                .collect();
            let mut all: Vec<Vec<u8>> = (0..MANY)
                .map(|number| vec![0; size * len(number)])
                .collect();
            let mut sent: Vec<[u64; 1]> = (0..MANY).map(|number| [(me * number) as u64]).collect();
            let mut sums = [[0u64; 1]; MANY];
            let next = ((me + 1) % size) as i32;
            let mut messages = Vec::new();
            let mut requests = Vec::new();
            for number in 0..MANY {
                let gather = Work::Allgather {
                    send: Some(out(&ours[number])),
                    receive: Blocks::even(room(&mut all[number]), size),
                };
                requests.push(rank.start_collective(gather, WORLD).unwrap());
                messages.push(
                    rank.lock()
                        .send(
                            Mode::Standard,
                            &out(&ours[number]),
                            next,
                            number as i32,
                            WORLD,
                        )
                        .unwrap(),
                );
                let reduce = Work::Allreduce(sum(&mut sent[number], &mut sums[number]));
                requests.push(rank.start_collective(reduce, WORLD).unwrap());
                // A blocking operation overtakes those in flight.
                assert_eq!(sum_of(rank, 1, WORLD), size as u64);
            }
            let previous = (me + size - 1) % size;
            for number in (0..MANY).rev() {
                let mut got = vec![0; len(number)];
                rank.receive(
                    "MPI_Recv",
                    room(&mut got),
                    previous as i32,
                    number as i32,
                    WORLD,
                )
                .unwrap();
                assert!(got == pattern(len(number), previous + number));
            }
            for number in 0..2 * MANY {
                let request = requests[(number * 7 + me * 5) % (2 * MANY)];
                assert_eq!(
                    rank.wait("MPI_Wait", request).unwrap().error,
                    Class::SUCCESS
                );
            }
            for send in messages {
                rank.wait("MPI_Wait", send).unwrap();
            }
            for number in 0..MANY {
                let whole: Vec<u8> = (0..size)
                    .flat_map(|from| pattern(len(number), from + number))
                    .collect();
                assert!(all[number] == whole, "{number}");
                assert_eq!(sums[number], [(6 * number) as u64]);
            }
        });
    }
}

#[test]
fn long_vectors_go_in_pieces() {
    const COUNT: usize = 70_001;
    for algorithm in ["recursive-doubling", "rabenseifner", "ring", "reduce-bcast"] {
        let wish = format!("allreduce={algorithm}");
        for size in [2, 3, 5] {
            run_with(size, &[("FISHPLATE_COLLECTIVES", &wish)], move |rank| {
                let mut ours: Vec<u64> = (0..COUNT as u64)
                    .map(|at| at * (1 + rank.rank() as u64))
                    .collect();
                let mut total = vec![0; COUNT];
                let work = Work::Allreduce(sum(&mut ours, &mut total));
                rank.collective(NAME, &work, WORLD).unwrap();
                let ranks = (size * (size + 1) / 2) as u64;
                assert!(
                    total
                        .iter()
                        .zip(0..)
                        .all(|(&total, at)| total == at * ranks)
                );
                let counts = Counts::Each(
                    (0..size)
                        .map(|rank| if rank == 0 { COUNT - 2 * (size - 1) } else { 2 })
                        .collect(),
                );
                let mine = counts.elements(rank.rank()..rank.rank() + 1);
                let mut part = vec![0; mine.len()];
                let work = Work::ReduceScatter {
                    reduction: sum(&mut ours, &mut part),
                    counts,
                };
                rank.collective(NAME, &work, WORLD).unwrap();
                assert!(
                    part.iter()
                        .zip(mine)
                        .all(|(&total, at)| total == at as u64 * ranks)
                );
            });
        }
    }
}

#[test]
fn all_ranks_get_the_same_bits() {
    // Zeros of both signs, and numbers whose sum depends on the order.
    let values = [0.0f64, -0.0, 1e16, 1.0, -1e16, 3.0, 0.1, -0.0, 0.7];
    for algorithm in [
        "shared",
        "recursive-doubling",
        "rabenseifner",
        "ring",
        "reduce-bcast",
    ] {
        let wish = format!("allreduce={algorithm}");
        for size in [2, 3, 6, 9] {
            // Without shared memory, another algorithm may replace the chosen one.
            for remote in [false, true] {
                let seen: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(usize::MAX)).collect();
                let program = move |rank: &Arc<Rank>| {
                    for (op, seen) in [Op::Sum, Op::Prod, Op::Min, Op::Max].into_iter().zip(&seen) {
                        // The first calls have no collective buffer: their algorithm may give other
                        // bits.
                        for turn in 0..6 {
                            let mut ours: Vec<u8> = values[rank.rank()].to_ne_bytes().repeat(4);
                            let mut total = vec![0; 32];
                            let ty = Type::from(Predefined::DOUBLE);
                            let reduction = Reduction {
                                send: Some(elements(&mut ours, 4, &ty)),
                                receive: Some(elements(&mut total, 4, &ty)),
                                op: Operation::Predefined(op),
                            };
                            rank.collective(NAME, &Work::Allreduce(reduction), WORLD)
                                .unwrap();
                            let bits =
                                u64::from_ne_bytes(std::array::from_fn(|at| total[at])) as usize;
                            rank.collective(NAME, &Work::Barrier, WORLD).unwrap();
                            if turn > 3 {
                                let first = seen.compare_exchange(
                                    usize::MAX,
                                    bits,
                                    Ordering::SeqCst,
                                    Ordering::SeqCst,
                                );
                                assert!(
                                    first.is_ok() || first == Err(bits),
                                    "{op:?} on {size} ranks, {algorithm}"
                                );
                            }
                        }
                    }
                };
                let settings = [("FISHPLATE_COLLECTIVES", wish.as_str())];
                match remote {
                    false => run_shared(size, &settings, program),
                    true => run_remote(size, &settings, &Setup::default(), program),
                }
            }
        }
    }
}

#[test]
fn communicators_come_and_go_and_their_collective_buffers_with_them() {
    run_with(4, &[], |rank| {
        let me = rank.rank() as u64;
        for round in 0..150u64 {
            let color = (rank.rank() % 2) as i32;
            let pair = rank.comm_split("MPI_Comm_split", WORLD, color, 0).unwrap();
            let copy = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
            for number in 0..5 {
                assert_eq!(
                    sum_of(rank, me + round + number, pair),
                    2 + 2 * (round + number) + 2 * (me % 2)
                );
                assert_eq!(sum_of(rank, me, copy), 6);
                let mut bytes = [me as u8];
                let work = Work::Bcast {
                    buffer: room(&mut bytes),
                    root: (round % 4) as i32,
                };
                rank.collective(NAME, &work, copy).unwrap();
                assert_eq!(bytes, [(round % 4) as u8]);
            }
            rank.comm_free(pair).unwrap();
            rank.comm_free(copy).unwrap();
        }
    });
}

#[test]
fn more_communicators_than_collective_buffers_all_work() {
    run_with(3, &[], |rank| {
        let copies: Vec<u32> = (0..100)
            .map(|_| rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap())
            .collect();
        for _ in 0..6 {
            for &copy in &copies {
                assert_eq!(sum_of(rank, 7, copy), 21);
            }
        }
    });
}

#[test]
fn a_root_that_runs_ahead_overwrites_nothing() {
    for wait in ["auto", "sleep", "yield"] {
        run_with(3, &[("FISHPLATE_WAIT", wait)], |rank| {
            for number in 0..400u32 {
                let root = (number / 50 % 3) as usize;
                let mut bytes = if rank.rank() == root {
                    pattern(2000, number as usize)
                } else {
                    vec![0; 2000]
                };
                if rank.rank() != root && number % 50 == 25 {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                let work = Work::Bcast {
                    buffer: room(&mut bytes),
                    root: root as i32,
                };
                rank.collective(NAME, &work, WORLD).unwrap();
                assert!(bytes == pattern(2000, number as usize));
                let (mut ours, mut total) = ([number as u64; 3], [0; 3]);
                let mut reduction = sum(&mut ours, &mut total);
                reduction.receive = reduction.receive.filter(|_| rank.rank() == root);
                rank.collective(
                    NAME,
                    &Work::Reduce {
                        reduction,
                        root: root as i32,
                    },
                    WORLD,
                )
                .unwrap();
                assert!(rank.rank() != root || total == [3 * number as u64; 3]);
            }
        });
    }
}

#[test]
fn threads_have_communicators_of_their_own() {
    run_with(2, &[], |rank| {
        rank.allow_threads();
        let comms: Vec<u32> = (0..4)
            .map(|_| rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for (number, &comm) in (1u64..).zip(&comms) {
                scope.spawn(move || {
                    for turn in 0..100 {
                        assert_eq!(sum_of(rank, number * turn, comm), 2 * number * turn);
                        rank.collective(NAME, &Work::Barrier, comm).unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn many_ranks_meet_at_one() {
    run_with(20, &[], |rank| {
        for number in 0..20 {
            let (mut ours, mut total) = ([number + rank.rank() as u64; 40], [0; 40]);
            rank.collective(NAME, &Work::Allreduce(sum(&mut ours, &mut total)), WORLD)
                .unwrap();
            assert_eq!(total, [190 + 20 * number; 40]);
            rank.collective(NAME, &Work::Barrier, WORLD).unwrap();
        }
    });
}

#[test]
fn a_rank_alone_is_done_at_once() {
    run_with(1, &[], |rank| {
        for comm in [WORLD, SELF] {
            assert_eq!(sum_of(rank, 5, comm), 5);
            for (send, in_place) in [(Some(out(&[1, 2])), false), (None, true)] {
                let mut all = [9, 9];
                let receive = Blocks::even(room(&mut all), 1);
                rank.collective(NAME, &Work::Allgather { send, receive }, comm)
                    .unwrap();
                assert_eq!(all, if in_place { [9, 9] } else { [1, 2] });
            }
            let request = rank.start_collective(Work::Barrier, comm).unwrap();
            rank.wait("MPI_Wait", request).unwrap();
        }
    });
}

fn refused(rank: &Arc<Rank>, work: Work) -> Error {
    let blocking = rank.collective(NAME, &work, WORLD).unwrap_err();
    assert_eq!(rank.start_collective(work, WORLD).unwrap_err(), blocking);
    blocking
}

#[test]
fn wrong_arguments_are_named() {
    run_with(2, &[], |rank| {
        let mut bytes = [0; 8];
        for root in [-1, 2] {
            let error = refused(
                rank,
                Work::Bcast {
                    buffer: room(&mut bytes),
                    root,
                },
            );
            assert_eq!(error.class, Class::ROOT);
            assert!(error.to_string().contains(&root.to_string()), "{error}");
        }
        let (mut ours, mut total) = ([1], [0]);
        let mut wrong = sum(&mut ours, &mut total);
        wrong.op = Operation::Predefined(Op::Maxloc);
        let error = refused(rank, Work::Allreduce(wrong.clone()));
        assert!(
            error.class == Class::OP && error.to_string().contains("MPI_MAXLOC"),
            "{error}"
        );
        wrong.op = Operation::Predefined(Op::Replace);
        assert_eq!(
            refused(rank, Work::Allreduce(wrong.clone())).class,
            Class::OP
        );
        wrong.op = Operation::Predefined(Op::Sum);
        wrong.send = wrong.receive.clone();
        assert_eq!(
            refused(
                rank,
                Work::Scan {
                    reduction: wrong,
                    exclusive: false
                }
            )
            .class,
            Class::BUFFER
        );
        let nothing = Work::Gather {
            send: None,
            receive: None,
            root: 0,
        };
        assert_eq!(refused(rank, nothing).class, Class::BUFFER);
        let derived = Type::contiguous(2, &Predefined::INT.into()).unwrap();
        let reduction = Reduction {
            send: None,
            receive: Some(elements(&mut bytes, 1, &derived)),
            op: Operation::Predefined(Op::Sum),
        };
        assert_eq!(refused(rank, Work::Allreduce(reduction)).class, Class::OP);
        // After all these errors the ranks still agree on the number of operations.
        assert_eq!(sum_of(rank, 3, WORLD), 6);
    });
}

#[test]
fn ranks_that_disagree_are_told() {
    // By messages, and in a collective buffer.
    for calls in [0, 5] {
        run_with(2, &[], move |rank| {
            for _ in 0..calls {
                rank.collective(NAME, &Work::Barrier, WORLD).unwrap();
            }
            let mut bytes = vec![0; 8 * (1 + rank.rank())];
            let work = Work::Allreduce(Reduction {
                send: None,
                receive: Some(elements(
                    &mut bytes,
                    1 + rank.rank(),
                    &Predefined::UINT64_T.into(),
                )),
                op: Operation::Predefined(Op::Sum),
            });
            let error = rank.collective(NAME, &work, WORLD).unwrap_err();
            assert_eq!(error.class, Class::TRUNCATE);
            assert!(error.to_string().contains("bytes"), "{error}");
        });
    }
}
