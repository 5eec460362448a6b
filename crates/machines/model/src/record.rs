//! The record of resources' activity. A [`MachineModel`] that records keeps one [`Span`] for each
//! time that a processor, a bus, a link or an HCA's buffer was busy, and for each MPI call; or only
//! a digest of them, which is equal for two runs if everything in them is.
//!
//! Spans are kept in a log of the world, so that the launcher can read them after the ranks have
//! ended.

use device::ProgramCall;
use sim::Time;
use sim::log::Log;
use sim::memory::{Vec, WorldMemory};

pub use super::message::RequestKind;
use super::{MachineModel, NONE};

/// The most spans that are kept.
pub const MOST: u64 = 4 << 20;
/// The most calls for which the preceding computing time is kept.
pub(crate) const MOST_CALLS: u64 = 16 << 20;

/// The most beginnings of steps that are kept.
pub(crate) const MOST_STEPS: u64 = 4 << 20;

/// The most rows of local work that are kept.
pub(crate) const MOST_WORK: u64 = 1 << 20;

/// The most notes of ranks that are kept.
pub(crate) const MOST_NOTES: u64 = 4 << 20;

/// The most names of calls.
pub(super) const MOST_NAMES: u64 = 1 << 12;

/// The numbers of the logs.
pub(super) const SPANS: usize = 0;
pub(super) const NAMES: usize = 1;
pub(super) const COMPUTED: usize = 2;
pub(super) const NOTES: usize = 3;
pub(super) const USES: usize = 4;
pub(super) const STEPS: usize = 5;
pub(super) const WORK: usize = 6;
/// The length of an entry, in words.
pub(super) const SPAN: usize = 7;
pub(super) const NAME: usize = 5;
pub(super) const CALL: usize = 4;
/// Rank and time.
pub(super) const STEP: usize = 2;
/// The words of a row.
pub(super) const ROW: usize = 4;
/// Time and call, and the words of the rank.
pub(super) const NOTE: usize = 8;

/// A time in which a resource was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its start.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// The host of the resource.
    pub host: u32,
    /// The resource.
    pub track: Track,
    /// Its activity.
    pub activity: Activity,
    /// The number of bytes moved.
    pub bytes: u32,
    /// The number of the call's name, for a call.
    pub name: u32,
    /// The message that it served.
    pub of: Option<MessageRef>,
}

/// The message, and the packet of it, that a resource served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRef {
    /// Its number among the run's messages.
    pub message: u64,
    /// Its operation.
    pub kind: RequestKind,
    /// Its length, in bytes.
    pub len: u32,
    /// The rank that sent it.
    pub from: u32,
    /// The rank that receives it. A datagram may have none.
    pub to: Option<u32>,
    /// The number of the packet.
    pub packet: u32,
}

/// A resource of a host that can be busy: a row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A part of the HCA of a rail.
    Rail(u32, HcaPart),
    /// The MPI calls of a rank.
    Calls(u32),
    /// The processor of a rank.
    Processor(u32),
}

/// A part of an HCA or of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HcaPart {
    /// The bus from memory to the HCA; both directions if it is half duplex.
    BusDown,
    /// The bus from the HCA to memory.
    BusUp,
    /// The link from the HCA.
    LinkOut,
    /// The link to the HCA.
    LinkIn,
    /// The HCA's buffer.
    Buffer,
}

impl HcaPart {
    /// Every part.
    pub const ALL: [HcaPart; 5] = [
        HcaPart::BusDown,
        HcaPart::BusUp,
        HcaPart::LinkOut,
        HcaPart::LinkIn,
        HcaPart::Buffer,
    ];
}

/// An activity of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A processor: an MPI call of the program.
    Call,
    /// A processor: the program's own computing.
    Compute,
    /// A processor: a reading of the clock.
    Clock,
    /// A processor: a poll that finds nothing.
    Look,
    /// A processor: a poll for out-of-band messages.
    Listen,
    /// A processor: a short call.
    Short,
    /// A processor: the work of a send.
    Send,
    /// A processor: the work of a receive.
    Receive,
    /// A processor: a step of the protocol without a data packet.
    Control,
    /// A processor: a copy.
    Copy,
    /// A processor: a copy that waits for memory in use by others.
    Memory,
    /// A processor: a post of a request.
    Post,
    /// A processor: a post of a receive.
    PostReceive,
    /// A processor: a registration of memory.
    Register,
    /// A processor: a poll that finds a write.
    Notice,
    /// A processor: idle, in a wait.
    Wait,
    /// A bus: the fetch of a work request.
    WorkRequest,
    /// A bus: the request to read memory.
    Ask,
    /// A bus or buffer: a read of memory.
    Read,
    /// A bus or buffer: a write to memory.
    Write,
    /// A bus: the write of a completion.
    Completion,
    /// A link: a packet of a request.
    Packet,
    /// A link: a packet of a response.
    Answer,
    /// A link: an acknowledgement.
    Acknowledgement,
    /// A processor: work within MPI on the rank's own memory, such as the sums of a reduction.
    Local,
}

