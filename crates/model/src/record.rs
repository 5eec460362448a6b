//! The record: what resources did and when. A [`Net`] that records keeps one [`Span`] for each time that a processor, a
//! bus, a link or an HCA's buffer was busy, and for each call of a program; or only a digest of them, which is the same
//! for two runs if all that happened is.
//!
//! Spans are kept in a log of the world, so that whoever started the ranks can read them when the ranks are gone.

use sim::Time;
use sim::log::Log;
use sim::memory::{Shared, Vec};

pub use super::message::Kind;
use super::{NONE, Net};

/// The most spans that are kept.
pub const MOST: u64 = 4 << 20;
/// The most calls before each of which is kept what a rank computed.
pub(crate) const MOST_CALLS: u64 = 16 << 20;

/// The most names of calls.
pub(super) const MOST_NAMES: u64 = 1 << 12;

/// Where they are kept.
pub(super) const SPANS: usize = 0;
pub(super) const NAMES: usize = 1;
pub(super) const COMPUTED: usize = 2;
/// In words.
pub(super) const SPAN: usize = 7;
pub(super) const NAME: usize = 5;

/// Something was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: Time,
    pub end: Time,
    pub host: u32,
    pub lane: Lane,
    pub act: Act,
    /// What was moved by it.
    pub bytes: u32,
    /// Of a call, which name.
    pub name: u32,
    /// For which message.
    pub of: Option<Of>,
}

/// A message of queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    /// Counts the messages of a run.
    pub message: u64,
    pub kind: Kind,
    pub len: u32,
    /// Ranks. A datagram may have no receiver.
    pub from: u32,
    pub to: Option<u32>,
    pub packet: u32,
}

/// What was busy, on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Part of the HCA of a rail.
    Rail(u32, Part),
    /// The calls of a rank.
    Calls(u32),
    /// The processor of a rank.
    Processor(u32),
}

/// What an HCA and its slot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The bus from memory to the HCA; both ways where it is half duplex.
    BusDown,
    /// The bus from the HCA to memory.
    BusUp,
    LinkOut,
    LinkIn,
    Buffer,
}

impl Part {
    pub const ALL: [Part; 5] = [
        Part::BusDown,
        Part::BusUp,
        Part::LinkOut,
        Part::LinkIn,
        Part::Buffer,
    ];
}

/// With what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A call of the program.
    Call,
    /// The program's own work.
    Compute,
    Clock,
    Look,
    Listen,
    Short,
    Send,
    Receive,
    Control,
    Copy,
    /// Others use the memory that is copied in.
    Memory,
    Post,
    PostReceive,
    Register,
    Notice,
    Wait,
    WorkRequest,
    Ask,
    Read,
    Write,
    Completion,
    Packet,
    Answer,
    Acknowledgement,
}

impl Act {
    const ALL: [Act; 24] = [
        Act::Call,
        Act::Compute,
        Act::Clock,
        Act::Look,
        Act::Listen,
        Act::Short,
        Act::Send,
        Act::Receive,
        Act::Control,
        Act::Copy,
        Act::Memory,
        Act::Post,
        Act::PostReceive,
        Act::Register,
        Act::Notice,
        Act::Wait,
        Act::WorkRequest,
        Act::Ask,
        Act::Read,
        Act::Write,
        Act::Completion,
        Act::Packet,
        Act::Answer,
        Act::Acknowledgement,
    ];
}

const KINDS: [Kind; 5] = [
    Kind::Write,
    Kind::Send,
    Kind::Read,
    Kind::CompareAndSwap,
    Kind::FetchAndAdd,
];

