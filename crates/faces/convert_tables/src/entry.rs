//! The entry points: for every form of every procedure, the conversion of its arguments to the
//! standard ABI, the call, and the conversion of its results.

use crate::parameter::Conversion;
use crate::signature::Signature;
use crate::standard::callee;
use std::fmt::Write;
use tables::table::{Chapter, Procedure};

/// The text of the module `entry`.
///
/// `is_shorter`: whether texts up to a limit are shorter than in the standard ABI.
pub(crate) fn generate(chapters: &[Chapter], is_shorter: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        for &large in procedure.forms() {
            if let Some(callee) = callee(procedure, large) {
                write_entry(&mut text, procedure, large, &callee, is_shorter);
            }
        }
    }
    text
}

fn write_entry(
    text: &mut String,
    procedure: &Procedure,
    large: bool,
    callee: &str,
    is_shorter: &dyn Fn(&str) -> bool,
) {
    let Signature {
        parameters: signature,
        names,
        returns,
        ..
    } = Signature::of(procedure, large);
    let body = procedure.c_name("", large).to_ascii_lowercase();

    let inner = match integer_handle(procedure) {
        Some(expression) => format!("    {expression}\n"),
        None => format!(
            "    // SAFETY: the C program's promises about the arguments.\n    unsafe {{\n{}    }}\n",
            write_body(procedure, large, callee, is_shorter)
        ),
    };
    // Parameters beyond the sixth lie on the stack, and would be pushed once more for a call.
    let inlined = if names.split(", ").count() > 6 {
        "always"
    } else {
        "never"
    };
    writeln!(
        text,
        "/// # Safety\n/// Those of the entry points.\n#[inline({inlined})]\n\
         unsafe extern \"C\" fn {body}({signature}) -> {returns} {{\n{inner}}}"
    )
    .unwrap();
    for prefix in ["MPI_", "PMPI_"] {
        let name = procedure.c_name(prefix, large);
        writeln!(
            text,
            "/// `{name}` of the program's `mpi.h`.\n///\n/// # Safety\n/// The promises that the standard asks of a C \
             program for this procedure.\n#[unsafe(no_mangle)]\n\
             pub(crate) unsafe extern \"C\" fn {name}({signature}) -> {returns} {{\n    \
             // SAFETY: the C program's promises about the arguments are passed on unchanged.\n    \
             unsafe {{ {body}({names}) }}\n}}"
        )
        .unwrap();
    }
    text.push('\n');
}

fn write_body(
    procedure: &Procedure,
    large: bool,
    callee: &str,
    is_shorter: &dyn Fn(&str) -> bool,
) -> String {
    let conversions: Vec<_> = procedure
        .parameters(large)
        .filter(|parameter| parameter.kind.word() != "...")
        .map(|parameter| Conversion::of(procedure, parameter, large, is_shorter))
        .collect();
    let mut text = String::new();
    for line in conversions.iter().flat_map(|conversion| &conversion.before) {
        writeln!(text, "        {line}").unwrap();
    }
    let mut arguments: Vec<_> = conversions.iter().map(|c| c.argument.as_str()).collect();
    // Its members may be marks of bounds, which the standard does not have any more.
    let has_marks = callee == "type_create_struct";
    if has_marks {
        arguments.insert(0, "array_of_types");
    }
    let module = if has_marks { "markers" } else { "standard" };
    let call = format!("{module}::{callee}({})", arguments.join(", "));
    if procedure.returns.is_some() {
        writeln!(text, "        {call}").unwrap();
        return text;
    }
    writeln!(text, "        let code = {call};").unwrap();
    for line in conversions.iter().flat_map(|conversion| &conversion.after) {
        writeln!(text, "        {line}").unwrap();
    }
    for line in extra(procedure) {
        writeln!(text, "        {line}").unwrap();
    }
    text.push_str("        convert::code(code)\n");
    text
}

/// The integers of handles are the program's ABI's own. A file is a pointer in both ABIs.
fn integer_handle(procedure: &Procedure) -> Option<String> {
    let class = ["_toint", "_fromint"]
        .iter()
        .find_map(|end| procedure.name.strip_suffix(end))?;
    if class == "File" {
        let end = procedure.name.trim_start_matches("File_");
        return Some(format!("fortran::file_{end}(file)"));
    }
    let parameter = procedure.parameters.first()?;
    let conversion = procedure.name.rsplit('_').next()?;
    let class = class.to_ascii_uppercase().replace("TYPE", "DATATYPE");
    Some(format!(
        "crate::program::{conversion}(&{class}, {})",
        parameter.name
    ))
}

/// Lines that one procedure alone needs after its call.
fn extra(procedure: &Procedure) -> Vec<&'static str> {
    match procedure.name.as_str() {
        "Comm_get_attr" | "Attr_get" | "Win_get_attr" => vec![
            "if code == 0 && !flag.is_null() && *flag != 0 && !attribute_val.is_null() { attributes::convert(keyval_standard, attribute_val); }",
        ],
        // This is none of the ABIs that the standard numbers.
        "Abi_get_version" => {
            vec![
                "if code == 0 && !abi_major.is_null() && !abi_minor.is_null() { (*abi_major, *abi_minor) = (-1, -1); }",
            ]
        }
        "Type_get_contents" => vec![
            "if code == 0 { contents::convert(datatype_standard, max_integers as i64, array_of_integers); }",
        ],
        _ => Vec::new(),
    }
}
