//! The libraries of a program's ranks: those that the program is linked to, and the environment
//! variables by which the dynamic linker finds ours.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;

use crate::library::{CLOCK_LIBRARY, OTHER_ABIS};
use crate::linked::{LinkedLibraries, can_be_preloaded};
use crate::{Error, Options, Program};

/// Finds the MPI libraries of these programs. If ranks cannot use ours instead of one of them, that
/// is an error, unless it is allowed. Remarks about a program are printed only by the process that
/// starts its first rank; `first` is the first rank that this process starts.
pub(super) fn linked_libraries(
    options: &Options,
    first: usize,
    programs: &[(usize, &Program)],
) -> Result<Vec<(usize, LinkedLibraries)>, Error> {
    let own = options.library.as_deref();
    let mut libraries = Vec::new();
    for &(at, program) in programs {
        let linked = linked_to(options, program);
        let earlier = options.programs[..at].iter().map(|earlier| earlier.ranks);
        let is_first = earlier.sum::<usize>() >= first;
        // A single process that is a job of one rank works with any library.
        let refusal = linked.refusal(program, own).filter(|_| options.ranks() > 1);
        let mut lines = linked.remarks(program);
        match refusal {
            Some(why) if !options.allow_other_mpi => return Err(Error::OtherMpi { why }),
            refusal => lines.extend(refusal),
        }
        if options.verbose {
            lines.extend(linked.verbose(program, own));
        }
        for line in lines.iter().filter(|_| is_first) {
            let line = format!("fishplate: {}\n", terminal_text::lines(line));
            let _ = io::stderr().write_all(line.as_bytes());
        }
        libraries.push((at, linked));
    }
    Ok(libraries)
}

/// Finds the MPI libraries of a program of this job.
pub(crate) fn linked_to(options: &Options, program: &Program) -> LinkedLibraries {
    let path = library_path(options, program).unwrap_or_default();
    let preloaded = given_variable(options, program, "LD_PRELOAD").unwrap_or_default();
    LinkedLibraries::of(program, options.library.as_deref(), &path, &preloaded)
}

/// The value of an environment variable that ranks of a program get from the user or from the
/// launcher's environment. `None` if it is empty.
pub(super) fn given_variable(options: &Options, program: &Program, name: &str) -> Option<OsString> {
    let variables = options.variables.iter().chain(&program.variables);
    let mut given = variables.rev().filter(|(known, _)| known == name);
    let own = || std::env::var_os(name).filter(|_| program.inherited.has(OsStr::new(name)));
    let value = given.next().map(|(_, value)| value.clone()).or_else(own);
    value.filter(|value| !value.is_empty())
}

/// The value of LD_PRELOAD: the user's libraries, which may wrap our functions, then ours.
pub(super) fn preload(given: Option<OsString>, libraries: &[PathBuf]) -> OsString {
    let mut value = given.unwrap_or_default();
    for library in libraries {
        if !value.is_empty() {
            value.push(":");
        }
        value.push(library);
    }
    value
}

/// The library to preload so that the system's clocks show virtual time. `None` if they stay real.
pub(super) fn clock_library(options: &Options) -> Result<Option<PathBuf>, Error> {
    let wanted = |machine: &crate::ModelledMachine| machine.virtual_clocks;
    if !options.machine.as_ref().is_some_and(wanted) {
        return Ok(None);
    }
    let Some(folder) = &options.library else {
        return Ok(None);
    };
    let library = folder.join(CLOCK_LIBRARY);
    match library.is_file() {
        true if can_be_preloaded(&library) => Ok(Some(library)),
        is_there => Err(Error::Clocks { library, is_there }),
    }
}

/// The variable that selects which of its variants a wheel of mpi4py loads.
pub(super) const MPI4PY_ABI: &str = "MPI4PY_MPIABI";

/// The value of LD_LIBRARY_PATH: the folders of our libraries, then the user's.
pub(super) fn library_path(options: &Options, program: &Program) -> Option<OsString> {
    let own = options.library.clone()?;
    let others = own.join(OTHER_ABIS);
    let mut path = own.into_os_string();
    if others.is_dir() {
        path.push(":");
        path.push(others);
    }
    if let Some(rest) = given_variable(options, program, "LD_LIBRARY_PATH") {
        path.push(":");
        path.push(rest);
    }
    Some(path)
}
