//! The data of a communicator that messages and collective operations use: context, groups, hosts,
//! network.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::context::bare;
use crate::algorithms::Network;
use crate::algorithms::recent::RecentChoices;
use crate::group::Members;
use crate::shape::Shape;
use crate::{Class, Error, PROC_NULL, Result};

/// The data of a communicator that messages and collective operations use. Operations in flight
/// keep them after the handle has been freed.
#[derive(Debug)]
pub struct Core {
    /// The context, unique in the job: the world rank of the member that created it, and a counter
    /// of that rank.
    pub context: u64,
    /// The members of this rank's group, by world rank.
    pub members: Members,
    /// This rank's number in its group.
    pub rank: usize,
    /// The group in which calls name ranks: this rank's own, or the remote group of an
    /// intercommunicator.
    peers: Members,
    /// The members of both groups of an intercommunicator, as a communicator of one group.
    joint: Option<Arc<Core>>,
    /// The members by host, once a collective operation has needed them.
    shape: OnceLock<Arc<Shape>>,
    /// The network between the members, once they have agreed on it.
    pub(crate) network: Arc<AgreedNetwork>,
    /// A cache of the algorithms that have been chosen recently by their costs.
    recent: OnceLock<RecentChoices>,
}

/// The network between the members of a communicator, on which they agree in their first collective
/// operation. Communicators that are made from it share the agreed network.
#[derive(Debug, Default)]
pub(crate) struct AgreedNetwork {
    is_begun: AtomicBool,
    /// The network on which the members have agreed; empty until then.
    pub(crate) agreed: OnceLock<Network>,
}

impl AgreedNetwork {
    /// True at the first call of this function: the members then begin to agree during the present
    /// operation.
    pub(crate) fn begin(&self) -> bool {
        !self.is_begun.load(Ordering::Relaxed) && !self.is_begun.swap(true, Ordering::Relaxed)
    }
}

impl Core {
    /// The core of a communicator whose members have not agreed on their network.
    pub fn new(context: u64, members: Members, rank: usize) -> Core {
        Core {
            context,
            peers: members.clone(),
            members,
            rank,
            joint: None,
            shape: OnceLock::new(),
            network: Arc::default(),
            recent: OnceLock::new(),
        }
    }

    /// The core of an intercommunicator between this rank's group and a remote one. `is_first`:
    /// this rank's group comes first in the joint group. The ranks of one group pass true, those of
    /// the other false.
    pub fn between(
        context: u64,
        members: Members,
        rank: usize,
        remote: Members,
        is_first: bool,
    ) -> Core {
        let (first, second) = match is_first {
            true => (&members, &remote),
            false => (&remote, &members),
        };
        let place = match is_first {
            true => rank,
            false => first.len() + rank,
        };
        let all = first.iter().chain(second.iter());
        let all: Vec<u32> = all.map(|world| world as u32).collect();
        Core {
            joint: Some(Arc::new(Core::new(context, all.into(), place))),
            peers: remote,
            ..Core::new(context, members, rank)
        }
    }

    /// A copy of this core with another context.
    pub(crate) fn again(&self, context: u64) -> Core {
        let (members, rank) = (self.members.clone(), self.rank);
        match self.joint.is_some() {
            true => {
                let is_first = self.is_first();
                Core::between(context, members, rank, self.peers.clone(), is_first)
            }
            false => Core::new(context, members, rank),
        }
    }

    /// This core with the agreed network of `parent`, all of whose members make this communicator
    /// together.
    pub(crate) fn made_from(mut self, parent: &Core) -> Core {
        let network = &parent.joint().network;
        if !network.is_begun.load(Ordering::Relaxed) {
            return self;
        }
        let network = network.clone();
        match &mut self.joint {
            // The joint core has no other owner yet.
            Some(joint) => _ = Arc::get_mut(joint).map(|joint| joint.network = network),
            None => self.network = network,
        }
        self
    }

    /// True if the communicator has two groups.
    #[inline(always)]
    pub fn is_inter(&self) -> bool {
        self.joint.is_some()
    }

    /// The remote group of an intercommunicator, by world rank.
    pub fn remote(&self) -> Option<&Members> {
        self.is_inter().then_some(&self.peers)
    }

    /// The group in which calls name ranks: this rank's own, or the remote group of an
    /// intercommunicator.
    pub fn peers(&self) -> &Members {
        &self.peers
    }

    /// The group in which messages with this context number their senders and receivers: the
    /// [`peers`](Core::peers) for those of users, and the joint group for those of the library.
    pub(crate) fn numbered(&self, context: u64) -> &Members {
        match context == bare(context) {
            true => &self.peers,
            false => &self.joint().members,
        }
    }

    /// All members of both groups as one group, in a communicator with this context.
    pub(crate) fn joint(&self) -> &Core {
        self.joint.as_deref().unwrap_or(self)
    }

    /// The joint group of an intercommunicator, as a communicator of one group.
    pub(crate) fn joined(&self) -> Option<&Arc<Core>> {
        self.joint.as_ref()
    }

    /// True if this rank's group comes first in the joint group.
    pub(crate) fn is_first(&self) -> bool {
        self.joint().rank == self.rank
    }

    /// The members of this rank's group, by their numbers in the joint group.
    pub(crate) fn ours(&self) -> Range<usize> {
        let first = self.joint().rank - self.rank;
        first..first + self.members.len()
    }

    /// The numbers of the [`peers`](Core::peers) in the joint group.
    pub(crate) fn theirs(&self) -> Range<usize> {
        match self.is_inter() && self.is_first() {
            true => self.members.len()..self.joint().size(),
            false => 0..self.peers.len(),
        }
    }

    /// The cache of the algorithms that costs have chosen recently for this communicator.
    pub(crate) fn recent_choices(&self) -> &RecentChoices {
        self.recent.get_or_init(RecentChoices::default)
    }

    /// The members by host; the function `host_of` returns the host of a world rank.
    pub(crate) fn shape(&self, host_of: impl Fn(usize) -> u32) -> &Shape {
        self.shape
            .get_or_init(|| Arc::new(Shape::of(self.members.iter().map(&host_of))))
    }

    /// This core with the shape that another member has computed.
    #[cfg(feature = "carriers")]
    pub fn shaped(self, shape: Arc<Shape>) -> Core {
        let _ = self.shape.set(shape);
        self
    }

    /// The number of members of this rank's group.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The world rank of the member with this number among the [`peers`](Core::peers); `None` for
    /// `MPI_PROC_NULL`.
    #[inline(always)]
    pub fn peer(&self, rank: i32) -> Result<Option<usize>> {
        match self.peers.world(rank as usize) {
            Some(world) if rank >= 0 => Ok(Some(world)),
            _ if rank == PROC_NULL => Ok(None),
            _ => Err(self.no_such_rank(rank)),
        }
    }

    /// The error for a rank that the communicator does not have.
    #[cold]
    pub(crate) fn no_such_rank(&self, rank: i32) -> Error {
        let of = match self.is_inter() {
            true => "the remote group",
            false => "the communicator",
        };
        let detail = match self.peers.len() {
            0 => "the communicator is not ready: wait for the request of MPI_Comm_idup first"
                .to_string(),
            size => format!(
                "rank {rank} does not exist: {of} has {size} ranks, 0 to {}",
                size - 1
            ),
        };
        Error::new(Class::RANK, detail)
    }
}
