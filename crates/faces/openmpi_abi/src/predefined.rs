//! Predefined handles: the objects whose addresses they are, and tables that assign the standard's
//! handle to each address, which are filled when the library is loaded.

use crate::program::Program;
use abi_convert::{Pairs, classes};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The memory of a predefined object. Its size belongs to the ABI: the linker copies that many
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

/// The sizes of objects in bytes, by class; equal in Open MPI 4 and 5.
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

/// The addresses of the objects, indexed by their numbers, which begin with 1.
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
    for (class, pairs) in classes::all::<Program>() {
        class.predefined.fill(pairs);
    }
}

/// The number of slots of a table, as a power of two.
const SLOT_BITS: u32 = 9;
const SLOTS: usize = 1 << SLOT_BITS;

/// The number of factors to try. One of the first few hundred gives a hundred addresses separate
/// slots.
const FACTORS: u64 = 4096;

/// A hash table from addresses to the standard's handles.
pub(crate) struct Predefined {
    slots: [Slot; SLOTS],
    /// The factor that determines the slot of an address. Each address has a slot of its own, if
    /// such a factor was found.
    factor: AtomicU64,
}

struct Slot {
    /// The address of the object; 0 while the slot is unused.
    address: AtomicUsize,
    standard: AtomicUsize,
}

/// The index of the slot for an address.
#[inline(always)]
fn slot(address: usize, factor: u64) -> usize {
    ((address as u64).wrapping_mul(factor) >> (u64::BITS - SLOT_BITS)) as usize
}

impl Predefined {
    pub(crate) const fn new(pairs: Pairs) -> Predefined {
        assert!(pairs.len() <= SLOTS / 4, "the table has too few slots");
        Predefined {
            slots: [const {
                Slot {
                    address: AtomicUsize::new(0),
                    standard: AtomicUsize::new(0),
                }
            }; SLOTS],
            factor: AtomicU64::new(1),
        }
    }

    /// Fills the table with pairs of an object's number and the standard's handle. If a handle has
    /// two names, the first one is used.
    fn fill(&self, pairs: &[(i64, i64)]) {
        // Candidates are odd numbers from a linear congruential generator.
        let mut factor = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..FACTORS {
            if separates(pairs, factor) {
                break;
            }
            factor = factor
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814e);
        }
        self.factor.store(factor, Ordering::Relaxed);
        for &(number, standard) in pairs {
            self.insert(address(number as c_int), standard as usize);
        }
    }

    fn insert(&self, address: usize, standard: usize) {
        let mut at = slot(address, self.factor.load(Ordering::Relaxed));
        loop {
            let slot = &self.slots[at];
            match slot.address.load(Ordering::Relaxed) {
                0 => {
                    slot.standard.store(standard, Ordering::Relaxed);
                    slot.address.store(address, Ordering::Relaxed);
                    return;
                }
                known if known == address => return,
                _ => at = (at + 1) % SLOTS,
            }
        }
    }

    /// The standard's handle for a predefined one whose own slot contains another address; `None`
    /// for other handles.
    #[cold]
    #[inline(never)]
    fn displaced(&self, handle: usize) -> Option<usize> {
        let start = slot(handle, self.factor.load(Ordering::Relaxed));
        let slots = (1..SLOTS).map(|distance| &self.slots[(start + distance) % SLOTS]);
        let mut used = slots.take_while(|slot| slot.address.load(Ordering::Relaxed) != 0);
        let slot = used.find(|slot| slot.address.load(Ordering::Relaxed) == handle)?;
        Some(slot.standard.load(Ordering::Relaxed))
    }
}

impl abi_convert::Predefined<Program> for Predefined {
    #[inline(always)]
    fn standard(&self, handle: usize) -> Option<usize> {
        let slot = &self.slots[slot(handle, self.factor.load(Ordering::Relaxed))];
        match slot.address.load(Ordering::Relaxed) {
            // NULL is never stored in a slot: here the slot is unused.
            address if address == handle => {
                (handle != 0).then(|| slot.standard.load(Ordering::Relaxed))
            }
            0 => None,
            _ => self.displaced(handle),
        }
    }
}

#[cfg(test)]
impl Predefined {
    /// True if the address lies in its own slot, where one comparison finds it.
    pub(crate) fn is_at_its_slot(&self, address: usize) -> bool {
        let at = slot(address, self.factor.load(Ordering::Relaxed));
        self.slots[at].address.load(Ordering::Relaxed) == address
    }
}

/// True if a factor gives each address a slot of its own.
fn separates(pairs: &[(i64, i64)], factor: u64) -> bool {
    let mut owners = [0_u16; SLOTS];
    pairs.iter().all(|&(number, _)| {
        let owner = &mut owners[slot(address(number as c_int), factor)];
        let is_free = *owner == 0 || *owner == number as u16;
        *owner = number as u16;
        is_free
    })
}
