//! The agreement of the ranks that make a communicator or a window: all of them get it, or none.
//!
//! Each such call has one exchange between all ranks of the communicator that it starts from. A
//! rank whose part has failed, by a wrong argument, a callback or a lack of memory, takes part with
//! its failure. All ranks then report the failure of the lowest rank that has failed.

use std::sync::Arc;

use crate::comm::calls::agreement::Agreement;
use crate::comm::{Comm, Core, Members};
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::Objects;
use crate::{Class, Error, Result, UNDEFINED};

/// The communicator that a new one is made from, in one collective operation.
pub(crate) struct Parent {
    pub(crate) core: Arc<Core>,
    /// The tag of the collective operation that makes the new communicator or window.
    pub(crate) tag: i32,
    errhandler: u32,
}

impl Parent {
    /// All members of the parent communicator as a communicator of one group.
    pub(crate) fn joint(&self) -> &Arc<Core> {
        self.core.joined().unwrap_or(&self.core)
    }

    /// The members with these numbers in this rank's group of the parent.
    pub(crate) fn members_at(&self, ranks: &[u32]) -> Members {
        self.core
            .members
            .at(ranks.iter().map(|&rank| rank as usize))
    }

    /// The numbers of these members in this rank's group of the parent. It is an error if one is
    /// not in it.
    pub(crate) fn numbers_of(&self, members: &Members) -> Result<Vec<u32>> {
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

    /// A new communicator with this core and the parent's error handler.
    pub(crate) fn child(&self, core: Core) -> Comm {
        Comm {
            errhandler: self.errhandler,
            ..Comm::new(core, "")
        }
    }
}

/// The procedures that make a communicator or a window, grouped by the contribution of a rank to
/// their exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Making {
    /// `MPI_Comm_dup` and `MPI_Comm_dup_with_info`.
    Duplicate,
    /// `MPI_Comm_idup` and `MPI_Comm_idup_with_info`.
    DuplicateLater,
    /// `MPI_Comm_create`.
    Create,
    /// `MPI_Comm_split` and `MPI_Comm_split_type`.
    Split,
    /// The procedures that make a grid or a graph, such as `MPI_Cart_create`.
    Topology,
    /// `MPI_Intercomm_merge`.
    Merge,
    /// `MPI_Intercomm_create`. In its exchange the ranks are numbered from the leader on.
    Between,
    /// The procedures that make a window.
    Window,
}

impl Making {
    /// Number of bytes that a rank contributes to the exchange by which the object is made.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Making::Duplicate | Making::DuplicateLater => 1,
            Making::Topology => 8,
            Making::Create | Making::Split | Making::Merge | Making::Between => 16,
            Making::Window => 40,
        }
    }

    /// True if the procedure is valid for a communicator of this kind, so that its ranks reach the
    /// exchange. Otherwise all ranks fail before it, for the same reason.
    fn begins_from(self, core: &Core) -> bool {
        match self {
            Making::Duplicate | Making::DuplicateLater | Making::Create | Making::Split => true,
            Making::Topology | Making::Between | Making::Window => !core.is_inter(),
            Making::Merge => core.is_inter(),
        }
    }
}

impl Rank {
    /// Begins a collective operation that makes a communicator from one with a single group.
    ///
    /// # Errors
    /// The parent is an intercommunicator.
    pub(crate) fn begin_intra(&self, comm: u32) -> Result<Parent> {
        self.lock().objects.intra(comm)?;
        self.begin(comm)
    }

    /// Begins a collective operation that makes a communicator.
    pub(crate) fn begin(&self, comm: u32) -> Result<Parent> {
        let mut state = self.lock();
        let tag = state.objects.comms.get_mut(comm)?.collective_tag();
        state.objects.parent(comm, tag)
    }

    /// Exchanges the contributions of all ranks to the making of an object. Returns them in the
    /// order of the joint group.
    ///
    /// # Errors
    /// The failure of the lowest rank that has failed, on all ranks; or a member is lost.
    pub(crate) fn exchange_to_make(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: &Parent,
        making: Making,
        mine: Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let mine = self.with_room(mine);
        let agreement = Agreement::all(self, parent.joint(), parent.tag);
        let among = Some(parent.core.context);
        let exchange = agreement.allgather_agreed(mine, making.bytes());
        self.block_on(&Waiting::in_call(operation), among, exchange)
    }

    /// The contribution of a rank; an error if the rank has no room for another communicator.
    pub(crate) fn with_room<T>(&self, mine: Result<T>) -> Result<T> {
        match self.lock().objects.comms.has_room() {
            true => mine,
            false => mine.and(Err(no_room())),
        }
    }

    /// Takes part in the exchange of a call whose arguments are invalid on this rank, so that the
    /// other ranks fail, too. The result is the error of the call: that of the lowest rank that has
    /// failed.
    #[cold]
    pub fn refuse_making(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        making: Making,
        error: Error,
    ) -> Error {
        let begins = match self.lock().objects.comms.get(comm) {
            Ok(comm) => making.begins_from(&comm.core),
            Err(_) => false,
        };
        let parent = match begins.then(|| self.begin(comm)) {
            Some(Ok(parent)) => parent,
            _ => return error,
        };
        match making {
            Making::DuplicateLater => {
                self.refuse_later(&parent, making, error.clone());
                error
            }
            Making::Between => self.refuse_between(operation, &parent, error),
            _ => {
                let mine = Err(error.clone());
                let told = self.exchange_to_make(operation, &parent, making, mine);
                told.err().unwrap_or(error)
            }
        }
    }

    /// Takes part in a nonblocking exchange with a failure.
    fn refuse_later(self: &Arc<Rank>, parent: &Parent, making: Making, error: Error) {
        let agreement = Agreement::all(self, parent.joint(), parent.tag);
        let refused = async move {
            let exchange = agreement.allgather_agreed(Err(error), making.bytes());
            exchange.await.map(drop)
        };
        if let Ok(request) = self.spawn(Some(parent.core.context), refused) {
            let _ = self.lock().engine.messages.requests.detach(request);
        }
    }

    /// Notifies all ranks of the local group that this one fails. Returns the error of the call.
    pub(crate) fn refuse_between(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: &Parent,
        error: Error,
    ) -> Error {
        let size = parent.core.size() as u32;
        let ranks = (0..size).collect();
        let place = parent.core.rank;
        let agreement = Agreement::some(self, &parent.core, ranks, place, parent.tag);
        let waiting = Waiting::in_call(operation);
        let told = self.block_on(&waiting, None, agreement.fail_everywhere(&error));
        told.err().unwrap_or(error)
    }
}

impl Objects {
    pub(crate) fn parent(&self, comm: u32, tag: i32) -> Result<Parent> {
        let comm = self.comms.get(comm)?;
        Ok(Parent {
            core: comm.core.clone(),
            tag,
            errhandler: comm.errhandler,
        })
    }
}

#[cold]
pub(crate) fn no_room() -> Error {
    let detail = "there are a million communicators: free some of them first";
    Error::new(Class::NO_MEM, detail)
}
