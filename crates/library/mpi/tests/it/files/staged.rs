//! Collective accesses through memory that the ranks of a host share: records of all ranks fill a
//! part of the file without gaps.

use std::path::Path;
use std::sync::Arc;

use ::file_io::{Call, FaultyStorage, RealStorage};
use mpi::Rank;
use mpi::file::Direction::{Read, Write};
use mpi::file::Pointer;

use super::{Shape, barrier, memory, open};
use crate::common::run_shared;

/// Records of one length, of which each rank has one in turn.
#[derive(Clone, Copy, Debug)]
struct Records {
    ranks: usize,
    /// Bytes of a record.
    run: usize,
    /// Bytes of each rank.
    bytes: usize,
    /// The byte of each rank's view where the access begins.
    at: usize,
    /// Bytes of the program's memory for each byte of data.
    spread: usize,
}

const DISPLACEMENT: usize = 5;

impl Records {
    fn shape(&self, rank: usize) -> Shape {
        Shape {
            displacement: DISPLACEMENT + rank * self.run,
            etype: 1,
            blocks: vec![(0, self.run)],
            rest: self.run * (self.ranks - 1),
        }
    }

    /// The offset in the file of a byte of a rank's data.
    fn place(&self, rank: usize, byte: usize) -> usize {
        let byte = self.at + byte;
        let (record, within) = (byte / self.run, byte % self.run);
        DISPLACEMENT + (record * self.ranks + rank) * self.run + within
    }

    fn value(rank: usize, byte: usize) -> u8 {
        (byte * 7 + rank * 31 + 1) as u8
    }

    /// The file after a write.
    fn file(&self) -> Vec<u8> {
        let end = self.place(self.ranks - 1, self.bytes - 1) + 1;
        let mut file = vec![0; end];
        for rank in 0..self.ranks {
            for byte in 0..self.bytes {
                file[self.place(rank, byte)] = Records::value(rank, byte);
            }
        }
        file
    }

    /// The program's memory of a rank, in which the first `valid` bytes of data are there.
    fn memory(&self, rank: usize, valid: usize) -> Vec<u8> {
        let mut memory = vec![0; self.bytes * self.spread];
        for byte in 0..valid {
            memory[byte * self.spread] = Records::value(rank, byte);
        }
        memory
    }

    /// The bytes of a rank before the end of the file.
    fn before(&self, rank: usize, end: usize) -> usize {
        let is_there = |byte: &usize| self.place(rank, *byte) < end;
        (0..self.bytes).take_while(is_there).count()
    }
}

/// Writes and reads. The results are the numbers of writes and reads that this rank has made.
fn write_and_read(
    rank: &Arc<Rank>,
    records: &Records,
    path: &Path,
    hints: &[(&str, &str)],
) -> [u64; 2] {
    let (me, storage) = (
        rank.rank(),
        FaultyStorage::new(Arc::new(RealStorage), vec![]),
    );
    rank.objects()
        .files_mut()
        .set_storage(Arc::new(storage.clone()));
    let file = open(rank, path, hints).unwrap();
    records.shape(me).set(rank, file).unwrap();
    let all = |direction, memory| {
        let place = Pointer::At(records.at as i64);
        let status = rank.file_collective("all", file, direction, place, Ok(memory));
        status.unwrap().bytes as usize
    };
    let count = |call| {
        let made = storage.made();
        let mut counts = made.iter().filter(|made| made.0 == call);
        counts.next().map_or(0, |made| made.1)
    };
    let before = [Call::Write, Call::Read].map(count);
    let mut data = records.memory(me, records.bytes);
    let written = all(Write, memory(&mut data, records.spread));
    assert_eq!(written, records.bytes);
    let whole = records.file();
    assert_eq!(std::fs::read(path).unwrap(), whole, "{records:?} {hints:?}");
    let mut room = records.memory(me, 0);
    assert_eq!(all(Read, memory(&mut room, records.spread)), records.bytes);
    assert_eq!(room, data, "{records:?} {hints:?}");
    let after = [Call::Write, Call::Read].map(count);
    // The file ends within a record, or even before the first.
    for end in [whole.len() * 2 / 3, DISPLACEMENT + records.run / 2, 0] {
        barrier(rank);
        rank.file_set_size("MPI_File_set_size", file, end as i64)
            .unwrap();
        let mut room = records.memory(me, 0);
        let valid = records.before(me, end);
        assert_eq!(all(Read, memory(&mut room, records.spread)), valid);
        assert_eq!(room, records.memory(me, valid), "{records:?} {hints:?}");
    }
    rank.file_close("MPI_File_close", file).unwrap();
    [after[0] - before[0], after[1] - before[1]]
}

/// All ranks write and read. The results are the numbers of their writes and reads together.
fn made(records: Records, hints: &'static [(&'static str, &'static str)]) -> [u64; 2] {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let counts = Arc::new(std::sync::Mutex::new([0; 2]));
    let theirs = counts.clone();
    run_shared(records.ranks, &[], move |rank| {
        let own = write_and_read(rank, &records, &folder.path().join("file"), hints);
        let mut counts = theirs.lock().unwrap();
        *counts = [counts[0] + own[0], counts[1] + own[1]];
    });
    *counts.lock().unwrap()
}

#[test]
fn records_go_through_the_stage_in_windows() {
    for (ranks, run, spread) in [(2, 64, 1), (3, 5, 1), (4, 100, 2), (2, 1, 2)] {
        let records = Records {
            ranks,
            run,
            bytes: run * 60,
            at: run * 2,
            spread,
        };
        // The windows that contain a part of the records; each is written once, and read once.
        let (start, end) = (records.place(0, 0), records.file().len());
        let windows = |len: usize| (end.div_ceil(len) - start / len) as u64;
        assert_eq!(made(records, &[]), [1, 1], "{records:?}");
        let small = made(records, &[("cb_buffer_size", "48")]);
        assert_eq!(small, [windows(48); 2], "{records:?}");
        let one = made(records, &[("cb_buffer_size", "100"), ("cb_nodes", "1")]);
        assert_eq!(one, [windows(100); 2], "{records:?}");
        // One direction does not use the stage.
        made(records, &[("romio_cb_write", "disable")]);
        made(records, &[("romio_cb_read", "disable")]);
    }
}

#[test]
fn windows_use_a_slot_of_the_stage_one_after_the_other() {
    let records = Records {
        ranks: 3,
        run: 1000,
        bytes: 2_000_000,
        at: 0,
        spread: 1,
    };
    let [writes, reads] = made(records, &[]);
    assert!(writes == reads && (6..100).contains(&writes), "{writes}");
}

/// Gaps that nobody names keep their bytes.
#[test]
fn records_that_leave_gaps_are_right_too() {
    let records = Records {
        ranks: 3,
        run: 10,
        bytes: 200,
        at: 4,
        spread: 1,
    };
    made(records, &[]);
    made(
        records,
        &[("romio_cb_write", "enable"), ("romio_cb_read", "enable")],
    );
}
