//! The outcomes of replays, which this command or another has made.

use std::collections::HashMap;

use anyhow::{Context, Result};
use profile::Summary;

use crate::task::Task;

/// The summary of a replay, or the reason why there is none.
pub(crate) type Outcome = Result<Summary, String>;

/// The end of a replay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// It ran, with this summary as JSON.
    Ran(String),
    /// It failed, for this reason.
    Failed(String),
}

impl Ended {
    /// The outcome of the replay.
    pub(crate) fn outcome(&self) -> Result<Outcome> {
        let text = match self {
            Ended::Ran(text) => text,
            Ended::Failed(why) => return Ok(Err(why.clone())),
        };
        let summary: Summary =
            serde_json::from_str(text).context("the summary of a replay is damaged")?;
        Ok(Ok(summary))
    }
}

/// An error: replays whose outcomes are not known yet.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) Vec<Task>);

impl std::fmt::Display for Missing {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(to, "{} replays are not known", self.0.len())
    }
}

impl std::error::Error for Missing {}

/// Replays that other commands have made, by their lines.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere(pub(crate) HashMap<String, Ended>);

impl Elsewhere {
    /// The outcome of a replay; `None` if nobody has made it.
    pub(crate) fn outcome(&self, task: &Task) -> Result<Option<Outcome>> {
        self.0.get(&task.line()).map(Ended::outcome).transpose()
    }

    /// True if a replay has been made.
    pub(crate) fn has(&self, task: &Task) -> bool {
        self.0.contains_key(&task.line())
    }
}
