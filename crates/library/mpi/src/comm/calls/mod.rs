//! Calls on communicators (MPI 5.0 §7), and the agreement by which ranks make objects together.

pub(crate) mod agreement;
mod create;
mod errhandler;
mod intercomm;
pub(crate) mod making;
mod split;

pub use intercomm::RemoteLeader;
pub use making::Making;
pub use split::split_type;
