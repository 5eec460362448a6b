//! This library, as the recording of a rank's calls asks it (crate `recording`).

use crate::handle::Info;
use crate::info::Pair;
use crate::state::LIBRARY;
use mpi::topology::Shape;
use recording::{Library, Members, Topology};

/// A rank of this library whose calls are recorded.
pub(crate) struct Own<'a>(pub(crate) &'a mpi::Rank);

impl Library for Own<'_> {
    fn members(&self, comm: u64) -> Result<Members, String> {
        let state = self.0.lock();
        let comm = state.objects().comms().get(comm as u32);
        let core = &comm.map_err(|error| error.to_string())?.core;
        Ok(Members {
            rank: core.rank as i64,
            size: core.size(),
            peers: core.peers().len(),
            is_inter: core.is_inter(),
        })
    }

    fn topology(&self, comm: u64) -> Option<Topology> {
        let state = self.0.lock();
        let topology = state.objects().neighbourhood(comm as u32).ok()?;
        Some(Topology {
            dimensions: match &topology.shape {
                Shape::Cartesian(grid) => Some(grid.dims().len()),
                _ => None,
            },
            sources: topology.neighbours.sources().len(),
            destinations: topology.neighbours.destinations().len(),
        })
    }

    fn pairs(&self, info: u64) -> Result<Vec<Pair>, String> {
        let mut infos = LIBRARY.infos();
        let pairs = infos.pairs(Info(info as usize));
        pairs.map(<[_]>::to_vec).map_err(|error| error.to_string())
    }

    fn type_size(&self, datatype: u64) -> Option<u64> {
        let state = self.0.lock();
        let datatype = state.objects().types().get(datatype as u32);
        datatype.ok().map(|datatype| datatype.size() as u64)
    }

    fn type_members(&self, datatype: u64) -> usize {
        let state = self.0.lock();
        let datatype = state.objects().types().get(datatype as u32);
        let contents = datatype.map(|datatype| datatype.contents());
        let contents = contents.ok().flatten();
        contents.map_or(0, |contents| contents.types.len())
    }
}
