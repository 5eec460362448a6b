//! Persistent collective operations (MPI 5.0 §6.13): their arguments are checked once, and their
//! messages have a tag of their own.
//!
//! The members of one host agree on a collective buffer for the operation alone when they first
//! start it, and choose its algorithm then; later instances reuse both.

use channel::MappedMemory;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use super::Work;
use super::buffer_agreement::agree_on_buffers;
use super::call::Call;
use super::lane_turn::Ticket;
use super::network;
use super::rounds::as_round;
use super::signature::SharedFacts;
use super::start::by_lane;
use crate::algorithms::Algorithm;
use crate::coll::lanes::{Lane, Round};
use crate::comm::Core;
use crate::rank::Rank;
use crate::request::{PersistentCollective, RequestId, Template};
use crate::{Class, Error, Result};

/// The number of instances that try to agree on a collective buffer: all may be in use for some
/// time, or another agreement may be in progress.
const TRIALS: u32 = 4;

/// A persistent collective operation of one rank.
struct Collective {
    /// The request belongs to the rank, so it must not keep the rank alive.
    rank: Weak<Rank>,
    plan: Arc<Plan>,
}

/// The operation, and the method that performs its instances.
struct Plan {
    work: Arc<Work>,
    core: Arc<Core>,
    tag: i32,
    /// The number of attempts to agree on a buffer that are left.
    trials: AtomicU32,
    /// The lane that only this operation uses, with the facts and the algorithm that it uses there.
    /// Empty: the members have agreed on none.
    lane: OnceLock<(Lane, SharedFacts, Algorithm)>,
    /// The one round of the collective buffer that performs an instance. Empty: an instance takes
    /// several rounds, or messages.
    round: OnceLock<Round>,
}

impl Rank {
    /// Initializes a persistent collective operation: an inactive request.
    pub fn collective_init(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let mut state = self.lock();
        let entry = state.objects.comms.get_mut(comm)?;
        match entry.core.is_inter() {
            true => work.check_between(&entry.core)?,
            false => work.check(&entry.core)?,
        }
        let core = entry.core.clone();
        let begins = core.joint().network.begin();
        let tag = entry.persistent_tag();
        // A buffer is worthwhile if the operation would use it.
        let shares_memory = state.engine.router.shares_memory(core.members.iter());
        let uses_buffer = !core.is_inter() && planned(self, &core, &work, true).is_some();
        let trials = match uses_buffer && shares_memory {
            true => TRIALS,
            false => 0,
        };
        let plan = Arc::new(Plan {
            work: Arc::new(work),
            core,
            tag,
            trials: AtomicU32::new(trials),
            lane: OnceLock::new(),
            round: OnceLock::new(),
        });
        if begins {
            drop(state);
            self.agree_beside(&plan.core, tag)?;
            state = self.lock();
        }
        state.engine.init(Template::Collective(Arc::new(Collective {
            rank: Arc::downgrade(self),
            plan,
        })))
    }
}

impl PersistentCollective for Collective {
    fn round(&self) -> Option<&Round> {
        self.plan.round.get()
    }

    fn start(&self) -> Result<RequestId> {
        let Some(rank) = self.rank.upgrade() else {
            return Err(Error::new(Class::OTHER, "MPI has been finalized"));
        };
        let (plan, owner) = (self.plan.clone(), rank.clone());
        let lane = plan.lane.get().cloned();
        let lane = lane.map(|(lane, shared, algorithm)| {
            let ticket = Ticket::take(&mut rank.lock().engine.lanes, &lane);
            (ticket, shared, algorithm == Algorithm::Direct)
        });
        rank.spawn(Some(plan.core.context), async move {
            let call = Call::persistent(&owner, plan.core.joint(), plan.tag);
            match lane {
                Some((ticket, shared, direct)) => {
                    by_lane(&owner, &call, ticket, &shared, direct, &plan.work).await
                }
                None => {
                    if plan.trials.load(Relaxed) > 0 {
                        plan.settle(&owner, &call).await?;
                    }
                    network::settle(&call, false).await?;
                    match plan.core.is_inter() {
                        true => plan.work.between(&call, &plan.core).await,
                        false => plan.work.by_messages(&call).await,
                    }
                }
            }
        })
    }
}

impl Plan {
    /// Tries to agree with the other members on a buffer for later instances.
    async fn settle(&self, rank: &Rank, call: &Call<'_>) -> Result<()> {
        let agreed = agree_on_buffers(rank, call, 1).await?;
        let planned = planned(rank, &self.core, &self.work, agreed.direct);
        let Some((shared, algorithm)) = planned else {
            self.trials.store(0, Relaxed);
            return Ok(());
        };
        let Some(buffer) = agreed.buffers.into_iter().next() else {
            self.trials.fetch_sub(1, Relaxed);
            return Ok(());
        };
        self.trials.store(0, Relaxed);
        let lane = rank.lock().engine.lanes.add(buffer, agreed.direct);
        let round = match algorithm {
            Algorithm::Shared => as_round(lane.clone(), &self.core, &shared, &self.work),
            _ => None,
        };
        if let Some(round) = round {
            let _ = self.round.set(round);
        }
        let _ = self.lane.set((lane, shared, algorithm));
        Ok(())
    }
}

/// The algorithm of the operation in a lane; `None` if the operation runs by messages.
fn planned(
    rank: &Rank,
    core: &Core,
    work: &Work,
    direct: bool,
) -> Option<(SharedFacts, Algorithm)> {
    let shared = work.shared(core.rank, core.size())?;
    let direct = direct && work.can_be_direct();
    let case = shared.case(core.size(), direct);
    let algorithm = rank.algorithms.algorithm(shared.collective, case);
    matches!(algorithm, Algorithm::Shared | Algorithm::Direct).then_some((shared, algorithm))
}
