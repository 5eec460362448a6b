//! `libfishplate_record_large.so`: the entry points with large counts (`MPI_Send_c`) of
//! `libfishplate_record.so`, which records their calls.
//!
//! A library before MPI 4.0 has no such procedures, and programs that ask for them, as mpi4py does,
//! must not find any. So this library is preloaded, before the recorder, with the others alone.
//!
//! Never here: anything else.

// Without std, which would be nine tenths of it. Where panics unwind, as in tests, std is needed.
#![cfg_attr(panic = "abort", no_std)]
// The names are those of C.
#![allow(non_snake_case)]

use core::ffi::c_int;

unsafe extern "C" {
    /// Records a call of the entry point with this number, whose arguments are `count` words.
    fn fishplate_record_call(entry: usize, words: *const u64, count: usize) -> c_int;
}

#[cfg(panic = "abort")]
#[panic_handler]
fn abort(_: &core::panic::PanicInfo) -> ! {
    unsafe extern "C" {
        safe fn abort() -> !;
    }
    abort()
}

/// Makes a call of the program, and records it.
///
/// # Safety
/// The words are the arguments of the entry point's procedure, as C promises them.
#[inline(always)]
unsafe fn call<const N: usize>(entry: usize, words: [u64; N]) -> c_int {
    // SAFETY: the caller's promise, and there are N words.
    unsafe { fishplate_record_call(entry, words.as_ptr(), N) }
}

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
