//! The start of a rank: by our launcher, by another one, or alone.

use std::sync::Arc;

use knobs::{CONTROL_FD, Knobs, RANK, SEGMENT_FD, SIZE};

use crate::control::Control;
use crate::{Bootstrap, Error, ForeignJob, Job, LauncherGone, Notice, foreign};

/// The origin of this process.
#[derive(Debug)]
pub enum Started {
    /// Our launcher started the process as a rank.
    Ours(Box<Job>),
    /// Another launcher started the process as a rank.
    Foreign(Arc<ForeignJob>),
    /// The process is the only rank of its job.
    Alone,
}

/// The launcher of a rank whose start may fail: it reports one failure for the whole job.
#[derive(Debug)]
pub enum StartReporter {
    /// Our launcher.
    Ours(StartLine),
    /// Another launcher.
    Foreign(Arc<ForeignJob>),
}

/// The line to our launcher.
#[derive(Debug)]
pub struct StartLine(Arc<Control>);

impl Started {
    /// The launcher to which a failure of the start is reported. None for the only rank.
    pub fn reporter(&self) -> Option<StartReporter> {
        match self {
            Started::Ours(job) => Some(StartReporter::Ours(StartLine(job.control()))),
            Started::Foreign(job) => Some(StartReporter::Foreign(Arc::clone(job))),
            Started::Alone => None,
        }
    }
}

impl StartReporter {
    /// Reports that this rank cannot start.
    ///
    /// # Errors
    /// Nobody took the report.
    pub fn failed(&self, code: i32, text: &str) -> Result<(), LauncherGone> {
        let fault = Notice::Fault { code, text };
        match self {
            StartReporter::Ours(line) => line.0.notify(fault),
            StartReporter::Foreign(job) => job.notify(fault),
        }
    }

    /// Ends the whole job, after [`StartReporter::failed`].
    pub fn end_job(&self, code: i32) {
        // Our own launcher does it by the report.
        if let StartReporter::Foreign(job) = self {
            job.end_job(code);
        }
    }
}

/// Finds the launcher of this process by its variables, and opens the connection to it.
///
/// # Errors
/// The variables of our launcher exist but are unusable; or another launcher started this process
/// as one of several, and the others cannot be reached through it.
pub fn start(
    vars: impl Iterator<Item = (String, String)>,
    knobs: &Knobs,
) -> Result<Started, Error> {
    let vars: Vec<(String, String)> = vars.filter(|(_, value)| !value.is_empty()).collect();
    let find = |name: &str| {
        let row = vars.iter().find(|(known, _)| known == name);
        row.map(|(_, value)| value.as_str())
    };
    let contract = [RANK, SIZE, SEGMENT_FD, CONTROL_FD];
    if contract.iter().any(|name| find(name).is_some()) {
        return Job::from_variables(find).map(|job| Started::Ours(Box::new(job)));
    }
    Ok(match foreign::open(find, knobs)? {
        Some(job) => Started::Foreign(Arc::new(job)),
        None => Started::Alone,
    })
}
