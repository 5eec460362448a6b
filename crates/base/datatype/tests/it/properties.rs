//! Random datatypes against the reference: bounds, packing and unpacking in random pieces,
//! segments, slices, copies, counting of elements.

use crate::reference::{Recipe, Reference, recipe};
use datatype::{Buffer, Class, Direction, HandOver, Predefined, Type};
use proptest::prelude::*;

/// Memory that holds some elements, and the offset in it of each byte of data.
struct Memory {
    bytes: Vec<u8>,
    base: usize,
    places: Vec<usize>,
}

impl Memory {
    /// Every byte differs from its neighbours, so that a byte out of place shows.
    fn new(reference: &Reference, count: usize, seed: u8) -> Memory {
        let all = reference.repeat(count as i64, reference.extent());
        let (low, high) = all.true_bounds();
        let margin = 16;
        let base = (margin - low) as usize;
        let len = (high - low + 2 * margin) as usize;
        let bytes = (0..len)
            .map(|i| (i as u8).wrapping_mul(167).wrapping_add(seed))
            .collect();
        Memory {
            bytes,
            base,
            places: all
                .bytes
                .iter()
                .map(|at| (at + margin - low) as usize)
                .collect(),
        }
    }

    fn buffer(&mut self, count: usize, ty: &Type) -> Buffer {
        let base = self.bytes.as_mut_ptr().wrapping_add(self.base);
        // SAFETY: the vector covers all bytes of the elements, by the reference; each test uses the
        // buffer while the vector exists, and reads the vector only between uses.
        unsafe { Buffer::new(base, count, ty) }
    }

    fn packed(&self) -> Vec<u8> {
        self.places.iter().map(|at| self.bytes[*at]).collect()
    }
}

