//! Random programs on a file, compared with an array of bytes: views, pointers, forms of calls,
//! hints, atomic mode, overlapping writes. `SEED=n` runs the program of seed n only.

use std::path::Path;
use std::sync::Arc;

use model::config::MachineConfig;
use mpi::Rank;
use mpi::file::Direction::{self, Read, Write};
use mpi::file::{Pointer, SEEK_SET, SplitKind};
use sim::Random;

use super::{Shape, barrier, memory, open};
use crate::common::modelled::{Keep, play, system};
use crate::common::random_program::seeds;
use crate::common::run_with;

const STEPS: usize = 40;
/// The longest access in etypes.
const LONGEST: u64 = 40;
const HINTS: [&[(&str, &str)]; 5] = [
    &[],
    &[("romio_ds_write", "enable"), ("ind_wr_buffer_size", "64")],
    &[("romio_ds_read", "disable"), ("romio_cb_write", "disable")],
    &[("ind_rd_buffer_size", "16"), ("cb_buffer_size", "32")],
    &[
        ("romio_cb_write", "enable"),
        ("romio_cb_read", "enable"),
        ("cb_nodes", "2"),
        ("cb_buffer_size", "64"),
    ],
];

/// The program of a seed as one rank runs it, with what it knows of the file and of all ranks.
struct Program<'a> {
    rank: &'a Arc<Rank>,
    path: &'a Path,
    file: u32,
    random: Random,
    bytes: Vec<u8>,
    views: Vec<Shape>,
    positions: Vec<usize>,
    shared: usize,
    is_atomic: bool,
    step: usize,
}

/// An access of one rank: its place and length in etypes.
#[derive(Clone, Copy, Debug)]
struct Planned {
    rank: usize,
    start: usize,
    etypes: usize,
    stride: usize,
}

/// Where accesses begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Explicit,
    Individual,
    Shared,
}

/// The form of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Alone,
    StartedAlone,
    Together,
    StartedTogether,
    Split,
}

impl<'a> Program<'a> {
    fn begin(rank: &'a Arc<Rank>, path: &'a Path, seed: u64) -> Program<'a> {
        let mut random = Random::new(seed ^ 0xf11e);
        let hints = HINTS[random.below(HINTS.len() as u64) as usize];
        Program {
            rank,
            path,
            file: open(rank, path, hints).unwrap(),
            random,
            bytes: vec![],
            views: vec![Shape::bytes(); rank.size()],
            positions: vec![0; rank.size()],
            shared: 0,
            is_atomic: false,
            step: 0,
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }

    fn size(&self) -> usize {
        self.views.len()
    }

    fn run(mut self) {
        for step in 0..STEPS {
            self.step = step;
            match self.below(8) {
                0 => self.set_views(),
                1 => self.change_state(),
                2..=4 => self.access(Write),
                _ => self.access(Read),
            }
        }
        self.rank.file_close("MPI_File_close", self.file).unwrap();
        assert_eq!(std::fs::read(self.path).unwrap(), self.bytes);
    }

    fn set_views(&mut self) {
        let (size, apart, etype) = (self.size(), self.below(2) == 0, 1 + self.below(8));
        let (len, gap, displacement) = (1 + self.below(6), self.below(5), self.below(9));
        let mut views = vec![];
        for rank in 0..size {
            let (blocks, rest) = (1 + self.below(4), self.below(6));
            views.push(match apart {
                // Each rank has its part of each row.
                true => Shape {
                    displacement: displacement + rank * (len * etype + gap),
                    etype,
                    blocks: vec![(0, len)],
                    rest: (size - 1) * (len * etype + gap) + gap,
                },
                false => Shape {
                    displacement: self.below(30),
                    etype,
                    blocks: (0..blocks)
                        .map(|_| (self.below(7), 1 + self.below(4)))
                        .collect(),
                    rest,
                },
            });
        }
        self.views = views;
        (self.positions, self.shared) = (vec![0; size], 0);
        self.views[self.rank.rank()]
            .set(self.rank, self.file)
            .unwrap();
    }

