//! Communicators with a Cartesian topology (MPI 5.0 §8.5).

use std::sync::Arc;

use crate::comm::Core;
use crate::rank::Rank;
use crate::state::Objects;
use crate::topology::{Cartesian, Shape, Topology, by_hosts};
use crate::{Class, Error, Result, UNDEFINED};

impl Objects {
    /// The grid of a communicator, and this rank's number in the communicator.
    pub fn cartesian(&self, comm: u32) -> Result<(&Cartesian, i32)> {
        let known = self.comms.get(comm)?;
        match known.topology.as_deref().map(|topology| &topology.shape) {
            Some(Shape::Cartesian(grid)) => Ok((grid, known.core.rank as i32)),
            _ => {
                let detail = format!(
                    "communicator {comm:#x} has no Cartesian topology: MPI_Cart_create makes one"
                );
                Err(Error::new(Class::TOPOLOGY, detail))
            }
        }
    }
}

impl Rank {
    /// `MPI_Cart_create`: `MPI_COMM_NULL` on ranks for which the grid has no point. `reorder`: the
    /// ranks of a host may form a block of the grid.
    pub fn cart_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        dims: &[i32],
        periodic: &[bool],
        reorder: bool,
    ) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let grid = fitting(dims, periodic, parent.core.size());
        let ranks = grid.as_ref().map_err(Clone::clone).map(|grid| {
            let Some(grid) = grid else {
                return Vec::new();
            };
            let reordered = match reorder {
                true => self.by_hosts(grid, &parent.core),
                false => None,
            };
            reordered.unwrap_or_else(|| (0..grid.size() as u32).collect())
        });
        self.topology_comm(operation, parent, ranks, |place| {
            let grid = grid?.ok_or_else(|| Error::new(Class::INTERN, "a grid without points"))?;
            Topology::cartesian(grid, place)
        })
    }

    /// `MPI_Cart_map`: this rank's number in a reordered grid, or [`UNDEFINED`] if the grid has no
    /// point for it.
    pub fn cart_map(&self, comm: u32, dims: &[i32], periodic: &[bool]) -> Result<i32> {
        let core = self.lock().objects.intra(comm)?.clone();
        let grid = fitting(dims, periodic, core.size())?;
        let Some(grid) = grid.filter(|grid| core.rank < grid.size()) else {
            return Ok(UNDEFINED);
        };
        let own = |&rank: &u32| rank as usize == core.rank;
        let reordered = self.by_hosts(&grid, &core);
        let place = reordered.and_then(|ranks| ranks.iter().position(own));
        Ok(place.unwrap_or(core.rank) as i32)
    }

    /// The ranks of a communicator at the points of a grid; `None` if the order of ranks is best.
    fn by_hosts(&self, grid: &Cartesian, core: &Core) -> Option<Vec<u32>> {
        let hosts: Vec<u32> = core
            .members
            .iter()
            .map(|world| self.host_of(world))
            .collect();
        by_hosts(grid, &hosts)
    }

    /// `MPI_Cart_sub`: the subgrid of the remaining dimensions that contains this rank.
    pub fn cart_sub(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        remain: &[bool],
    ) -> Result<u32> {
        let part = {
            let state = self.lock();
            let (grid, rank) = state.objects.cartesian(comm)?;
            grid.sub(rank, remain)
        };
        let (grid, ranks) = match part {
            Ok((grid, ranks)) => (Ok(grid), Ok(ranks)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        let parent = self.begin_intra(comm)?;
        self.topology_comm(operation, parent, ranks, |place| {
            Topology::cartesian(grid?, place)
        })
    }
}

/// Makes a grid; an error if it has more points than `ranks`. `None` for a grid without points, in
/// which a dimension has size 0: other libraries accept it, and no rank is part of it.
fn fitting(dims: &[i32], periodic: &[bool], ranks: usize) -> Result<Option<Cartesian>> {
    if dims.contains(&0) && dims.iter().all(|&size| size >= 0) {
        return Ok(None);
    }
    let grid = Cartesian::new(dims, periodic)?;
    if grid.size() > ranks {
        let detail = format!(
            "a grid of the dimensions {dims:?} has {} points, but there are {ranks} ranks",
            grid.size()
        );
        return Err(Error::new(Class::ARG, detail));
    }
    Ok(Some(grid))
}
