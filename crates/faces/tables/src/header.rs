//! The generator of `include/mpi.h`. The types, which no table has, come from `header_types.h`. The
//! types of users' functions, which need enumerations among the constants, come from
//! `header_functions.h`.

use crate::constants::{Constant, Group};
use crate::fortran_names;
use crate::table::{Chapter, Procedure};
use std::fmt::Write;

const TYPES: &str = include_str!("header_types.h");
const FUNCTIONS: &str = include_str!("header_functions.h");

/// The text of `include/mpi.h`.
pub fn generate(chapters: &[Chapter], removed: &[Chapter], groups: &[Group]) -> String {
    let mut text = String::from(
        "/* The standard ABI of MPI 5.0, for C99 and C++. Generated from crates/faces/tables/procedures.txt, removed.txt and\n   \
         constants.txt; to change it, change those and run `REGENERATE=1 cargo test -p abi generated`. */\n\
         #ifndef MPI_H_ABI\n#define MPI_H_ABI\n\n",
    );
    text.push_str(TYPES);
    for group in groups {
        write_group(&mut text, group);
    }
    text.push_str(FUNCTIONS);
    write_prototypes(&mut text, chapters);
    text.push_str("\n#ifdef FISHPLATE_REMOVED_NAMES\n");
    text.push_str("typedef MPI_Comm_errhandler_function MPI_Handler_function;\n");
    write_prototypes(&mut text, removed);
    text.push_str("#endif\n");
    text.push_str(&fortran_names::generate(chapters));
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

fn write_prototypes(text: &mut String, chapters: &[Chapter]) {
    for prefix in ["MPI_", "PMPI_"] {
        for chapter in chapters {
            writeln!(text, "\n/* {} */", chapter.title).unwrap();
            for procedure in &chapter.procedures {
                for &large in procedure.forms() {
                    write!(text, "{};", prototype(procedure, prefix, large)).unwrap();
                    if let Some(version) = &procedure.deprecated {
                        write!(text, " /* deprecated since MPI {version} */").unwrap();
                    }
                    text.push('\n');
                }
            }
        }
    }
}

/// The prototype of a procedure, such as `int MPI_Send(const void *buf, …)`.
pub fn prototype(procedure: &Procedure, prefix: &str, large: bool) -> String {
    let returns = procedure.returns.map_or("int", |kind| kind.c(large));
    let mut parameters: Vec<_> = procedure.parameters(large).map(|p| p.c(large)).collect();
    if parameters.is_empty() {
        parameters.push("void".into());
    }
    format!(
        "{returns} {}({})",
        procedure.c_name(prefix, large),
        parameters.join(", ")
    )
}

fn write_group(text: &mut String, group: &Group) {
    let constants: Vec<_> = group
        .constants
        .iter()
        .filter(|constant| constant.in_c())
        .collect();
    if constants.is_empty() {
        return;
    }
    writeln!(text, "\n/* {} */", group.title).unwrap();
    // The two enumerations of the tools interface are enumerations in C, so that C++ accepts their
    // constants as arguments of these types.
    if matches!(
        constants[0].c_type.as_str(),
        "MPI_T_cb_safety" | "MPI_T_source_order"
    ) {
        let members: Vec<_> = constants
            .iter()
            .map(|c| format!("    {} = {}", c.name, c.value))
            .collect();
        let ty = &constants[0].c_type;
        writeln!(
            text,
            "typedef enum {ty} {{\n{}\n}} {ty};",
            members.join(",\n")
        )
        .unwrap();
        return;
    }
    for constant in constants {
        writeln!(text, "#define {} {}", constant.name, expression(constant)).unwrap();
    }
}

fn expression(constant: &Constant) -> String {
    match constant.c_type.as_str() {
        "int" if constant.value.starts_with('-') => format!("({})", constant.value),
        "int" => constant.value.clone(),
        ty => format!("(({ty}) {})", constant.value),
    }
}
