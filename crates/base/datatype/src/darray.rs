//! The part of a distributed array that one process holds (MPI 5.0, section 5.1.4).
//!
//! Each dimension is dealt out in blocks to the processes of one dimension of a grid. A process
//! holds full blocks at a constant distance, and at most one shorter block behind them. Both are
//! loops over the layout of the dimensions before, so the layout grows with the number of
//! dimensions, not with the number of blocks.

use crate::combiner::Order;
use crate::construct::{FAR, Parts, TOO_LARGE};
use crate::distribution::{Dimension, Distribution};
use crate::envelope::Constructor;
use crate::error::{Error, Result};
use crate::types::Type;

/// The elements of one process in one dimension: `blocks` blocks of `length` elements each, `cycle`
/// elements apart, then a block of `rest` elements.
#[derive(Debug, PartialEq, Eq)]
struct Share {
    start: i64,
    length: i64,
    cycle: i128,
    blocks: i64,
    rest: i64,
}

impl Type {
    /// `MPI_Type_create_darray`: the elements of an array that process `rank` of `size` has. The
    /// processes form a grid in row-major order, whatever the order of the array is.
    pub fn darray(
        size: i64,
        rank: i64,
        dimensions: &[Dimension],
        order: Order,
        old: &Type,
    ) -> Result<Type> {
        let places = places(size, rank, dimensions)?;
        let mut parts = Parts::of(old)?;
        let mut stride = old.extent();
        let mut elements = 1usize;
        let fastest_first: &mut dyn Iterator<Item = usize> = match order {
            Order::C => &mut (0..dimensions.len()).rev(),
            Order::Fortran => &mut (0..dimensions.len()),
        };
        for at in fastest_first {
            let share = dimensions[at].share(at, places[at])?;
            let gsize = dimensions[at].gsize as isize;
            let next = stride.checked_mul(gsize).ok_or(TOO_LARGE)?;
            parts = share.of(parts, stride)?;
            stride = next;
            elements = elements.checked_mul(share.elements()).ok_or(TOO_LARGE)?;
        }
        let parts = parts.resized(0, stride)?.with_elements(elements, old)?;
        parts.into_type(Constructor::Darray {
            size,
            rank,
            dimensions: dimensions.into(),
            order,
            old: old.clone(),
        })
    }
}

/// The coordinates in the grid of process `rank` of `size`.
fn places(size: i64, rank: i64, dimensions: &[Dimension]) -> Result<Vec<i64>> {
    let value = |argument, value, valid: String| Error::Value {
        argument,
        value,
        valid,
    };
    if dimensions.is_empty() {
        return Err(value("ndims", 0, "1 or more".into()));
    }
    if size < 1 {
        return Err(value("size", size, "1 or more".into()));
    }
    if !(0..size).contains(&rank) {
        return Err(value("rank", rank, format!("0 to {}", size - 1)));
    }
    let mut processes = 1i64;
    for (at, dim) in dimensions.iter().enumerate() {
        check("array_of_gsizes", at, dim.gsize, 1..=i64::MAX)?;
        check("array_of_psizes", at, dim.psize, 1..=size)?;
        processes = processes.saturating_mul(dim.psize);
    }
    if processes != size {
        let valid = format!("{processes}, the product of array_of_psizes");
        return Err(value("size", size, valid));
    }
    let mut below = size;
    let place = |dim: &Dimension| {
        let slower = below;
        below /= dim.psize;
        rank % slower / below
    };
    Ok(dimensions.iter().map(place).collect())
}

