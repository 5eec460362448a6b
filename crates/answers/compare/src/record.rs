//! The record of a program: several traces for each number of ranks, one after another in one file.
//!
//! A run may be disturbed by other work on this computer or by chance, and a disturbed rank cannot
//! be distinguished from one that has more work. The program is therefore recorded several times,
//! the median over the recordings is used for each call, and the times without one of the
//! recordings show how much is due to chance.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use profile::RankComputing;
use replay::Computing;
use trace::Trace;

use crate::work::{Marks, Wanted, Work};

/// The recordings of one program.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Record {
    /// The recordings for each number of ranks, in the user's order.
    pub counts: Vec<Recordings>,
}

/// The recordings with one number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Recordings {
    /// The number of ranks.
    pub ranks: usize,
    /// The trace of each run, with its computing.
    pub recordings: Vec<Computing>,
    /// The greatest number of threads of a rank that computed at the same time.
    pub threads: usize,
    /// The loop and the differences between ranks that were found in the recordings. `None` until
    /// `find_work` has run.
    pub work: Option<Work>,
}

/// The program and its arguments as one line, as traces name it.
pub fn words(program: &[OsString]) -> String {
    let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").replace(char::is_control, "?")
}

/// One recording of a program, with a fact about the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recording {
    pub(crate) computing: Computing,
    /// True if the system or the hypervisor interrupted a rank while it computed.
    pub(crate) disturbed: bool,
}

/// The greatest share of stolen time that does not count as a disturbance: half of the difference
/// with which times count as equal.
const STOLEN: f64 = 0.01;
/// The computing time in which one interruption is normal, in seconds: time slices are not much
/// shorter.
const SLICE: f64 = 0.01;

/// True if a recording was disturbed: a hypervisor took time of this computer, or a rank was
/// interrupted while it computed, more often than once plus once for each time slice.
pub(crate) fn is_disturbed(stolen: f64, ranks: &[RankComputing]) -> bool {
    let many = |rank: &RankComputing| rank.switches as f64 > 1.0 + rank.computing_s / SLICE;
    stolen > STOLEN || ranks.iter().any(many)
}

/// Recordings that are being made with one number of ranks.
#[derive(Default)]
pub(crate) struct Collection {
    /// The recordings that are used.
    pub(crate) used: Vec<Computing>,
    /// Disturbed recordings. They are used only if there are too few others.
    aside: Vec<Computing>,
    /// The number of disturbed recordings that are used all the same.
    counted: usize,
}

impl Collection {
    /// The number of recordings that have been made.
    pub(crate) fn made(&self) -> usize {
        self.used.len() + self.aside.len()
    }

    /// Makes recordings until `wanted` are usable. A disturbed one is made again, as long as fewer
    /// than `most` have been made.
    pub(crate) fn fill(
        &mut self,
        wanted: usize,
        most: usize,
        mut record: impl FnMut() -> Result<Recording>,
    ) -> Result<()> {
        while self.used.len() < wanted && self.made() < most {
            let made = record()?;
            match made.disturbed {
                true => self.aside.push(made.computing),
                false => self.used.push(made.computing),
            }
        }
        let lacking = wanted.min(most).saturating_sub(self.used.len());
        let taken = lacking.min(self.aside.len());
        self.used.extend(self.aside.drain(..taken));
        self.counted += taken;
        Ok(())
    }

    /// Makes a further pair of recordings, as [`Collection::fill`] makes them: the announced number
    /// of replays is that of pairs.
    pub(crate) fn add_pair(
        &mut self,
        most: usize,
        record: impl FnMut() -> Result<Recording>,
    ) -> Result<()> {
        self.fill(self.used.len() + 2, most, record)
    }

    /// The usable recordings, as those with `ranks` ranks.
    pub(crate) fn of(&self, ranks: usize) -> Recordings {
        let mut recordings = Recordings::new(ranks);
        self.used
            .iter()
            .cloned()
            .for_each(|one| recordings.add(one));
        recordings
    }

    /// A remark for the user about disturbed recordings; `None` if there are none.
    pub(crate) fn remark(&self, ranks: usize) -> Option<String> {
        let all = self.aside.len() + self.counted;
        let (recordings, were) = match all {
            0 => return None,
            1 => ("recording", "was"),
            _ => ("recordings", "were"),
        };
        let kept = match self.counted {
            0 => "made again".to_owned(),
            kept if kept == all => "count all the same".into(),
            kept => format!("{} made again, {kept} count all the same", all - kept),
        };
        Some(format!(
            "{all} {recordings} of {ranks} ranks {were} disturbed (a rank was interrupted while it computed, or a hypervisor took time): {kept}"
        ))
    }
}

impl Recordings {
    /// The recordings with `ranks` ranks, none of which has been made yet.
    pub fn new(ranks: usize) -> Recordings {
        Recordings {
            ranks,
            recordings: Vec::new(),
            threads: 1,
            work: None,
        }
    }

