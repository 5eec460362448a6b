//! Point-to-point benchmarks: latency, and streams of windows of messages in one direction (`bw`),
//! in both (`bibw`), and between several pairs (`mbw-mr`).

use std::cell::Cell;

use anyhow::Result;
use memmap2::MmapMut;

use crate::benchmark::Benchmark;
use crate::ffi::{Handles, Mpi};
use crate::plan::WorkerPlan;
use crate::procedure::{Iteration, Procedure, Repeated, buffer, pattern, verify};

const TAG: i32 = 1;
const TAG_ACKNOWLEDGE: i32 = 2;

pub(crate) fn procedure<'a>(
    mpi: &'a Mpi,
    plan: &WorkerPlan,
    largest: usize,
) -> Result<Box<dyn Procedure + 'a>> {
    let validate = plan.validate;
    let pair = Pair {
        send: buffer(largest)?,
        recv: buffer(largest)?,
        mpi,
        peer: peer(mpi),
    };
    let (window, handles) = (plan.window, Handles::default());
    Ok(match plan.benchmark {
        Benchmark::Latency | Benchmark::FirstTouch => Box::new(Repeated {
            mpi,
            validate,
            iteration: PingPong(pair),
        }),
        Benchmark::Bibw => Box::new(Repeated {
            mpi,
            validate,
            iteration: BothWays {
                pair,
                window,
                handles,
            },
        }),
        _ => Box::new(Repeated {
            mpi,
            validate,
            iteration: OneWay {
                pair,
                window,
                handles,
            },
        }),
    })
}

/// The partner of this rank: each rank of the lower half is paired with one of the upper half.
fn peer(mpi: &Mpi) -> usize {
    let pairs = mpi.size() / 2;
    if mpi.rank() < pairs {
        mpi.rank() + pairs
    } else {
        mpi.rank() - pairs
    }
}

/// A rank, its partner in the benchmark, and the buffers of their messages.
struct Pair<'a> {
    mpi: &'a Mpi,
    peer: usize,
    send: MmapMut,
    recv: MmapMut,
}

impl Pair<'_> {
    fn first(&self) -> bool {
        self.mpi.rank() < self.peer
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        let rank = self.mpi.rank();
        for (at, byte) in self.send[..size].iter_mut().enumerate() {
            *byte = pattern(rank, iteration, at);
        }
        self.recv[..size].fill(0);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        verify(&self.recv[..size], |at| pattern(self.peer, iteration, at))
    }
}

/// A message and an answer of equal size. The latency is half of their time.
struct PingPong<'a>(Pair<'a>);

impl Iteration for PingPong<'_> {
    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let first = self.0.first();
        let Pair {
            mpi,
            peer,
            send,
            recv,
        } = &mut self.0;
        if first {
            mpi.send(&send[..size], *peer, TAG)?;
            mpi.recv(&mut recv[..size], *peer, TAG)
        } else {
            mpi.recv(&mut recv[..size], *peer, TAG)?;
            mpi.send(&send[..size], *peer, TAG)
        }
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        self.0.fill(size, iteration);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        self.0.check(size, iteration)
    }
}

/// A window of messages in one direction, acknowledged by one short message.
struct OneWay<'a> {
    pair: Pair<'a>,
    window: usize,
    handles: Handles,
}

impl Iteration for OneWay<'_> {
    fn start(&mut self) -> Result<()> {
        // With one pair, the acknowledgement has already synchronised the two ranks.
        if self.pair.mpi.size() > 2 {
            self.pair.mpi.barrier()
        } else {
            Ok(())
        }
    }

    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let first = self.pair.first();
        let Pair {
            mpi,
            peer,
            send,
            recv,
        } = &mut self.pair;
        let (mut acknowledge, peer) = ([0u8; 4], *peer);
        if first {
            mpi.window(&mut self.handles, |window| {
                (0..self.window).try_for_each(|_| window.isend(&send[..size], peer, TAG))
            })?;
            mpi.recv(&mut acknowledge, peer, TAG_ACKNOWLEDGE)
        } else {
            let recv = Cell::from_mut(&mut recv[..size]).as_slice_of_cells();
            mpi.window(&mut self.handles, |window| {
                (0..self.window).try_for_each(|_| window.irecv(recv, peer, TAG))
            })?;
            mpi.send(&acknowledge, peer, TAG_ACKNOWLEDGE)
        }
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        self.pair.fill(size, iteration);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        if self.pair.first() {
            Ok(())
        } else {
            self.pair.check(size, iteration)
        }
    }
}

/// Both ranks send a window of messages and receive one. There is no acknowledgement: each rank
/// waits for the other's window.
struct BothWays<'a> {
    pair: Pair<'a>,
    window: usize,
    handles: Handles,
}

impl Iteration for BothWays<'_> {
    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let Pair {
            mpi,
            peer,
            send,
            recv,
        } = &mut self.pair;
        let recv = Cell::from_mut(&mut recv[..size]).as_slice_of_cells();
        mpi.window(&mut self.handles, |window| {
            (0..self.window).try_for_each(|_| window.irecv(recv, *peer, TAG))?;
            (0..self.window).try_for_each(|_| window.isend(&send[..size], *peer, TAG))
        })
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        self.pair.fill(size, iteration);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        self.pair.check(size, iteration)
    }
}
