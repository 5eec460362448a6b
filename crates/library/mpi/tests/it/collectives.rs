//! Every collective with every algorithm of the table, compared with the result of one process.

use std::sync::Arc;

use crate::common::{
    elements, gapped, matrix_product, multiply, out, pattern, room, run_with, typed,
};
use datatype::{Buffer, Elements, Op, Predefined, Type};
use mpi::algorithms::{self, Collective};
use mpi::coll::{Blocks, Counts, Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;
use mpi::{Class, Rank};

/// The forms of a collective call.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    Blocking,
    Nonblocking,
    Persistent,
}

/// All forms.
pub(super) const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Persistent];

/// Runs a collective in this form.
fn perform(rank: &Arc<Rank>, work: Work, form: Form) {
    perform_on(WORLD, rank, work, form);
}

/// Runs a collective of the communicator `comm` in this form.
pub(super) fn perform_on(comm: u32, rank: &Arc<Rank>, work: Work, form: Form) {
    let request = match form {
        Form::Blocking => return rank.collective("MPI_Test", &work, comm).unwrap(),
        Form::Nonblocking => rank.start_collective(work, comm).unwrap(),
        Form::Persistent => {
            let request = rank.collective_init(work, comm).unwrap();
            rank.start(request).unwrap();
            request
        }
    };
    let status = rank.wait("MPI_Wait", request).unwrap();
    assert_eq!(status.error, Class::SUCCESS);
    if form == Form::Persistent {
        rank.lock().requests_mut().detach(request).unwrap();
    }
}

/// Runs `program` with every algorithm of a collective, and with the choices of the table, on 1 to
/// 9 ranks.
fn with_all(collective: Collective, program: impl Fn(&Arc<Rank>, Form) + Send + Sync + 'static) {
    let program = Arc::new(program);
    let mut choices: Vec<_> = algorithms::rows(collective)
        .iter()
        .map(|row| format!("{}={}", collective.name(), row.algorithm.name()))
        .collect();
    choices.push(String::new());
    choices.sort();
    choices.dedup();
    let forms = FORMS;
    for (number, choice) in choices.iter().enumerate() {
        for size in [1, 2, 3, 5, 6, 8, 9] {
            let program = program.clone();
            run_with(size, &[("FISHPLATE_COLLECTIVES", choice)], move |rank| {
                // The forms share their code: each runs about a third of the cases, and all run
                // some.
                for (turn, form) in forms.into_iter().enumerate() {
                    if size == 3 || (size + number) % forms.len() == turn {
                        program(rank, form);
                    }
                }
            });
        }
    }
}

/// All roots of a small communicator, some of a large one.
fn roots(size: usize) -> impl Iterator<Item = usize> {
    (0..size).filter(move |root| size < 6 || [0, 1, size / 2, size - 1].contains(root))
}

/// Bytes of a block: none, a few, many.
const SIZES: [usize; 3] = [0, 3, 17_000];

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let come: [AtomicUsize; 200] = std::array::from_fn(|_| AtomicUsize::new(0));
    with_all(Collective::Barrier, move |rank, form| {
        perform(rank, Work::Barrier, form);
        if rank.rank() == 0 {
            come.iter().for_each(|come| come.store(0, Ordering::SeqCst));
        }
        perform(rank, Work::Barrier, form);
        for come in &come[..20] {
            come.fetch_add(1, Ordering::SeqCst);
            perform(rank, Work::Barrier, form);
            assert_eq!(come.load(Ordering::SeqCst), rank.size());
        }
    });
}

#[test]
fn a_broadcast_reaches_all_from_every_root() {
    with_all(Collective::Bcast, |rank, form| {
        for root in roots(rank.size()) {
            for len in SIZES.into_iter().chain([150_000]) {
                let sent = pattern(len, root);
                let mut bytes = if rank.rank() == root {
                    sent.clone()
                } else {
                    vec![0; len]
                };
                perform(
                    rank,
                    Work::Bcast {
                        buffer: room(&mut bytes),
                        root: root as i32,
                    },
                    form,
                );
                assert!(bytes == sent, "{len} bytes from {root}");
            }
        }
    });
}

