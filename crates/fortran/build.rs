//! Generates the entry points and the Fortran sources from the tables of `abi`, and names the
//! shared library and the library that it needs.

#[path = "generate/mod.rs"]
mod generate;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=generate");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let tables = generate::Tables::read(|name| {
        let path = format!("../abi/{name}");
        println!("cargo:rerun-if-changed={path}");
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
    });
    for (name, text) in generate::modules(&tables) {
        write(&out.join(name), &text);
    }
    // `make` installs the sources from the folder of the profile, the third above OUT_DIR.
    let sources = out
        .ancestors()
        .nth(3)
        .expect("OUT_DIR lies in the folder of the profile")
        .join("fortran");
    fs::create_dir_all(&sources).expect("the folder of the profile is writable");
    for (name, text) in generate::sources(&tables) {
        write(&sources.join(name), &text);
    }
    println!(
        "cargo:rerun-if-changed={}",
        sources.join("sources").display()
    );

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpifort_abi.so.1");
    // The ABI library lies beside this one, unless LD_LIBRARY_PATH names another.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN,--enable-new-dtags");
    let needed = stub(&out);
    // zig's linker takes no files among options.
    let needed = needed.display().to_string();
    for word in ["-Wl,--no-as-needed", &needed, "-Wl,--as-needed"] {
        println!("cargo:rustc-cdylib-link-arg={word}");
    }
}

/// A library with the name of the ABI library and nothing else: the linker writes that name into
/// what ours needs. The functions are found when it is loaded.
fn stub(out: &Path) -> PathBuf {
    let stub = out.join("libmpi_abi.so");
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    let made = Command::new(&linker)
        .args(["-shared", "-nostdlib", "-Wl,-soname,libmpi_abi.so.1"])
        .args(["-x", "assembler", "/dev/null", "-o"])
        .arg(&stub)
        .status();
    assert!(
        made.as_ref().is_ok_and(|status| status.success()),
        "{linker} cannot link an empty library: {made:?}"
    );
    stub
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
