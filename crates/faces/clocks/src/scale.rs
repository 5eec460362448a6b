//! The clocks of the system that show virtual time, and conversions of its structures for time.

use libc::{clockid_t, timespec, timeval};

/// The number of nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// The time at which virtual time starts, 1 January 2020 in UTC, in seconds since 1970.
const DATE: u64 = 1_577_836_800;
/// The difference of International Atomic Time and UTC since 2017, in seconds.
const TAI: u64 = 37;
/// The value of clocks that count from boot at the start of virtual time, in seconds.
const SINCE_BOOT: u64 = 1000;

/// The value of a clock at the start of virtual time, in nanoseconds. `None` for clocks that stay
/// real: those of processor time, and of devices.
pub(crate) fn start(clock: clockid_t) -> Option<u64> {
    let seconds = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM => DATE,
        libc::CLOCK_TAI => DATE + TAI,
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_BOOTTIME_ALARM => SINCE_BOOT,
        _ => return None,
    };
    Some(seconds * SECOND)
}

/// The clock of a deadline if the caller does not name it: one of more than 25 years is a time
/// since 1970, a shorter one a time since boot.
pub(crate) fn clock_of(deadline: u64) -> clockid_t {
    match deadline > DATE * SECOND / 2 {
        true => libc::CLOCK_REALTIME,
        false => libc::CLOCK_MONOTONIC,
    }
}

/// The nanoseconds of a span or an absolute time; `None` if it is invalid.
pub(crate) fn nanos(time: &timespec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let rest = u64::try_from(time.tv_nsec)
        .ok()
        .filter(|rest| *rest < SECOND)?;
    Some(seconds.saturating_mul(SECOND).saturating_add(rest))
}

/// The nanoseconds of a span; `None` if it is invalid.
pub(crate) fn nanos_of_micros(time: &timeval) -> Option<u64> {
    nanos(&timespec {
        tv_sec: time.tv_sec,
        tv_nsec: time.tv_usec.checked_mul(1000)?,
    })
}

pub(crate) fn spec(nanos: u64) -> timespec {
    timespec {
        tv_sec: (nanos / SECOND) as libc::time_t,
        tv_nsec: (nanos % SECOND) as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_processor_time_stay_real() {
        for clock in [
            libc::CLOCK_PROCESS_CPUTIME_ID,
            libc::CLOCK_THREAD_CPUTIME_ID,
            -6,
            (!1234 << 3) | 0b110,
        ] {
            assert_eq!(start(clock), None, "{clock}");
        }
    }

    #[test]
    fn a_deadline_shows_its_clock() {
        for clock in [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC] {
            let soon = start(clock).unwrap() + 5 * SECOND;
            assert_eq!(clock_of(soon), clock);
        }
    }

    #[test]
    fn invalid_times_are_no_spans() {
        let time = |tv_sec, tv_nsec| timespec { tv_sec, tv_nsec };
        assert_eq!(nanos(&time(2, 7)), Some(2 * SECOND + 7));
        assert_eq!(nanos(&time(-1, 0)), None);
        assert_eq!(nanos(&time(0, 1_000_000_000)), None);
        assert_eq!(nanos(&time(i64::MAX, 0)), Some(u64::MAX));
        assert_eq!(nanos(&spec(3 * SECOND + 1)), Some(3 * SECOND + 1));
    }
}
