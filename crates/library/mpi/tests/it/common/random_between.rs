//! Random collective operations between two groups, with the results that one process computes.

use datatype::Elements;
use mpi::coll::{Counts, Reduction, Work};
use mpi::{PROC_NULL, ROOT};
use sim::Random;

use super::random_collectives::{Case, Kind, Prepared};
use super::random_reductions::{Results, sample};

/// The kinds of operations that exist between two groups.
pub(crate) fn kinds() -> Vec<Kind> {
    let one_group = [Kind::Scan, Kind::Exscan];
    let kinds = Kind::ALL.into_iter();
    kinds.filter(|kind| !one_group.contains(kind)).collect()
}

/// One operation, as all members of both groups know it.
#[derive(Clone, Debug)]
pub(crate) struct BetweenCase {
    kind: Kind,
    /// The operation as each group gives data.
    sides: [Case; 2],
    /// The group of the root.
    root_side: usize,
    /// The root's number in its group.
    root: usize,
}

/// The part of a rank in an operation with a root.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Root,
    Other,
    Nobody,
}

impl BetweenCase {
    /// A random operation of this kind between groups of these sizes, of vectors or blocks of at
    /// most `most` bytes.
    pub(crate) fn new(
        kind: Kind,
        sizes: [usize; 2],
        most: usize,
        random: &mut Random,
    ) -> BetweenCase {
        let mut first = Case::new(kind, sizes[0], random);
        first.in_place = false;
        first.bytes = first.bytes.min(most);
        if matches!(kind, Kind::ReduceScatter | Kind::ReduceScatterBlock) {
            // Both groups get all elements, in equal parts.
            let element = sample(first.sample).ty.size();
            let unit = element * sizes[0] * sizes[1];
            first.bytes = first.bytes / unit * unit;
        }
        let mut second = Case {
            seed: random.word(),
            size: sizes[1],
            ..first.clone()
        };
        if matches!(kind, Kind::Allgather | Kind::Alltoall) && random.below(2) == 0 {
            second.bytes = random.below(most as u64 / 2) as usize;
        }
        let root_side = random.below(2) as usize;
        BetweenCase {
            kind,
            root_side,
            root: random.below(sizes[root_side] as u64) as usize,
            sides: [first, second],
        }
    }

    /// The operation with this root.
    pub(crate) fn rooted(self, root_side: usize, root: usize) -> BetweenCase {
        BetweenCase {
            root_side,
            root,
            ..self
        }
    }

    /// Arguments and expected results of member `me` of a group.
    pub(crate) fn prepare(&self, side: usize, me: usize, results: &Results) -> Prepared {
        let mut prepared = Prepared::new(self.sides[side].clone(), me);
        let member = Member {
            case: self,
            side,
            me,
        };
        prepared.work = match self.kind {
            Kind::Barrier => Work::Barrier,
            Kind::Bcast => member.bcast(&mut prepared),
            Kind::Gather | Kind::Gatherv => member.gather(&mut prepared),
            Kind::Scatter | Kind::Scatterv => member.scatter(&mut prepared),
            Kind::Allgather | Kind::Allgatherv => member.allgather(&mut prepared),
            Kind::Alltoall | Kind::Alltoallv => member.alltoall(&mut prepared),
            _ => member.reduction(&mut prepared, results),
        };
        prepared
    }

    /// Bytes of a block that a group gives.
    fn block(&self, side: usize, number: usize) -> usize {
        let case = &self.sides[side];
        match self.is_uneven() {
            true => case.uneven(number),
            false => case.rounded(case.bytes),
        }
    }

    fn is_uneven(&self) -> bool {
        use Kind::*;
        matches!(self.kind, Gatherv | Scatterv | Allgatherv | Alltoallv)
    }
}

/// A member of a group.
struct Member<'a> {
    case: &'a BetweenCase,
    side: usize,
    me: usize,
}

