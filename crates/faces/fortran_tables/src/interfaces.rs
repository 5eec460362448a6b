//! Generator of the module `mpi`: an explicit interface for every procedure. A choice buffer may be
//! any argument, by directives in the spellings of several compilers; a compiler ignores those of
//! other compilers.

use crate::Tables;
use crate::constants;
use crate::kinds::{FortranParameter, FortranProcedure};
use crate::predefined::FUNCTIONS;
use std::fmt::Write;
use tables::table::{Parameter, Procedure};

/// The spellings of "any type, kind and rank".
pub(crate) const ANY: [&str; 3] = [
    "!GCC$ ATTRIBUTES NO_ARG_CHECK :: ",
    "!DIR$ IGNORE_TKR ",
    "!$PRAGMA IGNORE_TKR ",
];

/// Kinds that an interface may import from the module.
const KINDS: [&str; 4] = [
    "MPI_ADDRESS_KIND",
    "MPI_COUNT_KIND",
    "MPI_OFFSET_KIND",
    "MPI_STATUS_SIZE",
];

/// The greatest number of columns of a line.
const WIDTH: usize = 100;

/// The source text of the module `mpi`.
pub(crate) fn module(tables: &Tables) -> String {
    let mut text = String::from(
        "! The module mpi: interfaces to the library mpifort_abi. Generated.\n\n\
         module mpi\n  use mpi_constants\n  use mpi_integer_handles\n  use mpi_sentinels\n  use mpi_types\n  \
         use mpi_sizeof_procedures, only: MPI_SIZEOF, PMPI_SIZEOF\n  implicit none\n  public\n",
    );
    text.push_str(&constants::support());
    for (name, _, _) in FUNCTIONS {
        writeln!(text, "  external :: {name}").unwrap();
    }
    for prefix in ["MPI_", "PMPI_"] {
        text.push_str("  interface\n");
        for procedure in tables.procedures().filter(|p| !has_address(p)) {
            write_interface(&mut text, procedure, prefix, "");
        }
        text.push_str(&of_fortran_alone(prefix));
        text.push_str("  end interface\n");
        for procedure in tables.procedures().filter(|p| has_address(p)) {
            writeln!(text, "  interface {prefix}{}", procedure.fortran(false)).unwrap();
            write_interface(&mut text, procedure, prefix, "");
            write_interface(&mut text, procedure, prefix, "_CPTR");
            text.push_str("  end interface\n");
        }
    }
    text.push_str("end module mpi\n");
    text
}

/// True if the procedure returns the address of memory, which may be a TYPE(C_PTR).
pub(crate) fn has_address(procedure: &Procedure) -> bool {
    procedure
        .parameters
        .iter()
        .any(|p| p.kind.word() == "memory")
}

/// Writes the interface of the plain form. `end`: empty, or the suffix of the form with
/// TYPE(C_PTR).
fn write_interface(text: &mut String, procedure: &Procedure, prefix: &str, end: &str) {
    let parameters: Vec<_> = procedure.fortran_parameters(false).collect();
    let mut names: Vec<_> = parameters
        .iter()
        .map(|p| p.fortran_name(procedure))
        .collect();
    if procedure.has_ierror() {
        names.push("ierror");
    }
    let name = format!("{prefix}{}{end}", procedure.fortran(false));
    let word = if procedure.returns.is_some() {
        "function"
    } else {
        "subroutine"
    };
    write_wrapped(text, &format!("    {word} {name}({})", names.join(", ")));
    let declarations = declarations(procedure, &parameters, &name, end);
    let needed: Vec<_> = KINDS
        .iter()
        .filter(|kind| declarations.contains(**kind))
        .collect();
    if !end.is_empty() {
        text.push_str("      use, intrinsic :: iso_c_binding, only: c_ptr\n");
    }
    for kind in needed {
        writeln!(text, "      import :: {kind}").unwrap();
    }
    text.push_str("      implicit none\n");
    text.push_str(&declarations);
    writeln!(text, "    end {word} {name}").unwrap();
}

fn declarations(procedure: &Procedure, parameters: &[&Parameter], name: &str, end: &str) -> String {
    let mut text = String::new();
    for parameter in parameters {
        let dummy = parameter.fortran_name(procedure);
        let (ty, shape) = parameter.declaration(procedure, false);
        if ty == "TYPE(*)" {
            for directive in ANY {
                writeln!(text, "      {directive}{dummy}").unwrap();
            }
        }
        let is_c_pointer = !end.is_empty() && parameter.kind.word() == "memory";
        let ty = if is_c_pointer {
            "TYPE(c_ptr)".into()
        } else {
            ty
        };
        writeln!(text, "      {ty} :: {dummy}{shape}").unwrap();
    }
    if procedure.has_ierror() {
        text.push_str("      INTEGER :: ierror\n");
    }
    if procedure.returns.is_some() {
        writeln!(text, "      {} :: {name}", constants::result(procedure)).unwrap();
    }
    text
}

/// The interfaces of procedures that exist only in Fortran, so that C's table does not have them.
fn of_fortran_alone(prefix: &str) -> String {
    let mut text = format!("    subroutine {prefix}F_SYNC_REG(buf)\n      implicit none\n");
    for directive in ANY {
        writeln!(text, "      {directive}buf").unwrap();
    }
    writeln!(
        text,
        "      TYPE(*) :: buf(*)\n    end subroutine {prefix}F_SYNC_REG"
    )
    .unwrap();
    for (name, from, to) in [
        (
            "STATUS_F2F08",
            "INTEGER :: f_status(MPI_STATUS_SIZE)",
            "TYPE(MPI_Status) :: f08_status",
        ),
        (
            "STATUS_F082F",
            "TYPE(MPI_Status) :: f08_status",
            "INTEGER :: f_status(MPI_STATUS_SIZE)",
        ),
    ] {
        let dummies = if name.ends_with("F08") {
            "f_status, f08_status"
        } else {
            "f08_status, f_status"
        };
        writeln!(
            text,
            "    subroutine {prefix}{name}({dummies}, ierror)\n      import :: MPI_STATUS_SIZE, MPI_Status\n      \
             implicit none\n      {from}\n      {to}\n      INTEGER :: ierror\n    end subroutine {prefix}{name}"
        )
        .unwrap();
    }
    text
}

/// Writes a statement, with continuation lines if it is too long.
pub(crate) fn write_wrapped(text: &mut String, statement: &str) {
    let mut line = String::new();
    for part in statement.split_inclusive(", ") {
        if line.len() + part.len() > WIDTH {
            writeln!(text, "{}&", line).unwrap();
            line = String::from("        ");
        }
        line.push_str(part);
    }
    writeln!(text, "{line}").unwrap();
}
