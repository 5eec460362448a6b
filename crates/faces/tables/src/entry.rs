//! Generator of the entry points. Every form of every procedure has one body, and two exported
//! names that jump to it with their arguments unchanged. `PMPI_X` never calls `MPI_X`, so a tool
//! that interposes on `MPI_X` sees only the program's calls, not the library's.

use crate::recorded;
use crate::table::{Access, Chapter, Length, Parameter, Procedure};
use std::fmt::Write;

/// The source text of the generated module `entry`.
pub fn generate(chapters: &[Chapter]) -> String {
    let mut text = String::new();
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        for &large in procedure.forms() {
            write_entry(&mut text, chapters, procedure, large);
        }
    }
    text
}

fn write_entry(text: &mut String, chapters: &[Chapter], procedure: &Procedure, large: bool) {
    let body = procedure.c_name("", large).to_ascii_lowercase();
    let parameters: Vec<_> = procedure
        .parameters(large)
        // In these platform ABIs, a variadic function receives its fixed arguments like any other,
        // and MPI_Pcontrol reads no others, so Rust need not define a variadic function.
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
        write_announced(text, chapters, procedure, large, &signature, &arguments);
    }
    for prefix in ["MPI_", "PMPI_"] {
        let name = procedure.c_name(prefix, large);
        writeln!(
            text,
            "/// `{name}`, as `mpi.h` declares it.\n///\n/// # Safety\n/// The promises that the standard asks of a C \
             program for this procedure.\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({signature}) -> {returns} {{\n    \
             // SAFETY: the C program's promises about the arguments are passed on unchanged.\n    \
             unsafe {{ {body}({arguments}) }}\n}}"
        )
        .unwrap();
    }
    text.push('\n');
}

/// Writes the function that announces a call of the procedure, and repeats it. Arguments are passed
/// on unchanged, so a call that finds its rank pays nothing for this.
fn write_announced(
    text: &mut String,
    chapters: &[Chapter],
    procedure: &Procedure,
    large: bool,
    signature: &str,
    arguments: &str,
) {
    let body = procedure.c_name("", large).to_ascii_lowercase();
    let used = used_memory(procedure);
    let number = recorded::number(chapters, procedure, large);
    let words = procedure.parameters(large);
    let words: Vec<String> = words.map(|one| recorded::as_word(one, large)).collect();
    writeln!(
        text,
        "#[cold]\n#[inline(never)]\nunsafe extern \"C\" fn {body}_announced({signature}) -> c_int {{\n    \
         // SAFETY: the C program's promises about the arguments are passed on unchanged.\n    \
         let again = move || unsafe {{ {body}({arguments}) }};\n    \
         // SAFETY: the words are the arguments.\n    \
         unsafe {{ call_guard::announced({number}, &[{}], CALLED[{number}], again{used}) }}\n}}",
        words.join(", ")
    )
    .unwrap();
}

/// The memory that a call uses, as the text of further arguments of its guard.
fn used_memory(procedure: &Procedure) -> String {
    let used = procedure.used_memory();
    let uses = used.iter().map(|([address, count, datatype], is_written)| {
        let [address, count, datatype] = [address, count, datatype].map(|one| &one.name);
        format!(
            "// SAFETY: the C program's promise about the memory.\n        \
             (unsafe {{ UserBuffer::new({address}, {count} as i64, {datatype}) }}, {is_written})"
        )
    });
    let uses: Vec<String> = uses.collect();
    format!(",\n    &[{}]", uses.join(", "))
}

fn write_body(procedure: &Procedure, large: bool, arguments: &str) -> String {
    let face = procedure.face();
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
            return format!("{ignored}    call_guard::unsupported_tools(\"{c_name}\")\n");
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
    // Every parameter of the plain form is also one of the `_c` form, so the procedure's function
    // has the parameters of the `_c` form.
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
                 // SAFETY: the C program's promises hold for the repeated call.\n        \
                 move || unsafe {{ {body}_announced({arguments}) }}"
            ),
        ),
    };
    format!(
        "{object}    \
         let decode = move || {{\n        \
             // SAFETY: pointers are NULL or point to the parameter's object.\n        \
             unsafe {{\n{lines}            Ok(({decoded}))\n        }}\n    \
         }};\n    \
         call_guard::{frame}, decode, move |call, ({decoded})| {{\n        \
             // SAFETY: C promises the memory that the arguments describe.\n        \
             unsafe {{ procedures::{face}({passed}) }}\n    \
         }})\n"
    )
}

/// The statement that sets the object whose error handler gets this procedure's errors.
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
    // MPI 5.0 §14.7: errors without an open file go to the handler of MPI_FILE_NULL.
    let has_file = procedure
        .parameters
        .iter()
        .any(|p| p.kind.word() == "file" && p.access != Access::Out);
    let object = if procedure.chapter == 14 && !has_file {
        "Object::File(MPI_FILE_NULL)".into()
    } else if procedure.makes_with_errhandler() {
        "Object::Made(errhandler)".into()
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
