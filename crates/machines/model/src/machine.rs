//! A modelled machine: the parts that it consists of, and the events that each part handles.

use fabric::System;
use sim::memory::WorldMemory;
use sim::{Clock, Model, Time};

use super::config::{Compute, MachineConfig};
use super::connections;
use super::event::{Clocked, Event};
use super::faults::Faults;
use super::flights;
use super::lookahead::{Lookahead, may_run_ahead};
use super::ports::Ports;
use super::queue_pairs::QueuePairs;
use super::ranks::Ranks;
use super::record::Mode;
use super::requesters::Requesters;
use super::responders::Responders;
use super::run::Run;
use super::senders::Senders;
use super::span::{Doing, Span};
use super::storage::Server;
use super::sums::ProcessorWork;
use super::traffic::Traffic;
use super::usage::{Usage, UsageLog};
use device::{Ending, Qp, QpWanted, Result, State};

/// A modelled machine, with the state of its parts.
pub struct MachineModel {
    pub(crate) qps: QueuePairs,
    pub(crate) senders: Senders,
    requesters: Requesters,
    responders: Responders,
    pub(crate) storage: Server,
    uses: UsageLog,
}

impl MachineModel {
    /// A machine with one rank for each entry of `placement`, which is the number of the rank's
    /// host.
    ///
    /// Panics if the system does not have such a host.
    pub fn new(
        memory: WorldMemory,
        system: &System,
        placement: &[u32],
        faults: Faults,
    ) -> MachineModel {
        let mut run = Run::new(memory, system, faults);
        let ports = Ports::new(&run);
        let ranks = Ranks::new(&run, placement);
        let adapters = ports.adapters.len();
        run.sums.make_room(adapters, ranks.len());
        MachineModel {
            senders: Senders::new(&run, adapters),
            requesters: Requesters::new(memory),
            responders: Responders::new(memory),
            storage: Server::default(),
            uses: UsageLog::new(memory),
            qps: QueuePairs::new(run, ports, ranks),
        }
    }

    /// The modelled machine that `config` describes.
    pub fn of(memory: WorldMemory, config: &MachineConfig) -> MachineModel {
        let mut net = MachineModel::new(memory, &config.system, &config.hosts, config.faults);
        net.qps.ports.intra_host = config.intra_host;
        if config.wide_links {
            let networks = net.qps.ports.crossings.iter_mut();
            networks.for_each(|network| network.widen());
        }
        if config.traced {
            net = net.recording();
        }
        net.qps.run.record.keeps_work = config.compute == Compute::Recorded;
        if config.keeps_notes {
            net = net.keeping_notes();
        }
        net.qps.run.record.notes_messages = config.notes_messages;
        if config.free_start {
            return net.with_free_start();
        }
        net.enable_lookahead();
        net
    }

    /// Lets ranks run ahead, unless a fault, a record or a shared host keeps them in lockstep.
    fn enable_lookahead(&mut self) {
        let QueuePairs {
            run, ports, ranks, ..
        } = &mut self.qps;
        if may_run_ahead(&run.faults, ranks.hosts()) && !run.record.is_on() {
            let lookahead = Lookahead::new(run.memory, ports.timings(), ranks.len());
            run.lookahead = Some(lookahead);
        }
    }

    /// Makes the start of programs free: making connections and other objects takes no time.
    pub fn with_free_start(mut self) -> MachineModel {
        self.qps.ports.free_start.is_wanted = true;
        self.qps.run.lookahead = None;
        self
    }

    /// Makes the machine record the activity of its resources.
    pub fn recording(self) -> MachineModel {
        self.with_record(Mode::Spans)
    }

    /// Makes the machine compute a digest of the activity of its resources.
    pub fn digesting(self) -> MachineModel {
        self.with_record(Mode::Digest)
    }

    fn with_record(mut self, mode: Mode) -> MachineModel {
        self.qps.run.record.mode = mode;
        self.qps.run.lookahead = None;
        self
    }

