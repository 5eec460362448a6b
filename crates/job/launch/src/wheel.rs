//! Detection of a Python whose mpi4py was built for another ABI. Wheels of mpi4py are built for the
//! ABIs of MPICH and Open MPI. In an installation without our `libmpi.so.12` their import fails
//! before MPI starts, and the launcher then advises the user to build mpi4py.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Program;

/// A Python program that prints the folder of the mpi4py that it would import, without importing
/// it.
const FIND: &str = "from importlib.util import find_spec as f; s = f('mpi4py'); print(*(s.submodule_search_locations if s else ()), end='')";
/// The longest wait for the output of the program [`FIND`]: the machine may be busy, or the file
/// system with the packages slow.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two checks if the Python interpreter has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// A message for the user about a program that ended before MPI_Init. `None` unless it is a python
/// whose mpi4py is a wheel for other ABIs.
pub(crate) fn wheel_remark(program: &Program) -> Option<String> {
    let file = program.file().filter(|file| is_python(file))?;
    let folder = mpi4py_of(&file, program)?;
    let names = std::fs::read_dir(&folder).ok()?;
    let names = names.flatten().map(|entry| entry.file_name());
    is_for_other_abis(names).then(|| {
        format!(
            "{} is a wheel of mpi4py for the ABIs of MPICH and Open MPI, and this library is the standard ABI: \
             build mpi4py once, by MPICC=mpicc pip install --no-binary mpi4py mpi4py",
            terminal_text::line(&folder.to_string_lossy())
        )
    })
}

fn is_python(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let version = name.strip_prefix("python");
    version.is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte == b'.' || byte.is_ascii_digit())
    })
}

/// True if the extensions among the files `names` of the package `mpi4py` are for other ABIs only.
fn is_for_other_abis(names: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    let mut others = 0;
    for name in names {
        let name = name.as_ref().to_string_lossy();
        match name.strip_prefix("MPI.") {
            Some(rest) if !rest.ends_with(".so") => {}
            Some(rest) if rest.starts_with("mpich") || rest.starts_with("openmpi") => others += 1,
            Some(_) => return false,
            None => {}
        }
    }
    others > 0
}

/// The folder of mpi4py, as the interpreter reports it: only the interpreter knows its search path.
fn mpi4py_of(python: &Path, program: &Program) -> Option<PathBuf> {
    let directory = program.directory.as_deref().unwrap_or(Path::new("."));
    let mut child = Command::new(python)
        .args(["-c", FIND])
        .envs(program.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(PAUSE);
    }
    let output = child.wait_with_output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !folder.is_empty()).then(|| PathBuf::from(folder))
}

#[cfg(test)]
mod tests {
    use super::{is_for_other_abis, is_python};

    #[test]
    fn interpreters_have_versions_at_most() {
        let is = |name: &str| is_python(name.as_ref());
        assert!(is("/usr/bin/python") && is("python3") && is("bin/python3.11"));
        assert!(!is("/usr/bin/python3-config") && !is("pythonic") && !is("pi"));
    }

    #[test]
    fn an_extension_for_another_abi_is_no_use_alone() {
        let is = |names: &[&str]| is_for_other_abis(names.iter());
        let (mpich, openmpi) = ("MPI.mpich.cpython-311.so", "MPI.openmpi.abi3.so");
        assert!(is(&["__init__.py", "MPI.pyi", mpich, openmpi]));
        assert!(!is(&[
            "__init__.py",
            "MPI.pyi",
            mpich,
            "MPI.mpiabi.cpython-311.so"
        ]));
        assert!(!is(&["MPI.cpython-311-x86_64-linux-gnu.so"]) && !is(&["__init__.py"]));
    }
}
