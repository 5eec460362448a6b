//! Signatures: all members of an operation derive one set of facts from their own arguments.

use datatype::{Op, Pool, Predefined};

use super::*;
use crate::coll::calls::Work;

const SIZE: usize = 5;
const ROOT: usize = 3;

/// Memory for the arguments of one rank.
struct Memory(Pool);

impl Memory {
    fn vector(&mut self, count: usize) -> Elements {
        let ty = Predefined::INT64_T.into();
        self.0.elements(count, &ty).unwrap()
    }

    fn block(&mut self) -> Option<Buffer> {
        Some(self.vector(2).buffer())
    }

    fn blocks(&mut self) -> Blocks {
        Blocks::even(self.vector(2 * SIZE).buffer(), SIZE)
    }

    fn reduction(&mut self, gets: bool, op: Operation) -> Reduction {
        Reduction {
            send: Some(self.vector(2 * SIZE)),
            receive: gets.then(|| self.vector(2 * SIZE)),
            op,
        }
    }
}

/// Operations with different signatures, as member `me` calls them.
fn works(me: usize, op: &Operation) -> Vec<Work> {
    let (mut memory, root) = (Memory(Pool::default()), ROOT as i32);
    let is_root = me == ROOT;
    vec![
        Work::Barrier,
        Work::Bcast {
            buffer: memory.vector(2).buffer(),
            root,
        },
        Work::Gather {
            send: memory.block(),
            receive: is_root.then(|| memory.blocks()),
            root,
        },
        Work::Scatter {
            send: is_root.then(|| memory.blocks()),
            receive: memory.block(),
            root,
        },
        Work::Allgather {
            send: memory.block(),
            receive: memory.blocks(),
        },
        Work::Alltoall {
            send: Some(memory.blocks()),
            receive: memory.blocks(),
        },
        Work::Reduce {
            reduction: memory.reduction(is_root, op.clone()),
            root,
        },
        Work::Allreduce(memory.reduction(true, op.clone())),
        Work::ReduceScatter {
            reduction: memory.reduction(true, op.clone()),
            counts: Counts::Even(2),
        },
    ]
}

fn facts(me: usize) -> Vec<(Collective, usize, usize)> {
    let works = works(me, &Operation::Predefined(Op::Sum));
    let facts = works.iter().map(|work| work.shared(me, SIZE).unwrap());
    facts
        .map(|it| (it.collective, it.bytes, it.published))
        .collect()
}

#[test]
fn all_members_see_the_same_facts() {
    use Collective::*;
    let (block, vector) = (16, 16 * SIZE);
    let expected = [
        (Barrier, 0, 0),
        (Bcast, block, block),
        (Gather, block, block),
        (Scatter, block, block * (SIZE - 1)),
        (Allgather, block * SIZE, block),
        (Alltoall, block, block * (SIZE - 1)),
        (Reduce, vector, vector),
        (Allreduce, vector, vector),
        (ReduceScatter, vector, vector),
    ];
    for me in 0..SIZE {
        assert_eq!(facts(me), expected, "as member {me} sees them");
    }
}

#[test]
fn whoever_reads_is_read_by_nobody_unless_all_have_one_part() {
    for me in 0..SIZE {
        for work in works(me, &Operation::Predefined(Op::Sum)) {
            let signature = work.signature().unwrap();
            let reads = !signature.sources(me, SIZE).is_empty();
            match signature.root {
                Root::None => assert!(reads && signature.is_read(me), "{work:?}"),
                _ => assert_ne!(reads, signature.is_read(me), "{work:?}"),
            }
        }
    }
}

#[test]
fn sizes_that_others_do_not_know_share_no_memory() {
    let mut memory = Memory(Pool::default());
    let parts = [1, 2, 3, 4, 5].map(|count| memory.vector(count).buffer());
    let uneven = Blocks::Each(Box::new(parts));
    let alltoall = Work::Alltoall {
        send: Some(uneven.clone()),
        receive: uneven,
    };
    assert!(alltoall.shared(0, SIZE).is_none());
    let gather = Work::Gatherv {
        send: memory.block(),
        receive: None,
        root: ROOT as i32,
    };
    assert!(gather.shared(0, SIZE).is_none());
}
