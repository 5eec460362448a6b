//! The library as C sees it: its symbols, its header, and programs compiled against both.

use crate::generate;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Werror", "-pedantic"];

#[test]
fn exactly_the_abis_names_are_exported() {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library())
        .output()
        .expect("nm, of binutils, runs");
    let text = String::from_utf8(output.stdout).unwrap();
    let found: BTreeSet<_> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_string())
        .collect();

    let mut wanted = BTreeSet::new();
    for chapter in generate::table::parse(include_str!("../../procedures.txt")).unwrap() {
        for procedure in &chapter.procedures {
            for &large in procedure.forms() {
                for prefix in ["MPI_", "PMPI_"] {
                    wanted.insert(procedure.c_name(prefix, large));
                }
            }
        }
    }
    assert_eq!(wanted.len(), 1314);
    let missing: Vec<_> = wanted.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&wanted).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing {missing:?}, surplus {surplus:?}"
    );
}

#[test]
fn the_header_is_clean_c99() {
    compile("gcc", "types.c", &["-std=c99", "-fsyntax-only"]);
}

#[test]
fn the_header_is_clean_cplusplus() {
    compile(
        "g++",
        "types.c",
        &["-x", "c++", "-std=c++11", "-fsyntax-only"],
    );
}

#[test]
fn what_may_be_called_without_mpi_works() {
    let output = run("early.c", &[]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_call_before_init_ends_the_program_and_says_so() {
    let output = run("before_init.c", &[]);
    assert_eq!(output.status.code(), Some(16), "{}", text(&output));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "fishplate: MPI_Send: called before MPI_Init (MPI_ERR_OTHER)\n"
    );
}

#[test]
fn a_bad_argument_before_init_is_explained() {
    let output = run("bad_info.c", &[]);
    assert_eq!(output.status.code(), Some(34), "{}", text(&output));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "fishplate: MPI_Info_get_nkeys: MPI_INFO_NULL is no info object (MPI_ERR_INFO)\n"
    );
}

#[test]
fn a_tool_before_mpi_names_is_not_called_through_pmpi_names() {
    let output = run("interpose.c", &[]);
    assert!(output.status.success(), "{}", text(&output));
}

/// Builds and runs a program of `tests/c`.
fn run(source: &str, arguments: &[&str]) -> Output {
    let library = library();
    let folder = library.parent().unwrap();
    let program = scratch().join(source.trim_end_matches(".c"));
    compile(
        "gcc",
        source,
        &[
            "-std=c99",
            "-o",
            program.to_str().unwrap(),
            library.to_str().unwrap(),
            &format!("-Wl,-rpath,{}", scratch().display()),
        ],
    );
    // The program asks for the library by its soname.
    let link = scratch().join("libmpi_abi.so.1");
    let _ = std::os::unix::fs::symlink(folder.join("libmpi_abi.so"), &link);
    Command::new(&program).args(arguments).output().unwrap()
}

fn compile(compiler: &str, source: &str, options: &[&str]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(compiler)
        .args(STRICT)
        .arg("-I")
        .arg(here.join("../../include"))
        .arg(options[0])
        .args(&options[1..options.len().min(3)])
        .arg(here.join("tests/c").join(source))
        .args(&options[options.len().min(3)..])
        .output()
        .unwrap_or_else(|error| panic!("{compiler} does not run: {error}"));
    assert!(
        output.status.success(),
        "{compiler} {source}: {}",
        text(&output)
    );
}

/// The shared library that cargo built beside this test.
fn library() -> PathBuf {
    env::current_exe().unwrap().with_file_name("libmpi_abi.so")
}

fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
