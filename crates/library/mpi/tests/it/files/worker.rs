//! Nonblocking accesses on real threads: they go on while the rank does something else, their
//! errors come with their completion, and nothing is lost where many are in progress.

use std::path::PathBuf;
use std::sync::Arc;

use ::file_io::{Call, Fault, FaultyStorage, Injected, RealStorage};
use mpi::file::Direction::{self, Read, Write};
use mpi::file::{FileMemory, Pointer, SplitKind};
use mpi::request::RequestId;
use mpi::{Class, Rank};

use super::{Shape, barrier, memory, open};
use crate::common::{run, run_shared};

/// The file of a test, and a storage for each rank.
struct Scene {
    _folder: tempfile::TempDir,
    path: PathBuf,
    storages: Vec<FaultyStorage>,
}

impl Scene {
    /// A scene whose rank 0 has this fault.
    fn new(ranks: usize, fault: Option<Fault>) -> Arc<Scene> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let storage = |rank: usize| {
            let faults = fault.filter(|_| rank == 0).into_iter().collect();
            FaultyStorage::new(Arc::new(RealStorage), faults)
        };
        let storages = (0..ranks).map(storage).collect();
        Arc::new(Scene {
            _folder: folder,
            path,
            storages,
        })
    }

    fn open(&self, rank: &Arc<Rank>, hints: &[(&str, &str)]) -> u32 {
        let storage = self.storages[rank.rank()].clone();
        rank.objects().files_mut().set_storage(Arc::new(storage));
        open(rank, &self.path, hints).unwrap()
    }
}

fn is_complete(rank: &Rank, request: RequestId) -> bool {
    rank.progress().unwrap();
    let state = rank.lock();
    !state.requests().valid(request).unwrap().is_open()
}

fn start(
    rank: &Arc<Rank>,
    file: u32,
    direction: Direction,
    at: i64,
    data: FileMemory,
) -> RequestId {
    rank.start_file_access(file, direction, Pointer::At(at), data)
        .unwrap()
}

#[test]
fn a_rank_goes_on_while_its_data_are_written() {
    let scene = Scene::new(2, None);
    run_shared(2, &[], move |rank| {
        let file = scene.open(rank, &[]);
        let storage = &scene.storages[rank.rank()];
        let mut data = vec![rank.rank() as u8 + 1; 100_000];
        let at = rank.rank() as i64 * 100_000;
        storage.hold();
        let request = start(rank, file, Write, at, memory(&mut data, 1));
        assert!(!is_complete(rank, request));
        // Messages pass meanwhile.
        barrier(rank);
        assert!(!is_complete(rank, request));
        storage.release();
        assert_eq!(rank.wait("MPI_Wait", request).unwrap().bytes, 100_000);
        barrier(rank);
        let mut room = vec![0; 100_000];
        let other = (1 - rank.rank()) as i64 * 100_000;
        let request = start(rank, file, Read, other, memory(&mut room, 1));
        assert_eq!(rank.wait("MPI_Wait", request).unwrap().bytes, 100_000);
        assert!(room.iter().all(|byte| *byte == 2 - rank.rank() as u8));
        rank.file_close("MPI_File_close", file).unwrap();
    });
}

/// All ranks begin a collective access whose files wait, in both kinds of calls, and with
/// collective buffering and without it.
#[test]
fn collective_accesses_go_on_meanwhile_too() {
    for switch in ["enable", "disable"] {
        let scene = Scene::new(3, None);
        run_shared(3, &[], move |rank| {
            let file = scene.open(rank, &[("romio_cb_write", switch)]);
            let shape = Shape {
                displacement: rank.rank() * 8,
                etype: 4,
                blocks: vec![(0, 2)],
                rest: 16,
            };
            shape.set(rank, file).unwrap();
            let mut data = vec![rank.rank() as u8 + 1; 800];
            let storage = &scene.storages[rank.rank()];
            storage.hold();
            let request = rank
                .start_file_collective(file, Write, Pointer::At(0), Ok(memory(&mut data, 1)))
                .unwrap();
            for _ in 0..5 {
                barrier(rank);
                assert!(!is_complete(rank, request));
            }
            // The release of one rank may complete the access of another.
            barrier(rank);
            storage.release();
            assert_eq!(rank.wait("MPI_Wait", request).unwrap().bytes, 800);
            let mut room = vec![0; 800];
            let split = SplitKind {
                direction: Read,
                pointer: Pointer::At(0).kind(),
            };
            rank.file_begin(file, Read, Pointer::At(0), Ok(memory(&mut room, 1)))
                .unwrap();
            barrier(rank);
            assert_eq!(rank.file_end("end", file, split).unwrap().bytes, 800);
            assert_eq!(room, data);
            rank.file_close("MPI_File_close", file).unwrap();
        });
    }
}

