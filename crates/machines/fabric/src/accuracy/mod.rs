//! The errors of predictions: intervals that contain nine in ten published figures of systems from
//! which no value of the catalogue was taken.
//!
//! An interval belongs to a kind of figure and to a [`Case`]: the facts that are known of the
//! machine, or of the two machines whose figures are compared. `fishplate study scores --errors`
//! writes the table from predictions of `crates/answers/study/data/unseen.csv`, and the suite
//! `scores` compares it with a fresh run.

mod case;
mod certainty;
mod table;

pub use case::{Case, have_equal_hosts, names_library};
pub use certainty::{Certainty, Side, certainty};
pub use table::{Accuracy, FigureKind, HEADER, lines};
