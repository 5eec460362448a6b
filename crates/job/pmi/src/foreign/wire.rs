//! The services of another launcher, as each protocol gives them.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::PollFlags;

use crate::KvsError;

/// An answer of the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The value of a key; None if nobody has put it.
    Value {
        /// The key.
        key: String,
        /// The value.
        value: Option<String>,
    },
    /// All ranks have entered the fence.
    Fence,
}

/// A connection to another launcher. Values that a rank puts are visible to all after the next
/// fence; a request for another key is an error.
pub(crate) trait Wire: fmt::Debug + Send + Sync {
    /// The longest value of the launcher's key-value space, in bytes.
    fn value_limit(&self) -> usize;

    /// Stores a value. An error may show at the next fence.
    fn put(&self, key: &str, value: &str) -> Result<(), KvsError>;

    /// Requests the value that rank `owner` has put. Never blocks.
    fn get(&self, key: &str, owner: usize) -> Result<(), KvsError>;

    /// Enters a fence. Never blocks.
    fn enter_fence(&self) -> Result<(), KvsError>;

    /// The next answer that has arrived. Never blocks.
    fn next(&self) -> Result<Option<Answer>, KvsError>;

    /// Ends the whole job. The launcher may kill this process before this returns.
    fn abort(&self, code: i32, text: &str);

    /// Ends the connection: from now on the end of this process is no failure.
    fn finalize(&self);

    /// Readable when an answer has arrived or the launcher is gone.
    fn event_fd(&self) -> BorrowedFd<'_>;

    /// A descriptor of which these flags are true once the launcher is gone.
    fn lost_fd(&self) -> io::Result<(OwnedFd, PollFlags)>;
}
