//! The key of a call, by which a trace distinguishes it from other calls of its procedure:
//! communicator, class of the length, peer. The generated entry points select the arguments that
//! matter.

use crate::handle::{Comm, Datatype};
use mpi::CallKey;
use std::ffi::c_int;

/// An argument by which a call is distinguished from other calls of its procedure.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// The communicator of the call.
    Comm(Comm),
    /// The count and the datatype of the call's first buffer.
    Length(i64, Datatype),
    /// The rank to which or from which a message goes.
    Peer(c_int),
    /// The root of the collective operation.
    Root(c_int),
    /// The level of MPI_Pcontrol.
    Level(c_int),
    /// Marks a call that makes or frees a communicator, a window or a file.
    Constructs,
}

/// True if the call makes or frees an object that ranks share.
pub fn constructs(arguments: &[Argument]) -> bool {
    arguments
        .iter()
        .any(|argument| matches!(argument, Argument::Constructs))
}

/// The key of a call with these arguments. An invalid argument is left out: the call itself reports
/// it.
#[cold]
pub fn key_of(rank: &mpi::Rank, arguments: &[Argument]) -> CallKey {
    let mut key = CallKey::default();
    let mut own = 0;
    for argument in arguments {
        match *argument {
            Argument::Comm(comm) => {
                key.comm = Some(comm.id());
                let state = rank.lock();
                own = state
                    .objects()
                    .comms()
                    .get(comm.id())
                    .map_or(0, |comm| comm.core.rank as i32);
            }
            Argument::Length(count, datatype) => key.size = size_of(rank, count, datatype),
            // A special rank, such as MPI_ANY_SOURCE, has the same key on all ranks.
            Argument::Peer(peer) if peer < 0 => key.peer = Some(peer - (1 << 30)),
            Argument::Peer(peer) => key.peer = Some(peer - own),
            Argument::Root(root) => key.peer = Some(root),
            Argument::Level(level) => key.peer = Some(level),
            Argument::Constructs => key.constructs = true,
        }
    }
    key
}

/// The class of the length in bytes of `count` elements; `None` if the arguments are invalid.
fn size_of(rank: &mpi::Rank, count: i64, datatype: Datatype) -> Option<u8> {
    let element = rank.objects().types().get(datatype.id()).ok()?.size() as u64;
    let count = u64::try_from(count).ok()?;
    Some(CallKey::size_of(element.saturating_mul(count)))
}
