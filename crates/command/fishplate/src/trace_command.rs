//! `fishplate trace`: what a trace has, and traces without a program.

mod convert;
mod cut;
mod times;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use replay::Computing;
use results::arguments::{ANY, whole_number};
use serde_json::json;
use trace::{Fact, Item, Pattern, Recipe, Trace, Value};

use crate::output::Output;
use crate::record_command::{MergeArguments, merge_folder};
use crate::refuse;
use crate::trace_file::read;
use convert::{ExportArguments, ImportArguments};
use cut::CutArguments;
use times::Times;

/// Show, check, cut, scale, make and convert traces.
///
/// `fishplate run --record FILE` records the trace of a program, and `fishplate run --fabric
/// MACHINE FILE` replays it on a modelled machine.
#[derive(Args)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show the ranks, calls, bytes and computing of a trace
    Show {
        /// The trace
        file: PathBuf,

        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check that a file is a whole trace whose calls can be replayed
    Check {
        /// The trace
        file: PathBuf,
    },
    /// Write some ranks or some iterations of a trace
    Cut(CutArguments),
    /// Read the trace of another tool
    Import(ImportArguments),
    /// Write a trace in the format of another tool
    Export(ExportArguments),
    /// Write a trace whose computing takes FACTOR times as long
    Scale {
        /// The trace
        file: PathBuf,

        /// The time of computing, as a multiple of that in the trace
        #[arg(long, value_name = "FACTOR", value_parser = factor)]
        computing: u64,

        /// The file to write
        #[arg(short = 'o', long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Write a trace whose loops have the times of a few turns, which takes fewer bytes
    FoldTimes {
        /// The trace
        file: PathBuf,

        /// The file to write
        #[arg(short = 'o', long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make a trace of a well-known pattern of communication
    Make(MakeArguments),
    /// Merge the parts of a recording, after a job that was recorded by variables alone
    Merge(MergeArguments),
}

#[derive(Args)]
struct MakeArguments {
    /// The pattern of each step
    #[arg(value_parser = patterns())]
    pattern: Pattern,

    /// Number of ranks
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = |word: &str| whole_number::<usize>(word, 1..=1 << 20))]
    ranks: usize,

    /// Number of steps
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = |word: &str| whole_number::<u64>(word, 1..=10_000_000))]
    steps: u64,

    /// Bytes of each message, or of each rank's vector
    #[arg(long, value_name = "BYTES", default_value_t = 8192, value_parser = |word: &str| whole_number::<u64>(word, 0..=1 << 30))]
    size: u64,

    /// Computing of each rank in each step, in nanoseconds
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, value_parser = |word: &str| whole_number::<u64>(word, ANY))]
    compute: u64,

    /// End every step, or every so many steps, with a sum of 8 bytes over all ranks
    #[arg(long, value_name = "STEPS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = |word: &str| whole_number::<u64>(word, 1..=10_000_000))]
    sum: Option<u64>,

    /// Seed of `permutation`
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = |word: &str| whole_number::<u64>(word, ANY))]
    seed: u64,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
}

