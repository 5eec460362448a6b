//! Work of a rank on its own memory, and its time on a modelled machine.
//!
//! A [`LocalWork`] is a kind of such work: a copy, an operation of a reduction, the packing of a
//! derived type. [`Rates`] are the times of kinds, measured on some computer. A [`Meter`] belongs
//! to a rank of a modelled machine: code that works on the rank's memory adds the work to it, and
//! the machine charges the sum before anything else that the rank does. On a real machine the work
//! itself takes the time, and there is no meter.
//!
//! Invariant: the time of some work depends on its kind, on its length and on the length of the
//! vector that it is a part of, never on a clock.

mod kind;
mod meter;
mod rates;
mod timing;

pub use kind::{LocalWork, class};
pub use meter::{Meter, Row};
pub use rates::Rates;
pub use timing::Clock;
