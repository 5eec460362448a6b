//! Generator of the module `mpi_f08`: interfaces in Fortran 2008 with derived types of handles. It
//! consists of separate modules for types and constants, for procedures without choice buffers, and
//! for procedures with choice buffers. The last one exists twice: with descriptors, and for
//! compilers without them.

use crate::Tables;
use crate::constants;
use crate::entry::manglings;
use crate::f08_types::{ADDRESS, COUNT, OFFSET};
use crate::interfaces::{ANY, write_wrapped};
use crate::kinds::{FortranParameter, FortranProcedure, integer};
use std::fmt::Write;
use tables::table::{Access, Length, Parameter, Procedure};

/// The form in which an interface passes choice buffers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Descriptors,
    /// By address: the compiler copies buffers with gaps.
    Plain,
}

/// The source text of the module with the procedures of `mpi_f08` without choice buffers.
pub(crate) fn procedures(tables: &Tables) -> String {
    let mut text = head(
        "mpi_f08_procedures",
        "Procedures of the module mpi_f08 without choice buffers",
    );
    for prefix in ["MPI_", "PMPI_"] {
        for procedure in of_f08(tables).filter(|procedure| !has_choice(procedure)) {
            write_generics(&mut text, procedure, prefix, Choice::Plain);
        }
        write_conversions_of_status(&mut text, prefix);
    }
    text.push_str("end module mpi_f08_procedures\n");
    text
}

/// The source text of the module with the procedures of `mpi_f08` with choice buffers.
pub(crate) fn choice(tables: &Tables, choice: Choice) -> String {
    let mut text = head(
        "mpi_f08_choice",
        "Procedures of the module mpi_f08 with choice buffers",
    );
    let is_true = match choice {
        Choice::Descriptors => ".true.",
        Choice::Plain => ".false.",
    };
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        writeln!(text, "  logical, parameter :: {name} = {is_true}").unwrap();
    }
    for prefix in ["MPI_", "PMPI_"] {
        for procedure in of_f08(tables).filter(|procedure| has_choice(procedure)) {
            write_generics(&mut text, procedure, prefix, choice);
        }
        let specific = format!("{prefix}F_sync_reg{}", end(choice));
        writeln!(
            text,
            "  interface {prefix}F_sync_reg\n    subroutine {specific}(buf) {}",
            binding(&specific, choice)
        )
        .unwrap();
        text.push_str("      implicit none\n");
        write_choice(&mut text, "buf", "ASYNCHRONOUS", choice);
        writeln!(text, "    end subroutine {specific}\n  end interface").unwrap();
    }
    text.push_str("end module mpi_f08_choice\n");
    text
}

/// The source text of the module `mpi_f08`, which programs use.
pub(crate) fn module() -> String {
    "! The module mpi_f08: interfaces to the library mpifort_abi. Generated.\n\n\
     module mpi_f08\n  use mpi_f08_types\n  use mpi_f08_procedures\n  use mpi_f08_choice\n  \
     use mpi_sizeof_procedures, only: MPI_SIZEOF, PMPI_SIZEOF\n  implicit none\n  public\n\
     end module mpi_f08\n"
        .into()
}

fn head(module: &str, subject: &str) -> String {
    format!(
        "! {subject}. Generated.\n\nmodule {module}\n  use, intrinsic :: iso_c_binding, only: c_ptr\n  \
         use mpi_f08_types\n  implicit none\n  public\n  private :: c_ptr\n"
    )
}

/// The procedures of the module: all except those that MPI has removed.
fn of_f08(tables: &Tables) -> impl Iterator<Item = &Procedure> {
    tables.procedures().filter(|procedure| !procedure.is_old())
}

fn has_choice(procedure: &Procedure) -> bool {
    procedure.parameters.iter().any(Parameter::is_choice)
}