/// The parser of the name of a pattern.
fn patterns() -> impl TypedValueParser<Value = Pattern> {
    let names = Pattern::ALL.map(|(_, name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names).map(|word| {
        let mut all = Pattern::ALL.into_iter().map(|(pattern, ..)| pattern);
        let found = all.find(|pattern| pattern.name() == word);
        found.expect("one of the possible values")
    })
}

pub(crate) fn main(arguments: TraceArguments) -> ExitCode {
    let done = match arguments.action {
        Action::Show { file, json } => read(&file).map(|trace| match json {
            true => json_of(&trace),
            false => shown(&trace),
        }),
        Action::Check { file } => read(&file).and_then(|trace| checked(&file, &trace)),
        Action::Scale {
            file,
            computing,
            output,
        } => scale(&file, computing, &output).map(|()| String::new()),
        Action::Cut(arguments) => cut::cut(&arguments),
        Action::Import(arguments) => convert::import(&arguments),
        Action::Export(arguments) => convert::export(&arguments),
        Action::FoldTimes { file, output } => read(&file)
            .and_then(|trace| written(&output, &trace.with_folded_times()))
            .map(|()| String::new()),
        Action::Make(arguments) => make(&arguments).map(|()| String::new()),
        Action::Merge(arguments) => merge_folder(&arguments).map(|()| String::new()),
    };
    match done {
        Ok(text) => {
            // It is no error if the reader has closed the pipe.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => refuse(&why),
    }
}

fn checked(file: &Path, trace: &Trace) -> Result<String, String> {
    replay::check(trace).map_err(|why| format!("{}: {why}", file.display()))?;
    let (ranks, counts) = (trace.ranks.len(), Counts::of(trace));
    Ok(format!(
        "{ranks} ranks, {} calls: they can be replayed\n",
        counts.calls()
    ))
}

/// Parses a factor of computing, and returns it in thousandths.
fn factor(word: &str) -> Result<u64, String> {
    match word.parse::<f64>() {
        Ok(number) if number == 0.0 || (0.001..=1000.0).contains(&number) => {
            Ok((number * 1000.0).round() as u64)
        }
        _ => Err("valid are 0 and 0.001 to 1000".into()),
    }
}

fn scale(file: &Path, thousandths: u64, output: &Path) -> Result<(), String> {
    let trace = Arc::new(read(file)?);
    let computing = Computing::of(Arc::clone(&trace));
    let computing = computing.map_err(|why| format!("{}: {why}", file.display()))?;
    let mut scaled = computing.scaled(thousandths).trace(&[]);
    let factor = thousandths as f64 / 1000.0;
    scaled.notes.clone_from(&trace.notes);
    scaled.notes.push(format!("computing times {factor}"));
    written(output, &scaled)
}

/// Writes a trace to a file.
fn written(file: &Path, trace: &Trace) -> Result<(), String> {
    let output = Output::create("--output", file)?;
    output.fill(|to| to.write_all(&trace.write()).map(|()| None))
}

fn make(arguments: &MakeArguments) -> Result<(), String> {
    let recipe = Recipe {
        pattern: arguments.pattern,
        ranks: arguments.ranks,
        steps: arguments.steps,
        bytes: arguments.size,
        nanos: arguments.compute,
        sum_every: arguments.sum.unwrap_or(0),
        seed: arguments.seed,
    };
    let name = arguments.pattern.name();
    let trace = recipe.make(format!("trace make {name}"));
    written(&arguments.output, &trace)
}

/// The counts of a trace's calls, by procedure.
#[derive(Default)]
struct Counts {
    /// For each procedure its calls, and the bytes that they send.
    procedures: BTreeMap<String, (u64, u128)>,
    /// The computing of all ranks together, in nanoseconds.
    nanos: u128,
}

impl Counts {
    fn of(trace: &Trace) -> Counts {
        let mut counts = Counts::default();
        let mut times = vec![0u64; trace.sequences.len()];
        for rank in &trace.ranks {
            times[rank.sequence as usize] += 1;
            let runs = rank.gaps.runs().iter();
            counts.nanos += runs
                .map(|&(nanos, run)| u128::from(nanos) * u128::from(run))
                .sum::<u128>();
        }
        // A sequence refers to earlier ones only, so all its turns are known when it is reached.
        for (number, items) in trace.sequences.iter().enumerate().rev() {
            for item in items {
                match *item {
                    Item::Call(call) => counts.add(trace, call, times[number]),
                    Item::Loop(turns, body) => {
                        let more = times[number].saturating_mul(turns);
                        let all = &mut times[body as usize];
                        *all = all.saturating_add(more);
                    }
                }
            }
        }
        counts
    }

    fn add(&mut self, trace: &Trace, call: u32, times: u64) {
        if Fact::of(trace.signature(call)).is_some() {
            return;
        }
        let name = trace.signature(call).name.clone();
        let own = self.procedures.entry(name).or_default();
        own.0 = own.0.saturating_add(times);
        own.1 += u128::from(times) * u128::from(sent(trace, call));
    }

    /// The procedures, the most frequent one first: name, calls, bytes that they send.
    fn by_frequency(&self) -> Vec<(&str, u64, u128)> {
        let all = self.procedures.iter();
        let mut all: Vec<_> = all
            .map(|(name, own)| (name.as_str(), own.0, own.1))
            .collect();
        all.sort_by_key(|&(name, calls, _)| (std::cmp::Reverse(calls), name));
        all
    }

    /// The computing of a rank on average, in seconds.
    fn seconds_a_rank(&self, ranks: usize) -> f64 {
        self.nanos as f64 * 1e-9 / ranks.max(1) as f64
    }

    fn calls(&self) -> u64 {
        let all = self.procedures.values().map(|own| own.0);
        all.fold(0, u64::saturating_add)
    }
}

/// The bytes of the first buffer of a call, if its datatype is predefined.
fn sent(trace: &Trace, call: u32) -> u64 {
    let (signature, values) = (trace.signature(call), &trace.calls[call as usize].values);
    let pair = signature
        .parameters
        .windows(2)
        .position(|two| two[0].kind == "count" && two[1].kind == "datatype");
    let Some(at) = pair else { return 0 };
    match (&values[at], &values[at + 1]) {
        (Value::Number(count), Value::Number(datatype)) => {
            let size = replay::size_of(*datatype).unwrap_or(0);
            u64::try_from(*count).unwrap_or(0).saturating_mul(size)
        }
        _ => 0,
    }
}

fn json_of(trace: &Trace) -> String {
    let counts = Counts::of(trace);
    let procedures = counts.by_frequency().into_iter();
    let measured = Times::of(trace);
    let procedures = procedures.map(|(name, calls, bytes)| {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut row = json!({"name": name, "calls": calls, "bytes": bytes});
        if let Some(times) = &measured {
            row["inside_s_per_rank"] = json!(times.inside(name));
        }
        row
    });
    let mut object = json!({
        "program": trace.program,
        "ranks": trace.ranks.len(),
        "notes": trace.notes,
        "computing_s_per_rank": counts.seconds_a_rank(trace.ranks.len()),
        "calls": counts.calls(),
        "different_calls": trace.calls.len(),
        "sequences": trace.sequences.len(),
        "procedures": procedures.collect::<Vec<_>>(),
    });
    if let Some(times) = &measured {
        object["elapsed_s"] = json!(times.elapsed());
        object["outside_s_per_rank"] = json!(times.outside());
        for (key, rows) in times.json() {
            object[key] = rows;
        }
    }
    format!("{object}\n")
}

fn shown(trace: &Trace) -> String {
    let counts = Counts::of(trace);
    let ranks = trace.ranks.len();
    let mut text = format!("{} on {ranks} ranks\n", terminal_text::line(&trace.program));
    for note in &trace.notes {
        let _ = writeln!(text, "  {}", terminal_text::line(note));
    }
    let _ = writeln!(
        text,
        "  computing      {} a rank",
        crate::summary::duration(counts.seconds_a_rank(ranks))
    );
    let measured = Times::of(trace);
    if let Some(times) = &measured {
        let _ = writeln!(
            text,
            "  measured       {} from MPI_Init to MPI_Finalize, {:.0} % of it inside MPI",
            crate::summary::duration(times.elapsed()),
            100.0 * (1.0 - times.outside() / times.elapsed().max(f64::MIN_POSITIVE)).max(0.0)
        );
    }
    let _ = writeln!(
        text,
        "  calls          {}, {} of them different, in {} sequences",
        counts.calls(),
        trace.calls.len(),
        trace.sequences.len()
    );
    for (name, calls, bytes) in counts.by_frequency() {
        let bytes = match bytes {
            0 => String::new(),
            bytes => format!("  {bytes} B"),
        };
        let inside = measured.as_ref().map(|times| {
            let seconds = crate::summary::duration(times.inside(name));
            format!("  {seconds:>8} a rank")
        });
        let inside = inside.unwrap_or_default();
        let _ = writeln!(text, "    {name:<28} {calls:>12}{inside}{bytes}");
    }
    text.extend(measured.iter().map(Times::lines));
    text
}
