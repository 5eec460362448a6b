//! The exact cost of a message on devices: work requests, bytes, completions, receives,
//! registrations, and wake-ups of its ranks. The counts are equal on the model, on a strict device
//! of this process, and on real devices.
//!
//! All devices place bytes in any order, as Soft-RoCE does, so every packet comes with a
//! completion. FISHPLATE_TEST_PEER names the device that the first one reaches by its cable.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::modelled::{Keep, play_through, system};
use crate::common::{out, pattern, room, run_nodes};
use device::{Device, HostDevice, Node, Placement};
use host_node::{Board, HostNode};
use model::Faults;
use model::config::MachineConfig;
use mpi::comm::WORLD;
use mpi::{Mode, Rank};
use secret::Secret;
use testdevice::counted::{Counted, Counter, Counts};
use testdevice::strict::{self, Setup};

const SIZES: [usize; 4] = [8, 4 << 10, 64 << 10, 1 << 20];
const RENDEZVOUS: [&str; 2] = ["read", "write"];
/// Round trips before the count begins, and those that are counted.
const BEFORE: usize = 16;
const COUNTED: usize = 64;
/// Nanoseconds of virtual time after which nothing is in flight.
const LONG: u64 = 1_000_000;

/// Counts of both ranks together, for the 128 messages. A completion is requested once for every
/// eight work requests, and once for every quarter of the ring's slots of a size class, of which
/// there are 12 for 4 KiB.
pub(super) const EXPECTED: &str = "\
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

/// Wake-ups by devices for one message whose receiver is asleep, where ranks sleep whenever they
/// wait. A short message wakes its receiver once. A long one with read rendezvous wakes the
/// receiver by the RTS and when the read is complete, and the sender when it learns of that. With
/// write rendezvous it wakes the receiver by the RTS and when the message has arrived, and the
/// sender by the CTS and when the write is complete.
const WOKEN: &str = "\
who moves, bytes  receiver  sender
read         8         1       0
read      4096         1       0
read     65536         2       1
read   1048576         2       1
write        8         1       0
write     4096         1       0
write    65536         2       2
write  1048576         2       2
";

/// Facts about both ranks that a test has beside MPI.
#[derive(Default)]
struct Pair {
    counters: [Counter; 2],
    /// The number of the message that each rank waits for.
    awaited: [AtomicUsize; 2],
    asleep: [Arc<AtomicBool>; 2],
}

impl Pair {
    fn counts(&self, rank: usize) -> Counts {
        *self.counters[rank].lock().unwrap()
    }

    fn node(&self, node: Box<dyn Node>, rank: usize, waits: Waits) -> Box<Counted> {
        let counter = self.counters[rank].clone();
        Box::new(match waits {
            Waits::AsItLikes => Counted::new(node, counter),
            Waits::Asleep => Counted::sleeper(node, counter, self.asleep[rank].clone()).unwrap(),
        })
    }
}

#[derive(Clone, Copy)]
enum Waits {
    AsItLikes,
    Asleep,
}

/// Runs a ping-pong. The result is the cost of the counted messages, from one send of this rank to
/// another: at these times nothing of the other rank is in flight.
fn ping_pong(rank: &Rank, pair: &Pair, size: usize) -> Vec<Counts> {
    let (sent, other) = (pattern(size, 3), 1 - rank.rank() as i32);
    let mut seen = Vec::new();
    for _ in 0..=BEFORE + COUNTED {
        if rank.rank() == 1 {
            receive(rank, &sent);
        }
        seen.push(pair.counts(rank.rank()));
        rank.send("MPI_Send", Mode::Standard, out(&sent), other, 5, WORLD)
            .unwrap();
        if rank.rank() == 0 {
            receive(rank, &sent);
        }
    }
    vec![seen[BEFORE + COUNTED].since(&seen[BEFORE])]
}

fn receive(rank: &Rank, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    let other = 1 - rank.rank() as i32;
    rank.receive("MPI_Recv", room(&mut got), other, 5, WORLD)
        .unwrap();
    assert!(got == expected);
}

