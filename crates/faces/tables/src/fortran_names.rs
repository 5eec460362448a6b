//! The part of `include/mpi.h` with the names that the ABI omits: MPI_Fint, and conversions of
//! handles and statuses for Fortran. The conversions are inline functions over the ABI's own
//! MPI_X_fromint and MPI_X_toint. `names.c` compiles the same text to functions with symbols.

use crate::table::{Access, Chapter, Procedure};
use std::fmt::Write;

const TYPES: &str = include_str!("header_fortran.h");

/// The conversions between representations of a status: name, source parameter, target parameter,
/// and the direction between structures and Fortran's array of integers.
const STATUSES: &[(&str, &str, &str, Copy)] = &[
    (
        "c2f",
        "MPI_Status *c_status",
        "MPI_Fint *f_status",
        Copy::ToArray,
    ),
    (
        "f2c",
        "MPI_Fint *f_status",
        "MPI_Status *c_status",
        Copy::FromArray,
    ),
    (
        "c2f08",
        "MPI_Status *c_status",
        "MPI_F08_status *f08_status",
        Copy::Whole,
    ),
    (
        "f082c",
        "MPI_F08_status *f08_status",
        "MPI_Status *c_status",
        Copy::Whole,
    ),
    (
        "f082f",
        "MPI_F08_status *f08_status",
        "MPI_Fint *f_status",
        Copy::ToArray,
    ),
    (
        "f2f08",
        "MPI_Fint *f_status",
        "MPI_F08_status *f08_status",
        Copy::FromArray,
    ),
];

/// The direction in which a status is copied between structures and Fortran's array of integers.
enum Copy {
    /// A structure is assigned to a structure as a whole.
    Whole,
    ToArray,
    FromArray,
}

/// The text of the header's part with the Fortran names.
pub(crate) fn generate(chapters: &[Chapter]) -> String {
    let mut text = String::from(TYPES);
    for prefix in ["MPI_", "PMPI_"] {
        text.push('\n');
        for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
            write_handle(&mut text, prefix, procedure);
        }
        for (name, from, to, copy) in STATUSES {
            write_status(&mut text, prefix, name, (from, to), copy);
        }
    }
    text.push_str("\n#endif\n");
    text
}

/// Writes `MPI_X_f2c` for `MPI_X_fromint`, and `MPI_X_c2f` for `MPI_X_toint`; nothing for other
/// procedures.
fn write_handle(text: &mut String, prefix: &str, procedure: &Procedure) {
    let endings = [("_fromint", "_f2c"), ("_toint", "_c2f")];
    let Some((class, ending)) = endings
        .iter()
        .find_map(|(of_abi, ending)| Some((procedure.name.strip_suffix(of_abi)?, ending)))
    else {
        return;
    };
    let parameter = &procedure.parameters[0];
    assert!(parameter.access == Access::In);
    // An int of the ABI is declared as an MPI_Fint here.
    let fint = |ty: &'static str| if ty == "int" { "MPI_Fint" } else { ty };
    let returns = fint(procedure.returns.expect("a conversion returns").c(false));
    let (name, argument) = (format!("{prefix}{class}{ending}"), &parameter.name);
    let takes = fint(parameter.kind.c(false));
    let body = format!("return {prefix}{}({argument});", procedure.name);
    write_function(
        text,
        &name,
        &format!("{returns} {name}({takes} {argument})"),
        &body,
    );
}

fn write_status(
    text: &mut String,
    prefix: &str,
    name: &str,
    (from, to): (&str, &str),
    copy: &Copy,
) {
    let name = format!("{prefix}Status_{name}");
    let variable = |declared: &str| declared.rsplit('*').next().unwrap_or_default().to_string();
    let (read, written) = (variable(from), variable(to));
    let body = match copy {
        Copy::Whole => format!("*{written} = *{read}; return MPI_SUCCESS;"),
        Copy::ToArray => format!("return fishplate_status_to_array({read}, {written});"),
        Copy::FromArray => format!("return fishplate_status_from_array({read}, {written});"),
    };
    write_function(
        text,
        &name,
        &format!("int {name}(const {from}, {to})"),
        &body,
    );
}

/// Writes a function under an include guard. The macro of its name shows a program that the name
/// exists.
fn write_function(text: &mut String, name: &str, head: &str, body: &str) {
    writeln!(
        text,
        "#ifndef {name}\nFISHPLATE_NAME {head} {{ {body} }}\n#define {name} {name}\n#endif"
    )
    .unwrap();
}
