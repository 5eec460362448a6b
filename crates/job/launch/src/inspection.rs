//! The MPI libraries of a program, found without starting it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::library::own_library;
use crate::needs::MpiNeeds;
use crate::start::libraries::linked_to;
use crate::{Options, Program};

/// The MPI libraries that a program needs, and those that its ranks would use.
#[derive(Debug)]
pub struct Inspection {
    /// The libraries that the program needs.
    pub needs: MpiNeeds,
    /// For each needed library the library of this installation that ranks would use, if there is
    /// one.
    pub used: Vec<Option<PathBuf>>,
    /// The reason why the launcher would refuse a job of several ranks of this program.
    pub refusal: Option<String>,
    /// The messages that the launcher would print when it starts the program.
    pub remarks: Vec<String>,
}

/// Reads the files of a program as the launcher does before a job. `library` is the folder of our
/// library. `None`: the program does not exist.
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
