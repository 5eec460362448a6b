//! Making and freeing communicators (MPI 5.0 §7.4).
//!
//! A context is the world rank of the rank that made it up and a number that this rank counts, so
//! ranks need not agree on a free one: the first member makes it up and sends it to the others.

use std::sync::Arc;

use super::agreement::Agreement;
use crate::attributes::Holder;
use crate::comm::{self, Comm, Core, Members};
use crate::hints::Hints;
use crate::rank::{Rank, State};
use crate::request::{Operation, RequestId, Waiting};
use crate::{Class, Error, Result, UNDEFINED};

/// Bytes of a context in an agreement.
const CONTEXT_BYTES: usize = 8;

/// The communicator that a new one is made from, in one collective operation.
pub(super) struct Parent {
    pub(super) core: Arc<Core>,
    /// The tag of this operation.
    pub(super) tag: i32,
    errhandler: u32,
}

impl Parent {
    /// All members of the parent as a communicator of one group.
    pub(super) fn joint(&self) -> &Arc<Core> {
        self.core.joined().unwrap_or(&self.core)
    }

    /// The world ranks of members of the parent.
    pub(super) fn members_at(&self, ranks: &[u32]) -> Members {
        self.core
            .members
            .at(ranks.iter().map(|&rank| rank as usize))
    }

    /// The numbers of these members in this rank's group of the parent.
    pub(super) fn numbers_of(&self, members: &Members) -> Result<Vec<u32>> {
        let everyone: Vec<i32> = (0..members.len() as i32).collect();
        let ranks = members.translate(&everyone, &self.core.members)?;
        if let Some(at) = ranks.iter().position(|&rank| rank == UNDEFINED) {
            let of = match self.core.is_inter() {
                true => "the local group of the communicator",
                false => "the communicator",
            };
            let detail = format!("member {at} of the group is not in {of}");
            return Err(Error::new(Class::GROUP, detail));
        }
        Ok(ranks.into_iter().map(|rank| rank as u32).collect())
    }

    /// A communicator with the parent's error handler.
    pub(super) fn child(&self, core: Core) -> Comm {
        Comm {
            errhandler: self.errhandler,
            ..Comm::new(core, "")
        }
    }
}

