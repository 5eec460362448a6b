//! The start of a rank: by our launcher, by one of another MPI library, or without a launcher.

use std::sync::Arc;

use knobs::{CONTROL_FD, Knobs, RANK, SEGMENT_FD, SIZE};

use crate::control::Control;
use crate::{Bootstrap, Error, ForeignJob, Job, LauncherGone, Notice, foreign};

/// How this process was started.
#[derive(Debug)]
pub enum Started {
    /// Our launcher started the process as a rank.
    Ours(Box<Job>),
    /// A launcher of another MPI library started the process as a rank.
    Foreign(Arc<ForeignJob>),
    /// No launcher started the process: it is the only rank of its job.
    Alone,
}

/// The connection by which a rank whose start fails reports that failure. It ends the whole job.
#[derive(Debug)]
pub enum StartReporter {
    /// The rank belongs to our launcher.
    Ours(StartLine),
    /// The rank belongs to a launcher of another MPI library.
    Foreign(Arc<ForeignJob>),
}

/// A shared handle of this rank's connection to our launcher.
#[derive(Debug)]
pub struct StartLine(Arc<Control>);

impl Started {
    /// The connection on which a failure of the start is reported. `None` for the only rank of a
    /// job.
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
    /// No launcher received the report.
    pub fn failed(&self, code: i32, text: &str) -> Result<(), LauncherGone> {
        let fault = Notice::Fault { code, text };
        match self {
            StartReporter::Ours(line) => line.0.notify(fault),
            StartReporter::Foreign(job) => job.notify(fault),
        }
    }

    /// Ends the whole job after a start that has failed.
    pub fn end_job(&self, code: i32) {
        // Our own launcher ends the job when it receives the report.
        if let StartReporter::Foreign(job) = self {
            job.end_job(code);
        }
    }
}

/// Finds the launcher of this process by its environment variables, and connects to it.
///
/// # Errors
/// The variables of our launcher exist but are invalid; or a launcher of another MPI library
/// started this process as one of several ranks, and cannot connect it with the others.
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