    /// Makes the machine record the notes of its ranks, such as accesses to windows.
    pub fn keeping_notes(mut self) -> MachineModel {
        self.qps.run.record.keeps_notes = true;
        self
    }

    /// The catalogue's description of the machine.
    pub fn system(&self) -> &System {
        &self.qps.run.system
    }

    /// Removes and returns the notes of ranks since the last call of this function, each with its
    /// time.
    pub fn take_notes(&mut self) -> Vec<(Time, device::Note)> {
        self.qps.run.record.take_notes()
    }

    /// Takes the spans that were recorded since the last such call.
    pub fn take_record(&mut self) -> Vec<Span> {
        self.qps.run.record.take_spans()
    }

    /// The digest of all activity of resources until now.
    pub fn digest(&self) -> u64 {
        self.qps.run.record.digest()
    }

    /// The traffic on all links until now.
    pub fn traffic(&self) -> Traffic {
        self.qps.ports.traffic
    }

    /// The use of each resource that has been busy, by host and resource.
    pub fn usage(&self) -> Vec<Usage> {
        let QueuePairs {
            run, ports, ranks, ..
        } = &self.qps;
        Usage::of_all(&run.sums, ports, ranks, &self.storage)
    }

    /// The times for which the processor of a rank has been busy, by kind of work.
    pub fn work_of(&self, rank: u32) -> [(ProcessorWork, Time); ProcessorWork::ALL.len()] {
        let times = &self.qps.run.sums.processors[rank as usize];
        ProcessorWork::ALL.map(|work| (work, times[work as usize]))
    }

    /// The number of the protection domain of a rank's rail.
    pub(crate) fn domain(&self, rank: u32, rail: u32) -> u32 {
        let (ranks, ports) = (&self.qps.ranks, &self.qps.ports);
        let adapter = ports.adapter(ranks[rank].host, rail);
        ports.adapters[adapter as usize].domain
    }

    /// Records that a rank enters a call of its program, and whether the call makes or frees an
    /// object; or that it leaves the call.
    pub(crate) fn constructs(&mut self, rank: u32, constructs: bool) {
        let is_wanted = self.qps.ports.free_start.is_wanted;
        self.qps.ranks[rank].is_free = is_wanted && constructs;
    }

    /// Records that a rank's processor has been busy, or has waited, for `time` from `start` on.
    #[inline]
    pub(crate) fn note(&mut self, rank: u32, start: Time, time: Time, doing: Doing) {
        let (ranks, run) = (&self.qps.ranks, &mut self.qps.run);
        ranks.note(run, rank, start, time, doing);
    }

    /// Creates a queue pair for the rank and rail `device`.
    pub(crate) fn create_qp(&mut self, device: (u32, u32), wanted: &QpWanted) -> Result<Qp> {
        let qp = connections::create(&mut self.qps, device, wanted)?;
        self.senders.add();
        self.requesters.add();
        self.responders.add();
        Ok(qp)
    }

    /// Takes a queue pair to the state ERROR or RESET.
    pub(crate) fn modify(&mut self, q: u32, to: Ending, clock: &mut Clocked) {
        match to {
            Ending::Error if self.qps[q].state == State::Reset => {
                self.qps[q].state = State::Error;
                self.qps.flush_receives(q, clock.now(), clock);
            }
            Ending::Error => self.qps.break_qp(q, clock),
            Ending::Reset => self.reset_qp(q),
        }
    }

    /// Takes a queue pair to RESET: forgets its posted requests. Packets that have left still
    /// arrive.
    fn reset_qp(&mut self, q: u32) {
        self.responders.reset(q);
        self.requesters.reset(q);
        self.senders[q].reset();
        self.qps.reset(q);
    }

    pub(crate) fn destroy_qp(&mut self, q: u32) {
        self.reset_qp(q);
        self.qps.destroy(q);
    }

