//! Random collective operations, made from a seed, with the results that one process computes.

use std::ops::Range;

use datatype::{Buffer, Elements, Predefined, Type};
use mpi::coll::{Blocks, Counts, Reduction, Work};
use sim::Random;

use super::random_reductions::{PAIR, Results, SAMPLES, sample};
use super::{elements, gapped, room, typed};

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Barrier,
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Reduce,
    Allreduce,
    ReduceScatterBlock,
    ReduceScatter,
    Scan,
    Exscan,
}

impl Kind {
    pub(crate) const ALL: [Kind; 16] = [
        Kind::Barrier,
        Kind::Bcast,
        Kind::Gather,
        Kind::Gatherv,
        Kind::Scatter,
        Kind::Scatterv,
        Kind::Allgather,
        Kind::Allgatherv,
        Kind::Alltoall,
        Kind::Alltoallv,
        Kind::Reduce,
        Kind::Allreduce,
        Kind::ReduceScatterBlock,
        Kind::ReduceScatter,
        Kind::Scan,
        Kind::Exscan,
    ];

    /// Every member gets the data of all, or gives data to all.
    fn is_quadratic(self) -> bool {
        use Kind::*;
        matches!(self, Allgather | Allgatherv | Alltoall | Alltoallv)
    }
}

/// One operation, as all members know it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The seed of its data.
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    /// Members of the communicator.
    pub(crate) size: usize,
    pub(crate) root: usize,
    /// Bytes of packed data: of the vector, or of a block.
    pub(crate) bytes: usize,
    pub(crate) in_place: bool,
    /// The members describe their memory by types that differ.
    pub(super) typed: bool,
    /// The reduction: a number of a sample.
    pub(super) sample: usize,
}

/// Sizes at which the algorithms of shared memory change.
const EDGES: [usize; 9] = [
    952,
    4 << 10,
    8 << 10,
    16 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    384 << 10,
    400 << 10,
];

/// Packed bytes in which every layout and sample has whole elements.
const UNIT: usize = 48;

impl Case {
    /// A random operation of this kind.
    pub(crate) fn new(kind: Kind, size: usize, random: &mut Random) -> Case {
        let most = if kind.is_quadratic() && size > 4 {
            (800 << 10) / size
        } else if matches!(kind, Kind::Scan | Kind::Exscan) {
            40 << 10
        } else {
            400 << 10
        };
        let edge = EDGES[random.below(EDGES.len() as u64) as usize];
        let bytes = match random.below(8) {
            0 => random.below(2) as usize * 8,
            1 => random.below(2_000) as usize,
            2 => edge / size,
            3..=5 => edge + random.below(130) as usize - 64,
            _ => random.below(400 << 10) as usize,
        };
        Case {
            seed: random.word(),
            kind,
            size,
            root: random.below(size as u64) as usize,
            bytes: bytes.min(most),
            in_place: random.below(3) == 0,
            typed: random.below(2) == 0,
            sample: random.below(SAMPLES as u64) as usize,
        }
    }

    /// Bytes of a block whose size depends on a number.
    pub(super) fn uneven(&self, number: usize) -> usize {
        let mut random = Random::new(self.seed ^ (number as u64) << 40);
        let bytes = match random.below(5) {
            0 => 0,
            1 => random.below(200) as usize,
            _ => random.below(self.bytes as u64 + 1) as usize,
        };
        self.rounded(bytes)
    }

    /// The bytes as whole elements of every layout that the members may choose.
    pub(super) fn rounded(&self, bytes: usize) -> usize {
        if self.typed {
            bytes / UNIT * UNIT
        } else {
            bytes
        }
    }

