//! The neighbours of a rank in its topology (MPI 5.0 §8.6).

use super::Cartesian;
use crate::{PROC_NULL, Result};

/// The neighbours of a rank: one for each block of a neighbourhood collective. A neighbour is a
/// rank of the communicator, or [`PROC_NULL`] beyond the end of a grid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbours {
    sources: Vec<i32>,
    destinations: Vec<i32>,
    /// True if blocks come in pairs, for the two directions of a dimension: a block that is sent in
    /// one direction arrives from the other one.
    in_pairs: bool,
}

impl Neighbours {
    /// The neighbours in a grid: for each dimension the previous one, then the next one.
    pub(super) fn of_grid(grid: &Cartesian, rank: i32) -> Result<Neighbours> {
        let mut all = Vec::with_capacity(2 * grid.dims().len());
        for dimension in 0..grid.dims().len() {
            let (before, behind) = grid.shift(rank, dimension as i32, 1)?;
            all.extend([before, behind]);
        }
        Ok(Neighbours {
            in_pairs: true,
            ..Neighbours::both_ways(&all)
        })
    }

    /// Neighbours that are all both sources and destinations.
    pub(super) fn both_ways(all: &[i32]) -> Neighbours {
        Neighbours::directed(all.to_vec(), all.to_vec())
    }

    /// Neighbours in a directed graph.
    pub(super) fn directed(sources: Vec<i32>, destinations: Vec<i32>) -> Neighbours {
        Neighbours {
            sources,
            destinations,
            in_pairs: false,
        }
    }

    /// The sources of this rank's neighbourhood messages, in the order of blocks.
    pub fn sources(&self) -> &[i32] {
        &self.sources
    }

    /// The destinations of this rank's neighbourhood messages, in the order of blocks.
    pub fn destinations(&self) -> &[i32] {
        &self.destinations
    }

    /// The blocks to be sent, with their destinations, in the order of the messages.
    pub(crate) fn sends(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.destinations.iter().enumerate();
        all.filter_map(|(block, &rank)| existing(block, rank))
    }

    /// The blocks to be received, with their sources, in the order of the messages: messages of one
    /// neighbour match in the order in which it sends them.
    pub(crate) fn receives(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.sources.len()).filter_map(|at| {
            let block = match self.in_pairs {
                true => at ^ 1,
                false => at,
            };
            existing(block, self.sources[block])
        })
    }
}

/// The block and its neighbour; `None` if that is [`PROC_NULL`].
fn existing(block: usize, rank: i32) -> Option<(usize, usize)> {
    (rank != PROC_NULL).then_some((block, rank as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_two_neighbours_for_each_dimension() {
        let grid = Cartesian::new(&[3, 2], &[false, true]).unwrap();
        let of = |rank| Neighbours::of_grid(&grid, rank).unwrap();
        assert_eq!(of(0).sources(), [PROC_NULL, 2, 1, 1]);
        assert_eq!(of(3).destinations(), [1, 5, 2, 2]);
    }

    /// In a ring of two ranks, the block for the previous one arrives there from the next one.
    #[test]
    fn messages_of_one_neighbour_match_by_direction() {
        let grid = Cartesian::new(&[2], &[true]).unwrap();
        let ring = Neighbours::of_grid(&grid, 0).unwrap();
        assert_eq!(ring.sends().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
        assert_eq!(ring.receives().collect::<Vec<_>>(), [(1, 1), (0, 1)]);
        let graph = Neighbours::both_ways(&[1, 1]);
        assert_eq!(graph.receives().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }
}
