//! A running rank adds a peer that has started after it. Ranks 0 and 1 know each other at their
//! start; rank 2 starts later, and knows all.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use device::{Node, Placement};
use model::config::MachineConfig;
use model::{Faults, PortFault, PortFaultKind};
use mpi::comm::{Comm, Core, Members, WORLD};
use mpi::{Class, MessageBuffer, Mode, NewPeer, Rank};
use testdevice::strict::{self, Setup};

use crate::common::modelled::{play_growing, system};
use crate::common::{out, pattern, random_program, room, run_growing};

/// The number of ranks that each rank knows at its start.
pub(crate) const KNOWN: [usize; 3] = [2, 2, 3];
/// Hosts of the ranks, where none share memory.
pub(crate) const APART: [u32; 3] = [0, 1, 2];
/// Hosts of the ranks, where the first two share memory.
pub(crate) const TWO_BESIDE: [u32; 3] = [0, 0, 1];

/// The context of the communicator of all. Rank 2 makes no other one with this number.
const ALL: u64 = 2 << 32 | 1 << 20;
/// The bytes of a message that is announced.
const LONG: usize = 1_000_003;
/// The first message of the new rank, and its tag.
const HELLO: [u8; 8] = [2; 8];
const HELLO_TAG: i32 = 7;

/// Devices of ranks.
type Nodes = Vec<Box<dyn Node + Send>>;

