//! Waits with a deadline: an absolute time of a virtual clock, which is converted to one of the
//! real clock. A wait that times out advances virtual time to its deadline.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{clockid_t, timespec};

use crate::process_time::{now, pass};
use crate::real::{Function, call};
use crate::scale::{clock_of, nanos, start};
use crate::sleeps::real_deadline;

/// A deadline of a wait, in virtual time.
struct Deadline {
    /// The virtual time until the deadline, in nanoseconds.
    left: u64,
    /// The clock in whose time the caller gave the deadline.
    clock: clockid_t,
}

impl Deadline {
    /// The deadline `time` of a clock. `None` for an invalid time, and for a clock that stays real.
    ///
    /// # Safety
    /// `time` is null or points to a structure.
    unsafe fn of(clock: Option<clockid_t>, time: *const timespec) -> Option<Deadline> {
        // SAFETY: as this function demands.
        let time = unsafe { time.as_ref() }.and_then(nanos)?;
        let clock = clock.unwrap_or_else(|| clock_of(time));
        let left = time.saturating_sub(start(clock)? + now());
        Some(Deadline { left, clock })
    }

    /// Calls `wait` with the deadline converted to the real clock, and returns its result. The
    /// result `out` means a time-out, after which virtual time advances to the deadline.
    fn keep(self, out: c_int, wait: impl FnOnce(*const timespec) -> c_int) -> c_int {
        let real = real_deadline(self.clock, self.left);
        let result = wait(&raw const real);
        if result == out {
            pass(self.left);
        }
        result
    }
}

/// Defines waits with a deadline: for each its name, the arguments before the deadline, and the
/// clock of the deadline, which is an argument or CLOCK_REALTIME.
macro_rules! waits {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*; $clock:expr);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type,)* deadline: *const timespec) -> c_int {
            let wait = |deadline: *const timespec| {
                let result = call!($name: fn($($type,)* *const timespec) -> c_int, $($argument,)* deadline);
                result.unwrap_or(libc::ENOSYS)
            };
            // SAFETY: as this function demands.
            match unsafe { Deadline::of(Some($clock), deadline) } {
                Some(kept) => kept.keep(libc::ETIMEDOUT, wait),
                None => wait(deadline),
            }
        }
    )*};
}

waits! {
    /// Locks a mutex, with a deadline of CLOCK_REALTIME (POSIX, `pthread_mutex_timedlock`).
    pthread_mutex_timedlock(mutex: *mut c_void; libc::CLOCK_REALTIME);
    /// Locks a mutex, with a deadline of any clock (POSIX, `pthread_mutex_clocklock`).
    pthread_mutex_clocklock(mutex: *mut c_void, clock: clockid_t; clock);
    /// Locks for reading, with a deadline of CLOCK_REALTIME (POSIX, `pthread_rwlock_timedrdlock`).
    pthread_rwlock_timedrdlock(lock: *mut c_void; libc::CLOCK_REALTIME);
    /// Locks for writing, with a deadline of CLOCK_REALTIME (POSIX, `pthread_rwlock_timedwrlock`).
    pthread_rwlock_timedwrlock(lock: *mut c_void; libc::CLOCK_REALTIME);
    /// Locks for reading, with a deadline of any clock (POSIX, `pthread_rwlock_clockrdlock`).
    pthread_rwlock_clockrdlock(lock: *mut c_void, clock: clockid_t; clock);
    /// Locks for writing, with a deadline of any clock (POSIX, `pthread_rwlock_clockwrlock`).
    pthread_rwlock_clockwrlock(lock: *mut c_void, clock: clockid_t; clock);
    /// Waits for a condition, with a deadline of any clock (POSIX, `pthread_cond_clockwait`).
    pthread_cond_clockwait(condition: *mut c_void, mutex: *mut c_void, clock: clockid_t; clock);
    /// Waits for the end of a thread, with a deadline of CLOCK_REALTIME (`pthread_timedjoin_np`).
    pthread_timedjoin_np(thread: libc::pthread_t, result: *mut *mut c_void; libc::CLOCK_REALTIME);
    /// Waits for the end of a thread, with a deadline of any clock (`pthread_clockjoin_np`).
    pthread_clockjoin_np(thread: libc::pthread_t, result: *mut *mut c_void, clock: clockid_t; clock);
}

/// Waits for a condition, with a deadline of the condition's clock (POSIX,
/// `pthread_cond_timedwait`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    deadline: *const timespec,
) -> c_int {
    static BY_CLOCK: Function = Function::new(c"pthread_cond_clockwait");
    let wait = |deadline: *const timespec| {
        let result = call!(pthread_cond_timedwait: fn(*mut c_void, *mut c_void, *const timespec) -> c_int,
            condition, mutex, deadline);
        result.unwrap_or(libc::ENOSYS)
    };
    // The clock of a condition cannot be queried; the deadline shows which one it is.
    // SAFETY: as this function demands.
    match unsafe { Deadline::of(None, deadline) } {
        // For a deadline that has passed, it does not matter which clock it belongs to.
        Some(kept) if BY_CLOCK.address().is_null() || kept.left == 0 => {
            kept.keep(libc::ETIMEDOUT, wait)
        }
        Some(mut kept) => {
            kept.clock = libc::CLOCK_MONOTONIC;
            kept.keep(libc::ETIMEDOUT, |deadline| {
                let result = call!(
                    pthread_cond_clockwait: fn(*mut c_void, *mut c_void, clockid_t, *const timespec) -> c_int,
                    condition, mutex, libc::CLOCK_MONOTONIC, deadline);
                result.unwrap_or(libc::ENOSYS)
            })
        }
        None => wait(deadline),
    }
}

