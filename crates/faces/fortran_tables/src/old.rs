//! Symbols that the libraries of older ABIs have beside entry points: those of the modules that a
//! compiler built for them once. Programs that were compiled with these modules need them.

use crate::constants::handles;
use crate::kinds::HANDLES;
use std::fmt::Write;
use tables::constants::Group;

/// The words for classes of handles, in small letters.
pub fn classes() -> impl Iterator<Item = &'static str> {
    HANDLES.iter().map(|(class, _)| *class)
}

/// Functions of the module that compare two handles for equality, or for the contrary.
pub fn write_comparison(text: &mut String, symbol: &str, is_equality: bool) {
    writeln!(text, "comparison! {{ \"{symbol}\" {is_equality} }}").unwrap();
}

/// Predefined handles, at symbols that begin with these letters.
pub fn write_handles(text: &mut String, start: &str, constants: &[Group]) {
    for (name, value) in handles(constants) {
        write_constant(
            text,
            &format!("{start}{}", name.to_ascii_lowercase()),
            &value,
        );
    }
}

/// An integer at a symbol.
pub fn write_constant(text: &mut String, symbol: &str, value: &str) {
    writeln!(text, "constant! {{ \"{symbol}\" {value} }}").unwrap();
}

/// A procedure that tells the size of a variable in bytes.
pub fn write_size(text: &mut String, symbol: &str, bytes: usize) {
    writeln!(text, "size! {{ \"{symbol}\" {bytes} }}").unwrap();
}

/// A procedure that copies a status to its second argument.
pub fn write_copy(text: &mut String, symbol: &str) {
    writeln!(text, "copy! {{ \"{symbol}\" Status }}").unwrap();
}

/// An assignment of a status to the first argument.
pub fn write_assignment(text: &mut String, symbol: &str) {
    writeln!(text, "assignment! {{ \"{symbol}\" Status }}").unwrap();
}

/// A function that converts a handle, which is the same integer in C.
pub fn write_conversion(text: &mut String, symbol: &str) {
    writeln!(text, "conversion! {{ \"{symbol}\" }}").unwrap();
}
