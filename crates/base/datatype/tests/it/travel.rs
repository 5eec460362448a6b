//! Tests of types that are described to another rank, and of elements within a run of memory.

use crate::reference::recipe;
use datatype::{Buffer, Kind, Predefined, Type, UNDEFINED};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_described_type_is_the_same_type(recipe in recipe()) {
        let ty = recipe.build().unwrap();
        let mut bytes = Vec::new();
        ty.describe(&mut bytes);
        prop_assert_eq!(ty.description_len(), bytes.len());
        let mut written = vec![0; bytes.len()];
        ty.describe_in(&mut written);
        prop_assert_eq!(&written, &bytes);
        let other = Type::described(&bytes).unwrap();
        prop_assert_eq!(ty.envelope(), other.envelope());
        prop_assert_eq!((ty.size(), ty.lb(), ty.extent()), (other.size(), other.lb(), other.extent()));
        prop_assert_eq!((ty.true_lb(), ty.true_extent()), (other.true_lb(), other.true_extent()));
        prop_assert_eq!(ty.basic(), other.basic());
        // Both types have every byte of their elements at the same address.
        let mut memory = vec![0u8; 1 << 16];
        let places = |ty: &Type, memory: &mut [u8]| {
            // SAFETY: the segments are only listed, no byte is touched.
            let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), 3, ty) };
            buffer.segments(0, usize::MAX)
        };
        prop_assert_eq!(places(&ty, &mut memory), places(&other, &mut memory));
        for len in 0..bytes.len() {
            prop_assert!(Type::described(&bytes[..len]).is_none());
        }
    }

    #[test]
    fn no_bytes_end_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Type::described(&bytes);
    }

    #[test]
    fn elements_within_a_run_never_leave_it(
        recipe in recipe(),
        len in 0usize..300,
        offset in -100isize..400,
        count in 0usize..4,
    ) {
        let ty = recipe.build().unwrap();
        let mut memory = vec![0u8; len];
        let start = memory.as_mut_ptr().addr();
        // SAFETY: the vector outlives the buffers.
        let run = unsafe { Buffer::dense(memory.as_mut_ptr(), len) };
        let (first, span) = ty.span(count).unwrap();
        let fits = offset + first >= 0 && offset + first + span as isize <= len as isize;
        match run.elements_within(offset, count, &ty) {
            None => prop_assert!(!fits),
            Some(buffer) => {
                prop_assert!(fits);
                prop_assert_eq!(buffer.len(), count * ty.size());
                for (address, bytes) in buffer.segments(0, usize::MAX) {
                    prop_assert!(address >= start && address + bytes <= start + len);
                }
                let data: Vec<u8> = (0..buffer.len()).map(|at| at as u8).collect();
                prop_assert_eq!(buffer.unpack(0, &data), data.len());
            }
        }
    }
}

/// Types of Fortran's kinds keep the precision and range that a program requested.
#[test]
fn a_described_kind_is_the_same_kind() {
    let (p, r) = (12, UNDEFINED);
    let kinds = [
        Kind::Real { p, r },
        Kind::Complex { p, r },
        Kind::Integer { r: 9 },
    ];
    for kind in kinds {
        let mut bytes = Vec::new();
        Type::f90(kind).unwrap().describe(&mut bytes);
        assert_eq!(Type::described(&bytes).unwrap().kind(), Some(kind));
        assert!(Type::described(&bytes[..bytes.len() - 1]).is_none());
    }
}

/// A peer may send a length for which no system has memory.
#[test]
fn memory_beyond_the_address_space_is_refused() {
    assert!(datatype::is_granted(1) && datatype::granted(100).is_some());
    for bytes in [1 << 60, 1 << 62, usize::MAX] {
        assert!(!datatype::is_granted(bytes) && datatype::granted(bytes).is_none());
    }
}

/// Elements keep the owner of their memory, even after the buffer of the whole memory is gone.
#[test]
fn elements_keep_the_owner_of_their_memory() {
    let memory = std::sync::Arc::new(std::sync::Mutex::new(vec![1u8; 64]));
    let base = memory.lock().unwrap().as_mut_ptr();
    // SAFETY: the owner keeps the vector, which is not touched otherwise.
    let run = unsafe { Buffer::owned(base, 64, memory.clone()) };
    let column = Type::vector(4, 1, 2, &Predefined::INT.into()).unwrap();
    let parts = [
        run.elements_within(8, 1, &column).unwrap(),
        run.elements_within(0, 2, &Predefined::INT.into()).unwrap(),
        run.slice(3, 4),
    ];
    drop(run);
    assert!(std::sync::Arc::strong_count(&memory) > 1);
    let mut out = [0; 16];
    assert_eq!(parts[0].pack(0, &mut out), 16);
    assert_eq!(out, [1; 16]);
    drop(parts);
    assert_eq!(std::sync::Arc::strong_count(&memory), 1);
}

/// Elements may lie in several runs; no byte may lie outside of all of them.
#[test]
fn elements_over_several_runs_are_in_them() {
    let mut memory = [0u8; 64];
    let start = memory.as_mut_ptr();
    let run = |at: usize, len| {
        // SAFETY: the runs lie in the array, which outlives them.
        unsafe { Buffer::dense(start.wrapping_add(at), len) }
    };
    let runs = [run(0, 10), run(10, 10), run(30, 20)];
    let holding = |address: usize| {
        let holds = |run: &&Buffer| {
            let (start, len) = run.as_dense().unwrap();
            (start..start + len).contains(&address)
        };
        runs.iter().find(holds)
    };
    let byte = Predefined::BYTE.into();
    let at = |offset: usize| start.addr() + offset;
    let over = |offset, count, ty: &Type| Buffer::elements_over(holding, at(offset), count, ty);
    assert_eq!(over(0, 20, &byte).unwrap().len(), 20);
    assert!(over(0, 21, &byte).is_none() && over(25, 6, &byte).is_none());
    assert_eq!(over(60, 0, &byte).unwrap().len(), 0);
    let apart = Type::vector(2, 8, 30, &byte).unwrap();
    let both = over(5, 1, &apart).unwrap();
    assert_eq!(both.unpack(0, &[1; 16]), 16);
    assert!(over(15, 1, &apart).is_none());
    let expected = |at: usize| u8::from((5..13).contains(&at) || (35..43).contains(&at));
    assert!((0..64).all(|at| memory[at] == expected(at)));
}
