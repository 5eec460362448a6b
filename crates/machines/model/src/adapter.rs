//! Resources that are busy: a host's memory, an HCA's bus, link and buffer, each first come, first
//! served.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::queue_pair::Stream;
use super::record::{Activity, Doing, HcaPart};
use super::timing::{Piece, Timing};
use super::{Clocked, Event, MachineModel, NONE};
use fabric::{GbPerSec, Network, Rail, System};

/// A resource that does one thing at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Fifo {
    pub free: Time,
}

impl Fifo {
    /// Occupies the resource for `time`, from `at` or from when it is free; returns the end.
    #[inline]
    pub(crate) fn take(&mut self, at: Time, time: Time) -> Time {
        self.free = self.free.max(at) + time;
        self.free
    }
}

#[derive(Default)]
pub(super) struct Host {
    pub memory: Fifo,
    /// The total time for which its memory has been busy.
    pub moved: Time,
}

/// A slot and the chip of its card: the resources that all ports of a card share.
#[derive(Default)]
pub(super) struct Slot {
    /// The bus from memory, and the bus to it. A half-duplex bus is `down` in both directions.
    down: Fifo,
    up: Fifo,
    internal: Fifo,
    /// The part of the chip that takes work requests, that answers reads and atomics, and that
    /// executes atomics.
    requests: Fifo,
    answers: Fifo,
    atomics: Fifo,
    pub half_duplex: bool,
}

/// The links of a rail's network, beyond those of its hosts.
pub(super) struct InnerLinks {
    /// The network; `None` if it has no such links, or if they are unknown.
    network: Option<Network>,
    /// The latency of a switch with a cable, and the rate of a link between switches.
    hop: Time,
    rate: GbPerSec,
    /// The directed links, by number.
    links: Vec<InnerLink>,
}

/// A directed link between switches.
#[derive(Clone, Default)]
pub(super) struct InnerLink {
    link: Fifo,
    /// The total time for which it has been busy.
    pub busy: Time,
    /// The sender of the last packet.
    pub host: u32,
}

impl InnerLinks {
    pub(super) fn new(memory: WorldMemory, system: &System, rail: &Rail) -> InnerLinks {
        let network = system.network(rail);
        let network = network.filter(|network| network.has_inner_links());
        let count = network.map_or(0, |network| network.links() as usize);
        let mut links = Vec::new_in(memory);
        links.resize(count, InnerLink::default());
        InnerLinks {
            network,
            hop: rail.flight(1).saturating_sub(rail.flight(0)).picos(),
            rate: rail.switch.link.data() * rail.switch.width,
            links,
        }
    }

    /// The links, in the order of their numbers.
    pub(super) fn links(&self) -> &[InnerLink] {
        &self.links
    }
}

/// A port of an HCA, with the engines that serve it.
pub(super) struct Adapter {
    pub host: u32,
    pub rail: u32,
    /// It models the host's memory, not an HCA.
    pub within: bool,
    /// The numbers of its timing and of its slot.
    pub timing: u32,
    pub slot: u32,
    /// The number of its network: that of its rail in the system's list.
    pub network: u32,
    /// The first rail of its card. Regions belong to it: the ports of a card share a protection
    /// domain.
    pub domain: u32,
    /// The link out.
    link: Fifo,
    /// The link in: the last hop of every arriving packet.
    port: Fifo,
    /// The round of streams whose next packet can be read from memory; each reads one packet in
    /// turn.
    first: u32,
    last: u32,
    /// The stream whose packet is being read.
    reading: u32,
    /// Reading waits for the link.
    paused: bool,
}

impl Adapter {
    /// The port of a rail, with the timing and the slot of these numbers, in the first network.
    pub(crate) fn new(host: u32, rail: u32, timing: u32, slot: u32, domain: u32) -> Adapter {
        Adapter {
            host,
            rail,
            within: false,
            timing,
            slot,
            network: 0,
            domain,
            link: Fifo::default(),
            port: Fifo::default(),
            first: NONE,
            last: NONE,
            reading: NONE,
            paused: false,
        }
    }
}

