//! The loop of a program: the longest run of equal sequences of calls on every rank.
//!
//! A production run differs from the short run that is compared in the number of its iterations.
//! The time of an iteration is therefore found apart from the start and from the rest, and the time
//! of any number of iterations follows ([`prediction`](crate::prediction)).
//!
//! - Each rank cuts its calls at an *anchor*, a short sequence of calls ([`cuts`]). Iterations may
//!   differ: a few further calls, or other calls every so often, make classes of iterations. If
//!   inner loops have different numbers of iterations, they are folded first ([`text`]).
//! - Ranks agree on one number of iterations ([`agreement`]).
//! - The loop that covers the most calls is chosen. Calls are the criterion, not their time,
//!   because calls are the same in each recording, and so is the loop.
//! - If sizes shrink or grow with each iteration, calls of all sizes count as equal.
//!
//! Of the possible iterations the shortest is chosen after which nearly the same calls return: a
//! step of a program that adds up every tenth step is one step. If no iteration is so regular, the
//! shortest is chosen that most steps are equal to. If the other steps need many calls more, the
//! iterations of the outer loop are chosen.
//!
//! For n calls of all ranks the time is proportional to n log n, and memory to n.

mod agreement;
mod anchors;
mod by_hand;
mod calls;
mod cuts;
mod found;
mod regularity;
mod search;
mod text;

#[cfg(test)]
mod shapes;

pub use by_hand::{Unusable, after, controlled};
pub use calls::{Call, Calls, Control, Symbol};
pub use found::{By, Class, Loop, NoLoop};
pub use regularity::LEAST;
pub use search::{find, find_within};
