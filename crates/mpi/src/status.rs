//! What a completed operation says of itself (MPI 5.0 §3.2.5).

use crate::{ANY_SOURCE, ANY_TAG, Class, PROC_NULL};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub error: Class,
    /// Bytes of data received.
    pub bytes: u64,
    /// Bytes of the message that found no room in the receive buffer.
    pub dropped: u64,
    pub cancelled: bool,
}

impl Status {
    /// Of an operation that received nothing (MPI 5.0 §3.7.3).
    pub const EMPTY: Status = Status {
        source: ANY_SOURCE,
        tag: ANY_TAG,
        error: Class::SUCCESS,
        bytes: 0,
        dropped: 0,
        cancelled: false,
    };
    /// Of an operation that was taken back.
    pub const CANCELLED: Status = Status {
        cancelled: true,
        ..Status::EMPTY
    };
    /// Of a receive from no one.
    pub const PROC_NULL: Status = Status {
        source: PROC_NULL,
        tag: ANY_TAG,
        error: Class::SUCCESS,
        bytes: 0,
        dropped: 0,
        cancelled: false,
    };
}
