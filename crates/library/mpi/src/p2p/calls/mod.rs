//! Calls that send, receive and probe (MPI 5.0 §3).

pub(crate) mod awaited;
mod buffered;
mod fast_receive;
mod persistent;
mod probe;
mod receive;
mod send;

pub use probe::Claimed;
