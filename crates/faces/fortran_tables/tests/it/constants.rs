//! Tests of the values of constants, in the module and in the header.

use crate::{digest, source};

/// The number of constants of Fortran that are integers or handles, and the digest of their sorted
/// lines `NAME=VALUE`, by the machine-readable edition of the MPI 5.0 standard. Limits of strings
/// are one less than in C.
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

/// The header has lines `PARAMETER (NAME=VALUE)`.
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

/// `c_loc` must be applicable to the variable in every form of Fortran (MPI 5.0 §3.6).
#[test]
fn the_variable_of_an_automatic_buffer_is_a_target() {
    for (file, line) in [
        (
            "mpi_constants.f90",
            "  integer, target :: MPI_BUFFER_AUTOMATIC",
        ),
        (
            "mpi_f08_types.f90",
            "  INTEGER, TARGET :: MPI_BUFFER_AUTOMATIC",
        ),
        ("mpif.h", "      TARGET MPI_BUFFER_AUTOMATIC"),
    ] {
        assert!(source(file).lines().any(|other| other == line), "{file}");
    }
}

/// The module `mpi` has the types of handles with their comparison (MPI 5.0 §19.1.3).
#[test]
fn both_modules_have_the_types_of_handles() {
    let types = source("mpi_types.f90");
    for class in
        "Comm Datatype Errhandler File Group Info Message Op Request Session Win".split(' ')
    {
        for wanted in [
            format!("  type, bind(C) :: MPI_{class}\n    integer :: MPI_VAL\n"),
            format!("    module procedure MPI_{class}_equal\n"),
            format!("    module procedure MPI_{class}_differ\n"),
        ] {
            assert!(types.contains(&wanted), "{wanted}");
        }
    }
    for module in ["mpi.f90", "mpi_f08_types.f90"] {
        assert!(source(module).contains("  use mpi_types\n"), "{module}");
    }
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
