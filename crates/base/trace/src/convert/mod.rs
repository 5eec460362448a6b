//! Traces of other tools as traces, and traces in the formats of others.
//!
//! What a format cannot say is an error, with the line or the call, and the remedy.

pub mod goal;
mod script;
pub mod time_independent;
