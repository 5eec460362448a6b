//! Communicators with a Cartesian topology (MPI 5.0 §8.5).

use std::sync::Arc;

use super::agreement::Agreement;
use super::comm_create::Parent;
use crate::comm;
use crate::rank::{Rank, State};
use crate::topology::{CART, Cartesian};
use crate::{Class, Error, Result, UNDEFINED};

impl State {
    /// The grid of a communicator, and this rank's number in the communicator.
    pub fn cartesian(&self, comm: u32) -> Result<(&Cartesian, i32)> {
        let known = self.comms.get(comm)?;
        match &known.topology {
            Some(grid) => Ok((grid, known.core.rank as i32)),
            None => {
                let detail = format!(
                    "communicator {comm:#x} has no Cartesian topology: MPI_Cart_create makes one"
                );
                Err(Error::new(Class::TOPOLOGY, detail))
            }
        }
    }

    /// `MPI_Topo_test`.
    pub fn topology(&self, comm: u32) -> Result<i32> {
        Ok(self
            .comms
            .get(comm)?
            .topology
            .as_ref()
            .map_or(UNDEFINED, |_| CART))
    }

    /// `MPI_Cart_map`: this rank's number in a grid, or [`UNDEFINED`] if the grid has no point for
    /// it.
    pub fn cart_map(&self, comm: u32, dims: &[i32], periodic: &[bool]) -> Result<i32> {
        let core = &self.comms.get(comm)?.core;
        let grid = fitting(dims, periodic, core.size())?;
        Ok(if core.rank < grid.size() {
            core.rank as i32
        } else {
            UNDEFINED
        })
    }
}

impl Rank {
    /// `MPI_Cart_create`: `MPI_COMM_NULL` on ranks that the grid has no point for.
    pub fn cart_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        dims: &[i32],
        periodic: &[bool],
    ) -> Result<u32> {
        let parent = self.begin(comm)?;
        let grid = fitting(dims, periodic, parent.core.size())?;
        let ranks = (0..grid.size() as u32).collect();
        self.grid_comm(operation, parent, grid, ranks)
    }

    /// `MPI_Cart_sub`: the part of the grid that this rank is in, of the dimensions that remain.
    pub fn cart_sub(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        remain: &[bool],
    ) -> Result<u32> {
        let (grid, ranks) = {
            let state = self.lock();
            let (grid, rank) = state.cartesian(comm)?;
            grid.sub(rank, remain)?
        };
        let parent = self.begin(comm)?;
        self.grid_comm(operation, parent, grid, ranks)
    }

    fn grid_comm(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: Parent,
        grid: Cartesian,
        ranks: Vec<u32>,
    ) -> Result<u32> {
        let Some(place) = ranks
            .iter()
            .position(|&rank| rank as usize == parent.core.rank)
        else {
            return Ok(comm::NULL);
        };
        let members = parent.members_at(&ranks);
        let agreement = Agreement::some(self, &parent.core, ranks, place, parent.tag);
        let mut new = self.agreed_comm(operation, &parent, agreement, members, place)?;
        new.topology = Some(Arc::new(grid));
        self.lock().add_comm(new)
    }
}

/// A grid; an error if it has more points than `ranks`.
fn fitting(dims: &[i32], periodic: &[bool], ranks: usize) -> Result<Cartesian> {
    let grid = Cartesian::new(dims, periodic)?;
    if grid.size() > ranks {
        let detail = format!(
            "a grid of the dimensions {dims:?} has {} points, but there are {ranks} ranks",
            grid.size()
        );
        return Err(Error::new(Class::ARG, detail));
    }
    Ok(grid)
}