/// Runs a ping-pong in which each message is sent when its receiver sleeps. In virtual time a rank
/// sleeps as soon as it waits. The result is the cost of each message.
fn one_by_one(rank: &Rank, pair: &Pair, size: usize) -> Vec<Counts> {
    let (sent, own) = (pattern(size, 3), rank.rank());
    let other = 1 - own;
    let message = |number: usize| {
        let before = pair.counts(own);
        if own != number % 2 {
            pair.awaited[own].store(number + 1, Ordering::SeqCst);
            receive(rank, &sent);
        } else {
            let is_asleep = || {
                pair.awaited[other].load(Ordering::SeqCst) == number + 1
                    && pair.asleep[other].load(Ordering::SeqCst)
            };
            // In virtual time the receiver waits once this time has passed.
            rank.enter(mpi::ProgramCall::after(LONG, "computing"));
            rank.leave();
            while rank.virtual_time().is_none() && !is_asleep() {
                std::thread::yield_now();
            }
            rank.send(
                "MPI_Send",
                Mode::Standard,
                out(&sent),
                other as i32,
                5,
                WORLD,
            )
            .unwrap();
        }
        pair.counts(own).since(&before)
    };
    // The end of the program may overlap the last message.
    (0..=BEFORE + COUNTED).map(message).collect()
}

/// Repetitions of a test of wake-ups on a real device.
const TRIES: usize = 8;

/// The messages that have to agree about their wake-ups.
#[derive(Clone, Copy)]
enum Agree {
    All,
    /// More than half: other work on the processors can delay the event of a message into the next.
    Most,
    /// None: what most of them have counts, and the test repeats it.
    Usual,
}

/// Wake-ups of receiver and sender. They are equal for all messages during and before which no rank
/// requested a completion beside the message's own, unless the system was busy.
fn wakings(ranks: Answers, agree: Agree) -> (u64, u64) {
    let of = |number: usize| {
        let sender = number % 2;
        [1 - sender, sender].map(|rank| ranks[rank][number])
    };
    let numbers = BEFORE..BEFORE + COUNTED;
    let least = [0, 1].map(|role| {
        numbers
            .clone()
            .map(|number| of(number)[role].signaled)
            .min()
    });
    let is_alone = |number: usize| of(number).map(|counts| Some(counts.signaled)) == least;
    let alone = numbers.filter(|number| is_alone(*number) && is_alone(number - 1));
    let seen: Vec<_> = alone
        .map(|number| of(number).map(|counts| counts.woken))
        .collect();
    let like = |one: &[u64; 2]| seen.iter().filter(|other| *other == one).count();
    let usual = *seen.iter().max_by_key(|one| like(one)).unwrap();
    let enough = match agree {
        Agree::All => seen.len(),
        Agree::Most => seen.len() / 2 + 1,
        Agree::Usual => 1,
    };
    assert!(seen.len() > 4 && like(&usual) >= enough, "{seen:?}");
    (usual[0], usual[1])
}

/// Without the registration cache, whose hits depend on the addresses that an allocator returns.
fn settings(rendezvous: &'static str) -> Settings {
    vec![
        // One limit for all devices.
        ("FISHPLATE_EAGER_LIMIT", "16K"),
        ("FISHPLATE_RENDEZVOUS", rendezvous),
        // Whatever the costs of the device, which is slow where a virtual machine emulates it.
        (
            "FISHPLATE_PROTOCOL",
            match rendezvous {
                "read" => "read-rendezvous",
                _ => "write-rendezvous",
            },
        ),
        ("FISHPLATE_REGISTRATION_CACHE", "off"),
    ]
}

type Settings = Vec<(&'static str, &'static str)>;
type Program = fn(&Rank, &Pair, usize) -> Vec<Counts>;
/// The result of each rank.
pub(super) type Answers = [Vec<Counts>; 2];
/// Runs two ranks on a kind of device.
pub(super) type Play = fn(Case) -> Answers;

/// The program of two ranks, and its settings.
pub(super) struct Case {
    settings: Settings,
    waits: Waits,
    program: Program,
    /// The length of each message.
    size: usize,
}

