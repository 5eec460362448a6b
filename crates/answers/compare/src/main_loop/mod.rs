//! The loop of a program: the longest run of equal sequences of calls on every rank.
//!
//! A program of production length differs from the short one that is compared in the number of its
//! iterations. So the time of an iteration is found apart from the start and from the rest, and
//! the time of any number of iterations follows ([`prediction`](crate::prediction)).
//!
//! - Each rank cuts its calls at an *anchor*, a short sequence of calls ([`cuts`]). Iterations may
//!   differ: a few further calls, or every so often other ones, make classes of iterations. Where
//!   inner loops turn different numbers of times, they are folded first ([`text`]).
//! - Ranks agree on one number of iterations ([`agreement`]).
//! - The loop that covers the most calls is taken. Calls and not their time decide, because
//!   calls are the same in each recording, and so is the loop.
//! - Where sizes shrink or grow with each iteration, calls of all sizes count as equal.
//!
//! Of the possible iterations the shortest is taken after which nearly the same calls return: a
//! step of a program that adds up every tenth step is one step. If no iteration is so regular, the
//! shortest counts which most steps are equal to. If the other ones need many calls more, the outer
//! loop has the iterations.
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
