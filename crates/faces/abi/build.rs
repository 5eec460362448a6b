//! Generates the entry points and the constants from the tables, and names the shared library.

#[path = "generate/mod.rs"]
mod generate;

use std::path::Path;
use std::{env, fs};

fn main() {
    for input in ["procedures.txt", "removed.txt", "constants.txt", "generate"] {
        println!("cargo:rerun-if-changed={input}");
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let out = Path::new(&out);
    let mut chapters = read("procedures.txt", generate::table::parse);
    chapters.extend(read("removed.txt", generate::table::parse));
    let groups = read("constants.txt", generate::constants::parse);
    write(&out.join("entry.rs"), &generate::entry::generate(&chapters));
    write(
        &out.join("constants.rs"),
        &generate::constants::generate(&groups),
    );

    // No version script: rustc passes the linker one of its own, which exports the `no_mangle`
    // functions and nothing else, and linkers refuse a second. A test compares the symbols with the
    // table.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
}

fn read<T>(path: &str, parse: impl Fn(&str) -> Result<T, String>) -> T {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