pub(super) fn table(play: Play, more: &[(&'static str, &'static str)]) -> String {
    let title = EXPECTED.split_inclusive('\n').next();
    let mut lines = title.unwrap_or_default().to_string();
    for rendezvous in RENDEZVOUS {
        for size in SIZES {
            let [a, b] = play(Case {
                settings: [settings(rendezvous), more.to_vec()].concat(),
                waits: Waits::AsItLikes,
                program: ping_pong,
                size,
            });
            let sum = |of: fn(&Counts) -> u64| of(&a[0]) + of(&b[0]);
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

fn woken(play: Play, agree: Agree) -> String {
    let title = WOKEN.split_inclusive('\n').next();
    let mut lines = title.unwrap_or_default().to_string();
    for rendezvous in RENDEZVOUS {
        for size in SIZES {
            let case = Case {
                settings: settings(rendezvous),
                waits: Waits::Asleep,
                program: one_by_one,
                size,
            };
            let (receiver, sender) = wakings(play(case), agree);
            lines += &format!("{rendezvous:5} {size:8} {receiver:9} {sender:7}\n");
        }
    }
    lines
}

fn on_the_model(case: Case) -> Answers {
    on_a_modelled("qdr", case)
}

/// Runs two ranks on two hosts of a system of the catalogue.
pub(super) fn on_a_modelled(name: &str, case: Case) -> Answers {
    let mut scene = MachineConfig::new(&system(name), 2, 1, 1).unwrap();
    scene.faults = Faults {
        scatter: Some(1_000_000),
        ..Faults::default()
    };
    let pair = Arc::new(Pair::default());
    let answers: Arc<Mutex<Answers>> = Default::default();
    let (seen, theirs) = (answers.clone(), pair.clone());
    let node =
        move |node, rank: usize| theirs.node(Box::new(node), rank, case.waits) as Box<dyn Node>;
    play_through(scene, case.settings, Keep::Nothing, node, move |rank| {
        let counts = (case.program)(rank, &pair, case.size);
        seen.lock().unwrap()[rank.rank()] = counts;
    });
    std::mem::take(&mut answers.lock().unwrap())
}

/// Runs two ranks as threads on these nodes.
fn on_nodes(nodes: Vec<Box<dyn Node + Send>>, case: Case) -> Answers {
    let pair = Pair::default();
    let answers: Arc<Mutex<Answers>> = Default::default();
    let seen = answers.clone();
    let nodes = nodes.into_iter().enumerate();
    let nodes = nodes.map(|(rank, node)| pair.node(node, rank, case.waits) as Box<dyn Node + Send>);
    run_nodes(nodes.collect(), &case.settings, move |rank| {
        let counts = (case.program)(rank, &pair, case.size);
        seen.lock().unwrap()[rank.rank()] = counts;
    });
    std::mem::take(&mut answers.lock().unwrap())
}

fn on_a_strict_device(case: Case) -> Answers {
    on_strict_devices(1, case)
}

/// Runs two ranks on strict devices, with this number of rails.
pub(super) fn on_strict_devices(rails: usize, case: Case) -> Answers {
    let setup = Setup {
        rails,
        placement: Placement::Completion,
        ..Setup::default()
    };
    on_nodes(strict::nodes(2, &setup), case)
}

fn on_verbs(case: Case) -> Answers {
    let secret = Secret::from_bytes([3; Secret::LENGTH]);
    let first = verbs::open("", &secret).unwrap()[0]
        .attributes()
        .name
        .clone();
    let peer = std::env::var("FISHPLATE_TEST_PEER").expect("FISHPLATE_TEST_PEER names a device");
    on_real_devices([&first, &peer], 1, case)
}

/// Runs two ranks on real devices: the names of those of each rank, of which it uses the first
/// ones.
pub(super) fn on_real_devices(names: [&str; 2], rails: usize, case: Case) -> Answers {
    let board = Board::new(2);
    let secret = Secret::from_bytes([3; Secret::LENGTH]);
    let node = |(rank, names): (usize, &str)| {
        let devices = verbs::open(names, &secret).unwrap().into_iter().take(rails);
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        Box::new(HostNode::new(devices.collect(), rank, 2, &secret, board.of(rank)).unwrap())
            as Box<dyn Node + Send>
    };
    let nodes = names.into_iter().enumerate().map(node).collect();
    on_nodes(nodes, case)
}

#[test]
fn the_model_is_asked_for_exactly_this() {
    assert_eq!(table(on_the_model, &[]), EXPECTED);
}

#[test]
fn a_strict_device_is_asked_for_exactly_this() {
    assert_eq!(table(on_a_strict_device, &[]), EXPECTED);
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn a_real_device_is_asked_for_exactly_this() {
    assert_eq!(table(on_verbs, &[]), EXPECTED);
}

#[test]
fn the_model_wakes_exactly_so_often() {
    assert_eq!(woken(on_the_model, Agree::All), WOKEN);
}

#[test]
fn a_strict_device_wakes_exactly_so_often() {
    assert_eq!(woken(on_a_strict_device, Agree::Most), WOKEN);
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn a_real_device_wakes_exactly_so_often() {
    // On a busy machine the kernel may deliver most events late: one quiet moment is enough.
    let mut seen = String::new();
    for _ in 0..TRIES {
        seen = woken(on_verbs, Agree::Usual);
        if seen == WOKEN {
            return;
        }
    }
    assert_eq!(seen, WOKEN, "{TRIES} times");
}
