//! A modelled HCA: the verbs computed from physics, in virtual time.
//!
//! [`Net`] is everything that ranks share: hosts, HCAs, queue pairs, what is on its way. [`ModelNode`] is one rank's place in
//! it. The way of a message and what each step costs stand in [`fabric::cost`]; what the InfiniBand specification says of
//! queue pairs, acknowledgements and errors happens in `requester` and `responder`.
//!
//! What must always hold:
//! - a `Net` lies in the memory of a world and nothing in it points out, because ranks may be processes;
//! - a rank's own memory is touched only while that rank's process has the baton: events that do are named by
//!   [`sim::Model::owner`], and what arrives for a rank lies in its inbox until it goes on;
//! - a resource does one thing at a time, in the order in which it was asked; the same seed gives the same run.

mod adapter;
mod completions;
pub mod compute_trace;
pub mod config;
mod device;
mod engine;
pub mod explain;
mod faults;
mod message;
mod node;
mod pinned;
mod queue_pair;
mod rank;
mod read_responses;
mod receives;
mod record;
mod regions;
mod requester;
mod responder;
mod run_log;
mod timing;
pub mod trace;
mod traffic;

use fabric::System;
use sim::memory::{Shared, Vec};
use sim::{Clock, Model};

use crate::config::{Compute, Scene};
use adapter::{Adapter, Host};
use completions::CompletionQueue;
use message::Messages;
use queue_pair::QueuePair;
use rank::Rank;
use receives::Receives;
use regions::Regions;
use timing::Timing;

pub use self::device::ModelDevice;
pub use faults::{Faults, Outage};
pub use node::{CALL, ModelNode, TELL, effort};
pub use traffic::Traffic;

/// The clock of a world with a `Net`.
type Clocked = Clock<Event>;

/// No message, queue pair or other numbered thing.
const NONE: u32 = u32::MAX;

/// A modelled machine, and all that happens on it.
pub struct Net {
    memory: Shared,
    system: System,
    faults: Faults,
    rails: u32,
    mtu: u32,
    /// Both ways of the bus are one.
    half_duplex: bool,
    /// Of the first rail, of the others, and of what stays within a host.
    timings: Vec<Timing>,
    intra_host: IntraHost,
    hosts: Vec<Host>,
    /// By host and rail; behind them the same once more, for what stays within a host.
    adapters: Vec<Adapter>,
    ranks: Vec<Rank>,
    regions: Regions,
    cqs: Vec<CompletionQueue>,
    receives: Receives,
    qps: Vec<QueuePair>,
    messages: Messages,
    record: record::Record,
    traffic: Traffic,
}

/// How ranks of one host reach each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntraHost {
    /// By their host's memory: a processor copies, and what it has written is soon seen.
    #[default]
    Memory,
    /// By their HCA, which turns the packets round.
    Hca,
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The processor's store has reached the HCA: a queue pair has a request more.
    Doorbell { qp: u32, inlined: u32 },
    /// A work request that the processor did not push begins to arrive from memory.
    Fetch { qp: u32, inlined: u32 },
    /// A work request is in the HCA.
    Fetched { qp: u32 },
    /// The engine can take a queue pair's next request.
    Begin { qp: u32 },
    /// A request's payload begins to arrive from memory.
    Payload { qp: u32 },
    /// An adapter has read a packet from memory, or may go on reading.
    Pump { adapter: u32 },
    /// A packet of a request has reached the peer.
    Arrive { message: u32, packet: u32 },
    /// A peer's memory is read for it, or changed by an atomic.
    Serve { message: u32 },
    /// A packet that answers a request has come back.
    Answered { message: u32, packet: u32 },
    /// A message has been acknowledged, and so all before it.
    Acknowledged { message: u32 },
    /// The peer refuses a message: why.
    Refused { message: u32, why: Refusal },
    /// The peer misses a packet.
    Missing { qp: u32, sequence: u32, packet: u32 },
    /// A queue pair that was told to wait goes on.
    Resume { qp: u32 },
    /// Something was lost: has an acknowledgement come all the same?
    Timeout { qp: u32, life: u32 },
    /// Something becomes visible to a rank that waits.
    Wake { rank: u32 },
}

