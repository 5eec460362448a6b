//! The system's real clocks, by system calls, and the functions of the C library that this library
//! replaces.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{clockid_t, timespec};

use crate::scale::{nanos, spec};

/// Reads a clock of the system by a system call.
///
/// # Safety
/// `time` is null or points to a structure that may be written.
pub(crate) unsafe fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: as this function demands; the kernel checks the address.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int }
}

/// The time of a real clock of the system, in nanoseconds.
pub(crate) fn now(clock: clockid_t) -> u64 {
    let mut time = spec(0);
    // SAFETY: the structure is a local variable.
    unsafe { clock_gettime(clock, &raw mut time) };
    nanos(&time).unwrap_or(0)
}

/// A function of a library after this one in the search order of symbols, found at first use.
pub(crate) struct Function {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Function {
    pub(crate) const fn new(name: &'static CStr) -> Function {
        Function {
            name,
            found: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The address of the function; null if there is no such function.
    pub(crate) fn address(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the function of the C library with this name and type. `None` if there is none.
macro_rules! call {
    ($name:ident: fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        static FUNCTION: $crate::real::Function = $crate::real::Function::new(
            // A name in C contains no zero byte.
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            },
        );
        let address = FUNCTION.address();
        type Function = Option<unsafe extern "C" fn($($type),*) -> $result>;
        // SAFETY: a null pointer is None; any other is the function of this name, which has this
        // type in the C library.
        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) };
        match function {
            // SAFETY: the arguments are those of the caller, or made from them.
            Some(function) => Some(unsafe { function($($argument),*) }),
            None => None,
        }
    }};
}
pub(crate) use call;
