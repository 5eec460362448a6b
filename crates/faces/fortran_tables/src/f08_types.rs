//! Generator of the module `mpi_f08_types`: handles as derived types, constants and users'
//! functions.

use crate::Tables;
use crate::commons::{Block, COMMONS, Variable, with_attribute};
use crate::constants::{self, Value};
use crate::interfaces::write_wrapped;
use crate::kinds::HANDLES;
use crate::predefined::FUNCTIONS;
use std::fmt::Write;

/// The abstract interfaces of users' functions: name, and dummy arguments with their types.
const CALLBACKS: &[(&str, &[(&str, &str)])] = &[
    (
        "MPI_User_function",
        &[
            ("invec, inoutvec", POINTER),
            ("len", "INTEGER"),
            ("datatype", "TYPE(MPI_Datatype)"),
        ],
    ),
    (
        "MPI_User_function_c",
        &[
            ("invec, inoutvec", POINTER),
            ("len", COUNT),
            ("datatype", "TYPE(MPI_Datatype)"),
        ],
    ),
    (
        "MPI_Comm_copy_attr_function",
        &[
            ("oldcomm", "TYPE(MPI_Comm)"),
            ("comm_keyval", "INTEGER"),
            COPIED,
            FLAG,
            CODE,
        ],
    ),
    (
        "MPI_Comm_delete_attr_function",
        &[
            ("comm", "TYPE(MPI_Comm)"),
            ("comm_keyval", "INTEGER"),
            DELETED,
            CODE,
        ],
    ),
    (
        "MPI_Type_copy_attr_function",
        &[
            ("oldtype", "TYPE(MPI_Datatype)"),
            ("type_keyval", "INTEGER"),
            COPIED,
            FLAG,
            CODE,
        ],
    ),
    (
        "MPI_Type_delete_attr_function",
        &[
            ("datatype", "TYPE(MPI_Datatype)"),
            ("type_keyval", "INTEGER"),
            DELETED,
            CODE,
        ],
    ),
    (
        "MPI_Win_copy_attr_function",
        &[
            ("oldwin", "TYPE(MPI_Win)"),
            ("win_keyval", "INTEGER"),
            COPIED,
            FLAG,
            CODE,
        ],
    ),
    (
        "MPI_Win_delete_attr_function",
        &[
            ("win", "TYPE(MPI_Win)"),
            ("win_keyval", "INTEGER"),
            DELETED,
            CODE,
        ],
    ),
    (
        "MPI_Comm_errhandler_function",
        &[("comm", "TYPE(MPI_Comm)"), ERROR],
    ),
    (
        "MPI_Win_errhandler_function",
        &[("win", "TYPE(MPI_Win)"), ERROR],
    ),
    (
        "MPI_File_errhandler_function",
        &[("file", "TYPE(MPI_File)"), ERROR],
    ),
    (
        "MPI_Session_errhandler_function",
        &[("session", "TYPE(MPI_Session)"), ERROR],
    ),
    (
        "MPI_Grequest_query_function",
        &[STATE, ("status", "TYPE(MPI_Status)"), CODE],
    ),
    ("MPI_Grequest_free_function", &[STATE, CODE]),
    (
        "MPI_Grequest_cancel_function",
        &[STATE, ("complete", "LOGICAL"), CODE],
    ),
    (
        "MPI_Datarep_extent_function",
        &[
            ("datatype", "TYPE(MPI_Datatype)"),
            ("extent, extra_state", ADDRESS),
            CODE,
        ],
    ),
    (
        "MPI_Datarep_conversion_function",
        &[
            ("userbuf", POINTER),
            ("datatype", "TYPE(MPI_Datatype)"),
            ("count", "INTEGER"),
            ("filebuf", POINTER),
            ("position", OFFSET),
            STATE,
            CODE,
        ],
    ),
    (
        "MPI_Datarep_conversion_function_c",
        &[
            ("userbuf", POINTER),
            ("datatype", "TYPE(MPI_Datatype)"),
            ("count", COUNT),
            ("filebuf", POINTER),
            ("position", OFFSET),
            STATE,
            CODE,
        ],
    ),
];
const POINTER: &str = "TYPE(c_ptr), VALUE";
pub(crate) const COUNT: &str = "INTEGER(KIND=MPI_COUNT_KIND)";
pub(crate) const OFFSET: &str = "INTEGER(KIND=MPI_OFFSET_KIND)";
pub(crate) const ADDRESS: &str = "INTEGER(KIND=MPI_ADDRESS_KIND)";
const COPIED: (&str, &str) = ("extra_state, attribute_val_in, attribute_val_out", ADDRESS);
const DELETED: (&str, &str) = ("attribute_val, extra_state", ADDRESS);
const STATE: (&str, &str) = ("extra_state", ADDRESS);
const FLAG: (&str, &str) = ("flag", "LOGICAL");
const CODE: (&str, &str) = ("ierror", "INTEGER");
const ERROR: (&str, &str) = ("error_code", "INTEGER");

