//! The settings of the library: for each its name, aliases, type, default and description.
//!
//! The table in [`mod@table`] is the only description of a setting. The typed struct [`Knobs`], the
//! parser of the `FISHPLATE_*` variables, the command's listing and the documentation come from it.
//!
//! Invariants:
//! - this crate never reads the environment or a file: its callers pass the variables, and the text
//!   of the file that a setting names;
//! - an unknown variable that begins with `FISHPLATE_` is an error, because a misspelt setting that
//!   is silently ignored costs its user an afternoon;
//! - a variable of MVAPICH, which begins with `MV2_`, sets a setting of the same meaning unless a
//!   `FISHPLATE_` variable does. One without meaning here is ignored, and [`notices`] names it.
//!
//! Never here: reading the environment.

mod algorithms;
mod contract;
mod cost_table;
mod costs;
mod error;
mod mv2;
mod nearest;
mod parse;
mod rails;
mod table;
mod value;

pub use algorithms::{AlgorithmChoice, AlgorithmChoices, MOST_BRANCHES, TreeArity};
pub use contract::{
    APPNUM, BINDING, COMPUTED_FD, CONTRACT, CONTROL_FD, ContractVariable, EXPLAIN, HOSTS, JOB,
    LOCAL_RANK, LOCAL_SIZE, MOST_RANKS, PROFILE_FD, RANK, SCENE_FD, SECRET_FD, SEGMENT_FD, SIZE,
    WORLD_FD,
};
pub use cost_table::{CopyCosts, CopyPath, CostError, CostTable, processor_name};
pub use costs::{CostFile, CostSource};
pub use error::Error;
pub use mv2::{MV2_ALIASES, Mv2Alias, notices};
pub use parse::decode;
pub use rails::{MOST_RAILS, QueuePairs, RailCount, RailPolicy};
pub use table::{Knobs, TABLE};
pub use value::{
    AutoSeconds, Bytes, CoreDistance, KnobValue, PmiVersion, ProgressBy, ProtocolChoice,
    RdmaDesign, ReadyToReceive, Rendezvous, Seconds, SingleCopyMode, TimeLimit, Wait, WindowPath,
};

/// The prefix of all variables of this project.
pub const PREFIX: &str = "FISHPLATE_";

/// A row of the table: the description of one setting.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// The field of [`Knobs`], and the name in listings.
    pub name: &'static str,
    /// The environment variable.
    pub env: &'static str,
    /// Other names of the same variable.
    pub aliases: &'static [&'static str],
    /// The form of a value: `bytes`, `count`, `auto|on|off`.
    pub kind: &'static str,
    /// The default, as written in the environment.
    pub default: fn() -> String,
    /// The smallest and the largest value, if the setting has limits.
    pub range: fn() -> Option<(String, String)>,
    /// It lets a study imitate another library or measure one part; no program needs it.
    pub is_for_studies: bool,
    doc: &'static [&'static str],
}

impl Knob {
    /// The effect of the setting, in one paragraph.
    pub fn doc(&self) -> String {
        let lines: Vec<&str> = self.doc.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }

    /// True if `variable` is the setting's variable or an alias of it.
    pub fn answers_to(&self, variable: &str) -> bool {
        self.env == variable || self.aliases.contains(&variable)
    }
}
