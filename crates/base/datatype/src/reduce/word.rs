//! Operations on one number of four or eight bytes, in registers, and by atomics.

use super::kernel::{Element, Operands, float, integer};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::op::Op;
use crate::predefined::{Format, Predefined};

/// Combines one element of 4 or 8 bytes that is aligned to its size: inout = input op inout. `old`
/// gets the previous contents of inout. Returns false, without a change, if the type has another
/// size or no such operation here, or if a buffer is not one run with an aligned element. The
/// operation must be defined for the type.
///
/// # Panics
/// If one of the buffers is shorter than the element.
#[inline(always)]
pub fn reduce_word(
    op: Op,
    ty: Predefined,
    input: &Buffer,
    (inout, position): (&Buffer, usize),
    old: Option<&Buffer>,
) -> bool {
    let place = (inout, position);
    match ty.bytes() {
        8 => apply::<u64>(op, ty, long, input, place, old),
        4 => apply::<u32>(op, ty, short, input, place, old),
        _ => false,
    }
}

/// Adds to an aligned integer of 8 bytes by an atomic instruction. Returns the value before.
/// `None`: the integer is not aligned, or the buffer is not one run.
///
/// # Panics
/// If the buffer is too short.
#[inline]
pub fn add_atomically((place, position): (&Buffer, usize), operand: u64) -> Option<u64> {
    let place = place.one::<u64>(position)?.place();
    // SAFETY: aligned and within memory of the buffer, which others change by atomics only.
    Some(unsafe { AtomicU64::from_ptr(place) }.fetch_add(operand, Ordering::SeqCst))
}

/// Replaces an aligned integer of 8 bytes by `new` if it equals `expected`, by an atomic
/// instruction. Returns the value before. `None`: the integer is not aligned, or the buffer is not
/// one run.
///
/// # Panics
/// If the buffer is too short.
#[inline]
pub fn swap_atomically(
    (place, position): (&Buffer, usize),
    expected: u64,
    new: u64,
) -> Option<u64> {
    let place = place.one::<u64>(position)?.place();
    // SAFETY: aligned and within memory of the buffer, which others change by atomics only.
    let place = unsafe { AtomicU64::from_ptr(place) };
    let order = Ordering::SeqCst;
    match place.compare_exchange(expected, new, order, order) {
        Ok(old) | Err(old) => Some(old),
    }
}

/// Replaces an aligned number of 4 or 8 bytes by `new` if its bytes equal those of `expected`.
/// `old` gets the previous bytes. Returns false, without a change, if the number has another
/// length, or if a buffer is not one run with an aligned number.
///
/// # Panics
/// If one of the buffers is shorter than the number.
#[inline(always)]
pub fn swap_word(
    bytes: usize,
    place: (&Buffer, usize),
    [expected, new, old]: [&Buffer; 3],
) -> bool {
    match bytes {
        8 => swap::<u64>(place, [expected, new, old]),
        4 => swap::<u32>(place, [expected, new, old]),
        _ => false,
    }
}

#[inline(always)]
fn swap<T: Copy + PartialEq>(
    (place, position): (&Buffer, usize),
    [expected, new, old]: [&Buffer; 3],
) -> bool {
    let (Some(place), Some(expected)) = (place.one::<T>(position), expected.one::<T>(0)) else {
        return false;
    };
    let (Some(new), Some(old)) = (new.one::<T>(0), old.one::<T>(0)) else {
        return false;
    };
    let before = place.load();
    if before == expected.load() {
        place.store(new.load());
    }
    old.store(before);
    true
}

#[inline(always)]
fn apply<T: Copy>(
    op: Op,
    ty: Predefined,
    combine: impl FnOnce(Op, Predefined, T, T) -> Option<T>,
    input: &Buffer,
    (inout, position): (&Buffer, usize),
    old: Option<&Buffer>,
) -> bool {
    let (Some(input), Some(place)) = (input.one::<T>(0), inout.one::<T>(position)) else {
        return false;
    };
    let kept = match old.map(|old| old.one::<T>(0)) {
        Some(None) => return false,
        Some(Some(kept)) => Some(kept),
        None => None,
    };
    let before = place.load();
    let Some(combined) = combine(op, ty, input.load(), before) else {
        return false;
    };
    if let Some(kept) = kept {
        kept.store(before);
    }
    // NO_OP only reads: a store could undo a change by another.
    if op != Op::NoOp {
        place.store(combined);
    }
    true
}

#[inline(always)]
fn long(op: Op, ty: Predefined, new: u64, old: u64) -> Option<u64> {
    // The most common operations.
    let format = ty.format();
    match (op, format) {
        (Op::Sum, Format::I64 | Format::U64) => Some(new.wrapping_add(old)),
        (Op::Sum, Format::F64) => Some((f64::from_bits(new) + f64::from_bits(old)).to_bits()),
        (Op::Replace, _) => Some(new),
        (Op::NoOp, _) => Some(old),
        _ => other_long(op, format, new, old),
    }
}