/// More accesses than a worker's queue has places, over shared memory and over devices.
#[test]
fn many_accesses_are_under_way_at_once() {
    let program = |scene: Arc<Scene>| {
        move |rank: &Arc<Rank>| {
            let file = scene.open(rank, &[]);
            let mut data: Vec<u8> = (0..300).map(|at| (at + rank.rank()) as u8).collect();
            let base = rank.rank() as i64 * 300;
            let requests: Vec<_> = data
                .chunks_mut(1)
                .enumerate()
                .map(|(at, byte)| start(rank, file, Write, base + at as i64, memory(byte, 1)))
                .collect();
            for request in requests {
                assert_eq!(rank.wait("MPI_Wait", request).unwrap().bytes, 1);
            }
            let mut room = vec![0; 300];
            rank.file_access(file, Read, Pointer::At(base), memory(&mut room, 1))
                .unwrap();
            assert_eq!(room, data);
            rank.file_close("MPI_File_close", file).unwrap();
        }
    };
    run(2, program(Scene::new(2, None)));
}

/// Requests are freed: closing the file waits for them.
#[test]
fn closing_waits_for_accesses_without_requests() {
    let scene = Scene::new(1, None);
    run_shared(1, &[], move |rank| {
        let file = scene.open(rank, &[]);
        let mut data = vec![7; 1000];
        let storage = &scene.storages[0];
        storage.hold();
        let request = start(rank, file, Write, 0, memory(&mut data, 1));
        rank.cancel(request).unwrap();
        assert!(!is_complete(rank, request));
        let mut state = rank.lock();
        state.requests_mut().detach(request).unwrap();
        drop(state);
        storage.release();
        rank.file_close("MPI_File_close", file).unwrap();
        assert_eq!(std::fs::read(&scene.path).unwrap(), data);
    });
}

/// An error comes with the completion of its access, with its class, and of a collective one on all
/// ranks. Accesses before and behind it are whole.
#[test]
fn errors_come_with_the_completion() {
    for (number, class) in [(5, Class::IO), (28, Class::NO_SPACE), (122, Class::QUOTA)] {
        for after in 0..4 {
            let fault = Fault {
                call: Call::Write,
                after,
                failure: Injected::Error(number),
            };
            let scene = Scene::new(2, Some(fault));
            let theirs = scene.clone();
            run_shared(2, &[], move |rank| {
                let file = theirs.open(rank, &[]);
                let mut data = vec![rank.rank() as u8 + 1; 40];
                let base = rank.rank() as i64 * 40;
                let parts = data.chunks_mut(20).enumerate();
                let started: Vec<_> = parts
                    .map(|(at, part)| {
                        start(rank, file, Write, base + 20 * at as i64, memory(part, 1))
                    })
                    .collect();
                let classes = started.into_iter().map(|request| {
                    let status = rank.wait("MPI_Wait", request).unwrap();
                    status.error
                });
                let mut classes: Vec<Class> = classes.collect();
                for _ in 0..2 {
                    let data = memory(&mut data, 1);
                    let request = rank
                        .start_file_collective(file, Write, Pointer::At(base), Ok(data))
                        .unwrap();
                    let status = rank.wait("MPI_Wait", request).unwrap();
                    classes.push(status.error);
                }
                // Accesses of one rank fail on it alone, collective ones on all.
                let strikes = |at: u64| at == after && (rank.rank() == 0 || at > 1);
                for (at, got) in (0u64..).zip(classes) {
                    let wanted = match strikes(at) {
                        true => class,
                        false => Class::SUCCESS,
                    };
                    assert_eq!(got, wanted, "access {at}, fault {fault:?}");
                }
                rank.file_close("MPI_File_close", file).unwrap();
            });
            assert_eq!(scene.storages[0].struck(), [fault]);
        }
    }
}

#[test]
fn the_shared_pointer_moves_when_an_access_starts() {
    let scene = Scene::new(1, None);
    run_shared(1, &[], move |rank| {
        let file = scene.open(rank, &[]);
        let storage = &scene.storages[0];
        let (mut first, mut second) = (vec![1; 10], vec![2; 10]);
        storage.hold();
        let request = rank
            .start_file_access(file, Write, Pointer::Shared, memory(&mut first, 1))
            .unwrap();
        assert_eq!(rank.file_position_shared(file).unwrap(), 10);
        storage.release();
        rank.file_access(file, Write, Pointer::Shared, memory(&mut second, 1))
            .unwrap();
        rank.wait("MPI_Wait", request).unwrap();
        let written = std::fs::read(&scene.path).unwrap();
        assert_eq!(written, [first, second].concat());
        rank.file_close("MPI_File_close", file).unwrap();
    });
}
