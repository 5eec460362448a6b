//! C's long double on x86-64: 80 bits of the x87 unit in 16 bytes. Rust has no such type, so each
//! operation is a few x87 instructions; all 64 bits of the significand take part, as in C.

use super::kernel::{Element, Float};
use std::arch::asm;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

/// Bytes as they lie in memory; the last six are padding.
#[derive(Clone, Copy)]
pub(crate) struct F80([u8; 16]);

impl Element for F80 {
    const SIZE: usize = 16;
    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        F80(bytes.try_into().expect("chunks have the element's size"))
    }
    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }
}

impl Float for F80 {}

/// Loads both operands, runs one instruction that leaves the result on the top, stores that.
macro_rules! x87 {
    ($a:expr, $b:expr, $instruction:literal) => {{
        let mut result = F80([0; 16]);
        // SAFETY: the three addresses are of live local values of 16 bytes, of which 10 are read
        // or written; the x87 stack is declared clobbered and left as it was found, empty.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]",
                "fld tbyte ptr [{b}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                a = in(reg) &raw const $a,
                b = in(reg) &raw const $b,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

impl Add for F80 {
    type Output = F80;
    fn add(self, other: F80) -> F80 {
        x87!(self, other, "faddp st(1), st")
    }
}

impl Sub for F80 {
    type Output = F80;
    fn sub(self, other: F80) -> F80 {
        // Added with its sign turned: assemblers disagree about the operands of fsubp.
        let mut negative = other;
        negative.0[9] ^= 0x80;
        self + negative
    }
}

impl Mul for F80 {
    type Output = F80;
    fn mul(self, other: F80) -> F80 {
        x87!(self, other, "fmulp st(1), st")
    }
}

impl PartialOrd for F80 {
    fn partial_cmp(&self, other: &F80) -> Option<Ordering> {
        if self.exceeds(other) {
            Some(Ordering::Greater)
        } else if other.exceeds(self) {
            Some(Ordering::Less)
        } else if self.is_nan() || other.is_nan() {
            None
        } else {
            Some(Ordering::Equal)
        }
    }

    fn gt(&self, other: &F80) -> bool {
        self.exceeds(other)
    }

    fn lt(&self, other: &F80) -> bool {
        other.exceeds(self)
    }
}

impl PartialEq for F80 {
    fn eq(&self, other: &F80) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl F80 {
    /// False if either is not a number.
    fn exceeds(&self, other: &F80) -> bool {
        let above: u8;
        // SAFETY: both addresses are of live values of 16 bytes, of which 10 are read; the x87
        // stack is declared clobbered and left empty.
        unsafe {
            asm!(
                "fld tbyte ptr [{other}]",
                "fld tbyte ptr [{this}]",
                "fucomip st, st(1)",
                "fstp st(0)",
                "seta {above}",
                this = in(reg) self,
                other = in(reg) other,
                above = lateout(reg_byte) above,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, readonly),
            );
        }
        above != 0
    }

    fn is_nan(&self) -> bool {
        let exponent = u16::from_le_bytes([self.0[8], self.0[9]]) & 0x7fff;
        let significand = u64::from_le_bytes(self.0[..8].try_into().expect("eight bytes"));
        exponent == 0x7fff && significand << 1 != 0
    }
}
