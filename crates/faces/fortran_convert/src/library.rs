//! The functions of the C library, which are found when this library is loaded, and called by
//! pointers. A function that the C library lacks is thus an error of its call and not of the
//! program's start.

use crate::abi::Abi;
use crate::loaded::Loaded;
use crate::standard::NAMES;
use crate::start;
use crate::symbols::find;
use std::ffi::{CStr, c_int, c_void};

/// The address of a function in the C library.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Function(*mut c_void);

type Functions = [Loaded<Function>; NAMES.len()];

/// The functions with names `MPI_...`, and those with names `PMPI_...`.
static FUNCTIONS: [Functions; 2] =
    [const { [const { Loaded::new(Function(std::ptr::null_mut())) }; NAMES.len()] }; 2];

/// The address of the C function with this number in the list of names; of its `PMPI_` name if `P`.
#[inline(always)]
pub fn function<const P: bool>(number: usize) -> *mut c_void {
    FUNCTIONS[P as usize][number].get().0
}

/// Finds the functions, and the program's COMMON blocks. A tool that replaces functions comes first
/// in the program's symbol scope, so its functions are found.
///
/// # Safety
/// The loader calls this function, once.
pub unsafe fn open<A: Abi>() {
    // SAFETY: the loader calls this function.
    unsafe { A::find() };
    start::guess();
    abi_convert::library::set_own_name(A::LIBRARY);
    A::open();
    let is_there = !find(c"MPI_Initialized").is_null();
    for (number, name) in NAMES.iter().enumerate() {
        for (functions, skipped) in FUNCTIONS.iter().zip([1, 0]) {
            let mut found = no_library::<A> as *mut c_void;
            if is_there {
                // SAFETY: every name begins with a P, after which it is a C string too.
                found = find(unsafe { CStr::from_ptr(name.as_ptr().add(skipped)) });
            }
            if found.is_null() {
                found = unsupported::<A> as *mut c_void;
            }
            // SAFETY: the loader calls this function.
            unsafe { functions[number].set(Function(found)) };
        }
    }
}

/// The function in the place of one that the C library lacks.
extern "C" fn unsupported<A: Abi>() -> c_int {
    A::MPI_ERR_UNSUPPORTED_OPERATION
}

/// The function in the place of all others if there is no C library.
extern "C" fn no_library<A: Abi>() -> ! {
    let (library, c_library) = (A::LIBRARY, A::C_LIBRARY);
    eprintln!(
        "fishplate: {library} finds no {c_library}, the MPI library that it calls; \
         start the program with `fishplate run`, or add the folder of {c_library} to LD_LIBRARY_PATH"
    );
    std::process::abort();
}
