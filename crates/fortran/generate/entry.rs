//! The entry points: for every form of every procedure one body, which converts the arguments, calls
//! and converts the results, and its names: four manglings, each with its twin of the profiling
//! interface. A name with `P` calls the function of the standard ABI with `P`, so a tool that
//! replaces functions of C or those of Fortran sees each call of the program once.

use super::Tables;
use super::abi::table::Procedure;
use super::conversion::Conversion;
use super::interfaces::has_address;
use super::standard::callee;
use std::fmt::Write;

/// The text of the module `entry`.
pub(crate) fn generate(tables: &Tables) -> String {
    let mut text = String::new();
    for procedure in tables.procedures() {
        for &large in procedure.forms() {
            write_entry(&mut text, procedure, large);
        }
    }
    for (body, name, signature, code) in OF_FORTRAN_ALONE {
        let quoted = |prefix| {
            let names = manglings(&format!("{prefix}{name}"));
            names.map(|name| format!("\"{name}\"")).join(" ")
        };
        let names = format!("{}; {}", quoted("MPI_"), quoted("PMPI_"));
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
        "(*to, *ierror) = (*from, 0);",
    ),
    (
        "status_f082f",
        "STATUS_F082F",
        "from: *mut Status, to: *mut Status, ierror: *mut c_int",
        "(*to, *ierror) = (*from, 0);",
    ),
];

fn write_entry(text: &mut String, procedure: &Procedure, large: bool) {
    let conversions: Vec<_> = procedure
        .parameters(large)
        .filter(|parameter| parameter.kind.word() != "...")
        .map(|parameter| Conversion::of(procedure, parameter, large))
        .collect();
    let mut signature: Vec<String> = conversions.iter().filter_map(|c| c.dummy.clone()).collect();
    if procedure.has_ierror() {
        signature.push("ierror: *mut c_int".into());
    }
    // Lengths of character strings follow all arguments.
    let lengths = conversions.iter().filter_map(|c| c.length.as_ref());
    signature.extend(lengths.map(|name| format!("{name}: usize")));
    let body = procedure.c_name("", large).to_ascii_lowercase();
    let returns = procedure.returns.map_or("()", |kind| kind.rust(large));
    let signature = signature.join(", ");
    writeln!(
        text,
        "entry! {{ {body}({signature}) -> {returns} {{\n{}}}\n    [{}] }}\n",
        write_body(procedure, large, &conversions),
        names(procedure, large)
    )
    .unwrap();
}

/// The names of both profiling layers.
fn names(procedure: &Procedure, large: bool) -> String {
    // An address is returned in an INTEGER or in a TYPE(C_PTR), for which `mpi` has a name of its own.
    let ends: &[&str] = if has_address(procedure) && !large {
        &["", "_CPTR"]
    } else {
        &[""]
    };
    let quoted = |prefix| {
        let names = ends
            .iter()
            .flat_map(|end| manglings(&(procedure.c_name(prefix, large) + end)));
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
    text.push_str("    *ierror = code;\n");
    text
}
