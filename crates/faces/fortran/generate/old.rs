//! What the libraries of older ABIs have beside entry points: symbols of the modules that a
//! compiler built for them once. Programs that were compiled with these modules need them.
#![allow(dead_code)] // the library of the standard ABI has none of them

use super::abi::constants::{Group, parse};
use super::constants::handles;
use super::kinds::HANDLES;
use std::fmt::Write;

/// The table of constants of another library.
pub(crate) fn constants(path: &str) -> Vec<Group> {
    parse(&super::read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words for classes of handles, in small letters.
pub(crate) fn classes() -> impl Iterator<Item = &'static str> {
    HANDLES.iter().map(|(class, _)| *class)
}

/// Functions of the module that compare two handles for equality, or for the contrary.
pub(crate) fn write_comparison(text: &mut String, symbol: &str, is_equality: bool) {
    writeln!(text, "comparison! {{ \"{symbol}\" {is_equality} }}").unwrap();
}

/// Predefined handles, at symbols that begin with these letters.
pub(crate) fn write_handles(text: &mut String, start: &str, constants: &[Group]) {
    for (name, value) in handles(constants) {
        write_constant(
            text,
            &format!("{start}{}", name.to_ascii_lowercase()),
            &value,
        );
    }
}

/// An integer at a symbol.
pub(crate) fn write_constant(text: &mut String, symbol: &str, value: &str) {
    writeln!(text, "constant! {{ \"{symbol}\" {value} }}").unwrap();
}

/// A procedure that tells the size of a variable in bytes.
pub(crate) fn write_size(text: &mut String, symbol: &str, bytes: usize) {
    writeln!(text, "size! {{ \"{symbol}\" {bytes} }}").unwrap();
}

/// A procedure that copies a status to its second argument.
pub(crate) fn write_copy(text: &mut String, symbol: &str) {
    writeln!(text, "copy! {{ \"{symbol}\" }}").unwrap();
}

/// An assignment of a status to the first argument.
pub(crate) fn write_assignment(text: &mut String, symbol: &str) {
    writeln!(text, "assignment! {{ \"{symbol}\" }}").unwrap();
}

/// A function that converts a handle, which is the same integer in C.
pub(crate) fn write_conversion(text: &mut String, symbol: &str) {
    writeln!(text, "conversion! {{ \"{symbol}\" }}").unwrap();
}
