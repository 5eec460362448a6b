//! The command line of `fishplate bench`.

mod choice;
mod collective;
mod every;
mod help;
mod measure;

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use results::arguments::{POSITIVE, whole_number};

pub(crate) use choice::{ChoiceOptions, OutputOptions, ROUNDS};
use collective::CollectiveCommand;
pub(crate) use measure::MeasureOptions;

use crate::benchmark::Benchmark;
use crate::file_access::{FileAccess, Pattern};
use crate::plan::WorkerPlan;
use crate::rounds::Case;
use crate::window_access::OneSided;

/// Measure MPI libraries: latency, bandwidth, collectives and start-up; and the limits of the
/// machine.
///
/// Benchmarks call any libmpi_abi.so.1 by the procedures of the OSU micro-benchmarks.
#[derive(Debug, Args)]
struct Definition {
    #[command(subcommand)]
    what: BenchCommand,
}

/// The arguments of `fishplate bench`.
#[derive(Debug)]
pub struct BenchArguments {
    pub(crate) what: BenchCommand,
}

impl FromArgMatches for BenchArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<BenchArguments, clap::Error> {
        let Definition { what } = Definition::from_arg_matches(matches)?;
        Ok(BenchArguments { what })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = BenchArguments::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for BenchArguments {
    fn augment_args(command: Command) -> Command {
        help::tailored(Definition::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        BenchArguments::augment_args(command)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// One-way latency of a ping-pong, by size
    Latency(MeasureOptions),
    /// Bandwidth of windows of messages in one direction
    Bw(MeasureOptions),
    /// Bandwidth of windows of messages in both directions at once
    Bibw(MeasureOptions),
    /// Message rate of all pairs of ranks together
    MbwMr(MeasureOptions),
    /// Launcher, MPI_Init and MPI_Finalize: wall-clock time, and memory after MPI_Init
    Init(MeasureOptions),
    /// Time of the first messages between two ranks, and the memory that they take, by size
    FirstTouch(FirstTouchOptions),
    /// MPI_Put with MPI_Win_flush, by size
    Put(MeasureOptions),
    /// MPI_Get with MPI_Win_flush, by size
    Get(MeasureOptions),
    /// MPI_Accumulate of 8-byte integers with MPI_Win_flush, by size
    Acc(MeasureOptions),
    /// MPI_Get_accumulate of 8-byte integers with MPI_Win_flush, by size
    GetAcc(MeasureOptions),
    /// MPI_Fetch_and_op of an 8-byte integer with MPI_Win_flush
    Fop(MeasureOptions),
    /// MPI_Compare_and_swap of an 8-byte integer with MPI_Win_flush
    Cas(MeasureOptions),
    /// Bandwidth of windows of MPI_Put, each with one MPI_Win_flush, by size
    PutBw(MeasureOptions),
    /// Bandwidth of windows of MPI_Get, each with one MPI_Win_flush, by size
    GetBw(MeasureOptions),
    /// Writes by IOR's patterns (MPI_File_write_at), by the size of a block
    FileWrite(FileOptions),
    /// Reads by IOR's patterns (MPI_File_read_at), by the size of a block
    FileRead(FileOptions),
    /// Collective writes of interleaved records (MPI_File_write_at_all), by the size of a record
    FileCollective(MeasureOptions),
    #[command(flatten)]
    Collective(CollectiveCommand),
    /// Messages of NAS LU: wavefronts over a grid of ranks, then faces, by the size of a plane's
    /// message
    Sweep(MeasureOptions),
    /// Messages of NAS IS: MPI_Allreduce, MPI_Alltoall and MPI_Alltoallv, by the size of a rank's
    /// part
    Sort(MeasureOptions),
    /// Limits of the machine, without MPI
    Limits(LimitsOptions),
    /// All benchmarks with a threshold, compared with other libraries
    Table(TableOptions),
}

impl BenchCommand {
    /// The options of a benchmark; `None` for `limits` and `table`, which have their own.
    pub(crate) fn options(&self) -> Option<&MeasureOptions> {
        Some(match self {
            BenchCommand::Latency(options)
            | BenchCommand::Bw(options)
            | BenchCommand::Bibw(options)
            | BenchCommand::MbwMr(options)
            | BenchCommand::Init(options)
            | BenchCommand::Put(options)
            | BenchCommand::Get(options)
            | BenchCommand::Acc(options)
            | BenchCommand::GetAcc(options)
            | BenchCommand::Fop(options)
            | BenchCommand::Cas(options)
            | BenchCommand::PutBw(options)
            | BenchCommand::GetBw(options)
            | BenchCommand::FileCollective(options)
            | BenchCommand::Sweep(options)
            | BenchCommand::Sort(options) => options,
            BenchCommand::FirstTouch(options) => &options.measure,
            BenchCommand::FileWrite(options) | BenchCommand::FileRead(options) => &options.measure,
            BenchCommand::Collective(command) => &command.options.measure,
            BenchCommand::Limits(_) | BenchCommand::Table(_) => return None,
        })
    }

    /// The cases that a benchmark measures; empty for `limits` and `table`.
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        match self {
            BenchCommand::Latency(options) => options.cases(Benchmark::Latency),
            BenchCommand::Bw(options) => options.cases(Benchmark::Bw),
            BenchCommand::Bibw(options) => options.cases(Benchmark::Bibw),
            BenchCommand::MbwMr(options) => options.cases(Benchmark::MbwMr),
            BenchCommand::Init(options) => options.cases(Benchmark::Init),
            BenchCommand::Put(options) => options.cases(Benchmark::OneSided(OneSided::Put)),
            BenchCommand::Get(options) => options.cases(Benchmark::OneSided(OneSided::Get)),
            BenchCommand::Acc(options) => options.cases(Benchmark::OneSided(OneSided::Acc)),
            BenchCommand::GetAcc(options) => options.cases(Benchmark::OneSided(OneSided::GetAcc)),
            BenchCommand::Fop(options) => options.cases(Benchmark::OneSided(OneSided::Fop)),
            BenchCommand::Cas(options) => options.cases(Benchmark::OneSided(OneSided::Cas)),
            BenchCommand::PutBw(options) => options.cases(Benchmark::OneSided(OneSided::PutBw)),
            BenchCommand::GetBw(options) => options.cases(Benchmark::OneSided(OneSided::GetBw)),
            BenchCommand::FileWrite(options) => options.cases(FileAccess::WRITE),
            BenchCommand::FileRead(options) => options.cases(FileAccess::READ),
            BenchCommand::FileCollective(options) => {
                options.cases(Benchmark::File(FileAccess::COLLECTIVE))
            }
            BenchCommand::Sweep(options) => options.cases(Benchmark::Sweep),
            BenchCommand::Sort(options) => options.cases(Benchmark::Sort),
            BenchCommand::FirstTouch(options) => options.cases(),
            BenchCommand::Collective(command) => command.cases(),
            BenchCommand::Limits(_) | BenchCommand::Table(_) => Ok(Vec::new()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FirstTouchOptions {
    /// Numbers of first messages; a job measures one number of one size
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "10,100,1000",
        value_parser = |word: &str| whole_number::<u64>(word, POSITIVE))]
    pub(crate) messages: Vec<u64>,
    #[command(flatten)]
    pub(crate) measure: MeasureOptions,
}

impl FirstTouchOptions {
    /// One case for each size and number of messages, so that every job has new memory.
    fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for whole in self.measure.cases(Benchmark::FirstTouch)? {
            for &messages in &self.messages {
                cases.extend(whole.plan.sizes.iter().map(|&size| Case {
                    plan: WorkerPlan {
                        sizes: vec![size],
                        iterations: Some(messages as usize),
                        skip: Some(0),
                        ..whole.plan.clone()
                    },
                    ranks: whole.ranks,
                }));
            }
        }
        Ok(cases)
    }
}

#[derive(Debug, Args)]
pub(crate) struct FileOptions {
    /// The places of the ranks' blocks in files
    #[arg(long, value_enum, default_value_t)]
    pub(crate) pattern: Pattern,
    #[command(flatten)]
    pub(crate) measure: MeasureOptions,
}

impl FileOptions {
    fn cases(&self, access: FileAccess) -> Result<Vec<Case>> {
        let access = access.with_pattern(self.pattern);
        self.measure.cases(Benchmark::File(access))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LimitsOptions {
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_parser = |word: &str| whole_number::<u64>(word, POSITIVE))]
    pub(crate) rounds: u64,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TableOptions {
    /// Write the tables and the thresholds to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Fail if a threshold is missed
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) choice: ChoiceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[cfg(test)]
mod tests;
