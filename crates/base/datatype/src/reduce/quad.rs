//! C's long double on aarch64: IEEE binary128. No instruction computes with it; Rust's own library
//! has the functions that C calls for it. Rust cannot name their type, so they are called as C
//! calls them: operands and result in vector registers, the result of a comparison in w0.

use super::long_double::LongDouble;
use std::arch::aarch64::{uint8x16_t, vld1q_u8, vst1q_u8};
use std::arch::asm;

/// The index of the byte whose highest bit is the sign.
pub(super) const SIGN: usize = 15;

// The declarations have no arguments, because these functions are called only by inline assembly.
unsafe extern "C" {
    fn __addtf3();
    fn __multf3();
    fn __gttf2();
}

macro_rules! call {
    ($function:ident, $a:expr, $b:expr) => {{
        let mut result = LongDouble([0; 16]);
        // SAFETY: each of the three is 16 bytes; the function takes two operands and gives a result
        // in these registers, and all that a call may change is declared clobbered.
        unsafe {
            let value: uint8x16_t;
            asm!(
                "bl {function}",
                function = sym $function,
                inlateout("v0") vld1q_u8($a.0.as_ptr()) => value,
                in("v1") vld1q_u8($b.0.as_ptr()),
                clobber_abi("C"),
            );
            vst1q_u8(result.0.as_mut_ptr(), value);
        }
        result
    }};
}

pub(super) fn add(a: &LongDouble, b: &LongDouble) -> LongDouble {
    call!(__addtf3, a, b)
}

pub(super) fn multiply(a: &LongDouble, b: &LongDouble) -> LongDouble {
    call!(__multf3, a, b)
}

/// True if a > b; false if either is not a number.
pub(super) fn exceeds(a: &LongDouble, b: &LongDouble) -> bool {
    let order: i32;
    // SAFETY: both addresses are of 16 bytes, and everything that a call may change is declared
    // clobbered; the function returns a positive number only if the first operand is the greater.
    unsafe {
        asm!(
            "bl {function}",
            function = sym __gttf2,
            in("v0") vld1q_u8(a.0.as_ptr()),
            in("v1") vld1q_u8(b.0.as_ptr()),
            lateout("w0") order,
            clobber_abi("C"),
        );
    }
    order > 0
}

pub(super) fn is_nan(a: &LongDouble) -> bool {
    let bits = u128::from_le_bytes(a.0);
    let exponent = bits >> 112 & 0x7fff;
    exponent == 0x7fff && bits << 16 != 0
}
