//! Files: compared with an array of bytes, and under errors of the system.

mod injected;
mod random;
mod sparse;
mod staged;
mod stored;
mod worker;

use std::ops::ControlFlow;
use std::sync::Arc;

use datatype::{Predefined, Type};
use mpi::coll::Work;
use mpi::comm::WORLD;
use mpi::file::FileMemory;
use mpi::{Rank, Result, ViewArguments};

use crate::common::typed;

/// `MPI_MODE_CREATE | MPI_MODE_RDWR`, with the ABI's values.
const CREATE: i32 = 2 | 32;

fn byte() -> Type {
    Predefined::BYTE.into()
}

fn barrier(rank: &Rank) {
    rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
        .unwrap();
}

fn open(rank: &Arc<Rank>, path: &std::path::Path, hints: &[(&str, &str)]) -> Result<u32> {
    let info = hints
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()));
    rank.file_open("MPI_File_open", WORLD, Ok(path), CREATE, Ok(info.collect()))
}

/// Memory of `bytes.len() / stride` bytes, `stride` apart.
fn memory(bytes: &mut [u8], stride: usize) -> FileMemory {
    let ty = Type::resized(0, stride as isize, &byte()).unwrap();
    let count = bytes.len() / stride;
    FileMemory {
        buffer: typed(bytes, count, &ty),
        ty,
        count,
        address: 0,
        handle: 0,
    }
}

/// A view of blocks of etypes with gaps before them, and a gap behind the last.
#[derive(Clone, Debug, Default)]
struct Shape {
    displacement: usize,
    etype: usize,
    /// Bytes before each block, and its etypes.
    blocks: Vec<(usize, usize)>,
    rest: usize,
}

impl Shape {
    /// The view of a file that has just been opened.
    fn bytes() -> Shape {
        Shape {
            etype: 1,
            blocks: vec![(0, 1)],
            ..Shape::default()
        }
    }

    fn types(&self) -> (Type, Type) {
        let etype = Type::contiguous(self.etype as i64, &byte()).unwrap();
        let (mut lens, mut places, mut at) = (vec![], vec![], 0);
        for (gap, len) in &self.blocks {
            at += gap;
            lens.push(*len as i64);
            places.push(at as isize);
            at += len * self.etype;
        }
        let filetype = Type::hindexed(&lens, &places, &etype).unwrap();
        let extent = (at + self.rest) as isize;
        (etype, Type::resized(0, extent, &filetype).unwrap())
    }

    /// The offsets of the first `count` bytes of the view.
    fn offsets(&self, count: usize) -> Vec<usize> {
        let (mut list, mut at) = (vec![], self.displacement);
        while list.len() < count {
            for (gap, len) in &self.blocks {
                at += gap;
                list.extend(at..at + len * self.etype);
                at += len * self.etype;
            }
            at += self.rest;
        }
        list.truncate(count);
        list
    }

    fn set(&self, rank: &Arc<Rank>, file: u32) -> Result<()> {
        let (etype, filetype) = self.types();
        let [etype, filetype] = [etype, filetype].map(|ty| {
            let mut state = rank.lock();
            let handle = state.objects_mut().types_mut().add(ty).unwrap();
            state.objects_mut().types_mut().commit(handle).unwrap();
            handle
        });
        rank.file_set_view(
            "MPI_File_set_view",
            file,
            ViewArguments {
                displacement: self.displacement as i64,
                etype,
                filetype,
                representation: "native",
                info: Ok(vec![]),
            },
        )
    }
}

#[test]
fn shapes_are_the_views_that_they_make() {
    let shape = Shape {
        displacement: 3,
        etype: 2,
        blocks: vec![(1, 2), (0, 1), (4, 1)],
        rest: 5,
    };
    let (etype, filetype) = shape.types();
    let view = ::file_io::View::new(3, &etype, &filetype).unwrap();
    let mut list = vec![];
    let _ = view.runs(0, 30, &mut |offset, len| {
        list.extend(offset as usize..(offset + len) as usize);
        ControlFlow::Continue(())
    });
    assert_eq!(list, shape.offsets(30));
}
