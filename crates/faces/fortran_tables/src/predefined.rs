//! Generator of the predefined functions of MPI, under all their names.

use crate::{Entry, Form, Library};
use std::fmt::Write;

/// For each predefined function: its name, the macro of `fortran_convert` that defines it, and the
/// type of attribute values.
pub(crate) const FUNCTIONS: &[(&str, &str, &str)] = &[
    ("MPI_COMM_NULL_COPY_FN", "null_copy", "isize"),
    ("MPI_COMM_DUP_FN", "duplicate", "isize"),
    ("MPI_COMM_NULL_DELETE_FN", "null_delete", "isize"),
    ("MPI_TYPE_NULL_COPY_FN", "null_copy", "isize"),
    ("MPI_TYPE_DUP_FN", "duplicate", "isize"),
    ("MPI_TYPE_NULL_DELETE_FN", "null_delete", "isize"),
    ("MPI_WIN_NULL_COPY_FN", "null_copy", "isize"),
    ("MPI_WIN_DUP_FN", "duplicate", "isize"),
    ("MPI_WIN_NULL_DELETE_FN", "null_delete", "isize"),
    ("MPI_NULL_COPY_FN", "null_copy", "c_int"),
    ("MPI_DUP_FN", "duplicate", "c_int"),
    ("MPI_NULL_DELETE_FN", "null_delete", "c_int"),
    ("MPI_CONVERSION_FN_NULL", "no_conversion", "c_int"),
    ("MPI_CONVERSION_FN_NULL_C", "no_conversion", "i64"),
];

/// The source text of the module `predefined`.
pub(crate) fn generate(library: &Library) -> String {
    let (mut text, mut names) = (String::new(), String::new());
    for (name, of, ty) in FUNCTIONS {
        let entry = Entry {
            prefix: "",
            name,
            large: false,
            form: Form::Callback,
        };
        for symbol in (library.symbols)(&entry) {
            let end = if *of == "no_conversion" {
                ", Program"
            } else {
                ""
            };
            writeln!(text, "{of}! {{ \"{symbol}\" {ty}{end} }}").unwrap();
            if !end.is_empty() {
                write!(names, "c\"{symbol}\", ").unwrap();
            }
        }
    }
    format!("{text}\npub(crate) const NO_CONVERSION: &[&CStr] = &[{names}];\n")
}