    fn add(&mut self, recording: Computing) {
        self.threads = self.threads.max(recording.recorded().threads());
        self.recordings.push(recording);
    }

    /// The recording to replay: for each call the median over all recordings, or over all but one.
    /// Without a common sequence of calls it is one of them, the one in the middle.
    pub fn middle(&self, without: Option<usize>) -> Option<Computing> {
        let numbered = self.recordings.iter().enumerate();
        let others = numbered.filter(|(number, _)| Some(*number) != without);
        let others: Vec<&Computing> = others.map(|(_, one)| one).collect();
        Computing::middle(&others)
    }

    /// Finds the loop, and the differences between ranks, in the recordings.
    pub(crate) fn find_work(&mut self, wanted: &Wanted) -> Result<()> {
        let middle = self.middle(None).context("there is no recording")?;
        let found = Work::of(&middle, wanted).map_err(|why| {
            let ranks = self.ranks;
            anyhow!("the part to compare, with {ranks} ranks: {why}")
        })?;
        self.work = Some(found);
        Ok(())
    }

    /// The loop in all recordings, or in all but one. `None`: they have none.
    pub(crate) fn marks(&self, without: Option<usize>, wanted: &Wanted) -> Option<Marks> {
        let found = |work: &Work| work.found.as_ref().ok().cloned();
        match self.same_without(without) {
            // What remains without this recording has other calls, so search its own loop.
            Some(other) if !self.have_equal_calls() => {
                found(&Work::of(&self.middle(Some(other))?, wanted).ok()?)
            }
            _ => found(self.work.as_ref()?),
        }
    }

    /// The first recording without which the same remains; `None` if leaving out `without` changes
    /// nothing. If the calls of the recordings differ, a single one is replayed, and leaving out
    /// one of the others usually changes nothing.
    pub(crate) fn same_without(&self, without: Option<usize>) -> Option<usize> {
        let left_out = without?;
        if self.are_aligned() {
            return without;
        }
        let wanted = self.middle(without);
        match self.middle(None) == wanted {
            true => None,
            false => (0..left_out)
                .find(|other| self.middle(Some(*other)) == wanted)
                .or(without),
        }
    }

    /// True if all recordings have the same completed calls, so that each call has a median.
    pub fn are_aligned(&self) -> bool {
        Computing::median(&self.recordings.iter().collect::<Vec<_>>()).is_some()
    }

    /// True if the median has the same calls, whichever recording is left out.
    fn have_equal_calls(&self) -> bool {
        Computing::have_equal_calls(&self.recordings.iter().collect::<Vec<_>>())
    }
}

impl Record {
    /// The record of these traces, with the numbers of ranks in `ranks` alone, in this order.
    ///
    /// # Errors
    /// A trace that cannot be replayed, or a number of ranks that none has.
    pub(crate) fn of_traces(traces: &[Arc<Trace>], ranks: &[usize]) -> Result<Record> {
        let mut record = Record::default();
        for ranks in ranks {
            let mut of = Recordings::new(*ranks);
            for trace in traces.iter().filter(|trace| trace.ranks.len() == *ranks) {
                let computing = Computing::of(Arc::clone(trace));
                of.add(computing.map_err(|why| anyhow!("the trace: {why}"))?);
            }
            record.counts.push(of);
        }
        Ok(record)
    }

    /// Writes the recordings to a file.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let recordings = self.counts.iter().flat_map(|of| &of.recordings);
        let traces = recordings.map(|one| one.recorded().write());
        std::fs::write(file, traces.collect::<Vec<_>>().concat())
            .with_context(|| format!("--record {}", file.display()))
    }

    /// The recordings with a number of ranks.
    pub fn of(&self, ranks: usize) -> Option<&Recordings> {
        self.counts.iter().find(|of| of.ranks == ranks)
    }

    /// The recordings with these numbers of ranks.
    pub(crate) fn with(&self, ranks: &[usize]) -> Record {
        let counts = self.counts.iter();
        let counts = counts.filter(|of| ranks.contains(&of.ranks));
        Record {
            counts: counts.cloned().collect(),
        }
    }

    /// The different notes of the recorded traces.
    pub(crate) fn notes(&self) -> Vec<String> {
        let recordings = self.counts.iter().flat_map(|of| &of.recordings);
        let notes = recordings.flat_map(|one| one.recorded().notes.iter().cloned());
        results::table::distinct(notes)
    }

    /// True if a recording has receives from any source.
    pub(crate) fn has_wildcards(&self) -> bool {
        let mut recordings = self.counts.iter().flat_map(|of| &of.recordings);
        recordings.any(|one| one.recorded().has_wildcards())
    }
}

#[cfg(test)]
mod tests;
