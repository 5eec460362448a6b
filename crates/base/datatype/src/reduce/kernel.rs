//! The loops of reductions, one for each operation and kind of number. Elements are loaded and
//! stored as bytes, so alignment does not matter, and the compiler vectorises the simple loops:
//! with the vectors that every processor has, and with AVX2 for long operands if the processor has
//! it.

use crate::op::Op;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Sub};

/// A value that is stored packed in bytes.
pub(super) trait Element: Copy {
    const SIZE: usize;
    /// The value stored in `bytes`, a slice of `SIZE` bytes.
    fn load(bytes: &[u8]) -> Self;
    fn store(self, bytes: &mut [u8]);
}

pub(super) trait Integer:
    Element + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + From<bool>
{
    /// Addition. Integers wrap, as two's complement does in practice in C.
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn is_true(self) -> bool;
}

pub(super) trait Float:
    Element + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
}

#[derive(Clone, Copy)]
struct Complex<T>(T, T);

/// A value with its index: an operand of MINLOC and MAXLOC.
#[derive(Clone, Copy)]
struct Located<V, I>(V, I);

/// Packed operands and the memory for the result, all of one length.
pub(super) trait Operands {
    /// The length of an operand in bytes. Only the choice of AVX2 depends on it.
    #[cfg(target_arch = "x86_64")]
    fn len(&self) -> usize;
    /// Combines the packed operands element by element.
    fn each<T: Element>(self, combine: impl Fn(T, T) -> T);
}

/// Operands whose result replaces the second operand.
pub(super) struct InPlace<'a> {
    pub(super) input: &'a [u8],
    pub(super) inout: &'a mut [u8],
}

impl Operands for InPlace<'_> {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn len(&self) -> usize {
        self.inout.len()
    }

    #[inline(always)]
    fn each<T: Element>(self, combine: impl Fn(T, T) -> T) {
        let inputs = self.input.chunks_exact(T::SIZE);
        for (a, b) in inputs.zip(self.inout.chunks_exact_mut(T::SIZE)) {
            combine(T::load(a), T::load(b)).store(b);
        }
    }
}

/// Operands whose result is written to memory of its own.
pub(super) struct Apart<'a> {
    pub(super) first: &'a [u8],
    pub(super) second: &'a [u8],
    pub(super) result: &'a mut [u8],
}

impl Operands for Apart<'_> {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn len(&self) -> usize {
        self.result.len()
    }

    #[inline(always)]
    fn each<T: Element>(self, combine: impl Fn(T, T) -> T) {
        let (firsts, seconds) = (
            self.first.chunks_exact(T::SIZE),
            self.second.chunks_exact(T::SIZE),
        );
        let results = self.result.chunks_exact_mut(T::SIZE);
        for ((a, b), result) in firsts.zip(seconds).zip(results) {
            combine(T::load(a), T::load(b)).store(result);
        }
    }
}

pub(super) fn integer<T: Integer>(op: Op, operands: impl Operands) {
    match op {
        Op::Sum => each(operands, T::plus),
        Op::Prod => each(operands, T::times),
        Op::Min => each(operands, T::min),
        Op::Max => each(operands, T::max),
        Op::Band => each(operands, |a: T, b| a & b),
        Op::Bor => each(operands, |a: T, b| a | b),
        Op::Bxor => each(operands, |a: T, b| a ^ b),
        Op::Land => each(operands, |a: T, b| T::from(a.is_true() & b.is_true())),
        Op::Lor => each(operands, |a: T, b| T::from(a.is_true() | b.is_true())),
        Op::Lxor => each(operands, |a: T, b| T::from(a.is_true() ^ b.is_true())),
        _ => not_for("integers", op),
    }
}

pub(super) fn float<T: Float>(op: Op, operands: impl Operands) {
    match op {
        Op::Sum => each(operands, |a: T, b| a + b),
        Op::Prod => each(operands, |a: T, b| a * b),
        Op::Min => each(operands, |a: T, b| if a < b { a } else { b }),
        Op::Max => each(operands, |a: T, b| if a > b { a } else { b }),
        _ => not_for("floating-point numbers", op),
    }
}

pub(super) fn complex<T: Float>(op: Op, operands: impl Operands) {
    match op {
        Op::Sum => each(operands, |a: T, b| a + b),
        Op::Prod => each(operands, |a: Complex<T>, b| {
            Complex(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
        }),
        _ => not_for("complex numbers", op),
    }
}

/// MINLOC and MAXLOC: of equal values, the one with the lower index is the result.
pub(super) fn located<V: Element + PartialOrd, I: Element + PartialOrd>(
    op: Op,
    operands: impl Operands,
) {
    let pick = |wins: bool, a: Located<V, I>, b: Located<V, I>| {
        if wins || (a.0 == b.0 && a.1 < b.1) {
            a
        } else {
            b
        }
    };
    match op {
        Op::Minloc => each(operands, |a: Located<V, I>, b| pick(a.0 < b.0, a, b)),
        Op::Maxloc => each(operands, |a: Located<V, I>, b| pick(a.0 > b.0, a, b)),
        _ => not_for("pairs", op),
    }
}

/// The least length of an operand, in bytes, for which wider vectors are worth the check whether
/// the processor has them.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 1 << 10;

#[inline(always)]
fn each<T: Element>(operands: impl Operands, combine: impl Fn(T, T) -> T) {
    #[cfg(target_arch = "x86_64")]
    if operands.len() >= LONG && is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { each_by_avx2(operands, combine) };
    }
    operands.each(combine);
}

/// [`each`], compiled for AVX2. No result changes: the compiler contracts no operations.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn each_by_avx2<T: Element>(operands: impl Operands, combine: impl Fn(T, T) -> T) {
    operands.each(combine);
}

/// Panics. `Op::permits` is checked before any loop starts, so a call is a bug in this crate.
#[cold]
fn not_for(kind: &str, op: Op) {
    unreachable!(
        "{} permitted for {kind}, but there is no loop for it",
        op.name()
    )
}

macro_rules! numbers {
    ($($ty:ty)*) => { $(
        impl Element for $ty {
            const SIZE: usize = size_of::<$ty>();
            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                <$ty>::from_ne_bytes(bytes.try_into().expect("chunks have the element's size"))
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )* };
}
numbers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 f32 f64 }

macro_rules! integers {
    ($($ty:ty)*) => { $(
        impl Integer for $ty {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0
            }
        }
    )* };
}
integers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 }

impl Float for f32 {}
impl Float for f64 {}

impl<T: Element> Element for Complex<T> {
    const SIZE: usize = 2 * T::SIZE;
    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Complex(T::load(&bytes[..T::SIZE]), T::load(&bytes[T::SIZE..]))
    }
    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        self.0.store(&mut bytes[..T::SIZE]);
        self.1.store(&mut bytes[T::SIZE..]);
    }
}

impl<V: Element, I: Element> Element for Located<V, I> {
    const SIZE: usize = V::SIZE + I::SIZE;
    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Located(V::load(&bytes[..V::SIZE]), I::load(&bytes[V::SIZE..]))
    }
    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        self.0.store(&mut bytes[..V::SIZE]);
        self.1.store(&mut bytes[V::SIZE..]);
    }
}