impl MachineModel {
    /// Builds the ports of all hosts, and then, in the same order, the places of their memory.
    pub(super) fn build_adapters(&mut self) {
        let (system, memory) = (self.system, self.memory);
        // Equal rails have one timing.
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
                    .push(Timing::new(memory, &system, number as u32));
            }
        }
        for rail in &list {
            self.inner_links
                .push(InnerLinks::new(memory, &system, rail));
        }
        let within = self.timings.len() as u32;
        self.timings.push(Timing::within(memory, &system));
        let mut places = std::vec::Vec::new();
        for host in 0..system.nodes {
            let first = self.slots.len() as u32;
            let (mut cards, mut cards_of) = (std::vec::Vec::new(), std::vec::Vec::new());
            let own = system.rails_of(host);
            for rail in 0..self.rails {
                // A host with fewer rails has places that nobody uses.
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

    /// The protection domain of a rank's rail.
    pub(super) fn domain(&self, rank: u32, rail: u32) -> u32 {
        let adapter = self.adapter(self.ranks[rank as usize].host, rail);
        self.adapters[adapter as usize].domain
    }

    /// The number of an adapter's card among those of its host.
    pub(super) fn card(&self, adapter: u32) -> usize {
        let own = &self.adapters[adapter as usize];
        // The first rail has the first card.
        let first = &self.adapters[self.adapter(own.host, 0) as usize];
        (own.slot - first.slot) as usize
    }

    pub(super) fn adapter(&self, host: u32, rail: u32) -> u32 {
        host * self.rails + rail
    }

    /// The adapter that models a host's memory, for the users of a rail.
    pub(super) fn within(&self, host: u32, rail: u32) -> u32 {
        self.adapters.len() as u32 / 2 + self.adapter(host, rail)
    }

    /// The bus to memory.
    pub(super) fn up(&mut self, adapter: u32) -> &mut Fifo {
        let slot = &mut self.slots[self.adapters[adapter as usize].slot as usize];
        if slot.half_duplex {
            &mut slot.down
        } else {
            &mut slot.up
        }
    }

    /// The bus from memory.
    pub(super) fn down(&mut self, adapter: u32) -> &mut Fifo {
        &mut self.slots[self.adapters[adapter as usize].slot as usize].down
    }

    /// Reserves the chip for a work request, from now on; returns its start.
    pub(super) fn take_chip(&mut self, adapter: u32, now: Time) -> Time {
        let time = self.timing(adapter).chip;
        self.sums.add_request(adapter, time);
        let slot = &mut self.slots[self.adapters[adapter as usize].slot as usize];
        slot.requests.take(now, time) - time
    }

    /// Reserves the responder's chip for the answer to a read or atomic; returns its start.
    pub(super) fn take_answer(&mut self, adapter: u32, now: Time, is_atomic: bool) -> Time {
        let timing = self.timing(adapter);
        let (answer, atomic) = (timing.answer, timing.atomic);
        // An atomic takes the slower of its two parts.
        let busy = if is_atomic {
            answer.max(atomic)
        } else {
            answer
        };
        self.sums.add_answer(adapter, busy);
        let slot = &mut self.slots[self.adapters[adapter as usize].slot as usize];
        let start = slot.answers.take(now, answer) - answer;
        match is_atomic {
            true => slot.atomics.take(start, atomic) - atomic,
            false => start,
        }
    }

    /// Takes a packet's payload through the HCA's buffer and the host's memory; returns when both
    /// are done.
    #[inline]
    fn pass_through(&mut self, adapter: u32, at: Time, piece: &Piece, doing: Doing) -> Time {
        let own = &self.adapters[adapter as usize];
        let slot = &mut self.slots[own.slot as usize];
        let buffer = slot.internal.take(at, piece.internal);
        let host = &mut self.hosts[own.host as usize];
        host.moved += piece.memory;
        let moved = host.memory.take(at, piece.memory);
        self.note_rail(adapter, HcaPart::Buffer, buffer, piece.internal, doing);
        buffer.max(moved)
    }

    /// An HCA writes a packet of a message to memory; returns when it is on the bus.
    #[inline]
    pub(super) fn write(
        &mut self,
        adapter: u32,
        at: Time,
        len: u32,
        message: u32,
        packet: u32,
    ) -> Time {
        let doing = Activity::Write.packet(len.into(), message, packet);
        self.heed(message);
        let piece = self.timing(adapter).piece(len);
        let bus = self.up(adapter).take(at, piece.write);
        self.note_rail(adapter, HcaPart::BusUp, bus, piece.write, doing);
        bus.max(self.pass_through(adapter, at, &piece, doing))
    }

    /// Puts bytes on the link to another adapter; returns their arrival. `latency` is that of
    /// cables and switches.
    #[inline]
    pub(super) fn fly(
        &mut self,
        from: u32,
        to: u32,
        at: Time,
        latency: Time,
        doing: Doing,
    ) -> Time {
        self.heed(doing.message);
        let time = self.timing(from).wire(doing.bytes.into());
        let starts = self.adapters[from as usize].link.free.max(at);
        let time = self.slowed(from, starts, time);
        let gone = self.adapters[from as usize].link.take(at, time);
        self.traffic.count(doing);
        self.note_rail(from, HcaPart::LinkOut, gone, time, doing);
        if from == to {
            return gone + latency;
        }
        let gone = gone + self.cross(from, to, gone - time, doing.bytes);
        // Cut-through: the first bit arrives before the last has left; but the last link carries
        // one packet at a time, at its own rate.
        let last = self.timing(to).wire(doing.bytes.into());
        let last = self.slowed(to, gone - time + latency, last);
        let there = self.adapters[to as usize]
            .port
            .take(gone - time + latency, last);
        self.note_rail(to, HcaPart::LinkIn, there, last, doing);
        there.max(gone + latency)
    }

    /// Takes a packet, whose first bit leaves at `at`, over the links between the switches on its
    /// way; returns the time for which it waits there.
    #[inline]
    fn cross(&mut self, from: u32, to: u32, at: Time, bytes: u32) -> Time {
        let number = self.adapters[from as usize].network as usize;
        match self.inner_links[number].network {
            Some(network) if !self.is_free() => {
                self.cross_network(number, network, (from, to), at, bytes)
            }
            _ => 0,
        }
    }

    fn cross_network(
        &mut self,
        number: usize,
        network: Network,
        (from, to): (u32, u32),
        at: Time,
        bytes: u32,
    ) -> Time {
        let [from, to] = [from, to].map(|adapter| self.adapters[adapter as usize].host);
        let own = &mut self.inner_links[number];
        let (hop, links) = (own.hop, &mut own.links);
        let time = own.rate.time(bytes.into()).picos();
        let (mut waited, mut passed) = (0, 0);
        network.inner_links(from, to, |link| {
            passed += hop;
            let first = at + passed + waited;
            let own = &mut links[link as usize];
            let end = own.link.take(first, time);
            own.busy += time;
            own.host = from;
            waited += end - time - first;
        });
        waited
    }

    /// Adds a stream whose next packet can be read from memory to the round.
    pub(super) fn join(&mut self, stream: u32, clock: &mut Clocked) {
        let adapter = self.qps[stream as usize / 2].adapter;
        let entry = self.stream(stream);
        if entry.joined {
            return;
        }
        entry.joined = true;
        self.append(adapter, stream);
        self.read_on(adapter, clock);
    }

    fn append(&mut self, adapter: u32, stream: u32) {
        self.stream(stream).next = NONE;
        let last = self.adapters[adapter as usize].last;
        match last {
            NONE => self.adapters[adapter as usize].first = stream,
            last => self.stream(last).next = stream,
        }
        self.adapters[adapter as usize].last = stream;
    }

    fn stream(&mut self, stream: u32) -> &mut Stream {
        &mut self.qps[stream as usize / 2].streams[stream as usize % 2]
    }

    /// Starts reading the next packet, if there is one and the adapter is free.
    fn read_on(&mut self, adapter: u32, clock: &mut Clocked) {
        let now = clock.now();
        let buffer = self.timing(adapter).buffer;
        loop {
            let own = &mut self.adapters[adapter as usize];
            if own.reading != NONE || own.paused || own.first == NONE {
                return;
            }
            if own.link.free > now + buffer {
                own.paused = true;
                clock.at(own.link.free - buffer, Event::Pump { adapter });
                return;
            }
            let stream = own.first;
            let next = self.stream(stream).next;
            let own = &mut self.adapters[adapter as usize];
            own.first = next;
            if next == NONE {
                own.last = NONE;
            }
            let Some(len) = self.next_packet(stream) else {
                self.stream(stream).joined = false;
                continue;
            };
            let paced = self.qps[stream as usize / 2].paced;
            if paced > now {
                self.stream(stream).joined = false;
                clock.at(paced, Event::Paced { stream });
                continue;
            }
            let qp = &self.qps[stream as usize / 2];
            self.heed(match stream % 2 {
                0 => qp.to_send,
                _ => qp.answer,
            });
            self.qps[stream as usize / 2].paced = now + self.timing(adapter).pace(len);
            let end = self.read(adapter, now, len, stream);
            self.adapters[adapter as usize].reading = stream;
            clock.at(end, Event::Pump { adapter });
        }
    }

    /// An HCA reads a stream's next packet from memory; returns when it has the packet.
    fn read(&mut self, adapter: u32, at: Time, len: u32, stream: u32) -> Time {
        let qp = &self.qps[stream as usize / 2];
        let (message, packet) = match stream % 2 {
            0 => (qp.to_send, self.messages[qp.to_send].sent),
            _ => (qp.answer, self.messages[qp.answer].answers_sent),
        };
        let doing = Activity::Read.packet(len.into(), message, packet);
        let piece = self.timing(adapter).piece(len);
        let asked = self.up(adapter).take(at, piece.ask);
        let ask = Activity::Ask.packet(0, message, packet);
        self.note_rail(adapter, HcaPart::BusUp, asked, piece.ask, ask);
        let bus = self.down(adapter).take(at, piece.read);
        self.note_rail(adapter, HcaPart::BusDown, bus, piece.read, doing);
        bus.max(self.pass_through(adapter, at, &piece, doing))
    }

    /// Continues after a packet has been read, or the link has caught up.
    pub(super) fn pump(&mut self, adapter: u32, clock: &mut Clocked) {
        let own = &mut self.adapters[adapter as usize];
        own.paused = false;
        let stream = std::mem::replace(&mut own.reading, NONE);
        if stream != NONE {
            let more = match stream % 2 {
                0 => self.request_read(stream / 2, clock),
                _ => self.answer_read(stream / 2, clock),
            };
            self.stream(stream).joined = more;
            if more {
                self.append(adapter, stream);
            }
        }
        self.read_on(adapter, clock);
    }
}