impl Activity {
    const ALL: [Activity; 25] = [
        Activity::Call,
        Activity::Compute,
        Activity::Clock,
        Activity::Look,
        Activity::Listen,
        Activity::Short,
        Activity::Send,
        Activity::Receive,
        Activity::Control,
        Activity::Copy,
        Activity::Memory,
        Activity::Post,
        Activity::PostReceive,
        Activity::Register,
        Activity::Notice,
        Activity::Wait,
        Activity::WorkRequest,
        Activity::Ask,
        Activity::Read,
        Activity::Write,
        Activity::Completion,
        Activity::Packet,
        Activity::Answer,
        Activity::Acknowledgement,
        Activity::Local,
    ];
}

const KINDS: [RequestKind; 5] = [
    RequestKind::Write,
    RequestKind::Send,
    RequestKind::Read,
    RequestKind::CompareAndSwap,
    RequestKind::FetchAndAdd,
];

impl Span {
    fn encode(&self) -> [u64; SPAN] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let track = match self.track {
            Track::Rail(rail, part) => rail << 4 | part as u32,
            Track::Calls(rank) => rank << 4 | 14,
            Track::Processor(rank) => rank << 4 | 15,
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
            pair(self.host, track),
            pair(self.bytes, len),
            pair(from, to),
            pair(self.name << 16 | kind << 8 | self.activity as u32, packet),
        ]
    }

    /// Decodes a span. None: the words encode none.
    pub(super) fn decode(words: [u64; SPAN]) -> Option<Span> {
        let [start, end, message, place, sizes, ranks, rest] = words;
        let (high, low) = (|word: u64| (word >> 32) as u32, |word: u64| word as u32);
        let number = low(place) >> 4;
        let track = match low(place) & 15 {
            14 => Track::Calls(number),
            15 => Track::Processor(number),
            part => Track::Rail(number, *HcaPart::ALL.get(part as usize)?),
        };
        let (what, packet) = (high(rest), low(rest));
        let of = match what >> 8 & 255 {
            0 => None,
            kind => Some(MessageRef {
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
            track,
            activity: *Activity::ALL.get((what & 255) as usize)?,
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
    /// The number of messages so far.
    pub posted: u64,
    /// The names of calls.
    names: Vec<[u64; NAME]>,
    listed: Log<NAME>,
    keeps_computing: bool,
    computed: Log<CALL>,
    steps: Log<STEP>,
    work: Log<ROW>,
    /// The kinds and classes of work whose time a rank has measured.
    known_work: Vec<(u64, u32)>,
    keeps_notes: bool,
    notes: Log<NOTE>,
}

impl Record {
    pub(crate) fn new(memory: WorldMemory) -> Record {
        Record {
            mode: Mode::Off,
            spans: Log::new(memory, SPANS, MOST),
            digest: 0,
            posted: 0,
            names: Vec::new_in(memory),
            listed: Log::new(memory, NAMES, MOST_NAMES),
            keeps_computing: false,
            computed: Log::new(memory, COMPUTED, MOST_CALLS),
            steps: Log::new(memory, STEPS, MOST_STEPS),
            work: Log::new(memory, WORK, MOST_WORK),
            known_work: Vec::new_in(memory),
            keeps_notes: false,
            notes: Log::new(memory, NOTES, MOST_NOTES),
        }
    }

    fn note(&mut self, span: Span) {
        let words = span.encode();
        match self.mode {
            Mode::Off => {}
            Mode::Spans => self.spans.push(words),
            Mode::Digest => {
                // The multiplication carries each bit upwards, the rotation brings it down again.
                const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
                for word in words {
                    self.digest = (self.digest ^ word).wrapping_mul(ODD).rotate_left(29);
                }
            }
        }
    }
}

/// An activity and its object.
#[derive(Clone, Copy)]
pub(super) struct Doing {
    pub activity: Activity,
    pub bytes: u32,
    /// The message and its packet.
    pub message: u32,
    pub packet: u32,
}

impl Activity {
    /// The activity, without a message.
    pub(super) fn alone(self, bytes: usize) -> Doing {
        self.packet(bytes as u64, NONE, 0)
    }

    pub(super) fn packet(self, bytes: u64, message: u32, packet: u32) -> Doing {
        Doing {
            activity: self,
            bytes: bytes as u32,
            message,
            packet,
        }
    }
}

impl MachineModel {
    /// Makes the machine record the activity of its resources.
    pub fn recording(mut self) -> MachineModel {
        self.record.mode = Mode::Spans;
        self.lookahead = None;
        self
    }

    /// Makes the machine keep a digest of the activity of its resources.
    pub fn digesting(mut self) -> MachineModel {
        self.record.mode = Mode::Digest;
        self.lookahead = None;
        self
    }

    /// Makes the machine record the computing time of its ranks between calls.
    pub fn keeping_computing(mut self) -> MachineModel {
        self.record.keeps_computing = true;
        self
    }

    /// Makes the machine keep the notes of its ranks.
    pub fn keeping_notes(mut self) -> MachineModel {
        self.record.keeps_notes = true;
        self
    }

    pub(super) fn keeps_notes(&self) -> bool {
        self.record.keeps_notes
    }

    /// Keeps a note of a rank in a call.
    pub(super) fn keep_note(&mut self, time: Time, call: &str, note: device::Note) {
        if self.record.keeps_notes {
            let name = self.name(call);
            let [a, b, c, d, e, f] = note;
            self.record
                .notes
                .push([time, name.into(), a, b, c, d, e, f]);
        }
    }

    /// Takes the notes since the last call, each with its time.
    pub fn take_notes(&mut self) -> std::vec::Vec<(Time, device::Note)> {
        let kept = self.record.notes.take();
        let note = |[time, _, note @ ..]: [u64; NOTE]| (time, note);
        kept.entries.into_iter().map(note).collect()
    }

    /// Takes the spans since the last call.
    pub fn take_record(&mut self) -> std::vec::Vec<Span> {
        let kept = self.record.spans.take();
        kept.entries.into_iter().filter_map(Span::decode).collect()
    }

    /// The digest of everything that was recorded.
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
        self.sums.add_part(adapter, part, time);
        if self.is_recording() {
            let (host, rail) = (own.host, own.rail);
            self.note(host, Track::Rail(rail, part), end - time, end, doing);
        }
    }

    #[inline]
    pub(super) fn note_rank(&mut self, rank: u32, start: Time, time: Time, doing: Doing) {
        self.sums.add_processor(rank, doing.activity, time);
        if self.is_recording() && time > 0 {
            let host = self.ranks[rank as usize].host;
            self.note(host, Track::Processor(rank), start, start + time, doing);
        }
    }

    #[cold]
    fn note(&mut self, host: u32, track: Track, start: Time, end: Time, doing: Doing) {
        let of = (doing.message != NONE).then(|| {
            let message = &self.messages[doing.message];
            MessageRef {
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
            track,
            activity: doing.activity,
            bytes: doing.bytes,
            name: 0,
            of,
        });
    }

    /// Records an MPI call of a rank's program.
    pub(super) fn note_call(&mut self, rank: u32, start: Time, end: Time, name: &str) {
        let name = self.name(name);
        self.record.note(Span {
            start,
            end,
            host: self.ranks[rank as usize].host,
            track: Track::Calls(rank),
            activity: Activity::Call,
            bytes: 0,
            name,
            of: None,
        });
    }

    /// Records a call of a rank with the computing time before it; `times` is 0 for a call with a
    /// result, else the number of equal calls without one.
    pub(super) fn keep_computed(&mut self, rank: u32, call: &ProgramCall, times: u64) {
        if self.record.keeps_computing {
            let name = self.name(call.name);
            let who = u64::from(rank) << 32 | u64::from(name);
            let entry = [who, call.computed, times, call.key.pack()];
            self.record.computed.push(entry);
        }
    }

    /// Whether computing is recorded, and no rank has asked this of work of this kind and class.
    pub(super) fn is_new_work(&mut self, work: (u64, u32)) -> bool {
        let known = &mut self.record.known_work;
        let is_new = self.record.keeps_computing && !known.contains(&work);
        if is_new {
            known.push(work);
        }
        is_new
    }

    /// Keeps a row of a rank's work on its own memory, where computing is recorded.
    pub(super) fn keep_local_work(&mut self, row: [u64; ROW]) {
        if self.record.keeps_computing {
            self.record.work.push(row);
        }
    }

    /// Keeps the time at which a rank begins a step.
    pub(super) fn keep_step(&mut self, rank: u32, time: Time) {
        self.record.steps.push([rank.into(), time]);
    }

    /// The number of a call's name.
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
        for (number, activity) in Activity::ALL.into_iter().enumerate() {
            assert_eq!(activity as usize, number);
            for (number, kind) in KINDS.into_iter().enumerate() {
                assert_eq!(kind as usize, number);
                for track in [
                    Track::Calls(9999),
                    Track::Processor(3),
                    Track::Rail(2, HcaPart::Buffer),
                ] {
                    let span = Span {
                        start: 5,
                        end: 1 << 50,
                        host: 77,
                        track,
                        activity,
                        bytes: 1 << 31,
                        name: 400,
                        of: (number != 1).then_some(MessageRef {
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
