//! C's long double on x86-64: the 80 bits of the x87 unit in 16 bytes, of which the last six are
//! padding. Each operation is a few x87 instructions on all 64 bits of the significand, as in C.

use super::long_double::LongDouble;
use std::arch::asm;

/// The index of the byte whose highest bit is the sign.
pub(super) const SIGN: usize = 9;

/// Loads both operands, runs one instruction that leaves the result on top of the x87 stack, and
/// stores the result.
macro_rules! x87 {
    ($a:expr, $b:expr, $instruction:literal) => {{
        let mut result = LongDouble([0; 16]);
        // SAFETY: the three addresses are of live values of 16 bytes, of which 10 are read
        // or written; the x87 stack is declared clobbered and left as it was found, empty.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]",
                "fld tbyte ptr [{b}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                a = in(reg) $a,
                b = in(reg) $b,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

#[inline(always)]
pub(super) fn add(a: &LongDouble, b: &LongDouble) -> LongDouble {
    x87!(a, b, "faddp st(1), st")
}

#[inline(always)]
pub(super) fn multiply(a: &LongDouble, b: &LongDouble) -> LongDouble {
    x87!(a, b, "fmulp st(1), st")
}

/// True if a > b; false if either is not a number.
#[inline(always)]
pub(super) fn exceeds(a: &LongDouble, b: &LongDouble) -> bool {
    let above: u8;
    // SAFETY: both addresses are of live values of 16 bytes, of which 10 are read; the x87
    // stack is declared clobbered and left empty.
    unsafe {
        asm!(
            "fld tbyte ptr [{b}]",
            "fld tbyte ptr [{a}]",
            "fucomip st, st(1)",
            "fstp st(0)",
            "seta {above}",
            a = in(reg) a,
            b = in(reg) b,
            above = lateout(reg_byte) above,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack, readonly),
        );
    }
    above != 0
}

pub(super) fn is_nan(a: &LongDouble) -> bool {
    let bits = u128::from_le_bytes(a.0);
    let exponent = bits >> 64 & 0x7fff;
    let fraction = (bits as u64) << 1;
    exponent == 0x7fff && fraction != 0
}