#[test]
fn trees_have_as_many_branches_as_wanted() {
    for arity in ["1", "2", "3", "7", "64"] {
        let settings = [
            ("FISHPLATE_COLLECTIVES", "bcast=k-ary,reduce=k-ary"),
            ("FISHPLATE_TREE_ARITY", arity),
        ];
        for size in [2, 3, 6, 9] {
            run_with(size, &settings, move |rank| {
                for (turn, form) in FORMS.into_iter().enumerate() {
                    let root = (size + turn) % size;
                    in_pieces(rank, root, form);
                }
            });
        }
    }
}

/// A broadcast and reductions of a few pieces, from and to one rank.
fn in_pieces(rank: &Arc<Rank>, root: usize, form: Form) {
    let sent = pattern(100_000, root);
    let mut bytes = match rank.rank() == root {
        true => sent.clone(),
        false => vec![0; sent.len()],
    };
    let work = Work::Bcast {
        buffer: room(&mut bytes),
        root: root as i32,
    };
    perform(rank, work, form);
    assert!(bytes == sent, "from {root}");
    for sample in samples() {
        let count = 100_000 / sample.ty.size();
        let (_send, send) = sample.memory(count, Some(&sample.values(rank.rank(), count)));
        let (_receive, receive) = sample.memory(count, None);
        let at_root = rank.rank() == root;
        let reduction = Reduction {
            send: Some(send),
            receive: at_root.then(|| receive.clone()),
            op: sample.op.clone(),
        };
        let work = Work::Reduce {
            reduction,
            root: root as i32,
        };
        perform(rank, work, form);
        let expected = || sample.combined(0..rank.size(), count);
        assert!(!at_root || bytes_of(&receive.buffer()) == expected());
    }
}

#[test]
fn types_need_only_fit_in_their_signature() {
    with_all(Collective::Bcast, |rank, form| {
        let (ty, count) = (gapped(), 1500);
        let size = ty.size() * count;
        let packed = pattern(size, 3);
        if rank.rank() % 2 == 0 {
            let mut spread = vec![0xee; ty.extent() as usize * count];
            let buffer = typed(&mut spread, count, &ty);
            if rank.rank() == 0 {
                buffer.unpack(0, &packed);
            }
            perform(
                rank,
                Work::Bcast {
                    buffer: buffer.clone(),
                    root: 0,
                },
                form,
            );
            let mut got = vec![0; size];
            buffer.pack(0, &mut got);
            assert_eq!(got, packed);
            assert!(
                spread.chunks(32).all(|chunk| chunk[12..16] == [0xee; 4]),
                "gaps were written to"
            );
        } else {
            let mut got = vec![0; size];
            perform(
                rank,
                Work::Bcast {
                    buffer: room(&mut got),
                    root: 0,
                },
                form,
            );
            assert_eq!(got, packed);
        }
    });
}

#[test]
fn gather_and_scatter_are_each_others_reverse() {
    for collective in [Collective::Gather, Collective::Scatter] {
        with_all(collective, |rank, form| {
            let (me, size) = (rank.rank(), rank.size());
            for root in roots(size) {
                for (len, in_place) in SIZES
                    .into_iter()
                    .flat_map(|len| [(len, false), (len, true)])
                {
                    let at_root = me == root;
                    let ours = pattern(len, me);
                    let whole: Vec<u8> = (0..size).flat_map(|from| pattern(len, from)).collect();
                    let mut all = vec![0; if at_root { size * len } else { 0 }];
                    if at_root && in_place {
                        all[me * len..][..len].copy_from_slice(&ours);
                    }
                    let send = (!(at_root && in_place)).then(|| out(&ours));
                    let receive = at_root.then(|| Blocks::even(room(&mut all), size));
                    perform(
                        rank,
                        Work::Gather {
                            send,
                            receive,
                            root: root as i32,
                        },
                        form,
                    );
                    assert!(!at_root || all == whole, "{len} bytes to {root}");

                    let mut got = vec![0; len];
                    let send = at_root.then(|| Blocks::even(out(&whole), size));
                    let receive = (!(at_root && in_place)).then(|| room(&mut got));
                    perform(
                        rank,
                        Work::Scatter {
                            send,
                            receive,
                            root: root as i32,
                        },
                        form,
                    );
                    assert!(
                        at_root && in_place || got == ours,
                        "{len} bytes from {root}"
                    );
                }
            }
        });
    }
}

