//! The status of a completed operation (MPI 5.0 §3.2.5).

use crate::{ANY_SOURCE, ANY_TAG, Class, PROC_NULL};

/// The status of a completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The rank of the message's sender in the communicator.
    pub source: i32,
    /// The tag of the received message.
    pub tag: i32,
    /// `MPI_SUCCESS`, or the class of the error.
    pub error: Class,
    /// The number of bytes that were received.
    pub bytes: u64,
    /// Number of bytes of the message that did not fit the receive buffer.
    pub dropped: u64,
    /// True if the operation was cancelled.
    pub cancelled: bool,
}

impl Status {
    /// The status of an operation that received nothing (MPI 5.0 §3.7.3).
    pub const EMPTY: Status = Status {
        source: ANY_SOURCE,
        tag: ANY_TAG,
        error: Class::SUCCESS,
        bytes: 0,
        dropped: 0,
        cancelled: false,
    };
    /// The status of a cancelled operation.
    pub const CANCELLED: Status = Status {
        cancelled: true,
        ..Status::EMPTY
    };
    /// The status of a receive from `MPI_PROC_NULL`.
    pub const PROC_NULL: Status = Status {
        source: PROC_NULL,
        tag: ANY_TAG,
        error: Class::SUCCESS,
        bytes: 0,
        dropped: 0,
        cancelled: false,
    };
}
