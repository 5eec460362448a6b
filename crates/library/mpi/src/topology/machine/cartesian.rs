//! Grids (MPI 5.0 §8.5.1). Ranks are in row-major order: the last coordinate changes fastest.

use crate::{Class, Error, PROC_NULL, Result};

/// A Cartesian grid of ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cartesian {
    dims: Vec<i32>,
    periodic: Vec<bool>,
}

impl Cartesian {
    /// A grid with dimensions of these sizes, all positive. `periodic`: true for dimensions whose
    /// ends are neighbours.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
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

    /// The number of ranks in each dimension of the grid.
    pub fn dims(&self) -> &[i32] {
        &self.dims
    }

    /// For each dimension of the grid: true if its ends are neighbours.
    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// The number of points; one for a grid without dimensions.
    pub fn size(&self) -> usize {
        self.dims.iter().map(|&size| size as usize).product()
    }

    /// The rank at these coordinates. Coordinates of periodic dimensions may lie outside the grid.
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

    /// The coordinates of a rank in the grid.
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

    /// `MPI_Cart_shift`: the source and the destination of `rank` in a shift by `by` steps, or
    /// `PROC_NULL`.
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

    /// The subgrid of the remaining dimensions that contains `rank`, and the ranks of this grid at
    /// its points.
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
