//! Ranks on other hosts.
//!
//! For each host the launcher starts one command, such as `ssh HOST fishplate agent`, and speaks with it over its
//! standard streams only. The agent ([`serve`]) starts the ranks of its host as a launcher on one host would, passes on
//! what they say and print and how they end, and does what it is told; it decides nothing. It ends with its ranks, and
//! they with it: there is no port, and nothing that stays behind.

pub(crate) mod contact;
pub(crate) mod frame;
pub(crate) mod serve;
