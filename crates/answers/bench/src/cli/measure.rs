//! The options that all benchmarks share.

use anyhow::{Result, bail};
use clap::Args;
use results::arguments::{ANY, POSITIVE, decimal, whole_number};

use super::choice::{ChoiceOptions, OutputOptions};
use super::every::EveryOptions;
use crate::benchmark::{Benchmark, Family};
use crate::plan::WorkerPlan;
use crate::rounds::Case;
use crate::sizes::SizeRange;

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
    #[command(flatten)]
    pub(crate) every: EveryOptions,
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

    /// The skews to measure, in microseconds. Without the option there is one case, in which
    /// iterations follow each other without a barrier.
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

    /// Refuses options for repeated iterations if every job measures only once, and other options
    /// that do not apply to the benchmark.
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
