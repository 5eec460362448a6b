//! A modelled HCA: verbs computed from physics, in virtual time.
//!
//! [`MachineModel`] holds everything that ranks share: hosts, HCAs, queue pairs, messages in
//! flight. [`ModelNode`] is one rank's place in it. The steps of a message and their costs are in
//! [`fabric::cost`]; the InfiniBand specification's rules for queue pairs, acknowledgements and
//! errors are in `requester` and `responder`.
//!
//! Invariants:
//! - a `MachineModel` lies in the memory of a world and has no pointers out of it, because ranks
//!   may be processes;
//! - a rank's own memory is accessed only while that rank's process has the baton: events that
//!   access it are named by [`sim::Model::owner`], and arrived data waits in the rank's inbox until
//!   the rank continues;
//! - a resource does one thing at a time, in the order of requests; the same seed gives the same
//!   run.
//!
//! Never here: protocols.

mod adapter;
mod completions;
pub mod compute_trace;
mod computing;
pub mod config;
mod cores;
mod device;
mod engine;
mod event;
pub mod explain;
#[cfg(feature = "toml")]
pub mod fault_file;
mod faults;
mod free_start;
pub mod library;
mod lookahead;
mod message;
mod node;
mod paths;
mod pinned;
mod poll_runs;
mod port_faults;
mod queue_pair;
mod rank;
mod read_responses;
mod receives;
mod record;
mod regions;
mod requester;
mod responder;
mod run_log;
mod storage;
mod timing;
pub mod trace;
mod traffic;
mod usage;
mod written_regions;

use fabric::System;
use sim::memory::{Vec, WorldMemory};
use sim::{Clock, Model, Time};

use crate::config::{Compute, MachineConfig};
use adapter::{Adapter, Host, InnerLinks, Slot};
use completions::CompletionQueue;
use event::{Event, Refusal};
use message::Messages;
use queue_pair::QueuePair;
use rank::Rank;
use receives::Receives;
use regions::Regions;
use timing::Timing;

pub use self::device::ModelDevice;
pub use cores::{THREADS_VARIABLE, check_cores, cores_of_rank};
pub use faults::Faults;
pub use node::{CALL, ModelNode, OOB_LATENCY, effort};
pub use port_faults::{MOST_PORT_FAULTS, PortFault, PortFaultKind, PortFaults};
pub use run_log::{Notes, steps};
pub use traffic::Traffic;
pub use usage::{ProcessorWork, Resource, Usage};

/// The clock of a world with a `MachineModel`.
type Clocked = Clock<Event>;

/// The number of no message, queue pair or other numbered thing.
const NONE: u32 = u32::MAX;

/// A modelled machine, with everything that happens on it.
pub struct MachineModel {
    memory: WorldMemory,
    system: System,
    faults: Faults,
    /// The faults make links slow.
    has_slow: bool,
    /// The greatest number of rails of a host.
    rails: u32,
    /// Timings of the rails in the system's list, and of messages within a host.
    timings: Vec<Timing>,
    intra_host: IntraHost,
    hosts: Vec<Host>,
    /// The links between switches of the networks of the rails in the system's list.
    inner_links: Vec<InnerLinks>,
    /// The slots of all adapters.
    slots: Vec<Slot>,
    /// Adapters by host and rail; then, in the same order, those for messages within a host.
    adapters: Vec<Adapter>,
    ranks: Vec<Rank>,
    regions: Regions,
    cqs: Vec<CompletionQueue>,
    receives: Receives,
    qps: Vec<QueuePair>,
    messages: Messages,
    record: record::Record,
    free_start: free_start::FreeStart,
    /// None: ranks run in lockstep.
    lookahead: Option<lookahead::Lookahead>,
    sums: usage::Sums,
    traffic: Traffic,
    storage: storage::Server,
    /// The number of queue pairs whose requests are probes.
    probes: u32,
}

/// The path between ranks of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntraHost {
    /// The host's memory: a processor copies, and its writes are soon visible.
    #[default]
    Memory,
    /// Their HCA, which loops packets back.
    Hca,
}

impl MachineModel {
    /// A machine with ranks on the hosts in `placement`.
    ///
    /// Panics if the system does not have such a host.
    pub fn new(
        memory: WorldMemory,
        system: &System,
        placement: &[u32],
        faults: Faults,
    ) -> MachineModel {
        let mut net = MachineModel {
            memory,
            system: *system,
            faults,
            has_slow: faults.ports.has_slow(),
            rails: system.rails.count(),
            timings: Vec::new_in(memory),
            intra_host: IntraHost::default(),
            hosts: Vec::new_in(memory),
            inner_links: Vec::new_in(memory),
            slots: Vec::new_in(memory),
            adapters: Vec::new_in(memory),
            ranks: Vec::new_in(memory),
            regions: Regions::new(memory),
            cqs: Vec::new_in(memory),
            receives: Receives::new(memory),
            qps: Vec::new_in(memory),
            messages: Messages::new(memory),
            record: record::Record::new(memory),
            free_start: free_start::FreeStart::default(),
            lookahead: None,
            sums: usage::Sums::new(memory),
            traffic: Traffic::default(),
            storage: storage::Server::default(),
            probes: 0,
        };
        net.hosts.extend((0..system.nodes).map(|_| Host::default()));
        net.build_adapters();
        for &host in placement {
            assert!(
                host < system.nodes,
                "host {host} of a system with {} hosts",
                system.nodes
            );
            net.ranks
                .push(Rank::new(memory, host, faults.slowness(host)));
        }
        net.share_cores();
        net.sums.make_room(net.adapters.len(), net.ranks.len());
        net
    }

