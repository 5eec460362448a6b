//! COMMON blocks whose variables are recognised by their addresses: MPI_BOTTOM and its kin.
//!
//! A program that names such a variable has a block of its own, and the loader gives its address to
//! everybody. Compilers differ in the symbol of a block, so it is there under each.

use crate::library;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// The addresses of a block under its four symbols.
pub(crate) struct Common {
    symbols: [&'static CStr; 4],
    addresses: [AtomicUsize; 4],
}

impl Common {
    const fn new(symbols: [&'static CStr; 4]) -> Common {
        Common {
            symbols,
            addresses: [const { AtomicUsize::new(0) }; 4],
        }
    }

    /// The place of an address in the block, which has `SIZE` bytes.
    #[inline(always)]
    pub(crate) fn place<const SIZE: usize, T>(&self, address: *const T) -> Option<usize> {
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
    pub(crate) fn is<T>(&self, place: usize, address: *const T) -> bool {
        let mut blocks = self.addresses.iter();
        blocks.any(|block| address.addr() == block.load(Ordering::Relaxed) + place)
    }
}

/// Finds the blocks.
pub(crate) fn find() {
    for common in ALL {
        for (symbol, address) in common.symbols.iter().zip(&common.addresses) {
            address.store(library::find(symbol).addr(), Ordering::Relaxed);
        }
    }
}

macro_rules! common {
    ($symbol:literal $words:literal) => {
        const _: () = {
            #[repr(align(16))]
            struct Block(#[allow(dead_code)] [AtomicI32; $words]);
            #[unsafe(export_name = $symbol)]
            static BLOCK: Block = Block([const { AtomicI32::new(0) }; $words]);
        };
    };
}

include!(concat!(env!("OUT_DIR"), "/commons.rs"));
