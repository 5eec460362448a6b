//! The command line of `fishplate bench`.

mod choice;
mod collective;
mod every;
mod help;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use results::arguments::{ANY, POSITIVE, decimal, whole_number};

pub(crate) use choice::{ChoiceOptions, OutputOptions, ROUNDS};
use collective::CollectiveCommand;
pub(crate) use every::EveryOptions;

use crate::benchmark::{Benchmark, Family};
use crate::file_access::{FileAccess, Pattern};
use crate::plan::WorkerPlan;
use crate::rounds::Case;
use crate::sizes::SizeRange;
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
    /// The options of a benchmark; `None` for `limits` and `table`.
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

    /// The plans of a benchmark; none for `limits` and `table`.
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
pub(crate) struct MeasureOptions {
    /// Number of ranks; several numbers are measured one after the other
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "2",
        value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    pub(crate) ranks: Vec<usize>,
    /// Message sizes, doubling from MIN to MAX: MIN:MAX, MIN:, :MAX or MAX, in bytes or with K, M,
    /// G
    #[arg(short = 'm', long, value_name = "MIN:MAX")]
    pub(crate) message_size: Option<String>,
    /// Timed iterations of each size [default: by size, fewer if they would take seconds]
    #[arg(short = 'i', long, value_parser = |word: &str| whole_number::<u64>(word, POSITIVE))]
    pub(crate) iterations: Option<u64>,
    /// Time limit of each size in seconds: fewer iterations are timed, also than those of -i, if
    /// they would take longer [default: 1, and none with -i]
    #[arg(long, value_name = "SECONDS", value_parser = decimal)]
    pub(crate) seconds: Option<f64>,
    /// Warm-up iterations of each size
    #[arg(short = 'x', long, value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    pub(crate) warmup: Option<usize>,
    /// Messages in flight (bw, bibw, mbw-mr) [default: 64]
    #[arg(short = 'W', long, value_parser = |word: &str| whole_number::<u64>(word, POSITIVE))]
    pub(crate) window_size: Option<u64>,
    /// Begin each iteration with a barrier, and let every second rank, in turn, begin this many
    /// microseconds late (bibw, sweep, sort, blocking collectives); times count from the beginning
    /// of the late ranks
    #[arg(long, value_name = "MICROSECONDS,…", value_delimiter = ',', value_parser = decimal,
        conflicts_with = "every_choice")]
    pub(crate) skew: Vec<f64>,
    /// Check the data of every iteration
    #[arg(short = 'c', long)]
    pub(crate) validation: bool,
    /// Report percentiles of single iterations; timing each one costs tens of nanoseconds
    #[arg(short = 'z', long, value_name = "P,…", num_args = 0..=1, default_missing_value = "50,90,99,99.9", value_delimiter = ',', value_parser = decimal)]
    pub(crate) percentiles: Vec<f64>,
    /// Show rank 0's choices as well: by message size the protocol, the rails, and the predicted
    /// times of both and of the choices not taken (our own library only)
    #[arg(long)]
    pub(crate) explain: bool,
    /// Add the costs to FILE that rank 0 learns from long messages within its host;
    /// FISHPLATE_COSTS=FILE then uses them, and learns nothing (our own library only)
    #[arg(long, value_name = "FILE")]
    pub(crate) save_costs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) every: EveryOptions,
    #[command(flatten)]
    pub(crate) choice: ChoiceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
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

impl MeasureOptions {
    pub(crate) fn cases(&self, benchmark: Benchmark) -> Result<Vec<Case>> {
        let plan = self.plan(benchmark)?;
        let skews = self.skews(benchmark)?;
        if self.choice.trace.is_some()
            && self.ranks.len() * self.choice.fabric.len() * skews.len() > 1
        {
            bail!(
                "--trace: a trace holds one run; give a single --fabric, number of ranks and --skew"
            );
        }
        if self.explain && self.ranks.len() > 1 {
            bail!("--explain: one number of ranks is explained at a time");
        }
        let mut cases = Vec::new();
        for &ranks in &self.ranks {
            benchmark.check_ranks(ranks)?;
            cases.extend(skews.iter().map(|&skew| Case {
                plan: WorkerPlan {
                    skew,
                    ..plan.clone()
                },
                ranks,
            }));
        }
        Ok(cases)
    }

