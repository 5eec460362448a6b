//! Files on a modelled machine with a storage: accesses take virtual time, one storage serves all
//! ranks, and nonblocking accesses go on beside computing.

use std::path::Path;
use std::sync::{Arc, Mutex};

use fabric::{GbPerSec, Nanos, Storage};
use model::config::MachineConfig;
use mpi::Rank;
use mpi::file::Direction::{Read, Write};
use mpi::file::{FileMemory, Pointer};

use super::{barrier, memory, open};
use crate::common::modelled::{Keep, play, system};

const BYTES: usize = 1_000_000;
/// Nanoseconds of the bytes of an access at 1 GB/s, and of a request.
const MOVED: u64 = 1_000_000;
const LATENCY: u64 = 200_000;

/// Virtual nanoseconds that `part` takes on each rank, after all have opened a file.
fn times(
    ranks: usize,
    has_storage: bool,
    part: impl Fn(&Arc<Rank>, u32, FileMemory) + Send + Sync + 'static,
) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut machine = system("qdr");
    machine.storage = has_storage.then_some(Storage {
        bandwidth: GbPerSec::from_bits_per_sec(8_000_000_000),
        latency: Nanos::from_picos(LATENCY * 1000),
    });
    let scene = MachineConfig::new(&machine, ranks, ranks, 1).unwrap();
    let found = Arc::new(Mutex::new(vec![0; ranks]));
    let theirs = found.clone();
    play(scene, vec![], Keep::Nothing, move |rank| {
        theirs.lock().unwrap()[rank.rank()] = timed(rank, &path, &part);
    });
    let found = found.lock().unwrap();
    found.clone()
}

fn timed(rank: &Arc<Rank>, path: &Path, part: &impl Fn(&Arc<Rank>, u32, FileMemory)) -> u64 {
    let file = open(rank, path, &[]).unwrap();
    let mut data = vec![rank.rank() as u8; BYTES];
    barrier(rank);
    let before = rank.virtual_time().unwrap().now;
    part(rank, file, memory(&mut data, 1));
    let time = (rank.virtual_time().unwrap().now - before) / 1000;
    rank.file_close("MPI_File_close", file).unwrap();
    time
}

/// The pointer of a rank's own part.
fn own(rank: &Rank) -> Pointer {
    Pointer::At((rank.rank() * BYTES) as i64)
}

#[test]
fn an_access_takes_the_time_of_its_bytes_and_of_its_request() {
    let write = |rank: &Arc<Rank>, file, data| {
        rank.file_access(file, Write, own(rank), data).unwrap();
    };
    let time = times(1, true, write)[0];
    let wanted = MOVED + LATENCY;
    assert!((wanted..wanted + 10_000).contains(&time), "{time}");
    let free = times(1, false, write)[0];
    assert!(free < 10_000, "{free}");
}

#[test]
fn ranks_share_the_storage() {
    let times = times(3, true, |rank, file, data| {
        rank.file_access(file, Write, own(rank), data.clone())
            .unwrap();
        barrier(rank);
    });
    let wanted = 3 * MOVED + LATENCY;
    for time in times {
        assert!((wanted..wanted + 50_000).contains(&time), "{time}");
    }
}

#[test]
fn collective_accesses_take_time_too() {
    let times = times(3, true, |rank, file, data| {
        rank.file_collective("write", file, Write, own(rank), Ok(data.clone()))
            .unwrap();
        rank.file_collective("read", file, Read, own(rank), Ok(data))
            .unwrap();
    });
    let wanted = 2 * (3 * MOVED + LATENCY);
    for time in times {
        assert!((wanted..wanted + 200_000).contains(&time), "{time}");
    }
}

#[test]
fn a_nonblocking_access_goes_on_beside_computing() {
    for is_collective in [false, true] {
        for computed in [3 * MOVED, MOVED / 2] {
            let times = times(2, true, move |rank, file, data| {
                let request = match is_collective {
                    false => rank.start_file_access(file, Write, own(rank), data),
                    true => rank.start_file_collective(file, Write, own(rank), Ok(data)),
                };
                rank.enter(mpi::ProgramCall::after(computed, "compute"));
                rank.leave();
                let status = rank.wait("MPI_Wait", request.unwrap()).unwrap();
                assert_eq!(status.bytes, BYTES as u64);
            });
            // The exchange of a collective access goes on in calls, as everywhere.
            let most = 2 * MOVED + LATENCY;
            let longest = times.iter().copied().max().unwrap();
            let least = computed.max(most);
            let limit = match is_collective {
                false => least + 50_000,
                true => computed + most + 100_000,
            };
            // The ranks leave the barrier one after the other.
            assert!(
                (least - 1000..limit).contains(&longest),
                "{computed}: {times:?}"
            );
        }
    }
}
