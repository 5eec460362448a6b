//! The generator of the code that a library of an older ABI has for every procedure and every
//! constant. Its inputs are the tables of the standard ABI and tables of the older ABIs' constants.
//!
//! Never here: code that is the same for every procedure, which is in `abi_convert`.

mod constants;
mod conversion;
mod entry;
mod parameter;
mod recorded;
mod signature;
mod special;
mod standard;
mod wild;

use constants::Program;
pub use parameter::{HANDLES, meaning};
use std::path::Path;
use std::{env, fs};
use tables::constants::{Group, parse};

/// The constants of MPICH's ABI whose values differ from those of the standard ABI.
///
/// # Panics
/// The table has an error.
pub fn mpich() -> Vec<Group> {
    parse(include_str!("../mpich.txt")).unwrap_or_else(|error| panic!("MPICH: {error}"))
}

/// The constants of Open MPI's ABI whose values differ from those of the standard ABI.
///
/// # Panics
/// The table has an error.
pub fn openmpi() -> Vec<Group> {
    parse(include_str!("../openmpi.txt")).unwrap_or_else(|error| panic!("Open MPI: {error}"))
}

/// Writes the generated modules of an older ABI with these constants to cargo's output folder of
/// the build script, and sets the name of the shared library.
///
/// # Panics
/// A table has an error, or a file cannot be written.
pub fn build(soname: &str, constants: Vec<Group>) {
    let chapters = tables::all_procedures();
    let standard = tables::constants();
    let program = Program::new(constants).unwrap_or_else(|error| panic!("{soname}: {error}"));
    let is_shorter = |limit: &str| program.is_shorter(&standard, limit);
    write("entry.rs", entry::generate(&chapters, &is_shorter));
    write("calls.rs", wild::calls(&chapters));
    write("symbols.rs", constants::symbols(&program));
    write("constants.rs", constants::of_program(&standard, &program));

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    // The library of the standard ABI lies in the parent folder, unless LD_LIBRARY_PATH names
    // another.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/..,--enable-new-dtags");
}

/// Writes the entry points of the recorder, with large counts or without, to a file in cargo's
/// output folder of the build script.
///
/// # Panics
/// A table has an error, or the file cannot be written.
pub fn write_recorded(file: &str, large: bool) {
    write(file, recorded::entries(large));
}

/// Writes the generated modules of `abi_convert`.
///
/// # Panics
/// A table has an error, or a file cannot be written.
pub fn build_shared() {
    let chapters = tables::all_procedures();
    write("standard.rs", standard::generate(&chapters));
    write("stubs.rs", wild::stubs(&chapters));
    let older = [mpich(), openmpi()].map(|groups| Program::new(groups).unwrap());
    let groups: Vec<Group> = older.into_iter().flat_map(Program::into_groups).collect();
    let constants = constants::of_standard(&tables::constants(), &groups);
    write("constants.rs", constants);
}

fn write(name: &str, text: String) {
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(Path::new(&out).join(name), text)
        .unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
}
