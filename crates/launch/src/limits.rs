//! Room for many ranks: open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Error;

/// The most ranks that one launcher starts on one machine.
pub const MOST_RANKS: usize = 4096;

/// Beside those for ranks: the standard streams, signals, the segment, and what a library may hold.
const OTHER_DESCRIPTORS: u64 = 64;

pub(crate) fn check(ranks: usize) -> Result<(), Error> {
    match (1..=MOST_RANKS).contains(&ranks) {
        true => Ok(()),
        false => Err(Error::Ranks { ranks }),
    }
}

/// Raises the soft limit on descriptors where the job needs it. Returns the limit that ranks are to get, if it was
/// raised: programs that use select(2) rely on a low one.
pub(crate) fn make_room(ranks: usize, tag_output: bool) -> Result<Option<Rlimit>, Error> {
    // A socket and a watch on a program below a wrapper; two pipes. For another host, three pipes.
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
