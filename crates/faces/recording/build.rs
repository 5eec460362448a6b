//! Generates the table of recorded procedures and the constants of the standard ABI.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    write(
        "recorded.rs",
        &tables::recorded::generate(&tables::all_procedures()),
    );
    let groups = tables::constants();
    let all = groups.iter().flat_map(|group| &group.constants);
    let mut text = String::new();
    for constant in all.filter(|constant| constant.in_c()) {
        let (name, value) = (&constant.name, &constant.value);
        writeln!(text, "/// `{name}`\npub const {name}: i64 = {value};").unwrap();
    }
    write("constants.rs", &text);
}

fn write(name: &str, text: &str) {
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(Path::new(&out).join(name), text)
        .unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
}