impl Dimension {
    /// The elements in this dimension of the process with coordinate `place`. `at` is the index of
    /// the dimension, for errors.
    fn share(&self, at: usize, place: i64) -> Result<Share> {
        let Dimension {
            gsize,
            distribution,
            psize,
        } = *self;
        let length = match distribution {
            Distribution::None { .. } => {
                check("array_of_psizes", at, psize, 1..=1)?;
                gsize
            }
            Distribution::Block(None) => (gsize - 1) / psize + 1,
            Distribution::Block(Some(length)) => {
                // Blocks must cover the dimension.
                check(
                    "array_of_dargs",
                    at,
                    length,
                    (gsize - 1) / psize + 1..=i64::MAX,
                )?;
                length
            }
            Distribution::Cyclic(None) => 1,
            Distribution::Cyclic(Some(length)) => {
                check("array_of_dargs", at, length, 1..=i64::MAX)?;
                length
            }
        };
        let cycle = i128::from(length) * i128::from(psize);
        let start = i128::from(length) * i128::from(place);
        let behind = (i128::from(gsize) - start).max(0);
        let over = behind % cycle;
        let full = over >= i128::from(length);
        Ok(Share {
            // The start of a process that holds nothing is never used.
            start: start.min(i128::from(gsize)) as i64,
            length,
            cycle,
            blocks: (behind / cycle) as i64 + i64::from(full),
            rest: if full { 0 } else { over as i64 },
        })
    }
}

impl Share {
    fn elements(&self) -> usize {
        (self.blocks * self.length + self.rest) as usize
    }

    /// The layout of these elements: each element consists of `parts`, and elements are `stride`
    /// bytes apart.
    fn of(&self, parts: Parts, stride: isize) -> Result<Parts> {
        // Displacements of blocks lie within the dimension, whose extent fits.
        let bytes = |elements: i128| {
            let elements = isize::try_from(elements).map_err(|_| FAR)?;
            stride.checked_mul(elements).ok_or(FAR)
        };
        let block = |length: i64, at: i128| {
            let block = parts.clone().repeated(length as usize, stride)?;
            match length {
                0 => Ok(block),
                _ => block.shifted(bytes(i128::from(self.start) + at)?),
            }
        };
        let length = if self.blocks > 0 { self.length } else { 0 };
        let apart = if self.blocks > 1 {
            bytes(self.cycle)?
        } else {
            0
        };
        let full = block(length, 0)?.repeated(self.blocks as usize, apart)?;
        match self.rest {
            0 => Ok(full),
            rest => full.then(block(rest, i128::from(self.blocks) * self.cycle)?),
        }
    }
}

fn check(
    argument: &'static str,
    index: usize,
    value: i64,
    valid: std::ops::RangeInclusive<i64>,
) -> Result<()> {
    if valid.contains(&value) {
        return Ok(());
    }
    let valid = match (*valid.start(), *valid.end()) {
        (low, i64::MAX) => format!("{low} or more"),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    };
    Err(Error::Argument {
        argument,
        index,
        value,
        valid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(gsize: i64, distribution: Distribution, psize: i64, place: i64) -> Share {
        let dimension = Dimension {
            gsize,
            distribution,
            psize,
        };
        dimension.share(0, place).unwrap()
    }

    #[test]
    fn shares_of_huge_dimensions_do_not_overflow() {
        let cyclic = share(i64::MAX, Distribution::Cyclic(None), i64::from(i32::MAX), 5);
        assert_eq!((cyclic.length, cyclic.rest), (1, 0));
        assert_eq!(cyclic.blocks, (i64::MAX - 5) / i64::from(i32::MAX) + 1);
        let block = share(
            10,
            Distribution::Block(Some(i64::MAX)),
            i64::from(i32::MAX),
            1,
        );
        assert_eq!((block.blocks, block.rest), (0, 0));
        let first = share(10, Distribution::Cyclic(Some(i64::MAX)), 7, 0);
        assert_eq!((first.blocks, first.rest, first.start), (0, 10, 0));
    }

    #[test]
    fn the_last_block_may_be_short() {
        let middle = share(17, Distribution::Cyclic(Some(3)), 2, 1);
        assert_eq!((middle.start, middle.blocks, middle.rest), (3, 2, 2));
        let last = share(10, Distribution::Block(None), 4, 3);
        assert_eq!((last.blocks, last.rest, last.start), (0, 1, 9));
    }
}