    /// The data of a member, or of a pair of members, as random bytes.
    pub(super) fn data(&self, number: usize, bytes: usize) -> Vec<u8> {
        let mut word = self.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut data = Vec::with_capacity(bytes + 8);
        while data.len() < bytes {
            word = (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ word << 17;
            data.extend_from_slice(&word.to_ne_bytes());
        }
        data.truncate(bytes);
        data
    }

    /// Arguments and expected results of a member.
    pub(crate) fn prepare(&self, me: usize, results: &Results) -> Prepared {
        use Kind::*;
        let prepared = Prepared::new(self.clone(), me);
        match self.kind {
            Barrier => prepared,
            Bcast => prepared.bcast(),
            Gather | Gatherv => prepared.gather(),
            Scatter | Scatterv => prepared.scatter(),
            Allgather | Allgatherv => prepared.allgather(),
            Alltoall | Alltoallv => prepared.alltoall(),
            _ => prepared.reduction(results),
        }
    }
}

/// A member's arguments, memory and expected results.
pub(crate) struct Prepared {
    pub(crate) case: Case,
    pub(super) me: usize,
    pub(crate) work: Work,
    /// Keeps the buffers.
    memory: Vec<Vec<u8>>,
    /// The contents of buffers before each run.
    pub(super) fills: Vec<(Buffer, Vec<u8>)>,
    /// The contents of buffers after each run.
    pub(super) checks: Vec<(Buffer, Vec<u8>)>,
    /// Places of memory with elements of [`gapped`].
    gaps: Vec<usize>,
}

impl Prepared {
    /// No arguments yet.
    pub(super) fn new(case: Case, me: usize) -> Prepared {
        Prepared {
            case,
            me,
            memory: Vec::new(),
            fills: Vec::new(),
            checks: Vec::new(),
            gaps: Vec::new(),
            work: Work::Barrier,
        }
    }

    /// Writes the contributions, and removes the results of the last run.
    pub(crate) fn fill(&self) {
        for (buffer, _) in &self.checks {
            buffer.unpack(0, &vec![0xaa; buffer.len()]);
        }
        for (buffer, bytes) in &self.fills {
            buffer.unpack(0, bytes);
        }
    }

    /// Compares the results with those of one process.
    pub(crate) fn check(&self) {
        let case = &self.case;
        for (buffer, bytes) in &self.checks {
            let mut got = vec![0; buffer.len()];
            buffer.pack(0, &mut got);
            if got != *bytes {
                let wrong = got
                    .iter()
                    .zip(bytes)
                    .position(|(got, wanted)| got != wanted);
                panic!(
                    "member {} has wrong data from byte {wrong:?} on: {case:?}",
                    self.me
                );
            }
        }
        for &at in &self.gaps {
            let clean = |chunk: &[u8]| {
                let gaps = chunk[12..16].iter().chain(&chunk[20..]);
                gaps.into_iter().all(|byte| *byte == 0xee)
            };
            assert!(
                self.memory[at].chunks_exact(32).all(clean),
                "member {} wrote to gaps: {case:?}",
                self.me
            );
        }
    }

    /// Memory for packed bytes, in a layout that depends on the member.
    pub(super) fn room(&mut self, bytes: usize) -> Buffer {
        let layout = match self.case.typed {
            true => (self.case.seed as usize + self.me + self.memory.len()) % 3,
            false => 0,
        };
        let (count, ty, extent) = match layout {
            1 => (bytes / 16, gapped(), 32),
            2 => (bytes / PAIR, Predefined::DOUBLE_INT.into(), 16),
            _ => (bytes, Predefined::BYTE.into(), 1),
        };
        let mut memory = vec![0xee; count * extent];
        let buffer = match layout {
            0 => room(&mut memory),
            _ => typed(&mut memory, count, &ty),
        };
        if layout == 1 {
            self.gaps.push(self.memory.len());
        }
        self.memory.push(memory);
        buffer
    }

    /// Blocks of one size, one after the other.
    fn even(&mut self, bytes: usize, count: usize) -> Blocks {
        Blocks::even(self.room(bytes * count), count)
    }

    /// Blocks of these sizes.
    fn blocks(&mut self, sizes: &[usize]) -> Blocks {
        Blocks::Each(sizes.iter().map(|&bytes| self.room(bytes)).collect())
    }

