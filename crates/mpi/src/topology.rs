//! Cartesian topologies: the ranks of a communicator as the points of a grid (MPI 5.0 §8).
//!
//! Ranks count row by row: the last coordinate runs fastest. They are never reordered, for all ranks are equally near.

use std::sync::Arc;

use crate::agreement::Circle;
use crate::comm;
use crate::rank::{Rank, State};
use crate::{Class, Error, PROC_NULL, Result, UNDEFINED};

/// What `MPI_Topo_test` says, by the ABI's value; [`UNDEFINED`] stands for none.
pub const CART: i32 = 211;

/// A grid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cartesian {
    dims: Vec<i32>,
    periodic: Vec<bool>,
}

impl Cartesian {
    pub fn new(dims: &[i32], periodic: &[bool]) -> Result<Cartesian> {
        assert_eq!(dims.len(), periodic.len());
        if let Some(at) = dims.iter().position(|&size| size < 1) {
            let detail = format!("dims[{at}] is {}; it must be 1 or more", dims[at]);
            return Err(Error::new(Class::DIMS, detail));
        }
        let product = dims
            .iter()
            .try_fold(1, |product: i32, &size| product.checked_mul(size));
        if product.is_none() {
            let detail = format!(
                "a grid of the dimensions {dims:?} has more points than ranks have numbers"
            );
            return Err(Error::new(Class::DIMS, detail));
        }
        Ok(Cartesian {
            dims: dims.to_vec(),
            periodic: periodic.to_vec(),
        })
    }

    pub fn dims(&self) -> &[i32] {
        &self.dims
    }

    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// How many points it has; one if it has no dimensions.
    pub fn size(&self) -> usize {
        self.dims.iter().map(|&size| size as usize).product()
    }

    /// Coordinates of periodic dimensions may lie outside.
    pub fn rank(&self, coords: &[i32]) -> Result<i32> {
        assert_eq!(coords.len(), self.dims.len());
        let mut rank = 0;
        for (at, &size) in self.dims.iter().enumerate() {
            let coord = match self.periodic[at] {
                true => coords[at].rem_euclid(size),
                false => coords[at],
            };
            if !(0..size).contains(&coord) {
                let detail = format!(
                    "coords[{at}] is {coord}; valid is 0 to {}, for dimension {at} is not periodic",
                    size - 1
                );
                return Err(Error::new(Class::ARG, detail));
            }
            rank = rank * size + coord;
        }
        Ok(rank)
    }

    pub fn coords(&self, rank: i32) -> Result<Vec<i32>> {
        if rank < 0 || rank as usize >= self.size() {
            let detail = format!(
                "rank {rank} does not exist: the grid has {} points",
                self.size()
            );
            return Err(Error::new(Class::RANK, detail));
        }
        let mut rest = rank;
        let mut coords: Vec<i32> = self
            .dims
            .iter()
            .rev()
            .map(|&size| {
                let coord = rest % size;
                rest /= size;
                coord
            })
            .collect();
        coords.reverse();
        Ok(coords)
    }

    /// Whom `rank` receives from and whom it sends to in a shift by `by` along a dimension.
    pub fn shift(&self, rank: i32, direction: i32, by: i32) -> Result<(i32, i32)> {
        let Some(at) = usize::try_from(direction)
            .ok()
            .filter(|&at| at < self.dims.len())
        else {
            let detail = format!(
                "direction is {direction}; the grid has {} dimensions, from 0",
                self.dims.len()
            );
            return Err(Error::new(Class::DIMS, detail));
        };
        let coords = self.coords(rank)?;
        let at_distance = |by: i64| {
            let size = i64::from(self.dims[at]);
            let coord = i64::from(coords[at]) + by;
            let coord = if self.periodic[at] {
                coord.rem_euclid(size)
            } else {
                coord
            };
            if !(0..size).contains(&coord) {
                return Ok(PROC_NULL);
            }
            let mut coords = coords.clone();
            coords[at] = coord as i32;
            self.rank(&coords)
        };
        Ok((at_distance(-i64::from(by))?, at_distance(by.into())?))
    }

    /// The grid of the dimensions that remain, and the ranks of the part of it that `rank` is in.
    pub fn sub(&self, rank: i32, remain: &[bool]) -> Result<(Cartesian, Vec<u32>)> {
        assert_eq!(remain.len(), self.dims.len());
        let kept = |list: &[i32]| -> Vec<i32> {
            list.iter()
                .zip(remain)
                .filter(|(_, remain)| **remain)
                .map(|(&entry, _)| entry)
                .collect()
        };
        let periodic: Vec<bool> = self
            .periodic
            .iter()
            .zip(remain)
            .filter(|(_, remain)| **remain)
            .map(|(&entry, _)| entry)
            .collect();
        let grid = Cartesian {
            dims: kept(&self.dims),
            periodic,
        };
        let coords = self.coords(rank)?;
        let ranks = (0..grid.size() as i32).map(|point| {
            let mut inner = grid.coords(point)?.into_iter();
            let outer: Vec<i32> = coords
                .iter()
                .zip(remain)
                .map(|(&coord, remain)| {
                    if *remain {
                        inner.next().unwrap_or(coord)
                    } else {
                        coord
                    }
                })
                .collect();
            Ok(self.rank(&outer)? as u32)
        });
        let ranks = ranks.collect::<Result<_>>()?;
        Ok((grid, ranks))
    }
}

impl State {
    /// The grid of a communicator, and this rank's number in it.
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

    /// `MPI_Cart_map`: this rank's number in such a grid, or [`UNDEFINED`].
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

    /// `MPI_Cart_sub`.
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
        parent: crate::comm_create::Parent,
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
        let circle = Circle::some(self, &parent.core, ranks, place, parent.tag);
        let mut new = self.agreed_comm(operation, &parent, circle, members, place)?;
        new.topology = Some(Arc::new(grid));
        self.lock().add_comm(new)
    }
}

/// A grid with no more points than there are ranks.
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
