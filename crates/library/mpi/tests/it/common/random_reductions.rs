//! Random reductions: types, operations and values, and the results that one process computes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use datatype::reduce::Function;
use datatype::{Op, Predefined, Type};
use mpi::op::Operation;

use super::random_collectives::Case;
use super::{gapped, matrix_product, multiply};

/// Results of reductions, which the first rank that needs one computes for all.
#[derive(Default)]
pub(crate) struct Results(Mutex<HashMap<Key, Arc<Vec<u8>>>>);

/// A case's seed, the number of ranks, and the bytes.
type Key = (u64, usize, usize);

impl Results {
    /// The combined data of the first `ranks` ranks.
    pub(super) fn of(&self, case: &Case, ranks: usize, bytes: usize) -> Arc<Vec<u8>> {
        let mut all = self.0.lock().unwrap();
        let compute = || {
            let sample = sample(case.sample);
            let mut low = sample.values(case, 0, bytes);
            for rank in 1..ranks {
                (sample.combine)(&mut low, &sample.values(case, rank, bytes));
            }
            Arc::new(low)
        };
        all.entry((case.seed, ranks, bytes))
            .or_insert_with(compute)
            .clone()
    }
}

/// A reduction: its type and operation, and its meaning for packed elements.
pub(super) struct Sample {
    pub(super) ty: Type,
    pub(super) op: Operation,
    combine: fn(&mut [u8], &[u8]),
}

/// Number of samples.
pub(super) const SAMPLES: usize = 6;

/// The sample with this number.
pub(super) fn sample(number: usize) -> Sample {
    let predefined = |ty: Predefined, op, combine| Sample {
        ty: ty.into(),
        op: Operation::Predefined(op),
        combine,
    };
    match number {
        0 => predefined(Predefined::UINT64_T, Op::Sum, add),
        1 => predefined(Predefined::UINT8_T, Op::Max, |low, high| {
            each(low, high, |low, high| low.max(high))
        }),
        2 => predefined(Predefined::DOUBLE_INT, Op::Maxloc, largest),
        3 => Sample {
            ty: Type::contiguous(4, &Predefined::INT.into()).unwrap(),
            op: matrix_product(false),
            combine: multiply,
        },
        4 => Sample {
            ty: gapped(),
            op: matrix_product(true),
            combine: multiply,
        },
        _ => Sample {
            ty: Type::contiguous(3, &Predefined::UINT8_T.into()).unwrap(),
            op: exclusive_or(),
            combine: |low, high| each(low, high, |low, high| low ^ high),
        },
    }
}

impl Sample {
    /// The packed contribution of a rank.
    pub(super) fn values(&self, case: &Case, rank: usize, bytes: usize) -> Vec<u8> {
        let mut data = case.data(rank, bytes);
        if self.ty.predefined() == Some(Predefined::DOUBLE_INT) {
            // Few values, so that positions decide.
            for pair in data.chunks_exact_mut(PAIR) {
                let (value, at) = (f64::from(pair[0] % 4), i32::from(pair[1]));
                pair[..8].copy_from_slice(&value.to_ne_bytes());
                pair[8..].copy_from_slice(&at.to_ne_bytes());
            }
        }
        data
    }
}

/// Packed bytes of a double and a position.
pub(super) const PAIR: usize = 12;

fn each(low: &mut [u8], high: &[u8], combine: impl Fn(u8, u8) -> u8) {
    for (low, high) in low.iter_mut().zip(high) {
        *low = combine(*low, *high);
    }
}

fn add(low: &mut [u8], high: &[u8]) {
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    for (low, high) in low.chunks_exact_mut(8).zip(high.chunks_exact(8)) {
        low.copy_from_slice(&number(low).wrapping_add(number(high)).to_ne_bytes());
    }
}

fn largest(low: &mut [u8], high: &[u8]) {
    let parts = |pair: &[u8]| {
        let value = f64::from_ne_bytes(pair[..8].try_into().unwrap());
        (value, i32::from_ne_bytes(pair[8..].try_into().unwrap()))
    };
    for (low, high) in low.chunks_exact_mut(PAIR).zip(high.chunks_exact(PAIR)) {
        let ((ours, at), (theirs, other)) = (parts(low), parts(high));
        if theirs > ours || theirs == ours && other < at {
            low.copy_from_slice(high);
        }
    }
}

/// A user's operation that commutes.
fn exclusive_or() -> Operation {
    let call = |input: *const u8, inout: *mut u8, count: usize, ty: &Type, _: usize| {
        let bytes = count * ty.size();
        // SAFETY: the elements are dense.
        let (input, inout) = unsafe {
            (
                std::slice::from_raw_parts(input, bytes),
                std::slice::from_raw_parts_mut(inout, bytes),
            )
        };
        each(inout, input, |low, high| low ^ high);
    };
    Operation::User {
        // SAFETY: it touches the elements only.
        function: Arc::new(unsafe { Function::new(call) }),
        commutative: true,
        datatype: 0,
    }
}
