//! One program of a job, and its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One program of a job, which has a number of consecutive ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The number of ranks of the program.
    pub ranks: usize,
    /// The program: a path, or a name to search in PATH.
    pub program: OsString,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// Environment variables for the program's ranks, in addition to the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
    /// The launcher's environment variables that the program's ranks inherit.
    pub inherited: Inherited,
    /// The working directory of the program's ranks. `None`: that of this process.
    pub directory: Option<PathBuf>,
}

/// The environment variables of the launcher that ranks inherit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inherited {
    /// All variables.
    #[default]
    All,
    /// Only these variables.
    Only(Vec<OsString>),
}

impl Inherited {
    /// True if ranks inherit this variable.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        match self {
            Inherited::All => true,
            Inherited::Only(names) => names.iter().any(|known| known == name),
        }
    }
}

impl Program {
    /// The file of the program, if it exists. A path is relative to the program's directory; a name
    /// is searched in PATH.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let directory = self.directory.as_deref().unwrap_or(Path::new("."));
        if self.program.as_bytes().contains(&b'/') {
            return Some(directory.join(&self.program)).filter(|file| file.is_file());
        }
        let own = self.variables.iter().rfind(|(name, _)| name == "PATH");
        let path = own.map(|(_, value)| value.clone());
        let path = path.or_else(|| std::env::var_os("PATH"))?;
        let files = std::env::split_paths(&path).map(|folder| folder.join(&self.program));
        let can_run = |file: &PathBuf| {
            file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
        };
        files.into_iter().find(can_run)
    }
}
