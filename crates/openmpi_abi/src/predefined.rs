//! Predefined handles: the objects whose addresses they are, and tables from address to the
//! standard's handle, which are filled when the library is loaded.

use crate::common::classes;
use crate::common::constants::standard::{
    MPI_BYTE, MPI_COMM_WORLD, MPI_DOUBLE, MPI_INFO_NULL, MPI_INT, MPI_SUM,
};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory of a predefined object, whose size belongs to the ABI: the linker copies that many
/// bytes into programs that are linked at fixed addresses. Nothing is stored in it.
#[repr(C, align(32))]
pub(crate) struct Object<const SIZE: usize>(UnsafeCell<[u8; SIZE]>);

// SAFETY: nothing reads or writes the memory.
unsafe impl<const SIZE: usize> Sync for Object<SIZE> {}

impl<const SIZE: usize> Object<SIZE> {
    pub(crate) const fn new() -> Self {
        Object(UnsafeCell::new([0; SIZE]))
    }
}

/// The sizes of objects by class, equal in Open MPI 4 and 5.
const COMM: usize = 0x200;
const DATATYPE: usize = 0x200;
const ERRHANDLER: usize = 0x400;
const FILE: usize = 0x600;
const GROUP: usize = 0x100;
const INFO: usize = 0x100;
const MESSAGE: usize = 0x100;
const OP: usize = 0x800;
const REQUEST: usize = 0x100;
const SESSION: usize = 0x200;
const WIN: usize = 0x200;

#[allow(non_upper_case_globals)]
mod objects {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
}

pub(crate) use objects::{INTEGERS, SYMBOLS};

/// The addresses of the objects by their numbers, of which the first is 1.
static ADDRESSES: [AtomicUsize; SYMBOLS + 1] = [const { AtomicUsize::new(0) }; SYMBOLS + 1];

/// The address of the object with a number.
#[inline(always)]
pub(crate) fn address(number: c_int) -> usize {
    ADDRESSES[number as usize].load(Ordering::Relaxed)
}

#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn() = fill;

/// Stores the addresses, before any code of the program runs.
extern "C" fn fill() {
    for (slot, address) in ADDRESSES[1..].iter().zip(objects::addresses()) {
        slot.store(address, Ordering::Relaxed);
    }
    // Those that are inserted first have their first slots, wherever the objects lie.
    for is_usual in [true, false] {
        for (class, pairs) in classes::all() {
            let pairs = pairs.iter();
            for &(number, standard) in pairs.filter(|pair| USUAL.contains(&pair.1) == is_usual) {
                class
                    .predefined
                    .insert(address(number as c_int), standard as usize);
            }
        }
    }
}

/// The handles that programs use most, in any class.
const USUAL: [i64; 6] = [
    MPI_BYTE,
    MPI_INT,
    MPI_DOUBLE,
    MPI_COMM_WORLD,
    MPI_SUM,
    MPI_INFO_NULL,
];

/// The slots of a table, as a power of two, of which at most a third is in use.
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;

/// A table from addresses to the standard's handles.
pub(crate) struct Predefined {
    slots: [Slot; SLOTS],
}

struct Slot {
    /// 0 while the slot is unused.
    address: AtomicUsize,
    standard: AtomicUsize,
}

/// The first slot for an address. Objects are some hundred bytes apart, so the factor spreads them.
#[inline(always)]
fn first(address: usize) -> usize {
    let product = (address as u64 >> 5).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> (u64::BITS - SLOT_BITS)) as usize
}

impl Predefined {
    pub(crate) const fn new(pairs: &[(i64, i64)], _null: (i64, i64)) -> Predefined {
        assert!(pairs.len() <= SLOTS / 3, "the table has too few slots");
        Predefined {
            slots: [const {
                Slot {
                    address: AtomicUsize::new(0),
                    standard: AtomicUsize::new(0),
                }
            }; SLOTS],
        }
    }

    fn insert(&self, address: usize, standard: usize) {
        let mut at = first(address);
        loop {
            let slot = &self.slots[at];
            match slot.address.load(Ordering::Relaxed) {
                0 => {
                    slot.standard.store(standard, Ordering::Relaxed);
                    slot.address.store(address, Ordering::Relaxed);
                    return;
                }
                // Of two names for one handle the first counts.
                known if known == address => return,
                _ => at = (at + 1) % SLOTS,
            }
        }
    }

    /// The standard's handle for a predefined one.
    #[inline(always)]
    pub(crate) fn standard(&self, handle: usize) -> Option<usize> {
        let slot = &self.slots[first(handle)];
        match slot.address.load(Ordering::Relaxed) {
            // NULL is in no slot.
            address if address == handle => {
                (handle != 0).then(|| slot.standard.load(Ordering::Relaxed))
            }
            0 => None,
            _ => self.displaced(handle),
        }
    }

    /// The standard's handle for a predefined one whose first slot another has.
    #[cold]
    #[inline(never)]
    fn displaced(&self, handle: usize) -> Option<usize> {
        let start = first(handle);
        let slots = (1..SLOTS).map(|distance| &self.slots[(start + distance) % SLOTS]);
        let mut used = slots.take_while(|slot| slot.address.load(Ordering::Relaxed) != 0);
        let slot = used.find(|slot| slot.address.load(Ordering::Relaxed) == handle)?;
        Some(slot.standard.load(Ordering::Relaxed))
    }
}
