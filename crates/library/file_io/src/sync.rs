//! The locks, atomics and threads of the worker: the standard library's, or loom's while it
//! explores their orders.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::thread::JoinHandle;
#[cfg(not(loom))]
pub(crate) use std::thread::{JoinHandle, current};

/// Size in bytes of the stack of a worker, which calls no function of the user's.
#[cfg(not(loom))]
const STACK: usize = 256 << 10;

/// Starts the thread of a worker. No signal is delivered to it: the handlers of a program run on
/// the program's own threads.
#[cfg(not(loom))]
pub(crate) fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new()
        .name("fishplate files".into())
        .stack_size(STACK);
    without_signals(|| thread.spawn(run))
}

#[cfg(loom)]
pub(crate) fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    Ok(loom::thread::spawn(run))
}

/// Calls `then` with all signals blocked. A thread that it starts keeps them blocked.
#[cfg(not(loom))]
fn without_signals<T>(then: impl FnOnce() -> T) -> T {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are memory for a set, and the first is filled before it is read.
    let is_blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = then();
    if is_blocked {
        // SAFETY: the set has been filled with the mask of this thread.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
    }
    result
}