    /// The machine that `config` describes.
    pub fn of(memory: WorldMemory, config: &MachineConfig) -> MachineModel {
        let net = MachineModel {
            intra_host: config.intra_host,
            ..MachineModel::new(memory, &config.system, &config.hosts, config.faults)
        };
        let net = match config.traced {
            true => net.recording(),
            false => net,
        };
        let mut net = match config.compute {
            Compute::Recorded => net.keeping_computing(),
            _ => net,
        };
        if config.keeps_notes {
            net = net.keeping_notes();
        }
        if config.free_start {
            return net.with_free_start();
        }
        net.look_ahead();
        net
    }

    /// The catalogue's description of the machine.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Schedules an event. Those of probes are idle.
    #[inline]
    fn schedule(&mut self, at: Time, event: Event, clock: &mut Clocked) {
        self.expect(at, &event);
        match self.probes > 0 && self.is_probe(&event) {
            true => clock.at_idle(at, event),
            false => clock.at(at, event),
        }
    }

    #[cold]
    fn is_probe(&self, event: &Event) -> bool {
        let q = match *event {
            Event::Doorbell { qp, .. }
            | Event::Fetch { qp, .. }
            | Event::Fetched { qp, .. }
            | Event::Begin { qp }
            | Event::Payload { qp, .. }
            | Event::Missing { qp, .. }
            | Event::Resume { qp, .. }
            | Event::Timeout { qp, .. } => qp,
            Event::Arrive { message, .. }
            | Event::Serve { message }
            | Event::Answered { message, .. }
            | Event::Acknowledged { message }
            | Event::Refused { message, .. } => self.messages[message].from,
            Event::Pump { .. } | Event::Paced { .. } | Event::Wake { .. } | Event::Port { .. } => {
                return false;
            }
        };
        self.qps[q as usize].probing
    }

    /// The timing of messages within a host.
    fn timing_within(&self) -> &Timing {
        &self.timings[self.timings.len() - 1]
    }
}

impl Model for MachineModel {
    type Event = Event;

    fn handle(&mut self, event: Event, clock: &mut Clock<Event>) {
        self.happens(&event);
        match event {
            // An event of an earlier life of its queue pair means nothing.
            Event::Doorbell { qp, life, .. }
            | Event::Fetch { qp, life, .. }
            | Event::Fetched { qp, life }
            | Event::Payload { qp, life }
            | Event::Resume { qp, life }
            | Event::Timeout { qp, life }
                if self.qps[qp as usize].life != life => {}
            Event::Doorbell { qp, inlined, .. } => self.doorbell(qp, inlined, clock),
            Event::Fetch { qp, inlined, .. } => self.fetch(qp, inlined, clock),
            Event::Fetched { qp, .. } => self.fetched(qp, clock),
            Event::Begin { qp } => {
                self.qps[qp as usize].begin_asked = false;
                self.begin(qp, clock);
            }
            Event::Payload { qp, .. } => self.payload_comes(qp, clock),
            Event::Pump { adapter } => self.pump(adapter, clock),
            Event::Paced { stream } => self.join(stream, clock),
            Event::Arrive {
                message,
                packet,
                life,
            } => self.arrive(message, packet, life, clock),
            Event::Serve { message } => self.serve(message, clock),
            Event::Answered { message, packet } => self.answered(message, packet, clock),
            Event::Acknowledged { message } => self.acknowledged(message, clock),
            Event::Refused { message, why } => self.refused(message, why, clock),
            Event::Missing {
                qp,
                sequence,
                packet,
            } => self.missing(qp, sequence, packet, clock),
            Event::Resume { qp, .. } => self.resume_sending(qp, clock),
            Event::Timeout { qp, .. } => self.timeout(qp, clock),
            Event::Wake { rank } => self.wake(rank, clock),
            Event::Port { rank, fault } => self.port_changes(rank, fault, clock),
        }
    }

    fn owner(&self, event: &Event) -> Option<u32> {
        match *event {
            Event::Doorbell { qp, .. } | Event::Fetched { qp, .. } | Event::Begin { qp } => {
                self.captures(qp)
            }
            Event::Serve { message } => self.server(message),
            _ => None,
        }
    }

    fn resume(&mut self, rank: u32, clock: &mut Clock<Event>) {
        self.receive_news(rank, clock.of(rank));
    }

    fn runs_ahead(&self) -> bool {
        self.lookahead.is_some()
    }

    #[inline]
    fn horizon(&self, rank: u32, event: Time, other: Time) -> Time {
        self.horizon_of(rank, event, other)
    }
}