/// The source text of the module with types, constants and users' functions.
pub(crate) fn types(tables: &Tables) -> String {
    let mut text = String::from(
        "! Handles, constants and users' functions of the module mpi_f08. Generated.\n\n\
         module mpi_f08_types\n  use mpi_constants\n  use mpi_types\n  implicit none\n  public\n",
    );
    for Value {
        name,
        value,
        handle,
        ..
    } in constants::values(&tables.constants)
    {
        if let Some(ty) = handle {
            writeln!(text, "  type({ty}), parameter :: {name} = {ty}({value})").unwrap();
        }
    }
    write_sentinels(&mut text);
    write_assignments(&mut text);
    text.push_str("  abstract interface\n");
    for (name, groups) in CALLBACKS {
        let dummies: Vec<_> = groups.iter().map(|(names, _)| *names).collect();
        write_wrapped(
            &mut text,
            &format!("    subroutine {name}({})", dummies.join(", ")),
        );
        text.push_str("      use, intrinsic :: iso_c_binding, only: c_ptr\n      import\n      implicit none\n");
        for (names, ty) in *groups {
            writeln!(text, "      {ty} :: {names}").unwrap();
        }
        writeln!(text, "    end subroutine {name}").unwrap();
    }
    text.push_str("  end interface\n");
    for (name, kind) in FUNCTIONS
        .iter()
        .filter_map(|(name, _, _)| Some((name, callback_of(name)?)))
    {
        writeln!(text, "  procedure({kind}) :: {name}").unwrap();
    }
    text.push_str("contains\n");
    for (_, ty) in HANDLES {
        write_assignment_bodies(&mut text, ty);
    }
    text.push_str("end module mpi_f08_types\n");
    text
}

/// The name of the abstract interface of a predefined function; `None` for functions of MPI 1,
/// which are not in this module.
fn callback_of(name: &str) -> Option<String> {
    let class = ["Comm", "Type", "Win"]
        .into_iter()
        .find(|class| name.starts_with(&format!("MPI_{}_", class.to_ascii_uppercase())));
    match (class, name) {
        (Some(class), _) if name.contains("DELETE") => {
            Some(format!("MPI_{class}_delete_attr_function"))
        }
        (Some(class), _) => Some(format!("MPI_{class}_copy_attr_function")),
        (_, "MPI_CONVERSION_FN_NULL") => Some("MPI_Datarep_conversion_function".into()),
        (_, "MPI_CONVERSION_FN_NULL_C") => Some("MPI_Datarep_conversion_function_c".into()),
        // Predefined functions of MPI 1 are not in this module.
        _ => None,
    }
}

/// Writes the variables that are recognised by their addresses.
fn write_sentinels(text: &mut String) {
    for Block(_, block, variables) in COMMONS {
        for Variable(ty, name, shape, _) in *variables {
            let (ty, shape) = match *name {
                "MPI_STATUS_IGNORE" => ("type(MPI_Status)", ""),
                "MPI_STATUSES_IGNORE" => ("type(MPI_Status)", "(1)"),
                _ => (*ty, *shape),
            };
            let ty = with_attribute(ty, name);
            writeln!(text, "  {ty} :: {name}{shape}").unwrap();
        }
        let names: Vec<_> = variables.iter().map(|variable| variable.1).collect();
        writeln!(
            text,
            "  common /{block}/ {}\n  save /{block}/",
            names.join(", ")
        )
        .unwrap();
    }
}

/// Writes the assignments between handles and integers. The comparisons are those of `mpi_types`.
fn write_assignments(text: &mut String) {
    text.push_str("  interface assignment(=)\n");
    for (_, ty) in HANDLES {
        writeln!(
            text,
            "    module procedure {ty}_from_integer, {ty}_to_integer"
        )
        .unwrap();
    }
    text.push_str("  end interface\n");
    for (_, ty) in HANDLES {
        writeln!(text, "  private :: {ty}_from_integer, {ty}_to_integer").unwrap();
    }
}

fn write_assignment_bodies(text: &mut String, ty: &str) {
    for (word, to, from, statement) in [
        (
            "from_integer",
            format!("type({ty})"),
            "integer".to_string(),
            "to%MPI_VAL = from",
        ),
        (
            "to_integer",
            "integer".to_string(),
            format!("type({ty})"),
            "to = from%MPI_VAL",
        ),
    ] {
        write!(
            text,
            "  elemental subroutine {ty}_{word}(to, from)\n    {to}, intent(out) :: to\n    \
             {from}, intent(in) :: from\n    {statement}\n  end subroutine\n"
        )
        .unwrap();
    }
}
