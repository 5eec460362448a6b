//! The key of a call, by which loops are found: it tells calls of one procedure apart.

use mpi_abi::hosted::RECORDED;
use trace::{Call, Signature, Value};

use crate::names::Method;
use crate::player::ANY_SOURCE;

/// The distance from which peers that are no ranks, such as MPI_ANY_SOURCE, count in keys. They are
/// negative numbers, and equal on all ranks.
const NO_RANK: i64 = 1 << 30;

/// The properties that tell a call from other calls of its procedure. Equal steps of a program have
/// equal keys, also on ranks with other neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey {
    /// The number of the call's communicator in its rank.
    pub comm: Option<u32>,
    /// The class of the message's length: the number of significant bits of the number of bytes.
    pub size: Option<u8>,
    /// The peer's rank minus the caller's rank; the root of an operation with a root; the level of
    /// MPI_Pcontrol.
    pub peer: Option<i32>,
    /// True if the call makes or frees a communicator, a window or a file.
    pub constructs: bool,
}

impl CallKey {
    /// The class of a length of `bytes` bytes, for [`size`](CallKey::size).
    pub(crate) fn size_of(bytes: u64) -> u8 {
        (u64::BITS - bytes.leading_zeros()) as u8
    }

    /// The key of a call, but for the size.
    pub(crate) fn of(method: Method, signature: &Signature, call: &Call) -> CallKey {
        let mut key = CallKey {
            constructs: matches!(method, Method::Called(number) if RECORDED[number].constructs),
            ..CallKey::default()
        };
        let all = signature.parameters.iter().zip(&call.values);
        for (parameter, value) in all {
            match (parameter.kind.as_str(), value) {
                ("comm", Value::Number(number)) if key.comm.is_none() => {
                    key.comm = u32::try_from(*number).ok();
                }
                ("dest" | "source" | "root" | "level", value) if key.peer.is_none() => {
                    let peer = match value {
                        Value::Relative(distance) => Some(*distance),
                        Value::Met(_) => Some(ANY_SOURCE - NO_RANK),
                        Value::Number(number) if *number < 0 => Some(number - NO_RANK),
                        other => other.number(),
                    };
                    key.peer = peer.and_then(|peer| i32::try_from(peer).ok());
                }
                _ => (),
            }
        }
        key
    }
}
