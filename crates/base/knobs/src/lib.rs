//! The settings of the library: for each its name, aliases, type, default and description.
//!
//! The table in [`mod@table`] is the only description of a setting. The typed struct [`Knobs`], the
//! parser of the `FISHPLATE_*` variables, the command's listing and the documentation come from it.
//!
//! Invariants:
//! - this crate never reads the environment or a file: its callers pass the variables;
//! - an unknown variable that begins with `FISHPLATE_` is an error, because a misspelt setting that
//!   is silently ignored costs its user an afternoon;
//! - a variable of MVAPICH, which begins with `MV2_`, sets the setting of the same meaning unless a
//!   `FISHPLATE_` variable sets it. If there is no such setting, [`notices`] names the variable.
//!
//! Never here: reading the environment.

mod algorithms;
mod contract;
mod error;
mod mv2;
mod nearest;
mod parse;
mod rails;
mod table;
mod value;

pub use algorithms::{AUTO_ALGORITHM, AlgorithmChoice, AlgorithmChoices, MOST_BRANCHES, TreeArity};
pub use contract::{
    APPNUM, BINDING, CONTRACT, CONTROL_FD, ContractVariable, EXPLAIN, HOSTS, JOB, LOCAL_RANK,
    LOCAL_SIZE, MOST_RANKS, PROFILE_FD, RANK, RECORD, RECORD_FD, RECORD_LIMIT, SCENE_FD, SECRET_FD,
    SEGMENT_FD, SIZE, WORLD_FD,
};
pub use error::Error;
pub use mv2::{MV2_ALIASES, Mv2Alias, notices};
pub use parse::decode;
pub use rails::{MOST_RAILS, QueuePairs, RailCount, RailPolicy};
pub use table::{Knobs, TABLE};
pub use value::{
    AutoSeconds, Bytes, CoreDistance, CostSource, KnobValue, PmiVersion, ProgressBy,
    ProtocolChoice, RdmaDesign, ReadyToReceive, Rendezvous, Seconds, SingleCopyMode, TimeLimit,
    Wait, WindowPath,
};

/// The prefix of all variables of this project.
pub const PREFIX: &str = "FISHPLATE_";

/// A row of the table: the description of one setting.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// The name of the field of [`Knobs`], and of the setting in listings.
    pub name: &'static str,
    /// The name of the environment variable.
    pub env: &'static str,
    /// Other accepted names of the environment variable.
    pub aliases: &'static [&'static str],
    /// The form of a value: `bytes`, `count`, `auto|on|off`.
    pub kind: &'static str,
    /// Returns the default, as written in the environment.
    pub default: fn() -> String,
    /// Returns the smallest and the largest value, if the setting has limits.
    pub range: fn() -> Option<(String, String)>,
    /// True if the setting lets a study imitate another library or measure one part. No program
    /// needs it.
    pub is_for_studies: bool,
    doc: &'static [&'static str],
}

impl Knob {
    /// The description of the setting's effect, in one paragraph.
    pub fn doc(&self) -> String {
        let lines: Vec<&str> = self.doc.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }

    /// True if `variable` is the setting's variable or an alias of it.
    pub fn answers_to(&self, variable: &str) -> bool {
        self.env == variable || self.aliases.contains(&variable)
    }
}