/// Block sizes that differ.
fn uneven(rank: usize) -> usize {
    [0, 5, 1000, 17_000][rank % 4] + rank
}

/// Divides memory into blocks of these sizes, the first rank's last, with gaps between them.
fn cut(bytes: &mut [u8], sizes: &[usize]) -> Blocks {
    let mut end = bytes.len();
    let parts = sizes.iter().map(|&len| {
        end -= len + 3;
        room(&mut bytes[end..end + len])
    });
    Blocks::Each(parts.collect())
}

pub(super) fn bytes_of(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.pack(0, &mut bytes);
    bytes
}

#[test]
fn parts_of_any_size_are_gathered_and_scattered() {
    with_all(Collective::Gather, |rank, form| {
        let (me, size) = (rank.rank(), rank.size());
        let sizes: Vec<usize> = (0..size).map(uneven).collect();
        let total: usize = sizes.iter().map(|len| len + 3).sum();
        for (root, in_place) in roots(size).flat_map(|root| [(root, false), (root, true)]) {
            let at_root = me == root;
            let ours = pattern(uneven(me), me);
            let mut all = vec![0xee; total];
            let parts = cut(&mut all, &sizes);
            if at_root && in_place {
                parts.part(me).unpack(0, &ours);
            }
            let send = (!(at_root && in_place)).then(|| out(&ours));
            let receive = at_root.then(|| parts.clone());
            perform(
                rank,
                Work::Gatherv {
                    send,
                    receive,
                    root: root as i32,
                },
                form,
            );
            if at_root {
                for from in 0..size {
                    assert!(
                        bytes_of(&parts.part(from)) == pattern(uneven(from), from),
                        "from {from} to {root}"
                    );
                }
                assert!(
                    all.iter().rev().take(3).all(|&byte| byte == 0xee),
                    "gaps were written to"
                );
            }

            let mut got = vec![0; uneven(me)];
            let send = at_root.then(|| parts.clone());
            let receive = (!(at_root && in_place)).then(|| room(&mut got));
            perform(
                rank,
                Work::Scatterv {
                    send,
                    receive,
                    root: root as i32,
                },
                form,
            );
            assert!(at_root && in_place || got == ours, "from {root}");
        }
    });
}

#[test]
fn allgather_gives_all_to_all() {
    with_all(Collective::Allgather, |rank, form| {
        let (me, size) = (rank.rank(), rank.size());
        for (len, in_place) in SIZES
            .into_iter()
            .flat_map(|len| [(len, false), (len, true)])
        {
            let ours = pattern(len, me);
            let whole: Vec<u8> = (0..size).flat_map(|from| pattern(len, from)).collect();
            let mut all = vec![0; size * len];
            all[me * len..][..len].copy_from_slice(if in_place { &ours } else { &whole[..len] });
            let receive = Blocks::even(room(&mut all), size);
            perform(
                rank,
                Work::Allgather {
                    send: (!in_place).then(|| out(&ours)),
                    receive,
                },
                form,
            );
            assert!(all == whole, "{len} bytes");
        }
        let sizes: Vec<usize> = (0..size).map(uneven).collect();
        for in_place in [false, true] {
            let ours = pattern(uneven(me), me);
            let mut all = vec![0xee; sizes.iter().map(|len| len + 3).sum()];
            let receive = cut(&mut all, &sizes);
            if in_place {
                receive.part(me).unpack(0, &ours);
            }
            let send = (!in_place).then(|| out(&ours));
            perform(
                rank,
                Work::Allgather {
                    send,
                    receive: receive.clone(),
                },
                form,
            );
            for from in 0..size {
                assert!(
                    bytes_of(&receive.part(from)) == pattern(uneven(from), from),
                    "from {from}"
                );
            }
        }
    });
}

