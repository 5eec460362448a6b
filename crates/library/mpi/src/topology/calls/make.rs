//! Communicators with a topology (MPI 5.0 §8.5): what grids and graphs have in common.

use std::sync::Arc;

use crate::comm::calls::making::{Making, Parent};
use crate::comm::{self, Core};
use crate::rank::Rank;
use crate::state::Objects;
use crate::topology::Topology;
use crate::{Class, Error, Result, UNDEFINED};

impl Objects {
    /// `MPI_Topo_test`.
    pub fn topology(&self, comm: u32) -> Result<i32> {
        let topology = &self.comms.get(comm)?.topology;
        Ok(topology.as_ref().map_or(UNDEFINED, |one| one.kind()))
    }

    /// The topology of a communicator, for a neighbourhood collective.
    pub fn neighbourhood(&self, comm: u32) -> Result<Arc<Topology>> {
        self.comms.get(comm)?.topology.clone().ok_or_else(|| {
            let detail = format!(
                "communicator {comm:#x} has no topology, so its ranks have no neighbours: \
                 MPI_Cart_create, MPI_Graph_create and MPI_Dist_graph_create make one"
            );
            Error::new(Class::TOPOLOGY, detail)
        })
    }
}

impl Rank {
    /// Makes a communicator of the `ranks` of the parent. `topology` makes the topology for the
    /// rank with a given number among them. Returns `MPI_COMM_NULL` on other ranks. All ranks of
    /// the parent must call this, also one with an error.
    pub(super) fn topology_comm(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: Parent,
        ranks: Result<Vec<u32>>,
        topology: impl FnOnce(usize) -> Result<Topology>,
    ) -> Result<u32> {
        let own = |&rank: &u32| rank as usize == parent.core.rank;
        let place = |ranks: &Vec<u32>| ranks.iter().position(own);
        let made = ranks.and_then(|ranks| match place(&ranks) {
            Some(place) => Ok(Some((place, topology(place)?, ranks))),
            None => Ok(None),
        });
        let mine = made.as_ref().map(drop).map_err(Clone::clone);
        let contexts = self.exchange_contexts(operation, &parent, Making::Topology, mine)?;
        let Some((place, topology, ranks)) = made? else {
            return Ok(comm::NULL);
        };
        let context = contexts[ranks[0] as usize];
        let mut new = parent.child(Core::new(context, parent.members_at(&ranks), place));
        new.topology = Some(Arc::new(topology));
        self.add_comm(new)
    }
}