impl Span {
    fn encode(&self) -> [u64; SPAN] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let lane = match self.lane {
            Lane::Rail(rail, part) => rail << 4 | part as u32,
            Lane::Calls(rank) => rank << 4 | 14,
            Lane::Processor(rank) => rank << 4 | 15,
        };
        let (message, kind, len, from, to, packet) = match self.of {
            None => (0, 0, 0, 0, 0, 0),
            Some(of) => (
                of.message,
                of.kind as u32 + 1,
                of.len,
                of.from,
                of.to.unwrap_or(NONE),
                of.packet,
            ),
        };
        [
            self.start,
            self.end,
            message,
            pair(self.host, lane),
            pair(self.bytes, len),
            pair(from, to),
            pair(self.name << 16 | kind << 8 | self.act as u32, packet),
        ]
    }

    /// None if these words are no span.
    pub(super) fn decode(words: [u64; SPAN]) -> Option<Span> {
        let [start, end, message, place, sizes, ranks, rest] = words;
        let (high, low) = (|word: u64| (word >> 32) as u32, |word: u64| word as u32);
        let number = low(place) >> 4;
        let lane = match low(place) & 15 {
            14 => Lane::Calls(number),
            15 => Lane::Processor(number),
            part => Lane::Rail(number, *Part::ALL.get(part as usize)?),
        };
        let (what, packet) = (high(rest), low(rest));
        let of = match what >> 8 & 255 {
            0 => None,
            kind => Some(Of {
                message,
                kind: *KINDS.get(kind as usize - 1)?,
                len: low(sizes),
                from: high(ranks),
                to: Some(low(ranks)).filter(|to| *to != NONE),
                packet,
            }),
        };
        (start <= end).then_some(Span {
            start,
            end,
            host: high(place),
            lane,
            act: *Act::ALL.get((what & 255) as usize)?,
            bytes: high(sizes),
            name: what >> 16,
            of,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Off,
    Digest,
    Spans,
}

pub(super) struct Record {
    mode: Mode,
    spans: Log<SPAN>,
    digest: u64,
    /// Counts messages.
    pub posted: u64,
    /// Of calls.
    names: Vec<[u64; NAME]>,
    listed: Log<NAME>,
    keeps_computing: bool,
    computed: Log<2>,
}

impl Record {
    pub(crate) fn new(memory: Shared) -> Record {
        Record {
            mode: Mode::Off,
            spans: Log::new(memory, SPANS, MOST),
            digest: 0,
            posted: 0,
            names: Vec::new_in(memory),
            listed: Log::new(memory, NAMES, MOST_NAMES),
            keeps_computing: false,
            computed: Log::new(memory, COMPUTED, MOST_CALLS),
        }
    }

    fn note(&mut self, span: Span) {
        let words = span.encode();
        match self.mode {
            Mode::Off => {}
            Mode::Spans => self.spans.push(words),
            Mode::Digest => {
                // One multiplication a word carries each bit upwards, the rotation brings it down again.
                const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
                for word in words {
                    self.digest = (self.digest ^ word).wrapping_mul(ODD).rotate_left(29);
                }
            }
        }
    }
}

/// What somebody is busy with.
#[derive(Clone, Copy)]
pub(super) struct Doing {
    pub act: Act,
    pub bytes: u32,
    /// The message and its packet.
    pub message: u32,
    pub packet: u32,
}

impl Act {
    /// For no message.
    pub(super) fn alone(self, bytes: usize) -> Doing {
        self.packet(bytes as u64, NONE, 0)
    }

    pub(super) fn packet(self, bytes: u64, message: u32, packet: u32) -> Doing {
        Doing {
            act: self,
            bytes: bytes as u32,
            message,
            packet,
        }
    }
}

impl Net {
    /// The same machine, which keeps a record of what its resources do.
    pub fn recording(mut self) -> Net {
        self.record.mode = Mode::Spans;
        self
    }

    /// The same machine, which keeps only a digest of it.
    pub fn digesting(mut self) -> Net {
        self.record.mode = Mode::Digest;
        self
    }

    /// The same machine, which keeps what its ranks compute between their calls.
    pub fn keeping_computing(mut self) -> Net {
        self.record.keeps_computing = true;
        self
    }

    /// What has happened since the last time; it is forgotten here.
    pub fn take_record(&mut self) -> std::vec::Vec<Span> {
        let kept = self.record.spans.take();
        kept.entries.into_iter().filter_map(Span::decode).collect()
    }

    /// Of all that was recorded.
    pub fn digest(&self) -> u64 {
        self.record.digest
    }

    #[inline]
    pub(super) fn is_recording(&self) -> bool {
        self.record.mode != Mode::Off
    }

    #[inline]
    pub(super) fn note_rail(
        &mut self,
        adapter: u32,
        part: Part,
        end: Time,
        time: Time,
        doing: Doing,
    ) {
        if self.is_recording() && time > 0 {
            let own = &self.adapters[adapter as usize];
            let (host, rail) = (own.host, own.rail);
            let part = match part {
                Part::BusUp if self.half_duplex => Part::BusDown,
                other => other,
            };
            self.note(host, Lane::Rail(rail, part), end - time, end, doing);
        }
    }

    #[inline]
    pub(super) fn note_rank(&mut self, rank: u32, start: Time, time: Time, doing: Doing) {
        if self.is_recording() && time > 0 {
            let host = self.ranks[rank as usize].host;
            self.note(host, Lane::Processor(rank), start, start + time, doing);
        }
    }

    #[cold]
    fn note(&mut self, host: u32, lane: Lane, start: Time, end: Time, doing: Doing) {
        let of = (doing.message != NONE).then(|| {
            let message = &self.messages[doing.message];
            Of {
                message: message.number,
                kind: message.kind,
                len: message.len,
                from: self.qps[message.from as usize].rank,
                to: self.qps.get(message.to as usize).map(|qp| qp.rank),
                packet: doing.packet,
            }
        });
        self.record.note(Span {
            start,
            end,
            host,
            lane,
            act: doing.act,
            bytes: doing.bytes,
            name: 0,
            of,
        });
    }

    /// A call of a rank's program, from then until then.
    pub(super) fn note_call(&mut self, rank: u32, start: Time, end: Time, name: &str) {
        let name = self.name(name);
        self.record.note(Span {
            start,
            end,
            host: self.ranks[rank as usize].host,
            lane: Lane::Calls(rank),
            act: Act::Call,
            bytes: 0,
            name,
            of: None,
        });
    }

    /// What a rank has computed before a call, in nanoseconds.
    pub(super) fn keep_computed(&mut self, rank: u32, call: &str, nanos: u64) {
        if self.record.keeps_computing {
            let name = self.name(call);
            let entry = [u64::from(rank) << 32 | u64::from(name), nanos];
            self.record.computed.push(entry);
        }
    }

    /// The number of a name.
    fn name(&mut self, name: &str) -> u32 {
        let mut bytes = [0; NAME * 8];
        let len = name.len().min(bytes.len());
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        let (words, _) = bytes.as_chunks::<8>();
        let words: [u64; NAME] = std::array::from_fn(|at| u64::from_ne_bytes(words[at]));
        let record = &mut self.record;
        let known = record.names.iter().position(|known| *known == words);
        known.unwrap_or_else(|| {
            record.names.push(words);
            record.listed.push(words);
            record.names.len() - 1
        }) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_comes_back_as_it_was() {
        for (number, act) in Act::ALL.into_iter().enumerate() {
            assert_eq!(act as usize, number);
            for (number, kind) in KINDS.into_iter().enumerate() {
                assert_eq!(kind as usize, number);
                for lane in [
                    Lane::Calls(9999),
                    Lane::Processor(3),
                    Lane::Rail(2, Part::Buffer),
                ] {
                    let span = Span {
                        start: 5,
                        end: 1 << 50,
                        host: 77,
                        lane,
                        act,
                        bytes: 1 << 31,
                        name: 400,
                        of: (number != 1).then_some(Of {
                            message: 1 << 40,
                            kind,
                            len: 12345,
                            from: 1,
                            to: (number == 2).then_some(2),
                            packet: 9,
                        }),
                    };
                    assert_eq!(Span::decode(span.encode()), Some(span));
                }
            }
        }
        assert_eq!(Span::decode([u64::MAX; SPAN]), None);
    }
}
