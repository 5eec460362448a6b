//! Collective benchmarks: each call is timed on every rank, with a barrier after it, and the times
//! are averaged over the ranks.

use anyhow::Result;
use memmap2::MmapMut;

use crate::ffi::Mpi;
use crate::plan::{Benchmark, WorkerPlan};
use crate::procedure::{Iteration, Procedure, Repeated, buffer, paint, pattern, verify};

const ROOT: usize = 0;

pub(crate) fn procedure<'a>(
    mpi: &'a Mpi,
    plan: &WorkerPlan,
    largest: usize,
) -> Result<Box<dyn Procedure + 'a>> {
    let operation = plan.benchmark;
    let blocks = |of_each: bool| {
        if of_each {
            largest * mpi.size()
        } else {
            largest
        }
    };
    let send = buffer(blocks(sends_blocks(operation)))?;
    let recv = buffer(blocks(receives_blocks(operation)))?;
    let iteration = Collective {
        mpi,
        operation,
        send,
        recv,
    };
    Ok(Box::new(Repeated {
        mpi,
        validate: plan.validate,
        iteration,
    }))
}

/// Whether a rank sends one block to each rank.
fn sends_blocks(operation: Benchmark) -> bool {
    matches!(operation, Benchmark::Scatter | Benchmark::Alltoall)
}

/// Whether a rank receives one block from each rank.
fn receives_blocks(operation: Benchmark) -> bool {
    matches!(
        operation,
        Benchmark::Gather | Benchmark::Allgather | Benchmark::Alltoall
    )
}

struct Collective<'a> {
    mpi: &'a Mpi,
    operation: Benchmark,
    send: MmapMut,
    recv: MmapMut,
}

impl Iteration for Collective<'_> {
    const TIMED_EACH: bool = true;

    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let Collective {
            mpi, send, recv, ..
        } = self;
        let all = size * mpi.size();
        match self.operation {
            Benchmark::Barrier => mpi.barrier(),
            Benchmark::Bcast => mpi.bcast(&mut recv[..size], ROOT),
            Benchmark::Reduce => mpi.reduce(
                bytemuck::cast_slice(&send[..size]),
                bytemuck::cast_slice_mut(&mut recv[..size]),
                ROOT,
            ),
            Benchmark::Allreduce => mpi.allreduce(
                bytemuck::cast_slice(&send[..size]),
                bytemuck::cast_slice_mut(&mut recv[..size]),
            ),
            Benchmark::Gather => mpi.gather(&send[..size], &mut recv[..all], ROOT),
            Benchmark::Scatter => mpi.scatter(&send[..all], &mut recv[..size], ROOT),
            Benchmark::Allgather => mpi.allgather(&send[..size], &mut recv[..all]),
            Benchmark::Alltoall => mpi.alltoall(&send[..all], &mut recv[..all]),
            other => unreachable!("{} is not a collective", other.name()),
        }
    }

    fn between(&mut self) -> Result<()> {
        if self.operation == Benchmark::Barrier {
            Ok(())
        } else {
            self.mpi.barrier()
        }
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        let (rank, ranks) = (self.mpi.rank(), self.mpi.size());
        self.recv.fill(0);
        match self.operation {
            Benchmark::Barrier => {}
            Benchmark::Bcast if rank == ROOT => paint(&mut self.recv[..size], ROOT, iteration),
            Benchmark::Bcast => {}
            Benchmark::Reduce | Benchmark::Allreduce => {
                let elements: &mut [i32] = bytemuck::cast_slice_mut(&mut self.send[..size]);
                for (at, element) in elements.iter_mut().enumerate() {
                    *element = summand(rank, iteration, at);
                }
            }
            _ if sends_blocks(self.operation) && size > 0 => {
                let blocks = self.send[..size * ranks].chunks_exact_mut(size);
                for (to, block) in blocks.enumerate() {
                    paint(block, pair_seed(rank, to), iteration);
                }
            }
            _ => paint(&mut self.send[..size], rank, iteration),
        }
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        let (rank, ranks) = (self.mpi.rank(), self.mpi.size());
        let block = |from: usize| &self.recv[from * size..(from + 1) * size];
        match self.operation {
            Benchmark::Barrier => Ok(()),
            Benchmark::Reduce | Benchmark::Gather if rank != ROOT => Ok(()),
            Benchmark::Bcast => verify(&self.recv[..size], |at| pattern(ROOT, iteration, at)),
            Benchmark::Reduce | Benchmark::Allreduce => verify(&self.recv[..size], |at| {
                let sum: i32 = (0..ranks)
                    .map(|from| summand(from, iteration, at / 4))
                    .sum();
                sum.to_ne_bytes()[at % 4]
            }),
            Benchmark::Scatter => verify(&self.recv[..size], |at| {
                pattern(pair_seed(ROOT, rank), iteration, at)
            }),
            Benchmark::Alltoall => (0..ranks).try_for_each(|from| {
                verify(block(from), |at| {
                    pattern(pair_seed(from, rank), iteration, at)
                })
            }),
            _ => (0..ranks)
                .try_for_each(|from| verify(block(from), |at| pattern(from, iteration, at))),
        }
    }
}

/// A seed of the data from one rank to another.
fn pair_seed(from: usize, to: usize) -> usize {
    from + 5 * to
}

fn summand(rank: usize, iteration: usize, at: usize) -> i32 {
    ((rank + 1) * (at % 1009 + 1) + iteration) as i32
}