/// Cuts a length into (position, size) pieces, whose sizes are taken from the list cyclically.
fn pieces(len: usize, sizes: &[usize]) -> Vec<(usize, usize)> {
    let mut list = Vec::new();
    let mut at = 0;
    for size in sizes.iter().cycle() {
        if at >= len {
            break;
        }
        list.push((at, *size));
        at += size;
    }
    list
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1usize..20, 1usize..300], 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 10 } else { 4000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn bounds_and_sizes(recipe in recipe()) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        prop_assert_eq!(ty.size(), reference.bytes.len());
        prop_assert_eq!((ty.lb(), ty.ub(), ty.extent()), (reference.lb(), reference.ub(), reference.extent()));
        let (low, high) = true_bounds(&reference);
        prop_assert_eq!((ty.true_lb(), ty.true_extent()), (low, high - low));
        let elements: usize = reference.basics.iter().map(|(_, basic)| members(*basic).len()).sum();
        prop_assert_eq!(ty.num_elements(), elements);
        let first = reference.basics.first().map(|(_, basic)| *basic);
        let uniform = first.filter(|first| reference.basics.iter().all(|(_, basic)| basic == first));
        prop_assert_eq!(ty.basic(), uniform.or(ty.predefined()));
    }

    #[test]
    fn dense_means_what_it_says(recipe in recipe()) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let three = reference.repeat(3, reference.extent());
        let in_a_row = three.bytes.iter().enumerate().all(|(i, at)| *at == i as isize);
        if ty.is_dense() {
            prop_assert!(in_a_row);
        } else if !reference.bytes.is_empty() {
            prop_assert!(!in_a_row, "a dense type was not seen as one");
        }
    }

    #[test]
    fn packs_in_any_pieces(recipe in recipe(), count in 0usize..4, sizes in sizes()) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let mut memory = Memory::new(&reference, count, 1);
        let expected = memory.packed();
        let buffer = memory.buffer(count, &ty);
        prop_assert_eq!(buffer.len(), expected.len());
        let mut out = vec![0; expected.len()];
        for (at, size) in pieces(expected.len(), &sizes) {
            let end = (at + size).min(out.len());
            prop_assert_eq!(buffer.pack(at, &mut out[at..end]), end - at);
        }
        prop_assert_eq!(&out, &expected);
        prop_assert_eq!(buffer.pack(expected.len(), &mut [0; 8]), 0);
        prop_assert_eq!(buffer.pack(usize::MAX, &mut [0; 8]), 0);
    }

    #[test]
    fn unpacks_in_any_pieces_and_touches_nothing_else(recipe in recipe(), count in 0usize..4, sizes in sizes()) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let mut memory = Memory::new(&reference, count, 2);
        let data: Vec<u8> = (0..memory.places.len() + 64).map(|i| (i as u8).wrapping_mul(91)).collect();
        let mut expected = memory.bytes.clone();
        for (i, at) in memory.places.iter().enumerate() {
            expected[*at] = data[i];
        }
        let len = memory.places.len();
        let buffer = memory.buffer(count, &ty);
        for (at, size) in pieces(len, &sizes) {
            // The last piece is too long on purpose.
            prop_assert_eq!(buffer.unpack(at, &data[at..(at + size).min(data.len())]), size.min(len - at).min(data.len() - at));
        }
        prop_assert_eq!(buffer.unpack(len, &data), 0);
        drop(buffer);
        prop_assert_eq!(&memory.bytes, &expected);
    }

    #[test]
    fn segments_are_the_longest_runs(recipe in recipe(), count in 0usize..4, start in 0usize..200, max in 0usize..20) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let mut memory = Memory::new(&reference, count, 3);
        let buffer = memory.buffer(count, &ty);
        let first = memory.bytes.as_ptr().addr();
        let mut expected: Vec<(usize, usize)> = Vec::new();
        for at in memory.places.iter().skip(start).map(|at| first + at) {
            match expected.last_mut() {
                Some((last, len)) if *last + *len == at => *len += 1,
                _ => expected.push((at, 1)),
            }
        }
        expected.truncate(max);
        prop_assert_eq!(buffer.segments(start, max), expected);
    }

    #[test]
    fn slices_are_parts(recipe in recipe(), count in 0usize..4, start in 0usize..200, len in 0usize..200, inner in 0usize..50) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let mut memory = Memory::new(&reference, count, 4);
        let packed = memory.packed();
        let expected: Vec<u8> = packed.into_iter().skip(start).take(len).skip(inner).collect();
        let slice = memory.buffer(count, &ty).slice(start, len).slice(inner, usize::MAX);
        let mut out = vec![0; expected.len() + 8];
        prop_assert_eq!(slice.len(), expected.len());
        prop_assert_eq!(slice.pack(0, &mut out), expected.len());
        prop_assert_eq!(&out[..expected.len()], &expected);
    }

    #[test]
    fn copies_between_any_two_types(from in recipe(), to in recipe(), counts in (0usize..4, 0usize..4)) {
        let (from_ty, to_ty) = (from.build().unwrap(), to.build().unwrap());
        let mut source = Memory::new(&from.reference(), counts.0, 5);
        let mut target = Memory::new(&to.reference(), counts.1, 6);
        let mut expected = target.bytes.clone();
        for (at, byte) in target.places.iter().zip(source.packed()) {
            expected[*at] = byte;
        }
        let len = source.places.len().min(target.places.len());
        let (source, to) = (source.buffer(counts.0, &from_ty), target.buffer(counts.1, &to_ty));
        prop_assert_eq!(source.copy_to(&to), len);
        prop_assert_eq!(&target.bytes, &expected);
    }

    #[test]
    fn elements_of_partial_data(recipe in recipe(), bytes in 0usize..2000) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let members: Vec<usize> = reference.basics.iter().flat_map(|(_, basic)| members(*basic)).collect();
        let mut left = bytes;
        let mut expected = 0;
        for size in members.iter().cycle() {
            if *size > left {
                break;
            }
            left -= size;
            expected += 1;
        }
        if !members.is_empty() {
            prop_assert_eq!(ty.elements_in(bytes), expected);
        }
        let whole = reference.bytes.len();
        prop_assert_eq!(ty.count_in(whole * 3), Some(if whole == 0 { 0 } else { 3 }));
        if whole > 1 {
            prop_assert_eq!(ty.count_in(whole * 3 + 1), None);
        }
    }

    #[test]
    fn span_covers_all(recipe in recipe(), count in 0usize..4) {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let (low, high) = true_bounds(&reference.repeat(count as i64, reference.extent()));
        prop_assert_eq!(ty.span(count).unwrap(), (low, (high - low) as usize));
    }
}

