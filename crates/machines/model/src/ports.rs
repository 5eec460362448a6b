//! The ports of all hosts, with the resources behind each: a host's memory, an HCA's bus, link and
//! buffer. Each serves first come, first served.

use crossing::Crossings;
use fabric::{Rail, System};
use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::adapter::{Adapter, Host, Slot};
use super::fifo::Fifo;
use super::free_start::FreeStart;
use super::in_transit::{Crossing, Flight, Transits};
use super::message::{Messages, NONE};
use super::run::Run;
use super::span::{Activity, Doing, HcaPart, Track};
use super::timing::{Piece, Timing};
use super::traffic::Traffic;

/// The path between ranks of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntraHost {
    /// Through the host's memory: a processor copies, and its writes are soon visible.
    #[default]
    Memory,
    /// Through the HCA of the ranks, which loops packets back.
    Hca,
}

/// All ports, and the adapters that model the memory within hosts.
pub(crate) struct Ports {
    /// The number of rails in the list of the system.
    rails: u32,
    /// The timings of the different rails in the system's list; the last one is that of messages
    /// within a host.
    timings: Vec<Timing>,
    pub intra_host: IntraHost,
    pub hosts: Vec<Host>,
    /// The links between switches, for each rail in the system's list.
    pub crossings: Vec<Crossings<WorldMemory>>,
    /// The packets on these links.
    pub in_transit: Transits,
    /// The slots of all adapters, by their numbers.
    slots: Vec<Slot>,
    /// The adapters by host and rail; then, in the same order, those for messages within a host.
    pub adapters: Vec<Adapter>,
    pub free_start: FreeStart,
    pub traffic: Traffic,
    /// True if a fault makes a link slow at some time.
    has_slow: bool,
}

impl Ports {
    /// The ports of all hosts, and then, in the same order, the adapters of their memory.
    pub(crate) fn new(run: &Run) -> Ports {
        let memory = run.memory;
        let mut ports = Ports {
            rails: run.system.rails.count(),
            timings: Vec::new_in(memory),
            intra_host: IntraHost::default(),
            hosts: Vec::new_in(memory),
            crossings: Vec::new_in(memory),
            in_transit: Transits::new(memory),
            slots: Vec::new_in(memory),
            adapters: Vec::new_in(memory),
            free_start: FreeStart::default(),
            traffic: Traffic::default(),
            has_slow: run.faults.ports.has_slow(),
        };
        let hosts = (0..run.system.nodes).map(|_| Host::default());
        ports.hosts.extend(hosts);
        ports.build(memory, &run.system);
        ports
    }

    fn build(&mut self, memory: WorldMemory, system: &System) {
        // Equal rails share one timing.
        let list: std::vec::Vec<Rail> = (0..self.rails).map(|rail| system.rail(rail)).collect();
        let mut timings: std::vec::Vec<u32> = std::vec::Vec::new();
        for (number, rail) in list.iter().enumerate() {
            let alike = |other: &Rail| {
                Rail {
                    card: rail.card,
                    ..*other
                } == *rail
            };
            let known = list[..number].iter().position(alike);
            timings.push(known.map_or(self.timings.len() as u32, |known| timings[known]));
            if known.is_none() {
                self.timings
                    .push(Timing::new(memory, system, number as u32));
            }
        }
        for rail in &list {
            self.crossings.push(Crossings::new_in(memory, system, rail));
        }
        let within = self.timings.len() as u32;
        self.timings.push(Timing::within(memory, system));
        let mut places = std::vec::Vec::new();
        for host in 0..system.nodes {
            let first = self.slots.len() as u32;
            let (mut cards, mut cards_of) = (std::vec::Vec::new(), std::vec::Vec::new());
            let own = system.rails_of(host);
            for rail in 0..self.rails {
                // A host with fewer rails has adapters that are never used.
                let number = own.get(rail as usize).map_or(0, |number| *number as usize);
                let card = match rail < own.len() as u32 {
                    true => list[number].card,
                    false => NONE - rail,
                };
                let known = cards.iter().position(|known| *known == card);
                let slot = first + known.unwrap_or(cards.len()) as u32;
                if known.is_none() {
                    cards.push(card);
                    let half_duplex = list[number].bus().half_duplex;
                    self.slots.push(Slot {
                        half_duplex,
                        ..Slot::default()
                    });
                }
                let first = cards_of.iter().position(|known| *known == card);
                let domain = first.map_or(rail, |first| first as u32);
                cards_of.push(card);
                places.push(Adapter {
                    network: number as u32,
                    ..Adapter::new(host, rail, timings[number], slot, domain)
                });
            }
        }
        self.adapters.extend(places);
        for number in 0..self.adapters.len() {
            let own = &self.adapters[number];
            let slot = self.slots.len() as u32;
            let place = Adapter {
                within: true,
                ..Adapter::new(own.host, own.rail, within, slot, own.domain)
            };
            let half_duplex = system.bus().half_duplex;
            self.slots.push(Slot {
                half_duplex,
                ..Slot::default()
            });
            self.adapters.push(place);
        }
    }

