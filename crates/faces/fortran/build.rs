//! Generates the entry points and the Fortran sources from the tables, and sets the name of the
//! shared library and the library that it needs.

use std::fs;

fn main() {
    let (out, tables) = fortran_tables::write_modules(&fortran_tables::standard());
    // `make` installs the sources from the folder of the profile, the third above OUT_DIR.
    let sources = out
        .ancestors()
        .nth(3)
        .expect("OUT_DIR lies in the folder of the profile")
        .join("fortran");
    fs::create_dir_all(&sources).expect("the folder of the profile is writable");
    for (name, text) in fortran_tables::sources(&tables) {
        fortran_tables::write(&sources.join(name), &text);
    }
    println!(
        "cargo:rerun-if-changed={}",
        sources.join("sources").display()
    );
    fortran_tables::link(&out, "libmpifort_abi.so.1", "libmpi_abi.so.1");
}
