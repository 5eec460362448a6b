//! Tests of the library as C uses it: its symbols, its header, and programs compiled with both.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};
use tables::table::Chapter;

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Werror", "-pedantic"];

#[test]
fn the_abis_names_and_the_removed_ones_are_exported_and_no_others() {
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

    let of_abi = exported(tables::procedures());
    let beside = exported(tables::removed());
    assert_eq!((of_abi.len(), beside.len()), (1314, 34));
    let wanted = &of_abi | &beside;
    assert_eq!(wanted.len(), of_abi.len() + beside.len());
    let missing: Vec<_> = wanted.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&wanted).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing {missing:?}, surplus {surplus:?}"
    );
}

/// The symbols of the procedures in a table.
fn exported(chapters: Vec<Chapter>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for chapter in chapters {
        for procedure in &chapter.procedures {
            for &large in procedure.forms() {
                names.extend(["MPI_", "PMPI_"].map(|prefix| procedure.c_name(prefix, large)));
            }
        }
    }
    names
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

/// Names that the ABI omits work in C before 1999 and in C++ too.
#[test]
fn names_that_the_abi_leaves_out_work() {
    let languages = [
        ("gcc", "-std=c99"),
        ("gcc", "-std=c89"),
        ("g++", "-std=c++11"),
    ];
    for (compiler, standard) in languages {
        for source in ["fortran_names.c", "own_names.c"] {
            let output = run_with(compiler, source, &[standard], &[]);
            assert!(
                output.status.success(),
                "{source} {standard}: {}",
                text(&output)
            );
        }
    }
}

#[test]
fn a_program_may_define_the_names_that_the_abi_leaves_out() {
    for (compiler, standard) in [("gcc", "-std=c99"), ("g++", "-std=c++11")] {
        let command_line = [
            "-DMPI_Fint=int",
            "-DMPI_Comm_f2c=MPI_Comm_fromint",
            "-DMPI_Comm_c2f=MPI_Comm_toint",
        ];
        for (source, options) in [
            ("own_names.c", &command_line[..]),
            ("own_names.c", &["-DFISHPLATE_NO_FORTRAN_NAMES"][..]),
            ("without_names.c", &[][..]),
        ] {
            let options: Vec<_> = [standard].iter().chain(options).copied().collect();
            let output = run_with(compiler, source, &options, &[]);
            assert!(
                output.status.success(),
                "{source} {options:?}: {}",
                text(&output)
            );
        }
    }
}

/// A probe of configure declares a name itself, and only the linker decides.
#[test]
fn link_probes_find_the_names_that_the_abi_leaves_out() {
    let scratch = scratch();
    let archive = scratch.join("libfishplate_names.a");
    let object = scratch.join("names.o");
    let names = Path::new(env!("CARGO_MANIFEST_DIR")).join("names.c");
    compile_file(
        "gcc",
        &names,
        &["-fPIC", "-c", "-o", object.to_str().unwrap()],
        &[],
    );
    let archived = Command::new("ar")
        .arg("rcs")
        .args([&archive, &object])
        .status();
    assert!(archived.expect("ar, of binutils, runs").success());
    let probed = [
        "MPI_Comm_f2c",
        "MPI_Status_c2f",
        "PMPI_Type_c2f",
        "MPI_Session_f2c",
        "MPI_F_STATUS_IGNORE",
    ];
    for name in probed {
        for (found, archives) in [(false, &[][..]), (true, &[archive.to_str().unwrap()][..])] {
            let program = scratch.join(format!("probe_{name}"));
            let source = program.with_extension("c");
            fs::write(
                &source,
                format!("char {name}();\nint main(void) {{ return {name}(); }}\n"),
            )
            .unwrap();
            let output = Command::new("gcc")
                .arg("-w")
                .arg("-o")
                .args([&program, &source])
                .args(archives)
                .arg(library())
                .output()
                .unwrap();
            assert_eq!(output.status.success(), found, "{name}: {}", text(&output));
        }
    }
}

#[test]
fn names_beside_the_abi_are_declared_on_request() {
    let output = run_with(
        "gcc",
        "removed_names.c",
        &["-std=c99", "-Wno-cast-function-type"],
        &[],
    );
    assert!(output.status.success(), "{}", text(&output));
    let source = here().join("tests/c/types.c");
    let used = "-Duse=MPI_Attr_get";
    let declared = |options: &[&str]| {
        let mut command = Command::new("gcc");
        command.arg("-I").arg(here().join("../../../include"));
        command
            .args(["-fsyntax-only", "-w", used])
            .args(options)
            .arg(&source);
        !command.output().unwrap().status.success()
    };
    // A definition with one of the names and other parameters is an error where the name is
    // declared.
    assert!(!declared(&[]) && declared(&["-DFISHPLATE_REMOVED_NAMES"]));
}

/// Builds and runs a program of `tests/c`.
fn run(source: &str, arguments: &[&str]) -> Output {
    run_with("gcc", source, &["-std=c99"], arguments)
}

fn run_with(compiler: &str, source: &str, options: &[&str], arguments: &[&str]) -> Output {
    let library = library();
    let scratch = scratch();
    // Tests run concurrently.
    static PROGRAMS: AtomicUsize = AtomicUsize::new(0);
    let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let stem = source.trim_end_matches(".c");
    let program = scratch.join(format!("{stem}-{}-{number}", std::process::id()));
    let language = if compiler == "g++" { "c++" } else { "c" };
    let rpath = format!("-Wl,-rpath,{}", scratch.display());
    let before = [options, &["-x", language, "-o", program.to_str().unwrap()]].concat();
    compile_file(
        compiler,
        &here().join("tests/c").join(source),
        &before,
        &["-x", "none", library.to_str().unwrap(), &rpath],
    );
    // The program needs the library by its soname.
    let link = scratch.join("libmpi_abi.so.1");
    let _ = std::os::unix::fs::symlink(library.parent().unwrap().join("libmpi_abi.so"), &link);
    let output = Command::new(&program).args(arguments).output().unwrap();
    fs::remove_file(&program).unwrap();
    output
}

fn compile(compiler: &str, source: &str, options: &[&str]) {
    compile_file(compiler, &here().join("tests/c").join(source), options, &[]);
}

/// Compiles a file without warnings, with options before its name and after it.
fn compile_file(compiler: &str, file: &Path, before: &[&str], after: &[&str]) {
    let output = Command::new(compiler)
        .args(STRICT)
        .arg("-I")
        .arg(here().join("../../../include"))
        .args(before)
        .arg(file)
        .args(after)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} does not run: {error}"));
    assert!(
        output.status.success(),
        "{compiler} {}: {}",
        file.display(),
        text(&output)
    );
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shared library that cargo built in the folder of this test.
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
