//! Persistent collective operations (MPI 5.0 §6.13): their arguments are checked once, and their
//! messages have a tag of their own.
//!
//! The members of one host agree on a collective buffer of the operation's own when they first
//! start it, and choose its algorithm then; later instances only use both.

use std::sync::{Arc, Mutex, PoisonError};

use super::buffer_agreement::agree_on_buffers;
use super::call::Call;
use super::lane_turn::{LaneTurn, Ticket};
use super::pieces::WHOLE;
use super::work::{SharedCall, Work};
use super::{by_lane, small};
use crate::algorithms::Algorithm;
use crate::comm::Core;
use crate::lanes::Lane;
use crate::rank::Rank;
use crate::request::{RequestId, Template};
use crate::{Class, Error, Result};

/// Instances that try to agree on a collective buffer: there may be none for some time, or another
/// agreement may be under way.
const TRIALS: u32 = 4;

/// A persistent collective operation.
struct PersistentCollective {
    work: Work,
    core: Arc<Core>,
    tag: i32,
    plan: Mutex<Plan>,
}

/// The way in which instances are performed.
#[derive(Clone)]
enum Plan {
    /// By messages, after an attempt to agree on a buffer.
    Open {
        /// Attempts left.
        trials: u32,
    },
    /// By messages.
    Messages,
    /// In a lane of its own.
    Lane(Lane, SharedCall, Algorithm),
}

impl Rank {
    /// Initializes a persistent collective operation: an inactive request.
    pub fn collective_init(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let mut state = self.lock();
        let entry = state.comms.get_mut(comm)?;
        work.check(&entry.core)?;
        let core = entry.core.clone();
        let tag = entry.persistent_tag();
        // A buffer is worth while if the operation would use it.
        let shares_memory = state.router.shares_memory(core.members.iter());
        let plan = match self.planned(&core, &work, true) {
            Some(_) if shares_memory => Plan::Open { trials: TRIALS },
            _ => Plan::Messages,
        };
        let collective = Arc::new(PersistentCollective {
            plan: Mutex::new(plan),
            work,
            core,
            tag,
        });
        // The request belongs to the rank, so it must not keep the rank alive.
        let rank = Arc::downgrade(self);
        let start = move || match rank.upgrade() {
            Some(rank) => rank.start_instance(&collective),
            None => Err(Error::new(Class::OTHER, "MPI has been finalized")),
        };
        state.init(Template::Collective(Arc::new(start)))
    }

    /// The algorithm in a lane, if it is one for members that share memory.
    fn planned(&self, core: &Core, work: &Work, direct: bool) -> Option<(SharedCall, Algorithm)> {
        let shared = work.as_shared(core.rank, core.size())?;
        let direct = direct && work.can_be_direct();
        let case = shared.case(core.size(), direct);
        let algorithm = self.algorithms.algorithm(shared.collective, case);
        matches!(algorithm, Algorithm::Shared | Algorithm::Direct).then_some((shared, algorithm))
    }

    /// Starts an instance.
    fn start_instance(
        self: &Arc<Rank>,
        collective: &Arc<PersistentCollective>,
    ) -> Result<RequestId> {
        let plan = collective.plan();
        let (rank, collective) = (self.clone(), collective.clone());
        let context = Some(collective.core.context);
        match plan {
            Plan::Lane(lane, shared, Algorithm::Shared) if shared.published <= WHOLE => {
                let ticket = Ticket::take(&mut self.lock(), &lane);
                self.spawn(context, async move {
                    let turn = LaneTurn::new(&rank, ticket, shared.collective, false);
                    let size = collective.core.size();
                    small::whole_by_lane(&turn, &collective.work, size, shared.published).await
                })
            }
            Plan::Lane(lane, shared, algorithm) => {
                let ticket = Ticket::take(&mut self.lock(), &lane);
                self.spawn(context, async move {
                    let call = Call::persistent(&rank, &collective.core, collective.tag);
                    let direct = algorithm == Algorithm::Direct;
                    by_lane(&call, ticket, &shared, direct, &collective.work).await
                })
            }
            Plan::Messages => self.spawn(context, async move {
                let call = Call::persistent(&rank, &collective.core, collective.tag);
                collective.work.run(&call).await
            }),
            Plan::Open { trials } => self.spawn(context, async move {
                let call = Call::persistent(&rank, &collective.core, collective.tag);
                collective.settle(&call, trials).await?;
                collective.work.run(&call).await
            }),
        }
    }
}

impl PersistentCollective {
    fn plan(&self) -> Plan {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Tries to agree on a buffer, for later instances.
    async fn settle(&self, call: &Call<'_>, trials: u32) -> Result<()> {
        let agreed = agree_on_buffers(call, 1).await?;
        let planned = call.rank.planned(&self.core, &self.work, agreed.direct);
        let plan = match (agreed.buffers.into_iter().next(), planned) {
            (Some(buffer), Some((shared, algorithm))) => {
                let lane = call.rank.lock().lanes.add(buffer, agreed.direct);
                Plan::Lane(lane, shared, algorithm)
            }
            (None, Some(_)) if trials > 1 => Plan::Open { trials: trials - 1 },
            _ => Plan::Messages,
        };
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        Ok(())
    }
}
