//! The system's clocks on a modelled machine: the launcher preloads `libfishplate_clock.so` (crate
//! `clocks`), which shows programs the virtual time that it requests here.
//!
//! A reading is charged and recorded like one by `MPI_Wtime`. A thread that has not started MPI may
//! read a clock at any time, and a signal handler even inside MPI: they get no time here, and the
//! clock library estimates it.

use crate::procedures::read_virtual_time;
use crate::state::LIBRARY;
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The type of `fishplate_clock_register` of the clock library.
type Register = unsafe extern "C" fn(hook: Option<extern "C" fn(u64) -> u64>, end: u64);

/// The result for threads to which this library gives no virtual time.
const NOT_HERE: u64 = u64::MAX;

/// The thread that started MPI, as a `pthread_t`; 0 without the clock library.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// The address of a function of the clock library; null if the library is not loaded.
fn find(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero byte.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

fn register() -> Option<Register> {
    let found = find(c"fishplate_clock_register");
    // SAFETY: a null pointer is None, and the only function of this name has this type.
    unsafe { transmute::<*mut c_void, Option<Register>>(found) }
}

/// Makes the system's clocks follow this rank's virtual time from now on. If `computing` takes
/// time, the processor's time-stamp counter follows it too.
pub(crate) fn follow(computing: bool) {
    let Some(register) = register() else {
        return;
    };
    MAIN.store(this_thread(), Ordering::Relaxed);
    // SAFETY: the hook is a function of this library, which stays in memory.
    unsafe { register(Some(read), 0) };
    let counter = find(c"fishplate_clock_counter");
    // SAFETY: as in `register`.
    let counter = unsafe { transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(counter) };
    if let Some(counter) = counter.filter(|_| computing) {
        // The clock library makes reads of the counter fail, and the C library reads clocks by the
        // counter.
        crate::real_clock::by_system_calls();
        // SAFETY: the function has no conditions.
        unsafe { counter() };
    }
}

/// Ends this rank's virtual time at `end` nanoseconds.
pub(crate) fn stop(end: u64) {
    if MAIN.swap(0, Ordering::Relaxed) != 0
        && let Some(register) = register()
    {
        // SAFETY: the end takes no hook.
        unsafe { register(None, end) };
    }
}

fn this_thread() -> usize {
    // SAFETY: the call has no arguments and always succeeds.
    unsafe { libc::pthread_self() as usize }
}

/// Adds `nanos` nanoseconds of virtual time, for which the thread has slept, and reads the clock.
extern "C" fn read(nanos: u64) -> u64 {
    if this_thread() != MAIN.load(Ordering::Relaxed) {
        return NOT_HERE;
    }
    let Some(rank) = LIBRARY.rank() else {
        return NOT_HERE;
    };
    // The lock is taken: this is a signal handler, or a function of the C library that MPI has
    // called.
    // SAFETY: the lock word is a part of the rank, which stays in memory.
    let lock = unsafe { &*(rank.lock_address() as *const AtomicU32) };
    if lock.load(Ordering::Relaxed) % 2 == 1 {
        return NOT_HERE;
    }
    read_virtual_time("clock_gettime", nanos, false).unwrap_or(NOT_HERE)
}
