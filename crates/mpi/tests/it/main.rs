//! The promises of MPI's semantics, tested over ranks as threads and over modelled machines.

mod attributes;
mod choices;
mod collectives;
mod collectives_on_hosts;
mod collectives_random;
mod collectives_shared;
mod collectives_together;
mod common;
mod communicators;
mod counted;
mod counted_rails;
mod explained;
mod given_costs;
mod groups;
mod last_path;
mod layers;
mod learned_collectives;
mod messages;
mod profiled;
mod programs;
mod simulated;
mod simulated_rails;
mod tcp;
mod topology;
mod windows;
mod windows_random;
