//! The cache distance of this machine's cores.
//!
//! Messages between cores that share a cache best go through it; between others, non-temporal
//! stores are better.

use conditions::Proximity;
use conditions::cache_line::between_two_cores;

/// Whether these two cores, or two that this process may use, share a cache. None: there is only
/// one, or they are too busy.
pub(crate) fn cores_are_near(pair: Option<[usize; 2]>) -> Option<bool> {
    Some(Proximity::of(between_two_cores(pair)?) != Proximity::Far)
}
