//! Tests of conversions without an MPI library.

use crate::attributes::{load, store};
use crate::constants::Constants;
use crate::{index, logical, text};
use std::ffi::{CStr, c_int};

/// An ABI with the constants of the standard one.
struct Program;

impl Constants for Program {}

#[test]
fn blanks_at_the_end_of_a_text_are_none_of_it() {
    for (given, expected) in [("abc  ", "abc"), ("  a b ", "  a b"), ("   ", ""), ("", "")] {
        // SAFETY: the address is that of a string of this length.
        let input = unsafe { text::input(given.as_ptr(), given.len()) };
        // SAFETY: a text for C is closed by NUL.
        let found = unsafe { CStr::from_ptr(input.as_ptr()) };
        assert_eq!(found.to_str(), Ok(expected));
        // SAFETY: as above.
        let trimmed = unsafe { text::trimmed(given.as_ptr(), given.len()) };
        // SAFETY: as above.
        let found = unsafe { CStr::from_ptr(trimmed.as_ptr()) };
        assert_eq!(found.to_str(), Ok(expected.trim()));
    }
}

#[test]
fn a_text_fills_the_programs_string() {
    for (written, length, room, expected) in [
        ("abc", 4, 5, "abc  "),
        ("abcdef", 7, 4, "abcd"),
        ("", 4, 2, "  "),
        // The program queries only the length.
        ("", 1, 2, "xx"),
    ] {
        let mut output = text::Output::new(length);
        // SAFETY: there is room for the text and NUL.
        unsafe {
            output
                .as_mut_ptr()
                .copy_from(written.as_ptr().cast(), written.len())
        };
        let mut string = vec![b'x'; room];
        // SAFETY: the address is that of a string of this length.
        unsafe { output.write(string.as_mut_ptr(), room) };
        assert_eq!(String::from_utf8(string).as_deref(), Ok(expected));
    }
}

#[test]
fn positions_begin_with_one_and_undefined_stays() {
    let mut places = [0, 3, -32766, 7];
    // SAFETY: the address is that of three indices.
    unsafe { index::all_from_c::<Program>(Program::MPI_ERR_IN_STATUS, places.as_mut_ptr(), 3) };
    assert_eq!(places, [1, 4, -32766, 7]);
    // SAFETY: nothing is read after an error.
    unsafe { index::all_from_c::<Program>(1, places.as_mut_ptr(), c_int::MAX) };
    assert_eq!(places, [1, 4, -32766, 7]);
}

#[test]
fn any_value_but_false_is_true() {
    for (value, flag) in [(0, 0), (1, 1), (-1, 1), (2, 1)] {
        assert_eq!(logical::to_c(value), flag);
    }
    assert_eq!([1, 0].map(logical::from_c), logical::values());
}

#[test]
fn a_value_of_fortran_is_an_integer_at_an_address_in_c() {
    let own_key = 9000;
    let values = (0..1000).map(|value| (value - 500) * (1 << 50));
    let stored: Vec<_> = values.map(|value| (value, store(value))).collect();
    for (value, attribute) in stored {
        assert_eq!(store(value), attribute, "each value lies at one address");
        // SAFETY: the attribute was stored.
        unsafe {
            assert_eq!(*attribute.cast::<isize>(), value);
            assert_eq!(load::<Program>(own_key, attribute), value);
        }
    }
    let mut of_c = 5;
    let address = (&raw mut of_c).cast();
    // SAFETY: an attribute of the program's key may be any address.
    let value = unsafe { load::<Program>(own_key, address) };
    assert_eq!(value, (&raw const of_c).addr() as isize);
}
