//! Generator of the constants: the module `mpi_constants`, which both Fortran modules share, the
//! header `mpif.h`, and the constants for our Rust code.

use crate::Tables;
use crate::commons::{Block, COMMONS, Variable, attribute, with_attribute};
use crate::kinds::FortranProcedure;
use crate::kinds::HANDLES;
use crate::predefined::FUNCTIONS;
use std::fmt::Write;
use tables::constants::{Constant, Group};
use tables::table::Procedure;

/// Kinds of integers: name, and an expression that has this value with every compiler.
const KINDS: [(&str, &str); 4] = [
    ("MPI_ADDRESS_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_OFFSET_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_COUNT_KIND", "SELECTED_INT_KIND(18)"),
    ("MPI_INTEGER_KIND", "KIND(0)"),
];

/// The value of MPI_SUBARRAYS_SUPPORTED and MPI_ASYNC_PROTECTS_NONBLOCKING in `mpi` and `mpif.h`,
/// where the compiler copies sections.
const SUPPORTED: &str = ".FALSE.";

/// An integer constant of Fortran.
pub(crate) struct Value<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: i64,
    /// The derived type of the handle in `mpi_f08`, if the constant is a handle.
    pub(crate) handle: Option<&'static str>,
    /// The kind of the integer, if it is not the default one: only of `MPI_DISPLACEMENT_CURRENT`.
    pub(crate) kind: Option<&'static str>,
}

/// All integer constants of Fortran, handles included, in the order of the table.
pub(crate) fn values(groups: &[Group]) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    for group in groups {
        // Of the tools interface, which belongs to C, Fortran has only these constants.
        let is_tools = group.title.starts_with("Tools") && group.title != "Tools: verbosity";
        let is_of_c = is_tools || group.title.ends_with("seen from C");
        for constant in group.constants.iter().filter(|_| !is_of_c) {
            values.extend(value(constant, &group.title));
        }
    }
    values
}

fn value<'a>(constant: &'a Constant, title: &str) -> Option<Value<'a>> {
    let handle = HANDLES.iter().find(|(_, ty)| *ty == constant.c_type);
    let is_integer = ["int", "fortran", "MPI_Offset"].contains(&constant.c_type.as_str());
    if handle.is_none() && !is_integer {
        return None;
    }
    let number = match constant.value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => constant.value.parse(),
    };
    // Constants without a number have a value that depends on the compiler.
    let number = number.ok()?;
    // Strings have no NUL in Fortran.
    let nul = i64::from(title.starts_with("Longest strings"));
    Some(Value {
        name: &constant.name,
        value: number - nul,
        handle: handle.map(|(_, ty)| *ty),
        kind: (constant.c_type == "MPI_Offset").then_some("MPI_OFFSET_KIND"),
    })
}

/// The source texts of the module that both Fortran modules share, and of the module with the
/// integers of handles.
pub(crate) fn module(tables: &Tables) -> String {
    let mut text = String::from(
        "! Constants of the standard ABI. Generated.\n\n\
         module mpi_constants\n  implicit none\n  public\n",
    );
    for (name, expression) in KINDS {
        writeln!(text, "  integer, parameter :: {name} = {expression}").unwrap();
    }
    let values = values(&tables.constants);
    for Value {
        name, value, kind, ..
    } in values.iter().filter(|v| v.handle.is_none())
    {
        match kind {
            None => writeln!(text, "  integer, parameter :: {name} = {value}"),
            Some(kind) => writeln!(
                text,
                "  integer(kind={kind}), parameter :: {name} = {value}_{kind}"
            ),
        }
        .unwrap();
    }
    text.push_str(
        "end module mpi_constants\n\nmodule mpi_integer_handles\n  implicit none\n  public\n",
    );
    for Value { name, value, .. } in values.iter().filter(|v| v.handle.is_some()) {
        writeln!(text, "  integer, parameter :: {name} = {value}").unwrap();
    }
    text.push_str("end module mpi_integer_handles\n\n");
    text.push_str("! Variables that are recognised by their addresses.\n");
    text.push_str("module mpi_sentinels\n  implicit none\n  public\n");
    for Block(_, block, variables) in COMMONS {
        for Variable(ty, name, shape, _) in *variables {
            let ty = with_attribute(ty, name).to_ascii_lowercase();
            writeln!(text, "  {ty} :: {name}{shape}").unwrap();
        }
        let names: Vec<_> = variables.iter().map(|variable| variable.1).collect();
        writeln!(text, "  common /{block}/ {}", names.join(", ")).unwrap();
        writeln!(text, "  save /{block}/").unwrap();
    }
    text.push_str("end module mpi_sentinels\n");
    text
}

