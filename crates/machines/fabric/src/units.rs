//! Numbers with units. All are whole numbers of a small unit (picoseconds, bits per second,
//! millimetres), so sums are exact and equal on every machine.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// A span of time, in picoseconds: a 64-byte packet on a 400 Gb/s link takes 1.28 ns, so whole
/// nanoseconds would be too coarse. Sums and products saturate at the largest span, about 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// A time of 0.
    pub const ZERO: Nanos = Nanos(0);

    /// A time of `picos` picoseconds.
    pub const fn from_picos(picos: u64) -> Nanos {
        Nanos(picos)
    }

    /// The time in picoseconds.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// The time in nanoseconds, for display.
    pub fn as_nanos(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The time in microseconds, for display.
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or 0 if `other` is longer.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(all: I) -> Nanos {
        all.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            0..1_000_000 => write!(f, "{} ns", self.as_nanos()),
            _ => write!(f, "{} us", self.as_micros()),
        }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let scale = [(30, "GiB"), (20, "MiB"), (10, "KiB")]
            .into_iter()
            .find(|&(shift, _)| self.0 >> shift >= 8 && self.0 & ((1 << shift) - 1) == 0);
        match scale {
            Some((shift, unit)) => write!(f, "{} {unit}", self.0 >> shift),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// A rate, in bits per second. A signalling rate (GT/s) counts the bits on the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GbPerSec(u64);

impl GbPerSec {
    /// A rate of `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> GbPerSec {
        GbPerSec(bits)
    }

    /// The rate in bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// The rate in gigabits (10⁹ bits) per second, for display.
    pub fn as_gb_per_sec(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The rate in megabytes (10⁶ bytes) per second, the unit of MPI benchmarks.
    pub fn as_mb_per_sec(self) -> f64 {
        self.0 as f64 / 8e6
    }

    /// The time of `bytes` at this rate, rounded up to the picosecond: never faster than the rate.
    pub const fn time(self, bytes: u64) -> Nanos {
        const PICOS_A_BYTE: u64 = 8_000_000_000_000;
        Nanos(match bytes.checked_mul(PICOS_A_BYTE) {
            Some(product) => product.div_ceil(self.0),
            None => {
                let picos = (bytes as u128 * PICOS_A_BYTE as u128).div_ceil(self.0 as u128);
                if picos > u64::MAX as u128 {
                    u64::MAX
                } else {
                    picos as u64
                }
            }
        })
    }

    /// The rate of `bytes` in `time`, rounded down. `None` if `time` is zero.
    pub fn of(bytes: u64, time: Nanos) -> Option<GbPerSec> {
        let bits = u128::from(bytes) * 8_000_000_000_000;
        Some(GbPerSec(bits.checked_div(u128::from(time.0))? as u64))
    }

    /// The rate multiplied by `ratio`, rounded down.
    pub fn part(self, ratio: Ratio) -> GbPerSec {
        let bits = u128::from(self.0) * u128::from(ratio.over) / u128::from(ratio.under);
        GbPerSec(bits as u64)
    }
}

impl Mul<u32> for GbPerSec {
    type Output = GbPerSec;
    fn mul(self, times: u32) -> GbPerSec {
        GbPerSec(self.0 * u64::from(times))
    }
}

impl fmt::Display for GbPerSec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} Gb/s", self.as_gb_per_sec())
    }
}

/// A frequency, in events per second, such as the message rate of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerSec(pub u64);

impl PerSec {
    /// The time between two events, to the nearest picosecond.
    pub const fn interval(self) -> Nanos {
        Nanos((1_000_000_000_000 + self.0 / 2) / self.0)
    }
}

impl fmt::Display for PerSec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} M/s", self.0 as f64 / 1e6)
    }
}

/// A length, as a whole number of millimetres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metres(u64);

impl Metres {
    /// A length of `millimetres` millimetres.
    pub const fn from_millimetres(millimetres: u64) -> Metres {
        Metres(millimetres)
    }

    /// The length in millimetres.
    pub const fn millimetres(self) -> u64 {
        self.0
    }

    /// The time of a signal over this length. `metre` is its time for one metre.
    pub const fn time(self, metre: Nanos) -> Nanos {
        Nanos(metre.0.saturating_mul(self.0).div_ceil(1000))
    }
}

impl fmt::Display for Metres {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} m", self.0 as f64 / 1e3)
    }
}

/// A fraction, such as the share of a line rate that an encoding leaves for data. Never zero,
/// never above one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    over: u32,
    under: u32,
}

impl Ratio {
    /// The fraction 1.
    pub const ONE: Ratio = Ratio { over: 1, under: 1 };

    /// The reduced fraction `over`/`under`. `None` if it is zero or above one.
    pub fn new(over: u32, under: u32) -> Option<Ratio> {
        Ratio::reduced(over.into(), under.into())
    }

    fn reduced(over: u64, under: u64) -> Option<Ratio> {
        let by = common_divisor(over, under);
        let good = 0 < over && over <= under;
        good.then_some(Ratio {
            over: over.checked_div(by)?.try_into().ok()?,
            under: under.checked_div(by)?.try_into().ok()?,
        })
    }

    /// The numerator and the denominator of the ratio.
    pub fn parts(self) -> (u32, u32) {
        (self.over, self.under)
    }

    /// The product of two fractions. `None` if 32 bits cannot hold its parts.
    pub fn times(self, other: Ratio) -> Option<Ratio> {
        let over = u64::from(self.over) * u64::from(other.over);
        let under = u64::from(self.under) * u64::from(other.under);
        Ratio::reduced(over, under)
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.over, self.under)
    }
}