impl Rank {
    /// `MPI_Comm_dup` and `MPI_Comm_dup_with_info`. A rank whose copy function fails still takes
    /// part, so that the others get their communicator.
    pub fn comm_dup(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<u32> {
        let (parent, mut new, copied) = self.begin_dup(comm, info)?;
        let agreement = Agreement::all(self, parent.joint(), parent.tag);
        let context = self.agreed_context(operation, agreement)?;
        new.core = Arc::new(parent.core.again(context).made_from(&parent.core));
        let handle = self.lock().add_comm(new)?;
        if copied.is_err() {
            self.comm_free(handle)?;
        }
        copied.map(|()| handle)
    }

    /// `MPI_Comm_idup` and `MPI_Comm_idup_with_info`. The handle is valid at once, but the
    /// communicator has no members until the request completes.
    pub fn comm_idup(
        self: &Arc<Rank>,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<(u32, RequestId)> {
        let (parent, new, copied) = self.begin_dup(comm, info)?;
        let handle = self.lock().add_comm(new)?;
        let agreement = Agreement::all(self, parent.joint(), parent.tag);
        let proposal = self.proposal(parent.joint().rank);
        let rank = self.clone();
        let request = self.spawn(Some(parent.core.context), async move {
            let context = agreement.bcast(proposal, CONTEXT_BYTES).await?;
            // The user may have freed it meanwhile.
            if let Ok(comm) = rank.lock().comms.get_mut(handle) {
                let core = parent.core.again(word(&context));
                comm.core = Arc::new(core.made_from(&parent.core));
            }
            Ok(())
        })?;
        if copied.is_err() {
            self.lock().messages.requests.detach(request)?;
            self.comm_free(handle)?;
        }
        copied.map(|()| (handle, request))
    }

    /// The parent, the new communicator without its core, and the result of the copy functions.
    fn begin_dup(
        &self,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<(Parent, Comm, Result<()>)> {
        let hints = Hints::new(info)?;
        let parent = self.begin(comm)?;
        let (attributes, copied) = self.copy_attributes(Holder::Comm(comm))?;
        let nobody = Core::new(u64::MAX, Members::All(0), 0);
        let (topology, contests) = {
            let state = self.lock();
            let parent = state.comms.get(comm)?;
            let contests = parent.contests.as_ref();
            let contests = contests.map(|contests| Box::new(contests.inherited()));
            (parent.topology.clone(), contests)
        };
        let new = Comm {
            attributes,
            topology,
            contests,
            hints,
            ..parent.child(nobody)
        };
        Ok((parent, new, copied))
    }

    /// `MPI_Comm_create`: `MPI_COMM_NULL` on ranks that are not in their group. Of an
    /// intercommunicator, the group is a part of this rank's, and both must have a member.
    pub fn comm_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        group: u32,
    ) -> Result<u32> {
        let parent = self.begin(comm)?;
        match parent.core.is_inter() {
            true => self.inter_of(operation, parent, group),
            false => self.comm_of(operation, parent, group, |agreement| agreement),
        }
    }

    /// `MPI_Comm_create_group`: collective over the group alone.
    pub fn comm_create_group(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        group: u32,
        tag: i32,
    ) -> Result<u32> {
        let parent = {
            let state = self.lock();
            state.intra(comm)?;
            state.parent(comm, tag)?
        };
        self.comm_of(operation, parent, group, |agreement| {
            agreement.with_users_tag(tag)
        })
    }

    fn comm_of(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: Parent,
        group: u32,
        with: impl FnOnce(Agreement) -> Agreement,
    ) -> Result<u32> {
        let (members, place) = {
            let state = self.lock();
            let group = state.groups.get(group)?;
            (group.members.clone(), group.rank)
        };
        let ranks = parent.numbers_of(&members)?;
        let Some(place) = place else {
            return Ok(comm::NULL);
        };
        let agreement = Agreement::some(self, &parent.core, ranks, place, parent.tag);
        let new = self.agreed_comm(operation, &parent, with(agreement), members, place)?;
        self.lock().add_comm(new)
    }

    /// `MPI_Comm_free`. The communicator stays if one of its attributes cannot be deleted.
    pub fn comm_free(&self, comm: u32) -> Result<()> {
        self.lock().freeable(comm)?;
        self.delete_attributes(Holder::Comm(comm))?;
        self.lock().remove_comm(comm)
    }

    /// `MPI_Comm_disconnect`: waits for all messages of the communicator, then frees it.
    pub fn comm_disconnect(&self, operation: &'static str, comm: u32) -> Result<()> {
        let context = self.lock().freeable(comm)?;
        self.wait_until(&Waiting::in_call(operation), |state| {
            Ok((!state.communicates(context)).then_some(()))
        })?;
        self.comm_free(comm)
    }

    /// Begins a collective operation that makes a communicator of one with a single group.
    ///
    /// # Errors
    /// It is an intercommunicator.
    pub(super) fn begin_intra(&self, comm: u32) -> Result<Parent> {
        self.lock().intra(comm)?;
        self.begin(comm)
    }

    /// Begins a collective operation that makes a communicator.
    pub(super) fn begin(&self, comm: u32) -> Result<Parent> {
        let mut state = self.lock();
        let tag = state.comms.get_mut(comm)?.collective_tag();
        state.parent(comm, tag)
    }

    /// A new communicator of `members` with this rank at `place`. All members call this, and take
    /// part in the agreement.
    pub(super) fn agreed_comm(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: &Parent,
        agreement: Agreement,
        members: Members,
        place: usize,
    ) -> Result<Comm> {
        let context = self.agreed_context(operation, agreement)?;
        Ok(parent.child(Core::new(context, members, place)))
    }

    /// The context that the first place of an agreement has made up.
    fn agreed_context(
        self: &Arc<Rank>,
        operation: &'static str,
        agreement: Agreement,
    ) -> Result<u64> {
        let among = agreement.context_of_all();
        let bcast = agreement.bcast(self.proposal(agreement.place()), CONTEXT_BYTES);
        let context = self.block_on(&Waiting::in_call(operation), among, bcast)?;
        Ok(word(&context))
    }

    /// The contribution of the rank at `place` to an agreement: a context, if it is the first.
    fn proposal(&self, place: usize) -> Vec<u8> {
        match place {
            0 => self.lock().new_context(self.rank()).to_ne_bytes().to_vec(),
            _ => Vec::new(),
        }
    }
}

impl State {
    /// `MPI_Comm_group`.
    pub fn comm_group(&mut self, comm: u32) -> Result<u32> {
        self.groups.of_object(&self.comms.get(comm)?.core.members)
    }

    /// `MPI_Comm_remote_group`.
    pub fn comm_remote_group(&mut self, comm: u32) -> Result<u32> {
        let members = self.remote_group(comm)?.clone();
        self.groups.of_object(&members)
    }

    /// The remote group of a communicator.
    ///
    /// # Errors
    /// It has none.
    pub fn remote_group(&self, comm: u32) -> Result<&Members> {
        self.comms.get(comm)?.core.remote().ok_or_else(|| {
            let detail =
                format!("communicator {comm:#x} has no remote group: it is an intracommunicator");
            Error::new(Class::COMM, detail)
        })
    }

    /// Gives a new communicator its handle.
    pub(super) fn add_comm(&mut self, mut comm: Comm) -> Result<u32> {
        self.inform(&mut comm);
        let errhandler = comm.errhandler;
        let handle = self.comms.insert(comm).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million communicators: free some of them first",
            )
        })?;
        self.errhandlers.add_object(errhandler);
        Ok(handle)
    }

    /// Makes the handle invalid; operations in flight go on.
    fn remove_comm(&mut self, handle: u32) -> Result<()> {
        let removed = self.comms.remove(handle);
        let comm = removed.ok_or_else(|| comm::unknown(handle))?;
        self.errhandlers.remove_object(comm.errhandler);
        Ok(())
    }

    /// The part that communication needs of a communicator with a single group.
    ///
    /// # Errors
    /// It is an intercommunicator.
    pub(super) fn intra(&self, comm: u32) -> Result<&Arc<Core>> {
        let core = &self.comms.get(comm)?.core;
        match core.is_inter() {
            true => {
                let detail = format!(
                    "communicator {comm:#x} is an intercommunicator, where one with a single \
                     group is needed: MPI_Intercomm_merge makes one"
                );
                Err(Error::new(Class::COMM, detail))
            }
            false => Ok(core),
        }
    }

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
        let name = match comm {
            comm::WORLD => "MPI_COMM_WORLD",
            comm::SELF => "MPI_COMM_SELF",
            _ => return Ok(self.comms.get(comm)?.core.context),
        };
        let detail = format!("{name} is predefined and cannot be freed");
        Err(Error::new(Class::COMM, detail))
    }

    /// Are messages of this context in flight?
    fn communicates(&self, context: u64) -> bool {
        self.messages.requests.iter().any(|(_, request)| {
            let of = match &request.operation {
                Operation::Send(send) => send.envelope.key.context,
                Operation::Receive(receive) => receive.key.context,
                _ => return false,
            };
            request.is_open() && comm::bare(of) == context
        })
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
}