/// Writes the specific procedures of a generic name. The large form has a name of its own if no
/// compiler could distinguish it from the other form.
fn write_generics(text: &mut String, procedure: &Procedure, prefix: &str, choice: Choice) {
    let types = |large| -> Vec<String> {
        let parameters = procedure
            .fortran_parameters(large)
            .filter(|p| !p.is_function());
        // Integers of addresses and of counts have the same kind.
        parameters
            .map(|p| declaration(p, large).0.replace(ADDRESS, COUNT))
            .collect()
    };
    let is_alike = procedure.large && types(false) == types(true);
    let forms = procedure.forms();
    for (number, &large) in forms.iter().enumerate() {
        if number == 0 || is_alike {
            writeln!(
                text,
                "  interface {prefix}{}",
                procedure.c_name("", large && is_alike)
            )
            .unwrap();
        }
        write_interface(text, procedure, prefix, large, choice);
        if number + 1 == forms.len() || is_alike {
            text.push_str("  end interface\n");
        }
    }
}

fn end(choice: Choice) -> &'static str {
    match choice {
        Choice::Descriptors => "_f08ts",
        Choice::Plain => "_f08",
    }
}

/// The C binding of a procedure with descriptors, with which gfortran does not copy a component of
/// an array of a derived type. If memory is used after the call, a copy would be wrong; otherwise a
/// vector subscript needs one.
fn binding(specific: &str, choice: Choice) -> String {
    match choice {
        Choice::Descriptors => format!("bind(C, name=\"{}\")", manglings(specific)[0]),
        Choice::Plain => String::new(),
    }
}

fn write_interface(
    text: &mut String,
    procedure: &Procedure,
    prefix: &str,
    large: bool,
    choice: Choice,
) {
    let choice = if has_choice(procedure) {
        choice
    } else {
        Choice::Plain
    };
    let parameters: Vec<_> = procedure.fortran_parameters(large).collect();
    let mut names: Vec<_> = parameters
        .iter()
        .map(|p| p.fortran_name(procedure))
        .collect();
    if procedure.has_ierror() {
        names.push("ierror");
    }
    let name = format!("{prefix}{}{}", procedure.c_name("", large), end(choice));
    let word = if procedure.returns.is_some() {
        "function"
    } else {
        "subroutine"
    };
    let binding = match procedure.outlasts() {
        true => binding(&name, choice),
        false => String::new(),
    };
    write_wrapped(
        text,
        format!("    {word} {name}({}) {binding}", names.join(", ")).trim_end(),
    );
    text.push_str("      import\n      implicit none\n");
    for parameter in &parameters {
        let dummy = parameter.fortran_name(procedure);
        let (ty, shape) = declaration(parameter, large);
        let attributes = attributes(parameter, procedure);
        if parameter.is_choice() {
            write_choice(text, dummy, &attributes, choice);
            continue;
        }
        let comma = if attributes.is_empty() { "" } else { ", " };
        writeln!(text, "      {ty}{comma}{attributes} :: {dummy}{shape}").unwrap();
    }
    if procedure.has_ierror() {
        text.push_str("      INTEGER, OPTIONAL, INTENT(OUT) :: ierror\n");
    }
    if procedure.returns.is_some() {
        writeln!(text, "      {} :: {name}", constants::result(procedure)).unwrap();
    }
    writeln!(text, "    end {word} {name}").unwrap();
}

fn write_choice(text: &mut String, dummy: &str, attributes: &str, choice: Choice) {
    let comma = if attributes.is_empty() { "" } else { ", " };
    match choice {
        Choice::Descriptors => {
            writeln!(
                text,
                "      TYPE(*), DIMENSION(..){comma}{attributes} :: {dummy}"
            )
            .unwrap();
        }
        Choice::Plain => {
            for directive in ANY {
                writeln!(text, "      {directive}{dummy}").unwrap();
            }
            writeln!(text, "      TYPE(*){comma}{attributes} :: {dummy}(*)").unwrap();
        }
    }
}

