//! The memory of this rank that a window exposes to others.
//!
//! Invariant: every access of a peer is located here, by bounds that this rank keeps; no number of
//! a peer becomes an address.

use std::collections::BTreeMap;

use datatype::{Buffer, Type};

use crate::{Class, Error, Result};

/// The memory of a window at this rank.
pub(crate) enum Memory {
    /// Contiguous memory, within which origins give displacements.
    Run(Buffer),
    /// Attached regions by their first address. Origins give addresses.
    Attached(BTreeMap<usize, Buffer>),
}

impl Memory {
    /// The memory of `count` elements of `ty`. `at` is in bytes from the start of the window, or an
    /// address in a dynamic window.
    ///
    /// # Errors
    /// Some byte is outside of the window.
    pub(crate) fn find(&self, at: i64, count: usize, ty: &Type) -> Result<Buffer> {
        let found = match self {
            Memory::Run(run) => run.elements_within(at as isize, count, ty),
            Memory::Attached(regions) => {
                // With a type of absolute addresses, the address itself may be zero.
                let (first, _) = ty.span(count)?;
                let first = (at as usize).wrapping_add_signed(first);
                let region = regions.range(..=first).next_back();
                let whole = region.and_then(|(start, region)| {
                    region.elements_within((at as usize).wrapping_sub(*start) as isize, count, ty)
                });
                // Elements may lie in several regions.
                let holding = |address| {
                    let before = regions.range(..=address).next_back();
                    before.map(|(_, region)| region)
                };
                whole.or_else(|| Buffer::elements_over(holding, at as usize, count, ty))
            }
        };
        found.ok_or_else(|| self.outside(at, count, ty))
    }

    /// Adds a region to the window, for `MPI_Win_attach`.
    pub(crate) fn attach(&mut self, region: Buffer) -> Result<()> {
        let Memory::Attached(regions) = self else {
            return Err(not_dynamic("MPI_Win_attach"));
        };
        let Some((start, len)) = region.as_dense() else {
            return Ok(());
        };
        let before = regions.range(..start + len.max(1)).next_back();
        let overlaps =
            before.is_some_and(|(other, region)| *other == start || other + region.len() > start);
        if overlaps {
            let detail = format!(
                "the {len} bytes at {start:#x} overlap memory that is attached to the window: \
                 call MPI_Win_detach first"
            );
            return Err(Error::new(Class::RMA_ATTACH, detail));
        }
        regions.insert(start, region);
        Ok(())
    }

    /// Removes the region that begins at `start` from the window, for `MPI_Win_detach`.
    pub(crate) fn detach(&mut self, start: usize) -> Result<()> {
        let Memory::Attached(regions) = self else {
            return Err(not_dynamic("MPI_Win_detach"));
        };
        match regions.remove(&start) {
            Some(_) => Ok(()),
            None => Err(Error::new(
                Class::RMA_ATTACH,
                format!("no memory that begins at {start:#x} is attached to the window"),
            )),
        }
    }

    #[cold]
    fn outside(&self, at: i64, count: usize, ty: &Type) -> Error {
        let (first, span) = ty.span(count).unwrap_or((0, usize::MAX));
        let detail = match self {
            Memory::Run(run) => format!(
                "an access of {span} bytes, {} bytes from the start of the target's window, which \
                 has {} bytes",
                at.saturating_add(first as i64),
                run.len()
            ),
            Memory::Attached(_) => format!(
                "an access of {span} bytes at {:#x} of the target, where no memory of that length \
                 is attached to the window",
                (at as usize).wrapping_add_signed(first)
            ),
        };
        Error::new(Class::RMA_RANGE, detail)
    }
}

fn not_dynamic(call: &str) -> Error {
    Error::new(
        Class::RMA_FLAVOR,
        format!("{call} is for windows of MPI_Win_create_dynamic"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use datatype::{Op, Predefined, reduce};

    #[test]
    fn attached_regions_do_not_overlap_and_bound_every_access() {
        let mut pool = datatype::Pool::default();
        let byte = Predefined::BYTE.into();
        let whole = pool.elements(64, &byte).unwrap().buffer();
        let (start, _) = whole.as_dense().unwrap();
        let mut memory = Memory::Attached(BTreeMap::new());
        let class = |result: Result<()>| result.unwrap_err().class;
        memory.attach(whole.slice(8, 16)).unwrap();
        memory.attach(whole.slice(24, 8)).unwrap();
        memory.attach(whole.slice(0, 8)).unwrap();
        for (at, len) in [(8, 1), (7, 2), (30, 10), (0, 64), (23, 0), (8, 0)] {
            assert_eq!(
                class(memory.attach(whole.slice(at, len))),
                Class::RMA_ATTACH
            );
        }
        let int: Type = Predefined::INT.into();
        let at = |offset: usize| (start + offset) as i64;
        reduce::reduce_into(
            Op::Replace,
            Predefined::INT,
            &7i32.to_ne_bytes(),
            &memory.find(at(20), 1, &int).unwrap(),
            0,
        )
        .unwrap();
        // Across regions that touch, and around a gap between regions.
        assert_eq!(memory.find(at(20), 2, &int).unwrap().len(), 8);
        let apart = Type::vector(2, 4, 24, &byte).unwrap();
        assert_eq!(memory.find(at(4), 1, &apart).unwrap().len(), 8);
        let range = |result: Result<Buffer>| result.unwrap_err().class == Class::RMA_RANGE;
        assert!(range(memory.find(at(30), 1, &int)));
        assert!(range(memory.find(at(32), 1, &int)));
        assert!(range(memory.find(0, 1, &int)));
        let absolute = Type::hindexed(&[1], &[(start + 20) as isize], &int).unwrap();
        let mut read = [0; 4];
        memory.find(0, 1, &absolute).unwrap().pack(0, &mut read);
        assert_eq!(read, 7i32.to_ne_bytes());
        assert_eq!(class(memory.detach(start + 9)), Class::RMA_ATTACH);
        memory.detach(start + 8).unwrap();
        assert!(range(memory.find(at(20), 1, &int)));
        assert_eq!(class(Memory::Run(whole).detach(0)), Class::RMA_FLAVOR);
    }
}
