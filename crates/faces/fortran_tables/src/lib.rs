//! The generators of the Fortran bindings, from the tables of the standard ABI. The build scripts
//! of the libraries call them; the libraries do not contain this crate.
//!
//! Invariant: no list of procedures is written by hand. A kind of parameter has one row with its
//! properties in each of the two Fortran modules (`kinds`), and one conversion (`parameter`).

mod choice;
pub mod commons;
mod constants;
mod conversion;
mod entry;
mod f08;
mod f08_types;
mod interfaces;
pub mod kinds;
pub mod old;
mod parameter;
mod predefined;
mod sizeof;
mod standard;
mod types;

use commons::Block;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use tables::constants::Group;
use tables::table::{Chapter, Procedure};

pub use entry::manglings;

/// The tables of the standard ABI, including procedures of other libraries (`removed.txt`).
pub struct Tables {
    pub(crate) chapters: Vec<Chapter>,
    pub(crate) constants: Vec<Group>,
}

/// A library of Fortran entry points: its C ABI, and the symbols that programs need.
pub struct Library {
    /// The constants that differ from the standard's.
    pub constants: Vec<Group>,
    /// The blocks of variables that are recognised by their addresses.
    pub blocks: &'static [Block],
    /// A function that returns the symbols of an entry point.
    pub symbols: fn(&Entry) -> Vec<String>,
    /// The symbols of the library's own modules, as its compiler built them: lines for the macros
    /// of `fortran_convert::modules`.
    pub modules: String,
}

/// The properties of an entry point that determine its symbols.
pub struct Entry<'a> {
    /// `MPI_`, or `PMPI_` for the profiling interface.
    pub prefix: &'a str,
    /// The name of the procedure without the prefix.
    pub name: &'a str,
    /// True if the entry point has large counts.
    pub large: bool,
    /// The Fortran interface.
    pub form: Form,
}

/// The Fortran interface to which an entry point belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `mpif.h` and the module `mpi`.
    Plain,
    /// A form of the module `mpi` that has an argument of TYPE(C_PTR).
    CPtr,
    /// The module `mpi_f08`, with choice buffers by address.
    F08,
    /// The module `mpi_f08`, with choice buffers by descriptor.
    F08Ts,
    /// None: the entry point is a predefined function, which a program passes to MPI.
    Callback,
}

/// The library of Fortran entry points over the standard ABI.
pub fn standard() -> Library {
    Library {
        constants: Vec::new(),
        blocks: commons::COMMONS,
        symbols: |entry| {
            let large = if entry.large { "_c" } else { "" };
            let end = match entry.form {
                Form::Plain | Form::Callback => "",
                Form::CPtr => "_CPTR",
                Form::F08 => "_F08",
                Form::F08Ts => "_F08TS",
            };
            manglings(&format!("{}{}{large}{end}", entry.prefix, entry.name)).into()
        },
        modules: String::new(),
    }
}

impl Tables {
    /// The tables of the standard ABI.
    pub fn standard() -> Tables {
        Tables {
            chapters: tables::all_procedures(),
            constants: tables::constants(),
        }
    }

    /// The procedures that Fortran has: all except the tools interface and conversions of handles
    /// to integers, which handles are in Fortran.
    pub fn procedures(&self) -> impl Iterator<Item = &Procedure> {
        let all = self.chapters.iter().flat_map(|chapter| &chapter.procedures);
        all.filter(|procedure| {
            let name = &procedure.name;
            let is_large_of_removed = procedure.chapter == 0 && name.ends_with("_c");
            let is_integer = name.ends_with("_toint") || name.ends_with("_fromint");
            !procedure.is_tools() && !is_integer && !is_large_of_removed
        })
    }
}

/// The source text of the Rust modules of a library.
fn modules(tables: &Tables, library: &Library) -> String {
    let modules = [
        ("entry", String::new(), entry::generate(tables, library)),
        ("commons", uses(COMMONS), commons::generate(library.blocks)),
        (
            "constants",
            uses(CONSTANTS),
            constants::of_library(&library.constants),
        ),
        ("modules", uses(MODULES), library.modules.clone()),
        (
            "predefined",
            uses(PREDEFINED),
            predefined::generate(library),
        ),
    ];
    let module = |(name, uses, text)| format!("pub(crate) mod {name} {{\n{uses}{text}}}\n");
    modules.map(module).concat()
}

