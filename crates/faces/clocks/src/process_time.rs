//! The time of this process since the start of virtual time.
//!
//! *While MPI runs* it is the virtual time of the rank, which its main thread requests from the MPI
//! library; that takes a little virtual time, as `MPI_Wtime` does. Another thread gets the last
//! requested time plus its own processor time, and so does a reading from inside MPI.
//!
//! *Before MPI, after it and without it* the clock stands still for the first readings, so that
//! times are equal in every run. A process that reads the clock more often waits for something:
//! from then on real time passes, so that its deadlines are reached.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::{counter, real};

/// The hook of the MPI library. It adds `nanos` nanoseconds of virtual time for this rank, and
/// returns the rank's virtual time in nanoseconds, or [`NOT_HERE`] if the calling thread cannot do
/// that.
pub type Hook = extern "C" fn(nanos: u64) -> u64;

/// The result of the hook for a thread other than the one that started MPI, and inside MPI.
const NOT_HERE: u64 = u64::MAX;

/// The number of readings outside MPI for which the clock stands still.
const FEW: u32 = 100;

static HOOK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// The time of the process at the start of MPI, in nanoseconds.
static BASE: AtomicU64 = AtomicU64::new(0);
/// The last time of the process that was returned, in nanoseconds.
static SHOWN: AtomicU64 = AtomicU64::new(0);
/// The number of readings of the process time outside MPI.
static READINGS: AtomicU32 = AtomicU32::new(0);
/// The real time of the last reading outside MPI; 0 as long as real time does not pass.
static REAL: AtomicU64 = AtomicU64::new(0);
static AT_FORK: Once = Once::new();

thread_local! {
    /// The last time that this thread has returned on the base of its own processor time, and that
    /// processor time.
    static OWN: Cell<[u64; 2]> = const { Cell::new([0, 0]) };
    /// True while the thread is in the hook, during which a signal handler may read the clock.
    static IN_HOOK: Cell<bool> = const { Cell::new(false) };
}

/// Called by the MPI library: starts the virtual time of this process with a hook, or ends it at
/// `end` nanoseconds.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn fishplate_clock_register(hook: Option<Hook>, end: u64) {
    match hook {
        Some(hook) => {
            let shown = SHOWN.load(Ordering::Relaxed);
            let base = match READINGS.load(Ordering::Relaxed) < FEW {
                // The value is equal for all ranks, however often each has read the clock.
                true => shown.next_multiple_of(1000) + 1000,
                false => shown + 1,
            };
            BASE.store(base, Ordering::Relaxed);
            SHOWN.store(base, Ordering::Relaxed);
            HOOK.store(hook as *mut (), Ordering::Release);
            // After a fork, the child has no rank.
            AT_FORK.call_once(|| {
                // SAFETY: the function is one of this library, which stays in memory.
                unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            });
        }
        None => {
            counter::leave();
            HOOK.store(std::ptr::null_mut(), Ordering::Release);
            READINGS.store(0, Ordering::Relaxed);
            REAL.store(0, Ordering::Relaxed);
            SHOWN.fetch_max(BASE.load(Ordering::Relaxed) + end, Ordering::Relaxed);
        }
    }
}

/// Called by the MPI library: makes the processor's time-stamp counter show the time of the process
/// too, until virtual time ends. Not called if computing takes no time: programs repeat work until
/// the counter has advanced.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn fishplate_clock_counter() {
    counter::follow();
}

unsafe extern "C" fn in_child() {
    counter::leave();
    HOOK.store(std::ptr::null_mut(), Ordering::Release);
    READINGS.store(FEW, Ordering::Relaxed);
    REAL.store(0, Ordering::Relaxed);
}

/// The processor time of the process, in nanoseconds.
pub(crate) fn now() -> u64 {
    pass(0)
}

/// Adds `slept` nanoseconds, for which the calling thread has slept. Returns the time of the
/// process.
pub(crate) fn pass(slept: u64) -> u64 {
    let hook = HOOK.load(Ordering::Acquire);
    if hook.is_null() {
        return outside(slept);
    }
    if IN_HOOK.replace(true) {
        return beside(slept);
    }
    // SAFETY: only `fishplate_clock_register` stores a pointer, and it is that of a hook.
    let hook = unsafe { std::mem::transmute::<*mut (), Hook>(hook) };
    let time = hook(slept);
    IN_HOOK.set(false);
    if time == NOT_HERE {
        return beside(slept);
    }
    let time = BASE.load(Ordering::Relaxed) + time;
    SHOWN.store(time, Ordering::Relaxed);
    time
}

/// The time for a thread that cannot request virtual time.
fn beside(slept: u64) -> u64 {
    let computed = real::now(libc::CLOCK_THREAD_CPUTIME_ID);
    let [own, before] = OWN.get();
    let since = match own {
        0 => 0,
        own => own + (computed - before),
    };
    let time = since.max(SHOWN.load(Ordering::Relaxed)) + slept + 1;
    OWN.set([time, computed]);
    time
}

fn outside(slept: u64) -> u64 {
    if READINGS.fetch_add(1, Ordering::Relaxed) < FEW {
        return SHOWN.fetch_add(1 + slept, Ordering::Relaxed) + 1 + slept;
    }
    READINGS.store(FEW, Ordering::Relaxed);
    let real = real::now(libc::CLOCK_MONOTONIC);
    let passed = match REAL.swap(real, Ordering::Relaxed) {
        0 => slept,
        before => real.saturating_sub(before),
    };
    let passed = passed.max(1);
    SHOWN.fetch_add(passed, Ordering::Relaxed) + passed
}

#[cfg(test)]
mod tests {
    use super::*;

    static VIRTUAL: AtomicU64 = AtomicU64::new(0);
    static IS_MAIN: AtomicU32 = AtomicU32::new(1);

    extern "C" fn hook(nanos: u64) -> u64 {
        match IS_MAIN.load(Ordering::Relaxed) {
            0 => NOT_HERE,
            _ => VIRTUAL.fetch_add(20 + nanos, Ordering::Relaxed) + 20 + nanos,
        }
    }

    /// All in one test, because the process has one time.
    #[test]
    fn time_goes_on_before_within_and_after_mpi() {
        let before = now();
        assert!(now() > before);
        assert!(pass(5000) >= before + 5000);
        fishplate_clock_register(Some(hook), 0);
        let start = now();
        assert!(start > before + 5000);
        assert_eq!(now() - start, 20);
        assert_eq!(pass(1_000_000) - start, 1_000_040);
        IS_MAIN.store(0, Ordering::Relaxed);
        let seen = now();
        assert!(seen > start + 1_000_040 && now() > seen);
        assert!(pass(1_000_000_000) > seen + 1_000_000_000);
        fishplate_clock_register(None, 3_000_000_000);
        let end = now();
        assert_eq!(end, BASE.load(Ordering::Relaxed) + 3_000_000_001);
        // Frequent reads of the clock are a wait, so they take real time.
        let real = real::now(libc::CLOCK_MONOTONIC);
        while now() < end + 1_000_000 {}
        assert!(real::now(libc::CLOCK_MONOTONIC) - real >= 1_000_000 - 100);
    }
}
