//! Generates the entry points and the Fortran sources from the tables, and sets the name of the
//! shared library and the library that it needs.

use std::fs::{self, File};
use std::path::Path;

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
    let list = sources.join("sources");
    date_back(&list);
    println!("cargo:rerun-if-changed={}", list.display());
    fortran_tables::link(&out, "libmpifort_abi.so.1", "libmpi_abi.so.1");
}

/// Gives a file the date of this script. Cargo runs the script again if the file is younger than its
/// last start, or gone.
fn date_back(file: &Path) {
    let script = std::env::current_exe().expect("a program has a file");
    let date = fs::metadata(script).and_then(|own| own.modified());
    let date = date.expect("the file of a program has a date");
    let file = File::options().write(true).open(file);
    file.and_then(|file| file.set_modified(date))
        .expect("the folder of the profile is writable");
}
