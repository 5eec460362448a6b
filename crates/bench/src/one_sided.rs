//! One-sided communication: the latency of an access with the flush that completes it at the
//! target. The window is one of `MPI_Win_allocate`; rank 0 holds `MPI_Win_lock_all`, and rank 1
//! waits within MPI meanwhile.

use anyhow::Result;
use memmap2::MmapMut;
use serde::{Deserialize, Serialize};

use crate::ffi::Mpi;
use crate::ffi::window::OpenWindow;
use crate::procedure::{Iteration, Procedure, Repeated, buffer};

/// An access to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OneSided {
    Put,
    Get,
    Acc,
    GetAcc,
    Fop,
    Cas,
}

impl OneSided {
    pub(crate) const ALL: [OneSided; 6] = {
        use OneSided::*;
        [Put, Get, Acc, GetAcc, Fop, Cas]
    };

    pub(crate) fn name(self) -> &'static str {
        match self {
            OneSided::Put => "put",
            OneSided::Get => "get",
            OneSided::Acc => "acc",
            OneSided::GetAcc => "get-acc",
            OneSided::Fop => "fop",
            OneSided::Cas => "cas",
        }
    }

    /// Whether an access may have any number of elements.
    pub(crate) fn sized(self) -> bool {
        !matches!(self, OneSided::Fop | OneSided::Cas)
    }

    /// Bytes of an element.
    pub(crate) fn element(self) -> usize {
        match self {
            OneSided::Put | OneSided::Get => 1,
            _ => WORD,
        }
    }
}

/// Bytes of the integers that accumulates sum.
pub(crate) const WORD: usize = 8;

pub(crate) fn procedure(
    mpi: &Mpi,
    access: OneSided,
    largest: usize,
) -> Result<Box<dyn Procedure + '_>> {
    Ok(Box::new(Repeated {
        mpi,
        validate: false,
        iteration: Accesses {
            mpi,
            access,
            window: None,
            origin: buffer(largest)?,
            result: buffer(largest)?,
        },
    }))
}

struct Accesses<'a> {
    mpi: &'a Mpi,
    access: OneSided,
    /// The window of the present size.
    window: Option<OpenWindow<'a>>,
    origin: MmapMut,
    result: MmapMut,
}

impl Iteration for Accesses<'_> {
    fn prepare(&mut self, size: usize) -> Result<()> {
        let window = self.window.insert(self.mpi.window_of(size.max(WORD))?);
        match self.mpi.rank() {
            0 => window.lock_all(),
            _ => Ok(()),
        }
    }

    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
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
