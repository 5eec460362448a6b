//! Messages of whole programs: the communication of two kernels of the NAS parallel benchmarks,
//! without their computing.
//!
//! *Sweep* follows LU. Ranks form a grid. A wavefront moves from one corner to the opposite one and
//! back, plane after plane, with a short message to each of two neighbours. Then all neighbours
//! exchange faces, which are long messages.
//!
//! *Sort* follows IS. An allreduce sums the fill of the buckets, an alltoall exchanges the sizes of
//! all parts, and an alltoallv exchanges the parts, which differ in size.

use std::cell::Cell;

use anyhow::Result;
use memmap2::MmapMut;

use crate::benchmark::Benchmark;
use crate::ffi::{Handles, Mpi};
use crate::plan::WorkerPlan;
use crate::procedure::{Iteration, Procedure, Repeated, buffer, paint, pattern, verify};

/// The number of planes in a sweep: class A of LU has 64, two of them at the border.
const PLANES: usize = 62;
/// The length of a message with a face of the grid, as a multiple of a plane's message: a face is
/// two cells deep.
const FACE: usize = 2 * 64;
/// The number of counts that the kernel IS sums over all ranks.
const BUCKETS: usize = 1024;
const TAG_PLANE: i32 = 71;
const TAG_FACE: i32 = 72;

pub(crate) fn procedure<'a>(
    mpi: &'a Mpi,
    plan: &WorkerPlan,
    largest: usize,
) -> Result<Box<dyn Procedure + 'a>> {
    let validate = plan.validate;
    Ok(match plan.benchmark {
        Benchmark::Sweep => Box::new(Repeated {
            mpi,
            validate,
            iteration: Sweep::new(mpi, largest)?,
        }),
        _ => Box::new(Repeated {
            mpi,
            validate,
            iteration: Sort::new(mpi, largest)?,
        }),
    })
}

/// The indices of a rank's neighbours (above, left, below, right) in an array of them.
const ABOVE: usize = 0;
const LEFT: usize = 1;
const BELOW: usize = 2;
const RIGHT: usize = 3;

struct Sweep<'a> {
    mpi: &'a Mpi,
    around: [Option<usize>; 4],
    send: MmapMut,
    /// The receive buffers: for each neighbour, room for the message of a plane and for a face.
    recv: MmapMut,
    handles: Handles,
}

impl<'a> Sweep<'a> {
    fn new(mpi: &'a Mpi, largest: usize) -> Result<Sweep<'a>> {
        Ok(Sweep {
            mpi,
            around: around(mpi.rank(), mpi.size()),
            send: buffer(FACE * largest)?,
            recv: buffer(4 * (1 + FACE) * largest)?,
            handles: Handles::default(),
        })
    }
}

/// The neighbours of a rank in the grid that is closest to a square; it has at least as many
/// columns as rows.
fn around(rank: usize, ranks: usize) -> [Option<usize>; 4] {
    let rows = (1..=ranks.isqrt())
        .rev()
        .find(|rows| ranks.is_multiple_of(*rows));
    let columns = ranks / rows.unwrap_or(1);
    let (row, column) = (rank / columns, rank % columns);
    let mut around = [None; 4];
    around[ABOVE] = (row > 0).then(|| rank - columns);
    around[LEFT] = (column > 0).then(|| rank - 1);
    around[BELOW] = (rank + columns < ranks).then(|| rank + columns);
    around[RIGHT] = (column + 1 < columns).then(|| rank + 1);
    around
}

impl Iteration for Sweep<'_> {
    fn step(&mut self, size: usize) -> Result<()> {
        let Sweep {
            mpi,
            around,
            send,
            recv,
            handles,
        } = self;
        for (from, to) in [
            ([ABOVE, LEFT], [BELOW, RIGHT]),
            ([BELOW, RIGHT], [ABOVE, LEFT]),
        ] {
            for _ in 0..PLANES {
                for side in from {
                    if let Some(peer) = around[side] {
                        let at = side * (1 + FACE) * size;
                        mpi.recv(&mut recv[at..at + size], peer, TAG_PLANE)?;
                    }
                }
                for side in to {
                    if let Some(peer) = around[side] {
                        mpi.send(&send[..size], peer, TAG_PLANE)?;
                    }
                }
            }
        }
        let sides = Cell::from_mut(&mut recv[..4 * (1 + FACE) * size]).as_slice_of_cells();
        mpi.window(handles, |window| {
            for (side, peer) in around.iter().enumerate() {
                if let &Some(peer) = peer {
                    let at = (side * (1 + FACE) + 1) * size;
                    window.irecv(&sides[at..at + FACE * size], peer, TAG_FACE)?;
                }
            }
            for peer in around.iter().flatten() {
                window.isend(&send[..FACE * size], *peer, TAG_FACE)?;
            }
            Ok(())
        })
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        self.recv.fill(0);
        paint(&mut self.send[..FACE * size], self.mpi.rank(), iteration);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        for (side, peer) in self.around.iter().enumerate() {
            if let &Some(peer) = peer {
                let at = side * (1 + FACE) * size;
                let expected = |at| pattern(peer, iteration, at);
                verify(&self.recv[at..at + size], expected)?;
                verify(&self.recv[at + size..at + (1 + FACE) * size], expected)?;
            }
        }
        Ok(())
    }
}