#[inline(never)]
fn other_long(op: Op, format: Format, new: u64, old: u64) -> Option<u64> {
    let mut result = new;
    let word = Word(new.to_ne_bytes(), old.to_ne_bytes(), &mut result);
    match format {
        Format::I64 => integer::<i64>(op, word),
        Format::U64 => integer::<u64>(op, word),
        Format::F64 => float::<f64>(op, word),
        _ => return None,
    }
    Some(result)
}

#[inline(never)]
fn short(op: Op, ty: Predefined, new: u32, old: u32) -> Option<u32> {
    let mut result = new;
    let word = Word(new.to_ne_bytes(), old.to_ne_bytes(), &mut result);
    match (op, ty.format()) {
        (Op::Replace, _) => {}
        (Op::NoOp, _) => return Some(old),
        (_, Format::I32) => integer::<i32>(op, word),
        (_, Format::U32) => integer::<u32>(op, word),
        (_, Format::F32) => float::<f32>(op, word),
        _ => return None,
    }
    Some(result)
}

/// Two operands in registers, and the variable that gets the result.
struct Word<'a, T, const BYTES: usize>([u8; BYTES], [u8; BYTES], &'a mut T);

macro_rules! words {
    ($($word:ty)*) => { $(
        impl Operands for Word<'_, $word, { size_of::<$word>() }> {
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn len(&self) -> usize {
                size_of::<$word>()
            }

            #[inline(always)]
            fn each<T: Element>(self, combine: impl Fn(T, T) -> T) {
                let mut bytes = [0; size_of::<$word>()];
                combine(T::load(&self.0), T::load(&self.1)).store(&mut bytes);
                *self.2 = <$word>::from_ne_bytes(bytes);
            }
        }
    )* };
}
words! { u32 u64 }

#[cfg(test)]
mod tests {
    use super::super::reduce_bytes;
    use super::*;

    #[test]
    fn one_number_is_combined_as_a_vector_is() {
        let mut combined = 0;
        for (op, ty) in Op::ALL
            .into_iter()
            .flat_map(|op| Predefined::all().map(move |ty| (op, ty)))
            .filter(|(op, ty)| op.permits(*ty))
        {
            for bits in [
                [3, 5],
                [u64::MAX, 1],
                [0, 0x7ff8_0000_0000_0000],
                [1 << 63, 1 << 31],
            ] {
                let mut words = [bits[0], bits[1], 0];
                let [input, inout, old] = [0, 1, 2].map(|at| {
                    // SAFETY: the words outlive the buffers, and nobody else uses them meanwhile.
                    unsafe { Buffer::dense((&raw mut words[at]).cast(), ty.bytes().min(8)) }
                });
                let was_combined = reduce_word(op, ty, &input, (&inout, 0), Some(&old));
                let mut expected = bits[1].to_ne_bytes();
                if was_combined {
                    let len = ty.bytes();
                    let input = bits[0].to_ne_bytes();
                    reduce_bytes(op, ty, &input[..len], &mut expected[..len]).unwrap();
                    assert_eq!(words[2].to_ne_bytes()[..len], bits[1].to_ne_bytes()[..len]);
                    combined += 1;
                }
                assert_eq!(words[1].to_ne_bytes(), expected, "{op:?} {ty:?}");
            }
        }
        assert!(combined > 100, "{combined}");
    }

    #[test]
    fn numbers_that_are_not_aligned_are_left_alone() {
        let mut words = [1u64, 2, 3];
        // SAFETY: the words outlive the buffer, and nobody else uses them meanwhile.
        let all = unsafe { Buffer::dense(words.as_mut_ptr().cast(), size_of_val(&words)) };
        let one = all.slice(0, 8);
        assert!(!reduce_word(
            Op::Sum,
            Predefined::INT64_T,
            &one,
            (&all, 12),
            None
        ));
        assert!(reduce_word(
            Op::Sum,
            Predefined::INT64_T,
            &one,
            (&all, 16),
            None
        ));
        assert_eq!(words, [1, 2, 4]);
        assert_eq!(add_atomically((&all, 12), 1), None);
        assert_eq!(add_atomically((&all, 8), 5), Some(2));
        assert_eq!(swap_atomically((&all, 8), 6, 9), Some(7));
        assert_eq!(swap_atomically((&all, 8), 7, 9), Some(7));
        assert_eq!(words, [1, 9, 4]);
        let [expected, new, old] = [1u64, 2, 0].map(|word| {
            let word = Box::leak(Box::new(word));
            // SAFETY: the word stays for ever, and nobody else uses it.
            unsafe { Buffer::dense((&raw mut *word).cast(), 8) }
        });
        let sides = [&expected, &new, &old];
        assert!(!swap_word(8, (&all, 4), sides) && !swap_word(3, (&all, 0), sides));
        for (at, after) in [(8, [1, 9, 4]), (0, [2, 9, 4])] {
            assert!(swap_word(8, (&all, at), sides));
            assert_eq!(words, after);
        }
        let mut before = [0; 8];
        old.pack(0, &mut before);
        assert_eq!(u64::from_ne_bytes(before), 1);
    }
}
