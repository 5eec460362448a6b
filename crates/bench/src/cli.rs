//! The command line of `fishplate bench`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use crate::library::{Choice, Fabrics, Library};
use crate::plan::{Benchmark, Family, Plan};
use crate::rounds::Case;
use crate::sizes::SizeRange;

/// Measure MPI libraries: latency, bandwidth, collectives, starting; and what the machine allows.
///
/// Plain MPI calls through any libmpi_abi.so.1, by the procedures of the OSU micro-benchmarks.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// One way of a ping-pong, by size
    Latency(Options),
    /// One stream of windows of messages
    Bw(Options),
    /// Streams in both directions at once
    Bibw(Options),
    /// Message rate of all pairs of ranks together
    MbwMr(Options),
    /// Launcher, MPI_Init and MPI_Finalize: wall time, and memory after Init
    Init(Options),
    /// MPI_Barrier: the time of a call, averaged over the ranks
    Barrier(Options),
    /// MPI_Bcast from rank 0, likewise
    Bcast(Options),
    /// MPI_Reduce to rank 0: sums of 32-bit integers
    Reduce(Options),
    /// MPI_Allreduce: sums of 32-bit integers
    Allreduce(Options),
    /// MPI_Gather to rank 0, by the size of a rank's block
    Gather(Options),
    /// MPI_Scatter from rank 0, by the size of a rank's block
    Scatter(Options),
    /// MPI_Allgather, by the size of a rank's block
    Allgather(Options),
    /// MPI_Alltoall, by the size of a block
    Alltoall(Options),
    /// What NAS LU sends: wavefronts over a grid of ranks, then faces, by the size of a plane's message
    Sweep(Options),
    /// What NAS IS sends: MPI_Allreduce, MPI_Alltoall and MPI_Alltoallv, by the size of a rank's part
    Sort(Options),
    /// What the machine allows, without MPI
    Limits(LimitsOptions),
    /// Everything that has a threshold, against the peers, judged
    Table(TableOptions),
}

impl What {
    /// Unless it is something else than MPI calls.
    pub fn benchmark(&self) -> Option<(Benchmark, &Options)> {
        Some(match self {
            What::Latency(options) => (Benchmark::Latency, options),
            What::Bw(options) => (Benchmark::Bw, options),
            What::Bibw(options) => (Benchmark::Bibw, options),
            What::MbwMr(options) => (Benchmark::MbwMr, options),
            What::Init(options) => (Benchmark::Init, options),
            What::Barrier(options) => (Benchmark::Barrier, options),
            What::Bcast(options) => (Benchmark::Bcast, options),
            What::Reduce(options) => (Benchmark::Reduce, options),
            What::Allreduce(options) => (Benchmark::Allreduce, options),
            What::Gather(options) => (Benchmark::Gather, options),
            What::Scatter(options) => (Benchmark::Scatter, options),
            What::Allgather(options) => (Benchmark::Allgather, options),
            What::Alltoall(options) => (Benchmark::Alltoall, options),
            What::Sweep(options) => (Benchmark::Sweep, options),
            What::Sort(options) => (Benchmark::Sort, options),
            What::Limits(_) | What::Table(_) => return None,
        })
    }
}

#[derive(Debug, Args)]
pub struct Options {
    /// Ranks; several numbers measure each of them
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "2")]
    pub ranks: Vec<usize>,
    /// Message sizes, doubling: MIN:MAX, MIN:, :MAX or MAX, in bytes or with K, M, G
    #[arg(short = 'm', long, value_name = "MIN:MAX")]
    pub message_size: Option<String>,
    /// Timed iterations of every size [default: by size, fewer where they would take seconds]
    #[arg(short = 'i', long, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,
    /// Iterations of every size before the timed ones
    #[arg(short = 'x', long)]
    pub warmup: Option<usize>,
    /// Messages in flight (bw, bibw, mbw-mr) [default: 64]
    #[arg(short = 'W', long, value_parser = clap::value_parser!(u64).range(1..))]
    pub window_size: Option<u64>,
    /// Check the data of every iteration
    #[arg(short = 'c', long)]
    pub validation: bool,
    /// Percentiles of the single iterations; each is then timed, which costs tens of nanoseconds
    #[arg(short = 'z', long, value_name = "P,…", num_args = 0..=1, default_missing_value = "50,90,99,99.9", value_delimiter = ',')]
    pub percentiles: Vec<f64>,
    #[command(flatten)]
    pub choice: ChoiceOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

#[derive(Debug, Args)]
pub struct LimitsOptions {
    /// Rounds of all limits
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    #[command(flatten)]
    pub output: OutputOptions,
}

#[derive(Debug, Args)]
pub struct TableOptions {
    /// Write the table and the verdicts there
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Fail if a threshold is not met
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub choice: ChoiceOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

// Which libraries. (A `///` would become the help of what this is part of.)
#[derive(Debug, Args)]
pub struct ChoiceOptions {
    /// The library to measure [default: our own, ../lib/libmpi_abi.so.1 beside this command]
    #[arg(long, value_name = "PATH")]
    pub library: Option<PathBuf>,
    /// Libraries to compare with, run alternately
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    pub against: Vec<PathBuf>,
    /// The launcher of a library, if not the one installed with it: COMMAND for the library
    /// measured, LIBRARY=COMMAND for any; `{ranks}` stands for their number
    #[arg(long, value_name = "[LIBRARY=]COMMAND")]
    pub launcher: Vec<String>,
    /// Run on modelled machines instead, in virtual time: names from `fishplate fabric list`, or files
    #[arg(long, value_name = "NAME|FILE,…", value_delimiter = ',', conflicts_with_all = ["library", "against", "launcher"])]
    pub fabric: Vec<String>,
    /// Ranks on each host of a modelled machine
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "fabric")]
    pub ppn: usize,
    /// What all that looks random on a modelled machine follows from
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric")]
    pub seed: u64,
    /// Write what the ranks, buses and links of a modelled machine did, for ui.perfetto.dev
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub trace: Option<PathBuf>,
    /// Rounds of all libraries; on a modelled machine one says all
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Give up a run that says nothing for so many seconds
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS")]
    pub timeout: f64,
}

