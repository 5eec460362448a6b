//! Collectives on modelled machines of several hosts with any numbers of ranks: every algorithm of
//! the table gives the result of one process, on communicators of any members in any order, under
//! faults and over several rails. `SEED=n` runs the case of seed n only, `SEEDS=n` those of the
//! first n seeds. Each seed is printed before it runs.

use std::sync::{Arc, Mutex};

use crate::collectives::{FORMS, Form, Sample, bytes_of, perform_on, samples};
use crate::common::modelled::{Keep, play, system};
use crate::common::{out, pattern, random_program, room};
use model::config::MachineConfig;
use model::{Faults, IntraHost};
use mpi::algorithms::{self, Collective};
use mpi::coll::{Blocks, Counts, Reduction, Work};
use mpi::{Rank, UNDEFINED};
use sim::Random;

/// The last two have several rails, and hosts that differ.
const MACHINES: [&str; 5] = ["qdr", "edr", "mpich2-2003", "2xqdr", "2x1-qdr"];

/// Random hosts of ranks, numbered in the order of their first ranks: in blocks or in any order.
fn hosts(random: &mut Random, ranks: usize) -> Vec<u32> {
    let most = 1 + random.below(4) as u32;
    let mut hosts: Vec<u32> = (0..ranks)
        .map(|_| random.below(u64::from(most)) as u32)
        .collect();
    if random.below(3) > 0 {
        hosts.sort_unstable();
    }
    let mut seen = Vec::new();
    for host in &mut hosts {
        let number = seen.iter().position(|other| other == host);
        *host = number.unwrap_or_else(|| {
            seen.push(*host);
            seen.len() - 1
        }) as u32;
    }
    hosts
}

/// An algorithm for each collective, or the choice of the table.
fn settings(random: &mut Random) -> Vec<(&'static str, &'static str)> {
    let mut wishes = Vec::new();
    for &collective in Collective::ALL {
        let rows = algorithms::rows(collective);
        if let Some(row) = rows.get(random.below(rows.len() as u64 + 2) as usize) {
            wishes.push(format!("{}={}", collective.name(), row.algorithm.name()));
        }
    }
    let arity = ["auto", "1", "2", "3", "8"][random.below(5) as usize];
    vec![
        ("FISHPLATE_COLLECTIVES", wishes.join(",").leak()),
        ("FISHPLATE_TREE_ARITY", arity),
    ]
}

fn faults(random: &mut Random) -> Faults {
    let mut faults = Faults {
        timeout: 2_000_000_000,
        rnr_retries: 0,
        ..Faults::default()
    };
    if random.below(3) == 0 {
        faults.loss = random.below(5_000) as u32;
    }
    if random.below(3) == 0 {
        faults.scatter = Some(1 + random.below(3_000_000));
    }
    faults
}

/// A communicator of some ranks of the job, as one of its members calls collectives on it.
struct Group<'a> {
    rank: &'a Arc<Rank>,
    comm: u32,
    me: usize,
    size: usize,
}

#[test]
fn every_algorithm_works_on_any_hosts() {
    for seed in random_program::seeds(30) {
        eprintln!("seed {seed}");
        let mut random = Random::new(seed ^ 0xc011);
        let ranks = 2 + random.below(9) as usize;
        let system = system(MACHINES[random.below(MACHINES.len() as u64) as usize]);
        let placement = hosts(&mut random, ranks);
        let count = placement.iter().max().unwrap() + 1;
        let mut scene = MachineConfig::new(&system, count.max(2) as usize, 1, seed).unwrap();
        scene.hosts = placement;
        scene.intra_host = [IntraHost::Memory, IntraHost::Hca][random.below(2) as usize];
        scene.faults = faults(&mut random);
        let settings = settings(&mut random);
        if random_program::only_seed().is_some() {
            eprintln!("hosts {:?}, {settings:?}, {:?}", scene.hosts, scene.faults);
        }
        play(scene, settings, Keep::Nothing, move |rank| {
            program(rank, seed)
        });
    }
}

/// Collectives of a random communicator.
fn program(rank: &Arc<Rank>, seed: u64) {
    let mut random = Random::new(seed);
    let parts = 1 + random.below(3);
    let reversed = random.below(2) == 1;
    let colors: Vec<u64> = (0..rank.size()).map(|_| random.below(parts)).collect();
    let left_out = random.below(8) == 0 && rank.size() > 2;
    let color = match left_out && rank.rank() == 1 {
        true => UNDEFINED,
        false => colors[rank.rank()] as i32,
    };
    let key = rank.rank() as i32 * if reversed { -1 } else { 1 };
    let world = mpi::comm::WORLD;
    let comm = rank
        .comm_split("MPI_Comm_split", world, color, key)
        .unwrap();
    if color == UNDEFINED {
        return;
    }
    let (me, size) = {
        let state = rank.lock();
        let core = &state.objects().comms().get(comm).unwrap().core;
        (core.rank, core.size())
    };
    let group = Group {
        rank,
        comm,
        me,
        size,
    };
    for _ in 0..6 {
        let form = FORMS[random.below(3) as usize];
        let root = random.below(size as u64) as usize;
        let len = [0, 1, 40, 3000, 20_000, 70_000][random.below(6) as usize];
        match random.below(10) {
            0 => group.barrier(form),
            9 => group.gatherv_and_scatterv(form, root, len),
            1 => group.bcast(form, root, len * 8),
            2 => group.gather_and_scatter(form, root, len),
            3 => group.allgather(form, len, random.below(2) == 0),
            4 => group.alltoall(form, len.min(20_000)),
            kind => group.reduction(form, root, len / 32, kind),
        }
    }
    rank.comm_free(comm).unwrap();
}

