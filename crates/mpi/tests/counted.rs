//! What a message asks of the devices, exactly: work requests, bytes, completions, receives, registrations. The same on
//! the model, on a strict device of this process, and on real ones.
//!
//! All place bytes in any order, as Soft-RoCE does: so every packet comes with a completion. FISHPLATE_TEST_PEER names the
//! device that the first one reaches by its cable.

#[allow(dead_code)]
mod common;
#[allow(dead_code)]
#[path = "common/stage.rs"]
mod stage;

use std::sync::{Arc, Mutex};

use common::{out, pattern, room};
use device::counted::{Counted, Counter, Counts};
use device::instant::{self, Setup};
use device::model::Faults;
use device::scene::Scene;
use device::verbs::{self, Directory, VerbsNode};
use device::{Device, Node, Placement, Result};
use mpi::comm::WORLD;
use mpi::{Mode, Rank};
use stage::{Keep, play_through, system};

const SIZES: [usize; 4] = [8, 4 << 10, 64 << 10, 1 << 20];
const RENDEZVOUS: [&str; 2] = ["read", "write"];
/// There and back, that many times: until the first meet, and those that are counted.
const BEFORE: usize = 16;
const COUNTED: usize = 64;

/// Of both ranks together, for the 128 messages. Completions are asked for once for every eight requests, and once for
/// every quarter of the ring's slots of a length, of which there are 12 for 4 KiB.
const EXPECTED: &str = "\
who moves, bytes writes (immediate) (reads)   payload  signaled  receives  received  registrations
read         8       0        128      0       6144        16       128       128              0
read      4096       0        128      0     529408        42       128       128              0
read     65536       0        256    128    8401920       160       256       256            256
read   1048576       0        256    128  134231040       160       256       256            256
write        8       0        128      0       6144        16       128       128              0
write     4096       0        128      0     529408        42       128       128              0
write    65536       0        384      0    8404992       160       384       384            256
write  1048576       0        384      0  134234112       160       384       384            256
";

/// Messages go there and back. The answer: what those that count have asked for. It is counted from one send of this rank's
/// to another, as nothing of the other is under way then.
fn ping_pong(rank: &Rank, counter: &Counter, size: usize) -> Counts {
    let (sent, other) = (pattern(size, 3), 1 - rank.rank() as i32);
    let receive = || {
        let mut got = vec![0; size];
        rank.receive("MPI_Recv", room(&mut got), other, 5, WORLD)
            .unwrap();
        assert!(got == sent);
    };
    let mut seen = Vec::new();
    for _ in 0..=BEFORE + COUNTED {
        if rank.rank() == 1 {
            receive();
        }
        seen.push(*counter.lock().unwrap());
        rank.send("MPI_Send", Mode::Standard, out(&sent), other, 5, WORLD)
            .unwrap();
        if rank.rank() == 0 {
            receive();
        }
    }
    seen[BEFORE + COUNTED].since(&seen[BEFORE])
}

/// Runs two ranks on a kind of device, with settings, and gives what each has answered.
type Play = fn(Vec<(&'static str, &'static str)>, usize) -> [Counts; 2];

fn table(play: Play) -> String {
    let title = EXPECTED.split_inclusive('\n').next();
    let mut lines = title.unwrap_or_default().to_string();
    for rendezvous in RENDEZVOUS {
        for size in SIZES {
            let [a, b] = play(vec![("FISHPLATE_RENDEZVOUS", rendezvous)], size);
            let sum = |of: fn(&Counts) -> u64| of(&a) + of(&b);
            lines += &format!(
                "{rendezvous:5} {size:8} {:7} {:10} {:6} {:10} {:9} {:9} {:9} {:14}\n",
                sum(|counts| counts.writes),
                sum(|counts| counts.writes_with_immediate),
                sum(|counts| counts.reads),
                sum(|counts| counts.bytes),
                sum(|counts| counts.signaled),
                sum(|counts| counts.receives_posted),
                sum(|counts| counts.received),
                sum(|counts| counts.registrations),
            );
            assert_eq!(sum(|counts| counts.sends + counts.atomics), 0);
        }
    }
    lines
}

