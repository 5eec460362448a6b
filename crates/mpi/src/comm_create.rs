//! Making and freeing communicators (MPI 5.0 §7.4).
//!
//! A context is the job's rank that made it up and a number of that rank's own, so nobody has to agree on a free one:
//! the first member makes it up and tells the others.

use std::sync::Arc;

use crate::agreement::Circle;
use crate::attributes::Holder;
use crate::comm::{self, Comm, Core, Members};
use crate::hints::Hints;
use crate::rank::{Rank, State};
use crate::request::{Operation, RequestId};
use crate::wait::Waiting;
use crate::{Class, Error, Result, UNDEFINED};

/// By what `MPI_Comm_split_type` splits, by the ABI's values.
pub mod split_type {
    pub const SHARED: i32 = 221;
    pub const HW_UNGUIDED: i32 = 222;
    pub const HW_GUIDED: i32 = 223;
    pub const RESOURCE_GUIDED: i32 = 224;
}

/// The communicator that a new one comes from, in one collective operation.
pub(crate) struct Parent {
    pub core: Arc<Core>,
    /// The tag of this operation.
    pub tag: i32,
    errhandler: u32,
}

impl Parent {
    /// The job's ranks behind ranks of the parent, which must exist.
    pub fn members_at(&self, ranks: &[u32]) -> Members {
        let world = |&rank: &u32| {
            self.core
                .members
                .world(rank as usize)
                .expect("a rank of the parent")
        };
        ranks
            .iter()
            .map(|rank| world(rank) as u32)
            .collect::<Vec<_>>()
            .into()
    }
}

