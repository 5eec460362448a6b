//! The atomics of rings and wake-ups: those of the standard library, or those of loom while it
//! explores the orders of memory accesses.

#[cfg(not(loom))]
use datatype::double::{Double, ask};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// The fast side of an asymmetric fence, for a writer to a rank that may sleep. It costs nothing,
/// because the sleeper pays for both sides with [`heavy_fence`].
#[inline(always)]
pub fn light_fence() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// The slow side of an asymmetric fence, for a rank that is about to sleep. True if it ordered the
/// other side, too. False where the kernel has no `membarrier`: the sleep must then be short,
/// because a wake-up can be missed.
pub fn heavy_fence() -> bool {
    fence(Ordering::SeqCst);
    #[cfg(not(loom))]
    {
        membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)
    }
    #[cfg(loom)]
    true
}

/// Registers this process, so that the [`heavy_fence`] of other processes covers it. Every rank
/// calls this once before it sends.
#[cfg(not(loom))]
pub fn join_heavy_fences() -> bool {
    membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
}

#[cfg(not(loom))]
const MEMBARRIER_CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
#[cfg(not(loom))]
const MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

#[cfg(not(loom))]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes three integers and does not access our memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Sleeps while `asleep` is true, for at most `nanos` nanoseconds of a double's clock.
#[cfg(not(loom))]
fn sleep_on(double: &dyn Double, asleep: impl Fn() -> bool, nanos: u64) {
    let end = double.now().saturating_add(nanos);
    while asleep() && double.now() < end {
        double.sleep(end - double.now());
    }
}

/// Sleeps while `word` holds `value`, for at most `nanos` nanoseconds. Wakes early on
/// [`futex_wake`], on signals, or for no reason.
#[cfg(not(loom))]
pub fn futex_wait(word: &AtomicU32, value: u32, nanos: u64) {
    let asleep = || word.load(Ordering::SeqCst) == value;
    if ask(|double| sleep_on(double, asleep, nanos)).is_some() {
        return;
    }
    let timeout = libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the word outlives the call, and the timeout is a valid timespec on our stack.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &timeout,
            0,
            0,
        )
    };
}

/// Wakes all threads that sleep on `word`, in any process.
#[cfg(not(loom))]
pub fn futex_wake(word: &AtomicU32) {
    if ask(|double| double.wake()).is_some() {
        return;
    }
    // SAFETY: the word outlives the call; a wake does not write to it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE,
            i32::MAX,
            0,
            0,
            0,
        )
    };
}
