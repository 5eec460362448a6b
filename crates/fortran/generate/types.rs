//! The module `mpi_types`, which both Fortran modules share: the derived types of handles and of a
//! status.

use super::kinds::HANDLES;
use std::fmt::Write;

/// The text of the module.
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
         integer :: MPI_ERROR\n    integer :: MPI_internal(5)\n  end type MPI_Status\n\
         end module mpi_types\n",
    );
    text
}
