//! The record of resources' activity: one [`Span`] for each time that a processor, a bus, a link or
//! an HCA's buffer was busy, and for each MPI call; or only a digest of the spans, which is equal
//! for two runs if all their spans are.
//!
//! Spans are stored in a log of the world, so that the launcher can read them after the ranks have
//! ended.

use sim::Time;
use sim::log::Log;
use sim::memory::{Vec, WorldMemory};

use super::message::{Messages, NONE};
use super::span::{Activity, Doing, MessageRef, SPAN, Span, Track};

/// The greatest number of spans that are stored.
pub const MOST: u64 = 4 << 20;

/// The greatest number of beginnings of steps that are stored. A replayed trace marks the steps.
pub(crate) const MOST_STEPS: u64 = 4 << 20;

/// The greatest number of rows that are stored about work inside MPI on ranks' own memory.
pub(crate) const MOST_WORK: u64 = 1 << 20;

/// The greatest number of notes, such as a rank's accesses to windows, that are stored.
pub(crate) const MOST_NOTES: u64 = 4 << 20;

/// The greatest number of names of calls.
pub(crate) const MOST_NAMES: u64 = 1 << 12;

/// The number of the log with the spans.
pub(crate) const SPANS: usize = 0;
/// The number of the log with the names of calls.
pub(crate) const NAMES: usize = 1;
/// The number of the log with the ranks' notes.
pub(crate) const NOTES: usize = 2;
/// The number of the log with the uses of resources.
pub(crate) const USES: usize = 3;
/// The number of the log of the times at which ranks begin steps of a replayed trace.
pub(crate) const STEPS: usize = 4;
/// The number of the log of work inside MPI on ranks' own memory.
pub(crate) const WORK: usize = 5;
/// The length of a call's name, in words of 64 bits.
pub(crate) const NAME: usize = 5;
/// The length of an entry about the beginning of a step, in words: rank and time.
pub(crate) const STEP: usize = 2;
/// The length of a row about work inside MPI on a rank's own memory, in words.
pub(crate) const ROW: usize = 4;
/// The length of a note, in words: time, call, and the six words of the rank.
pub(crate) const NOTE: usize = 8;

/// The use that is made of spans: ignored, digested, or stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Off,
    Digest,
    Spans,
}

pub(crate) struct Record {
    pub mode: Mode,
    spans: Log<SPAN>,
    digest: u64,
    /// The number of messages that have been posted.
    pub posted: u64,
    /// The names of calls, each padded to `NAME` words.
    names: Vec<[u64; NAME]>,
    listed: Log<NAME>,
    steps: Log<STEP>,
    /// True if ranks' work on their own memory is stored.
    pub keeps_work: bool,
    work: Log<ROW>,
    /// The kinds and classes of work whose time some rank has measured.
    known_work: Vec<(u64, u32)>,
    pub keeps_notes: bool,
    pub notes_messages: bool,
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
            steps: Log::new(memory, STEPS, MOST_STEPS),
            keeps_work: false,
            work: Log::new(memory, WORK, MOST_WORK),
            known_work: Vec::new_in(memory),
            keeps_notes: false,
            notes_messages: false,
            notes: Log::new(memory, NOTES, MOST_NOTES),
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    fn keep(&mut self, span: Span) {
        let words = span.encode();
        match self.mode {
            Mode::Off => {}
            Mode::Spans => self.spans.push(words),
            Mode::Digest => {
                // The multiplication carries each bit upwards, and the rotation brings it down
                // again.
                const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
                for word in words {
                    self.digest = (self.digest ^ word).wrapping_mul(ODD).rotate_left(29);
                }
            }
        }
    }

    /// Records an activity of a resource as a span.
    #[cold]
    pub(crate) fn note(
        &mut self,
        messages: &Messages,
        (host, track): (u32, Track),
        (start, end): (Time, Time),
        doing: Doing,
    ) {
        let of = (doing.message != NONE).then(|| {
            let message = &messages[doing.message];
            MessageRef {
                message: message.number,
                kind: message.kind,
                len: message.len,
                from: message.from_rank,
                to: Some(message.to_rank).filter(|to| *to != NONE),
                packet: doing.packet,
            }
        });
        self.keep(Span {
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

    /// Records an MPI call of a rank's program, if activity is recorded.
    pub(crate) fn note_call(
        &mut self,
        (host, rank): (u32, u32),
        (start, end): (Time, Time),
        name: &str,
    ) {
        if !self.is_on() {
            return;
        }
        let name = self.name(name);
        self.keep(Span {
            start,
            end,
            host,
            track: Track::Calls(rank),
            activity: Activity::Call,
            bytes: 0,
            name,
            of: None,
        });
    }

    /// Records a note of a rank in the call `call`, if notes are recorded.
    pub(crate) fn keep_note(&mut self, time: Time, call: &str, note: device::Note) {
        if self.keeps_notes || self.notes_messages {
            let name = self.name(call);
            let [a, b, c, d, e, f] = note;
            self.notes.push([time, name.into(), a, b, c, d, e, f]);
        }
    }

    /// Takes the notes since the last such call, each with its time.
    pub(crate) fn take_notes(&mut self) -> std::vec::Vec<(Time, device::Note)> {
        let kept = self.notes.take();
        let note = |[time, _, note @ ..]: [u64; NOTE]| (time, note);
        kept.entries.into_iter().map(note).collect()
    }

    /// Removes and returns the spans since the last call of this function.
    pub(crate) fn take_spans(&mut self) -> std::vec::Vec<Span> {
        let kept = self.spans.take();
        kept.entries.into_iter().filter_map(Span::decode).collect()
    }

    /// The digest of all activity of resources until now.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// True if work is recorded, and no rank has asked for work of this kind and class before.
    pub(crate) fn is_new_work(&mut self, work: (u64, u32)) -> bool {
        let known = &mut self.known_work;
        let is_new = self.keeps_work && !known.contains(&work);
        if is_new {
            known.push(work);
        }
        is_new
    }

    /// Records a row of a rank's work on its own memory, if work is recorded.
    pub(crate) fn keep_local_work(&mut self, row: [u64; ROW]) {
        if self.keeps_work {
            self.work.push(row);
        }
    }

    /// Records the time at which a rank begins a step that its trace marks.
    pub(crate) fn keep_step(&mut self, rank: u32, time: Time) {
        self.steps.push([rank.into(), time]);
    }

    /// The number that encodes a call's name, which is assigned on first use.
    fn name(&mut self, name: &str) -> u32 {
        let mut bytes = [0; NAME * 8];
        let len = name.len().min(bytes.len());
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        let (words, _) = bytes.as_chunks::<8>();
        let words: [u64; NAME] = std::array::from_fn(|at| u64::from_ne_bytes(words[at]));
        let known = self.names.iter().position(|known| *known == words);
        known.unwrap_or_else(|| {
            self.names.push(words);
            self.listed.push(words);
            self.names.len() - 1
        }) as u32
    }
}
