//! The start of a rank: by our launcher, by another one, or alone.

use std::sync::Arc;

use knobs::{CONTROL_FD, Knobs, RANK, SEGMENT_FD, SIZE};

use crate::{Error, ForeignJob, Job, foreign};

/// The origin of this process.
#[derive(Debug)]
pub enum Started {
    /// Our launcher started it as a rank.
    Ours(Box<Job>),
    /// Another launcher started it as a rank.
    Foreign(Arc<ForeignJob>),
    /// It is the only rank.
    Alone,
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