#[test]
fn alltoall_gives_each_its_own() {
    with_all(Collective::Alltoall, |rank, form| {
        let (me, size) = (rank.rank(), rank.size());
        let what = |from: usize, to: usize| from * 16 + to;
        for (len, in_place) in SIZES
            .into_iter()
            .flat_map(|len| [(len, false), (len, true)])
        {
            let give: Vec<u8> = (0..size)
                .flat_map(|to| pattern(len, what(me, to)))
                .collect();
            let expected: Vec<u8> = (0..size)
                .flat_map(|from| pattern(len, what(from, me)))
                .collect();
            let mut take = if in_place {
                give.clone()
            } else {
                vec![0; size * len]
            };
            let send = (!in_place).then(|| Blocks::even(out(&give), size));
            let receive = Blocks::even(room(&mut take), size);
            perform(rank, Work::Alltoall { send, receive }, form);
            assert!(take == expected, "{len} bytes");
        }
        for in_place in [false, true] {
            // In place, blocks to and from a rank are of one size.
            let len =
                |from: usize, to: usize| uneven(if in_place { from + to } else { from + 3 * to });
            let given: Vec<usize> = (0..size).map(|to| len(me, to)).collect();
            let taken: Vec<usize> = (0..size).map(|from| len(from, me)).collect();
            let fill = |parts: &Blocks| {
                for to in 0..size {
                    parts
                        .part(to)
                        .unpack(0, &pattern(len(me, to), what(me, to)));
                }
            };
            let mut give = vec![0xee; given.iter().map(|len| len + 3).sum()];
            let mut take = vec![0xee; taken.iter().map(|len| len + 3).sum()];
            let (send, receive) = (cut(&mut give, &given), cut(&mut take, &taken));
            fill(if in_place { &receive } else { &send });
            let send = (!in_place).then_some(send);
            perform(
                rank,
                Work::Alltoall {
                    send,
                    receive: receive.clone(),
                },
                form,
            );
            for from in 0..size {
                assert!(
                    bytes_of(&receive.part(from)) == pattern(len(from, me), what(from, me)),
                    "from {from}"
                );
            }
        }
    });
}

/// A reduction to check: the values of a rank, and their combination.
pub(super) struct Sample {
    pub(super) ty: Type,
    pub(super) op: Operation,
    /// Bytes of packed data in one element.
    combine: fn(&mut [u8], &[u8]),
}

pub(super) fn samples() -> Vec<Sample> {
    let sum = |low: &mut [u8], high: &[u8]| {
        for (low, high) in low.chunks_exact_mut(8).zip(high.chunks_exact(8)) {
            let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
            low.copy_from_slice(&number(low).wrapping_add(number(high)).to_ne_bytes());
        }
    };
    let max = |low: &mut [u8], high: &[u8]| {
        low.iter_mut()
            .zip(high)
            .for_each(|(low, high)| *low = (*low).max(*high))
    };
    let (dense, spread) = (
        Type::contiguous(4, &Predefined::INT.into()).unwrap(),
        gapped(),
    );
    vec![
        Sample {
            ty: Predefined::UINT64_T.into(),
            op: Operation::Predefined(Op::Sum),
            combine: sum,
        },
        Sample {
            ty: Predefined::UINT8_T.into(),
            op: Operation::Predefined(Op::Max),
            combine: max,
        },
        Sample {
            ty: dense,
            op: matrix_product(false),
            combine: multiply,
        },
        Sample {
            ty: spread,
            op: matrix_product(true),
            combine: multiply,
        },
    ]
}

impl Sample {
    pub(super) fn values(&self, rank: usize, count: usize) -> Vec<u8> {
        pattern(count * self.ty.size(), rank + 1)
    }

    /// The combined values of these ranks, in order.
    pub(super) fn combined(&self, ranks: std::ops::Range<usize>, count: usize) -> Vec<u8> {
        let mut all = ranks.map(|rank| self.values(rank, count));
        let mut low = all.next().unwrap();
        for high in all {
            (self.combine)(&mut low, &high);
        }
        low
    }

    /// Memory for elements that holds these values.
    pub(super) fn memory(&self, count: usize, values: Option<&[u8]>) -> (Vec<u8>, Elements) {
        let mut memory = vec![0xee; count * self.ty.extent() as usize];
        let elements = elements(&mut memory, count, &self.ty);
        if let Some(values) = values {
            elements.buffer().unpack(0, values);
        }
        (memory, elements)
    }
}

const COUNTS: [usize; 3] = [0, 2, 1303];

/// Every sample and count, in place and not.
fn reductions(mut each: impl FnMut(&Sample, usize, bool)) {
    for sample in samples() {
        for count in COUNTS {
            for in_place in [false, true] {
                each(&sample, count, in_place);
            }
        }
    }
}

