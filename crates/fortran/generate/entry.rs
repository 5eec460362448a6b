//! The entry points: for every form of every procedure one body, which converts the arguments,
//! calls and converts the results, and its names, each with its twin of the profiling interface. A
//! name with `P` calls the function of the standard ABI with `P`, so a tool that replaces functions
//! of C or those of Fortran sees each call of the program once.

use super::abi::table::Procedure;
use super::choice;
use super::conversion::Conversion;
use super::interfaces::has_address;
use super::standard::callee;
use super::{Entry, Form, Library, Tables};
use std::fmt::Write;

/// The text of the module `entry`.
pub(crate) fn generate(tables: &Tables, library: &Library) -> String {
    let mut text = String::new();
    for procedure in tables.procedures() {
        for &large in procedure.forms() {
            write_entries(&mut text, library, procedure, large);
        }
    }
    for (body, name, signature, code) in OF_FORTRAN_ALONE {
        let names = names(library, name, false, &[Form::Plain, Form::F08, Form::F08Ts]);
        writeln!(
            text,
            "entry! {{ {body}({signature}) -> () {{ {code} }}\n    [{names}] }}\n"
        )
        .unwrap();
    }
    text
}

/// Procedures that C has not, or has in another form: body, name, signature and code.
const OF_FORTRAN_ALONE: &[(&str, &str, &str, &str)] = &[
    ("f_sync_reg", "F_SYNC_REG", "_buf: *mut c_void", ""),
    (
        "status_f2f08",
        "STATUS_F2F08",
        "from: *mut Status, to: *mut Status, ierror: *mut c_int",
        "*to = *from; give_code(ierror, 0);",
    ),
    (
        "status_f082f",
        "STATUS_F082F",
        "from: *mut Status, to: *mut Status, ierror: *mut c_int",
        "*to = *from; give_code(ierror, 0);",
    ),
];

/// The forms of a procedure in the languages. One body serves all of them but where `mpi_f08` has
/// descriptors of choice buffers, or the address of memory.
fn write_entries(text: &mut String, library: &Library, procedure: &Procedure, large: bool) {
    let conversions: Vec<_> = procedure
        .parameters(large)
        .filter(|parameter| parameter.kind.word() != "...")
        .map(|parameter| Conversion::of(procedure, parameter, large))
        .collect();
    let is_detached = conversions
        .iter()
        .any(|conversion| conversion.f08.is_some());
    let body = write_body(procedure, large, &conversions);
    let mut forms = vec![Form::Plain];
    // An address is returned in an INTEGER or in a TYPE(C_PTR), for which `mpi` has a name of its
    // own.
    if has_address(procedure) && !large {
        forms.push(Form::CPtr);
    }
    if !procedure.is_old() && !is_detached {
        forms.push(Form::F08);
    }
    let entry = |forms: &[Form]| names(library, &procedure.name, large, forms);
    let plain = entry(&forms);
    write_entry(text, procedure, large, &conversions, "", &plain, &body);
    if procedure.is_old() {
        return;
    }
    if let Some(body) = choice::body(procedure, large, &conversions) {
        let with_descriptors: Vec<_> = conversions
            .iter()
            .map(Conversion::with_descriptor)
            .collect();
        write_entry(
            text,
            procedure,
            large,
            &with_descriptors,
            "_f08ts",
            &entry(&[Form::F08Ts]),
            &body,
        );
    }
    if is_detached {
        let of_f08: Vec<_> = conversions.into_iter().map(Conversion::of_f08).collect();
        let body = write_body(procedure, large, &of_f08);
        let names = entry(&[Form::F08]);
        write_entry(text, procedure, large, &of_f08, "_f08", &names, &body);
    }
}

/// An entry point with these names.
fn write_entry(
    text: &mut String,
    procedure: &Procedure,
    large: bool,
    conversions: &[Conversion],
    form: &str,
    names: &str,
    body: &str,
) {
    let mut signature: Vec<String> = conversions.iter().filter_map(|c| c.dummy.clone()).collect();
    if procedure.has_ierror() {
        signature.push("ierror: *mut c_int".into());
    }
    // Lengths of character strings follow all arguments.
    let lengths = conversions.iter().filter_map(|c| c.length.as_ref());
    signature.extend(lengths.map(|name| format!("{name}: usize")));
    let name = procedure.c_name("", large).to_ascii_lowercase();
    let returns = procedure.returns.map_or("()", |kind| kind.rust(large));
    writeln!(
        text,
        "entry! {{ {name}{form}({}) -> {returns} {{\n{body}}}\n    [{names}] }}\n",
        signature.join(", "),
    )
    .unwrap();
}

/// The names of both profiling layers.
fn names(library: &Library, name: &str, large: bool, forms: &[Form]) -> String {
    let quoted = |prefix| {
        let names = forms.iter().flat_map(|&form| {
            (library.symbols)(&Entry {
                prefix,
                name,
                large,
                form,
            })
        });
        names
            .map(|name| format!("\"{name}\""))
            .collect::<Vec<_>>()
            .join(" ")
    };
    format!("{}; {}", quoted("MPI_"), quoted("PMPI_"))
}

/// The names that compilers give to an external procedure or a COMMON block.
pub(crate) fn manglings(name: &str) -> [String; 4] {
    let lower = name.to_ascii_lowercase();
    [
        format!("{lower}_"),
        format!("{lower}__"),
        lower,
        name.to_ascii_uppercase(),
    ]
}

fn write_body(procedure: &Procedure, large: bool, conversions: &[Conversion]) -> String {
    let mut text = String::new();
    for line in conversions.iter().flat_map(|conversion| &conversion.before) {
        writeln!(text, "    {line}").unwrap();
    }
    let arguments: Vec<_> = conversions.iter().map(|c| c.argument.as_str()).collect();
    let call = format!("{}({})", callee(procedure, large), arguments.join(", "));
    if !procedure.has_ierror() {
        let end = if procedure.returns.is_some() { "" } else { ";" };
        writeln!(text, "    {call}{end}").unwrap();
        return text;
    }
    writeln!(text, "    let code = {call};").unwrap();
    for line in conversions.iter().flat_map(|conversion| &conversion.after) {
        writeln!(text, "    {line}").unwrap();
    }
    if procedure.starts() {
        text.push_str("    start::describe(code);\n");
    }
    text.push_str("    give_code(ierror, code);\n");
    text
}