impl Member<'_> {
    fn there(&self) -> usize {
        1 - self.side
    }

    fn remote_size(&self) -> usize {
        self.case.sides[self.there()].size
    }

    /// This rank's part, and the root as it names it.
    fn root(&self) -> (Part, i32) {
        match (self.case.root_side == self.side, self.case.root == self.me) {
            (true, true) => (Part::Root, ROOT),
            (true, false) => (Part::Nobody, PROC_NULL),
            _ => (Part::Other, self.case.root as i32),
        }
    }

    /// The data of a block that a group gives.
    fn data(&self, side: usize, number: usize) -> Vec<u8> {
        self.case.sides[side].data(number, self.case.block(side, number))
    }

    fn bcast(&self, prepared: &mut Prepared) -> Work {
        let (part, root) = self.root();
        let case = &self.case.sides[self.case.root_side];
        let data = case.data(self.case.root, case.rounded(case.bytes));
        let buffer = match part {
            Part::Root => prepared.source(data),
            Part::Other => {
                let buffer = prepared.room(data.len());
                prepared.checks.push((buffer.clone(), data));
                buffer
            }
            // Memory that must stay.
            Part::Nobody => prepared.source(case.data(self.me, 48)),
        };
        Work::Bcast { buffer, root }
    }

    fn gather(&self, prepared: &mut Prepared) -> Work {
        let (part, root) = self.root();
        let send = match part {
            Part::Other => Some(prepared.source(self.data(self.side, self.me))),
            _ => None,
        };
        let from = 0..self.remote_size();
        let receive = (part == Part::Root).then(|| {
            let sizes = from.clone().map(|of| self.case.block(self.there(), of));
            let sizes: Vec<usize> = sizes.collect();
            prepared.all_blocks(&sizes, self.case.is_uneven())
        });
        if let Some(all) = &receive {
            let expected = from.map(|of| (all.part(of), self.data(self.there(), of)));
            prepared.checks.extend(expected);
        }
        match self.case.is_uneven() {
            true => Work::Gatherv {
                send,
                receive,
                root,
            },
            false => Work::Gather {
                send,
                receive,
                root,
            },
        }
    }

    fn scatter(&self, prepared: &mut Prepared) -> Work {
        let (part, root) = self.root();
        let given = self.case.root_side;
        let send = (part == Part::Root).then(|| {
            let to = 0..self.remote_size();
            let sizes = to.clone().map(|of| self.case.block(given, of));
            let sizes: Vec<usize> = sizes.collect();
            let all = prepared.all_blocks(&sizes, self.case.is_uneven());
            for of in to {
                prepared.fills.push((all.part(of), self.data(given, of)));
                prepared.checks.push((all.part(of), self.data(given, of)));
            }
            all
        });
        let receive = (part == Part::Other).then(|| {
            let data = self.data(given, self.me);
            let ours = prepared.room(data.len());
            prepared.checks.push((ours.clone(), data));
            ours
        });
        match self.case.is_uneven() {
            true => Work::Scatterv {
                send,
                receive,
                root,
            },
            false => Work::Scatter {
                send,
                receive,
                root,
            },
        }
    }

    fn allgather(&self, prepared: &mut Prepared) -> Work {
        let send = Some(prepared.source(self.data(self.side, self.me)));
        let from = 0..self.remote_size();
        let sizes = from.clone().map(|of| self.case.block(self.there(), of));
        let sizes: Vec<usize> = sizes.collect();
        let receive = prepared.all_blocks(&sizes, self.case.is_uneven());
        let expected = from.map(|of| (receive.part(of), self.data(self.there(), of)));
        prepared.checks.extend(expected);
        Work::Allgather { send, receive }
    }

    fn alltoall(&self, prepared: &mut Prepared) -> Work {
        let (here, there) = (self.side, self.there());
        let number = |from: usize, to: usize| from * 100 + to;
        let given = |to: usize| number(self.me, to);
        let taken = |from: usize| number(from, self.me);
        let (remote, uneven) = (0..self.remote_size(), self.case.is_uneven());
        let sizes = remote.clone().map(|to| self.case.block(here, given(to)));
        let sizes: Vec<usize> = sizes.collect();
        let send = prepared.all_blocks(&sizes, uneven);
        let sizes = remote.clone().map(|of| self.case.block(there, taken(of)));
        let sizes: Vec<usize> = sizes.collect();
        let receive = prepared.all_blocks(&sizes, uneven);
        for member in remote {
            let (give, ours) = (send.part(member), self.data(here, given(member)));
            prepared.fills.push((give.clone(), ours.clone()));
            prepared.checks.push((give, ours));
            let theirs = self.data(there, taken(member));
            prepared.checks.push((receive.part(member), theirs));
        }
        let send = Some(send);
        Work::Alltoall { send, receive }
    }

    fn reduction(&self, prepared: &mut Prepared, results: &Results) -> Work {
        let (ours, theirs) = (&self.case.sides[self.side], &self.case.sides[self.there()]);
        let sample = sample(ours.sample);
        let element = sample.ty.size();
        let count = ours.bytes / element;
        let part = match self.case.kind {
            Kind::Reduce => self.root().0,
            _ => Part::Other,
        };
        let gives = part == Part::Other;
        let gets = match self.case.kind {
            Kind::Reduce => part == Part::Root,
            _ => true,
        };
        let counts = match self.case.kind {
            Kind::ReduceScatterBlock => Counts::Even(count / ours.size),
            Kind::ReduceScatter => prepared.uneven_counts(count),
            _ => Counts::Even(0),
        };
        let place = match self.case.kind {
            Kind::ReduceScatter | Kind::ReduceScatterBlock => counts.elements(self.me..self.me + 1),
            _ => 0..count,
        };
        let send: Option<Elements> = gives.then(|| {
            let send = prepared.elements(count, &sample.ty);
            let data = sample.values(ours, self.me, count * element);
            prepared.fills.push((send.buffer(), data.clone()));
            prepared.checks.push((send.buffer(), data));
            send
        });
        let receive = gets.then(|| {
            let receive = prepared.elements(place.len(), &sample.ty);
            let all = results.of(theirs, theirs.size, count * element);
            let bytes = place.start * element..place.end * element;
            let expected = (receive.buffer(), all[bytes].to_vec());
            prepared.checks.push(expected);
            receive
        });
        let reduction = Reduction {
            send,
            receive,
            op: sample.op,
        };
        match self.case.kind {
            Kind::Reduce => Work::Reduce {
                reduction,
                root: self.root().1,
            },
            Kind::Allreduce => Work::Allreduce(reduction),
            _ => Work::ReduceScatter { reduction, counts },
        }
    }
}
