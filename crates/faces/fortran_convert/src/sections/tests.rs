//! Tests of sections of every rank, compared with copies that are made element by element.

use super::section::{Dimension, MOST_DIMENSIONS, Section};
use proptest::prelude::*;

/// The greatest number of bytes of an array.
const MOST_BYTES: usize = 8192;

/// An array of bytes, and the dimensions of a section of it.
#[derive(Debug, Clone)]
struct Case {
    element: usize,
    dimensions: Vec<Dimension>,
    first: usize,
    memory: usize,
}

/// Whole arrays with extents 1 to 4, and sections of them with positive, negative or no stride.
fn cases() -> impl Strategy<Value = Case> {
    let dimension = (1..=4usize, 1..=2usize, any::<bool>(), 0..=60usize);
    let dimensions = prop::collection::vec(dimension, 0..=MOST_DIMENSIONS);
    (1..=9usize, 0..=3usize, dimensions).prop_map(|(element, gap, all)| {
        let (mut stride, mut first, mut dimensions) = (element + gap, 0, Vec::new());
        for (whole, step, backwards, empty) in all {
            // The size stays small, whatever the rank.
            let whole = if stride * whole > MOST_BYTES {
                1
            } else {
                whole
            };
            let extent = if empty == 0 { 0 } else { whole.div_ceil(step) };
            let step = (stride * step) as isize;
            first += if backwards {
                extent.saturating_sub(1) * step as usize
            } else {
                0
            };
            dimensions.push(Dimension {
                extent,
                stride: if backwards { -step } else { step },
            });
            stride *= whole;
        }
        Case {
            element,
            dimensions,
            first,
            memory: stride,
        }
    })
}

impl Case {
    fn section(&self, memory: &mut [u8]) -> Section {
        let mut section = Section::scalar(memory[self.first..].as_mut_ptr(), self.element);
        for dimension in &self.dimensions {
            section.push(*dimension);
        }
        section
    }

    /// The positions of all bytes in array element order.
    fn positions(&self) -> Vec<usize> {
        let extents = self.dimensions.iter().map(|dimension| dimension.extent);
        let mut positions = Vec::new();
        for number in 0..extents.product() {
            let (mut rest, mut at) = (number, self.first as isize);
            for dimension in &self.dimensions {
                at += (rest % dimension.extent) as isize * dimension.stride;
                rest /= dimension.extent;
            }
            positions.extend((0..self.element).map(|byte| at as usize + byte));
        }
        positions
    }
}

/// Memory whose bytes differ from their neighbours.
fn filled(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// The offsets from the address of the bytes that a prefix describes.
fn places_of_prefix(section: &Section, bytes: usize) -> Vec<isize> {
    let prefix = section.prefix(bytes);
    let run = |places: &mut Vec<isize>, offset: isize, bytes: usize| {
        places.extend((0..bytes).map(|byte| offset + byte as isize));
    };
    let mut places = Vec::new();
    for piece in prefix.pieces {
        for number in 0..piece.count {
            let mut slab = Section::scalar(std::ptr::null_mut(), section.run);
            for dimension in &section.dimensions()[..piece.inner] {
                slab.push(*dimension);
            }
            let offset = piece.offset + number as isize * piece.stride;
            let run_of_slab = slab.run;
            slab.for_each_run(|at| run(&mut places, offset + at, run_of_slab));
        }
    }
    run(&mut places, prefix.tail_offset, prefix.tail);
    places
}

proptest! {
    #[test]
    fn a_section_has_the_bytes_of_its_elements_in_order(case in cases()) {
        let mut memory = filled(case.memory);
        let section = case.section(&mut memory);
        let expected: Vec<u8> = case.positions().iter().map(|at| filled(case.memory)[*at]).collect();
        prop_assert_eq!(section.bytes(), expected.len());
        let mut packed = vec![0; expected.len()];
        // SAFETY: both are memory of the section's length.
        unsafe { section.gather(packed.as_mut_ptr()) };
        prop_assert_eq!(packed, expected);
    }

    #[test]
    fn scatter_writes_what_changed_and_nothing_else(case in cases(), changes in any::<u64>()) {
        let mut memory = filled(case.memory);
        let section = case.section(&mut memory);
        let (mut before, positions) = (vec![0; section.bytes()], case.positions());
        // SAFETY: both are memory of the section's length.
        unsafe { section.gather(before.as_mut_ptr()) };
        let mut after = before.clone();
        // Words of 4 bytes are the unit of changes.
        let is_changed = |at: usize| changes >> (at / 4 % 64) & 1 != 0;
        for (at, byte) in after.iter_mut().enumerate() {
            *byte = if is_changed(at) { byte.wrapping_add(1) } else { *byte };
        }
        // Concurrent changes by others of bytes that the operation did not change.
        let mut expected = memory.clone();
        for (at, position) in positions.iter().enumerate() {
            let in_run = at % section.run / 4 * 4 + at / section.run * section.run;
            let word = (in_run..(in_run + 4).min(at / section.run * section.run + section.run)).any(is_changed);
            if !word {
                memory[*position] = 99;
                expected[*position] = 99;
            } else {
                expected[*position] = after[at];
            }
        }
        // SAFETY: all are memory of the section's length.
        unsafe { case.section(&mut memory).scatter(after.as_ptr(), before.as_ptr()) };
        prop_assert_eq!(memory, expected);
    }

    #[test]
    fn a_prefix_has_the_first_bytes(case in cases(), part in 0..=16usize) {
        let mut memory = vec![0; case.memory];
        let section = case.section(&mut memory);
        let bytes = section.bytes() * part / 16;
        prop_assume!(bytes > 0);
        let first = case.first as isize;
        let expected: Vec<isize> =
            case.positions()[..bytes].iter().map(|at| *at as isize - first).collect();
        prop_assert_eq!(places_of_prefix(&section, bytes), &expected[..]);
        for (byte, place) in expected.iter().enumerate() {
            prop_assert_eq!(section.place(byte).0, *place);
        }
    }
}
