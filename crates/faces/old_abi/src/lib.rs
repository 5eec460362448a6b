//! The generator of what a library of an older ABI has for every procedure and every constant. Its
//! inputs are the tables of `abi` and the library's own `constants.txt`. The sources that such
//! libraries share lie in the folder `common`; each library compiles them for itself,
//! because entry points and tables of handles are statics of a shared library.
//!
//! Never here: anything that one of these ABIs has alone.

#[allow(dead_code)] // these libraries need the parsers alone
#[path = "../../abi/generate/mod.rs"]
mod generate;

mod constants;
mod entry;
mod parameter;
mod pool;
mod signature;
mod standard;
mod wild;

use std::path::Path;
use std::{env, fs};

const TABLES: &str = "../abi";

/// Writes the generated modules into the folder that cargo gives to a build script, and names the
/// shared library.
///
/// # Panics
/// A table cannot be read, or has an error.
pub fn build(soname: &str) {
    println!("cargo:rerun-if-changed=constants.txt");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let out = Path::new(&out);
    let mut chapters = read("procedures.txt", generate::table::parse);
    chapters.extend(read("removed.txt", generate::table::parse));
    let standard = read("constants.txt", generate::constants::parse);
    let text = fs::read_to_string("constants.txt").expect("constants.txt is readable");
    let program = constants::Program::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let is_shorter = |limit: &str| program.is_shorter(&standard, limit);

    let write = |name: &str, text: String| {
        fs::write(out.join(name), text)
            .unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
    };
    write("entry.rs", entry::generate(&chapters, &is_shorter));
    write("pool.rs", pool::generate());
    write("wild.rs", wild::generate(&chapters));
    write("standard.rs", standard::generate(&chapters));
    write("symbols.rs", constants::symbols(&program));
    write("constants.rs", constants::generate(&standard, &program));

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    // The ABI library lies in the folder above, unless LD_LIBRARY_PATH names another.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/..,--enable-new-dtags");
}

/// The text of a macro that makes an array of functions, for a pool of users' functions.
pub fn pool() -> String {
    pool::generate()
}

fn read<T>(name: &str, parse: impl Fn(&str) -> Result<T, String>) -> T {
    let path = format!("{TABLES}/{name}");
    println!("cargo:rerun-if-changed={path}");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}
