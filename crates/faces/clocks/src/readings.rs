//! Functions of the C library that read a clock, replaced by functions that return virtual time.

use std::ffi::{c_int, c_void};

use libc::{clockid_t, time_t, timespec, timeval};

use crate::process_time::now;
use crate::real;
use crate::scale::{SECOND, spec, start};

/// Reads a clock (POSIX, `clock_gettime`).
///
/// # Safety
/// `time` is null or points to a structure that may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    match start(clock) {
        Some(start) if !time.is_null() => {
            // SAFETY: as this function demands.
            unsafe { time.write(spec(start + now())) };
            0
        }
        // SAFETY: as this function demands.
        _ => unsafe { real::clock_gettime(clock, time) },
    }
}

/// The time of CLOCK_REALTIME, in nanoseconds since 1970.
fn date() -> u64 {
    start(libc::CLOCK_REALTIME).unwrap_or(0) + now()
}

/// Reads the time since 1970 in microseconds (POSIX, `gettimeofday`).
///
/// # Safety
/// `time` and `zone` are null or point to structures that may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    if !time.is_null() {
        let date = spec(date());
        let value = timeval {
            tv_sec: date.tv_sec,
            tv_usec: date.tv_nsec / 1000,
        };
        // SAFETY: as this function demands.
        unsafe { time.write(value) };
    }
    if !zone.is_null() {
        // Minutes west of Greenwich, and a rule for summer time, which no system supports any more.
        // SAFETY: as this function demands.
        unsafe { zone.cast::<[c_int; 2]>().write([0, 0]) };
    }
    0
}

/// Reads the time since 1970 in seconds (C, `time`).
///
/// # Safety
/// `place` is null or points to a number that may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn time(place: *mut time_t) -> time_t {
    let seconds = (date() / SECOND) as time_t;
    if !place.is_null() {
        // SAFETY: as this function demands.
        unsafe { place.write(seconds) };
    }
    seconds
}

/// The clocks of the bases TIME_UTC, TIME_MONOTONIC, TIME_ACTIVE and TIME_THREAD_ACTIVE of C.
const BASES: [clockid_t; 4] = [
    libc::CLOCK_REALTIME,
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_PROCESS_CPUTIME_ID,
    libc::CLOCK_THREAD_CPUTIME_ID,
];

/// Reads a clock (C, `timespec_get`); returns 0 for an unknown base.
///
/// # Safety
/// `time` points to a structure that may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
    let known = usize::try_from(base - 1).ok();
    let clock = known.and_then(|at| BASES.get(at));
    // SAFETY: as this function demands.
    match clock.map(|clock| unsafe { clock_gettime(*clock, time) }) {
        Some(0) => base,
        _ => 0,
    }
}
