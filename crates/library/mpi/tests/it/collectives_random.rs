//! Random collectives of ranks that share memory, with every algorithm of the table and in every
//! form, compared with the results of one process. A failure names its seed: `SEED=n` repeats it.

use std::sync::Arc;

use crate::common::random_collectives::{Case, Kind, Prepared};
use crate::common::random_program::seeds;
use crate::common::random_reductions::Results;
use crate::common::{pattern, room, run_shared};
use mpi::algorithms::{self, Collective};
use mpi::comm::WORLD;
use mpi::request::RequestId;
use mpi::{Class, Mode, Rank};
use sim::Random;

const NAME: &str = "MPI_Test";

/// The forms of a collective call.
const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Persistent];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Blocking,
    Nonblocking,
    Persistent,
}

/// A communicator, as a member sees it.
struct Group {
    comm: u32,
    /// This rank among the members.
    me: usize,
    size: usize,
    /// A seed that all members share.
    seed: u64,
}

impl Group {
    /// A communicator with a random part of the ranks in a random order, or all ranks.
    fn random(rank: &Arc<Rank>, seed: u64) -> Group {
        let mut random = Random::new(seed);
        let (world, me) = (rank.size(), rank.rank());
        let kind = random.below(4);
        let colors: Vec<i32> = (0..world)
            .map(|_| if kind == 0 { random.below(2) as i32 } else { 0 })
            .collect();
        let keys: Vec<i32> = (0..world)
            .map(|rank| match kind {
                1 => rank as i32,
                2 => -(rank as i32),
                _ => random.below(100) as i32,
            })
            .collect();
        let color = colors[me];
        let mut members: Vec<usize> = (0..world).filter(|&of| colors[of] == color).collect();
        members.sort_by_key(|&member| (keys[member], member));
        let comm = rank.comm_split("MPI_Comm_split", WORLD, color, keys[me]);
        Group {
            comm: comm.unwrap(),
            me: members.iter().position(|&member| member == me).unwrap(),
            size: members.len(),
            seed: seed ^ (color as u64) << 50,
        }
    }

    /// Makes the members agree on collective buffers, where some choice of the table uses them.
    fn warm_up(&self, rank: &Arc<Rank>, results: &Results) {
        let mut random = Random::new(self.seed ^ 1);
        for kind in [Kind::Barrier, Kind::Bcast, Kind::Allreduce, Kind::Gather] {
            for _ in 0..4 {
                let mut case = Case::new(kind, self.size, &mut random);
                case.bytes = 8;
                let prepared = case.prepare(self.me, results);
                prepared.fill();
                rank.collective(NAME, &prepared.work, self.comm).unwrap();
                prepared.check();
            }
        }
    }
}

fn finish(rank: &Arc<Rank>, request: RequestId, prepared: &Prepared) {
    let status = rank.wait("MPI_Wait", request).unwrap();
    assert_eq!(status.error, Class::SUCCESS, "{:?}", prepared.case);
}

/// Runs an operation in this form, and checks its results.
fn perform(rank: &Arc<Rank>, group: &Group, prepared: &Prepared, form: Form) {
    prepared.fill();
    match form {
        Form::Blocking => rank
            .collective(NAME, &prepared.work, group.comm)
            .unwrap_or_else(|error| panic!("{error}: {:?}", prepared.case)),
        Form::Nonblocking => {
            let request = rank.start_collective(prepared.work.clone(), group.comm);
            finish(rank, request.unwrap(), prepared);
        }
        Form::Persistent => {
            let request = rank.collective_init(prepared.work.clone(), group.comm);
            let request = request.unwrap();
            for turn in 0..2 {
                if turn > 0 {
                    prepared.check();
                    prepared.fill();
                }
                rank.start(request).unwrap();
                finish(rank, request, prepared);
            }
            rank.lock().requests_mut().detach(request).unwrap();
        }
    }
    prepared.check();
}

/// The algorithm of each collective, for one turn of many: over all turns each collective takes
/// each of its algorithms.
fn choices(turn: usize) -> String {
    let choice = |collective: &Collective| {
        let mut names: Vec<_> = algorithms::rows(*collective)
            .iter()
            .map(|row| row.algorithm.name())
            .collect();
        names.sort_unstable();
        names.dedup();
        format!("{}={}", collective.name(), names[turn % names.len()])
    };
    let all: Vec<_> = Collective::ALL.iter().map(choice).collect();
    all.join(",")
}

/// The largest number of algorithms that a collective has.
fn turns() -> usize {
    let rows = Collective::ALL.iter().map(|of| algorithms::rows(*of).len());
    rows.max().unwrap()
}

/// Runs random operations of each kind and form on a random communicator of `size` ranks.
fn random_operations(size: usize, seed: u64, settings: &[(&str, &str)], cases: usize) {
    eprintln!("seed {seed}, {size} ranks, {settings:?}");
    let results = Results::default();
    run_shared(size, settings, move |rank| {
        let group = Group::random(rank, seed);
        group.warm_up(rank, &results);
        let mut random = Random::new(group.seed);
        for kind in Kind::ALL {
            for turn in 0..cases {
                let case = Case::new(kind, group.size, &mut random);
                let form = FORMS[(turn + random.below(3) as usize) % FORMS.len()];
                let prepared = case.prepare(group.me, &results);
                perform(rank, &group, &prepared, form);
            }
        }
        rank.comm_free(group.comm).unwrap();
    });
}

