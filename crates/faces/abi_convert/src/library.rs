//! The library of the standard ABI, which is found when this library is loaded, and called by
//! pointers.

use crate::constants::standard::MPI_ERR_UNSUPPORTED_OPERATION;
use crate::standard::NAMES;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

const LIBRARY: &CStr = c"libmpi_abi.so.1";

static FUNCTIONS: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// The address of the function of the standard ABI with this number in the list of names.
#[inline(always)]
pub fn function(number: usize) -> *mut c_void {
    // The loader stores the pointers before any code of the program runs.
    FUNCTIONS[number].load(Ordering::Relaxed)
}

/// Replaces a function, for tests.
#[cfg(feature = "suite")]
pub(crate) fn replace(number: usize, function: *mut c_void) {
    FUNCTIONS[number].store(function, Ordering::Relaxed);
}

/// The name of the library of entry points that programs need, for messages.
static OWN_NAME: OnceLock<&str> = OnceLock::new();

/// The name of the library of entry points that programs need.
pub(crate) fn own_name() -> &'static str {
    OWN_NAME.get().copied().unwrap_or("libmpi.so")
}

/// Sets the name of the library of entry points that programs need.
pub fn set_own_name(name: &'static str) {
    let _ = OWN_NAME.set(name);
}

/// Finds the functions. A program that never calls MPI needs none, so an error is reported only by
/// a call. The library of entry points calls this when it is loaded.
///
/// The library's symbols are hidden from the program (RTLD_LOCAL), and its calls reach its own
/// functions (RTLD_DEEPBIND): the global scope has functions of the same names for another ABI.
pub fn open() {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
    // SAFETY: the name is a C string.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), flags) };
    for (name, slot) in NAMES.iter().zip(&FUNCTIONS) {
        let mut found = no_library as *mut c_void;
        if !library.is_null() {
            // SAFETY: dlopen returned the library, and the name is a C string.
            found = unsafe { libc::dlsym(library, name.as_ptr()) };
        }
        if found.is_null() {
            found = unsupported as *mut c_void;
        }
        slot.store(found, Ordering::Relaxed);
    }
}

/// Replaces a function that the library of the standard ABI does not have.
extern "C" fn unsupported() -> c_int {
    MPI_ERR_UNSUPPORTED_OPERATION as c_int
}

/// Replaces every function if there is no library of the standard ABI.
extern "C" fn no_library() -> ! {
    eprintln!(
        "fishplate: {} cannot load libmpi_abi.so.1, the MPI library of the standard ABI that it calls; start the \
         program with `fishplate run`, or add the folder of libmpi_abi.so.1 to LD_LIBRARY_PATH",
        own_name()
    );
    std::process::abort();
}