    fn change_state(&mut self) {
        let (rank, file) = (self.rank, self.file);
        match self.below(5) {
            0 => {
                self.is_atomic = !self.is_atomic;
                rank.file_set_atomicity("MPI_File_set_atomicity", file, self.is_atomic)
                    .unwrap();
            }
            1 => {
                let len = self.below(self.bytes.len() + 20);
                self.bytes.resize(len, 0);
                rank.file_set_size("MPI_File_set_size", file, len as i64)
                    .unwrap();
            }
            2 => {
                let len = self.below(self.bytes.len() + 20);
                self.bytes.resize(self.bytes.len().max(len), 0);
                rank.file_preallocate("MPI_File_preallocate", file, len as i64)
                    .unwrap();
            }
            3 => {
                self.shared = self.below(50);
                rank.file_seek_shared("MPI_File_seek_shared", file, self.shared as i64, SEEK_SET)
                    .unwrap();
            }
            _ => {
                for at in 0..self.size() {
                    self.positions[at] = self.below(50);
                }
                let mine = self.positions[rank.rank()] as i64;
                rank.objects().file_seek(file, mine, SEEK_SET).unwrap();
                rank.file_sync("MPI_File_sync", file).unwrap();
            }
        }
        assert_eq!(
            rank.objects().file_size(file).unwrap(),
            self.bytes.len() as i64
        );
        barrier(rank);
    }

    /// Plans the accesses of all ranks, makes this rank's, and checks.
    fn access(&mut self, direction: Direction) {
        let place = [Place::Explicit, Place::Individual, Place::Shared][self.below(3)];
        let form = [
            Form::Alone,
            Form::StartedAlone,
            Form::Together,
            Form::StartedTogether,
            Form::Split,
        ][self.below(5)];
        let alone = matches!(form, Form::Alone | Form::StartedAlone);
        // Ordered accesses have no nonblocking form.
        let form = match (form, place) {
            (Form::StartedTogether, Place::Shared) => Form::Split,
            (form, _) => form,
        };
        // By the shared pointer, accesses of several ranks alone have no order.
        let only = match alone && (place == Place::Shared || self.below(2) == 0) {
            true => Some(self.below(self.size())),
            false => None,
        };
        let mut planned = vec![];
        for rank in 0..self.size() {
            let etypes = [0, 1, self.random.below(LONGEST) as usize][self.below(3)];
            let (explicit, stride) = (self.below(60), 1 + self.below(3));
            if only.is_some_and(|only| only != rank) {
                continue;
            }
            let start = match place {
                Place::Explicit => explicit,
                Place::Individual => self.positions[rank],
                Place::Shared => self.shared,
            };
            match place {
                Place::Explicit => {}
                Place::Individual => self.positions[rank] += etypes,
                Place::Shared => self.shared += etypes,
            }
            planned.push(Planned {
                rank,
                start,
                etypes,
                stride,
            });
        }
        let me = self.rank.rank();
        let mine = planned.iter().find(|planned| planned.rank == me).copied();
        match direction {
            Read => {
                if let Some(mine) = mine {
                    self.read(mine, place, form);
                }
                // Nobody writes while others read.
                barrier(self.rank);
            }
            Write => {
                if let Some(mine) = mine {
                    let mut data = self.spread(&mine);
                    let bytes = self.make(Write, place, form, &mine, &mut data);
                    assert_eq!(bytes, mine.etypes * self.views[me].etype);
                }
                barrier(self.rank);
                self.check_written(&planned);
                barrier(self.rank);
            }
        }
    }

    /// The bytes that a rank writes in this step.
    fn data(&self, planned: &Planned) -> Vec<u8> {
        let len = planned.etypes * self.views[planned.rank].etype;
        let first = self.step * 7 + planned.rank * 61 + 1;
        (0..len).map(|at| (first + at * 3) as u8).collect()
    }

    /// The same in memory with gaps.
    fn spread(&self, planned: &Planned) -> Vec<u8> {
        let data = self.data(planned);
        let mut memory = vec![0; data.len() * planned.stride];
        for (at, byte) in data.iter().enumerate() {
            memory[at * planned.stride] = *byte;
        }
        memory
    }

    /// The offsets of the bytes of an access.
    fn offsets(&self, planned: &Planned) -> Vec<usize> {
        let view = &self.views[planned.rank];
        let (start, len) = (planned.start * view.etype, planned.etypes * view.etype);
        view.offsets(start + len).split_off(start)
    }

    fn read(&mut self, mine: Planned, place: Place, form: Form) {
        let view = &self.views[mine.rank];
        let mut memory = vec![0xee; mine.etypes * view.etype * mine.stride];
        let bytes = self.make(Read, place, form, &mine, &mut memory);
        let offsets = self.offsets(&mine);
        let wanted = offsets.iter().map_while(|at| self.bytes.get(*at).copied());
        let wanted: Vec<u8> = wanted.collect();
        assert_eq!(bytes, wanted.len(), "{mine:?}");
        for (at, byte) in memory.iter().enumerate() {
            let is_data = at % mine.stride == 0;
            let wanted = wanted.get(at / mine.stride).filter(|_| is_data);
            assert_eq!(
                byte,
                wanted.unwrap_or(&0xee),
                "byte {at} of {mine:?}, step {}",
                self.step
            );
        }
    }

