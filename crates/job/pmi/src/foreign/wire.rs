//! The interface to a launcher of another MPI library, which each protocol (PMI-1, PMI-2, PMIx)
//! implements.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::PollFlags;

use crate::KvsError;

/// An answer of the launcher to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The value of a key, or `None` if no rank has put it.
    Value {
        /// The requested key.
        key: String,
        /// The value of the key.
        value: Option<String>,
    },
    /// All ranks have entered the fence that this rank entered last.
    Fence,
}

/// A connection to another launcher. Values that a rank puts are visible to all after the next
/// fence; a request for a key that is not visible is an error.
pub(crate) trait Wire: fmt::Debug + Send + Sync {
    /// The length of the longest value in the launcher's key-value space, in bytes.
    fn value_limit(&self) -> usize;

    /// Stores a value. A failure may be reported only at the next fence.
    fn put(&self, key: &str, value: &str) -> Result<(), KvsError>;

    /// Requests the value that rank `owner` has put under `key`. Never blocks.
    fn get(&self, key: &str, owner: usize) -> Result<(), KvsError>;

    /// Enters a fence. Never blocks.
    fn enter_fence(&self) -> Result<(), KvsError>;

    /// The next answer that has arrived. Never blocks.
    fn next(&self) -> Result<Option<Answer>, KvsError>;

    /// Ends the whole job. The launcher may kill this process before this returns.
    fn abort(&self, code: i32, text: &str);

    /// Closes the connection: from now on the end of this process is no failure.
    fn finalize(&self);

    /// The descriptor that is readable when an answer has arrived or the launcher is gone.
    fn event_fd(&self) -> BorrowedFd<'_>;

    /// A descriptor, and the poll events that it reports once the launcher is gone.
    fn lost_fd(&self) -> io::Result<(OwnedFd, PollFlags)>;
}
