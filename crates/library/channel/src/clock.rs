//! The clock by which ranks measure their own work: the only one of the library's learners.

/// The time of a monotonic clock, in nanoseconds.
#[inline]
pub fn now() -> u64 {
    if let Some(now) = datatype::double::ask(|double| double.now()) {
        return now;
    }
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours, to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
