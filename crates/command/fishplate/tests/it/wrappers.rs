//! Tests of the compiler wrappers, in a small tree with the layout of an installation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Folder;

const MPICC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/mpicc");

/// An installation prefix whose library has one function, declared in its header. The prefix's name
/// needs quoting.
struct Prefix {
    _folder: Folder,
    path: PathBuf,
}

fn prefix(name: &str) -> Prefix {
    let folder = Folder::new(name);
    let path = folder.0.join("it's a prefix");
    for part in ["bin", "lib", "include"] {
        std::fs::create_dir_all(path.join(part)).unwrap();
    }
    std::fs::copy(MPICC, path.join("bin/mpicc")).unwrap();
    for name in ["mpicxx", "mpic++"] {
        std::os::unix::fs::symlink("mpicc", path.join("bin").join(name)).unwrap();
    }
    let header = "#ifdef __cplusplus\nextern \"C\"\n#endif\nint answer(void);\n";
    std::fs::write(path.join("include/mpi.h"), header).unwrap();
    let source = folder.file("library.c", "int answer(void) { return 42; }\n", 0o644);
    let library = path.join("lib/libmpi_abi.so.1");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.unwrap().success());
    std::os::unix::fs::symlink("libmpi_abi.so.1", path.join("lib/libmpi_abi.so")).unwrap();
    Prefix {
        _folder: folder,
        path,
    }
}

impl Prefix {
    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.path.join("bin").join(name));
        command
            .current_dir(self.path.parent().unwrap())
            .env_remove("MPICC_CC")
            .env_remove("MPICXX_CXX");
        command
    }

    fn says(&self, name: &str, arguments: &[&str]) -> String {
        text(self.tool(name).args(arguments))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.parent().unwrap().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_string()
}

const PROGRAM: &str = "#include <mpi.h>\nint main(void) { return answer() == 42 ? 0 : 1; }\n";

#[test]
fn programs_are_compiled_linked_and_run_without_further_ado() {
    let prefix = prefix("build");
    prefix.file("program.c", PROGRAM);
    prefix.file("program.cc", PROGRAM);
    for (tool, source) in [
        ("mpicc", "program.c"),
        ("mpicxx", "program.cc"),
        ("mpic++", "program.cc"),
    ] {
        prefix.says(tool, &["-O1", "-o", "program", source]);
        run(&prefix.path.parent().unwrap().join("program"));
        // Compile and link in separate steps.
        prefix.says(tool, &["-c", "-o", "program.o", source]);
        prefix.says(tool, &["-o", "program", "program.o", "-lm"]);
        run(&prefix.path.parent().unwrap().join("program"));
    }
    assert!(
        prefix
            .says("mpicc", &["-E", "program.c"])
            .contains("int answer(void);")
    );
}

fn run(program: &Path) {
    assert!(
        Command::new(program)
            .env_remove("LD_LIBRARY_PATH")
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn the_command_is_shown_and_a_shell_can_run_it() {
    let prefix = prefix("show");
    prefix.file("program.c", PROGRAM);
    let shown = prefix.says(
        "mpicc",
        &["-show", "-DTEXT=a b", "-o", "program", "program.c"],
    );
    assert!(
        shown.starts_with("cc ") && shown.ends_with("-lmpi_abi"),
        "{shown}"
    );
    let folder = prefix.path.parent().unwrap();
    text(Command::new("sh").args(["-c", &shown]).current_dir(folder));
    run(&folder.join("program"));
    assert!(
        !prefix
            .says("mpicc", &["-show", "-c", "program.c"])
            .contains("-lmpi_abi")
    );
    assert!(prefix.says("mpicxx", &["-show"]).starts_with("c++ "));
}

#[test]
fn the_parts_are_shown() {
    let prefix = prefix("parts");
    let path = prefix.path.display();
    let quoted = format!(
        "'{}/",
        prefix.path.display().to_string().replace('\'', "'\\''")
    );
    assert_eq!(prefix.says("mpicc", &["-showme:command"]), "cc");
    assert_eq!(
        prefix.says("mpicc", &["-showme:incdirs"]),
        format!("{path}/include")
    );
    assert_eq!(
        prefix.says("mpicc", &["--showme:libdir"]),
        format!("{path}/lib")
    );
    assert_eq!(
        prefix.says("mpicc", &["-showme:compile"]),
        format!("{}include'", quoted.replacen('\'', "'-I", 1))
    );
    let link = prefix.says("mpicc", &["-showme:link"]);
    assert!(
        link.contains("-Wl,-rpath,") && link.ends_with("-lmpi_abi"),
        "{link}"
    );
    assert!(
        prefix
            .says("mpicc", &["-showme:version"])
            .starts_with("mpicc: MPI 5.0.0 ")
    );
    let refused = prefix
        .tool("mpicc")
        .arg("-showme:nonsense")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nonsense"));
}

#[test]
fn another_compiler_can_be_chosen() {
    let prefix = prefix("choose");
    let shown = |command: &mut Command| text(command.args(["-show", "x.c"]));
    assert!(shown(prefix.tool("mpicc").arg("-cc=gcc -m64")).starts_with("gcc -m64 '-I"));
    assert!(shown(prefix.tool("mpicc").env("MPICC_CC", "clang")).starts_with("clang "));
    assert!(shown(prefix.tool("mpicxx").env("MPICXX_CXX", "clang++")).starts_with("clang++ "));
    assert!(shown(prefix.tool("mpicxx").env("MPICC_CC", "clang")).starts_with("c++ "));
}

#[test]
fn questions_reach_the_compiler() {
    let prefix = prefix("ask");
    let asked = prefix.says("mpicc", &["--version"]);
    assert_eq!(asked, text(Command::new("cc").arg("--version")));
    prefix.says("mpicc", &["-dumpmachine"]);
}