    /// The number of an adapter's card among those of its host.
    pub(crate) fn card(&self, adapter: u32) -> usize {
        let own = &self.adapters[adapter as usize];
        // The first rail is on the first card.
        let first = &self.adapters[self.adapter(own.host, 0) as usize];
        (own.slot - first.slot) as usize
    }

    pub(crate) fn adapter(&self, host: u32, rail: u32) -> u32 {
        host * self.rails + rail
    }

    /// The bus from an adapter to memory.
    pub(crate) fn up(&mut self, adapter: u32) -> &mut Fifo {
        let slot = &mut self.slots[self.adapters[adapter as usize].slot as usize];
        if slot.half_duplex {
            &mut slot.down
        } else {
            &mut slot.up
        }
    }

    /// The bus from memory to an adapter.
    pub(crate) fn down(&mut self, adapter: u32) -> &mut Fifo {
        &mut self.slots[self.adapters[adapter as usize].slot as usize].down
    }

    /// Reserves the chip for a work request, from `now` on; returns the start of the reservation.
    pub(crate) fn take_chip(&mut self, run: &mut Run, adapter: u32, now: Time) -> Time {
        let time = self.timing(adapter).chip;
        run.sums.add_request(adapter, time);
        let slot = &mut self.slots[self.adapters[adapter as usize].slot as usize];
        slot.requests.take(now, time) - time
    }

    /// Reserves the responder's chip for the answer to a read or atomic; returns the start of the
    /// reservation.
    pub(crate) fn take_answer(
        &mut self,
        run: &mut Run,
        adapter: u32,
        now: Time,
        is_atomic: bool,
    ) -> Time {
        let timing = self.timing(adapter);
        let (answer, atomic) = (timing.answer, timing.atomic);
        // An atomic occupies the chip for the longer of its two parts.
        let busy = if is_atomic {
            answer.max(atomic)
        } else {
            answer
        };
        run.sums.add_answer(adapter, busy);
        let slot = &mut self.slots[self.adapters[adapter as usize].slot as usize];
        let start = slot.answers.take(now, answer) - answer;
        match is_atomic {
            true => slot.atomics.take(start, atomic) - atomic,
            false => start,
        }
    }

    /// Moves a packet's payload through the HCA's buffer and the host's memory; returns the time at
    /// which both are done.
    #[inline]
    fn pass_through(
        &mut self,
        run: &mut Run,
        adapter: u32,
        at: Time,
        piece: &Piece,
        doing: Doing,
    ) -> Time {
        let own = &self.adapters[adapter as usize];
        let slot = &mut self.slots[own.slot as usize];
        let buffer = slot.internal.take(at, piece.internal);
        let host = &mut self.hosts[own.host as usize];
        host.moved += piece.memory;
        let moved = host.memory.take(at, piece.memory);
        self.note(run, adapter, HcaPart::Buffer, buffer, piece.internal, doing);
        buffer.max(moved)
    }

    /// Writes a packet of a message from the HCA to memory; returns the time at which it has
    /// crossed the bus.
    #[inline]
    pub(crate) fn write(
        &mut self,
        run: &mut Run,
        adapter: u32,
        at: Time,
        len: u32,
        (message, packet): (u32, u32),
    ) -> Time {
        let doing = Activity::Write.packet(len.into(), message, packet);
        self.free_start.heed(&run.messages, message);
        let piece = self.timing(adapter).piece(len);
        let bus = self.up(adapter).take(at, piece.write);
        self.note(run, adapter, HcaPart::BusUp, bus, piece.write, doing);
        bus.max(self.pass_through(run, adapter, at, &piece, doing))
    }

