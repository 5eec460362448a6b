//! Generator of the module `mpi_types`, which both Fortran modules share: the derived types of
//! handles and of a status, and the comparison of handles.

use crate::kinds::HANDLES;
use std::fmt::Write;

/// Operators, and the suffixes of the names of their functions.
const OPERATORS: [(&str, &str); 2] = [("==", "equal"), ("/=", "differ")];

/// The source text of the module `mpi_types`.
pub(crate) fn generate() -> String {
    let mut text = String::from(
        "! Derived types of handles and of a status. Generated.\n\n\
         module mpi_types\n  implicit none\n  public\n",
    );
    for (_, ty) in HANDLES {
        write!(
            text,
            "  type, bind(C) :: {ty}\n    integer :: MPI_VAL\n  end type {ty}\n"
        )
        .unwrap();
    }
    text.push_str(
        "  type, bind(C) :: MPI_Status\n    integer :: MPI_SOURCE\n    integer :: MPI_TAG\n    \
         integer :: MPI_ERROR\n    integer :: MPI_internal(5)\n  end type MPI_Status\n",
    );
    for (operator, word) in OPERATORS {
        writeln!(text, "  interface operator({operator})").unwrap();
        for (_, ty) in HANDLES {
            writeln!(text, "    module procedure {ty}_{word}").unwrap();
        }
        text.push_str("  end interface\n");
    }
    for (_, ty) in HANDLES {
        writeln!(text, "  private :: {ty}_equal, {ty}_differ").unwrap();
    }
    text.push_str("contains\n");
    for (_, ty) in HANDLES {
        for (operator, word) in OPERATORS {
            write!(
                text,
                "  elemental logical function {ty}_{word}(a, b) result(answer)\n    \
                 type({ty}), intent(in) :: a, b\n    \
                 answer = a%MPI_VAL {operator} b%MPI_VAL\n  end function\n"
            )
            .unwrap();
        }
    }
    text.push_str("end module mpi_types\n");
    text
}
