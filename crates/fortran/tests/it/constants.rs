//! Values of constants, in the module and in the header.

use crate::{digest, source};

/// The number of constants of Fortran that are integers or handles, and the digest of their sorted
/// lines `NAME=VALUE`, by the machine-readable edition of the MPI 5.0 standard; texts are one
/// character shorter than in C.
const CONSTANTS: (usize, u64) = (300, 0x6140_b8d1_e8eb_0555);

#[test]
fn the_constants_of_the_module_are_the_standards() {
    let text = source("mpi_constants.f90");
    let lines = text.lines().filter_map(|line| {
        let (_, definition) = line.split_once("parameter :: ")?;
        let (name, value) = definition.split_once(" = ")?;
        let value = value.split('_').next()?;
        value.parse::<i64>().ok()?;
        Some(format!("{name}={value}"))
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    assert_eq!((lines.len(), digest(&lines)), CONSTANTS);
}

/// A statement `PARAMETER (NAME=VALUE)`.
#[test]
fn the_constants_of_the_header_are_those_of_the_module() {
    let text = source("mpif.h");
    let lines = text.lines().filter_map(|line| {
        let definition = line.trim().strip_prefix("PARAMETER (")?.strip_suffix(')')?;
        let (_, value) = definition.split_once('=')?;
        value.parse::<i64>().ok()?;
        Some(definition.to_string())
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    assert_eq!((lines.len(), digest(&lines)), CONSTANTS);
}

#[test]
fn the_header_is_valid_in_fixed_and_in_free_form() {
    for line in source("mpif.h").lines() {
        assert!(line.len() <= 72, "{line}");
        let is_comment = line.starts_with('!');
        assert!(is_comment || line.starts_with("      "), "{line}");
        assert!(
            !line.contains('&') && (is_comment || !line.contains('!')),
            "{line}"
        );
    }
}