/// What a rank says in a split.
#[derive(Clone, Copy)]
struct Vote {
    color: i32,
    key: i32,
    /// The context of its new communicator, should it be the first member.
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
    /// `MPI_Comm_dup` and `MPI_Comm_dup_with_info`. A rank whose copy function fails still takes part, so that the
    /// others get their communicator.
    pub fn comm_dup(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<u32> {
        let (parent, mut new, copied) = self.begin_dup(comm, info)?;
        let circle = Circle::all(self, &parent.core, parent.tag);
        let agreed = self.agreed_comm(
            operation,
            &parent,
            circle,
            parent.core.members.clone(),
            parent.core.rank,
        )?;
        new.core = agreed.core;
        let handle = self.lock().add_comm(new)?;
        if copied.is_err() {
            self.comm_free(handle)?;
        }
        copied.map(|()| handle)
    }

    /// `MPI_Comm_idup` and `MPI_Comm_idup_with_info`. The handle is valid at once, but the communicator is one of
    /// nobody until the request completes.
    pub fn comm_idup(
        self: &Arc<Rank>,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<(u32, RequestId)> {
        let (parent, new, copied) = self.begin_dup(comm, info)?;
        let handle = self.lock().add_comm(new)?;
        let circle = Circle::all(self, &parent.core, parent.tag);
        let said = self.proposal(parent.core.rank);
        let rank = self.clone();
        let request = self.spawn(Some(parent.core.context), async move {
            let context = circle.bcast(said, 8).await?;
            // The user may have freed it meanwhile.
            if let Ok(comm) = rank.lock().comms.get_mut(handle) {
                comm.core = Arc::new(Core {
                    context: word(&context),
                    members: parent.core.members.clone(),
                    rank: parent.core.rank,
                });
            }
            Ok(())
        })?;
        if copied.is_err() {
            self.lock().messages.requests.detach(request)?;
            self.comm_free(handle)?;
        }
        copied.map(|()| (handle, request))
    }

    /// What both have in common: the new communicator but for its core.
    fn begin_dup(
        &self,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<(Parent, Comm, Result<()>)> {
        let hints = Hints::new(info)?;
        let parent = self.begin(comm)?;
        let (attributes, copied) = self.copy_attributes(Holder::Comm(comm))?;
        let nobody = Core {
            context: u64::MAX,
            members: Members::All(0),
            rank: 0,
        };
        let topology = self.lock().comms.get(comm)?.topology.clone();
        let errhandler = parent.errhandler;
        let new = Comm {
            attributes,
            topology,
            hints,
            errhandler,
            ..Comm::new(nobody, "")
        };
        Ok((parent, new, copied))
    }

    /// `MPI_Comm_create`: `MPI_COMM_NULL` on ranks that are not in their group.
    pub fn comm_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        group: u32,
    ) -> Result<u32> {
        let parent = self.begin(comm)?;
        self.comm_of(operation, parent, group, |circle| circle)
    }

    /// `MPI_Comm_create_group`: collective over the group alone.
    pub fn comm_create_group(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        group: u32,
        tag: i32,
    ) -> Result<u32> {
        let parent = self.lock().parent(comm, tag)?;
        self.comm_of(operation, parent, group, |circle| {
            circle.with_users_tag(tag)
        })
    }

    fn comm_of(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: Parent,
        group: u32,
        with: impl FnOnce(Circle) -> Circle,
    ) -> Result<u32> {
        let (members, place) = {
            let state = self.lock();
            let group = state.groups.get(group)?;
            (group.members.clone(), group.rank)
        };
        let everyone: Vec<i32> = (0..members.len() as i32).collect();
        let ranks = members.translate(&everyone, &parent.core.members)?;
        if let Some(at) = ranks.iter().position(|&rank| rank == UNDEFINED) {
            let detail = format!("member {at} of the group is not in the communicator");
            return Err(Error::new(Class::GROUP, detail));
        }
        let Some(place) = place else {
            return Ok(comm::NULL);
        };
        let ranks = ranks.into_iter().map(|rank| rank as u32).collect();
        let circle = with(Circle::some(self, &parent.core, ranks, place, parent.tag));
        let new = self.agreed_comm(operation, &parent, circle, members, place)?;
        self.lock().add_comm(new)
    }

    /// `MPI_Comm_split`: `MPI_COMM_NULL` for the colour [`UNDEFINED`].
    pub fn comm_split(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        color: i32,
        key: i32,
    ) -> Result<u32> {
        if color < 0 && color != UNDEFINED {
            let detail = format!("color is {color}; valid is 0 or more, and MPI_UNDEFINED");
            return Err(Error::new(Class::ARG, detail));
        }
        let parent = self.begin(comm)?;
        let context = self.lock().new_context(self.rank());
        let circle = Circle::all(self, &parent.core, parent.tag);
        let mine = Vote {
            color,
            key,
            context,
        };
        let votes = self.block_on(
            &Waiting::in_call(operation),
            circle.allgather(mine.encode()),
        )?;
        if color == UNDEFINED {
            return Ok(comm::NULL);
        }
        let votes: Vec<Vote> = votes.chunks_exact(Vote::BYTES).map(Vote::decode).collect();
        let mut ranks: Vec<u32> = (0..)
            .zip(&votes)
            .filter(|(_, vote)| vote.color == color)
            .map(|(rank, _)| rank)
            .collect();
        // Stable: equal keys keep the order of the parent.
        ranks.sort_by_key(|&rank| votes[rank as usize].key);
        let place = ranks
            .iter()
            .position(|&rank| rank as usize == parent.core.rank)
            .expect("this rank has its colour");
        let core = Core {
            context: votes[ranks[0] as usize].context,
            members: parent.members_at(&ranks),
            rank: place,
        };
        let new = Comm {
            errhandler: parent.errhandler,
            ..Comm::new(core, "")
        };
        self.lock().add_comm(new)
    }

    /// `MPI_Comm_split_type`. Nothing smaller than a host is told apart, so where the standard wants a part of one, no
    /// communicator comes out.
    pub fn comm_split_type(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        split_type: i32,
        key: i32,
        info: &[(String, String)],
    ) -> Result<u32> {
        let value = |key: &str| {
            info.iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.as_str())
        };
        let host = self.hosts().of(self.rank()) as i32;
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
                return Err(Error::new(Class::ARG, detail));
            }
        };
        self.comm_split(operation, comm, color, key)
    }

    /// `MPI_Comm_free`. If an attribute cannot be deleted, the communicator stays.
    pub fn comm_free(&self, comm: u32) -> Result<()> {
        self.lock().freeable(comm)?;
        self.delete_attributes(Holder::Comm(comm))?;
        self.lock().remove_comm(comm)
    }

    /// `MPI_Comm_disconnect`: like `comm_free`, after all messages of the communicator.
    pub fn comm_disconnect(&self, operation: &'static str, comm: u32) -> Result<()> {
        let context = self.lock().freeable(comm)?;
        self.wait_until(&Waiting::in_call(operation), |state| {
            Ok((!state.communicates(context)).then_some(()))
        })?;
        self.comm_free(comm)
    }

    /// Begins a collective operation that makes a communicator.
    pub(crate) fn begin(&self, comm: u32) -> Result<Parent> {
        let mut state = self.lock();
        let tag = state.comms.get_mut(comm)?.collective_tag();
        state.parent(comm, tag)
    }

    /// A new communicator of `members` with this rank at `place`; all of them call, and are the circle.
    pub(crate) fn agreed_comm(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: &Parent,
        circle: Circle,
        members: Members,
        place: usize,
    ) -> Result<Comm> {
        let said = self.proposal(place);
        let context = self.block_on(&Waiting::in_call(operation), circle.bcast(said, 8))?;
        let core = Core {
            context: word(&context),
            members,
            rank: place,
        };
        Ok(Comm {
            errhandler: parent.errhandler,
            ..Comm::new(core, "")
        })
    }

    /// What the rank at `place` says in an agreement: a context, if it is the first.
    fn proposal(&self, place: usize) -> Vec<u8> {
        match place {
            0 => self.lock().new_context(self.rank()).to_ne_bytes().to_vec(),
            _ => Vec::new(),
        }
    }
}

impl State {
    fn parent(&self, comm: u32, tag: i32) -> Result<Parent> {
        let comm = self.comms.get(comm)?;
        Ok(Parent {
            core: comm.core.clone(),
            tag,
            errhandler: comm.errhandler,
        })
    }

    /// The context of a communicator that may be freed.
    fn freeable(&self, comm: u32) -> Result<u64> {
        match comm {
            comm::WORLD | comm::SELF => {
                let name = if comm == comm::WORLD {
                    "MPI_COMM_WORLD"
                } else {
                    "MPI_COMM_SELF"
                };
                Err(Error::new(
                    Class::COMM,
                    format!("{name} is predefined and cannot be freed"),
                ))
            }
            _ => Ok(self.comms.get(comm)?.core.context),
        }
    }

    /// Are messages of this context under way from here?
    fn communicates(&self, context: u64) -> bool {
        self.messages.requests.iter().any(|(_, request)| {
            let of = match &request.operation {
                Operation::Send(send) => send.envelope.key.context,
                Operation::Receive(receive) => receive.key.context,
                _ => return false,
            };
            request.status.is_none() && comm::bare(of) == context
        })
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
}