/// The names that the generated modules import.
const COMMONS: &[&str] = &[
    "crate::program::Program",
    "fortran_convert::commons::{Common, Special, is_near_blocks, note, usual}",
    "fortran_convert::loaded::Loaded",
    "fortran_convert::{Commons, block}",
];
const CONSTANTS: &[&str] = &[
    "crate::program::Program",
    "fortran_convert::Constants",
    "std::ffi::c_int",
];
const MODULES: &[&str] = &[
    "crate::program::Status",
    "fortran_convert::{assignment, comparison, constant, conversion, copy, size}",
    "std::ffi::{c_int, c_void}",
];
const PREDEFINED: &[&str] = &[
    "crate::program::Program",
    "fortran_convert::{duplicate, no_conversion, null_copy, null_delete}",
    "std::ffi::{CStr, c_int, c_void}",
];

fn uses(paths: &[&str]) -> String {
    paths.iter().map(|path| format!("use {path};\n")).collect()
}

/// Writes the Rust modules of a library to cargo's output folder of the build script.
///
/// # Panics
/// A table has an error, or a file cannot be written.
pub fn write_modules(library: &Library) -> (PathBuf, Tables) {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let tables = Tables::standard();
    write(&out.join("generated.rs"), &modules(&tables, library));
    (out, tables)
}

/// Writes the generated Rust modules of `fortran_convert`.
///
/// # Panics
/// A table has an error, or a file cannot be written.
pub fn write_shared() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let tables = Tables::standard();
    let constants = constants::of_standard(&tables.constants);
    write(&out.join("constants.rs"), &constants);
    let calls = standard::generate(&tables.chapters);
    write(&out.join("standard.rs"), &calls);
}

/// Writes a generated file.
///
/// # Panics
/// The file cannot be written.
pub fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// Sets the name of the shared library, and the library that it needs, which lies in the same
/// folder unless LD_LIBRARY_PATH names another. An empty library of that name is linked: the
/// functions are found when our library is loaded.
///
/// # Panics
/// The library cannot be linked.
pub fn link(out: &Path, name: &str, needed: &str) {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{name}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN,--enable-new-dtags");
    let stub = out.join("needed.so");
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    let made = Command::new(&linker)
        .args(["-shared", "-nostdlib"])
        .arg(format!("-Wl,-soname,{needed}"))
        .args(["-x", "assembler", "/dev/null", "-o"])
        .arg(&stub)
        .status();
    assert!(
        made.as_ref().is_ok_and(|status| status.success()),
        "{linker} cannot link an empty library: {made:?}"
    );
    // zig's linker accepts no files among the options.
    let stub = stub.display().to_string();
    for word in ["-Wl,--no-as-needed", &stub, "-Wl,--as-needed"] {
        println!("cargo:rustc-cdylib-link-arg={word}");
    }
}

/// The Fortran sources, and the file `sources`, which lists those that a compiler gets, in this
/// order. A word after a name is a result of the program `probe`: only compilers with this result
/// get the source.
pub fn sources(tables: &Tables) -> Vec<(&'static str, String)> {
    let choice = |form| f08::choice(tables, form);
    let compiled = vec![
        ("mpi_constants.f90", "", constants::module(tables)),
        ("mpi_types.f90", "", types::generate()),
        ("mpi_sizeof.f90", "", sizeof::generate()),
        ("mpif_sizeof.f90", "", sizeof::of_header()),
        ("mpi.f90", "", interfaces::module(tables)),
        ("mpi_f08_types.f90", "", f08_types::types(tables)),
        ("mpi_f08_procedures.f90", "", f08::procedures(tables)),
        (
            "mpi_f08_descriptors.f90",
            "descriptors",
            choice(f08::Choice::Descriptors),
        ),
        ("mpi_f08_plain.f90", "plain", choice(f08::Choice::Plain)),
        ("mpi_f08.f90", "", f08::module()),
    ];
    let list = compiled
        .iter()
        .map(|(name, word, _)| format!("{name} {word}").trim_end().to_string() + "\n");
    let mut files = vec![
        ("sources", list.collect()),
        ("mpif.h", constants::header(tables)),
        ("probe.f90", include_str!("probe.f90").into()),
        ("probe.c", include_str!("probe.c").into()),
    ];
    files.extend(compiled.into_iter().map(|(name, _, text)| (name, text)));
    files
}
