//! The measured cache distance of this machine's cores, as a setting for ranks.
//!
//! Between cores that share a cache, messages best pass through the cache; between others,
//! non-temporal stores are faster.

use conditions::Proximity;
use conditions::cache_line::between_two_cores;

/// True if two hardware threads share a cache, by the measured time of a cache line between them.
/// Without `pair`, two threads that this process may use are measured. `None`: it may use only one,
/// or other work disturbs the measurement.
pub(crate) fn cores_are_near(pair: Option<[usize; 2]>) -> Option<bool> {
    Some(Proximity::of(between_two_cores(pair)?) != Proximity::Far)
}
