//! The clock that is read at each call: the processor's counter where the system makes its own
//! clock of it, and the system's clock elsewhere. The counter takes a third of the time.

/// A clock, with the length of its ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    /// The nanoseconds of 2^32 ticks; `None`: the system's clock, which counts nanoseconds.
    scale: Option<u64>,
}

/// The file that names the source of the system's clock.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

impl Ticks {
    /// The clock of this host.
    pub(crate) fn of_host() -> Ticks {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        Ticks {
            scale: scale(source.trim()),
        }
    }

    /// The system's clock.
    pub(crate) const SYSTEM: Ticks = Ticks { scale: None };

    /// The number of ticks so far.
    #[inline(always)]
    pub(crate) fn now(self) -> u64 {
        match self.scale {
            Some(_) => counter(),
            None => nanos(libc::CLOCK_MONOTONIC),
        }
    }

    /// The number of ticks in some nanoseconds.
    pub(crate) fn ticks(self, nanos: u64) -> u64 {
        match self.scale {
            Some(scale) => ((u128::from(nanos) << 32) / u128::from(scale.max(1))) as u64,
            None => nanos,
        }
    }

    /// The nanoseconds in a number of ticks.
    #[inline(always)]
    pub(crate) fn nanos(self, ticks: u64) -> u64 {
        match self.scale {
            Some(scale) => ((u128::from(ticks) * u128::from(scale)) >> 32) as u64,
            None => ticks,
        }
    }
}

/// The time of a clock of the system, in nanoseconds.
pub(crate) fn nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is a local variable.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The nanoseconds of 2^32 ticks of the processor's counter, if the system uses it.
#[cfg(target_arch = "x86_64")]
fn scale(source: &str) -> Option<u64> {
    if source != "tsc" {
        return None;
    }
    /// The time in which the counter is compared with the system's clock, in nanoseconds.
    const COMPARISON: u64 = 500_000;
    let both = || (nanos(libc::CLOCK_MONOTONIC), counter());
    let first = both();
    loop {
        let last = both();
        let (nanos, ticks) = (last.0 - first.0, last.1.saturating_sub(first.1));
        if nanos >= COMPARISON {
            return (ticks > 0).then(|| ((u128::from(nanos) << 32) / u128::from(ticks)) as u64);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every processor of this kind has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The nanoseconds of 2^32 ticks of the processor's counter, whose frequency a register has.
#[cfg(target_arch = "aarch64")]
fn scale(source: &str) -> Option<u64> {
    let frequency: u64;
    // SAFETY: the register can be read in every program.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency) };
    let is_used = source == "arch_sys_counter" && frequency > 0;
    is_used.then(|| ((1_000_000_000u128 << 32) / u128::from(frequency.max(1))) as u64)
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let counter: u64;
    // SAFETY: the register can be read in every program.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) counter) };
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_nanoseconds_of_the_system() {
        let ticks = Ticks::of_host();
        let both = || (nanos(libc::CLOCK_MONOTONIC), ticks.now());
        let first = both();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let between = ticks.now();
        let last = both();
        // The system's readings lie outside the others on one side, and inside on the other.
        let (least, most) = (
            ticks.nanos(between - first.1),
            ticks.nanos(last.1 - first.1),
        );
        let measured = last.0 - first.0;
        assert!(least <= measured + measured / 100, "{least} and {measured}");
        assert!(most + measured / 100 >= measured, "{most} and {measured}");
    }
}
