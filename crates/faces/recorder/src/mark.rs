//! A mark that the system removes when it takes a thread off its core: while it stands, the thread
//! has had the core for itself.
//!
//! It is the descriptor of a restartable sequence (rseq(2)). The system checks it whenever it
//! takes the core, or delivers a signal, and removes one whose instructions the thread is not in.
//! This one has none that anybody executes. Setting it is a store, where a reading of the processor
//! time is a call of the system. The C library registers the area of each thread, since version
//! 2.35; without it there are no marks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// The words that must stand before the handler of an aborted sequence.
#[cfg(target_arch = "x86_64")]
const SIGNATURE: u32 = 0x5305_3053;
#[cfg(target_arch = "aarch64")]
const SIGNATURE: u32 = 0xd428_bc00;

/// The place of a handler that is never called, behind its signature, and the place of the
/// sequence.
static PLACES: [u32; 3] = [SIGNATURE, 0, 0];

/// A sequence of instructions, as the system reads it.
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: AtomicU64,
    length: u64,
    handler: AtomicU64,
}

static SEQUENCE: Sequence = Sequence {
    version: 0,
    flags: 0,
    start: AtomicU64::new(0),
    length: 1,
    handler: AtomicU64::new(0),
};

/// The least size of a registered area.
const LEAST_SIZE: u32 = 20;
/// The place of the descriptor's address in the area.
const SEQUENCE_AT: usize = 8;
/// The place of the number of the core, which is negative where the registration failed.
const CORE_AT: usize = 4;

/// The marks of the threads of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    /// The distance of the registered area from the thread pointer; `None`: there is no area.
    distance: Option<isize>,
}

impl Marks {
    /// No marks.
    #[cfg(test)]
    pub(crate) const NONE: Marks = Marks { distance: None };

    /// The marks of this process, if the system has them.
    pub(crate) fn of_process() -> Marks {
        let number = |name: &std::ffi::CStr| {
            // SAFETY: the name is a C string.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let (size, distance) = (number(c"__rseq_size"), number(c"__rseq_offset"));
        // SAFETY: the C library has an unsigned int and a ptrdiff_t with these names.
        let distance = size.zip(distance).and_then(|(size, distance)| unsafe {
            (*size.cast::<u32>() >= LEAST_SIZE).then(|| *distance.cast::<isize>())
        });
        let place = PLACES.as_ptr().addr() as u64;
        SEQUENCE.handler.store(place + 4, Ordering::Relaxed);
        SEQUENCE.start.store(place + 8, Ordering::Relaxed);
        let marks = Marks { distance };
        let is_registered = marks.area().is_some_and(|area| {
            // SAFETY: the area of this thread, which the C library has made, has this number.
            unsafe { area.byte_add(CORE_AT).cast::<i32>().read_volatile() >= 0 }
        });
        Marks {
            distance: distance.filter(|_| is_registered),
        }
    }

    fn area(self) -> Option<*mut c_void> {
        Some(thread_pointer().wrapping_byte_offset(self.distance?))
    }

    /// The place of the mark of this thread.
    fn place(self) -> Option<*mut u64> {
        Some(self.area()?.wrapping_byte_add(SEQUENCE_AT).cast())
    }

    /// Sets the mark of this thread, which is in no restartable sequence: it is in this function.
    pub(crate) fn set(self) {
        if let Some(place) = self.place() {
            // SAFETY: the C library has registered the area for as long as the thread exists.
            unsafe { place.write_volatile((&raw const SEQUENCE).expose_provenance() as u64) };
        }
    }

    /// Removes the mark of this thread. True if it stood: the thread has had its core since the
    /// mark was set.
    pub(crate) fn take(self) -> bool {
        let Some(place) = self.place() else {
            return false;
        };
        // SAFETY: as in `set`.
        unsafe {
            let stands = place.read_volatile() == (&raw const SEQUENCE).addr() as u64;
            // A library of the program may have put its own there.
            if stands {
                place.write_volatile(0);
            }
            stands
        }
    }
}

/// The address from which the C library counts the memory of this thread.
#[inline(always)]
fn thread_pointer() -> *mut c_void {
    let pointer: *mut c_void;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of a thread's memory is its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly))
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the register can be read in every program.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_falls_when_its_thread_leaves_the_core() {
        let marks = Marks::of_process();
        assert!(!marks.take());
        if marks.distance.is_none() {
            return;
        }
        // A thread that does nothing keeps it, but for an interruption, which is rare.
        let stood = (0..1000).filter(|_| {
            marks.set();
            marks.take()
        });
        assert!(stood.count() > 0);
        marks.set();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(!marks.take());
        assert!(!Marks::NONE.take());
    }
}
