//! One program of a job, and its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One program of a job, which has a number of consecutive ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The number of its ranks.
    pub ranks: usize,
    /// The program: a path, or a name to find in PATH.
    pub program: OsString,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// Variables for its ranks, in addition to the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
    /// The variables that its ranks inherit.
    pub inherited: Inherited,
    /// The working directory of its ranks. None: that of this process.
    pub directory: Option<PathBuf>,
}

/// The variables of the launcher that ranks inherit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inherited {
    /// All.
    #[default]
    All,
    /// These.
    Only(Vec<OsString>),
}

impl Inherited {
    /// Whether ranks inherit this variable.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        match self {
            Inherited::All => true,
            Inherited::Only(names) => names.iter().any(|known| known == name),
        }
    }
}

impl Program {
    /// The file of the program, if there is one: a path is taken from the program's directory, and
    /// a name is searched in PATH.
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
