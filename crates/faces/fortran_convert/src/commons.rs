//! Variables that are recognised by their addresses: MPI_BOTTOM and similar ones, in COMMON blocks.
//!
//! A program that names such a variable has a block of its own, and the loader uses its address in
//! all libraries. Compilers use different symbols for a block, so the block exists under each
//! symbol.

use crate::loaded::Loaded;
use crate::symbols;
use std::ffi::CStr;
use std::ops::Range;

/// The meaning of a special variable that is passed as a choice buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// MPI_BOTTOM
    Bottom,
    /// MPI_IN_PLACE
    InPlace,
    /// MPI_BUFFER_AUTOMATIC
    Automatic,
}

/// The addresses of a COMMON block under its symbols.
pub struct Common<const N: usize> {
    symbols: [&'static CStr; N],
    addresses: [Loaded<usize>; N],
}

impl<const N: usize> Common<N> {
    /// A COMMON block with these symbols, whose addresses [`Common::find`] sets.
    pub const fn new(symbols: [&'static CStr; N]) -> Common<N> {
        Common {
            symbols,
            addresses: [const { Loaded::new(0) }; N],
        }
    }

    /// The offset of an address in the first `SIZE` bytes of the block; `None` if it lies outside.
    #[inline(always)]
    pub fn place<const SIZE: usize, T>(&self, address: *const T) -> Option<usize> {
        let blocks = self.addresses.iter();
        let places = blocks.map(|block| address.addr().wrapping_sub(block.get()));
        let mut found = None;
        for place in places {
            if place < SIZE {
                found = Some(place);
            }
        }
        found
    }

    /// True if the address is that of the variable at offset `place` of the block.
    #[inline(always)]
    pub fn is<T>(&self, place: usize, address: *const T) -> bool {
        let mut blocks = self.addresses.iter();
        blocks.any(|block| address.addr() == block.get() + place)
    }

    /// Finds the addresses of the block, which has `bytes` bytes, and appends its ranges to
    /// `found`.
    ///
    /// # Safety
    /// The caller is `library::open`.
    pub unsafe fn find(&self, bytes: usize, found: &mut Vec<Range<usize>>) {
        for (symbol, address) in self.symbols.iter().zip(&self.addresses) {
            let start = symbols::find(symbol).addr();
            // SAFETY: promised.
            unsafe { address.set(start) };
            found.push(start..start + bytes);
        }
    }

    /// The address of offset `place` of the block with the first symbol.
    pub fn at(&self, place: usize) -> usize {
        self.addresses[0].get() + place
    }

    /// The addresses of offset `place` of the block under all symbols.
    pub fn everywhere(&self, place: usize) -> impl Iterator<Item = usize> {
        self.addresses.iter().map(move |block| block.get() + place)
    }
}

/// The address of a variable that the program most probably passes: the one in a block of the
/// program, or else the one under the first symbol.
pub fn usual(addresses: impl Iterator<Item = usize>) -> usize {
    let ours = symbols::object((&raw const CLUSTERS).addr());
    let mut addresses = addresses.peekable();
    let first = addresses.peek().copied().unwrap_or(0);
    let is_foreign = |address: &usize| {
        let object = symbols::object(*address);
        object.is_some() && object != ours
    };
    addresses.find(is_foreign).unwrap_or(first)
}

/// A range of addresses from the first to the last of the blocks that lie close together.
struct Cluster {
    start: Loaded<usize>,
    bytes: Loaded<usize>,
}

/// The address ranges of all COMMON blocks: the program's and those of this library. Most buffers
/// are in neither, so they need not be compared with the blocks one by one.
static CLUSTERS: [Cluster; 2] = [const {
    Cluster {
        start: Loaded::new(0),
        bytes: Loaded::new(0),
    }
}; 2];

/// True if an address may lie in a COMMON block.
#[inline(always)]
pub fn is_near_blocks<T>(address: *const T) -> bool {
    let mut clusters = CLUSTERS.iter();
    clusters.any(|cluster| address.addr().wrapping_sub(cluster.start.get()) < cluster.bytes.get())
}

/// Sets the address ranges in which COMMON blocks lie.
///
/// # Safety
/// The caller is `library::open`.
pub unsafe fn note(blocks: Vec<Range<usize>>) {
    for (cluster, range) in CLUSTERS.iter().zip(clusters(blocks)) {
        // SAFETY: promised.
        unsafe {
            cluster.start.set(range.start);
            cluster.bytes.set(range.len());
        }
    }
}

/// Computes two ranges that contain all blocks and have the widest gap between them.
fn clusters(mut blocks: Vec<Range<usize>>) -> [Range<usize>; 2] {
    blocks.sort_by_key(|block| block.start);
    let gap = |pair: &[Range<usize>]| pair[1].start.saturating_sub(pair[0].end);
    let widest = blocks
        .windows(2)
        .enumerate()
        .max_by_key(|(_, pair)| gap(pair));
    let split = widest.map_or(blocks.len(), |(at, _)| at + 1);
    let (low, high) = blocks.split_at(split);
    [low, high].map(|part| {
        let start = part.first().map_or(0, |block| block.start);
        start..part.iter().map(|block| block.end).max().unwrap_or(0)
    })
}

/// Defines the memory of a block. Its size belongs to the ABI: the linker copies that many bytes
/// into programs that are linked at fixed addresses.
#[macro_export]
macro_rules! block {
    ($symbol:literal $bytes:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            static BLOCK: [std::sync::atomic::AtomicU8; $bytes] =
                [const { std::sync::atomic::AtomicU8::new(0) }; $bytes];
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_of_program_and_library_are_two_clusters() {
        let blocks = vec![7016..7020, 100..108, 7000..7016, 120..124];
        assert_eq!(clusters(blocks), [100..124, 7000..7020]);
        let one = std::iter::once(5..9).collect();
        assert_eq!(clusters(one), [5..9, 0..0]);
    }

    proptest! {
        #[test]
        fn every_block_lies_in_a_cluster(
            blocks in prop::collection::vec((1usize..1 << 40, 1usize..64), 1..40),
        ) {
            let blocks: Vec<_> = blocks.iter().map(|(start, len)| *start..start + len).collect();
            let found = clusters(blocks.clone());
            for block in blocks {
                let holds = |found: &Range<usize>| {
                    found.start <= block.start && block.end <= found.end
                };
                prop_assert!(found.iter().any(holds));
            }
        }
    }
}
