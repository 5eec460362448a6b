//! Generator of the entry points of an older ABI: for every form of every procedure, the conversion
//! of its arguments to the standard ABI, the call, and the conversion of its results.

use crate::parameter::conversion;
use crate::signature::Signature;
use crate::standard::callee;
use std::fmt::Write;
use tables::table::{Chapter, Procedure};

/// The source text of the module `entry`.
///
/// `is_shorter`: true for a limit of strings that is lower than in the standard ABI.
///
/// `is_shorter`: true for a limit of strings that is lower than in the standard ABI.
pub(crate) fn generate(chapters: &[Chapter], is_shorter: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::from(USES);
    for (class, _) in CLASSES {
        writeln!(text, "type {class} = <Program as Abi>::Handle;").unwrap();
    }
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        for &large in procedure.forms() {
            if let Some(callee) = callee(procedure, large) {
                write_entry(&mut text, procedure, large, &callee, is_shorter);
            }
        }
    }
    write_fortran(&mut text);
    for (name, bound) in BOUNDS {
        let parameters = ["datatype: Datatype", "bound: *mut isize"];
        let body = format!("removed::extent::<Program>(datatype, bound, {bound})");
        write_exported(&mut text, name, &parameters, "c_int", &body);
    }
    text
}

/// The first lines of the generated module: its imports and types.
const USES: &str = "use crate::program::{CLASSES, Program};
use abi_convert::array::Array;
use abi_convert::constants::standard as standard_constants;
use abi_convert::late_arrays::LateArrays;
use abi_convert::types::{StandardStatus, callback};
use abi_convert::{
    Abi, Constants, Handles, attributes, buffers, callbacks, classes, contents, convert, datarep,
    fortran, markers, peers, removed, standard, status,
};
use std::ffi::{c_char, c_int, c_void};
type File = usize;
type ToolsHandle = usize;
type Status = <Program as Abi>::Status;
";

/// The classes of handles: names of types, and their names inside names of procedures.
const CLASSES: [(&str, &str); 10] = [
    ("Comm", "Comm"),
    ("Errhandler", "Errhandler"),
    ("Group", "Group"),
    ("Info", "Info"),
    ("Message", "Message"),
    ("Op", "Op"),
    ("Request", "Request"),
    ("Session", "Session"),
    ("Datatype", "Type"),
    ("Win", "Win"),
];

/// Procedures of MPI 1 for bounds of a datatype, with the result's computation from the lower bound
/// and the extent.
const BOUNDS: [(&str, &str); 3] = [
    ("Type_extent", "|_, extent| extent"),
    ("Type_lb", "|lower, _| lower"),
    ("Type_ub", "|lower, extent| lower.wrapping_add(extent)"),
];

/// Writes conversions between C and Fortran that are no procedures of the standard ABI.
fn write_fortran(text: &mut String) {
    for (class, word) in CLASSES {
        let field = class.to_ascii_lowercase();
        let body = |function: &str| format!("Program::{function}(&CLASSES.{field}, handle)");
        let (handle, integer) = (format!("handle: {class}"), "handle: c_int");
        write_exported(
            text,
            &format!("{word}_c2f"),
            &[&handle],
            "c_int",
            &body("toint"),
        );
        write_exported(
            text,
            &format!("{word}_f2c"),
            &[integer],
            class,
            &body("fromint"),
        );
    }
    for (name, parameter, returns, function) in [
        ("File_c2f", "file: File", "c_int", "toint"),
        ("File_f2c", "file: c_int", "File", "fromint"),
    ] {
        let body = format!("fortran::file_{function}::<Program>(file)");
        write_exported(text, name, &[parameter], returns, &body);
    }
    for name in ["c2f", "f2c", "c2f08", "f082c", "f2f08", "f082f"] {
        let parameters = ["from: *const Status", "to: *mut Status"];
        let body = "fortran::copy::<Program>(from, to)";
        write_exported(text, &format!("Status_{name}"), &parameters, "c_int", body);
    }
}

/// Writes a function under both names, `MPI_` and `PMPI_`, whose body is one call.
fn write_exported(text: &mut String, name: &str, parameters: &[&str], returns: &str, body: &str) {
    let parameters = parameters.join(", ");
    for prefix in ["MPI_", "PMPI_"] {
        writeln!(
            text,
            "/// `{prefix}{name}` of the program's `mpi.h`.\n///\n/// # Safety\n/// Pointers are those of \
             values.\n#[unsafe(no_mangle)]\n\
             pub(crate) unsafe extern \"C\" fn {prefix}{name}({parameters}) -> {returns} {{\n    \
             // SAFETY: promised.\n    unsafe {{ {body} }}\n}}"
        )
        .unwrap();
    }
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
    // Parameters after the sixth are passed on the stack, and would be pushed again for a call.
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
        .map(|parameter| conversion(procedure, parameter, large, is_shorter))
        .collect();
    let mut text = String::new();
    for line in conversions.iter().flat_map(|conversion| &conversion.before) {
        writeln!(text, "        {line}").unwrap();
    }
    let mut arguments: Vec<_> = conversions.iter().map(|c| c.argument.as_str()).collect();
    // The members may be MPI_LB and MPI_UB, which the standard no longer has.
    let has_marks = callee == "type_create_struct";
    if has_marks {
        arguments.insert(0, "array_of_types");
    }
    let function = match has_marks {
        true => format!("markers::{callee}::<Program>"),
        false => format!("standard::{callee}"),
    };
    let call = format!("{function}({})", arguments.join(", "));
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
    text.push_str("        convert::code::<Program>(code)\n");
    text
}

/// The conversion between a handle and its integer, which belongs to the program's ABI. `None`: the
/// procedure is another. A file is a pointer in both ABIs.
fn integer_handle(procedure: &Procedure) -> Option<String> {
    let class = ["_toint", "_fromint"]
        .iter()
        .find_map(|end| procedure.name.strip_suffix(end))?;
    if class == "File" {
        let end = procedure.name.trim_start_matches("File_");
        return Some(format!("fortran::file_{end}::<Program>(file)"));
    }
    let parameter = procedure.parameters.first()?;
    let conversion = procedure.name.rsplit('_').next()?;
    let class = class.to_ascii_lowercase().replace("type", "datatype");
    Some(format!(
        "Program::{conversion}(&CLASSES.{class}, {})",
        parameter.name
    ))
}

/// Lines of generated code after the call, for the few procedures whose results need more than the
/// conversion of single parameters.
fn extra(procedure: &Procedure) -> Vec<&'static str> {
    match procedure.name.as_str() {
        "Comm_get_attr" | "Attr_get" | "Win_get_attr" => vec![
            "if code == 0 && !flag.is_null() && *flag != 0 && !attribute_val.is_null() { attributes::convert::<Program>(keyval_standard, attribute_val); }",
        ],
        // The program's ABI is none of the ABIs that the standard numbers.
        "Abi_get_version" => {
            vec![
                "if code == 0 && !abi_major.is_null() && !abi_minor.is_null() { (*abi_major, *abi_minor) = (-1, -1); }",
            ]
        }
        "Type_get_contents" => vec![
            "if code == 0 { contents::convert::<Program, _>(datatype_standard, max_integers as i64, array_of_integers); }",
        ],
        _ => Vec::new(),
    }
}
