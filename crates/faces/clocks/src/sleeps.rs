//! Functions that sleep. They still sleep in real time, because the program may wait for other
//! threads or programs, and the virtual time of the process advances too. A program that stands for
//! computing and waits for nobody calls `fishplate_pass` instead.

use std::ffi::{c_int, c_uint, c_void};

use libc::{clockid_t, epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

use crate::process_time::{now, pass};
use crate::real::{self, call};
use crate::scale::{SECOND, nanos, nanos_of_micros, spec, start};

/// Sleeps for a span (POSIX, `nanosleep`).
///
/// # Safety
/// The pointers are null or point to structures; `rest` may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn nanosleep(wanted: *const timespec, rest: *mut timespec) -> c_int {
    let mut left = spec(0);
    let ended =
        call!(nanosleep: fn(*const timespec, *mut timespec) -> c_int, wanted, &raw mut left);
    let ended = ended.unwrap_or_else(unknown);
    // SAFETY: as this function demands.
    if let Some(asked) = unsafe { wanted.as_ref() }.and_then(nanos) {
        keeping_errno(|| pass(asked.saturating_sub(nanos(&left).unwrap_or(0))));
    }
    if ended != 0 && !rest.is_null() {
        // SAFETY: as this function demands.
        unsafe { rest.write(left) };
    }
    ended
}

/// Advances the virtual time of the process by a number of nanoseconds, in no real time. A program
/// declares it as a weak symbol: without this library, and so on real machines, there is none.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn fishplate_pass(nanos: u64) {
    keeping_errno(|| pass(nanos));
}

/// Sleeps for a number of seconds (POSIX, `sleep`). Returns the seconds that are left after a
/// signal.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let mut left = spec(0);
    let wanted = spec(u64::from(seconds) * SECOND);
    // SAFETY: both are local variables.
    match unsafe { nanosleep(&raw const wanted, &raw mut left) } {
        0 => 0,
        _ => left.tv_sec as c_uint + c_uint::from(left.tv_nsec > 0),
    }
}

/// Sleeps for a number of microseconds (`usleep`).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn usleep(micros: c_uint) -> c_int {
    let wanted = spec(u64::from(micros) * 1000);
    // SAFETY: the structure is a local variable.
    unsafe { nanosleep(&raw const wanted, std::ptr::null_mut()) }
}

/// Sleeps for a span or until an absolute time of a clock (POSIX, `clock_nanosleep`). Returns an
/// error number.
///
/// # Safety
/// The pointers are null or point to structures; `rest` may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    wanted: *const timespec,
    rest: *mut timespec,
) -> c_int {
    let is_absolute = flags & libc::TIMER_ABSTIME != 0;
    // SAFETY: as this function demands.
    let asked = unsafe { wanted.as_ref() }.and_then(nanos);
    let (Some(start), Some(asked)) = (start(clock), asked) else {
        let ended = call!(clock_nanosleep: fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int,
            clock, flags, wanted, rest);
        return ended.unwrap_or(libc::ENOSYS);
    };
    let span = match is_absolute {
        true => asked.saturating_sub(start + now()),
        false => asked,
    };
    let (relative, mut left) = (spec(span), spec(0));
    let ended = call!(clock_nanosleep: fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int,
        libc::CLOCK_MONOTONIC, 0, &raw const relative, &raw mut left);
    let ended = ended.unwrap_or(libc::ENOSYS);
    pass(span.saturating_sub(nanos(&left).unwrap_or(0)));
    if ended == libc::EINTR && !is_absolute && !rest.is_null() {
        // SAFETY: as this function demands.
        unsafe { rest.write(left) };
    }
    ended
}

/// Advances virtual time by the time-out of a wait for descriptors that has timed out. Returns the
/// result of the wait.
fn waited(result: Option<c_int>, timeout: Option<u64>) -> c_int {
    let result = result.unwrap_or_else(unknown);
    if let (0, Some(span @ 1..)) = (result, timeout) {
        pass(span);
    }
    result
}

fn unknown() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

fn set_errno(number: c_int) {
    // SAFETY: the C library returns the address of this thread's error number.
    unsafe { libc::__errno_location().write(number) };
}

fn keeping_errno<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: as above.
    let before = unsafe { libc::__errno_location().read() };
    let result = work();
    set_errno(before);
    result
}

fn of_millis(millis: c_int) -> Option<u64> {
    Some(u64::try_from(millis).ok()? * 1_000_000)
}

/// Waits for descriptors (POSIX, `poll`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn poll(descriptors: *mut pollfd, count: nfds_t, millis: c_int) -> c_int {
    let result = call!(poll: fn(*mut pollfd, nfds_t, c_int) -> c_int, descriptors, count, millis);
    waited(result, of_millis(millis))
}

/// Waits for descriptors and signals (`ppoll`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ppoll(
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let result = call!(ppoll: fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int,
        descriptors, count, timeout, mask);
    // SAFETY: as this function demands.
    waited(result, unsafe { timeout.as_ref() }.and_then(nanos))
}

/// Waits for descriptors (POSIX, `select`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // The kernel may change the time-out.
    // SAFETY: as this function demands.
    let span = unsafe { timeout.as_ref() }.and_then(nanos_of_micros);
    let result = call!(select: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int,
        count, read, write, except, timeout);
    waited(result, span)
}

/// Waits for descriptors and signals (POSIX, `pselect`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let result = call!(
        pselect: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t) -> c_int,
        count, read, write, except, timeout, mask);
    // SAFETY: as this function demands.
    waited(result, unsafe { timeout.as_ref() }.and_then(nanos))
}

/// Waits for events (`epoll_wait`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    millis: c_int,
) -> c_int {
    let result = call!(epoll_wait: fn(c_int, *mut epoll_event, c_int, c_int) -> c_int, epoll, events, most, millis);
    waited(result, of_millis(millis))
}

/// Waits for events and signals (`epoll_pwait`).
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    millis: c_int,
    mask: *const c_void,
) -> c_int {
    let result = call!(epoll_pwait: fn(c_int, *mut epoll_event, c_int, c_int, *const c_void) -> c_int,
        epoll, events, most, millis, mask);
    waited(result, of_millis(millis))
}

/// The time of a real clock after a span of nanoseconds from now.
pub(crate) fn real_deadline(clock: clockid_t, span: u64) -> timespec {
    spec(real::now(clock).saturating_add(span))
}
