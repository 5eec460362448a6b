//! Limits on the number of ranks of a job: a fixed one, and one that follows from the limit on open
//! descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use pmi::MOST_RANKS;

use crate::Error;

/// The number of descriptors that are not for ranks: the standard streams, signals, the segment,
/// and those of libraries.
const OTHER_DESCRIPTORS: u64 = 64;

/// Checks the number of ranks of a job.
pub(crate) fn check(ranks: usize) -> Result<(), Error> {
    match (1..=MOST_RANKS).contains(&ranks) {
        true => Ok(()),
        false => Err(Error::Ranks { ranks }),
    }
}

/// Raises the soft limit on descriptors if the job needs more. Returns the previous limit, which
/// ranks get again: programs that use select(2) rely on a low one.
pub(crate) fn make_room(ranks: usize, tag_output: bool) -> Result<Option<Rlimit>, Error> {
    // For a rank: a socket, a pidfd of a program below a wrapper, and two pipes. For a host: three
    // pipes.
    let per_rank = if tag_output { 4 } else { 2 };
    let needed = ranks as u64 * per_rank + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(None);
    }
    if let Some(hard) = limit.maximum.filter(|&hard| hard < needed) {
        return Err(Error::Descriptors { needed, hard });
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(Error::system("raise the limit on open descriptors"))?;
    Ok(Some(limit))
}
