//! Collective benchmarks: each operation is timed on every rank, followed by a barrier, and the
//! times are averaged over the ranks.

use anyhow::{Context, Result};

use crate::ffi::Mpi;
use crate::ffi::collective::{CollectiveCall, ROOT};
use crate::form::Form;
use crate::operation::{Collective, Contents, Operation, Share, Summands};
use crate::overlap::{self, Overlapped};
use crate::plan::{Repeats, WorkerPlan};
use crate::procedure::{Iteration, Procedure, Repeated, paint, pattern, synchronise, verify};

pub(crate) fn procedure<'a>(
    mpi: &'a Mpi,
    collective: Collective,
    plan: &WorkerPlan,
    largest: usize,
) -> Result<Box<dyn Procedure + 'a>> {
    let call = CollectiveCall::new(mpi, collective, plan.topology, largest)?;
    let iteration = Measured {
        mpi,
        collective,
        call,
        validate: plan.validate,
        // Computing takes no time on a modelled machine.
        overlap: collective.form == Form::Nonblocking && !plan.modelled,
        test_calls: plan.test_calls,
    };
    Ok(Box::new(Repeated {
        mpi,
        validate: plan.validate,
        iteration,
    }))
}

struct Measured<'a> {
    mpi: &'a Mpi,
    collective: Collective,
    call: CollectiveCall<'a>,
    validate: bool,
    /// True if the overlap with computing is measured.
    overlap: bool,
    /// The number of calls of MPI_Test during the computing.
    test_calls: usize,
}

impl Measured<'_> {
    fn operation(&self) -> &'static Operation {
        self.collective.operation
    }

    /// Runs one operation with `seconds` of computing between its start and its end.
    fn overlapped(&mut self, seconds: f64) -> Result<Overlapped> {
        let begin = self.mpi.seconds();
        self.call.start()?;
        let computing = self.mpi.seconds();
        let testing = overlap::compute(self.mpi, seconds, self.test_calls, || self.call.test())?;
        let waiting = self.mpi.seconds();
        self.call.wait()?;
        Ok(Overlapped {
            overall: self.mpi.seconds() - begin,
            compute: waiting - computing - testing,
        })
    }

    /// The value of byte `at` in the data that rank `from` sends to rank `to` in an iteration.
    fn sent(&self, from: usize, to: usize, iteration: usize, at: usize) -> u8 {
        match self.operation().sends {
            Share::BlockEach | Share::RootBlockEach => pattern(pair_seed(from, to), iteration, at),
            _ => pattern(from, iteration, at),
        }
    }
}

impl Iteration for Measured<'_> {
    const TIMED_EACH: bool = true;

    fn prepare(&mut self, size: usize) -> Result<()> {
        self.call.prepare(size)
    }

    #[inline]
    fn step(&mut self, _: usize) -> Result<()> {
        self.call.run()
    }

    fn between(&mut self) -> Result<()> {
        match self.operation().contents {
            Contents::Nothing => Ok(()),
            _ => self.mpi.barrier(),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.call.finish()
    }

    /// Measures the overlap by OSU's procedure: every rank computes for its own mean time of an
    /// operation, `pure`, in seconds.
    fn overlap(&mut self, size: usize, repeats: Repeats, pure: f64) -> Result<Option<Overlapped>> {
        if !self.overlap {
            return Ok(None);
        }
        self.call.prepare(size)?;
        synchronise(self.mpi)?;
        let mut sum = Overlapped::default();
        for iteration in 0..repeats.skip + repeats.iterations {
            if self.validate {
                self.fill(size, iteration);
                synchronise(self.mpi)?;
            }
            let one = self.overlapped(pure)?;
            if iteration >= repeats.skip {
                sum.add(one);
            }
            if self.validate {
                let checked = self.check(size, iteration);
                checked.with_context(|| {
                    format!("validation of iteration {iteration} with computing failed")
                })?;
            }
            self.mpi.barrier()?;
        }
        self.call.finish()?;
        Ok(Some(sum))
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        let rank = self.mpi.rank();
        self.call.recv_mut().fill(0);
        match (self.operation().contents, self.operation().sends) {
            (Contents::Nothing, _) => {}
            (Contents::Broadcast, _) => {
                if rank == ROOT {
                    paint(&mut self.call.recv_mut()[..size], ROOT, iteration);
                }
            }
            (Contents::Sum(_), sends) => {
                let bytes = sends.bytes(size, self.mpi.size());
                let vector: &mut [i32] = bytemuck::cast_slice_mut(&mut self.call.send()[..bytes]);
                for (at, element) in vector.iter_mut().enumerate() {
                    *element = summand(rank, iteration, at);
                }
            }
            (Contents::Blocks, Share::BlockEach | Share::RootBlockEach) => {
                for (at, to) in self.call.peers().to_vec().into_iter().enumerate() {
                    let block = &mut self.call.send()[at * size..(at + 1) * size];
                    paint(block, pair_seed(rank, to), iteration);
                }
            }
            (Contents::Blocks, _) => paint(&mut self.call.send()[..size], rank, iteration),
        }
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        let (rank, ranks, recv) = (self.mpi.rank(), self.mpi.size(), self.call.recv());
        let operation = self.operation();
        if operation.receives.only_at_root() && rank != ROOT {
            return Ok(());
        }
        match (operation.contents, operation.receives) {
            (Contents::Nothing, _) => Ok(()),
            (Contents::Broadcast, _) => verify(&recv[..size], |at| pattern(ROOT, iteration, at)),
            (Contents::Sum(summands), receives) => {
                // The offset and the length of the received elements in the summed vector, in
                // bytes.
                let (begin, bytes) = match (operation.sends, receives) {
                    (_, Share::Part) => self.call.part(),
                    (Share::BlockEach, _) => (rank * size, size),
                    _ => (0, size),
                };
                let from = match summands {
                    Summands::All => 0..ranks,
                    Summands::UpToOwn => 0..rank + 1,
                    // MPI leaves the receive buffer of rank 0 undefined.
                    Summands::BelowOwn if rank == 0 => return Ok(()),
                    Summands::BelowOwn => 0..rank,
                };
                verify(&recv[..bytes], |at| {
                    let one = |from| summand(from, iteration, (begin + at) / 4);
                    let sum: i32 = from.clone().map(one).sum();
                    sum.to_ne_bytes()[at % 4]
                })
            }
            (Contents::Blocks, Share::BlockEach | Share::RootBlockEach) => self
                .call
                .peers()
                .iter()
                .enumerate()
                .try_for_each(|(at, &from)| {
                    let block = &recv[at * size..(at + 1) * size];
                    verify(block, |at| self.sent(from, rank, iteration, at))
                }),
            (Contents::Blocks, _) => {
                verify(&recv[..size], |at| self.sent(ROOT, rank, iteration, at))
            }
        }
    }
}

/// The seed of the data that one rank sends to another.
fn pair_seed(from: usize, to: usize) -> usize {
    from + 5 * to
}

fn summand(rank: usize, iteration: usize, at: usize) -> i32 {
    ((rank + 1) * (at % 1009 + 1) + iteration) as i32
}