impl Group<'_> {
    fn perform(&self, work: Work, form: Form) {
        perform_on(self.comm, self.rank, work, form);
    }

    fn barrier(&self, form: Form) {
        self.perform(Work::Barrier, form);
    }

    fn bcast(&self, form: Form, root: usize, len: usize) {
        let sent = pattern(len, root);
        let mut bytes = match self.me == root {
            true => sent.clone(),
            false => vec![0; len],
        };
        let work = Work::Bcast {
            buffer: room(&mut bytes),
            root: root as i32,
        };
        self.perform(work, form);
        assert!(bytes == sent, "broadcast of {len} bytes from {root}");
    }

    fn gather_and_scatter(&self, form: Form, root: usize, len: usize) {
        let at_root = self.me == root;
        let ours = pattern(len, self.me);
        let whole: Vec<u8> = (0..self.size).flat_map(|from| pattern(len, from)).collect();
        let mut all = vec![0; if at_root { self.size * len } else { 0 }];
        let gather = Work::Gather {
            send: Some(out(&ours)),
            receive: at_root.then(|| Blocks::even(room(&mut all), self.size)),
            root: root as i32,
        };
        self.perform(gather, form);
        assert!(!at_root || all == whole, "gather of {len} bytes to {root}");
        let mut got = vec![0; len];
        let scatter = Work::Scatter {
            send: at_root.then(|| Blocks::even(out(&whole), self.size)),
            receive: Some(room(&mut got)),
            root: root as i32,
        };
        self.perform(scatter, form);
        assert!(got == ours, "scatter of {len} bytes from {root}");
    }

    fn gatherv_and_scatterv(&self, form: Form, root: usize, len: usize) {
        let at_root = self.me == root;
        // Some blocks are long, some short or empty.
        let len_of = |from: usize| len / [1, 40, len + 1, 3][(from + root) % 4];
        let ours = pattern(len_of(self.me), self.me);
        let whole: Vec<u8> = (0..self.size)
            .flat_map(|from| pattern(len_of(from), from))
            .collect();
        let blocks = |memory: &mut [u8]| {
            let mut at = 0;
            let block = |from: usize| {
                at += len_of(from);
                room(&mut memory[at - len_of(from)..at])
            };
            Blocks::Each((0..self.size).map(block).collect())
        };
        let mut all = vec![0; whole.len()];
        let gather = Work::Gatherv {
            send: Some(out(&ours)),
            receive: at_root.then(|| blocks(&mut all)),
            root: root as i32,
        };
        self.perform(gather, form);
        assert!(!at_root || all == whole, "gatherv of {len} bytes to {root}");
        let mut got = vec![0; ours.len()];
        let mut given = whole.clone();
        let scatter = Work::Scatterv {
            send: at_root.then(|| blocks(&mut given)),
            receive: Some(room(&mut got)),
            root: root as i32,
        };
        self.perform(scatter, form);
        assert!(got == ours, "scatterv of {len} bytes from {root}");
    }

    fn allgather(&self, form: Form, len: usize, even: bool) {
        let len_of = |from: usize| if even { len } else { len / (from + 1) };
        let ours = pattern(len_of(self.me), self.me);
        let whole: Vec<u8> = (0..self.size)
            .flat_map(|from| pattern(len_of(from), from))
            .collect();
        let mut all = vec![0; whole.len()];
        let receive = match even {
            true => Blocks::even(room(&mut all), self.size),
            false => {
                let mut at = 0;
                let block = |from: usize| {
                    at += len_of(from);
                    room(&mut all[at - len_of(from)..at])
                };
                Blocks::Each((0..self.size).map(block).collect())
            }
        };
        let work = Work::Allgather {
            send: Some(out(&ours)),
            receive,
        };
        self.perform(work, form);
        assert!(all == whole, "allgather of {len} bytes");
    }

    fn alltoall(&self, form: Form, len: usize) {
        let block = |from: usize, to: usize| pattern(len, from * 16 + to);
        let all = |block: &dyn Fn(usize) -> Vec<u8>| -> Vec<u8> {
            (0..self.size).flat_map(block).collect()
        };
        let give = all(&|to| block(self.me, to));
        let mut take = vec![0; give.len()];
        let work = Work::Alltoall {
            send: Some(Blocks::even(out(&give), self.size)),
            receive: Blocks::even(room(&mut take), self.size),
        };
        self.perform(work, form);
        assert!(
            take == all(&|from| block(from, self.me)),
            "alltoall of {len} bytes"
        );
    }

    fn reduction(&self, form: Form, root: usize, count: usize, kind: u64) {
        for sample in samples() {
            let count = count * self.size;
            let ours = sample.values(self.me, count);
            let (_send, send) = sample.memory(count, Some(&ours));
            let (_receive, receive) = sample.memory(count, None);
            let reduction = Reduction {
                send: Some(send.clone()),
                receive: Some(receive.clone()),
                op: sample.op.clone(),
            };
            let (work, ranks, elements) = self.work_of(reduction, root, count, kind);
            self.perform(work, form);
            if let Some(ranks) = ranks {
                let size = sample.ty.size();
                let expected = sample.combined(ranks, count);
                let got = bytes_of(&receive.part(0, elements.len()).buffer());
                let expected = &expected[elements.start * size..elements.end * size];
                assert!(got == expected, "reduction {kind} of {count} elements");
            }
            assert!(
                bytes_of(&send.buffer()) == ours,
                "the contribution was changed"
            );
        }
    }

    /// A reduction, the ranks whose operands this rank gets, and the elements that it gets.
    fn work_of(
        &self,
        reduction: Reduction,
        root: usize,
        count: usize,
        kind: u64,
    ) -> (Work, Option<std::ops::Range<usize>>, std::ops::Range<usize>) {
        let (all, each) = (0..self.size, count / self.size);
        match kind {
            5 => {
                let at_root = self.me == root;
                let reduction = Reduction {
                    receive: reduction.receive.filter(|_| at_root),
                    ..reduction
                };
                let root = root as i32;
                (
                    Work::Reduce { reduction, root },
                    at_root.then_some(all),
                    0..count,
                )
            }
            6 => (Work::Allreduce(reduction), Some(all), 0..count),
            7 => {
                let counts = Counts::Even(each);
                let own = self.me * each..(self.me + 1) * each;
                (Work::ReduceScatter { reduction, counts }, Some(all), own)
            }
            _ => {
                let exclusive = each % 2 == 0;
                let before = 0..self.me + usize::from(!exclusive);
                let work = Work::Scan {
                    reduction,
                    exclusive,
                };
                (work, (!before.is_empty()).then_some(before), 0..count)
            }
        }
    }
}