fn true_bounds(reference: &Reference) -> (isize, isize) {
    reference.true_bounds()
}

/// Sizes of the basic elements that MPI_Get_elements sees in a predefined type.
fn members(ty: Predefined) -> Vec<usize> {
    let size = ty.size().unwrap();
    match ty.class() {
        Class::Pair => vec![size - 4, 4],
        _ => vec![size],
    }
}

/// A type of many pieces, so that the walk starts deep inside lists of every kind.
#[test]
fn long_lists_from_any_position() {
    let int = Box::new(Recipe::Basic(Predefined::INT));
    let many = if cfg!(miri) { 8 } else { 500 };
    let uneven: Vec<(i64, i64)> = (0..many).map(|i| (1 + i % 3, i * 5 - i % 2)).collect();
    let even: Vec<i64> = (0..many).map(|i| (i * 7) % (many + 1)).collect();
    let parts = (0..many / 10)
        .map(|i| {
            (
                i % 4,
                i as isize * 100,
                Recipe::Vector(3, 2, 4, int.clone()),
            )
        })
        .collect();
    for recipe in [
        Recipe::Indexed(uneven, int.clone()),
        Recipe::IndexedBlock(2, even, int.clone()),
        Recipe::Struct(parts),
    ] {
        let (ty, reference) = (recipe.build().unwrap(), recipe.reference());
        let mut memory = Memory::new(&reference, 2, 7);
        let packed = memory.packed();
        let buffer = memory.buffer(2, &ty);
        let mut out = [0; 23];
        for at in (0..packed.len() - out.len()).step_by(if cfg!(miri) { 31 } else { 1 }) {
            assert_eq!(buffer.pack(at, &mut out), out.len());
            assert_eq!(out, packed[at..at + out.len()], "{at}");
        }
    }
}

const BACKWARD: HandOver = HandOver {
    direction: Direction::Backward,
    by_strings: true,
};

/// Packing past the cache or backward copies the same bytes, for every alignment and every length
/// around the cache lines.
#[test]
fn packing_past_the_cache_or_backward_is_packing() {
    let source: Vec<u8> = (0..2000u32).map(|at| (at * 7 + at / 251) as u8).collect();
    // SAFETY: the source outlives the buffer, which is only read.
    let buffer = unsafe { Buffer::dense(source.as_ptr().cast_mut(), source.len()) };
    for start in 0..70 {
        for len in (0..70).chain([127, 128, 129, 1000, 1900]) {
            let position = (start * 3) % 60;
            for past_cache in [true, false] {
                let mut room = vec![0xaa; start + len + 3];
                let out = &mut room[start..start + len];
                let packed = match past_cache {
                    true => buffer.pack_past_cache(position, out),
                    false => buffer.hand_over(BACKWARD, position, out),
                };
                assert_eq!(packed, len);
                assert_eq!(room[start..start + len], source[position..position + len]);
                let mut around = room[..start].iter().chain(&room[start + len..]);
                assert!(around.all(|&byte| byte == 0xaa));
            }
            let mut place = vec![0xaa; start + len + 3];
            // SAFETY: the place outlives the buffer, which alone writes to it.
            let to = unsafe { Buffer::dense(place.as_mut_ptr(), start + len) };
            assert_eq!(
                to.unpack_in(Direction::Backward, start, &source[..len + 5]),
                len
            );
            assert_eq!(place[start..start + len], source[..len]);
            let mut around = place[..start].iter().chain(&place[start + len..]);
            assert!(around.all(|&byte| byte == 0xaa));
        }
    }
    assert_eq!(buffer.pack_past_cache(1990, &mut [0; 100]), 10);
    assert_eq!(buffer.hand_over(BACKWARD, 1990, &mut [0; 100]), 10);
}