#[test]
fn every_algorithm_in_every_form_gives_the_results_of_one_process() {
    for seed in seeds(2) {
        let mut random = Random::new(seed);
        for turn in 0..turns() {
            let size = 2 + (turn + random.below(8) as usize) % 8;
            let wait = ["auto", "sleep", "yield"][random.below(3) as usize];
            let (choices, seed) = (choices(turn), random.word());
            let settings = [
                ("FISHPLATE_COLLECTIVES", choices.as_str()),
                ("FISHPLATE_WAIT", wait),
            ];
            random_operations(size, seed, &settings, 3);
        }
    }
}

#[test]
fn the_choices_of_the_table_give_the_results_of_one_process() {
    for seed in seeds(1) {
        let mut random = Random::new(seed);
        for size in [2, 3, 4, 7, 9] {
            random_operations(size, random.word(), &[], 6);
        }
        let off = [("FISHPLATE_SINGLE_COPY", "off")];
        random_operations(5, random.word(), &off, 3);
    }
}

#[test]
fn a_large_group_gets_the_results_of_one_process() {
    for seed in seeds(1) {
        random_operations(18, seed, &[("FISHPLATE_WAIT", "sleep")], 1);
    }
}

/// One step of a program with many operations in flight.
enum InFlight {
    Collective(RequestId, Box<Prepared>),
    /// A send, or a receive with its memory and the expected bytes.
    Message(RequestId, Vec<u8>, Vec<u8>),
}

/// Starts operations and messages, with blocking operations between them, and completes them in an
/// order that differs from rank to rank. The communicator may be freed before they have ended.
fn many_at_once(rank: &Arc<Rank>, seed: u64, results: &Results) {
    let group = Group::random(rank, seed);
    group.warm_up(rank, results);
    let mut random = Random::new(group.seed ^ 7);
    let mut own = Random::new(group.seed ^ rank.rank() as u64);
    let mut running = Vec::new();
    for number in 0..6 + random.below(6) as usize {
        let kind = Kind::ALL[random.below(Kind::ALL.len() as u64) as usize];
        let mut case = Case::new(kind, group.size, &mut random);
        case.bytes = case.bytes.min(150_000);
        let prepared = case.prepare(group.me, results);
        prepared.fill();
        match random.below(4) {
            0 => perform(rank, &group, &prepared, Form::Blocking),
            1 => {
                let sent = pattern(case.bytes, number + group.me);
                let before = (group.me + group.size - 1) % group.size;
                let mut got = vec![0; case.bytes];
                let receive =
                    rank.lock()
                        .receive(room(&mut got), before as i32, number as i32, group.comm);
                running.push(InFlight::Message(
                    receive.unwrap(),
                    got,
                    pattern(case.bytes, number + before),
                ));
                let mut copy = sent.clone();
                let after = ((group.me + 1) % group.size) as i32;
                let body = room(&mut copy);
                let send =
                    rank.lock()
                        .send(Mode::Standard, &body, after, number as i32, group.comm);
                running.push(InFlight::Message(send.unwrap(), copy, sent));
            }
            _ => {
                let request = rank.start_collective(prepared.work.clone(), group.comm);
                running.push(InFlight::Collective(request.unwrap(), Box::new(prepared)));
            }
        }
        for _ in 0..own.below(4) {
            rank.progress().unwrap();
        }
    }
    let freed_early = random.below(2) == 0;
    if freed_early {
        rank.comm_free(group.comm).unwrap();
    }
    while !running.is_empty() {
        match running.swap_remove(own.below(running.len() as u64) as usize) {
            InFlight::Collective(request, prepared) => {
                finish(rank, request, &prepared);
                prepared.check();
            }
            InFlight::Message(request, got, expected) => {
                rank.wait("MPI_Wait", request).unwrap();
                assert!(got == expected, "a message beside collectives, seed {seed}");
            }
        }
    }
    if !freed_early {
        rank.comm_free(group.comm).unwrap();
    }
}

#[test]
fn many_operations_at_once_complete_in_any_order() {
    for seed in seeds(8) {
        let mut random = Random::new(seed ^ 99);
        for wait in ["auto", "sleep", "yield"] {
            let size = 2 + random.below(6) as usize;
            let (choices, seed) = (choices(random.below(7) as usize), random.word());
            let mut settings = vec![("FISHPLATE_WAIT", wait)];
            if random.below(2) == 0 {
                settings.push(("FISHPLATE_COLLECTIVES", &choices));
            }
            eprintln!("seed {seed}, {size} ranks, {settings:?}");
            let results = Results::default();
            run_shared(size, &settings, move |rank| {
                for round in 0..3 {
                    many_at_once(rank, seed.wrapping_add(round), &results);
                }
            });
        }
    }
}
