//! The time of work on this computer, for a recording.

use std::time::{Duration, Instant};

use super::LocalWork;
use super::rates::AMOUNT;
use crate::buffer::Buffer;
use crate::reduce::reduce_bytes;
use crate::types::Type;
use crate::{Predefined, external32};

/// The longest vector that is worked on, in bytes: beyond that, lengths make no difference.
const LONGEST: usize = 32 << 20;
/// The most memory that runs are spread over, in bytes.
const WIDEST: usize = 128 << 20;
/// The time of one sample, at least: many times the time of reading the clock.
const SAMPLE: Duration = Duration::from_micros(20);
/// Samples of each kind and class, at least and at most, and the time after which there are enough.
const SAMPLES: (usize, usize, Duration) = (5, 33, Duration::from_millis(4));

/// The picoseconds of 1,024 bytes of work on a vector in the middle of a class. `None`: only the
/// program knows its functions.
pub(super) fn measure(work: LocalWork, class: u32) -> Option<u64> {
    let length = 1usize.checked_shl(class).unwrap_or(LONGEST);
    let length = (length + length / 2).min(LONGEST);
    match work {
        LocalWork::Copy => {
            let (from, mut to) = (vec![1u8; length], vec![2u8; length]);
            Some(per_amount(length, || {
                to.copy_from_slice(std::hint::black_box(&from));
                std::hint::black_box(&mut to);
            }))
        }
        LocalWork::Combine(op, ty) => {
            let length = length.next_multiple_of(ty.bytes());
            // Zeros are numbers of every type, and remain what they are.
            let (input, mut inout) = (touched(length), touched(length));
            Some(per_amount(length, || {
                let done = reduce_bytes(op, ty, std::hint::black_box(&input), &mut inout);
                debug_assert!(done.is_ok());
                std::hint::black_box(&mut inout);
            }))
        }
        LocalWork::Strided { run, stride } => strided(length, run as usize, stride as usize),
        LocalWork::Convert => {
            let ty = Type::from(Predefined::DOUBLE);
            let length = length.next_multiple_of(ty.size());
            let (mut from, mut to) = (touched(length), touched(length));
            // SAFETY: the vector outlives the buffer, and nobody else uses it meanwhile.
            let buffer = unsafe { Buffer::dense(from.as_mut_ptr(), length) };
            Some(per_amount(length, || {
                let done = external32::pack(&ty, std::hint::black_box(&buffer), &mut to);
                debug_assert!(done.is_ok());
                std::hint::black_box(&mut to);
            }))
        }
        LocalWork::Function(_) => None,
    }
}

/// The picoseconds of 1,024 bytes that are packed from runs.
fn strided(length: usize, run: usize, stride: usize) -> Option<u64> {
    let (run, stride) = (run.max(1), stride.max(run).max(1));
    let count = (length / run).clamp(1, (WIDEST / stride).max(1));
    let (span, length) = ((count - 1) * stride + run, count * run);
    let byte = Type::from(Predefined::BYTE);
    let ty = Type::hvector(count as i64, run as i64, stride as isize, &byte).ok()?;
    let (mut from, mut to) = (touched(span), touched(length));
    // SAFETY: the vector holds all runs and outlives the buffer, and nobody else uses it meanwhile.
    let buffer = unsafe { Buffer::new(from.as_mut_ptr(), 1, &ty) };
    Some(per_amount(length, || {
        std::hint::black_box(&buffer).pack(0, &mut to);
        std::hint::black_box(&mut to);
    }))
}

/// Zeros in memory whose pages are there.
fn touched(length: usize) -> Vec<u8> {
    let mut bytes = vec![1; length];
    std::hint::black_box(&mut bytes).fill(0);
    bytes
}

/// The picoseconds of 1,024 bytes of `work`, which works on `length` bytes: the median of samples.
fn per_amount(length: usize, mut work: impl FnMut()) -> u64 {
    work();
    let started = Instant::now();
    work();
    let once = started.elapsed().max(Duration::from_nanos(1));
    let times = SAMPLE
        .as_nanos()
        .div_ceil(once.as_nanos())
        .clamp(1, 1 << 14) as u32;
    let (least, most, enough) = SAMPLES;
    let (started, mut samples) = (Instant::now(), Vec::new());
    while samples.len() < least || samples.len() < most && started.elapsed() < enough {
        let before = Instant::now();
        (0..times).for_each(|_| work());
        samples.push(before.elapsed());
    }
    samples.sort_unstable();
    let bytes = length.max(1) as u128 * u128::from(times);
    let picos = samples[samples.len() / 2].as_nanos() * 1000;
    u64::try_from(picos * u128::from(AMOUNT) / bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn every_kind_but_a_function_has_a_time() {
        let strided = LocalWork::Strided { run: 8, stride: 64 };
        let of_zero = LocalWork::Strided { run: 0, stride: 0 };
        let minloc = LocalWork::Combine(Op::Minloc, Predefined::LONG_DOUBLE_INT);
        for (work, class) in [
            (LocalWork::Copy, 0),
            (LocalWork::Copy, 12),
            (minloc, 3),
            (strided, 10),
            (of_zero, 10),
            (LocalWork::Convert, 6),
        ] {
            assert!(measure(work, class) > Some(0), "{work}");
        }
        assert_eq!(measure(LocalWork::Function(0), 3), None);
    }
}