#[test]
fn reduce_combines_in_the_order_of_ranks() {
    with_all(Collective::Reduce, |rank, form| {
        let (me, size) = (rank.rank(), rank.size());
        reductions(|sample, count, in_place| {
            let root = (count + usize::from(in_place)) % size;
            let ours = sample.values(me, count);
            let (_send, send) = sample.memory(count, Some(&ours));
            let (_receive, receive) =
                sample.memory(count, (in_place && me == root).then_some(&ours[..]));
            let reduction = Reduction {
                send: (me != root || !in_place).then_some(send.clone()),
                receive: (me == root).then_some(receive.clone()),
                op: sample.op.clone(),
            };
            perform(
                rank,
                Work::Reduce {
                    reduction,
                    root: root as i32,
                },
                form,
            );
            if me == root {
                assert!(
                    bytes_of(&receive.buffer()) == sample.combined(0..size, count),
                    "{count} to {root}"
                );
            }
            assert!(
                bytes_of(&send.buffer()) == ours,
                "the contribution was changed"
            );
        });
    });
}

#[test]
fn allreduce_combines_in_the_order_of_ranks() {
    with_all(Collective::Allreduce, |rank, form| {
        let (me, size) = (rank.rank(), rank.size());
        reductions(|sample, count, in_place| {
            let ours = sample.values(me, count);
            let (_send, send) = sample.memory(count, Some(&ours));
            let (_receive, receive) = sample.memory(count, in_place.then_some(&ours[..]));
            let reduction = Reduction {
                send: (!in_place).then_some(send.clone()),
                receive: Some(receive.clone()),
                op: sample.op.clone(),
            };
            perform(rank, Work::Allreduce(reduction), form);
            assert!(
                bytes_of(&receive.buffer()) == sample.combined(0..size, count),
                "{count}"
            );
            assert!(
                bytes_of(&send.buffer()) == ours,
                "the contribution was changed"
            );
        });
    });
}

#[test]
fn reduce_scatter_gives_each_its_part() {
    with_all(Collective::ReduceScatter, |rank, form| {
        let (me, size) = (rank.rank(), rank.size());
        reductions(|sample, count, in_place| {
            let each: Box<[usize]> = (0..size)
                .map(|rank| if rank % 3 == 1 { 0 } else { count / (rank + 1) })
                .collect();
            for counts in [Counts::Even(count / 4), Counts::Each(each)] {
                let total = counts.elements(0..size).len();
                let part = counts.elements(me..me + 1);
                let ours = sample.values(me, total);
                let (_send, send) = sample.memory(total, Some(&ours));
                let room = if in_place { total } else { part.len() };
                let (_receive, receive) = sample.memory(room, in_place.then_some(&ours[..]));
                let reduction = Reduction {
                    send: (!in_place).then_some(send.clone()),
                    receive: Some(receive.clone()),
                    op: sample.op.clone(),
                };
                perform(rank, Work::ReduceScatter { reduction, counts }, form);
                let bytes = part.start * sample.ty.size()..part.end * sample.ty.size();
                let got = bytes_of(&receive.part(0, part.len()).buffer());
                assert!(got == sample.combined(0..size, total)[bytes], "{count}");
                assert!(
                    bytes_of(&send.buffer()) == ours,
                    "the contribution was changed"
                );
            }
        });
    });
}

#[test]
fn scans_combine_the_ranks_before() {
    with_all(Collective::Scan, |rank, form| {
        let me = rank.rank();
        reductions(|sample, count, in_place| {
            for exclusive in [false, true] {
                let ours = sample.values(me, count);
                let (_send, send) = sample.memory(count, Some(&ours));
                let (_receive, receive) = sample.memory(count, in_place.then_some(&ours[..]));
                let reduction = Reduction {
                    send: (!in_place).then_some(send.clone()),
                    receive: Some(receive.clone()),
                    op: sample.op.clone(),
                };
                perform(
                    rank,
                    Work::Scan {
                        reduction,
                        exclusive,
                    },
                    form,
                );
                if !exclusive || me > 0 {
                    let ranks = 0..me + usize::from(!exclusive);
                    assert!(
                        bytes_of(&receive.buffer()) == sample.combined(ranks, count),
                        "{count} {exclusive}"
                    );
                }
                assert!(
                    bytes_of(&send.buffer()) == ours,
                    "the contribution was changed"
                );
            }
        });
    });
}
