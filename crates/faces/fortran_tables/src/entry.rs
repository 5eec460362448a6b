//! Generator of the entry points. Every form of every procedure has one body, which converts the
//! arguments, calls the C library and converts the results, and several names, each with a second
//! one of the profiling interface. A name with `P` calls the C function with `P`, so a tool that
//! replaces functions of C or of Fortran sees each call of the program once.

use crate::choice;
use crate::conversion::Conversion;
use crate::interfaces::has_address;
use crate::kinds::FortranProcedure;
use crate::parameter::conversion;
use crate::standard::callee;
use crate::{Entry, Form, Library, Tables};
use std::fmt::Write;
use tables::table::Procedure;

/// The source text of the module `entry`.
pub(crate) fn generate(tables: &Tables, library: &Library) -> String {
    let mut text = String::from(USES);
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

/// The first lines of the generated module: its imports and types.
const USES: &str = "use crate::program::{Program, Status};
use abi_convert::array::Array;
use fortran_convert::entry::give_code;
use fortran_convert::handle::*;
use fortran_convert::late_types::LateTypes;
use fortran_convert::sections::{Descriptor, Lifetime, Object, Sections, reach};
use fortran_convert::{
    Abi, Constants, attributes, buffer, callbacks, entry, handle, index, integers, logical, peers,
    removed, requests, spawn, standard, start, text,
};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
";

/// Procedures that C does not have, or has in another form: body, name, signature and code.
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

/// Writes the entry points of a procedure for all Fortran interfaces. They share one body, except
/// if `mpi_f08` has descriptors of choice buffers, or the address of memory.
fn write_entries(text: &mut String, library: &Library, procedure: &Procedure, large: bool) {
    let conversions = conversions(procedure, large);
    let is_detached = conversions
        .iter()
        .any(|conversion| conversion.f08.is_some());
    let mut forms = vec![Form::Plain];
    // The procedure returns an address in an INTEGER or in a TYPE(C_PTR), for which `mpi` has a
    // specific name.
    if has_address(procedure) && !large {
        forms.push(Form::CPtr);
    }
    if !procedure.is_old() && !is_detached {
        forms.push(Form::F08);
    }
    let entry = |forms: &[Form]| names(library, &procedure.name, large, forms);
    let written = Written {
        procedure,
        large,
        form: "",
    };
    let body = write_body(procedure, large, &conversions);
    let quick = quick(procedure, large, false);
    written.entry_with_quick(text, &conversions, &entry(&forms), &body, quick);
    if procedure.is_old() {
        return;
    }
    if let Some(body) = choice::body(procedure, large, &conversions) {
        let with_descriptors: Vec<_> = conversions
            .iter()
            .map(Conversion::with_descriptor)
            .collect();
        let written = Written {
            form: "_f08ts",
            ..written
        };
        let (names, quick) = (entry(&[Form::F08Ts]), self::quick(procedure, large, true));
        written.entry_with_quick(text, &with_descriptors, &names, &body, quick);
    }
    if is_detached {
        let of_f08: Vec<_> = conversions.into_iter().map(Conversion::of_f08).collect();
        let body = write_body(procedure, large, &of_f08);
        let written = Written {
            form: "_f08",
            ..written
        };
        written.entry(text, &of_f08, "", &entry(&[Form::F08]), &body);
    }
}

fn conversions(procedure: &Procedure, large: bool) -> Vec<Conversion> {
    let parameters = procedure.parameters(large);
    parameters
        .filter(|parameter| parameter.kind.word() != "...")
        .map(|parameter| conversion(procedure, parameter, large))
        .collect()
}

/// The body for arguments whose conversion needs neither memory nor a call, and its condition.
/// `has_descriptors`: true if choice buffers are descriptors. `None`: the procedure has no such
/// arguments, or needs no condition.
fn quick(procedure: &Procedure, large: bool, has_descriptors: bool) -> Option<(String, String)> {
    let all = conversions(procedure, large);
    if procedure.is_old() || !all.iter().all(Conversion::is_short) {
        return None;
    }
    let conditions = all.iter().filter_map(|c| c.condition(has_descriptors));
    let condition: Vec<_> = conditions.collect();
    if condition.is_empty() {
        return None;
    }
    let buffers = all.iter().filter_map(Conversion::choice);
    let descriptors = buffers.filter(|_| has_descriptors);
    let mut body: String = descriptors
        .map(|name| format!("    let {name} = {name}.address();\n"))
        .collect();
    let known: Vec<_> = all.into_iter().map(Conversion::of_known).collect();
    body += &write_body(procedure, large, &known);
    Some((condition.join(" && "), body))
}

/// A form of a procedure for which an entry point is written.
#[derive(Clone, Copy)]
struct Written<'a> {
    procedure: &'a Procedure,
    large: bool,
    /// The suffix of the body's name.
    form: &'a str,
}

impl Written<'_> {
    /// Writes an entry point that tries a quick body before the full one. The full one is a
    /// separate function, so that the quick one saves no registers for it. The profiling names have
    /// the full one alone: quick bodies that few programs call would be 7 % of the library.
    fn entry_with_quick(
        self,
        text: &mut String,
        conversions: &[Conversion],
        names: &str,
        body: &str,
        quick: Option<(String, String)>,
    ) {
        let Some((condition, quick)) = quick else {
            return self.entry(text, conversions, "", names, body);
        };
        self.entry(text, conversions, "_general", ";", body);
        let mut arguments: Vec<_> = conversions.iter().filter_map(Conversion::name).collect();
        if self.procedure.has_ierror() {
            arguments.push("ierror".into());
        }
        let other = format!("{}_general::<P>({})", self.name(), arguments.join(", "));
        let body =
            format!("    if P || !({condition}) {{\n        return {other};\n    }}\n{quick}");
        self.entry(text, conversions, "", names, &body);
    }

    fn name(self) -> String {
        let name = self.procedure.c_name("", self.large);
        name.to_ascii_lowercase() + self.form
    }

    /// Writes a function that has these names.
    fn entry(
        self,
        text: &mut String,
        conversions: &[Conversion],
        end: &str,
        names: &str,
        body: &str,
    ) {
        let mut signature: Vec<String> =
            conversions.iter().filter_map(|c| c.dummy.clone()).collect();
        if self.procedure.has_ierror() {
            signature.push("ierror: *mut c_int".into());
        }
        // The lengths of character strings follow all arguments.
        let lengths = conversions.iter().filter_map(|c| c.length.as_ref());
        signature.extend(lengths.map(|name| format!("{name}: usize")));
        let returns = self
            .procedure
            .returns
            .map_or("()", |kind| kind.rust(self.large));
        writeln!(
            text,
            "entry! {{ {}{end}({}) -> {returns} {{\n{body}}}\n    [{names}] }}\n",
            self.name(),
            signature.join(", "),
        )
        .unwrap();
    }
}

/// The names of an entry point in both interfaces, `MPI_` and `PMPI_`, quoted.
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

/// The symbols that compilers give to an external procedure or a COMMON block.
pub fn manglings(name: &str) -> [String; 4] {
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
        text.push_str("    start::describe::<Program>(code);\n");
    }
    text.push_str("    give_code(ierror, code);\n");
    text
}