    /// Ends a rank's part in the machine: its memory is not accessed from now on. When the last
    /// rank leaves, writes the uses of resources to their log.
    pub(crate) fn leave(&mut self, rank: u32) {
        let mut qps = self.qps.ranks.leave(&mut self.qps.run.messages, rank);
        while let Some(q) = qps.pop() {
            if self.qps[q].alive {
                self.destroy_qp(q);
            }
        }
        if self.uses.count_leaving(self.qps.ranks.len()) {
            let uses = self.usage();
            self.uses.write(&uses);
        }
    }
}

impl Model for MachineModel {
    type Event = Event;

    fn handle(&mut self, event: Event, clock: &mut Clock<Event>) {
        let MachineModel {
            qps,
            senders,
            requesters,
            responders,
            ..
        } = self;
        qps.run.happens(&event);
        if event.life().is_some_and(|(q, life)| qps[q].life != life) {
            // An event of an earlier epoch of its queue pair has no effect.
            return;
        }
        match event {
            Event::Doorbell { qp, inlined, .. } => senders.doorbell(qps, qp, inlined, clock),
            Event::Fetch { qp, inlined, .. } => Senders::fetch(qps, qp, inlined, clock),
            Event::Fetched { qp, .. } => senders.fetched(qps, qp, clock),
            Event::Begin { qp } => {
                senders[qp].begin();
                senders.begin(qps, qp, clock);
            }
            Event::Payload { qp, .. } => senders.payload_comes(qps, qp, clock),
            Event::Pump { adapter } => senders.pump(qps, adapter, clock),
            Event::Paced { stream } => senders.join(qps, stream, clock),
            Event::Arrive {
                message,
                packet,
                life,
            } => responders.arrive(senders, qps, (message, packet, life), clock),
            Event::Hop { packet, .. } => flights::hop(qps, packet, clock),
            Event::Serve { message } => responders.serve(senders, qps, message, clock),
            Event::Answered { message, packet } => {
                requesters.answered(senders, qps, (message, packet), clock)
            }
            Event::Acknowledged { message } => {
                requesters.acknowledged(senders, qps, message, clock)
            }
            Event::Refused { message, why } => {
                requesters.refused(senders, qps, (message, why), clock)
            }
            Event::Missing {
                qp,
                sequence,
                packet,
            } => requesters.missing(senders, qps, qp, (sequence, packet), clock),
            Event::Resume { qp, .. } => Requesters::resume(senders, qps, qp, clock),
            Event::Timeout { qp, .. } => {
                let from = responders.resumption(qps, qp);
                requesters.timeout(senders, qps, qp, from, clock)
            }
            Event::Wake { rank } => {
                let runs_ahead = qps.run.lookahead.is_some();
                qps.ranks.wake(rank, runs_ahead, clock)
            }
            Event::Port { rank, fault } => qps.ranks.port_changes(&qps.run, rank, fault, clock),
        }
    }

    fn owner(&self, event: &Event) -> Option<u32> {
        match *event {
            Event::Doorbell { qp, .. } | Event::Fetched { qp, .. } | Event::Begin { qp } => {
                Senders::captures(&self.qps, qp)
            }
            Event::Serve { message } => Responders::server(&self.qps, message),
            _ => None,
        }
    }

    fn resume(&mut self, rank: u32, clock: &mut Clock<Event>) {
        let now = clock.of(rank);
        self.qps
            .ranks
            .receive(&mut self.qps.run.messages, rank, now);
    }

    fn runs_ahead(&self) -> bool {
        self.qps.run.lookahead.is_some()
    }

    #[inline]
    fn horizon(&self, rank: u32, event: Time, other: Time) -> Time {
        match &self.qps.run.lookahead {
            Some(lookahead) => lookahead.horizon(rank, event, other),
            None => event.min(other),
        }
    }
}