struct Sort<'a> {
    mpi: &'a Mpi,
    buckets: [Vec<i32>; 2],
    send: MmapMut,
    recv: MmapMut,
}

impl<'a> Sort<'a> {
    fn new(mpi: &'a Mpi, largest: usize) -> Result<Sort<'a>> {
        let most = mpi.size() * part(largest, 0, 2);
        Ok(Sort {
            mpi,
            buckets: [vec![1; BUCKETS], vec![0; BUCKETS]],
            send: buffer(most)?,
            recv: buffer(most)?,
        })
    }
}

/// The length of the part from one rank to another, in bytes: on average `size`, at most an eighth
/// more or less.
fn part(size: usize, from: usize, to: usize) -> usize {
    size - size / 8 + size / 16 * ((3 * from + 2 * to) % 5)
}

impl Iteration for Sort<'_> {
    fn step(&mut self, size: usize) -> Result<()> {
        let (mpi, rank) = (self.mpi, self.mpi.rank());
        let [own, sum] = &mut self.buckets;
        mpi.allreduce(own, sum)?;
        let to: Vec<i32> = (0..mpi.size())
            .map(|peer| part(size, rank, peer) as i32)
            .collect();
        let mut from = vec![0; mpi.size()];
        mpi.alltoall(
            bytemuck::cast_slice(&to),
            bytemuck::cast_slice_mut(&mut from),
        )?;
        mpi.alltoallv(&self.send, &to, &mut self.recv, &from)
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        let rank = self.mpi.rank();
        self.recv.fill(0);
        let mut at = 0;
        for peer in 0..self.mpi.size() {
            let len = part(size, rank, peer);
            paint(&mut self.send[at..at + len], rank + 5 * peer, iteration);
            at += len;
        }
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        let rank = self.mpi.rank();
        let mut at = 0;
        for peer in 0..self.mpi.size() {
            let len = part(size, peer, rank);
            let sender = peer + 5 * rank;
            verify(&self.recv[at..at + len], |at| {
                pattern(sender, iteration, at)
            })?;
            at += len;
        }
        let ranks = self.mpi.size() as i32;
        verify(bytemuck::cast_slice(&self.buckets[1]), |at| {
            ranks.to_ne_bytes()[at % 4]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_know_each_other() {
        assert_eq!(around(5, 8), [Some(1), Some(4), None, Some(6)]);
        for ranks in 1..20 {
            for rank in 0..ranks {
                for (side, peer) in around(rank, ranks).into_iter().enumerate() {
                    if let Some(peer) = peer {
                        assert_eq!(around(peer, ranks)[(side + 2) % 4], Some(rank));
                    }
                }
            }
        }
    }

    #[test]
    fn parts_lie_around_their_average() {
        let parts = || (0..5).map(|to| part(1 << 20, 1, to));
        assert_eq!(parts().sum::<usize>(), 5 << 20);
        assert_eq!(parts().max(), Some(part(1 << 20, 0, 2)));
        assert!(part(4, 0, 1) > 0);
    }
}
