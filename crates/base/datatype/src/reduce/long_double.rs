//! C's long double, for which Rust has no type. Its format depends on the processor; `extended` and
//! `quad` have the arithmetic.

#[cfg(target_arch = "x86_64")]
use super::extended as format;
use super::kernel::{Element, Float};
#[cfg(target_arch = "aarch64")]
use super::quad as format;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

/// The bytes of a long double in memory.
#[derive(Clone, Copy)]
pub(super) struct LongDouble(pub(super) [u8; 16]);

impl Element for LongDouble {
    const SIZE: usize = 16;
    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        LongDouble(bytes.try_into().expect("chunks have the element's size"))
    }
    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }
}

impl Float for LongDouble {}

impl Add for LongDouble {
    type Output = LongDouble;
    #[inline(always)]
    fn add(self, other: LongDouble) -> LongDouble {
        format::add(&self, &other)
    }
}

impl Sub for LongDouble {
    type Output = LongDouble;
    #[inline(always)]
    fn sub(self, other: LongDouble) -> LongDouble {
        let mut negative = other;
        negative.0[format::SIGN] ^= 0x80;
        self + negative
    }
}

impl Mul for LongDouble {
    type Output = LongDouble;
    #[inline(always)]
    fn mul(self, other: LongDouble) -> LongDouble {
        format::multiply(&self, &other)
    }
}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &LongDouble) -> Option<Ordering> {
        if self > other {
            Some(Ordering::Greater)
        } else if self < other {
            Some(Ordering::Less)
        } else if format::is_nan(self) || format::is_nan(other) {
            None
        } else {
            Some(Ordering::Equal)
        }
    }

    #[inline(always)]
    fn gt(&self, other: &LongDouble) -> bool {
        format::exceeds(self, other)
    }

    #[inline(always)]
    fn lt(&self, other: &LongDouble) -> bool {
        format::exceeds(other, self)
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &LongDouble) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}
