//! Generator of the calls of the standard ABI: a name, and a function that calls its pointer, for
//! every form of every procedure.

use std::fmt::Write;
use tables::table::{Chapter, Procedure, State};

use crate::signature::Signature;

/// The source text of the module `standard`.
pub(crate) fn generate(chapters: &[Chapter]) -> String {
    let (mut names, mut calls, mut number) = (String::new(), String::new(), 0);
    let procedures = chapters.iter().flat_map(|chapter| &chapter.procedures);
    for procedure in procedures.filter(|procedure| procedure.chapter != 0) {
        for &large in procedure.forms() {
            writeln!(names, "    c\"{}\",", procedure.c_name("MPI_", large)).unwrap();
            write_call(&mut calls, procedure, large, number);
            number += 1;
        }
    }
    format!(
        "/// The names in the order of the pointers.\npub(crate) const NAMES: [&CStr; {number}] = [\n{names}];\n{calls}"
    )
}

/// The function of the standard ABI that an entry point calls. `None`: this library has a function
/// of its own.
pub(crate) fn callee(procedure: &Procedure, large: bool) -> Option<String> {
    let name = match &procedure.state {
        State::WorksAs(other) => other,
        _ if procedure.chapter == 0 => return None,
        _ => &procedure.name,
    };
    Some(format!(
        "{}{}",
        name.to_ascii_lowercase(),
        if large { "_c" } else { "" }
    ))
}

fn write_call(text: &mut String, procedure: &Procedure, large: bool, number: usize) {
    let Signature {
        parameters,
        names,
        types,
        returns,
    } = Signature::of(procedure, large);
    writeln!(
        text,
        "/// `MPI_{}`\n///\n/// # Safety\n/// Those of the entry points.\n#[inline(always)]\npub unsafe fn {}({}) -> {returns} {{\n    \
         // SAFETY: the pointer is that of the function of this name, or of one that takes any \
         arguments.\n    \
         unsafe {{ transmute::<*mut c_void, unsafe extern \"C\" fn({}) -> {returns}>(library::function({number}))({}) }}\n}}",
        procedure.c_name("", large),
        procedure.c_name("", large).to_ascii_lowercase(),
        parameters,
        types,
        names,
    )
    .unwrap();
}