/// Runs an operation on two hosts of two ranks each. Only `fails` has an error, whose text it
/// returns.
fn lengths_that_differ(fails: usize, work: impl Fn(usize) -> Work + 'static) -> String {
    let mut scene = MachineConfig::new(&system("edr"), 2, 2, 1).unwrap();
    scene.hosts = vec![0, 0, 1, 1];
    let said = Arc::new(Mutex::new(String::new()));
    let found = said.clone();
    let settings = vec![(
        "FISHPLATE_COLLECTIVES",
        "gather=two-level,scatter=two-level",
    )];
    play(scene, settings, Keep::Nothing, move |rank| {
        let done = rank.collective("MPI_Test", &work(rank.rank()), mpi::comm::WORLD);
        match (rank.rank() == fails, done) {
            (true, Err(error)) => *found.lock().unwrap() = error.to_string(),
            (false, Ok(())) => {}
            (_, done) => panic!("rank {}: {done:?}", rank.rank()),
        }
    });
    let said = said.lock().unwrap();
    said.clone()
}

#[test]
fn blocks_of_other_lengths_than_the_root_expects_are_an_error() {
    // Together, the blocks of the second host are as long as the root expects.
    let all = |lengths: [usize; 4]| {
        let block = |bytes: usize| room(vec![0; bytes].leak());
        Blocks::Each(lengths.map(block).into())
    };
    let said = lengths_that_differ(0, move |me| Work::Gatherv {
        send: Some(out(&[1; 40][..[10, 20, 30, 40][me]])),
        receive: (me == 0).then(|| all([10, 20, 40, 30])),
        root: 0,
    });
    assert!(
        said.contains("rank 2 of the communicator sent 30 where 40 bytes"),
        "{said}"
    );
    let said = lengths_that_differ(3, move |me| Work::Scatterv {
        send: (me == 0).then(|| all([10, 20, 30, 30])),
        receive: Some(room(vec![0; [10, 20, 30, 40][me]].leak())),
        root: 0,
    });
    assert!(said.contains("where 48 bytes are expected"), "{said}");
}

/// The samples of reductions have both kinds of operations.
#[test]
fn samples_have_operations_of_both_kinds() {
    let commutative = |sample: &Sample| sample.op.is_commutative();
    let (yes, no): (Vec<_>, Vec<_>) = samples().into_iter().partition(commutative);
    assert!(!yes.is_empty() && !no.is_empty());
}
