//! Collective accesses to few bytes of a long file: a collective call costs what its data cost,
//! not what the file spans. A test of an access that goes through all empty windows has no end.

use std::path::Path;
use std::sync::Arc;

use mpi::file::Direction::{Read, Write};
use mpi::file::Pointer;
use mpi::{Class, Rank, Result, Status};

use super::{Shape, memory, open};
use crate::common::run_with;

const RANKS: usize = 3;
/// Bytes of a run, and runs of a rank in each cluster.
const RUN: usize = 4;
const RUNS: usize = 64;
/// Clusters: places of the file where the runs of all ranks interleave.
const CLUSTERS: usize = 3;

/// The runs of a rank in clusters that begin `distance` bytes apart.
fn clusters(rank: usize, distance: usize) -> Shape {
    let beside = (RANKS - 1) * RUN;
    let mut blocks = vec![];
    for cluster in 0..CLUSTERS {
        let before = match cluster {
            0 => rank * RUN,
            _ => distance - RUNS * RANKS * RUN + beside,
        };
        blocks.push((before, RUN));
        blocks.extend([(beside, RUN)].repeat(RUNS - 1));
    }
    Shape {
        etype: 1,
        blocks,
        ..Shape::default()
    }
}

fn write_and_read(rank: &Arc<Rank>, path: &Path, distance: usize, hints: &[(&str, &str)]) {
    let file = open(rank, path, hints).unwrap();
    clusters(rank.rank(), distance).set(rank, file).unwrap();
    let len = CLUSTERS * RUNS * RUN;
    let mut data: Vec<u8> = (0..len).map(|at| (at * 7 + rank.rank()) as u8).collect();
    let move_all = |direction, data: &mut [u8]| {
        let memory = Ok(memory(data, 1));
        let pointer = Pointer::At(0);
        rank.file_collective("MPI_File_*_at_all", file, direction, pointer, memory)
    };
    move_all(Write, &mut data).unwrap();
    let mut read = vec![0; len];
    move_all(Read, &mut read).unwrap();
    assert_eq!(read, data);
    rank.file_close("MPI_File_close", file).unwrap();
}

#[test]
fn few_bytes_of_a_long_file_are_written_and_read() {
    let through_others = [("romio_cb_write", "enable"), ("romio_cb_read", "enable")];
    for hints in [&[][..], &through_others] {
        for shift in [28, 32, 42] {
            println!("clusters 2^{shift} bytes apart, hints {hints:?}");
            let folder = Arc::new(tempfile::tempdir().unwrap());
            let hints = hints.to_vec();
            run_with(RANKS, &[], move |rank| {
                let path = folder.path().join("file");
                write_and_read(rank, &path, 1 << shift, &hints);
            });
        }
    }
}

/// An access to places that no file can have.
fn reach_too_far(rank: &Arc<Rank>, path: &Path) -> Result<Status> {
    let file = open(rank, path, &[("romio_cb_write", "enable")]).unwrap();
    clusters(rank.rank(), 1 << 61).set(rank, file).unwrap();
    let mut data = vec![1; CLUSTERS * RUNS * RUN];
    let (pointer, memory) = (Pointer::At(0), Ok(memory(&mut data, 1)));
    let result = rank.file_collective("MPI_File_write_at_all", file, Write, pointer, memory);
    rank.file_close("MPI_File_close", file).unwrap();
    result
}

#[test]
fn a_write_beyond_the_largest_file_fails_on_all_ranks() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    run_with(RANKS, &[], move |rank| {
        let result = reach_too_far(rank, &folder.path().join("file"));
        // Some file systems have files of up to 2^63 bytes.
        if let Err(error) = result {
            assert_eq!(error.class, Class::IO, "{error}");
        }
    });
}
