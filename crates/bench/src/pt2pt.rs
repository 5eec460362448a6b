//! Point to point: latency, and streams of windows in one direction (`bw`), in both (`bibw`) and
//! between pairs (`mbw-mr`).

use std::cell::Cell;

use anyhow::Result;
use memmap2::MmapMut;

use crate::ffi::{Handles, Mpi};
use crate::plan::{Benchmark, Plan};
use crate::procedure::{Iteration, Procedure, Repeated, buffer, pattern, verify};

const TAG: i32 = 1;
const TAG_ACKNOWLEDGE: i32 = 2;

pub fn procedure<'a>(mpi: &'a Mpi, plan: &Plan, largest: usize) -> Result<Box<dyn Procedure + 'a>> {
    let validate = plan.validate;
    let ends = Ends {
        send: buffer(largest)?,
        recv: buffer(largest)?,
        mpi,
        peer: peer(mpi),
    };
    let (window, handles) = (plan.window, Handles::default());
    Ok(match plan.benchmark {
        Benchmark::Latency => Box::new(Repeated {
            mpi,
            validate,
            iteration: PingPong(ends),
        }),
        Benchmark::Bibw => Box::new(Repeated {
            mpi,
            validate,
            iteration: BothWays {
                ends,
                window,
                handles,
            },
        }),
        _ => Box::new(Repeated {
            mpi,
            validate,
            iteration: Stream {
                ends,
                window,
                handles,
            },
        }),
    })
}

/// The lower half of the ranks talks to the upper half.
fn peer(mpi: &Mpi) -> usize {
    let pairs = mpi.size() / 2;
    if mpi.rank() < pairs {
        mpi.rank() + pairs
    } else {
        mpi.rank() - pairs
    }
}

/// A rank, its partner, and their buffers.
struct Ends<'a> {
    mpi: &'a Mpi,
    peer: usize,
    send: MmapMut,
    recv: MmapMut,
}

impl Ends<'_> {
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

/// A message goes, one of the same size comes back. Half the time is the latency.
struct PingPong<'a>(Ends<'a>);

impl Iteration for PingPong<'_> {
    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let first = self.0.first();
        let Ends {
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

/// A window of messages goes, one short message acknowledges them all.
struct Stream<'a> {
    ends: Ends<'a>,
    window: usize,
    handles: Handles,
}

impl Iteration for Stream<'_> {
    fn start(&mut self) -> Result<()> {
        // With one pair the acknowledgement has already brought the two ranks together.
        if self.ends.mpi.size() > 2 {
            self.ends.mpi.barrier()
        } else {
            Ok(())
        }
    }

    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let first = self.ends.first();
        let Ends {
            mpi,
            peer,
            send,
            recv,
        } = &mut self.ends;
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
        self.ends.fill(size, iteration);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        if self.ends.first() {
            Ok(())
        } else {
            self.ends.check(size, iteration)
        }
    }
}

/// Both ranks send a window and receive one. Nothing is acknowledged: each waits for the other's.
struct BothWays<'a> {
    ends: Ends<'a>,
    window: usize,
    handles: Handles,
}

impl Iteration for BothWays<'_> {
    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let Ends {
            mpi,
            peer,
            send,
            recv,
        } = &mut self.ends;
        let recv = Cell::from_mut(&mut recv[..size]).as_slice_of_cells();
        mpi.window(&mut self.handles, |window| {
            (0..self.window).try_for_each(|_| window.irecv(recv, *peer, TAG))?;
            (0..self.window).try_for_each(|_| window.isend(&send[..size], *peer, TAG))
        })
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        self.ends.fill(size, iteration);
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        self.ends.check(size, iteration)
    }
}
