//! The buffer argument of a blocking call.

use datatype::Buffer;

use crate::Result;
use crate::types::Types;

/// The buffer argument of [`Rank::send`](crate::Rank::send) and
/// [`Rank::receive`](crate::Rank::receive).
///
/// A `Buffer` is one. The C face implements another: an address, a count and a datatype handle,
/// which is searched for in the rank's table of datatypes under the rank's lock.
///
/// ```
/// # use datatype::Buffer;
/// # use mpi::{MessageBuffer, Mode, Rank, Result};
/// fn ping(rank: &Rank, buffer: impl MessageBuffer, world: u32) -> Result<()> {
///     rank.send("MPI_Send", Mode::Standard, buffer, 1, 0, world)
/// }
/// # fn empty(rank: &Rank) -> Result<()> { ping(rank, Buffer::empty(), 0x101) }
/// ```
pub trait MessageBuffer {
    /// The memory of the message.
    ///
    /// # Errors
    /// The datatype is unknown or not committed, or the memory cannot be that of a message.
    fn resolve(self, types: &Types) -> Result<Buffer>;
}

impl MessageBuffer for Buffer {
    #[inline(always)]
    fn resolve(self, _: &Types) -> Result<Buffer> {
        Ok(self)
    }
}
