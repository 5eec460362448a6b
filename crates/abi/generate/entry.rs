//! The entry points: for every form of every procedure one body, and the two exported names that call
//! it, by a jump that leaves the arguments where they are. `PMPI_X` never goes through `MPI_X`, so a tool that puts itself before `MPI_X` sees what the
//! program calls and nothing that the library calls.

use super::table::{Access, Chapter, Length, Parameter, Procedure};
use std::fmt::Write;

/// The text of the module `entry`.
pub fn generate(chapters: &[Chapter]) -> String {
    let mut text = String::new();
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        for &large in procedure.forms() {
            write_entry(&mut text, procedure, large);
        }
    }
    text
}

fn write_entry(text: &mut String, procedure: &Procedure, large: bool) {
    let body = procedure.c_name("", large).to_ascii_lowercase();
    let parameters: Vec<_> = procedure
        .parameters(large)
        // A variadic function of these ABIs receives its fixed arguments like any other, and
        // MPI_Pcontrol looks at no others, so Rust need not be able to define one.
        .filter(|parameter| parameter.kind.word() != "...")
        .collect();
    let signature = parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, parameter.rust(large)))
        .collect::<Vec<_>>()
        .join(", ");
    let arguments = parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let returns = procedure.returns.map_or("c_int", |kind| kind.rust(large));

    let inner = write_body(procedure, large, &arguments);
    writeln!(
        text,
        "#[inline(never)]\nunsafe extern \"C\" fn {body}({signature}) -> {returns} {{\n{inner}}}"
    )
    .unwrap();
    if procedure.is_announced() {
        // With the arguments where they are, so that the way of a call that finds its rank is not longer for it.
        let name = procedure.c_name("MPI_", large);
        writeln!(
            text,
            "#[cold]\n#[inline(never)]\nunsafe extern \"C\" fn {body}_announced({signature}) -> c_int {{\n    \
             // SAFETY: the caller's promises are passed on unchanged.\n    \
             call_guard::announced(\"{name}\", move || unsafe {{ {body}({arguments}) }})\n}}"
        )
        .unwrap();
    }
    for prefix in ["MPI_", "PMPI_"] {
        let name = procedure.c_name(prefix, large);
        writeln!(
            text,
            "/// `{name}`, as `mpi.h` declares it.\n///\n/// # Safety\n/// The promises that the standard asks of a C \
             program for this procedure.\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({signature}) -> {returns} {{\n    \
             // SAFETY: the caller's promises are passed on unchanged.\n    \
             unsafe {{ {body}({arguments}) }}\n}}"
        )
        .unwrap();
    }
    text.push('\n');
}

fn write_body(procedure: &Procedure, large: bool, arguments: &str) -> String {
    let face = procedure.snake();
    let c_name = procedure.c_name("MPI_", large);
    if procedure.returns.is_some() {
        return format!("    procedures::{face}({arguments})\n");
    }
    if !procedure.works() {
        let ignored = if arguments.is_empty() {
            String::new()
        } else {
            format!("    let _ = ({arguments},);\n")
        };
        if procedure.is_tools() {
            return format!("{ignored}    call_guard::unsupported_tools()\n");
        }
        let object = error_object(procedure, large);
        let frame = if procedure.early {
            "unsupported_early"
        } else {
            "unsupported"
        };
        return format!("{ignored}    {object}    call_guard::{frame}(\"{c_name}\", object)\n");
    }

    let (mut lines, mut decoded, mut passed) = (String::new(), String::new(), String::from("call"));
    // No parameter is the plain form's alone, so the list of the `_c` form is the face's.
    for parameter in &procedure.parameters {
        let (name, expression) = (&parameter.name, parameter.decode(large));
        if parameter.kind.word() == "..." {
            continue;
        }
        if expression != *name {
            writeln!(lines, "            let {name} = {expression};").unwrap();
            write!(decoded, "{name}, ").unwrap();
        }
        write!(passed, ", {name}").unwrap();
    }
    let body = procedure.c_name("", large).to_ascii_lowercase();
    let (object, frame) = match (procedure.is_tools(), procedure.early) {
        (true, _) => (String::new(), format!("tools(\"{c_name}\"")),
        (_, true) => (
            error_object(procedure, large),
            format!("early(\"{c_name}\", object"),
        ),
        _ => (
            error_object(procedure, large),
            format!(
                "running(\"{c_name}\", object, \
                 // SAFETY: the caller's promises hold for the same call.\n        \
                 move || unsafe {{ {body}_announced({arguments}) }}"
            ),
        ),
    };
    format!(
        "{object}    \
         let decode = move || {{\n        \
             // SAFETY: C promises that pointers are NULL or hold what their parameter says.\n        \
             unsafe {{\n{lines}            Ok(({decoded}))\n        }}\n    \
         }};\n    \
         call_guard::{frame}, decode, move |call, ({decoded})| {{\n        \
             // SAFETY: the same.\n        \
             unsafe {{ procedures::{face}({passed}) }}\n    \
         }})\n"
    )
}

/// A statement that says whose error handler hears of this procedure's errors.
fn error_object(procedure: &Procedure, large: bool) -> String {
    let classes = [
        ("comm", "Comm"),
        ("win", "Win"),
        ("file", "File"),
        ("session", "Session"),
    ];
    let find = |access: Access| {
        let single = |p: &&Parameter| p.access == access && p.length == Length::One;
        classes.iter().find_map(|(word, variant)| {
            let parameter = procedure
                .parameters(large)
                .filter(single)
                .find(|p| p.kind.word() == *word)?;
            Some((&parameter.name, *variant))
        })
    };
    // Section 14.7 of MPI 5.0: what concerns no open file goes to the handler of MPI_FILE_NULL.
    let has_file = procedure
        .parameters
        .iter()
        .any(|p| p.kind.word() == "file" && p.access != Access::Out);
    let object = if procedure.chapter == 14 && !has_file {
        "Object::File(MPI_FILE_NULL)".into()
    } else if let Some((name, variant)) = find(Access::In) {
        format!("Object::{variant}({name})")
    } else if let Some((name, variant)) = find(Access::InOut) {
        let function = format!("{}_at", variant.to_ascii_lowercase());
        return format!(
            "    // SAFETY: C promises that the address is NULL or a handle's.\n    \
             let object = unsafe {{ Object::{function}({name}) }};\n"
        );
    } else {
        "Object::None".into()
    };
    format!("    let object = {object};\n")
}