impl ChoiceOptions {
    /// What to measure; `command` is this executable.
    pub fn libraries(&self, command: &Path) -> Result<Vec<Library>> {
        if self.modelled() {
            let fabrics = Fabrics {
                names: self.fabric.clone(),
                ppn: self.ppn,
                seed: self.seed,
                trace: self.trace.clone(),
            };
            return fabrics.libraries(command);
        }
        let (subject, against) = (self.library.clone(), self.against.clone());
        let choice = Choice {
            subject,
            against,
            launchers: self.launcher.clone(),
        };
        choice.libraries(command)
    }

    pub fn modelled(&self) -> bool {
        !self.fabric.is_empty()
    }

    /// In virtual time every round would be the same.
    pub fn rounds(&self) -> usize {
        if self.modelled() {
            1
        } else {
            self.rounds as usize
        }
    }

    pub fn timeout(&self) -> Result<Duration> {
        match Duration::try_from_secs_f64(self.timeout) {
            Ok(timeout) if timeout > Duration::ZERO => Ok(timeout),
            _ => bail!("--timeout {}: seconds above 0 are wanted", self.timeout),
        }
    }
}

// What becomes of the results.
#[derive(Debug, Args)]
pub struct OutputOptions {
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    pub json: bool,
    /// Draw them, as FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

impl Options {
    pub fn cases(&self, benchmark: Benchmark) -> Result<Vec<Case>> {
        let plan = self.plan(benchmark)?;
        if self.choice.trace.is_some() && self.ranks.len() * self.choice.fabric.len() > 1 {
            bail!("--trace: a file holds one run; name one --fabric and one number of ranks");
        }
        let case = |&ranks: &usize| {
            benchmark.check_ranks(ranks)?;
            Ok(Case {
                plan: plan.clone(),
                ranks,
            })
        };
        self.ranks.iter().map(case).collect()
    }

    fn plan(&self, benchmark: Benchmark) -> Result<Plan> {
        let (name, family) = (benchmark.name(), benchmark.family());
        let range = self
            .message_size
            .as_deref()
            .map(SizeRange::parse)
            .transpose()?;
        let mut plan = Plan::new(benchmark, range.as_ref())?;
        match self.window_size {
            Some(_) if family != Family::Bandwidth => bail!("{name} has no window: leave out -W"),
            Some(window) => plan.window = window as usize,
            None => {}
        }
        if let Some(wrong) = self
            .percentiles
            .iter()
            .find(|p| !(0.0..=100.0).contains(*p))
        {
            bail!("-z {wrong}: a percentile is from 0 to 100");
        }
        let options = self.iterations.is_some() || self.warmup.is_some();
        if family == Family::Start && (options || self.validation || !self.percentiles.is_empty()) {
            bail!("init is started once a round: leave out -i, -x, -c and -z, and set --rounds");
        }
        if self.choice.modelled() && family == Family::Start {
            bail!("init is not modelled: leave out --fabric");
        }
        plan.modelled = self.choice.modelled();
        plan.iterations = self.iterations.map(|n| n as usize);
        plan.skip = self.warmup;
        plan.validate = self.validation;
        plan.percentiles = self.percentiles.clone();
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Whole {
        #[command(flatten)]
        arguments: BenchArguments,
    }

    fn cases(words: &str) -> Result<Vec<Case>> {
        let whole = <Whole as clap::Parser>::try_parse_from(words.split(' '))?;
        let (benchmark, options) = whole.arguments.what.benchmark().unwrap();
        options.cases(benchmark)
    }

    #[test]
    fn the_usual_options() {
        let found = cases("bench bw -m 8:16 -i 7 -x 0 -W 3 -c -n 2").unwrap();
        let plan = &found[0].plan;
        assert_eq!(
            (plan.sizes.as_slice(), plan.window),
            ([8, 16].as_slice(), 3)
        );
        assert_eq!(
            (plan.iterations, plan.skip, plan.validate),
            (Some(7), Some(0), true)
        );
        let found = cases("bench barrier -n 2,4,8").unwrap();
        assert_eq!(found.iter().map(|c| c.ranks).collect::<Vec<_>>(), [2, 4, 8]);
        assert_eq!(
            cases("bench latency -z").unwrap()[0].plan.percentiles,
            [50.0, 90.0, 99.0, 99.9]
        );
        assert_eq!(
            cases("bench latency -z 1,99.5").unwrap()[0]
                .plan
                .percentiles,
            [1.0, 99.5]
        );
        assert!(
            cases("bench latency").unwrap()[0]
                .plan
                .percentiles
                .is_empty()
        );
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for (words, reason) in [
            ("bench latency -n 3", "between 2 ranks"),
            ("bench latency -W 8", "no window"),
            ("bench latency -i 0", "0 is not in"),
            ("bench latency --fabric qdr,fdr --trace t.json", "one run"),
            ("bench latency -z 101", "from 0 to 100"),
            ("bench init -i 3", "--rounds"),
            ("bench barrier -m 4", "no message sizes"),
            ("bench pingpong", "unrecognized subcommand"),
        ] {
            let error = cases(words).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(reason), "{words}: {error}");
        }
    }
}
