//! Resources that are busy: a host's memory, an HCA's bus, link and buffer, each first come, first
//! served.

use sim::Time;

use super::queue_pair::Stream;
use super::record::{Activity, Doing, HcaPart};
use super::timing::Piece;
use super::{Clocked, Event, MachineModel, NONE};

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

pub(super) struct Adapter {
    pub host: u32,
    pub rail: u32,
    /// It models the host's memory, not an HCA.
    pub within: bool,
    /// The bus from memory, and the bus to it. A half-duplex bus is `down` in both directions.
    down: Fifo,
    up: Fifo,
    /// The link out.
    link: Fifo,
    /// The link in: the last hop of every arriving packet.
    port: Fifo,
    internal: Fifo,
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
    pub(crate) fn new(host: u32, rail: u32, within: bool) -> Adapter {
        let fifo = Fifo::default();
        Adapter {
            host,
            rail,
            within,
            down: fifo,
            up: fifo,
            link: fifo,
            port: fifo,
            internal: fifo,
            first: NONE,
            last: NONE,
            reading: NONE,
            paused: false,
        }
    }
}

impl MachineModel {
    pub(super) fn adapter(&self, host: u32, rail: u32) -> u32 {
        host * self.rails + rail
    }

    /// The adapter that models a host's memory, for the users of a rail.
    pub(super) fn within(&self, host: u32, rail: u32) -> u32 {
        self.adapters.len() as u32 / 2 + self.adapter(host, rail)
    }

    /// The bus to memory.
    pub(super) fn up(&mut self, adapter: u32) -> &mut Fifo {
        let adapter = &mut self.adapters[adapter as usize];
        if self.half_duplex {
            &mut adapter.down
        } else {
            &mut adapter.up
        }
    }

    /// The bus from memory.
    pub(super) fn down(&mut self, adapter: u32) -> &mut Fifo {
        &mut self.adapters[adapter as usize].down
    }

    /// Takes a packet's payload through the HCA's buffer and the host's memory; returns when both
    /// are done.
    #[inline]
    fn pass_through(&mut self, adapter: u32, at: Time, piece: &Piece, doing: Doing) -> Time {
        let own = &mut self.adapters[adapter as usize];
        let buffer = own.internal.take(at, piece.internal);
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
        let time = self.timing(from).wire(doing.bytes.into());
        let gone = self.adapters[from as usize].link.take(at, time);
        self.traffic.count(doing);
        self.note_rail(from, HcaPart::LinkOut, gone, time, doing);
        if from == to {
            return gone + latency;
        }
        // Cut-through: the first bit arrives before the last has left; but the last link carries
        // one packet at a time.
        let there = self.adapters[to as usize]
            .port
            .take(gone - time + latency, time);
        self.note_rail(to, HcaPart::LinkIn, there, time, doing);
        there.max(gone + latency)
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
        let own = &mut self.adapters[adapter as usize];
        let bus = own.down.take(at, piece.read);
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
