//! Generator of the calls of the test with wild values: every entry point gets arguments of any
//! value, and every function of the standard ABI is replaced by one that writes any values.

use crate::signature::Signature;
use crate::standard::callee;
use std::fmt::Write;
use tables::kinds::Class;
use tables::table::{Chapter, Length, Parameter, Procedure};

/// The source text of a list of calls, one for every entry point, with its name.
pub(crate) fn calls(chapters: &[Chapter]) -> String {
    let mut calls = String::new();
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        for &large in procedure.forms() {
            if callee(procedure, large).is_some() {
                write_call(&mut calls, procedure, large);
            }
        }
    }
    format!("&[\n{calls}{OTHERS}]\n")
}

/// Calls of entry points that are no procedures of the table.
const OTHERS: &str = r#"    ("MPI_Type_extent", |wild| {
        wild.begin();
        // SAFETY: the pointer is NULL or that of memory.
        let _ = unsafe { crate::entry::MPI_Type_extent(wild.value(), wild.pointer()) };
    }),
    ("MPI_Status_c2f", |wild| {
        wild.begin();
        // SAFETY: the pointers are NULL or those of memory.
        let _ = unsafe { crate::entry::MPI_Status_c2f(wild.pointer(), wild.pointer()) };
    }),
    ("MPI_File_c2f", |wild| {
        // SAFETY: any word is an argument of these functions.
        let _ = unsafe { (crate::entry::MPI_File_f2c(wild.value()), crate::entry::MPI_File_c2f(wild.value())) };
    }),
"#;

/// The source text of the functions that replace those of the standard ABI, and of a list of them
/// in the order of their names.
pub(crate) fn stubs(chapters: &[Chapter]) -> String {
    let (mut stubs, mut table, mut number) = (String::new(), String::new(), 0);
    let procedures = chapters.iter().flat_map(|chapter| &chapter.procedures);
    for procedure in procedures.filter(|procedure| procedure.chapter != 0) {
        for &large in procedure.forms() {
            write_stub(&mut stubs, procedure, large, number);
            write!(table, "stub_{number} as *const c_void, ").unwrap();
            number += 1;
        }
    }
    format!(
        "/// A function in place of each of the standard ABI's, in the order of their names.\n\
         pub(crate) fn stubs() -> [*const c_void; {number}] {{\n    [{table}]\n}}\n{stubs}"
    )
}

fn write_call(text: &mut String, procedure: &Procedure, large: bool) {
    let name = procedure.c_name("MPI_", large);
    let arguments: Vec<_> = parameters(procedure, large)
        .map(|parameter| argument(procedure, parameter, large))
        .collect();
    writeln!(
        text,
        "    (\"{name}\", |wild| {{\n        wild.begin();\n        \
         // SAFETY: pointers are NULL, or have memory for what the lengths promise.\n        \
         let _ = unsafe {{ crate::entry::{name}({}) }};\n    }}),",
        arguments.join(", ")
    )
    .unwrap();
}

fn argument(procedure: &Procedure, parameter: &Parameter, large: bool) -> String {
    let ty = parameter.rust(large);
    let is_length = procedure
        .parameters(large)
        .any(|other| matches!(&other.length, Length::Named(name) if *name == parameter.name));
    // Numbers of processes are lengths too, and so is their sum.
    let is_length = is_length || parameter.name == "maxprocs";
    if parameter.kind.class() == Class::Function {
        "wild.function()".into()
    } else if procedure.name == "Comm_spawn_multiple" && parameter.name == "array_of_errcodes" {
        "std::ptr::null_mut()".into()
    } else if ty.starts_with('*') {
        "wild.pointer()".into()
    } else if is_length {
        "wild.length()".into()
    } else {
        "wild.value()".into()
    }
}

fn write_stub(text: &mut String, procedure: &Procedure, large: bool, number: usize) {
    let signature = Signature::of(procedure, large);
    let outputs: String = parameters(procedure, large)
        .filter(|parameter| parameter.rust(large).starts_with("*mut"))
        .map(|parameter| {
            let write = match parameter.rust(large).as_str() {
                "*mut *mut c_void" => "write_address",
                _ => "write",
            };
            format!("out.{write}({}); ", parameter.name)
        })
        .collect();
    writeln!(
        text,
        "#[allow(unused_variables)]\nextern \"C\" fn stub_{number}({}) -> {} {{\n    \
         super::stub(\"{}\", |out| {{ {outputs}}})\n}}",
        signature.parameters,
        signature.returns,
        procedure.c_name("MPI_", large)
    )
    .unwrap();
}

fn parameters(procedure: &Procedure, large: bool) -> impl Iterator<Item = &Parameter> {
    let parameters = procedure.parameters(large);
    parameters.filter(|parameter| parameter.kind.word() != "...")
}
