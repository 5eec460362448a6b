//! Every setting once: name, aliases, type, default, doc.
//!
//! The table in [`mod@table`] is the one place where a setting is described. The typed struct [`Knobs`], the reading of
//! `FISHPLATE_*` variables, the command's listing and the documentation all come from it.
//!
//! What must always hold: this crate never reads the environment itself (it is handed the variables), and a variable
//! that begins with `FISHPLATE_` and is not known is an error, because a misspelt setting that is silently ignored
//! costs its user an afternoon.

mod contract;
mod error;
mod nearest;
mod overrides;
mod parse;
mod table;
mod value;

pub use contract::{
    COMPUTED_FD, CONTRACT, CONTROL_FD, Contract, HOSTS, RANK, SCENE_FD, SEGMENT_FD, SIZE, WORLD_FD,
};
pub use error::Error;
pub use overrides::{Override, Overrides};
pub use parse::decode;
pub use table::{Knobs, TABLE};
pub use value::{Bytes, Cores, RdmaDesign, Rendezvous, Seconds, SingleCopy, Value, Wait};

/// All variables of this project begin so.
pub const PREFIX: &str = "FISHPLATE_";

/// A row of the table: one setting, described.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// The field of [`Knobs`], and the name in listings.
    pub name: &'static str,
    /// The environment variable.
    pub env: &'static str,
    /// Other names of the same variable.
    pub aliases: &'static [&'static str],
    /// What a value looks like, for people: `bytes`, `count`, `auto|on|off`.
    pub kind: &'static str,
    /// The default, as it would be written in the environment.
    pub default: fn() -> String,
    /// The smallest and the largest value, where there are limits.
    pub range: fn() -> Option<(String, String)>,
    doc: &'static [&'static str],
}

impl Knob {
    /// What the setting does, in one paragraph.
    pub fn doc(&self) -> String {
        let lines: Vec<&str> = self.doc.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }

    /// Does this variable set it?
    pub fn answers_to(&self, variable: &str) -> bool {
        self.env == variable || self.aliases.contains(&variable)
    }
}
