//! The library of the standard ABI: found when this one is loaded, and called by pointers.

use crate::constants::standard::MPI_ERR_UNSUPPORTED_OPERATION;
use crate::standard::NAMES;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

const LIBRARY: &CStr = c"libmpi_abi.so.1";

static FUNCTIONS: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// The pointer of the function whose name has this number.
#[inline(always)]
pub fn function(number: usize) -> *mut c_void {
    // The loader stores them before any code of the program runs.
    FUNCTIONS[number].load(Ordering::Relaxed)
}

/// Puts another function in the place of one, for tests.
/// Puts another function in the place of one, for tests.
#[cfg(feature = "suite")]
pub(crate) fn replace(number: usize, function: *mut c_void) {
    FUNCTIONS[number].store(function, Ordering::Relaxed);
}

/// The name by which programs need the library of entry points, for messages.
static OWN_NAME: OnceLock<&str> = OnceLock::new();

/// The name by which programs need the library of entry points.
pub(crate) fn own_name() -> &'static str {
    OWN_NAME.get().copied().unwrap_or("libmpi.so")
}

/// Takes the name by which programs need the library of entry points.
pub fn set_own_name(name: &'static str) {
    let _ = OWN_NAME.set(name);
}

/// Finds the functions. A program that never calls MPI needs none, so an error shows at a call. The
/// library of entry points calls this when it is loaded.
///
/// The library's names stay out of the program's sight (RTLD_LOCAL), and its own calls reach its
/// own functions (RTLD_DEEPBIND): the global scope has functions of these names for another ABI.
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

/// Stands for a function that the library of the standard ABI lacks.
extern "C" fn unsupported() -> c_int {
    MPI_ERR_UNSUPPORTED_OPERATION as c_int
}

/// Stands for every function if there is no library of the standard ABI.
extern "C" fn no_library() -> ! {
    eprintln!(
        "fishplate: {} cannot load libmpi_abi.so.1, the MPI library of the standard ABI that it calls; start the \
         program with `fishplate run`, or add the folder of libmpi_abi.so.1 to LD_LIBRARY_PATH",
        own_name()
    );
    std::process::abort();
}
