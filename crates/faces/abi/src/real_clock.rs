//! The real clock for this library. Its own readings (of `Instant`, of processor time, `MPI_Wtime`
//! on real hosts) use the C library's `clock_gettime`, and on a modelled machine that symbol may
//! belong to a library that shows virtual time to programs (`system_clocks`). So this library has a
//! `clock_gettime` of its own, hidden from others, to which the linker binds all of its code.

use libc::{clockid_t, timespec};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".globl clock_gettime",
    ".hidden clock_gettime",
    ".type clock_gettime, @function",
    "clock_gettime: jmp {real}",
    real = sym read,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".globl clock_gettime",
    ".hidden clock_gettime",
    ".type clock_gettime, %function",
    "clock_gettime: b {real}",
    real = sym read,
);

/// The `clock_gettime` of the C library, which needs no system call for most clocks; null: system
/// calls are used.
static OF_C_LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Finds the function of the C library itself, regardless of the order in which symbols are
/// searched.
pub(crate) fn find() {
    // SAFETY: the names end with a zero byte, and the library is loaded already.
    let found = unsafe {
        let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        match library.is_null() {
            true => library,
            false => libc::dlsym(library, c"clock_gettime".as_ptr()),
        }
    };
    OF_C_LIBRARY.store(found, Ordering::Relaxed);
}

/// Reads clocks by system calls from now on.
pub(crate) fn by_system_calls() {
    OF_C_LIBRARY.store(std::ptr::null_mut(), Ordering::Relaxed);
}

unsafe extern "C" fn read(clock: clockid_t, time: *mut timespec) -> c_int {
    type Read = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;
    let found = OF_C_LIBRARY.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the kernel checks the address.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int };
    }
    // SAFETY: only `find` stores a pointer, and it is that of this function.
    let read = unsafe { std::mem::transmute::<*mut c_void, Read>(found) };
    // SAFETY: as the caller promises to `clock_gettime`.
    unsafe { read(clock, time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_one_clock() {
        let mut times = [0i64; 3];
        for (at, nanos) in times.iter_mut().enumerate() {
            if at == 1 {
                find();
                assert!(!OF_C_LIBRARY.load(Ordering::Relaxed).is_null());
            }
            let mut time = timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: the structure is a local variable.
            let result = unsafe { read(libc::CLOCK_MONOTONIC, &raw mut time) };
            assert_eq!(result, 0);
            *nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
        }
        assert!(times.is_sorted(), "{times:?}");
    }
}
