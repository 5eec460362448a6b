//! Variables that are recognised by their addresses: MPI_BOTTOM and its kin, in COMMON blocks.
//!
//! A program that names such a variable has a block of its own, and the loader gives its address to
//! everybody. Compilers differ in the symbol of a block, so it is there under each.

use crate::common::library;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The meaning of a variable that stands for a choice buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Bottom,
    InPlace,
    Automatic,
}

/// The addresses of a block under its symbols.
struct Common<const N: usize> {
    symbols: [&'static CStr; N],
    addresses: [AtomicUsize; N],
}

impl<const N: usize> Common<N> {
    const fn new(symbols: [&'static CStr; N]) -> Common<N> {
        Common {
            symbols,
            addresses: [const { AtomicUsize::new(0) }; N],
        }
    }

    /// The place of an address in the first `SIZE` bytes of the block.
    #[inline(always)]
    fn place<const SIZE: usize, T>(&self, address: *const T) -> Option<usize> {
        let places = self.addresses.iter().map(|block| {
            let block = block.load(Ordering::Relaxed);
            address.addr().wrapping_sub(block)
        });
        let mut found = None;
        for place in places {
            if place < SIZE {
                found = Some(place);
            }
        }
        found
    }

    /// Whether the address is that of the variable at a place.
    #[inline(always)]
    fn is<T>(&self, place: usize, address: *const T) -> bool {
        let mut blocks = self.addresses.iter();
        blocks.any(|block| address.addr() == block.load(Ordering::Relaxed) + place)
    }

    fn find(&self) {
        for (symbol, address) in self.symbols.iter().zip(&self.addresses) {
            address.store(library::find(symbol).addr(), Ordering::Relaxed);
        }
    }

    /// The address of a place under the first symbol.
    fn at(&self, place: usize) -> usize {
        self.addresses[0].load(Ordering::Relaxed) + place
    }
}

/// A block's memory. The size belongs to the ABI: the linker copies so many bytes into programs that
/// are linked at fixed addresses.
macro_rules! block {
    ($symbol:literal $bytes:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            static BLOCK: [AtomicU8; $bytes] = [const { AtomicU8::new(0) }; $bytes];
        };
    };
}

include!(concat!(env!("OUT_DIR"), "/commons.rs"));
