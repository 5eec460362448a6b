//! Making and freeing communicators (MPI 5.0 §7.4).
//!
//! A context consists of the world rank of its creator and a number that the creator counts up, so
//! ranks need not agree on a free one: the first member creates it and sends it to the others.

use std::sync::Arc;

use crate::attributes::{Attributes, Holder};
use crate::comm::calls::agreement::Agreement;
use crate::comm::calls::making::{Making, Parent, no_room};
use crate::comm::{self, Comm, Core, Members};
use crate::hints::Hints;
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
use crate::state::Objects;
use crate::{Class, Error, Result};

/// The length of a context in the message of an agreement, in bytes.
const CONTEXT_BYTES: usize = 8;

/// A group of a new communicator, whose members are also members of the parent.
struct Part {
    members: Members,
    /// The numbers of the new group's members in the parent.
    ranks: Vec<u32>,
    /// This rank's number in the group. `None`: it is no member.
    place: Option<usize>,
}

impl Rank {
    /// `MPI_Comm_dup` and `MPI_Comm_dup_with_info`. If a copy function fails, all ranks fail with
    /// its class.
    pub fn comm_dup(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<u32> {
        let (parent, new, copied) = self.begin_dup(comm, info)?;
        let agreement = Agreement::all(self, parent.joint(), parent.tag);
        let added = self.add_comm(new);
        let mine = copied.and(added.clone());
        let proposal = mine.clone().map(|_| self.proposal(agreement.place()));
        let among = agreement.context_of_all();
        let agreed = agreement.bcast_agreed(proposal, CONTEXT_BYTES);
        let agreed = self.block_on(&Waiting::in_call(operation), among, agreed);
        let context = match agreed {
            Ok(context) => word(&context),
            Err(error) => {
                // The attributes of the new communicator are deleted with it.
                added.and_then(|handle| self.comm_free(handle)).ok();
                return Err(error);
            }
        };
        let handle = mine?;
        let core = parent.core.again(context).made_from(&parent.core);
        self.lock().objects.comms.get_mut(handle)?.core = Arc::new(core);
        Ok(handle)
    }

    /// `MPI_Comm_idup` and `MPI_Comm_idup_with_info`. The handle is valid at once, but the
    /// communicator has no members until the request completes.
    pub fn comm_idup(
        self: &Arc<Rank>,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<(u32, RequestId)> {
        let (parent, new, copied) = self.begin_dup(comm, info)?;
        let agreement = Agreement::all(self, parent.joint(), parent.tag);
        let handle = self.add_comm(new);
        let mine = copied.and(handle.clone());
        let proposal = mine.clone().map(|_| self.proposal(agreement.place()));
        let (rank, added) = (self.clone(), mine.clone().ok());
        let request = self.spawn(Some(parent.core.context), async move {
            let context = agreement.bcast_agreed(proposal, CONTEXT_BYTES).await;
            if let (Err(_), Some(handle)) = (&context, added) {
                rank.comm_free(handle).ok();
            }
            let core = parent.core.again(word(&context?));
            // The user may have freed the communicator meanwhile.
            if let Some(handle) = added
                && let Ok(comm) = rank.lock().objects.comms.get_mut(handle)
            {
                comm.core = Arc::new(core.made_from(&parent.core));
            }
            Ok(())
        })?;
        if mine.is_err() {
            // The operation goes on without a handle, to report the failure to the other ranks.
            self.lock().engine.messages.requests.detach(request)?;
            handle.and_then(|handle| self.comm_free(handle)).ok();
        }
        mine.map(|handle| (handle, request))
    }

    /// Begins a duplication. Returns the parent, the new communicator without its core, and the
    /// result of the copy functions. The new communicator has the attributes that were copied, and
    /// they are deleted with it.
    fn begin_dup(
        &self,
        comm: u32,
        info: &[(String, String)],
    ) -> Result<(Parent, Comm, Result<()>)> {
        let parent = self.begin(comm)?;
        let hints = Hints::new(info);
        let (attributes, copied) = match &hints {
            Ok(_) => self.copy_attributes(Holder::Comm(comm))?,
            Err(_) => (Attributes::default(), Ok(())),
        };
        let copied = hints.as_ref().map(drop).map_err(Clone::clone).and(copied);
        let hints = hints.unwrap_or_default();
        let nobody = Core::new(u64::MAX, Members::All(0), 0);
        let (topology, contests) = {
            let state = self.lock();
            let parent = state.objects.comms.get(comm)?;
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

    /// `MPI_Comm_create`. The result is `MPI_COMM_NULL` on ranks outside the group. For an
    /// intercommunicator, `group` is a subset of this rank's group, and the new communicator exists
    /// only if both subsets have a member.
    pub fn comm_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        group: u32,
    ) -> Result<u32> {
        let parent = self.begin(comm)?;
        match parent.core.is_inter() {
            true => self.inter_of(operation, parent, group),
            false => self.comm_of(operation, &parent, group),
        }
    }

    /// `MPI_Comm_create_group`: a collective call of the members of the group only.
    pub fn comm_create_group(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        group: u32,
        tag: i32,
    ) -> Result<u32> {
        let parent = {
            let state = self.lock();
            state.objects.intra(comm)?;
            state.objects.parent(comm, tag)?
        };
        let Part {
            members,
            ranks,
            place,
        } = self.part_of(&parent, group)?;
        let Some(place) = place else {
            return Ok(comm::NULL);
        };
        let agreement = Agreement::some(self, &parent.core, ranks, place, parent.tag);
        let agreement = agreement.with_users_tag(tag);
        let context = self.agreed_context(operation, agreement)?;
        let new = parent.child(Core::new(context, members, place));
        self.add_comm(new)
    }

    /// Makes a communicator of a group of the parent, in a collective call of all ranks of the
    /// parent.
    fn comm_of(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: &Parent,
        group: u32,
    ) -> Result<u32> {
        let given = self.part_of(parent, group);
        let mine = given.as_ref().map(|part| part.place).map_err(Clone::clone);
        let contexts = self.exchange_contexts(operation, parent, Making::Create, mine)?;
        let Part {
            members,
            ranks,
            place,
        } = given?;
        let Some(place) = place else {
            return Ok(comm::NULL);
        };
        let context = contexts[ranks[0] as usize];
        let new = parent.child(Core::new(context, members, place));
        self.add_comm(new)
    }

    /// Exchanges contexts: each member of the parent creates one, in case that it is the first of a
    /// new group. Returns them by the members' numbers in the joint group.
    pub(crate) fn exchange_contexts<T>(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: &Parent,
        making: Making,
        mine: Result<T>,
    ) -> Result<Vec<u64>> {
        let mut words = self
            .lock()
            .objects
            .comms
            .new_context(self.rank())
            .to_ne_bytes()
            .to_vec();
        words.resize(making.bytes(), 0);
        let mine = mine.map(|_| words);
        let all = self.exchange_to_make(operation, parent, making, mine)?;
        Ok(all.chunks_exact(making.bytes()).map(word).collect())
    }

    /// Finds the members of a group in the parent communicator.
    fn part_of(&self, parent: &Parent, group: u32) -> Result<Part> {
        let (members, place) = {
            let state = self.lock();
            let group = state.objects.groups.get(group)?;
            (group.members.clone(), group.rank)
        };
        let ranks = parent.numbers_of(&members)?;
        Ok(Part {
            members,
            ranks,
            place,
        })
    }

    /// `MPI_Comm_free`. The communicator stays if one of its attributes cannot be deleted.
    pub fn comm_free(&self, comm: u32) -> Result<()> {
        self.lock().objects.freeable(comm)?;
        self.delete_attributes(Holder::Comm(comm))?;
        self.remove_comm(comm)
    }

    /// `MPI_Comm_disconnect`: waits for all messages of the communicator, then frees it.
    pub fn comm_disconnect(&self, operation: &'static str, comm: u32) -> Result<()> {
        let context = self.lock().objects.freeable(comm)?;
        self.wait_until(&Waiting::in_call(operation), |state| {
            Ok((!state.engine.messages.communicate(context)).then_some(()))
        })?;
        self.comm_free(comm)
    }

    /// The context that the first rank of an agreement has created.
    fn agreed_context(
        self: &Arc<Rank>,
        operation: &'static str,
        agreement: Agreement,
    ) -> Result<u64> {
        let among = agreement.context_of_all();
        let mine = self.with_room(Ok(self.proposal(agreement.place())));
        let bcast = agreement.bcast_agreed(mine, CONTEXT_BYTES);
        let context = self.block_on(&Waiting::in_call(operation), among, bcast)?;
        Ok(word(&context))
    }

    /// The contribution of the rank at position `place` to an agreement: a context, if it is the
    /// first.
    fn proposal(&self, place: usize) -> Vec<u8> {
        match place {
            0 => self
                .lock()
                .objects
                .comms
                .new_context(self.rank())
                .to_ne_bytes()
                .to_vec(),
            _ => Vec::new(),
        }
    }

    /// Adds a new communicator to the table, and returns its handle.
    pub(crate) fn add_comm(&self, comm: Comm) -> Result<u32> {
        let mut state = self.lock();
        state.engine.messages.losses.begin(comm.core.context);
        let errhandler = comm.errhandler;
        let handle = state.objects.comms.insert(comm).ok_or_else(no_room)?;
        state.objects.errhandlers.add_object(errhandler);
        Ok(handle)
    }

    /// Makes the handle of a communicator invalid; operations in flight continue.
    fn remove_comm(&self, handle: u32) -> Result<()> {
        let mut state = self.lock();
        let removed = state.objects.comms.remove(handle);
        let comm = removed.ok_or_else(|| comm::unknown(handle))?;
        state.engine.messages.losses.end(comm.core.context);
        state.objects.errhandlers.remove_object(comm.errhandler);
        Ok(())
    }
}

impl Objects {
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
    /// The communicator has no remote group.
    pub fn remote_group(&self, comm: u32) -> Result<&Members> {
        self.comms.get(comm)?.core.remote().ok_or_else(|| {
            let detail =
                format!("communicator {comm:#x} has no remote group: it is an intracommunicator");
            Error::new(Class::COMM, detail)
        })
    }

    /// The core of a communicator that has a single group.
    ///
    /// # Errors
    /// The communicator is an intercommunicator.
    pub(crate) fn intra(&self, comm: u32) -> Result<&Arc<Core>> {
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

    /// The context of a communicator that may be freed. A predefined communicator is an error.
    fn freeable(&self, comm: u32) -> Result<u64> {
        let name = match comm {
            comm::WORLD => "MPI_COMM_WORLD",
            comm::SELF => "MPI_COMM_SELF",
            _ => return Ok(self.comms.get(comm)?.core.context),
        };
        let detail = format!("{name} is predefined and cannot be freed");
        Err(Error::new(Class::COMM, detail))
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
}
