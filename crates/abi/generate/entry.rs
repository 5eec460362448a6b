//! The entry points: for every form of every procedure one body, and the two exported names that call
//! it. `PMPI_X` never goes through `MPI_X`, so a tool that puts itself before `MPI_X` sees what the
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
        "#[inline]\nunsafe fn {body}({signature}) -> {returns} {{\n{inner}}}"
    )
    .unwrap();
    for prefix in ["MPI_", "PMPI_"] {
        let name = procedure.c_name(prefix, large);
        writeln!(
            text,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({signature}) -> {returns} {{\n    \
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
        return format!("    face::{face}({arguments})\n");
    }
    if !procedure.works() {
        let ignored = if arguments.is_empty() {
            String::new()
        } else {
            format!("    let _ = ({arguments},);\n")
        };
        if procedure.is_tools() {
            return format!("{ignored}    frame::unsupported_tools()\n");
        }
        let object = error_object(procedure, large);
        let frame = if procedure.early {
            "unsupported_early"
        } else {
            "unsupported"
        };
        return format!("{ignored}    {object}    frame::{frame}(\"{c_name}\", object)\n");
    }

    let mut text = String::new();
    if procedure.is_tools() {
        writeln!(text, "    frame::tools(\"{c_name}\", |call| {{").unwrap();
    } else {
        let frame = if procedure.early { "early" } else { "running" };
        let object = error_object(procedure, large);
        writeln!(
            text,
            "{object}    frame::{frame}(\"{c_name}\", object, |call| {{"
        )
        .unwrap();
    }
    writeln!(
        text,
        "        // SAFETY: C promises that pointers are NULL or hold what their parameter says."
    )
    .unwrap();
    writeln!(text, "        unsafe {{").unwrap();
    let mut passed = vec!["call".to_string()];
    // Parameters of the plain form alone do not exist, so the `_c` form's list is the face's list.
    for parameter in &procedure.parameters {
        if parameter.kind.word() == "..." {
            continue;
        }
        let decoded = parameter.decode(large);
        if decoded != parameter.name {
            writeln!(text, "            let {} = {decoded};", parameter.name).unwrap();
        }
        passed.push(parameter.name.clone());
    }
    writeln!(text, "            face::{face}({})", passed.join(", ")).unwrap();
    writeln!(text, "        }}\n    }})").unwrap();
    text
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
        format!("unsafe {{ Object::{function}({name}) }}")
    } else {
        "Object::None".into()
    };
    format!(
        "    // SAFETY, where it is unsafe: C promises that the address is NULL or a handle's.\n    let object = {object};\n"
    )
}