/// The type and the shape of a dummy argument.
fn declaration(parameter: &Parameter, large: bool) -> (String, String) {
    let length = match &parameter.length {
        Length::Named(length) => length.as_str(),
        _ => "*",
    };
    let shape = match parameter.kind.word() {
        "str" => String::new(),
        // A constant of one element may be passed for ignored results.
        "status" | "errcode" | "weight" | "index" if parameter.is_array() => "(*)".into(),
        "commands" | "argv" => "(*)".into(),
        "argvs" => "(count, *)".into(),
        "triple" => format!("(3, {length})"),
        _ if parameter.is_array() => format!("({length})"),
        _ => String::new(),
    };
    let ty = match parameter.kind.word() {
        word if parameter.is_function() => {
            return (format!("PROCEDURE({})", callback(word, large)), shape);
        }
        "ptr" => "TYPE(*)".into(),
        "status" => "TYPE(MPI_Status)".into(),
        "triple" => "INTEGER".into(),
        "flag" => "LOGICAL".into(),
        "str" => format!("CHARACTER(LEN={length})"),
        "commands" | "argv" | "argvs" => "CHARACTER(LEN=*)".into(),
        "offset" => OFFSET.into(),
        "attr" | "state" => ADDRESS.into(),
        "memory" | "detached" => "TYPE(c_ptr)".into(),
        _ => match parameter.handle() {
            Some(ty) => format!("TYPE({ty})"),
            None if parameter.is_choice() => "TYPE(*)".into(),
            None => integer(parameter.kind.rust(large)).into(),
        },
    };
    (ty, shape)
}

/// The abstract interface of a user's function.
fn callback(word: &str, large: bool) -> String {
    let name = word.trim_start_matches("fn_");
    let form = if large && ["user_function", "datarep_conversion_function"].contains(&name) {
        "_c"
    } else {
        ""
    };
    format!("MPI_{}{}{form}", name[..1].to_ascii_uppercase(), &name[1..])
}

/// The attributes INTENT and ASYNCHRONOUS of a dummy argument.
fn attributes(parameter: &Parameter, procedure: &Procedure) -> String {
    let mut parts = Vec::new();
    if let Some(intent) = intent(parameter, procedure) {
        parts.push(format!("INTENT({intent})"));
    }
    if parameter.is_asynchronous(procedure) {
        parts.push("ASYNCHRONOUS".into());
    }
    parts.join(", ")
}

fn intent(parameter: &Parameter, procedure: &Procedure) -> Option<&'static str> {
    // Exceptions in the standard.
    match (procedure.name.as_str(), parameter.name.as_str()) {
        ("Get_address", "location") | ("Win_detach", "base") => return None,
        // It is written, although C's parameter is a pointer without an intent.
        ("Abi_get_fortran_booleans", "logical_true" | "logical_false") => return None,
        ("Cancel", "request") | ("Free_mem", "base") => return Some("IN"),
        _ => {}
    }
    // A constant may be passed for ignored results.
    let is_ignorable = ["status", "errcode", "weight", "ptr"].contains(&parameter.kind.word());
    match parameter.access {
        _ if parameter.is_function() || parameter.kind.word() == "out" => None,
        Access::Out if is_ignorable => None,
        Access::In | Access::Read => Some("IN"),
        Access::Out => Some("OUT"),
        Access::InOut => Some("INOUT"),
    }
}

/// Writes the conversions between the statuses of the two modules, which have the same integers.
fn write_conversions_of_status(text: &mut String, prefix: &str) {
    let (old, new) = (
        "INTEGER, INTENT({}) :: f_status(MPI_STATUS_SIZE)",
        "TYPE(MPI_Status), INTENT({}) :: f08_status",
    );
    for (name, dummies, is_to_new) in [
        ("Status_f2f08", "f_status, f08_status", true),
        ("Status_f082f", "f08_status, f_status", false),
    ] {
        let intent = |is_out: bool| if is_out { "OUT" } else { "IN" };
        write!(
            text,
            "  interface {prefix}{name}\n    subroutine {prefix}{name}_f08({dummies}, ierror)\n      import\n      \
             implicit none\n      {}\n      {}\n      INTEGER, OPTIONAL, INTENT(OUT) :: ierror\n    \
             end subroutine {prefix}{name}_f08\n  end interface\n",
            old.replace("{}", intent(!is_to_new)),
            new.replace("{}", intent(is_to_new))
        )
        .unwrap();
    }
}
