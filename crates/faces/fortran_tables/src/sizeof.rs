//! Generator of MPI_SIZEOF: a procedure for each intrinsic type, kind and rank. Both Fortran
//! modules share the procedures of a module; the header `mpif.h`, which cannot use a module, has
//! interfaces of external procedures.

use std::fmt::Write;

/// The greatest rank of an array.
const RANKS: usize = 15;

/// The types: a word for names, and the declaration.
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

/// The source text of the module `mpi_sizeof_procedures`.
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

/// The greatest rank in the header: compilers with an option for Fortran 95 or 2003 allow no
/// greater one.
const RANKS_OF_HEADER: usize = 7;

/// The types as the header declares them: kinds by their ranges, because the header has no module
/// that names them.
const TYPES_OF_HEADER: &[(&str, &str)] = &[
    ("CHARACTER", "CHARACTER(LEN=*)"),
    ("LOGICAL1", "LOGICAL(KIND=SELECTED_INT_KIND(2))"),
    ("LOGICAL2", "LOGICAL(KIND=SELECTED_INT_KIND(4))"),
    ("LOGICAL4", "LOGICAL(KIND=SELECTED_INT_KIND(9))"),
    ("LOGICAL8", "LOGICAL(KIND=SELECTED_INT_KIND(18))"),
    ("INTEGER1", "INTEGER(KIND=SELECTED_INT_KIND(2))"),
    ("INTEGER2", "INTEGER(KIND=SELECTED_INT_KIND(4))"),
    ("INTEGER4", "INTEGER(KIND=SELECTED_INT_KIND(9))"),
    ("INTEGER8", "INTEGER(KIND=SELECTED_INT_KIND(18))"),
    ("REAL4", "REAL(KIND=SELECTED_REAL_KIND(6))"),
    ("REAL8", "REAL(KIND=SELECTED_REAL_KIND(15))"),
    ("COMPLEX4", "COMPLEX(KIND=SELECTED_REAL_KIND(6))"),
    ("COMPLEX8", "COMPLEX(KIND=SELECTED_REAL_KIND(15))"),
];

/// For each external procedure of `{prefix}SIZEOF` in the header: its head and declarations, in
/// lines. Each prefix has procedures of its own, because Fortran 95 forbids two interfaces of one
/// procedure.
fn externals(prefix: &str) -> impl Iterator<Item = [String; 4]> {
    let forms = TYPES_OF_HEADER
        .iter()
        .flat_map(|form| (0..=RANKS_OF_HEADER).map(move |rank| (form, rank)));
    forms.map(move |((word, ty), rank)| {
        let shape = match rank {
            0 => String::new(),
            _ => format!("({})", vec![":"; rank].join(",")),
        };
        [
            format!("SUBROUTINE {prefix}SIZEOF_{word}_{rank}(X,SIZE,IERROR)"),
            format!("{ty},INTENT(IN)::X{shape}"),
            "INTEGER,INTENT(OUT)::SIZE".into(),
            "INTEGER,INTENT(OUT)::IERROR".into(),
        ]
    })
}

/// Writes the interfaces of the header, line by line.
pub(crate) fn header(mut line: impl FnMut(&str)) {
    for prefix in ["MPI_", "PMPI_"] {
        line(&format!("INTERFACE {prefix}SIZEOF"));
        for external in externals(prefix) {
            external.iter().for_each(|text| line(text));
            line("END SUBROUTINE");
        }
        line("END INTERFACE");
    }
}

/// The source text of the external procedures that the header's interfaces declare.
pub(crate) fn of_header() -> String {
    let mut text = String::from("! MPI_SIZEOF of mpif.h. Generated.\n\n");
    for external in ["MPI_", "PMPI_"].into_iter().flat_map(externals) {
        for line in external {
            writeln!(text, "{line}").unwrap();
        }
        text.push_str("SIZE = storage_size(X) / 8\nIERROR = 0\nEND SUBROUTINE\n\n");
    }
    text
}
