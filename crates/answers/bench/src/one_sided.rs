//! One-sided communication: the latency of an access with the flush that completes it at the
//! target, and the rate of many accesses with one flush. The window is made by `MPI_Win_allocate`;
//! rank 0 is inside `MPI_Win_lock_all`, while rank 1 waits within MPI.

use anyhow::Result;
use memmap2::MmapMut;

use crate::ffi::Mpi;
use crate::ffi::window::OpenWindow;
use crate::procedure::{Iteration, Procedure, Repeated, buffer};
use crate::window_access::{OneSided, WORD};

/// The most bytes of a window at each rank, unless one access needs more.
const MOST_BYTES: usize = 64 << 20;

/// The procedure of a one-sided benchmark. `many`: the number of accesses with one flush in a
/// stream.
pub(crate) fn procedure(
    mpi: &Mpi,
    access: OneSided,
    many: usize,
    largest: usize,
) -> Result<Box<dyn Procedure + '_>> {
    Ok(Box::new(Repeated {
        mpi,
        validate: false,
        iteration: Accesses {
            mpi,
            access,
            many,
            window: None,
            origin: buffer(largest)?,
            result: buffer(largest)?,
        },
    }))
}

struct Accesses<'a> {
    mpi: &'a Mpi,
    access: OneSided,
    many: usize,
    /// The window, which is used for the present size only. `None` between two sizes.
    window: Option<OpenWindow<'a>>,
    origin: MmapMut,
    result: MmapMut,
}

impl Accesses<'_> {
    /// The number of locations in the window that a stream accesses, one after the other, limited
    /// by the memory.
    fn places(&self, size: usize) -> usize {
        match self.access.is_stream() {
            true => (MOST_BYTES / size.max(1)).clamp(1, self.many),
            false => 1,
        }
    }
}

impl Iteration for Accesses<'_> {
    fn prepare(&mut self, size: usize) -> Result<()> {
        let bytes = size.max(WORD) * self.places(size);
        let window = self.window.insert(self.mpi.window_of(bytes)?);
        match self.mpi.rank() {
            0 => window.lock_all(),
            _ => Ok(()),
        }
    }

    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let places = self.places(size);
        let Some(window) = self.window.as_ref().filter(|_| self.mpi.rank() == 0) else {
            return Ok(());
        };
        let (origin, result) = (&self.origin[..], &mut self.result[..]);
        match self.access {
            OneSided::Put => window.put(&origin[..size]),
            OneSided::Get => window.get(&mut result[..size]),
            OneSided::Acc => window.accumulate(&origin[..size]),
            OneSided::GetAcc => window.get_accumulate(&origin[..size], &mut result[..size]),
            OneSided::Fop => window.fetch_and_op(&origin[..WORD], &mut result[..WORD]),
            OneSided::Cas => window.compare_and_swap(&origin[..WORD], &mut result[..WORD]),
            OneSided::PutBw => window.stream(self.many, |place| {
                window.begin_put(&origin[..size], place % places * size)
            }),
            OneSided::GetBw => window.stream(self.many, |place| {
                window.begin_get(&mut result[..size], place % places * size)
            }),
        }
    }

    fn finish(&mut self) -> Result<()> {
        let Some(window) = self.window.take() else {
            return Ok(());
        };
        if self.mpi.rank() == 0 {
            window.unlock_all()?;
        }
        window.free()
    }

    fn fill(&mut self, _: usize, _: usize) {}

    fn check(&self, _: usize, _: usize) -> Result<()> {
        Ok(())
    }
}