/// The result of a C wait that has timed out: `thrd_timedout`.
const THREAD_OUT: c_int = 4;
/// The result of a C wait that has failed: `thrd_error`.
const THREAD_ERROR: c_int = 2;

/// Waits for a condition, with a deadline of CLOCK_REALTIME (C, `cnd_timedwait`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cnd_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    deadline: *const timespec,
) -> c_int {
    let wait = |deadline: *const timespec| {
        let result = call!(cnd_timedwait: fn(*mut c_void, *mut c_void, *const timespec) -> c_int,
            condition, mutex, deadline);
        result.unwrap_or(THREAD_ERROR)
    };
    // SAFETY: as this function demands.
    match unsafe { Deadline::of(Some(libc::CLOCK_REALTIME), deadline) } {
        Some(kept) => kept.keep(THREAD_OUT, wait),
        None => wait(deadline),
    }
}

/// Locks a mutex, with a deadline of CLOCK_REALTIME (C, `mtx_timedlock`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mtx_timedlock(mutex: *mut c_void, deadline: *const timespec) -> c_int {
    let wait = |deadline: *const timespec| {
        let result =
            call!(mtx_timedlock: fn(*mut c_void, *const timespec) -> c_int, mutex, deadline);
        result.unwrap_or(THREAD_ERROR)
    };
    // SAFETY: as this function demands.
    match unsafe { Deadline::of(Some(libc::CLOCK_REALTIME), deadline) } {
        Some(kept) => kept.keep(THREAD_OUT, wait),
        None => wait(deadline),
    }
}

fn errno() -> c_int {
    // SAFETY: the C library returns the address of this thread's error number.
    unsafe { libc::__errno_location().read() }
}

/// Runs a wait that returns -1 and an error number in `errno`.
fn by_errno(
    kept: Option<Deadline>,
    given: *const timespec,
    wait: impl FnOnce(*const timespec) -> isize,
) -> isize {
    let Some(kept) = kept else {
        return wait(given);
    };
    let mut result = -1;
    let reason = kept.keep(libc::ETIMEDOUT, |deadline| {
        result = wait(deadline);
        match result {
            -1 => errno(),
            _ => 0,
        }
    });
    if result == -1 {
        // SAFETY: as above.
        unsafe { libc::__errno_location().write(reason) };
    }
    result
}

/// Waits for a semaphore, with a deadline of CLOCK_REALTIME (POSIX, `sem_timedwait`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sem_timedwait(semaphore: *mut c_void, deadline: *const timespec) -> c_int {
    // SAFETY: as this function demands.
    let kept = unsafe { Deadline::of(Some(libc::CLOCK_REALTIME), deadline) };
    let result = by_errno(kept, deadline, |deadline| {
        let result =
            call!(sem_timedwait: fn(*mut c_void, *const timespec) -> c_int, semaphore, deadline);
        result.unwrap_or(-1) as isize
    });
    result as c_int
}

/// Waits for a semaphore, with a deadline of any clock (POSIX, `sem_clockwait`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sem_clockwait(
    semaphore: *mut c_void,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: as this function demands.
    let kept = unsafe { Deadline::of(Some(clock), deadline) };
    let result = by_errno(kept, deadline, |deadline| {
        let result = call!(sem_clockwait: fn(*mut c_void, clockid_t, *const timespec) -> c_int,
            semaphore, clock, deadline);
        result.unwrap_or(-1) as isize
    });
    result as c_int
}

/// Receives from a message queue, with a deadline of CLOCK_REALTIME (POSIX, `mq_timedreceive`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mq_timedreceive(
    queue: c_int,
    buffer: *mut c_char,
    len: usize,
    priority: *mut c_uint,
    deadline: *const timespec,
) -> isize {
    // SAFETY: as this function demands.
    let kept = unsafe { Deadline::of(Some(libc::CLOCK_REALTIME), deadline) };
    by_errno(kept, deadline, |deadline| {
        let result = call!(
            mq_timedreceive: fn(c_int, *mut c_char, usize, *mut c_uint, *const timespec) -> isize,
            queue, buffer, len, priority, deadline);
        result.unwrap_or(-1)
    })
}

/// Sends to a message queue, with a deadline of CLOCK_REALTIME (POSIX, `mq_timedsend`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mq_timedsend(
    queue: c_int,
    buffer: *const c_char,
    len: usize,
    priority: c_uint,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: as this function demands.
    let kept = unsafe { Deadline::of(Some(libc::CLOCK_REALTIME), deadline) };
    let result = by_errno(kept, deadline, |deadline| {
        let result = call!(
            mq_timedsend: fn(c_int, *const c_char, usize, c_uint, *const timespec) -> c_int,
            queue, buffer, len, priority, deadline);
        result.unwrap_or(-1) as isize
    });
    result as c_int
}
