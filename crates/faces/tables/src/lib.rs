//! The tables of the standard ABI's procedures and constants, and the generators of their outputs:
//! the entry points and constants of `abi`, the header, the page of procedures that work. Other
//! crates read the tables here, in their build scripts.
//!
//! Invariant: no other list of procedures is written by hand, and each output is a pure function of
//! the tables, so that a test can detect a stale checked-in file.

pub mod constants;
pub mod coverage;
pub mod entry;
mod fortran_names;
pub mod header;
pub mod kinds;
pub mod recorded;
pub mod supported;
pub mod table;

use constants::Group;
use table::Chapter;

/// The procedures of the standard ABI, by the chapters of the standard.
///
/// # Panics
/// The table has an error.
pub fn procedures() -> Vec<Chapter> {
    parsed(table::parse(include_str!("../procedures.txt")))
}

/// Procedures that other libraries export in addition to the names of the standard ABI.
///
/// # Panics
/// The table has an error.
pub fn removed() -> Vec<Chapter> {
    parsed(table::parse(include_str!("../removed.txt")))
}

/// The procedures of the standard ABI, followed by those of [`removed`].
///
/// # Panics
/// A table has an error.
pub fn all_procedures() -> Vec<Chapter> {
    procedures().into_iter().chain(removed()).collect()
}

/// The constants of the standard ABI, by group.
///
/// # Panics
/// The table has an error.
pub fn constants() -> Vec<Group> {
    parsed(constants::parse(include_str!("../constants.txt")))
}

fn parsed<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
