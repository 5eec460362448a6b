//! Generator of the calls of the C library: the names of all functions, and for each a function
//! that calls its pointer. Its parameter `P` is true for the pointer of the name `PMPI_`.

use crate::kinds::FortranProcedure;
use crate::kinds::HANDLES;
use std::fmt::Write;
use tables::table::{Chapter, Procedure, State};

/// The source text of the module `standard`.
pub(crate) fn generate(chapters: &[Chapter]) -> String {
    let (mut names, mut calls, mut number) = (String::new(), String::new(), 0);
    let procedures = chapters.iter().flat_map(|chapter| &chapter.procedures);
    for procedure in procedures.filter(|p| p.chapter != 0 && !p.is_tools()) {
        for &large in procedure.forms() {
            writeln!(names, "    c\"{}\",", procedure.c_name("PMPI_", large)).unwrap();
            write_call(&mut calls, procedure, large, number);
            number += 1;
        }
    }
    format!(
        "/// The names in the order of the pointers, with `P` before them.\n\
         pub(crate) const NAMES: [&CStr; {number}] = [\n{names}];\n{calls}"
    )
}

/// The path of the function that an entry point calls.
pub(crate) fn callee(procedure: &Procedure, large: bool) -> String {
    let (module, name) = match &procedure.state {
        State::WorksAs(other) => ("standard", other),
        _ if procedure.is_old() => ("removed", &procedure.name),
        _ => ("standard", &procedure.name),
    };
    let form = if large { "_c" } else { "" };
    format!(
        "{module}::{}{form}::<Program, P>",
        name.to_ascii_lowercase()
    )
}

fn write_call(text: &mut String, procedure: &Procedure, large: bool, number: usize) {
    let parameters: Vec<_> = procedure
        .parameters(large)
        .filter(|parameter| parameter.kind.word() != "...")
        .map(|parameter| (parameter.name.as_str(), of_abi(&parameter.rust(large))))
        .collect();
    let signature: Vec<_> = parameters
        .iter()
        .map(|(name, ty)| format!("{name}: {ty}"))
        .collect();
    let names: Vec<_> = parameters.iter().map(|(name, _)| *name).collect();
    let types: Vec<_> = parameters.iter().map(|(_, ty)| ty.as_str()).collect();
    let returns = of_abi(procedure.returns.map_or("c_int", |kind| kind.rust(large)));
    writeln!(
        text,
        "/// `MPI_{}`\n///\n/// # Safety\n/// Those of the entry points.\n#[inline(always)]\npub unsafe fn {}<A: Abi, const P: bool>({}) -> {returns} {{\n    \
         // SAFETY: the pointer is that of the function of this name, or of one that takes any \
         arguments.\n    \
         unsafe {{ transmute::<*mut c_void, unsafe extern \"C\" fn({}) -> {returns}>(library::function::<P>({number}))({}) }}\n}}",
        procedure.c_name("", large),
        procedure.c_name("", large).to_ascii_lowercase(),
        signature.join(", "),
        types.join(", "),
        names.join(", "),
    )
    .unwrap();
}

/// A type that is generic over the ABI, if it contains a handle or a status.
fn of_abi(ty: &str) -> String {
    let start = ty.rfind(' ').map_or(0, |space| space + 1);
    let is_class = HANDLES
        .iter()
        .any(|(_, class)| class.ends_with(&format!("_{}", &ty[start..])));
    let word = match &ty[start..] {
        "File" => "usize",
        "Status" => "A::Status",
        _ if is_class => "A::Handle",
        _ => return ty.into(),
    };
    format!("{}{word}", &ty[..start])
}
