//! What is busy: of a host its memory, of an HCA its bus, its link and its buffer, each first come, first served.

use sim::Time;

use super::queue_pair::Stream;
use super::record::{Act, Doing, Part};
use super::timing::Piece;
use super::{Clocked, Event, NONE, Net};

/// Does one thing at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Fifo {
    pub free: Time,
}

impl Fifo {
    /// Busy for `time`, from `at` on or from when it is free: until when.
    #[inline]
    pub(crate) fn take(&mut self, at: Time, time: Time) -> Time {
        self.free = self.free.max(at) + time;
        self.free
    }
}

#[derive(Default)]
pub(super) struct Host {
    pub memory: Fifo,
    /// For how long all together have kept the memory busy.
    pub moved: Time,
}

pub(super) struct Adapter {
    pub host: u32,
    pub rail: u32,
    /// It stands for the host's memory.
    pub within: bool,
    /// The bus: from memory, and to it. Where it is half duplex all is charged to `down`.
    down: Fifo,
    up: Fifo,
    /// Outwards.
    link: Fifo,
    /// Inwards: the last link of all that comes here.
    port: Fifo,
    internal: Fifo,
    /// Streams whose next packet can be read from memory: each in turn reads one.
    first: u32,
    last: u32,
    /// The stream whose packet is being read.
    reading: u32,
    /// It waits for the link.
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

impl Net {
    pub(super) fn adapter(&self, host: u32, rail: u32) -> u32 {
        host * self.rails + rail
    }

    /// What stands for the memory of a host, for those who would use that rail.
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

    /// What is read or written goes through the HCA's buffer and keeps the host's memory busy: when both are done with it.
    #[inline]
    fn pass_through(&mut self, adapter: u32, at: Time, piece: &Piece, doing: Doing) -> Time {
        let own = &mut self.adapters[adapter as usize];
        let buffer = own.internal.take(at, piece.internal);
        let host = &mut self.hosts[own.host as usize];
        host.moved += piece.memory;
        let moved = host.memory.take(at, piece.memory);
        self.note_rail(adapter, Part::Buffer, buffer, piece.internal, doing);
        buffer.max(moved)
    }

    /// An HCA writes a packet of a message to memory: when it is on the bus.
    #[inline]
    pub(super) fn write(
        &mut self,
        adapter: u32,
        at: Time,
        len: u32,
        message: u32,
        packet: u32,
    ) -> Time {
        let doing = Act::Write.packet(len.into(), message, packet);
        let piece = self.timing(adapter).piece(len);
        let bus = self.up(adapter).take(at, piece.write);
        self.note_rail(adapter, Part::BusUp, bus, piece.write, doing);
        bus.max(self.pass_through(adapter, at, &piece, doing))
    }

    /// Puts bytes on the link towards another adapter: when they are there. `extra` is on top of the way through
    /// cables and switches.
    #[inline]
    pub(super) fn fly(&mut self, from: u32, to: u32, at: Time, way: Time, doing: Doing) -> Time {
        let time = self.timing(from).wire(doing.bytes.into());
        let gone = self.adapters[from as usize].link.take(at, time);
        self.traffic.count(doing);
        self.note_rail(from, Part::LinkOut, gone, time, doing);
        if from == to {
            return gone + way;
        }
        // Cut-through: the first bit is there before the last has gone; but the last link carries one packet at a time.
        let there = self.adapters[to as usize]
            .port
            .take(gone - time + way, time);
        self.note_rail(to, Part::LinkIn, there, time, doing);
        there.max(gone + way)
    }

    /// A stream has a packet that can be read from memory.
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

    /// Begins with the next packet, if there is one and nothing hinders.
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

    /// An HCA reads a stream's next packet from memory: when it has it.
    fn read(&mut self, adapter: u32, at: Time, len: u32, stream: u32) -> Time {
        let qp = &self.qps[stream as usize / 2];
        let (message, packet) = match stream % 2 {
            0 => (qp.to_send, self.messages[qp.to_send].sent),
            _ => (qp.answer, self.messages[qp.answer].answers_sent),
        };
        let doing = Act::Read.packet(len.into(), message, packet);
        let piece = self.timing(adapter).piece(len);
        let asked = self.up(adapter).take(at, piece.ask);
        let ask = Act::Ask.packet(0, message, packet);
        self.note_rail(adapter, Part::BusUp, asked, piece.ask, ask);
        let own = &mut self.adapters[adapter as usize];
        let bus = own.down.take(at, piece.read);
        self.note_rail(adapter, Part::BusDown, bus, piece.read, doing);
        bus.max(self.pass_through(adapter, at, &piece, doing))
    }

    /// A packet has been read, or the link has caught up.
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