    /// Memory that has this data before the call and afterwards.
    pub(super) fn source(&mut self, data: Vec<u8>) -> Buffer {
        let buffer = self.room(data.len());
        self.fills.push((buffer.clone(), data.clone()));
        self.checks.push((buffer.clone(), data));
        buffer
    }

    /// This rank's own contribution, which is in its place of the result already or not.
    fn own(&mut self, data: Vec<u8>, place: Option<Buffer>) -> Option<Buffer> {
        match place {
            Some(place) => {
                self.fills.push((place, data));
                None
            }
            None => Some(self.source(data)),
        }
    }

    fn bcast(mut self) -> Prepared {
        let (root, bytes) = (self.case.root, self.case.rounded(self.case.bytes));
        let data = self.case.data(root, bytes);
        let buffer = self.room(bytes);
        if self.me == root {
            self.fills.push((buffer.clone(), data.clone()));
        }
        self.checks.push((buffer.clone(), data));
        let root = root as i32;
        self.work = Work::Bcast { buffer, root };
        self
    }

    /// Sizes of the members' blocks.
    fn sizes(&self, uneven: bool) -> Vec<usize> {
        let case = &self.case;
        let bytes = |member| match uneven {
            true => case.uneven(member),
            false => case.rounded(case.bytes),
        };
        (0..case.size).map(bytes).collect()
    }

    pub(super) fn all_blocks(&mut self, sizes: &[usize], uneven: bool) -> Blocks {
        match uneven {
            true => self.blocks(sizes),
            false => self.even(sizes[0], sizes.len()),
        }
    }

    fn gather(mut self) -> Prepared {
        let (me, case) = (self.me, self.case.clone());
        let uneven = case.kind == Kind::Gatherv;
        let sizes = self.sizes(uneven);
        let at_root = me == case.root;
        let receive = at_root.then(|| self.all_blocks(&sizes, uneven));
        for (member, &bytes) in sizes.iter().enumerate() {
            if let Some(all) = &receive {
                self.checks
                    .push((all.part(member), case.data(member, bytes)));
            }
        }
        let place = receive.as_ref().filter(|_| case.in_place);
        let send = self.own(case.data(me, sizes[me]), place.map(|all| all.part(me)));
        let root = case.root as i32;
        self.work = match uneven {
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
        };
        self
    }

    fn scatter(mut self) -> Prepared {
        let (me, case) = (self.me, self.case.clone());
        let uneven = case.kind == Kind::Scatterv;
        let sizes = self.sizes(uneven);
        let at_root = me == case.root;
        let send = at_root.then(|| self.all_blocks(&sizes, uneven));
        for (member, &bytes) in sizes.iter().enumerate() {
            if let Some(all) = &send {
                let data = case.data(member, bytes);
                self.fills.push((all.part(member), data.clone()));
                self.checks.push((all.part(member), data));
            }
        }
        let receive = (!(at_root && case.in_place)).then(|| self.room(sizes[me]));
        if let Some(ours) = &receive {
            self.checks.push((ours.clone(), case.data(me, sizes[me])));
        }
        let root = case.root as i32;
        self.work = match uneven {
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
        };
        self
    }

    fn allgather(mut self) -> Prepared {
        let (me, case) = (self.me, self.case.clone());
        let uneven = case.kind == Kind::Allgatherv;
        let sizes = self.sizes(uneven);
        let receive = self.all_blocks(&sizes, uneven);
        for (member, &bytes) in sizes.iter().enumerate() {
            self.checks
                .push((receive.part(member), case.data(member, bytes)));
        }
        let place = case.in_place.then(|| receive.part(me));
        let send = self.own(case.data(me, sizes[me]), place);
        self.work = Work::Allgather { send, receive };
        self
    }

