//! Splitting communicators (MPI 5.0 §7.4.2).

use std::ops::Range;
use std::sync::Arc;

use crate::comm::calls::making::Making;
use crate::comm::{self, Core};
use crate::rank::Rank;
use crate::{Class, Error, Result, UNDEFINED};

/// Split types of `MPI_Comm_split_type`, with the ABI's values.
pub mod split_type {
    /// `MPI_COMM_TYPE_SHARED`.
    pub const SHARED: i32 = 221;
    /// `MPI_COMM_TYPE_HW_UNGUIDED`.
    pub const HW_UNGUIDED: i32 = 222;
    /// `MPI_COMM_TYPE_HW_GUIDED`.
    pub const HW_GUIDED: i32 = 223;
    /// `MPI_COMM_TYPE_RESOURCE_GUIDED`.
    pub const RESOURCE_GUIDED: i32 = 224;
}

/// The contribution of a rank to a split.
#[derive(Clone, Copy)]
struct Vote {
    color: i32,
    key: i32,
    /// The context of the rank's new communicator, used if the rank is its first member.
    context: u64,
}

impl Vote {
    const BYTES: usize = 16;

    fn encode(&self) -> Vec<u8> {
        [
            &self.color.to_ne_bytes()[..],
            &self.key.to_ne_bytes(),
            &self.context.to_ne_bytes(),
        ]
        .concat()
    }

    fn decode(bytes: &[u8]) -> Vote {
        Vote {
            color: i32::from_ne_bytes(std::array::from_fn(|at| bytes[at])),
            key: i32::from_ne_bytes(std::array::from_fn(|at| bytes[4 + at])),
            context: u64::from_ne_bytes(std::array::from_fn(|at| bytes[8 + at])),
        }
    }
}

impl Rank {
    /// `MPI_Comm_split`. The result is `MPI_COMM_NULL` for the color [`UNDEFINED`]; for an
    /// intercommunicator, also for a color that no rank of the remote group has.
    pub fn comm_split(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        color: i32,
        key: i32,
    ) -> Result<u32> {
        let color = match color {
            0.. | UNDEFINED => Ok(color),
            _ => {
                let detail = format!("color is {color}; valid is 0 or more, and MPI_UNDEFINED");
                Err(Error::new(Class::ARG, detail))
            }
        };
        self.comm_split_by(operation, comm, color, key)
    }

    /// Splits by a color. If `color` is an error, this rank takes part in the exchange with that
    /// error.
    fn comm_split_by(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        color: Result<i32>,
        key: i32,
    ) -> Result<u32> {
        let parent = self.begin(comm)?;
        let context = self.lock().objects.comms.new_context(self.rank());
        let mine = color.clone().map(|color| {
            let vote = Vote {
                color,
                key,
                context,
            };
            vote.encode()
        });
        let votes = self.exchange_to_make(operation, &parent, Making::Split, mine)?;
        let color = color?;
        if color == UNDEFINED {
            return Ok(comm::NULL);
        }
        let votes: Vec<Vote> = votes.chunks_exact(Vote::BYTES).map(Vote::decode).collect();
        let Some(new) = part(&parent.core, color, &votes) else {
            return Ok(comm::NULL);
        };
        let new = parent.child(new.made_from(&parent.core));
        self.add_comm(new)
    }

    /// `MPI_Comm_split_type`. The smallest hardware resource known is a host: for a part of one the
    /// result is `MPI_COMM_NULL`.
    pub fn comm_split_type(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        split_type: i32,
        key: i32,
        info: &[(String, String)],
    ) -> Result<u32> {
        let value = |key: &str| {
            let entry = info.iter().find(|(name, _)| name == key);
            entry.map(|(_, value)| value.as_str())
        };
        let host = self.host_of(self.rank()) as i32;
        let color = match split_type {
            split_type::SHARED => host,
            split_type::HW_GUIDED => match value("mpi_hw_resource_type") {
                Some("mpi_shared_memory") => host,
                _ => UNDEFINED,
            },
            split_type::RESOURCE_GUIDED => {
                match (value("mpi_hw_resource_type"), value("mpi_pset_name")) {
                    (Some("mpi_shared_memory"), None) => host,
                    (None, Some("mpi://WORLD")) => 0,
                    (None, Some("mpi://SELF")) => self.rank() as i32,
                    _ => UNDEFINED,
                }
            }
            split_type::HW_UNGUIDED | UNDEFINED => UNDEFINED,
            _ => {
                let detail = format!(
                    "split_type is {split_type}; valid are the MPI_COMM_TYPE_ constants and MPI_UNDEFINED"
                );
                let error = Error::new(Class::ARG, detail);
                return self.comm_split_by(operation, comm, Err(error), key);
            }
        };
        self.comm_split(operation, comm, color, key)
    }
}

/// The part of a communicator with this rank's color. `votes`: those of all members, by their
/// numbers in the joint group. `None`: no rank of the remote group has the color.
fn part(core: &Core, color: i32, votes: &[Vote]) -> Option<Core> {
    let of = |group: Range<usize>| {
        let mut ranks: Vec<usize> = group.filter(|&rank| votes[rank].color == color).collect();
        // Stable: equal keys keep the order of the parent.
        ranks.sort_by_key(|&rank| votes[rank].key);
        ranks
    };
    let joint = core.joint();
    let ours = of(core.ours());
    let place = ours.iter().position(|&rank| rank == joint.rank)?;
    if !core.is_inter() {
        let context = votes[ours[0]].context;
        return Some(Core::new(context, joint.members.at(ours), place));
    }
    let theirs = of(core.theirs());
    let their_first = *theirs.first()?;
    let is_first = core.is_first();
    let maker = if is_first { ours[0] } else { their_first };
    let (ours, theirs) = (joint.members.at(ours), joint.members.at(theirs));
    let context = votes[maker].context;
    Some(Core::between(context, ours, place, theirs, is_first))
}