    /// Makes an access, and returns the bytes in its status.
    fn make(
        &self,
        direction: Direction,
        place: Place,
        form: Form,
        mine: &Planned,
        data: &mut [u8],
    ) -> usize {
        let (rank, file) = (self.rank, self.file);
        let memory = memory(data, mine.stride);
        let pointer = match place {
            Place::Explicit => Pointer::At(mine.start as i64),
            Place::Individual => Pointer::Individual,
            Place::Shared => Pointer::Shared,
        };
        let wait = |id| rank.wait("MPI_Wait", id);
        let status = match form {
            Form::Alone => rank.file_access(file, direction, pointer, memory),
            Form::StartedAlone => rank
                .start_file_access(file, direction, pointer, memory)
                .and_then(wait),
            Form::Together => {
                rank.file_collective("MPI_File_all", file, direction, pointer, Ok(memory))
            }
            Form::StartedTogether => rank
                .start_file_collective(file, direction, pointer, Ok(memory))
                .and_then(wait),
            Form::Split => rank
                .file_begin(file, direction, pointer, Ok(memory))
                .and_then(|()| {
                    let pointer = pointer.kind();
                    rank.file_end("MPI_File_end", file, SplitKind { direction, pointer })
                }),
        };
        let status = status.unwrap();
        assert_eq!(status.error, mpi::Class::SUCCESS);
        status.bytes as usize
    }

    /// Compares the file with what ranks have written, and takes over which of them came last.
    fn check_written(&mut self, planned: &[Planned]) {
        let actual = std::fs::read(self.path).unwrap();
        let writes: Vec<(Vec<usize>, Vec<u8>)> = planned
            .iter()
            .map(|planned| (self.offsets(planned), self.data(planned)))
            .collect();
        let end = writes.iter().filter_map(|(offsets, _)| offsets.last());
        let end = end.map(|last| last + 1).max().unwrap_or(0);
        self.bytes.resize(self.bytes.len().max(end), 0);
        assert_eq!(actual.len(), self.bytes.len(), "step {}", self.step);
        let mut candidates: Vec<Vec<u8>> = vec![vec![]; actual.len()];
        for (offsets, data) in &writes {
            for (at, byte) in offsets.iter().zip(data) {
                candidates[*at].push(*byte);
            }
        }
        for (at, byte) in actual.iter().enumerate() {
            let is_right = match candidates[at].is_empty() {
                true => *byte == self.bytes[at],
                false => candidates[at].contains(byte),
            };
            assert!(
                is_right,
                "byte {at} is {byte} after step {}: {planned:?}",
                self.step
            );
        }
        if self.is_atomic {
            let in_order = orders(writes.len()).any(|order| {
                let mut bytes = self.bytes.clone();
                for at in order {
                    for (offset, byte) in writes[at].0.iter().zip(&writes[at].1) {
                        bytes[*offset] = *byte;
                    }
                }
                bytes == actual
            });
            assert!(
                in_order,
                "the writes of step {} are not atomic: {planned:?}",
                self.step
            );
        }
        self.bytes = actual;
    }
}

/// All orders of numbers below `count`.
fn orders(count: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut orders = vec![vec![]];
    for next in 0..count {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=order.len()).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, next);
                    order
                })
            })
            .collect();
    }
    orders.into_iter()
}

/// Ranks as threads, which access the file at the same time.
#[test]
fn random_programs_of_threads() {
    for seed in seeds(40) {
        println!("seed {seed}");
        let ranks = 1 + seed as usize % 4;
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let of_run = Runs::default();
        run_with(ranks, &[], move |rank| {
            let path = folder.path().join(format!("file{}", of_run.number(rank)));
            Program::begin(rank, &path, seed).run();
        });
    }
}

/// Numbers the runs of a program by what their ranks have in common.
#[derive(Default)]
struct Runs(std::sync::Mutex<Vec<usize>>);

impl Runs {
    /// The number of the run of this rank, which each rank asks for once.
    fn number(&self, rank: &Rank) -> usize {
        let mut begun = self.0.lock().unwrap();
        let size = begun.len().max(rank.size());
        begun.resize(size, 0);
        begun[rank.rank()] += 1;
        begun[rank.rank()]
    }
}

/// Ranks on modelled machines, whose files are real.
#[test]
fn random_programs_of_modelled_ranks() {
    for seed in seeds(60) {
        println!("seed {seed}");
        let ranks = 1 + seed as usize % 5;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let hosts = 1 + seed as usize % 2;
        let scene = MachineConfig::new(&system("qdr"), ranks, ranks.div_ceil(hosts), seed).unwrap();
        play(scene, vec![], Keep::Nothing, move |rank| {
            Program::begin(rank, &path, seed).run();
        });
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the file itself is left");
    }
}
