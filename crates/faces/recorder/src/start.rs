//! The start of MPI, with which the recording of a process begins.

// The names are those of C.
#![allow(non_snake_case)]

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};

use crate::original::{invoke, named};
use crate::process;

thread_local! {
    /// True while the thread starts MPI.
    static STARTS: Cell<bool> = const { Cell::new(false) };
}

/// Starts MPI by the function with this name, and the recording after it.
///
/// # Safety
/// The arguments are as C promises them.
unsafe fn start(name: &CStr, words: &[u64]) -> c_int {
    let function: *mut c_void = named(name).unwrap_or_else(|| {
        eprintln!("fishplate record: no MPI library is loaded");
        std::process::exit(127)
    });
    // A tool's function may call the library's by its profiled name.
    let is_outermost = !STARTS.replace(true);
    // SAFETY: the caller's promise.
    let code = unsafe { invoke(function, words) };
    if is_outermost {
        STARTS.set(false);
        if code == 0 {
            process::begin();
        }
    }
    code
}

macro_rules! starts {
    ($($name:ident $text:literal ($($argument:ident)*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: u64),*) -> c_int {
            // SAFETY: the program's promises about the arguments are passed on.
            unsafe { start($text, &[$($argument),*]) }
        }
    )*};
}

starts! {
    MPI_Init c"MPI_Init" (argc argv);
    PMPI_Init c"PMPI_Init" (argc argv);
    MPI_Init_thread c"MPI_Init_thread" (argc argv required provided);
    PMPI_Init_thread c"PMPI_Init_thread" (argc argv required provided);
}
