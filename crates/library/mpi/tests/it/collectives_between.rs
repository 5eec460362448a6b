//! Random collectives between two groups of 1 to 5 ranks, in every form, compared with the results
//! of one process. A failure names its seed: `SEED=n` repeats it.

use std::sync::Arc;

use crate::common::modelled::{Keep, play, system};
use crate::common::random_between::{BetweenCase, kinds};
use crate::common::random_collectives::{Kind, Prepared};
use crate::common::random_program::seeds;
use crate::common::random_reductions::Results;
use crate::common::{elements, out, room, run_nodes, run_shared, run_with};
use crate::tcp;
use datatype::{Op, Predefined};
use model::IntraHost;
use model::config::MachineConfig;
use mpi::coll::{Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;
use mpi::request::RequestId;
use mpi::{Class, Mode, PROC_NULL, ROOT, Rank, RemoteLeader};
use sim::Random;

use super::intercommunicators::halves;

const NAME: &str = "MPI_Test";

/// An intercommunicator between two groups of all ranks, as a member sees it.
struct Groups {
    comm: u32,
    side: usize,
    me: usize,
    sizes: [usize; 2],
    /// Most bytes of a vector or block.
    most: usize,
}

impl Groups {
    /// Each group has `sizes` of the ranks, in a random order.
    fn random(rank: &Arc<Rank>, sizes: [usize; 2], most: usize, random: &mut Random) -> Groups {
        let mut order: Vec<usize> = (0..rank.size()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        let place = order.iter().position(|&world| world == rank.rank());
        let place = place.unwrap();
        let side = usize::from(place >= sizes[0]);
        let me = place - side * sizes[0];
        let (color, key) = (side as i32, me as i32);
        let group = rank.comm_split("MPI_Comm_split", WORLD, color, key);
        let leaders = [0, 1].map(|side| random.below(sizes[side] as u64) as usize);
        let there = 1 - side;
        let remote = RemoteLeader {
            peer_comm: WORLD,
            rank: order[there * sizes[0] + leaders[there]] as i32,
            tag: 3,
        };
        let (leader, name) = (leaders[side] as i32, "MPI_Intercomm_create");
        let comm = rank.intercomm_create(name, group.unwrap(), leader, remote);
        Groups {
            comm: comm.unwrap(),
            side,
            me,
            sizes,
            most,
        }
    }

    /// Broadcasts from every root, reductions to all and exchanges, by blocking calls until their members have
    /// agreed on collective buffers, and some more.
    fn blocking(&self, rank: &Arc<Rank>, random: &mut Random) {
        let results = Results::default();
        let run = |case: BetweenCase| {
            let prepared = case.prepare(self.side, self.me, &results);
            prepared.fill();
            rank.collective(NAME, &prepared.work, self.comm).unwrap();
            prepared.check();
        };
        for (side, &size) in self.sizes.iter().enumerate() {
            for root in 0..size {
                for _ in 0..5 {
                    let case = BetweenCase::new(Bcast, self.sizes, self.most, random);
                    run(case.rooted(side, root));
                }
            }
        }
        use Kind::*;
        for kind in [Barrier, Allreduce, Alltoall, Allgather] {
            for _ in 0..8 {
                run(BetweenCase::new(kind, self.sizes, self.most, random));
            }
        }
    }

    /// The arguments of a random operation that has this number among all.
    fn prepare(&self, number: usize, results: &Results, random: &mut Random) -> Prepared {
        let kinds = kinds();
        let kind = kinds[number % kinds.len()];
        let case = BetweenCase::new(kind, self.sizes, self.most, random);
        let prepared = case.prepare(self.side, self.me, results);
        prepared.fill();
        prepared
    }
}

fn finish(rank: &Arc<Rank>, request: RequestId, prepared: &Prepared) {
    let status = rank.wait("MPI_Wait", request).unwrap();
    assert_eq!(status.error, Class::SUCCESS, "{:?}", prepared.case);
    prepared.check();
}

/// Each kind of operation `turns` times: blocking, nonblocking, and persistent, started twice.
fn in_every_form(rank: &Arc<Rank>, groups: &Groups, seed: u64, turns: usize) {
    let (results, mut random) = (Results::default(), Random::new(seed));
    for number in 0..kinds().len() * turns {
        let prepared = groups.prepare(number, &results, &mut random);
        let work = prepared.work.clone();
        match (number + number / kinds().len()) % 3 {
            0 => {
                let done = rank.collective(NAME, &work, groups.comm);
                done.unwrap_or_else(|error| panic!("{error}: {:?}", prepared.case));
                prepared.check();
            }
            1 => {
                let request = rank.start_collective(work, groups.comm).unwrap();
                finish(rank, request, &prepared);
            }
            _ => {
                let request = rank.collective_init(work, groups.comm).unwrap();
                for _ in 0..2 {
                    prepared.fill();
                    rank.start(request).unwrap();
                    finish(rank, request, &prepared);
                }
                rank.lock().requests_mut().detach(request).unwrap();
            }
        }
    }
}

/// Operations and messages in flight together, with blocking ones between them, that each rank
/// completes in an order of its own.
fn many_at_once(rank: &Arc<Rank>, groups: &Groups, seed: u64) {
    let (results, mut random) = (Results::default(), Random::new(seed));
    let mut own = Random::new(seed ^ rank.rank() as u64);
    let mut running = Vec::new();
    let remote = groups.sizes[1 - groups.side];
    let mut said = [[7; 16], [0; 16]];
    let [sent, got] = &mut said;
    let peer = (groups.me < remote).then_some(groups.me as i32);
    let peer = peer.filter(|_| groups.me < groups.sizes[0].min(groups.sizes[1]));
    let message = peer.map(|peer| {
        rank.lock()
            .receive(room(got), peer, 1, groups.comm)
            .unwrap()
    });
    for _ in 0..8 {
        let number = random.below(1000) as usize;
        let prepared = groups.prepare(number, &results, &mut random);
        if random.below(4) == 0 {
            rank.collective(NAME, &prepared.work, groups.comm).unwrap();
            prepared.check();
        } else {
            let request = rank.start_collective(prepared.work.clone(), groups.comm);
            running.push((request.unwrap(), prepared));
        }
    }
    if let Some(peer) = peer {
        rank.send(NAME, Mode::Standard, out(sent), peer, 1, groups.comm)
            .unwrap();
    }
    while !running.is_empty() {
        let next = own.below(running.len() as u64) as usize;
        let (request, prepared) = running.swap_remove(next);
        finish(rank, request, &prepared);
    }
    if let Some(request) = message {
        rank.wait("MPI_Wait", request).unwrap();
        assert_eq!(said[0], said[1]);
    }
}

/// Random operations on two random groups of these sizes.
fn play_between(rank: &Arc<Rank>, sizes: [usize; 2], most: usize, seed: u64, turns: usize) {
    let mut random = Random::new(seed);
    let groups = Groups::random(rank, sizes, most, &mut random);
    groups.blocking(rank, &mut random);
    in_every_form(rank, &groups, random.word(), turns);
    many_at_once(rank, &groups, random.word());
    rank.comm_free(groups.comm).unwrap();
}

/// The sizes of two groups, and a seed for their operations.
fn plan(seed: u64) -> ([usize; 2], u64) {
    let mut random = Random::new(seed);
    let sizes = [0, 1].map(|_| 1 + random.below(5) as usize);
    eprintln!("seed {seed}: groups of {sizes:?}");
    (sizes, random.word())
}

#[test]
fn two_groups_get_the_results_of_one_process_over_shared_memory_and_devices() {
    for seed in seeds(6) {
        let (sizes, word) = plan(seed);
        run_with(sizes[0] + sizes[1], &[], move |rank| {
            play_between(rank, sizes, 64 << 10, word, 2);
        });
    }
}

#[test]
fn two_groups_get_the_results_of_one_process_in_shared_memory() {
    for seed in seeds(6) {
        let (sizes, word) = plan(seed);
        let wait = ["auto", "sleep", "yield"][seed as usize % 3];
        let settings = [("FISHPLATE_WAIT", wait)];
        run_shared(sizes[0] + sizes[1], &settings, move |rank| {
            play_between(rank, sizes, 400 << 10, word, 3);
        });
    }
}

#[test]
fn two_groups_get_the_results_of_one_process_over_tcp() {
    for seed in seeds(4) {
        let (sizes, word) = plan(seed);
        let nodes = tcp::nodes(sizes[0] + sizes[1], 1 + seed as usize % 2);
        run_nodes(nodes, &[], move |rank| {
            play_between(rank, sizes, 40 << 10, word, 1);
        });
    }
}

#[test]
fn two_groups_get_the_results_of_one_process_on_modelled_machines() {
    for seed in seeds(6) {
        let (sizes, word) = plan(seed);
        let machine = ["2xqdr", "qdr", "edr"][seed as usize % 3];
        let per_host = 1 + seed as usize % 2;
        let ranks = sizes[0] + sizes[1];
        let mut scene = MachineConfig::new(&system(machine), ranks, per_host, seed).unwrap();
        scene.intra_host = [IntraHost::Memory, IntraHost::Hca][seed as usize / 2 % 2];
        play(scene, Vec::new(), Keep::Nothing, move |rank| {
            play_between(rank, sizes, 40 << 10, word, 2);
        });
    }
}

/// Arguments that no operation between two groups can have are refused by each rank alone.
#[test]
fn arguments_of_one_group_are_refused() {
    run_shared(3, &[], |rank| {
        let (_, comm) = halves(rank, 1);
        let refused = |work: Work, class: Class, text: &str| {
            let error = rank.collective(NAME, &work, comm).unwrap_err();
            assert!(
                error.class == class && error.detail.contains(text),
                "{error}"
            );
            let error = rank.start_collective(work.clone(), comm).unwrap_err();
            assert_eq!(error.class, class);
            let error = rank.collective_init(work, comm).unwrap_err();
            assert_eq!(error.class, class);
        };
        let (mut one, mut two) = ([0; 8], [0; 8]);
        let int64 = Predefined::INT64_T.into();
        let vector = |of: &mut [u8]| Some(elements(of, 1, &int64));
        let reduction = Reduction {
            send: None,
            receive: vector(&mut two),
            op: Operation::Predefined(Op::Sum),
        };
        let in_place = Work::Allreduce(reduction.clone());
        refused(in_place, Class::BUFFER, "MPI_IN_PLACE");
        let same = Reduction {
            send: reduction.receive.clone(),
            ..reduction.clone()
        };
        refused(Work::Allreduce(same), Class::BUFFER, "same memory");
        let both = Reduction {
            send: vector(&mut one),
            ..reduction.clone()
        };
        let scan = Work::Scan {
            reduction: both,
            exclusive: false,
        };
        refused(scan, Class::COMM, "one group");
        let remote = if rank.rank() == 0 { 2 } else { 1 };
        for root in [remote, -5, i32::MAX] {
            let buffer = room(&mut one);
            let text = format!("the remote group has {remote} ranks");
            refused(Work::Bcast { buffer, root }, Class::ROOT, &text);
        }
        // The sender of a reduction has a vector, and its root a place for the result.
        let without = |root| Work::Reduce {
            reduction: Reduction {
                receive: None,
                ..reduction.clone()
            },
            root,
        };
        refused(without(0), Class::BUFFER, "MPI_IN_PLACE");
        refused(without(ROOT), Class::BUFFER, "MPI_IN_PLACE");
        let nobody = without(PROC_NULL);
        rank.collective(NAME, &nobody, comm).unwrap();
    });
}

/// The error of a receiver that expects another length names the root by the joint numbers, and
/// tells what they are.
#[test]
fn errors_tell_how_ranks_are_numbered() {
    run_shared(3, &[], |rank| {
        let (_, comm) = halves(rank, 1);
        let mut bytes = [0; 16];
        let is_root = rank.rank() == 0;
        let len = if is_root { 16 } else { 8 };
        let work = Work::Bcast {
            buffer: room(&mut bytes[..len]),
            root: if is_root { ROOT } else { 0 },
        };
        let done = rank.collective(NAME, &work, comm);
        if !is_root {
            let error = done.unwrap_err();
            assert_eq!(error.class, Class::TRUNCATE);
            let numbers = "1 to 2 are the ranks of this group, 0 to 0 those of the remote one";
            assert!(error.detail.contains("rank 0"), "{error}");
            assert!(error.detail.contains(numbers), "{error}");
        }
    });
}
