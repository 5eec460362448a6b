//! Messages that a profile counts: each once, whatever its protocol; and counting changes nothing
//! else.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::common::modelled::{Keep, Run, play, system};
use crate::common::{out, pattern, random_program, room};
use model::config::MachineConfig;
use mpi::comm::WORLD;
use mpi::{Mode, Rank};
use profile::{Counted, RankProfile, RankRecord};

/// Runs a program on a modelled machine, with a profile or without.
fn run(
    name: &str,
    ranks: usize,
    profile: Option<&Arc<OwnedFd>>,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    let scene = MachineConfig::new(&system(name), ranks, 1, 1).unwrap();
    let profile = profile.cloned();
    play(scene, vec![], Keep::Digest, move |rank| {
        if let Some(file) = &profile {
            let own = Arc::new(RankProfile::open(file, rank.rank()).unwrap());
            own.begin("MPI_Init", 0);
            rank.count_messages(own);
        }
        program(rank);
    })
}

fn records(file: Arc<OwnedFd>, ranks: usize) -> Vec<RankRecord> {
    let file = File::from(Arc::try_unwrap(file).unwrap());
    profile::read(&file, ranks).unwrap()
}

#[test]
fn counting_changes_no_event_of_random_programs() {
    for seed in random_program::seeds(12) {
        eprintln!("seed {seed}");
        let (ranks, name) = (2 + seed as usize % 3, ["qdr", "2xqdr"][seed as usize % 2]);
        let without = run(name, ranks, None, move |rank| {
            random_program::play(rank, seed)
        });
        let file = Arc::new(profile::create(ranks).unwrap());
        let with = run(name, ranks, Some(&file), move |rank| {
            random_program::play(rank, seed)
        });
        assert_eq!(without, with, "seed {seed}");
        let sent: u64 = records(file, ranks)
            .iter()
            .flat_map(|record| &record.sizes)
            .map(|class| class.count)
            .sum();
        assert!(sent > 0, "seed {seed}: no message was counted");
    }
}

/// The sizes of the messages of a scripted program: packets, pieces, and announced messages.
const SIZES: [usize; 6] = [0, 8, 100, 4096, 70_000, 1 << 20];

/// Rank 0 sends each size to rank 1 by each mode; rank 2 sends to itself.
fn scripted(rank: &Arc<Rank>) {
    let modes = [Mode::Standard, Mode::Synchronous, Mode::Ready];
    for len in SIZES {
        for mode in modes {
            let tag = len as i32;
            match rank.rank() {
                0 => {
                    let data = pattern(len, 1);
                    // The receive has been posted.
                    rank.receive("MPI_Recv", room(&mut []), 1, 7, WORLD)
                        .unwrap();
                    rank.send("MPI_Send", mode, out(&data), 1, tag, WORLD)
                        .unwrap();
                }
                1 => {
                    let mut data = vec![0; len];
                    let receive = rank.lock().receive(room(&mut data), 0, tag, WORLD);
                    let receive = receive.unwrap();
                    rank.send("MPI_Send", Mode::Standard, out(&[]), 0, 7, WORLD)
                        .unwrap();
                    rank.wait("MPI_Wait", receive).unwrap();
                    assert_eq!(data, pattern(len, 1));
                }
                _ => {}
            }
        }
    }
    if rank.rank() == 2 {
        let mut data = [0; 3];
        let receive = rank.lock().receive(room(&mut data), 2, 9, WORLD).unwrap();
        rank.send("MPI_Send", Mode::Standard, out(&[1, 2, 3]), 2, 9, WORLD)
            .unwrap();
        rank.wait("MPI_Wait", receive).unwrap();
    }
}

#[test]
fn each_message_of_a_scripted_program_is_counted_once() {
    let file = Arc::new(profile::create(3).unwrap());
    run("qdr", 3, Some(&file), scripted);
    let records = records(file, 3);
    let of = |rank: usize| -> Vec<(u64, Counted)> {
        let peers = records[rank].peers.iter();
        peers.map(|peer| (peer.rank, peer.sent)).collect()
    };
    let bytes = 3 * SIZES.iter().sum::<usize>() as u64;
    assert_eq!(of(0), [(1, Counted { count: 18, bytes })]);
    assert_eq!(
        of(1),
        [(
            0,
            Counted {
                count: 18,
                bytes: 0
            }
        )]
    );
    assert_eq!(of(2), [(2, Counted { count: 1, bytes: 3 })]);
    let classes: Vec<[u64; 3]> = records[0]
        .sizes
        .iter()
        .map(|class| [class.up_to, class.count, class.bytes])
        .collect();
    let expected = [
        [0, 3, 0],
        [8, 3, 24],
        [128, 3, 300],
        [4096, 3, 3 * 4096],
        [1 << 17, 3, 210_000],
        [1 << 20, 3, 3 << 20],
    ];
    assert_eq!(classes, expected);
}
