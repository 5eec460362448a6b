//! The record of a program's computing: several compute traces for each number of ranks, in one
//! file.
//!
//! A run may be disturbed by other work on this computer or by chance, and a disturbed rank cannot
//! be distinguished from one that has more work. The program is therefore recorded several times,
//! the median over the recordings is used for each call, and the times without one of the
//! recordings show how much is due to chance.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use model::compute_trace::ComputeTrace;
use profile::RankComputing;

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
    /// One compute trace for each run.
    pub traces: Vec<ComputeTrace>,
    /// The greatest number of threads of a rank that computed at the same time.
    pub threads: usize,
    /// The loop and the differences between ranks that were found in the recordings. `None` until
    /// `find_work` has run.
    pub work: Option<Work>,
}

/// Begins a line at the end of a file: the number of threads of a rank, if there are several.
const THREADS: &str = "# threads of a rank, with ";

/// The program and its arguments as one line, as compute traces name it.
pub fn words(program: &[OsString]) -> String {
    let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").replace(char::is_control, "?")
}

/// One recording of a program: its compute trace, with facts about the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recording {
    pub(crate) trace: ComputeTrace,
    /// True if the system or the hypervisor interrupted a rank while it computed.
    pub(crate) disturbed: bool,
    /// The greatest number of threads of a rank that computed at the same time.
    pub(crate) threads: usize,
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
    pub(crate) traces: Vec<ComputeTrace>,
    /// Disturbed recordings. They are used only if there are too few others.
    aside: Vec<ComputeTrace>,
    /// The number of disturbed recordings that are used all the same.
    counted: usize,
    /// The greatest number of threads of a rank in any of the recordings.
    threads: usize,
}

impl Collection {
    /// The number of recordings that have been made.
    pub(crate) fn made(&self) -> usize {
        self.traces.len() + self.aside.len()
    }

    /// Makes recordings until `wanted` are usable. A disturbed one is made again, as long as fewer
    /// than `most` have been made.
    pub(crate) fn fill(
        &mut self,
        wanted: usize,
        most: usize,
        mut record: impl FnMut() -> Result<Recording>,
    ) -> Result<()> {
        while self.traces.len() < wanted && self.made() < most {
            let made = record()?;
            self.threads = self.threads.max(made.threads);
            match made.disturbed {
                true => self.aside.push(made.trace),
                false => self.traces.push(made.trace),
            }
        }
        let lacking = wanted.min(most).saturating_sub(self.traces.len());
        let taken = lacking.min(self.aside.len());
        self.traces.extend(self.aside.drain(..taken));
        self.counted += taken;
        Ok(())
    }

    /// The usable recordings, as those with `ranks` ranks.
    pub(crate) fn of(&self, ranks: usize) -> Recordings {
        Recordings {
            ranks,
            traces: self.traces.clone(),
            threads: self.threads.max(1),
            work: None,
        }
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
            traces: Vec::new(),
            threads: 1,
            work: None,
        }
    }

    /// The trace to replay: for each call the median over all recordings, or over all but one.
    /// Without a common sequence of calls it is one recording, the one in the middle.
    pub fn middle(&self, without: Option<usize>) -> Option<ComputeTrace> {
        let numbered = self.traces.iter().enumerate();
        let others = numbered.filter(|(number, _)| Some(*number) != without);
        let others: Vec<&ComputeTrace> = others.map(|(_, trace)| trace).collect();
        ComputeTrace::middle(&others)
    }

    /// Finds the loop, and the differences between ranks, in the recordings.
    pub(crate) fn find_work(&mut self, wanted: &Wanted) -> Result<()> {
        let trace = self.middle(None).context("there is no recording")?;
        let found = Work::of(&trace, wanted).map_err(|why| {
            let ranks = self.ranks;
            anyhow!("the part to compare, with {ranks} ranks: {why}")
        })?;
        self.work = Some(found);
        Ok(())
    }

    /// The loop in the trace of all recordings, or of all but one. `None`: the trace has none.
    pub(crate) fn marks(&self, without: Option<usize>, wanted: &Wanted) -> Option<Marks> {
        let found = |work: &Work| work.found.as_ref().ok().cloned();
        match self.same_without(without) {
            // The trace without this recording has other calls, so search its own loop.
            Some(other) if !self.have_equal_calls() => {
                found(&Work::of(&self.middle(Some(other))?, wanted).ok()?)
            }
            _ => found(self.work.as_ref()?),
        }
    }

    /// The first recording that gives the same trace if it is left out; `None` if leaving out
    /// `without` changes nothing. If the calls of the recordings differ, the trace is a single
    /// recording, and leaving out one of the others usually changes nothing.
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
        ComputeTrace::median(&self.traces.iter().collect::<Vec<_>>()).is_some()
    }

    /// True if the median has the same calls, whichever recording is left out.
    fn have_equal_calls(&self) -> bool {
        ComputeTrace::have_equal_calls(&self.traces.iter().collect::<Vec<_>>())
    }
}

impl Record {
    /// The record that has this recording alone.
    pub(crate) fn single(trace: ComputeTrace) -> Record {
        let mut record = Record::default();
        record.add(trace);
        record
    }

