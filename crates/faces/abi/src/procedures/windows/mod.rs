//! Chapter 12: one-sided communication.

mod access;
mod create;
mod objects;
mod synchronise;

pub use access::*;
pub use create::*;
pub use objects::*;
pub use synchronise::*;
