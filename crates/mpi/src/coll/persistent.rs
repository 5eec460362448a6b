//! Persistent collective operations (MPI 5.0 §6.13): their arguments are checked once, and their
//! messages have a tag of their own.

use std::sync::Arc;

use super::call::Call;
use super::network;
use super::work::Work;
use crate::comm::Core;
use crate::rank::Rank;
use crate::request::{RequestId, Template};
use crate::{Class, Error, Result};

/// A persistent collective operation.
struct PersistentCollective {
    work: Work,
    core: Arc<Core>,
    tag: i32,
}

impl Rank {
    /// Initializes a persistent collective operation: an inactive request.
    pub fn collective_init(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let mut state = self.lock();
        let entry = state.comms.get_mut(comm)?;
        work.check(&entry.core)?;
        let begins = entry.core.network.begin();
        let collective = Arc::new(PersistentCollective {
            work,
            core: entry.core.clone(),
            tag: entry.persistent_tag(),
        });
        if begins {
            drop(state);
            self.agree_beside(&collective.core, collective.tag)?;
            state = self.lock();
        }
        // The request belongs to the rank, so it must not keep the rank alive.
        let rank = Arc::downgrade(self);
        let start = move || match rank.upgrade() {
            Some(rank) => rank.start_instance(collective.clone()),
            None => Err(Error::new(Class::OTHER, "MPI has been finalized")),
        };
        state.init(Template::Collective(Arc::new(start)))
    }

    /// Starts an instance.
    fn start_instance(
        self: &Arc<Rank>,
        collective: Arc<PersistentCollective>,
    ) -> Result<RequestId> {
        let rank = self.clone();
        self.spawn(Some(collective.core.context), async move {
            let call = Call::persistent(&rank, &collective.core, collective.tag);
            network::settle(&call, false).await?;
            collective.work.run(&call).await
        })
    }
}
