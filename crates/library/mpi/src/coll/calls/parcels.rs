//! Sends and receives for collective accesses to files, which are not collective operations of
//! communicators but use the same messages (`call`).

use datatype::Buffer;

use super::call::Call;
use super::pending::Pending;
use crate::Result;
use crate::comm::Core;
use crate::rank::Rank;

/// The messages of ranks in one collective access to a file.
pub(crate) struct Parcels<'a>(Call<'a>);

/// A message in flight. A receive that is dropped before its end is cancelled.
pub(crate) type Parcel<'a> = Pending<'a>;

impl<'a> Parcels<'a> {
    /// The messages of the access with this tag, on stage `stage`. Messages of different stages do
    /// not match.
    pub(crate) fn new(rank: &'a Rank, core: &'a Core, tag: i32, stage: u64) -> Parcels<'a> {
        Parcels(Call::new(rank, core, tag).on_stage(stage))
    }

    /// Starts a send. The buffer must not change until the returned message is complete.
    pub(crate) fn send(&self, to: usize, buffer: Buffer) -> Result<Parcel<'a>> {
        self.0.send(to, buffer)
    }

    /// Starts a receive of exactly the buffer's length. Messages of one member match in the order
    /// of sending.
    pub(crate) fn receive(&self, from: usize, buffer: Buffer) -> Result<Parcel<'a>> {
        self.0.receive(from, buffer)
    }
}