    /// Reads a record from a file. An error if the file lacks one of the numbers of ranks, or is of
    /// another program.
    pub fn read(file: &Path, program: &[OsString], ranks: &[usize]) -> Result<Record> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("--replay {}", file.display()))?;
        let record = Record::parse(&text, &words(program));
        let record = record.and_then(|record| record.choose(ranks));
        record.map_err(|why| anyhow!("--replay {}: {why}", file.display()))
    }

    /// Parses a file with traces of `program`.
    fn parse(text: &str, program: &str) -> Result<Record, String> {
        let mut record = Record::default();
        let mut rest = text;
        let mut before = 0;
        while !rest.trim().is_empty() {
            if rest.starts_with(THREADS) {
                record.add_threads(rest)?;
                break;
            }
            let end = rest
                .find("\nend\n")
                .map_or(rest.len(), |at| at + "\nend\n".len());
            let (one, others) = rest.split_at(end);
            let in_file = |why: String| match before {
                0 => why,
                lines => format!("after line {lines}: {why}"),
            };
            let trace = ComputeTrace::parse(one).map_err(in_file)?;
            let ranks = trace.ranks();
            trace.check(program, ranks).map_err(in_file)?;
            record.add(trace);
            before += one.lines().count();
            rest = others;
        }
        match record.counts.is_empty() {
            true => Err("it is empty".into()),
            false => Ok(record),
        }
    }

    /// Reads the lines at the end of a file: for a number of ranks, the number of threads of each
    /// rank.
    fn add_threads(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            let numbers = line.strip_prefix(THREADS).unwrap_or_default();
            let numbers: Vec<usize> = numbers
                .split(" ranks: ")
                .filter_map(|word| word.parse().ok())
                .collect();
            let of = self.counts.iter_mut();
            match (numbers.as_slice(), of) {
                ([ranks, threads], mut of) if *threads > 0 => {
                    let of = of.find(|of| of.ranks == *ranks);
                    of.ok_or_else(|| format!("`{line}` is of no recording"))?
                        .threads = *threads;
                }
                _ => return Err(format!("`{line}` is no line of threads")),
            }
        }
        Ok(())
    }

    fn add(&mut self, trace: ComputeTrace) {
        let ranks = trace.ranks();
        match self.counts.iter_mut().find(|of| of.ranks == ranks) {
            Some(of) => of.traces.push(trace),
            None => self.counts.push(Recordings {
                ranks,
                traces: vec![trace],
                ..Recordings::new(ranks)
            }),
        }
    }

    /// Selects the recordings with these numbers of ranks, in this order.
    fn choose(self, ranks: &[usize]) -> Result<Record, String> {
        let has: Vec<String> = self.counts.iter().map(|of| of.ranks.to_string()).collect();
        let one = |wanted: &usize| {
            let found = self.counts.iter().find(|of| of.ranks == *wanted);
            found.cloned().ok_or_else(|| {
                format!(
                    "it has no record of {wanted} ranks, but of {}; record again with --record",
                    has.join(", ")
                )
            })
        };
        let counts: Result<Vec<_>, String> = ranks.iter().map(one).collect();
        Ok(Record { counts: counts? })
    }

    /// Writes the record to a file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let traces = self.counts.iter().flat_map(|of| &of.traces);
        let mut text: String = traces.map(ComputeTrace::text).collect();
        let threads = self.counts.iter().filter(|of| of.threads > 1);
        text.extend(threads.map(|of| format!("{THREADS}{} ranks: {}\n", of.ranks, of.threads)));
        std::fs::write(file, text).with_context(|| format!("--record {}", file.display()))
    }

    /// The recordings with a number of ranks.
    pub fn of(&self, ranks: usize) -> Option<&Recordings> {
        self.counts.iter().find(|of| of.ranks == ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(ranks: usize) -> String {
        let mut text = format!(
            "# fishplate: what each rank computed before each of its calls, in nanoseconds\nversion 3\nprogram ./a 1\nranks {ranks}\n"
        );
        for rank in 0..ranks {
            text += &format!("rank {rank} calls 1\nMPI_Finalize 5\n");
        }
        text + "end\n"
    }

    #[test]
    fn a_file_has_the_recordings_of_each_number_of_ranks() {
        let text = trace(2) + &trace(4) + &trace(2);
        let record = Record::parse(&text, "./a 1").unwrap();
        let counts = record.counts.iter().map(|of| (of.ranks, of.traces.len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(2, 2), (4, 1)]);
        let chosen = record.clone().choose(&[4]).unwrap();
        assert_eq!(chosen.of(4).unwrap().traces[0].text(), trace(4));
        assert_eq!(chosen.of(2), None);
        let why = record.choose(&[4, 8]).unwrap_err();
        assert!(
            why.starts_with("it has no record of 8 ranks, but of 2, 4"),
            "{why}"
        );
    }

    #[test]
    fn a_file_has_the_threads_of_ranks() {
        let text = trace(2) + &trace(4) + "# threads of a rank, with 4 ranks: 3\n";
        let record = Record::parse(&text, "./a 1").unwrap();
        assert_eq!(
            [2, 4].map(|ranks| record.of(ranks).unwrap().threads),
            [1, 3]
        );
        for wrong in [
            "4 ranks: many\n",
            "8 ranks: 3\n",
            "4 ranks: 3\nmore\n",
            "4 ranks: 0\n",
        ] {
            let text = trace(4) + "# threads of a rank, with " + wrong;
            assert!(Record::parse(&text, "./a 1").is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_recording_can_be_left_out() {
        let with =
            |nanos: u64| trace(1).replace("MPI_Finalize 5", &format!("MPI_Finalize {nanos}"));
        let text: String = [5, 900, 7].into_iter().map(with).collect();
        let record = Record::parse(&text, "./a 1").unwrap();
        let of = record.of(1).unwrap();
        assert!(of.are_aligned());
        let total = |without| of.middle(without).unwrap().total();
        assert_eq!([None, Some(0), Some(1)].map(total), [7, 453, 6]);
        assert_eq!(Recordings::new(3).middle(None), None);
    }

    #[test]
    fn recordings_without_a_median_are_replayed_once() {
        let with = |call: &str| trace(1).replace("MPI_Finalize 5", call);
        let text: String = [
            "MPI_Finalize 5",
            "MPI_Send 7\nMPI_Finalize 2",
            "MPI_Recv 4\nMPI_Finalize 4",
        ]
        .map(with)
        .concat()
        .replace("calls 1\nMPI_Send", "calls 2\nMPI_Send")
        .replace("calls 1\nMPI_Recv", "calls 2\nMPI_Recv");
        let record = Record::parse(&text, "./a 1").unwrap();
        let of = record.of(1).unwrap();
        assert!(!of.are_aligned());
        let same = [None, Some(0), Some(1), Some(2)].map(|without| of.same_without(without));
        assert_eq!(same, [None, None, Some(1), Some(1)]);
    }

    #[test]
    fn a_rank_that_is_interrupted_often_is_disturbed() {
        let rank = |switches, computing_s| RankComputing {
            rank: 0,
            switches,
            computing_s,
            threads: 1,
        };
        assert!(!is_disturbed(0.0, &[rank(1, 0.0007), rank(0, 0.0007)]));
        assert!(is_disturbed(0.0, &[rank(0, 0.0007), rank(2, 0.0007)]));
        assert!(!is_disturbed(0.0, &[rank(20, 0.25)]));
        assert!(is_disturbed(0.0, &[rank(80, 0.25)]));
        assert!(is_disturbed(0.02, &[]));
    }

    /// Fills a collection; the recordings with these numbers are disturbed. Returns the numbers of
    /// the used recordings, the number made, and the remark.
    fn filled(
        wanted: usize,
        most: usize,
        disturbed: &[usize],
    ) -> (Vec<u64>, usize, Option<String>) {
        let mut number = 0;
        let mut collection = Collection::default();
        let record = || {
            number += 1;
            let text = trace(1).replace("MPI_Finalize 5", &format!("MPI_Finalize {number}"));
            Ok(Recording {
                trace: ComputeTrace::parse(&text).unwrap(),
                disturbed: disturbed.contains(&number),
                threads: 1,
            })
        };
        collection.fill(wanted, most, record).unwrap();
        let totals = collection.traces.iter().map(ComputeTrace::total);
        (totals.collect(), collection.made(), collection.remark(1))
    }

    #[test]
    fn a_disturbed_recording_is_made_again() {
        assert_eq!(filled(3, 9, &[]), (vec![1, 2, 3], 3, None));
        let (kept, made, remark) = filled(3, 9, &[1, 3]);
        assert_eq!((kept, made), (vec![2, 4, 5], 5));
        assert!(remark.unwrap().ends_with("2 recordings of 1 ranks were disturbed (a rank was interrupted while it computed, or a hypervisor took time): made again"));
        // On a computer that is never quiet, disturbed recordings are used after `most` attempts.
        let (kept, made, remark) = filled(3, 9, &[1, 2, 3, 4, 5, 6, 7, 9]);
        assert_eq!((kept, made), (vec![8, 1, 2], 9));
        assert!(
            remark
                .unwrap()
                .ends_with("6 made again, 2 count all the same")
        );
        // The user wants exactly this number of recordings.
        let (kept, made, remark) = filled(2, 2, &[2]);
        assert_eq!((kept, made), (vec![1, 2], 2));
        assert!(remark.unwrap().ends_with("count all the same"));
    }

    #[test]
    fn another_program_and_a_damaged_file_are_refused() {
        let why = Record::parse(&trace(2), "./b 1").unwrap_err();
        assert!(why.contains("`./a 1`") && why.contains("`./b 1`"), "{why}");
        let why = Record::parse(&(trace(2) + &trace(4)[..200]), "./a 1").unwrap_err();
        assert!(
            why.starts_with("after line 9: ") && why.contains("cut off"),
            "{why}"
        );
        assert_eq!(Record::parse("\n", "./a 1").unwrap_err(), "it is empty");
    }
}
