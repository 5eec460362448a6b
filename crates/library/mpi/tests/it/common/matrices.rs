//! A reduction that is associative but not commutative: the product of 2 x 2 matrices.

use std::sync::Arc;

use datatype::Type;
use datatype::reduce::Function;
use mpi::op::Operation;

/// Multiplies 2 x 2 matrices of wrapping integers: `low` becomes low x high. Written out, because
/// tests spend their time here.
pub(crate) fn multiply(low: &mut [u8], high: &[u8]) {
    for (low, high) in low.chunks_exact_mut(16).zip(high.chunks_exact(16)) {
        let ([a, b, c, d], [e, f, g, h]) = (numbers(low), numbers(high));
        let sum = |a: u32, b: u32, c: u32, d: u32| {
            u128::from(a.wrapping_mul(b).wrapping_add(c.wrapping_mul(d)))
        };
        let first = sum(a, e, b, g) | sum(a, f, b, h) << 32;
        let second = sum(c, e, d, g) | sum(c, f, d, h) << 32;
        low.copy_from_slice(&(first | second << 64).to_le_bytes());
    }
}

fn numbers(bytes: &[u8]) -> [u32; 4] {
    let all = u128::from_le_bytes(bytes.try_into().unwrap());
    [
        all as u32,
        (all >> 32) as u32,
        (all >> 64) as u32,
        (all >> 96) as u32,
    ]
}

/// The product of matrices as a user's operation, on four integers in a row or on elements of
/// [`gapped`](super::gapped).
pub(crate) fn matrix_product(with_gaps: bool) -> Operation {
    let (stride, last) = if with_gaps { (32, 16) } else { (16, 12) };
    let call = move |input: *const u8, inout: *mut u8, count: usize, ty: &Type, handle: usize| {
        assert_eq!((ty.size(), ty.extent(), handle), (16, stride as isize, 77));
        for element in 0..count {
            // SAFETY: an element's four integers lie at 0, 4, 8 and `last`.
            unsafe {
                let (input, inout) = (input.add(element * stride), inout.add(element * stride));
                let load = |from: *const u8| {
                    let mut packed = [0; 16];
                    packed[..12].copy_from_slice(std::slice::from_raw_parts(from, 12));
                    packed[12..].copy_from_slice(std::slice::from_raw_parts(from.add(last), 4));
                    packed
                };
                let (mut low, high) = (load(input), load(inout));
                multiply(&mut low, &high);
                std::slice::from_raw_parts_mut(inout, 12).copy_from_slice(&low[..12]);
                std::slice::from_raw_parts_mut(inout.add(last), 4).copy_from_slice(&low[12..]);
            }
        }
    };
    // SAFETY: it touches the elements' integers only.
    let function = Arc::new(unsafe { Function::new(call) });
    Operation::User {
        function,
        commutative: false,
        datatype: 77,
    }
}