fn on_the_model(settings: Vec<(&'static str, &'static str)>, size: usize) -> [Counts; 2] {
    let mut scene = Scene::new(&system("qdr"), 2, 1, 1).unwrap();
    scene.faults = Faults {
        scatter: Some(1_000_000),
        ..Faults::default()
    };
    let counters: [Counter; 2] = Default::default();
    let answers = Arc::new(Mutex::new([Counts::default(); 2]));
    let (seen, theirs) = (answers.clone(), counters.clone());
    let node = move |node, rank: usize| {
        Box::new(Counted::new(Box::new(node), theirs[rank].clone())) as Box<dyn Node>
    };
    play_through(scene, settings, Keep::Nothing, node, move |rank| {
        let counts = ping_pong(rank, &counters[rank.rank()], size);
        seen.lock().unwrap()[rank.rank()] = counts;
    });
    *answers.lock().unwrap()
}

/// Ranks as threads.
fn on_nodes(
    nodes: Vec<Box<dyn Node + Send>>,
    settings: Vec<(&'static str, &'static str)>,
    size: usize,
) -> [Counts; 2] {
    let counters: [Counter; 2] = Default::default();
    let answers = Mutex::new([Counts::default(); 2]);
    let nodes = nodes.into_iter().zip(&counters);
    let nodes = nodes.map(|(node, counter)| {
        Box::new(Counted::new(node, counter.clone())) as Box<dyn Node + Send>
    });
    common::run_nodes(nodes.collect(), &settings, |rank| {
        let counts = ping_pong(rank, &counters[rank.rank()], size);
        answers.lock().unwrap()[rank.rank()] = counts;
    });
    answers.into_inner().unwrap()
}

fn on_a_strict_device(settings: Vec<(&'static str, &'static str)>, size: usize) -> [Counts; 2] {
    let setup = Setup {
        placement: Placement::Completion,
        ..Setup::default()
    };
    on_nodes(instant::nodes(2, &setup), settings, size)
}

/// A board that both ranks see.
struct Board {
    cards: Arc<Mutex<[Option<Vec<u8>>; 2]>>,
    rank: usize,
}

impl Directory for Board {
    fn publish(&mut self, card: &[u8]) -> Result<()> {
        self.cards.lock().unwrap()[self.rank] = Some(card.to_vec());
        Ok(())
    }

    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>> {
        Ok(self.cards.lock().unwrap()[peer].clone())
    }
}

fn on_verbs(settings: Vec<(&'static str, &'static str)>, size: usize) -> [Counts; 2] {
    let first = verbs::open("").unwrap()[0].attributes().name.clone();
    let peer = std::env::var("FISHPLATE_TEST_PEER").expect("FISHPLATE_TEST_PEER names a device");
    let cards = Arc::new(Mutex::new([None, None]));
    let node = |(rank, name): (usize, String)| {
        let cards = cards.clone();
        let devices = vec![verbs::open(&name).unwrap().swap_remove(0)];
        Box::new(VerbsNode::new(devices, rank, 2, Box::new(Board { cards, rank })).unwrap())
            as Box<dyn Node + Send>
    };
    let nodes = [first, peer].into_iter().enumerate().map(node).collect();
    on_nodes(nodes, settings, size)
}

#[test]
fn the_model_is_asked_for_exactly_this() {
    assert_eq!(table(on_the_model), EXPECTED);
}

#[test]
fn a_strict_device_is_asked_for_exactly_this() {
    assert_eq!(table(on_a_strict_device), EXPECTED);
}

#[test]
#[ignore = "needs RDMA devices"]
fn a_real_device_is_asked_for_exactly_this() {
    assert_eq!(table(on_verbs), EXPECTED);
}
