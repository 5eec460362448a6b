//! Generates the entry points, the calls of the standard ABI and the constants of both ABIs from
//! the tables of `abi` and from `constants.txt`, and names the shared library.

#[allow(dead_code)] // this library needs the parsers alone
#[path = "../abi/generate/mod.rs"]
mod generate;

#[path = "generate/mod.rs"]
mod mpich;

use std::path::Path;
use std::{env, fs};

const TABLES: &str = "../abi";

fn main() {
    println!("cargo:rerun-if-changed={TABLES}/generate");
    for input in ["constants.txt", "generate"] {
        println!("cargo:rerun-if-changed={input}");
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let out = Path::new(&out);
    let mut chapters = read("procedures.txt", generate::table::parse);
    chapters.extend(read("removed.txt", generate::table::parse));
    let standard = read("constants.txt", generate::constants::parse);
    let text = fs::read_to_string("constants.txt").expect("constants.txt is readable");
    let mpich = generate::constants::parse(&text).unwrap_or_else(|error| panic!("{error}"));

    let write = |name: &str, text: String| {
        fs::write(out.join(name), text)
            .unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
    };
    write("entry.rs", mpich::entry::generate(&chapters));
    write("pool.rs", mpich::pool::generate());
    write("standard.rs", mpich::standard::generate(&chapters));
    write(
        "constants.rs",
        mpich::constants::generate(&standard, &mpich),
    );

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
    // The ABI library lies in the folder above, unless LD_LIBRARY_PATH names another.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/..,--enable-new-dtags");
}

fn read<T>(name: &str, parse: impl Fn(&str) -> Result<T, String>) -> T {
    let path = format!("{TABLES}/{name}");
    println!("cargo:rerun-if-changed={path}");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}
