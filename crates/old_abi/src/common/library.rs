//! The library of the standard ABI: found when this one is loaded, and called by pointers.

use crate::common::constants::standard::MPI_ERR_UNSUPPORTED_OPERATION;
use crate::common::standard::NAMES;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

const LIBRARY: &CStr = c"libmpi_abi.so.1";

static FUNCTIONS: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// The pointer of the function whose name has this number.
#[inline(always)]
pub(crate) fn function(number: usize) -> *mut c_void {
    // The loader stores them before any code of the program runs.
    FUNCTIONS[number].load(Ordering::Relaxed)
}

/// Puts another function in the place of one, for tests.
#[cfg(test)]
pub(crate) fn replace(number: usize, function: *mut c_void) {
    FUNCTIONS[number].store(function, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static OPEN: extern "C" fn() = open;

/// Finds the functions. A program that never calls MPI needs none, so an error shows at a call.
///
/// The library's names stay out of the program's sight (RTLD_LOCAL), and its own calls reach its
/// own functions (RTLD_DEEPBIND): the global scope has functions of these names for another ABI.
extern "C" fn open() {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
    // SAFETY: the name is a C string.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), flags) };
    if !library.is_null() {
        // SAFETY: dlopen returned the library, and no thread of the program runs yet that changes
        // the environment while a library is loaded.
        unsafe { show_environment(library) };
    }
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

/// Gives the library the program's environment. A program at fixed addresses that names `environ`
/// has a copy of that variable, which counts for everybody but the library: it reaches the one of
/// the C library, which is empty then.
///
/// # Safety
/// The library is open, and nobody changes the environment meanwhile.
unsafe fn show_environment(library: *mut c_void) {
    type Words = *const *const std::ffi::c_char;
    // SAFETY: the variables of this name are arrays of words that NULL ends.
    unsafe {
        let shared = libc::dlsym(libc::RTLD_DEFAULT, c"environ".as_ptr()).cast::<Words>();
        let own = libc::dlsym(library, c"environ".as_ptr()).cast::<Words>();
        if shared.is_null() || own.is_null() || !(*own).is_null() || (*shared).is_null() {
            return;
        }
        // The C library may free the array when the program changes a variable, but no word of it.
        let count = (0..).take_while(|&at| !(*(*shared).add(at)).is_null());
        let mut copy: Vec<_> = count.map(|at| *(*shared).add(at)).collect();
        copy.push(std::ptr::null());
        *own = copy.leak().as_ptr();
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
        crate::program::LIBRARY
    );
    std::process::abort();
}
