//! MPI_SIZEOF: a procedure for each intrinsic type, kind and rank, which both Fortran modules
//! share.

use std::fmt::Write;

/// The highest rank of an array.
const RANKS: usize = 15;

/// Types: a word for names, and the declaration.
const TYPES: &[(&str, &str)] = &[
    ("character", "character(len=*)"),
    ("logical1", "logical(kind=int8)"),
    ("logical2", "logical(kind=int16)"),
    ("logical4", "logical(kind=int32)"),
    ("logical8", "logical(kind=int64)"),
    ("integer1", "integer(kind=int8)"),
    ("integer2", "integer(kind=int16)"),
    ("integer4", "integer(kind=int32)"),
    ("integer8", "integer(kind=int64)"),
    ("real4", "real(kind=real32)"),
    ("real8", "real(kind=real64)"),
    ("complex4", "complex(kind=real32)"),
    ("complex8", "complex(kind=real64)"),
];

/// The text of the module `mpi_sizeof_procedures`.
pub(crate) fn generate() -> String {
    let (mut names, mut bodies) = (String::new(), String::new());
    for (word, ty) in TYPES {
        for rank in 0..=RANKS {
            let name = format!("sizeof_{word}_{rank}");
            let shape = match rank {
                0 => String::new(),
                _ => format!("({})", vec![":"; rank].join(",")),
            };
            writeln!(names, "    module procedure {name}").unwrap();
            writeln!(
                bodies,
                "  subroutine {name}(x, size, ierror)\n    {ty}, intent(in) :: x{shape}\n    \
                 integer, intent(out) :: size\n    integer, optional, intent(out) :: ierror\n    \
                 size = storage_size(x) / 8\n    if (present(ierror)) ierror = 0\n  end subroutine"
            )
            .unwrap();
        }
    }
    format!(
        "! MPI_SIZEOF for every intrinsic type, kind and rank. Generated.\n\n\
         module mpi_sizeof_procedures\n  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, \
         int64, real32, real64\n  implicit none\n  private\n  public :: MPI_SIZEOF, PMPI_SIZEOF\n\
         \x20 interface MPI_SIZEOF\n{names}  end interface\n  interface PMPI_SIZEOF\n{names}  end interface\ncontains\n{bodies}\
         end module mpi_sizeof_procedures\n"
    )
}
