//! Generator of what a recording and a replay need of each recorded procedure: its signature, and a
//! function that calls its entry point with arguments that are words of memory.

use crate::kinds::Class;
use crate::table::{Access, Chapter, Length, Parameter, Procedure};
use std::fmt::Write;

/// The announced procedures in all their forms, in the order of their numbers.
pub fn forms(chapters: &[Chapter]) -> impl Iterator<Item = (&Procedure, bool)> {
    let all = chapters.iter().flat_map(|chapter| &chapter.procedures);
    let announced = all.filter(|procedure| procedure.is_announced());
    announced.flat_map(|procedure| {
        procedure
            .forms()
            .iter()
            .map(move |&large| (procedure, large))
    })
}

/// The source text of the table of procedures that traces record.
pub fn generate(chapters: &[Chapter]) -> String {
    let mut rows = String::new();
    for (procedure, large) in forms(chapters) {
        let parameters: Vec<&Parameter> = procedure.parameters(large).collect();
        let words: Vec<String> = parameters.iter().map(|one| word(one)).collect();
        let line = [vec![procedure.c_name("MPI_", large)], words]
            .concat()
            .join(" ");
        let is_wide = |one: &&Parameter| !["c_int", "[c_int; 3]"].contains(&one.kind.rust(large));
        let wide = parameters.iter().map(is_wide);
        let wide: Vec<String> = wide.map(|wide| wide.to_string()).collect();
        writeln!(
            rows,
            "    Recorded {{ name: \"{}\", line: \"{line}\", wide: &[{}], constructs: {} }},",
            procedure.c_name("MPI_", large),
            wide.join(", "),
            procedure.constructs()
        )
        .unwrap();
    }
    format!(
        "/// The announced procedures, by their numbers.\n\
         pub static RECORDED: &[Recorded] = &[\n{rows}];\n"
    )
}

/// The source text of the table of calls, which the module of the entry points includes.
pub fn generate_calls(chapters: &[Chapter]) -> String {
    let mut calls = String::new();
    for (procedure, large) in forms(chapters) {
        let parameters: Vec<&Parameter> = procedure.parameters(large).collect();
        let arguments = parameters.iter().enumerate();
        let arguments: Vec<String> = arguments
            .map(|(at, one)| argument(one, at, large))
            .collect();
        writeln!(
            calls,
            "    // SAFETY: the caller's promise is that of the entry point.\n    \
             |words| unsafe {{ let _ = words; {}({}) }},",
            procedure.c_name("", large).to_ascii_lowercase(),
            arguments.join(", ")
        )
        .unwrap();
    }
    format!(
        "/// Calls of the announced procedures with a word for each parameter, by their numbers.\n\
         pub static CALLED: &[unsafe fn(&[u64]) -> c_int] = &[\n{calls}];\n"
    )
}

/// The word of a parameter in the line of its procedure's signature.
fn word(parameter: &Parameter) -> String {
    let sign = match parameter.access {
        Access::In => "",
        Access::Read => "<",
        Access::Out => ">",
        Access::InOut => "<>",
    };
    let length = match &parameter.length {
        Length::One => String::new(),
        Length::Unknown => "[*]".into(),
        Length::Named(name) => format!("[{name}]"),
    };
    format!("{}:{sign}{}{length}", parameter.name, parameter.kind.word())
}

/// The expression that turns an argument into a 64-bit word.
pub(crate) fn as_word(parameter: &Parameter, large: bool) -> String {
    let name = &parameter.name;
    let rust = parameter.rust(large);
    match rust.as_str() {
        _ if parameter.kind.class() == Class::Function => format!("u64::from({name}.is_some())"),
        "c_int" | "i64" | "isize" => format!("{name} as u64"),
        _ if rust.starts_with('*') => format!("{name} as usize as u64"),
        _ => format!("{name}.0 as u64"),
    }
}

/// The expression of the argument whose word is the one at `at`.
fn argument(parameter: &Parameter, at: usize, large: bool) -> String {
    let rust = parameter.rust(large);
    match rust.as_str() {
        _ if parameter.kind.word() == "fn_user_function" => match large {
            true => "Some(callback::reduce_nothing_large)".into(),
            false => "Some(callback::reduce_nothing)".into(),
        },
        _ if parameter.kind.class() == Class::Function => "None".into(),
        "c_int" | "i64" | "isize" => format!("words[{at}] as {rust}"),
        _ if rust.starts_with('*') => format!("words[{at}] as usize as {rust}"),
        _ => format!("{rust}(words[{at}] as usize)"),
    }
}

/// The number of a recorded procedure, in its plain or its large form.
pub(crate) fn number(chapters: &[Chapter], wanted: &Procedure, large: bool) -> usize {
    let is_wanted = |(one, form): (&Procedure, bool)| one.name == wanted.name && form == large;
    let found = forms(chapters).position(is_wanted);
    found.expect("an announced procedure is in the table")
}