    /// Sends a packet of `doing.bytes` bytes on the link to another adapter. `latency` is the
    /// latency of chips, cables and switches.
    #[inline]
    pub(crate) fn fly(
        &mut self,
        run: &mut Run,
        (from, to): (u32, u32),
        at: Time,
        latency: Time,
        doing: Doing,
    ) -> Flight {
        self.free_start.heed(&run.messages, doing.message);
        let time = self.timing(from).wire(doing.bytes.into());
        let starts = self.adapters[from as usize].link.free.max(at);
        let time = self.slowed(run, from, starts, time);
        let gone = self.adapters[from as usize].link.take(at, time);
        self.traffic.count(doing);
        self.note(run, from, HcaPart::LinkOut, gone, time, doing);
        if from == to {
            return Flight::Arrives(gone + latency);
        }
        let crossing = Crossing {
            ends: (from, to),
            begins: gone - time,
            gone,
            latency,
            doing,
        };
        match self.crosses((from, to)) {
            true => Flight::Crosses(crossing),
            false => Flight::Arrives(self.lands(run, crossing)),
        }
    }

    /// Moves a packet, which is at the link to its adapter, across that link; returns its arrival.
    #[inline]
    pub(crate) fn lands(&mut self, run: &mut Run, crossing: Crossing) -> Time {
        let Crossing {
            ends: (_, to),
            begins,
            gone,
            latency,
            doing,
        } = crossing;
        // Cut-through: the first bit arrives before the last has left; but the last link carries
        // one packet at a time, at its own rate.
        let last = self.timing(to).wire(doing.bytes.into());
        let last = self.slowed(run, to, begins + latency, last);
        let port = &mut self.adapters[to as usize].port;
        let there = port.take(begins + latency, last);
        self.note(run, to, HcaPart::LinkIn, there, last, doing);
        there.max(gone + latency)
    }

    /// The time from which on the outgoing link of an adapter is free.
    pub(crate) fn link_free(&self, adapter: u32) -> Time {
        self.adapters[adapter as usize].link.free
    }

    /// True if a packet meets links between switches on its path.
    #[inline]
    fn crosses(&self, ends: (u32, u32)) -> bool {
        let (network, hosts) = self.crossed(ends);
        !self.free_start.is_free && self.crossings[network].crosses(hosts)
    }

    /// The number of the network between two adapters, and the hosts that hold them.
    #[inline]
    pub(crate) fn crossed(&self, (from, to): (u32, u32)) -> (usize, (u32, u32)) {
        let number = self.adapters[from as usize].network as usize;
        (number, (self.host(from), self.host(to)))
    }

    /// Reads a packet of a message from memory to the HCA; returns the time at which the HCA has
    /// it.
    pub(crate) fn read(
        &mut self,
        run: &mut Run,
        adapter: u32,
        at: Time,
        len: u32,
        (message, packet): (u32, u32),
    ) -> Time {
        let doing = Activity::Read.packet(len.into(), message, packet);
        let piece = self.timing(adapter).piece(len);
        let asked = self.up(adapter).take(at, piece.ask);
        let ask = Activity::Ask.packet(0, message, packet);
        self.note(run, adapter, HcaPart::BusUp, asked, piece.ask, ask);
        let bus = self.down(adapter).take(at, piece.read);
        self.note(run, adapter, HcaPart::BusDown, bus, piece.read, doing);
        bus.max(self.pass_through(run, adapter, at, &piece, doing))
    }

    /// Reserves the bus from memory for the fetch of a work request; returns the end of the fetch.
    pub(crate) fn fetch(&mut self, run: &mut Run, adapter: u32, at: Time, inlined: u32) -> Time {
        let time = self.timing(adapter).fetch(inlined);
        let end = self.down(adapter).take(at, time);
        let doing = Activity::WorkRequest.alone(inlined as usize);
        self.note(run, adapter, HcaPart::BusDown, end, time, doing);
        end
    }

    /// Reserves the bus to memory for a completion queue entry; returns the time at which the entry
    /// is visible.
    pub(crate) fn complete(&mut self, run: &mut Run, adapter: u32, at: Time) -> Time {
        let timing = self.timing(adapter);
        let (time, latency) = (timing.completion, timing.write_latency);
        let end = self.up(adapter).take(at, time);
        let doing = Activity::Completion.alone(0);
        self.note(run, adapter, HcaPart::BusUp, end, time, doing);
        end + latency
    }