/// Runs the growth of a job of two ranks over these nodes. `late`: ranks 0 and 1, which share
/// memory, get theirs when they add the new rank.
pub(crate) fn grow_over(
    nodes: Nodes,
    hosts: &'static [u32; 3],
    late: bool,
    settings: &[(&str, &str)],
    seed: u64,
) {
    let (at_start, kept) = withhold(nodes, if late { 2 } else { 0 });
    let (begun, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    run_growing(at_start, hosts, &KNOWN, settings, move |rank| {
        if rank.rank() == 2 {
            let all = all_ranks(rank, 3);
            begin_early(rank, all, &[0, 1], || {
                begun.store(true, Ordering::SeqCst);
                seen.load(Ordering::SeqCst) == 2
            });
            return random_program::play_on(rank, all, seed);
        }
        amid_traffic(rank, || {
            while !begun.load(Ordering::SeqCst) {
                rank.progress().unwrap();
            }
            // Messages of the new rank may come now, and do not make it a peer.
            for _ in 0..1000 {
                rank.progress().unwrap();
            }
            assert_eq!(rank.hosts().ranks(), 2);
            add_third(rank, hosts[2], take(&kept, rank));
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let all = all_ranks(rank, 3);
        receive_hello(rank, all, 2);
        random_program::play_on(rank, all, seed);
        random_program::play(rank, seed + 1);
    });
}

/// Nodes that ranks get late.
type Kept = Mutex<Vec<Option<Box<dyn Node + Send>>>>;

/// The nodes at the start, and those of the first ranks, which get theirs late.
fn withhold(nodes: Nodes, late: usize) -> (Vec<Option<Box<dyn Node + Send>>>, Kept) {
    let mut kept: Vec<_> = nodes.into_iter().map(Some).collect();
    let at_start = kept.split_off(late).into_iter();
    let at_start = (0..late).map(|_| None).chain(at_start);
    (at_start.collect(), Mutex::new(kept))
}

fn take(kept: &Kept, rank: &Rank) -> Option<Box<dyn Node>> {
    let mut kept = kept.lock().unwrap();
    let own = kept.get_mut(rank.rank())?.take();
    own.map(|node| node as Box<dyn Node>)
}

/// A new rank sends to peers that do not know it yet, and makes progress until it `may_wait`.
fn begin_early(rank: &Rank, all: u32, peers: &[i32], may_wait: impl Fn() -> bool) {
    let send = |&to: &i32| {
        let mut state = rank.lock();
        let hello = out(&HELLO).resolve(state.objects().types()).unwrap();
        let sent = state.send(Mode::Synchronous, &hello, to, HELLO_TAG, all);
        sent.unwrap()
    };
    let sent: Vec<_> = peers.iter().map(send).collect();
    while !may_wait() {
        rank.progress().unwrap();
    }
    for id in sent {
        rank.wait("MPI_Wait", id).unwrap();
    }
}

/// The communicator of all ranks, on which they have agreed.
fn all_ranks(rank: &Rank, ranks: usize) -> u32 {
    let core = Core::new(ALL, Members::All(ranks), rank.rank());
    let all = Comm::new(core, "all");
    rank.objects().comms_mut().insert(all).unwrap()
}

fn add_third(rank: &Rank, host: u32, node: Option<Box<dyn Node>>) {
    // A number is not left out, and none is given twice.
    for wrong in [1, 3] {
        let refused = rank.add_peers(&[NewPeer { rank: wrong, host }], None);
        assert_eq!(refused.unwrap_err().class, Class::INTERN);
    }
    rank.add_peers(&[NewPeer { rank: 2, host }], node).unwrap();
    assert_eq!((rank.hosts().ranks(), rank.size()), (3, 2));
}

/// Long messages between ranks 0 and 1 are in flight while this rank calls `grow`, and short ones
/// before and after.
fn amid_traffic(rank: &Arc<Rank>, grow: impl FnOnce()) {
    let (me, other) = (rank.rank(), 1 - rank.rank());
    let sent: Vec<Vec<u8>> = (0..4).map(|at| pattern(LONG, 4 * me + at)).collect();
    let mut got = vec![vec![0; LONG]; 4];
    let mut requests = Vec::new();
    for (tag, (sent, got)) in (0..).zip(sent.iter().zip(&mut got)) {
        let mut state = rank.lock();
        // Two of them are announced before their receives are posted.
        if tag < 2 {
            requests.push(state.receive(room(got), other as i32, tag, WORLD).unwrap());
        }
        let body = out(sent);
        let sent = state.send(Mode::Standard, &body, other as i32, tag, WORLD);
        requests.push(sent.unwrap());
    }
    swap(rank, 100);
    grow();
    swap(rank, 101);
    for (tag, got) in (0..).zip(&mut got).skip(2) {
        let receive = rank.lock().receive(room(got), other as i32, tag, WORLD);
        requests.push(receive.unwrap());
    }
    for id in requests {
        rank.wait("MPI_Wait", id).unwrap();
    }
    let expected = (0..4).map(|at| pattern(LONG, 4 * other + at));
    assert!(got.into_iter().eq(expected));
}

/// Ranks 0 and 1 exchange short messages.
fn swap(rank: &Rank, tag: i32) {
    let (me, other) = (rank.rank() as u8, 1 - rank.rank() as u8);
    let got = exchange(rank, WORLD, other.into(), tag, &[me; 8]);
    assert_eq!(got, [other; 8]);
}

fn receive_hello(rank: &Rank, all: u32, from: i32) {
    let mut hello = [0; 8];
    let status = rank.receive("MPI_Recv", room(&mut hello), from, HELLO_TAG, all);
    assert_eq!((status.unwrap().source, hello), (from, HELLO));
}

/// Settings under which messages take each protocol of devices.
const WAYS: [&[(&str, &str)]; 7] = [
    &[],
    &[
        ("FISHPLATE_EAGER_LIMIT", "0"),
        ("FISHPLATE_RENDEZVOUS", "write"),
    ],
    &[("FISHPLATE_RENDEZVOUS", "read")],
    &[("FISHPLATE_RTR", "on")],
    &[("FISHPLATE_RDMA_RINGS", "0")],
    &[("FISHPLATE_RDMA_DESIGN", "pipeline")],
    &[("FISHPLATE_WAIT", "sleep")],
];

#[test]
fn a_rank_that_starts_later_becomes_a_peer() {
    for (seed, settings) in (0..).zip(WAYS) {
        for rails in [1, 2] {
            eprintln!("seed {seed}, {rails} rails");
            let setup = Setup {
                rails,
                patient: false,
                placement: [Placement::Ordered, Placement::Completion][rails - 1],
                delays: rails == 1,
                ..Setup::default()
            };
            let nodes = || strict::nodes(3, &setup);
            grow_over(nodes(), &APART, false, settings, seed);
            grow_over(nodes(), &TWO_BESIDE, false, settings, seed);
            grow_over(nodes(), &TWO_BESIDE, true, settings, seed);
        }
    }
}

/// Two ranks that share memory add three, of which the last two share theirs: all in one call, and in
/// two. The new ranks have sent before.
#[test]
fn several_ranks_become_peers_in_one_call() {
    const HOSTS: [u32; 5] = [0, 0, 1, 2, 2];
    for (seed, settings) in (0..).zip(WAYS) {
        let calls: &[usize] = [&[3][..], &[2, 1], &[1, 2]][seed as usize % 3];
        eprintln!("seed {seed}, {calls:?} in a call");
        let begun = AtomicUsize::new(0);
        let nodes = strict::nodes(5, &Setup::default()).into_iter().map(Some);
        let known = [2, 2, 5, 5, 5];
        run_growing(nodes.collect(), &HOSTS, &known, settings, move |rank| {
            let all = all_ranks(rank, 5);
            if rank.rank() >= 2 {
                begin_early(rank, all, &[0, 1], || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    true
                });
                return random_program::play_on(rank, all, seed);
            }
            amid_traffic(rank, || {
                while begun.load(Ordering::SeqCst) < 3 {
                    rank.progress().unwrap();
                }
                add_in_calls(rank, &HOSTS, calls);
            });
            (2..5).for_each(|from| receive_hello(rank, all, from));
            random_program::play_on(rank, all, seed);
            random_program::play(rank, seed + 1);
        });
    }
}

/// Adds as many ranks in each call as `calls` says. A call with a wrong number adds none.
fn add_in_calls(rank: &Rank, hosts: &[u32], calls: &[usize]) {
    let new = |rank: usize| NewPeer {
        rank,
        host: hosts[rank],
    };
    for wrong in [[2, 2], [2, 4], [3, 4], [3, 2]] {
        let refused = rank.add_peers(&wrong.map(new), None);
        assert_eq!(refused.unwrap_err().class, Class::INTERN);
        assert_eq!(rank.hosts().ranks(), 2);
    }
    for count in calls {
        let known = rank.hosts().ranks();
        let all: Vec<_> = (known..known + count).map(new).collect();
        rank.add_peers(&all, None).unwrap();
        assert_eq!((rank.hosts().ranks(), rank.size()), (known + count, 2));
    }
}

/// The bytes of the messages of each thread.
const OF_THREADS: [usize; 3] = [8, 3_000, 200_000];

/// Threads of ranks 0 and 1 exchange messages while another thread adds the new rank, and exchange
/// messages with its threads then.
#[test]
fn threads_send_while_a_rank_becomes_a_peer() {
    for (seed, settings) in (0..).zip(WAYS) {
        for (hosts, late) in [(&APART, 0), (&TWO_BESIDE, 0), (&TWO_BESIDE, 2)] {
            eprintln!("seed {seed}, hosts {hosts:?}, {late} get devices late");
            let (at_start, kept) = withhold(strict::nodes(3, &Setup::default()), late);
            run_growing(at_start, hosts, &KNOWN, settings, move |rank| {
                rank.allow_threads();
                let all = all_ranks(rank, 3);
                if rank.rank() == 2 {
                    begin_early(rank, all, &[0, 1], || true);
                }
                with_threads(rank, all, || {
                    add_third(rank, hosts[2], take(&kept, rank));
                    receive_hello(rank, all, 2);
                });
                random_program::play_on(rank, all, seed);
            });
        }
    }
}

/// Ranks 0 and 1 call `grow` once each of their threads has exchanged some messages, and all threads
/// go on.
fn with_threads(rank: &Arc<Rank>, all: u32, grow: impl FnOnce()) {
    let (counts, grown) = ([const { AtomicUsize::new(0) }; 3], AtomicBool::new(false));
    std::thread::scope(|scope| {
        for (tag, len) in (0..).zip(OF_THREADS) {
            let (count, grown) = (&counts[tag as usize], &grown);
            scope.spawn(move || {
                if rank.rank() < 2 {
                    exchange_until(rank, (tag, len), count, grown);
                }
                let others = (0..3).filter(|&other| other != rank.rank());
                for other in others {
                    let said = pattern(len, rank.rank());
                    let got = exchange(rank, all, other as i32, tag, &said);
                    assert!(got == pattern(len, other));
                }
            });
        }
        if rank.rank() < 2 {
            while counts.iter().any(|count| count.load(Ordering::SeqCst) < 5) {
                std::thread::yield_now();
            }
            grow();
            grown.store(true, Ordering::SeqCst);
        }
    });
}

/// Ranks 0 and 1 exchange messages until both have `grown`, which the messages tell.
fn exchange_until(
    rank: &Arc<Rank>,
    (tag, len): (i32, usize),
    count: &AtomicUsize,
    grown: &AtomicBool,
) {
    let other = 1 - rank.rank();
    loop {
        let has_grown = grown.load(Ordering::SeqCst);
        let mut said = pattern(len, rank.rank());
        said[0] = has_grown.into();
        let got = exchange(rank, WORLD, other as i32, tag, &said);
        assert!(got[1..] == pattern(len, other)[1..]);
        count.fetch_add(1, Ordering::SeqCst);
        if has_grown && got[0] == 1 {
            return;
        }
    }
}

fn exchange(rank: &Rank, comm: u32, other: i32, tag: i32, said: &[u8]) -> Vec<u8> {
    let mut got = vec![0; said.len()];
    let receive = rank.lock().receive(room(&mut got), other, tag, comm);
    rank.send("MPI_Send", Mode::Standard, out(said), other, tag, comm)
        .unwrap();
    rank.wait("MPI_Wait", receive.unwrap()).unwrap();
    got
}

/// A rank without memory or devices gets its first peer.
#[test]
fn a_rank_that_was_alone_gets_a_peer() {
    for (seed, settings) in (0..).zip(WAYS) {
        eprintln!("seed {seed}");
        let (at_start, kept) = withhold(strict::nodes(2, &Setup::default()), 1);
        run_growing(at_start, &[0, 1], &[1, 2], settings, move |rank| {
            let all = all_ranks(rank, 2);
            if rank.rank() == 0 {
                let new = [NewPeer { rank: 1, host: 1 }];
                rank.add_peers(&new, take(&kept, rank)).unwrap();
                receive_hello(rank, all, 1);
            } else {
                begin_early(rank, all, &[0], || true);
            }
            random_program::play_on(rank, all, seed);
        });
    }
}

/// Without a device, a rank has no path to ranks that start later.
#[test]
fn a_rank_without_devices_adds_no_peer() {
    let rank = Rank::new(None, knobs::Knobs::default()).unwrap();
    let refused = rank.add_peers(&[NewPeer { rank: 1, host: 1 }], None);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("no device"), "{error}");
    assert_eq!(rank.hosts().ranks(), 1);
    rank.finish("MPI_Finalize").unwrap();
}

/// Growth takes the same virtual time whenever it is repeated.
#[test]
fn a_rank_becomes_a_peer_on_modelled_machines() {
    for (seed, name) in (0..).zip(["mpich2-2003", "2xqdr", "edr"]) {
        let run = || {
            let scene = MachineConfig::new(&system(name), 3, 1, seed).unwrap();
            play_growing(scene, &KNOWN, vec![], move |rank| {
                grow_in_virtual_time(rank);
                let all = all_ranks(rank, 3);
                random_program::play_on(rank, all, seed);
                rank.finish("MPI_Finalize").unwrap();
            })
        };
        assert_eq!(run(), run(), "{name}");
    }
}

/// Ranks 0 and 1 add rank 2 amid their traffic.
fn grow_in_virtual_time(rank: &Arc<Rank>) {
    if rank.rank() < 2 {
        amid_traffic(rank, || add_third(rank, 2, None));
    }
}

/// The network of the new rank breaks for ever: messages with it fail, and those of the others go
/// on.
#[test]
fn the_loss_of_a_new_peer_is_contained() {
    const BREAKS: u64 = 50_000_000;
    let mut scene = MachineConfig::new(&system("edr"), 3, 1, 1).unwrap();
    let mut faults = Faults::default();
    let fault = PortFault {
        host: 2,
        rail: 0,
        from: 1000 * BREAKS,
        until: u64::MAX,
        kind: PortFaultKind::Down,
    };
    faults.ports.push(fault).unwrap();
    scene.faults = faults;
    let settings = vec![("FISHPLATE_OUTAGE", "1s")];
    play_growing(scene, &KNOWN, settings, |rank| {
        grow_in_virtual_time(rank);
        let all = all_ranks(rank, 3);
        random_program::play_on(rank, all, 3);
        assert!(rank.now() < BREAKS, "{}", rank.now());
        rank.enter(mpi::ProgramCall::after(2 * BREAKS, "MPI_Wtime"));
        rank.leave();
        let peers: &[i32] = match rank.rank() {
            2 => &[0, 1],
            _ => &[2],
        };
        for &peer in peers {
            let lost = rank.receive("MPI_Recv", room(&mut [0; 8]), peer, 0, all);
            let is_loss = match lost {
                Err(error) => error.is_loss(),
                Ok(status) => rank.lock().is_loss(status.error),
            };
            assert!(is_loss, "rank {} and {peer}", rank.rank());
        }
        if rank.rank() < 2 {
            random_program::play(rank, 4);
        }
        let finished = rank.finish("MPI_Finalize");
        assert!(finished.is_ok(), "{finished:?}");
    });
}
