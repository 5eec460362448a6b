//! Measurements of local work on this computer, for a recording.

use std::sync::PoisonError;

use super::kind::LocalWork;
use super::meter::{Meter, Row};
use super::rates::AMOUNT;
use crate::buffer::Buffer;
use crate::external32;
use crate::predefined::Predefined;
use crate::reduce::reduce_bytes;
use crate::types::Type;

/// The length of the longest vector that is measured, in bytes: beyond it, rates do not change.
const LONGEST: usize = 32 << 20;
/// The greatest span that the runs of a measured packing have, in bytes.
const WIDEST: usize = 128 << 20;
/// The least duration of one sample, in nanoseconds: many times that of reading a clock.
const SAMPLE: u64 = 50_000;
/// The least and the greatest number of samples of each kind and class, and the total time in
/// nanoseconds after which no more are taken.
const SAMPLES: (usize, usize, u64) = (5, 33, 4_000_000);

/// A function that returns the processor time of this process in nanoseconds.
pub type Clock = fn() -> u64;

impl Meter {
    /// The recorded kinds of work: the functions of the program with their measured times, and each
    /// other kind for which `is_new` is true, with its time on this computer, which is measured
    /// now. Empty if the meter does not record.
    pub fn rows(&self, clock: Clock, mut is_new: impl FnMut(u64, u32) -> bool) -> Vec<Row> {
        let Some(used) = &self.used else {
            return Vec::new();
        };
        let used = used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for (&(code, class), &sums) in used.iter() {
            let [amount, picos] = match LocalWork::decode(code) {
                Some(LocalWork::Function(_)) => sums,
                Some(work) if is_new(code, class) => match measure(work, class, clock) {
                    Some(picos) => [AMOUNT, picos],
                    None => continue,
                },
                _ => continue,
            };
            rows.push([code, class.into(), amount, picos]);
        }
        rows
    }
}

/// The time in picoseconds of 1,024 bytes of work on a vector with a length in the middle of a
/// class. `None` for a function, which only the program knows.
fn measure(work: LocalWork, class: u32, clock: Clock) -> Option<u64> {
    let length = 1usize.checked_shl(class).unwrap_or(LONGEST);
    let length = (length + length / 2).min(LONGEST);
    match work {
        LocalWork::Copy => {
            let (from, mut to) = (vec![1u8; length], vec![2u8; length]);
            Some(per_amount(length, clock, || {
                to.copy_from_slice(std::hint::black_box(&from));
                std::hint::black_box(&mut to);
            }))
        }
        LocalWork::Combine(op, ty) => {
            let length = length.next_multiple_of(ty.bytes());
            // Zeros are valid numbers of every type, and the operations do not change them.
            let (input, mut inout) = (touched(length), touched(length));
            Some(per_amount(length, clock, || {
                let done = reduce_bytes(op, ty, std::hint::black_box(&input), &mut inout);
                debug_assert!(done.is_ok());
                std::hint::black_box(&mut inout);
            }))
        }
        LocalWork::Strided { run, stride } => {
            strided(length, (run as usize, stride as usize), clock)
        }
        LocalWork::Convert => {
            let ty = Type::from(Predefined::DOUBLE);
            let length = length.next_multiple_of(ty.size());
            let (mut from, mut to) = (touched(length), touched(length));
            // SAFETY: the vector outlives the buffer, and nobody else uses it meanwhile.
            let buffer = unsafe { Buffer::dense(from.as_mut_ptr(), length) };
            Some(per_amount(length, clock, || {
                let done = external32::pack(&ty, std::hint::black_box(&buffer), &mut to);
                debug_assert!(done.is_ok());
                std::hint::black_box(&mut to);
            }))
        }
        LocalWork::Function(_) => None,
    }
}

/// The time in picoseconds of packing 1,024 bytes from runs.
fn strided(length: usize, (run, stride): (usize, usize), clock: Clock) -> Option<u64> {
    let (run, stride) = (run.max(1), stride.max(run).max(1));
    let count = (length / run).clamp(1, (WIDEST / stride).max(1));
    let (span, length) = ((count - 1) * stride + run, count * run);
    let byte = Type::from(Predefined::BYTE);
    let ty = Type::hvector(count as i64, run as i64, stride as isize, &byte).ok()?;
    let (mut from, mut to) = (touched(span), touched(length));
    // SAFETY: the vector holds all runs and outlives the buffer, and nobody else uses it meanwhile.
    let buffer = unsafe { Buffer::new(from.as_mut_ptr(), 1, &ty) };
    Some(per_amount(length, clock, || {
        std::hint::black_box(&buffer).pack(0, &mut to);
        std::hint::black_box(&mut to);
    }))
}

/// Memory full of zeros. All its pages have been touched.
fn touched(length: usize) -> Vec<u8> {
    let mut bytes = vec![1; length];
    std::hint::black_box(&mut bytes).fill(0);
    bytes
}

/// The time in picoseconds of 1,024 bytes of `work`, which works on `length` bytes: the median of
/// samples.
fn per_amount(length: usize, clock: Clock, mut work: impl FnMut()) -> u64 {
    let mut time = |times: u64| {
        let before = clock();
        (0..times).for_each(|_| work());
        clock().saturating_sub(before)
    };
    // The first call warms the caches.
    time(1);
    let times = SAMPLE.div_ceil(time(1).max(1)).clamp(1, 1 << 14);
    let (least, most, enough) = SAMPLES;
    let mut samples = Vec::new();
    while samples.len() < least || samples.len() < most && samples.iter().sum::<u64>() < enough {
        samples.push(time(times));
    }
    samples.sort_unstable();
    let picos = u128::from(samples[samples.len() / 2]) * 1000 * u128::from(AMOUNT);
    let bytes = length.max(1) as u128 * u128::from(times);
    u64::try_from(picos / bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Each reading is a millisecond after the one before.
    fn clock() -> u64 {
        static READINGS: AtomicU64 = AtomicU64::new(0);
        READINGS.fetch_add(1_000_000, Ordering::Relaxed)
    }

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
            assert!(measure(work, class, clock) > Some(0), "{work}");
        }
        assert_eq!(measure(LocalWork::Function(0), 3, clock), None);
    }
}
