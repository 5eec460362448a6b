//! The record of resources' activity: one [`Span`] for each time that a processor, a bus, a link or
//! an HCA's buffer was busy, and for each MPI call; or only a digest of them, which is equal for
//! two runs if everything in them is.
//!
//! Spans are kept in a log of the world, so that the launcher can read them after the ranks have
//! ended.

use device::ProgramCall;
use sim::Time;
use sim::log::Log;
use sim::memory::{Vec, WorldMemory};

use super::message::{Messages, NONE};
use super::span::{Activity, Doing, MessageRef, SPAN, Span, Track};

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
pub(crate) const MOST_NAMES: u64 = 1 << 12;

/// The numbers of the logs.
pub(crate) const SPANS: usize = 0;
pub(crate) const NAMES: usize = 1;
pub(crate) const COMPUTED: usize = 2;
pub(crate) const NOTES: usize = 3;
pub(crate) const USES: usize = 4;
pub(crate) const STEPS: usize = 5;
pub(crate) const WORK: usize = 6;
/// The length of an entry, in words.
pub(crate) const NAME: usize = 5;
pub(crate) const CALL: usize = 4;
/// Rank and time.
pub(crate) const STEP: usize = 2;
/// The words of a row.
pub(crate) const ROW: usize = 4;
/// Time and call, and the words of the rank.
pub(crate) const NOTE: usize = 8;

/// The use of spans: none, a digest, or each kept.
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
    /// The number of messages so far.
    pub posted: u64,
    /// The names of calls.
    names: Vec<[u64; NAME]>,
    listed: Log<NAME>,
    pub keeps_computing: bool,
    computed: Log<CALL>,
    steps: Log<STEP>,
    work: Log<ROW>,
    /// The kinds and classes of work whose time a rank has measured.
    known_work: Vec<(u64, u32)>,
    pub keeps_notes: bool,
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
                // The multiplication carries each bit upwards, the rotation brings it down again.
                const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
                for word in words {
                    self.digest = (self.digest ^ word).wrapping_mul(ODD).rotate_left(29);
                }
            }
        }
    }

    /// Records an activity of a resource.
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

    /// Records an MPI call of a rank's program, where activity is recorded.
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

    /// Keeps a note of a rank in a call.
    pub(crate) fn keep_note(&mut self, time: Time, call: &str, note: device::Note) {
        if self.keeps_notes {
            let name = self.name(call);
            let [a, b, c, d, e, f] = note;
            self.notes.push([time, name.into(), a, b, c, d, e, f]);
        }
    }

    /// Takes the notes since the last call, each with its time.
    pub(crate) fn take_notes(&mut self) -> std::vec::Vec<(Time, device::Note)> {
        let kept = self.notes.take();
        let note = |[time, _, note @ ..]: [u64; NOTE]| (time, note);
        kept.entries.into_iter().map(note).collect()
    }

    /// Takes the spans since the last call.
    pub(crate) fn take_spans(&mut self) -> std::vec::Vec<Span> {
        let kept = self.spans.take();
        kept.entries.into_iter().filter_map(Span::decode).collect()
    }

    /// The digest of everything that was recorded.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Records a call of a rank with the computing time before it; `times` is 0 for a call with a
    /// result, else the number of equal calls without one.
    pub(crate) fn keep_computed(&mut self, rank: u32, call: &ProgramCall, times: u64) {
        if self.keeps_computing {
            let name = self.name(call.name);
            let who = u64::from(rank) << 32 | u64::from(name);
            let entry = [who, call.computed, times, call.key.pack()];
            self.computed.push(entry);
        }
    }

    /// Computing is recorded, and this is the first question for work of this kind and class.
    pub(crate) fn is_new_work(&mut self, work: (u64, u32)) -> bool {
        let known = &mut self.known_work;
        let is_new = self.keeps_computing && !known.contains(&work);
        if is_new {
            known.push(work);
        }
        is_new
    }

    /// Keeps a row of a rank's work on its own memory, where computing is recorded.
    pub(crate) fn keep_local_work(&mut self, row: [u64; ROW]) {
        if self.keeps_computing {
            self.work.push(row);
        }
    }

    /// Keeps the time at which a rank begins a step.
    pub(crate) fn keep_step(&mut self, rank: u32, time: Time) {
        self.steps.push([rank.into(), time]);
    }

    /// The number of a call's name.
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
