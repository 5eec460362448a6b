//! The MPI libraries of a program that is not started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::library::own_library;
use crate::needs::MpiNeeds;
use crate::start::libraries::linked_to;
use crate::{Options, Program};

/// The MPI libraries of a program, and those that its ranks would use.
#[derive(Debug)]
pub struct Inspection {
    /// The libraries that it needs.
    pub needs: MpiNeeds,
    /// Our library for each of them, if there is one.
    pub used: Vec<Option<PathBuf>>,
    /// The reason why a job of several ranks is refused.
    pub refusal: Option<String>,
    /// The texts that the launcher would print about a job that it starts.
    pub remarks: Vec<String>,
}

/// Reads the files of a program as the launcher does before a job. `library` is the folder of our
/// library. None: there is no such program.
pub fn inspect(program: &OsStr, library: Option<&Path>) -> Option<Inspection> {
    let program = Program {
        program: program.to_os_string(),
        ..Program::default()
    };
    program.file()?;
    let options = Options {
        library: library.map(Path::to_path_buf),
        ..Options::default()
    };
    let linked = linked_to(&options, &program);
    let used = linked
        .needs
        .needs
        .iter()
        .map(|need| library.and_then(|library| own_library(library, need.library.as_ref())));
    Some(Inspection {
        used: used.collect(),
        refusal: linked.refusal(&program, library),
        remarks: linked.remarks(&program),
        needs: linked.needs,
    })
}
