//! LOGICAL: an integer type, whose values for true and false depend on the compiler.

use abi_convert::array::Array;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

static TRUE: AtomicI32 = AtomicI32::new(1);
static FALSE: AtomicI32 = AtomicI32::new(0);

/// The values of `.TRUE.` and `.FALSE.` as the compiler represents them.
pub fn values() -> [c_int; 2] {
    [&TRUE, &FALSE].map(|value| value.load(Ordering::Relaxed))
}

/// Sets the values of `.TRUE.` and `.FALSE.`.
pub fn set_values([yes, no]: [c_int; 2]) {
    TRUE.store(yes, Ordering::Relaxed);
    FALSE.store(no, Ordering::Relaxed);
}

/// C's flag for a logical. Compilers differ in which integers are true; every value except
/// `.FALSE.` counts as true.
#[inline(always)]
pub fn to_c(logical: c_int) -> c_int {
    (logical != FALSE.load(Ordering::Relaxed)) as c_int
}

/// The Fortran logical for a flag of C.
#[inline(always)]
pub fn from_c(flag: c_int) -> c_int {
    let value = if flag == 0 { &FALSE } else { &TRUE };
    value.load(Ordering::Relaxed)
}

/// Fills an array with C's flags for logicals.
///
/// # Safety
/// The address is that of `length` logicals.
pub unsafe fn fill(to: &mut Array<c_int>, from: *const c_int, length: i64) {
    // SAFETY: promised.
    to.fill(length, |at| to_c(unsafe { *from.add(at) }));
}

/// Converts an array of flags that the library has written to logicals.
///
/// # Safety
/// The address is that of `length` flags.
pub unsafe fn convert(flags: *mut c_int, length: c_int) {
    for at in 0..length.max(0) as usize {
        // SAFETY: promised.
        unsafe {
            let place = flags.add(at);
            *place = from_c(*place);
        }
    }
}
