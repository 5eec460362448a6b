//! Symbols that the libraries of older ABIs have in addition to entry points: those of their
//! Fortran modules, as a compiler built them. Programs compiled with these modules need them.

use crate::constants::handles;
use crate::kinds::HANDLES;
use std::fmt::Write;
use tables::constants::Group;

/// The words for classes of handles, in lower case.
pub fn classes() -> impl Iterator<Item = &'static str> {
    HANDLES.iter().map(|(class, _)| *class)
}

/// Writes a module function that compares two handles for equality, or for inequality.
pub fn write_comparison(text: &mut String, symbol: &str, is_equality: bool) {
    writeln!(text, "comparison! {{ \"{symbol}\" {is_equality} }}").unwrap();
}

/// Writes the predefined handles, at symbols that begin with `start`.
pub fn write_handles(text: &mut String, start: &str, constants: &[Group]) {
    for (name, value) in handles(constants) {
        write_constant(
            text,
            &format!("{start}{}", name.to_ascii_lowercase()),
            &value,
        );
    }
}

/// Writes an integer constant at a symbol.
pub fn write_constant(text: &mut String, symbol: &str, value: &str) {
    writeln!(text, "constant! {{ \"{symbol}\" {value} }}").unwrap();
}

/// Writes a procedure that returns the size of a variable in bytes.
pub fn write_size(text: &mut String, symbol: &str, bytes: usize) {
    writeln!(text, "size! {{ \"{symbol}\" {bytes} }}").unwrap();
}

/// Writes a procedure that copies a status to its second argument.
pub fn write_copy(text: &mut String, symbol: &str) {
    writeln!(text, "copy! {{ \"{symbol}\" Status }}").unwrap();
}

/// Writes an assignment of a status to the first argument.
pub fn write_assignment(text: &mut String, symbol: &str) {
    writeln!(text, "assignment! {{ \"{symbol}\" Status }}").unwrap();
}

/// Writes a function that converts a handle, which is the same integer in C.
pub fn write_conversion(text: &mut String, symbol: &str) {
    writeln!(text, "conversion! {{ \"{symbol}\" }}").unwrap();
}
