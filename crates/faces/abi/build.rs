//! Generates the entry points and the constants from the tables, and names the shared library.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let out = Path::new(&out);
    let procedures = tables::all_procedures();
    let entries = tables::entry::generate(&procedures);
    let entries = entries + &tables::recorded::generate_calls(&procedures);
    write(&out.join("entry.rs"), &entries);
    let constants = tables::constants::generate(&tables::constants());
    write(&out.join("constants.rs"), &constants);

    // No version script: rustc passes a version script of its own to the linker, which exports the
    // `no_mangle` functions and nothing else, and linkers refuse a second one. A test compares the
    // symbols with the table.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