    /// The skews to measure, in microseconds. Without the option there is one case, of iterations
    /// that follow each other.
    fn skews(&self, benchmark: Benchmark) -> Result<Vec<Option<f64>>> {
        let name = benchmark.name();
        match &self.skew[..] {
            [] => Ok(vec![None]),
            _ if !benchmark.takes_skew() => {
                bail!("--skew is not for {name}: one of its ranks waits for the other anyway")
            }
            all => match all.iter().find(|skew| **skew < 0.0) {
                Some(wrong) => bail!("--skew {wrong}: valid are microseconds from 0"),
                None => Ok(all.iter().copied().map(Some).collect()),
            },
        }
    }

    fn plan(&self, benchmark: Benchmark) -> Result<WorkerPlan> {
        let (name, family) = (benchmark.name(), benchmark.family());
        let range = self
            .message_size
            .as_deref()
            .map(SizeRange::parse)
            .transpose()?;
        let mut plan = WorkerPlan::new(benchmark, range.as_ref())?;
        match self.window_size {
            Some(_) if family != Family::Bandwidth => {
                bail!("-W is not for {name}, which has no window")
            }
            Some(window) => plan.window = window as usize,
            None => {}
        }
        if let Some(wrong) = self
            .percentiles
            .iter()
            .find(|p| !(0.0..=100.0).contains(*p))
        {
            bail!("-z {wrong}: valid are percentiles from 0 to 100");
        }
        if let Some(wrong) = self.seconds.filter(|seconds| *seconds <= 0.0) {
            bail!("--seconds {wrong}: valid are seconds above 0");
        }
        self.check_single(benchmark)?;
        plan.modelled = self.choice.modelled();
        plan.iterations = self.iterations.map(|n| n as usize);
        plan.seconds_per_size = self.seconds;
        plan.skip = self.warmup;
        plan.validate = self.validation;
        plan.percentiles = self.percentiles.clone();
        Ok(plan)
    }

    /// Refuses options for repeated iterations where every job measures once.
    fn check_single(&self, benchmark: Benchmark) -> Result<()> {
        let name = benchmark.name();
        let iterations =
            self.iterations.is_some() || self.warmup.is_some() || self.seconds.is_some();
        let repeated = iterations || !self.percentiles.is_empty();
        let modelled = self.choice.modelled();
        let once = matches!(benchmark.family(), Family::Start | Family::FirstTouch);
        if self.every.every_choice && once {
            bail!("--every-choice is not for {name}, whose messages are the first ones");
        }
        if self.every.every_choice && benchmark.family() == Family::File {
            bail!("--every-choice is not for {name}: its choices are not those of messages");
        }
        match benchmark.family() {
            Family::File if modelled => {
                bail!("--fabric is not for {name}: files take no time on a modelled machine")
            }
            _ if self.validation && matches!(benchmark, Benchmark::OneSided(_)) => {
                bail!("-c is not for {name}: only the time of its accesses is measured")
            }
            Family::Start if repeated || self.validation => bail!(
                "-i, -x, -c, -z and --seconds are not for init, which starts one job per round: use --rounds"
            ),
            Family::FirstTouch if repeated => bail!(
                "-i, -x, -z and --seconds are not for first-touch: use --messages and --rounds"
            ),
            Family::Start if modelled => {
                bail!("--fabric is not for init: start-up is not modelled")
            }
            Family::FirstTouch if modelled => {
                bail!("--fabric is not for {name}: the cost of new memory is not modelled")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