/// Why a responder refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotReady,
    InvalidRequest,
    Access,
    Operation,
}

impl Net {
    /// A machine with ranks on the hosts that `placement` names.
    ///
    /// Panics where a host is not of the system.
    pub fn new(memory: Shared, system: &System, placement: &[u32], faults: Faults) -> Net {
        let mut net = Net {
            memory,
            system: *system,
            faults,
            rails: system.rails,
            mtu: system.hca.mtu.0 as u32,
            half_duplex: system.bus().half_duplex,
            timings: Vec::new_in(memory),
            intra_host: IntraHost::default(),
            hosts: Vec::new_in(memory),
            adapters: Vec::new_in(memory),
            ranks: Vec::new_in(memory),
            regions: Regions::new(memory),
            cqs: Vec::new_in(memory),
            receives: Receives::new(memory),
            qps: Vec::new_in(memory),
            messages: Messages::new(memory),
            record: record::Record::new(memory),
            traffic: Traffic::default(),
        };
        net.timings
            .extend([0, 1].map(|rail| Timing::new(memory, system, rail)));
        net.timings.push(Timing::within(memory, system));
        net.hosts.extend((0..system.nodes).map(|_| Host::default()));
        for within in [false, true] {
            let places =
                (0..system.nodes).flat_map(|host| (0..system.rails).map(move |rail| (host, rail)));
            net.adapters
                .extend(places.map(|(host, rail)| Adapter::new(host, rail, within)));
        }
        for &host in placement {
            assert!(
                host < system.nodes,
                "host {host} of a system with {} hosts",
                system.nodes
            );
            net.ranks
                .push(Rank::new(memory, host, faults.slowness(host)));
        }
        net
    }

    /// The machine of a scene.
    pub fn of(memory: Shared, scene: &Scene) -> Net {
        let net = Net {
            intra_host: scene.intra_host,
            ..Net::new(memory, &scene.system, &scene.hosts, scene.faults)
        };
        let net = match scene.traced {
            true => net.recording(),
            false => net,
        };
        match scene.compute {
            Compute::Recorded => net.keeping_computing(),
            _ => net,
        }
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    fn timing(&mut self, adapter: u32) -> &mut Timing {
        let adapter = &self.adapters[adapter as usize];
        match adapter.within {
            true => &mut self.timings[2],
            false => &mut self.timings[usize::from(adapter.rail > 0)],
        }
    }
}

impl Model for Net {
    type Event = Event;

    fn handle(&mut self, event: Event, clock: &mut Clock<Event>) {
        match event {
            Event::Doorbell { qp, inlined } => self.doorbell(qp, inlined, clock),
            Event::Fetch { qp, inlined } => self.fetch(qp, inlined, clock),
            Event::Fetched { qp } => self.fetched(qp, clock),
            Event::Begin { qp } => {
                self.qps[qp as usize].begin_asked = false;
                self.begin(qp, clock);
            }
            Event::Payload { qp } => self.payload_comes(qp, clock),
            Event::Pump { adapter } => self.pump(adapter, clock),
            Event::Arrive { message, packet } => self.arrive(message, packet, clock),
            Event::Serve { message } => self.serve(message, clock),
            Event::Answered { message, packet } => self.answered(message, packet, clock),
            Event::Acknowledged { message } => self.acknowledged(message, clock),
            Event::Refused { message, why } => self.refused(message, why, clock),
            Event::Missing {
                qp,
                sequence,
                packet,
            } => self.missing(qp, sequence, packet, clock),
            Event::Resume { qp } => self.resume_sending(qp, clock),
            Event::Timeout { qp, life } => self.timeout(qp, life, clock),
            Event::Wake { rank } => clock.wake(rank),
        }
    }

    fn owner(&self, event: &Event) -> Option<u32> {
        match *event {
            Event::Doorbell { qp, .. } | Event::Fetched { qp } | Event::Begin { qp } => {
                self.captures(qp)
            }
            Event::Serve { message } => self.server(message),
            _ => None,
        }
    }

    fn resume(&mut self, rank: u32, clock: &mut Clock<Event>) {
        self.receive_news(rank, clock.of(rank));
    }
}
