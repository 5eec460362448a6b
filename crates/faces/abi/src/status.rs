//! `MPI_Status`: eight ints, of which the last five belong to the library. They hold the number of
//! bytes received (64 bits, not necessarily aligned) and the cancelled flag.

use crate::constants::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS};
use std::ffi::c_int;

/// `MPI_Status` in the memory layout of the ABI.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// `MPI_SOURCE`
    pub source: c_int,
    /// `MPI_TAG`
    pub tag: c_int,
    /// `MPI_ERROR`
    pub error: c_int,
    internal: [c_int; 5],
}

const _: () = assert!(size_of::<Status>() == 32 && align_of::<Status>() == 4);

impl Status {
    /// The status of a message that was received without an error.
    pub fn new(source: c_int, tag: c_int, bytes: u64) -> Status {
        let mut status = Status {
            source,
            tag,
            error: MPI_SUCCESS,
            internal: [0; 5],
        };
        status.set_bytes(bytes);
        status
    }

    /// The status of a request that is null or inactive (MPI 5.0 §3.7.3).
    pub fn empty() -> Status {
        Status::new(MPI_ANY_SOURCE, MPI_ANY_TAG, 0)
    }

    /// The number of bytes received.
    pub fn bytes(&self) -> u64 {
        let [low, high, ..] = self.internal;
        low as u32 as u64 | (high as u32 as u64) << 32
    }

    /// Sets the number of bytes received.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = bytes as u32 as c_int;
        self.internal[1] = (bytes >> 32) as u32 as c_int;
    }

    /// True if the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Sets the cancelled flag.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = c_int::from(cancelled);
    }
}

impl From<mpi::Status> for Status {
    #[inline]
    fn from(from: mpi::Status) -> Status {
        let mut status = Status::new(from.source, from.tag, from.bytes);
        status.error = from.error.0;
        status.set_cancelled(from.cancelled);
        status
    }
}