/// The text of the header `mpif.h`, which is valid in fixed and in free form: no line is longer
/// than 72 columns, and none is continued.
pub(crate) fn header(tables: &Tables) -> String {
    let mut text =
        String::from("! mpif.h of the standard ABI, for fixed and free form. Generated.\n");
    let mut line = |line: &str| {
        assert!(line.len() <= 66, "longer than a line of fixed form: {line}");
        writeln!(text, "      {line}").unwrap();
    };
    for (name, expression) in KINDS {
        line(&format!("INTEGER {name}"));
        line(&format!("PARAMETER ({name}={expression})"));
    }
    for Value {
        name, value, kind, ..
    } in values(&tables.constants)
    {
        match kind {
            None => line(&format!("INTEGER {name}")),
            Some(kind) => line(&format!("INTEGER(KIND={kind}) {name}")),
        }
        line(&format!("PARAMETER ({name}={value})"));
    }
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        line(&format!("LOGICAL {name}"));
        line(&format!("PARAMETER ({name}={SUPPORTED})"));
    }
    for Block(_, block, variables) in COMMONS {
        for Variable(ty, name, shape, _) in *variables {
            line(&format!("{ty} {name}{shape}"));
            if let Some(attribute) = attribute(name) {
                line(&format!("{attribute} {name}"));
            }
            // Another COMMON statement may extend the block.
            line(&format!("COMMON /{block}/ {name}"));
        }
        line(&format!("SAVE /{block}/"));
    }
    for (name, _, _) in FUNCTIONS {
        line(&format!("EXTERNAL {name}"));
    }
    for procedure in tables.procedures().filter(|p| p.returns.is_some()) {
        for prefix in ["MPI_", "PMPI_"] {
            line(&format!("EXTERNAL {prefix}{}", procedure.fortran(false)));
            line(&format!(
                "{} {prefix}{}",
                result(procedure),
                procedure.fortran(false)
            ));
        }
    }
    crate::sizeof::header(line);
    text
}

/// The source text of the logical constants of the module `mpi`.
pub(crate) fn support() -> String {
    let mut text = String::new();
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        let value = SUPPORTED.to_ascii_lowercase();
        writeln!(text, "  logical, parameter :: {name} = {value}").unwrap();
    }
    text
}

/// The Fortran type of a function's result.
pub(crate) fn result(procedure: &Procedure) -> &'static str {
    let kind = procedure.returns.expect("it is a function");
    crate::kinds::integer(kind.rust(false))
}

/// The source text of a trait of an ABI's constants in Rust: integers, and Fortran's integers of
/// handles. Its defaults are the standard's values.
pub(crate) fn of_standard(groups: &[Group]) -> String {
    let mut text = String::from("/// Constants of an ABI.\npub trait Constants {\n");
    for (name, value) in integers(groups) {
        writeln!(
            text,
            "    /// `{name}`\n    const {name}: c_int = {value}_i64 as c_int;"
        )
        .unwrap();
    }
    text + "}\n"
}

/// The source text of the constants of a library whose ABI has these.
pub(crate) fn of_library(own: &[Group]) -> String {
    let mut text = String::from("impl Constants for Program {\n");
    for (name, value) in integers(own) {
        writeln!(text, "    const {name}: c_int = {value}_i64 as c_int;").unwrap();
    }
    text + "}\n"
}

/// Names and values of the integers of a table, and of Fortran's integers of handles.
fn integers(groups: &[Group]) -> Vec<(String, String)> {
    let constants = all(groups).into_iter();
    constants
        .filter(|(_, ty, _)| ty == "int" || is_handle(ty))
        .map(|(name, _, value)| (name, value))
        .collect()
}

/// Names and values of Fortran's integers of the handles of a table.
pub(crate) fn handles(groups: &[Group]) -> Vec<(String, String)> {
    let constants = all(groups).into_iter();
    constants
        .filter(|(_, ty, _)| is_handle(ty))
        .map(|(name, _, value)| (name, value))
        .collect()
}

fn is_handle(ty: &str) -> bool {
    HANDLES.iter().any(|(_, of_handle)| *of_handle == ty)
}

/// Name, type and value of each constant.
fn all(groups: &[Group]) -> Vec<(String, String, String)> {
    let constants = groups.iter().flat_map(|group| &group.constants);
    let row = |constant: &Constant| {
        let Constant {
            name,
            value,
            c_type,
        } = constant;
        // If a handle is the address of a symbol, Fortran's integer follows the type in the table.
        let symbol = c_type.split_once(' ');
        let symbol = symbol.filter(|(_, end)| end.parse::<i32>().is_ok());
        let (ty, value) = symbol.unwrap_or((c_type, value));
        (name.clone(), ty.to_string(), value.to_string())
    };
    constants.map(row).collect()
}
