//! Buffers of MPI over slices of the tests.

use std::sync::LazyLock;

use datatype::{Buffer, Elements, Predefined, Type};

/// A send buffer over a slice. The bytes must outlive the operation.
pub(crate) fn out(bytes: &[u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation is complete, and a send does not write.
    unsafe { Buffer::dense(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// A receive buffer over a slice. The bytes must outlive the operation.
pub(crate) fn room(bytes: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation is complete, and read them afterwards.
    unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) }
}

/// A buffer of `count` elements that begin at the slice's address.
pub(crate) fn typed(bytes: &mut [u8], count: usize, ty: &Type) -> Buffer {
    elements(bytes, count, ty).buffer()
}

/// `count` elements that begin at the slice's address.
pub(crate) fn elements(bytes: &mut [u8], count: usize, ty: &Type) -> Elements {
    assert!(bytes.len() >= count * ty.extent() as usize);
    // SAFETY: the tests keep the bytes until the operation is complete, and read them afterwards.
    unsafe { Elements::new(bytes.as_mut_ptr(), count, ty) }
}

/// The length of [`PATTERN`]: prime, so that no block of a message equals the one before.
const PERIOD: usize = 8191;

/// Bytes of which pieces are copied, because tests spend much of their time on patterns.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let bytes = (0..PERIOD).map(|at| (at * 7 + at / 255) as u8);
    bytes.collect()
});

/// Test bytes that depend on `seed`, so that the sender of a message can be recognized.
pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    let mut from = seed * 13 % PERIOD;
    while bytes.len() < len {
        let piece = &PATTERN[from..];
        bytes.extend_from_slice(&piece[..piece.len().min(len - bytes.len())]);
        from = 0;
    }
    bytes
}

/// A datatype of four integers, three in a row and one behind a gap, with an extent of 32 bytes.
pub(crate) fn gapped() -> Type {
    let four = Type::indexed(&[3, 1], &[0, 4], &Predefined::INT.into()).unwrap();
    Type::resized(0, 32, &four).unwrap()
}