    /// Records that a part of an adapter has been busy for `time`, until `end`.
    #[inline]
    fn note(
        &self,
        run: &mut Run,
        adapter: u32,
        part: HcaPart,
        end: Time,
        time: Time,
        doing: Doing,
    ) {
        if time == 0 {
            return;
        }
        let own = &self.adapters[adapter as usize];
        let part = match part {
            HcaPart::BusUp if self.slots[own.slot as usize].half_duplex => HcaPart::BusDown,
            other => other,
        };
        run.sums.add_part(adapter, part, time);
        let track = Track::Rail(own.rail, part);
        run.note((own.host, track), (end - time, end), doing);
    }

    /// The time of a packet on the link of a port under the faults at `at`. `time` is that at the
    /// link's own rate.
    #[inline]
    fn slowed(&self, run: &Run, adapter: u32, at: Time, time: Time) -> Time {
        match self.has_slow {
            false => time,
            true => {
                let own = &self.adapters[adapter as usize];
                run.faults.ports.slowed((own.host, own.rail), at, time)
            }
        }
    }

    /// Records to which message the present work belongs; `NONE`: to none. The timings of adapters
    /// depend on it.
    #[inline]
    pub(crate) fn heed(&mut self, messages: &Messages, message: u32) {
        self.free_start.heed(messages, message);
    }

    /// The timing of the present work on an adapter: for a message without a cost, that within a
    /// host.
    #[inline]
    pub(crate) fn timing(&mut self, adapter: u32) -> &mut Timing {
        let number = match self.free_start.is_free {
            true => self.timings.len() - 1,
            false => self.adapters[adapter as usize].timing as usize,
        };
        &mut self.timings[number]
    }

    /// The timing of the first rail in the system's list, which has the costs of processors.
    #[inline]
    pub(crate) fn first(&self) -> &Timing {
        &self.timings[0]
    }

    /// The timings of the different rails in the system's list.
    pub(crate) fn timings(&self) -> &[Timing] {
        &self.timings[..self.timings.len() - 1]
    }

    /// The number of the host that holds an adapter.
    pub(crate) fn host(&self, adapter: u32) -> u32 {
        self.adapters[adapter as usize].host
    }

    /// True if an adapter models its host's memory, not an HCA.
    #[inline]
    pub(crate) fn is_within(&self, adapter: u32) -> bool {
        self.adapters[adapter as usize].within
    }

    /// The number of the port of an adapter: itself, or for the host's memory the port whose ranks
    /// use it.
    pub(crate) fn home(&self, adapter: u32) -> u32 {
        let own = &self.adapters[adapter as usize];
        self.adapter(own.host, own.rail)
    }

    /// The adapter by which the port of `from` reaches that of `to`: the host's memory if both are
    /// one port and the machine uses memory within hosts, else the port itself.
    pub(crate) fn towards(&self, from: u32, to: u32) -> u32 {
        let same = self.home(from) == self.home(to);
        match self.intra_host == IntraHost::Memory && same {
            true => self.adapters.len() as u32 / 2 + self.home(from),
            false => from,
        }
    }

    /// The number of the subnet of an adapter's port.
    pub(crate) fn subnet(&self, adapter: u32) -> u32 {
        let timing = self.adapters[self.home(adapter) as usize].timing;
        self.timings[timing as usize].costs.rail().subnet
    }

    /// The latency from one adapter to another, the latter's chip included.
    pub(crate) fn latency(&mut self, system: &System, from: u32, to: u32) -> Time {
        if self.is_within(from) {
            let within = &self.timings[self.timings.len() - 1];
            return within.costs.handover().picos();
        }
        let receive = self.timing(to).receive;
        if from == to {
            // The HCA loops the packet back.
            return receive;
        }
        let (here, there) = (self.host(from), self.host(to));
        // Two HCAs of one host are connected by the switch above them, if there is one. The cables
        // at both ends may differ.
        let flights = [from, to].map(|adapter| {
            let rail = self.timings[self.adapters[adapter as usize].timing as usize]
                .costs
                .rail();
            let least = u32::from(rail.switch.ports > 0);
            let hops = system.hops_on(rail, here, there).max(least);
            rail.flight(hops).picos()
        });
        (flights[0] + flights[1]) / 2 + receive
    }
}
