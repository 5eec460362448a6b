//! A modelled HCA: verbs computed from physics, in virtual time.
//!
//! [`MachineModel`] contains everything that ranks share, and passes events to the parts that it
//! consists of; [`ModelNode`] is the node of one rank in it. The steps of a message and their costs
//! are in [`fabric::cost`]; the InfiniBand specification's rules for queue pairs, acknowledgements
//! and errors are in `requesters` and `responders`.
//!
//! Parts, bottom up; each knows only those before it:
//! - `run`: messages in flight, the schedule of events, the record;
//! - `ports`: slots, chips, links, and a host's memory, each of which serves one request at a time;
//! - `ranks`: the state that processes see: registered memory, arrived data, completions;
//! - `queue_pairs`: posted work and its completion, packets in flight; `connections`;
//! - `senders`: from the doorbell to packets on links;
//! - `requesters` and `responders`: the effect of an arrived answer or request.
//!
//! State with rules and without events is in files of its own, with its tests: `send_queue`,
//! `answer_queue`, `engine`, `rounds`, `reception`, `completions`, `inbox`, `lookahead`, `paths`.
//!
//! Invariants:
//! - a `MachineModel` lies in the memory of a world and has no pointers out of it, because ranks
//!   may be processes;
//! - a rank's own memory is accessed only while it is that rank's turn: events that access it are
//!   named by [`sim::Model::owner`], and arrived data waits in the rank's inbox until the rank
//!   continues;
//! - a resource serves one request at a time, in the order of requests; one seed always gives the
//!   same run.
//!
//! Never here: protocols of an MPI library.

mod accounting;
mod adapter;
mod answer_queue;
mod completions;
mod computing;
pub mod config;
mod connections;
mod cores;
mod device;
mod efforts;
mod engine;
mod event;
pub mod explain;
#[cfg(feature = "toml")]
pub mod fault_file;
mod faults;
mod fifo;
mod flights;
mod free_start;
mod in_transit;
mod inbox;
pub mod library;
mod library_messages;
mod lookahead;
mod machine;
mod message;
mod node;
mod paths;
mod pinned;
mod placed;
pub mod placement;
mod port_faults;
mod ports;
mod processor;
mod queue_pair;
mod queue_pairs;
mod rank;
mod ranks;
mod receives;
mod reception;
mod record;
mod regions;
mod requesters;
mod responders;
mod rounds;
mod run;
mod run_log;
mod send_queue;
mod senders;
mod span;
mod storage;
mod sums;
mod timing;
pub mod trace;
mod traffic;
mod usage;
mod written_regions;

pub use self::device::ModelDevice;
pub use cores::{THREADS_VARIABLE, check_cores, cores_of_rank};
pub use efforts::{CALL, OOB_LATENCY, effort};
pub use faults::Faults;
pub use machine::MachineModel;
pub use node::ModelNode;
pub use port_faults::{MOST_PORT_FAULTS, PortFault, PortFaultKind, PortFaults};
pub use ports::IntraHost;
pub use run_log::{Notes, local_work, steps};
pub use sums::ProcessorWork;
pub use traffic::Traffic;
pub use usage::{Resource, Usage};