    fn alltoall(mut self) -> Prepared {
        let (me, case) = (self.me, self.case.clone());
        let uneven = case.kind == Kind::Alltoallv;
        let bytes = |from: usize, to: usize| match (uneven, case.in_place) {
            (false, _) => case.rounded(case.bytes),
            // Blocks to and from a member are of one size.
            (true, true) => case.uneven(from + to),
            (true, false) => case.uneven(from * case.size + to),
        };
        let data = |from: usize, to: usize| case.data(from * case.size + to, bytes(from, to));
        let taken: Vec<usize> = (0..case.size).map(|from| bytes(from, me)).collect();
        let given: Vec<usize> = (0..case.size).map(|to| bytes(me, to)).collect();
        let receive = self.all_blocks(&taken, uneven);
        let send = (!case.in_place).then(|| self.all_blocks(&given, uneven));
        for member in 0..case.size {
            let give = send.as_ref().unwrap_or(&receive).part(member);
            self.fills.push((give.clone(), data(me, member)));
            if !case.in_place {
                self.checks.push((give, data(me, member)));
            }
            self.checks.push((receive.part(member), data(member, me)));
        }
        self.work = Work::Alltoall { send, receive };
        self
    }

    /// Memory for elements.
    pub(super) fn elements(&mut self, count: usize, ty: &Type) -> Elements {
        let mut memory = vec![0xee; count * ty.extent() as usize];
        let elements = elements(&mut memory, count, ty);
        if ty.extent() == 32 {
            self.gaps.push(self.memory.len());
        }
        self.memory.push(memory);
        elements
    }

    fn reduction(mut self, results: &Results) -> Prepared {
        use Kind::*;
        let (me, case, sample) = (self.me, self.case.clone(), sample(self.case.sample));
        let element = sample.ty.size();
        let count = case.bytes / element;
        let scattered = matches!(case.kind, ReduceScatter | ReduceScatterBlock);
        let counts = match case.kind {
            ReduceScatterBlock => Counts::Even(count / case.size),
            _ => self.uneven_counts(count),
        };
        let count = match case.kind {
            ReduceScatterBlock => count / case.size * case.size,
            _ => count,
        };
        let part: Range<usize> = match scattered {
            true => counts.elements(me..me + 1),
            false => 0..count,
        };
        let gets = case.kind != Reduce || me == case.root;
        let in_place = case.in_place && gets;
        let room = if in_place { count } else { part.len() };
        let receive = gets.then(|| self.elements(room, &sample.ty));
        let ours = sample.values(&case, me, count * element);
        let ranks = match case.kind {
            Scan => me + 1,
            Exscan => me,
            _ => case.size,
        };
        if let Some(receive) = receive.as_ref().filter(|_| ranks > 0) {
            let all = results.of(&case, ranks, count * element);
            let bytes = part.start * element..part.end * element;
            let result = receive.part(0, part.len()).buffer();
            self.checks.push((result, all[bytes].to_vec()));
        }
        let send = match &receive {
            Some(receive) if in_place => {
                self.fills.push((receive.buffer(), ours));
                None
            }
            _ => {
                let send = self.elements(count, &sample.ty);
                self.fills.push((send.buffer(), ours.clone()));
                self.checks.push((send.buffer(), ours));
                Some(send)
            }
        };
        let reduction = Reduction {
            send,
            receive,
            op: sample.op,
        };
        self.work = match case.kind {
            Reduce => Work::Reduce {
                reduction,
                root: case.root as i32,
            },
            Allreduce => Work::Allreduce(reduction),
            Scan | Exscan => Work::Scan {
                reduction,
                exclusive: case.kind == Exscan,
            },
            _ => Work::ReduceScatter { reduction, counts },
        };
        self
    }

    /// Counts that differ and have this sum.
    pub(super) fn uneven_counts(&self, count: usize) -> Counts {
        let mut random = Random::new(self.case.seed);
        let mut left = count;
        let mut counts: Box<[usize]> = (0..self.case.size)
            .map(|_| {
                let part = match random.below(4) {
                    0 => 0,
                    1 => left / 2,
                    _ => random.below(1 + 2 * (count / self.case.size) as u64) as usize,
                };
                let part = part.min(left);
                left -= part;
                part
            })
            .collect();
        counts[self.case.size / 2] += left;
        Counts::Each(counts)
    }
}
