//! The forms of a collective operation: blocking, nonblocking and persistent.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The form of a collective: its blocking, nonblocking or persistent procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// MPI_X
    #[default]
    Blocking,
    /// MPI_Ix and MPI_Wait: time of both, and overlap with computing between them
    Nonblocking,
    /// MPI_X_init once for each size, then MPI_Start and MPI_Wait
    Persistent,
}

impl Form {
    pub(crate) const ALL: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Persistent];

    /// The form's name on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Form::Blocking => "blocking",
            Form::Nonblocking => "nonblocking",
            Form::Persistent => "persistent",
        }
    }
}
