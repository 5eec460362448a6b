//! One rank of a benchmark: opens a library, runs a plan, and on rank 0 prints a `WorkerMessage`
//! for each size. The launcher of the library starts it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use conditions::Interruptions;
use results::stats;

use crate::benchmark::{Benchmark, Family};
use crate::collectives;
use crate::ffi::Mpi;
use crate::files;
use crate::kernels;
use crate::limits::{self, LEND};
use crate::memory::{self, PairMemory};
pub use crate::message::SUBCOMMAND;
use crate::message::{RankConditions, Sample, Start, WorkerMessage};
use crate::one_sided;
use crate::overlap::Overlap;
use crate::plan::{Repeats, WorkerPlan};
use crate::procedure::{Procedure, Timing, synchronise};
use crate::pt2pt;

/// Runs the command `bench-worker LIBRARY PLAN`; the plan is JSON.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let (first, second) = (arguments.next(), arguments.next());
    if first.as_deref() == Some(OsStr::new(LEND)) {
        return limits::lend_memory();
    }
    let (Some(library), Some(plan)) = (first, second) else {
        eprintln!("{SUBCOMMAND} is started by `fishplate bench`, with a library and a plan");
        return ExitCode::from(2);
    };
    let mut rank = None;
    match run(Path::new(&library), &plan.to_string_lossy(), &mut rank) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&WorkerMessage::Fault {
                rank,
                text: format!("{error:#}"),
            });
            ExitCode::FAILURE
        }
    }
}

/// Runs the plan. Sets `rank` as soon as it is known, so that the report of an error names it.
fn run(library: &Path, plan: &str, rank: &mut Option<usize>) -> Result<()> {
    let plan: WorkerPlan =
        serde_json::from_str(plan).context("this worker cannot read the plan")?;
    let mut mpi = Mpi::open(library)?;
    if plan.modelled {
        mpi.keep_virtual_time();
    }
    let before = Instant::now();
    mpi.init()?;
    let init = before.elapsed().as_secs_f64() * 1e3;
    *rank = Some(mpi.rank());

    let run = measure(&mpi, &plan, init).and_then(|()| mpi.finalize());
    if let Err(error) = &run {
        say(&WorkerMessage::Fault {
            rank: *rank,
            text: format!("{error:#}"),
        });
        mpi.abort(1);
    }
    run
}

fn measure(mpi: &Mpi, plan: &WorkerPlan, init: f64) -> Result<()> {
    plan.benchmark.check_ranks(mpi.size())?;
    let before = Interruptions::now();
    let root = mpi.rank() == 0;
    if plan.benchmark.family() == Family::Start {
        return start(mpi, plan, init);
    }
    if root {
        say(&WorkerMessage::Hello {
            version: mpi.version()?,
        });
    }
    let largest = plan.sizes.iter().copied().max().unwrap_or(0);
    let mut runner = Runner::new(mpi, plan, largest)?;
    if plan.benchmark == Benchmark::FirstTouch {
        first_touch(&mut runner)?;
        return ranks(mpi, plan, before);
    }
    for &size in &plan.sizes {
        let sample = runner.sample(size).with_context(|| {
            format!(
                "{} of {size} bytes, rank {}",
                plan.benchmark.name(),
                mpi.rank()
            )
        })?;
        if root {
            say(&WorkerMessage::Sample(sample));
        }
    }
    ranks(mpi, plan, before)
}

/// The length of a list of hardware threads in a message between ranks, in bytes.
const LONGEST_LIST: usize = 256;

/// Reports each rank's hardware threads and interruptions. In virtual time there are none.
fn ranks(mpi: &Mpi, plan: &WorkerPlan, before: Interruptions) -> Result<()> {
    if plan.modelled {
        return Ok(());
    }
    let mine = Interruptions::now().since(before);
    let counts = gather(mpi, &[mine.involuntary_switches as f64, mine.waited])?;
    let mut list = conditions::own_cpus().into_bytes();
    list.resize(LONGEST_LIST, 0);
    if mpi.rank() != 0 {
        return mpi.send(&list, 0, TAG_GATHER);
    }
    let mut all = Vec::new();
    for (rank, counts) in counts.iter().enumerate() {
        if rank > 0 {
            mpi.recv(&mut list, rank, TAG_GATHER)?;
        }
        all.push(RankConditions {
            cpus: String::from_utf8_lossy(&list)
                .trim_end_matches('\0')
                .to_owned(),
            involuntary_switches: counts[0] as u64,
            waited: counts[1],
        });
    }
    say(&WorkerMessage::Ranks { all });
    Ok(())
}

/// `init`: reports the time of MPI_Init (`init`, in milliseconds) and the memory after it. The
/// driver measures the wall-clock time.
fn start(mpi: &Mpi, plan: &WorkerPlan, init: f64) -> Result<()> {
    if !plan.inspect {
        return Ok(());
    }
    let memory = memory::of_this_process()?;
    let mine = [init, memory.resident_kib, memory.private_kib];
    let all = gather(mpi, &mine)?;
    if mpi.rank() == 0 {
        let most = |at: usize| all.iter().map(|rank| rank[at]).fold(0.0, f64::max);
        let (init, resident_kib, private_kib) = (most(0), most(1), most(2));
        say(&WorkerMessage::Start(Start {
            init,
            resident_kib,
            private_kib,
        }));
    }
    Ok(())
}

/// `first-touch`: measures the first messages of the pair, and the memory that they take. Before
/// that, barriers synchronise the ranks, because a message would already be the pair's first.
fn first_touch(runner: &mut Runner) -> Result<()> {
    let (mpi, plan) = (runner.mpi, runner.plan);
    let (size, repeats) = (plan.sizes[0], plan.repeats(plan.sizes[0]));
    // The first reading itself allocates memory.
    memory::of_data()?;
    mpi.barrier()?;
    let before = memory::of_data()?;
    mpi.barrier()?;
    let timed = runner.procedure.repeat(size, repeats, Timing::Together)?;
    let seconds = timed.seconds;
    // The kernel divides pages by the number of processes that map them, so the other rank must
    // still run.
    mpi.barrier()?;
    let after = memory::of_data()?;
    mpi.barrier()?;
    let all = gather(
        mpi,
        &[
            seconds.iter().sum(),
            after.share_kib - before.share_kib,
            after.resident_kib - before.resident_kib,
        ],
    )?;
    if mpi.rank() == 0 {
        let of_all = |at: usize| -> Vec<f64> { all.iter().map(|rank| rank[at]).collect() };
        say(&WorkerMessage::Memory(PairMemory {
            pair_kib: of_all(1).iter().sum(),
            resident_kib: of_all(2).into_iter().fold(0.0, f64::max),
        }));
        let sample = runner.evaluate(size, repeats.iterations, &of_all(0), &[]);
        say(&WorkerMessage::Sample(sample));
    }
    Ok(())
}

/// The state of a worker that executes a plan on one rank.
struct Runner<'a> {
    mpi: &'a Mpi,
    plan: &'a WorkerPlan,
    procedure: Box<dyn Procedure + 'a>,
}

impl<'a> Runner<'a> {
    fn new(mpi: &'a Mpi, plan: &'a WorkerPlan, largest: usize) -> Result<Runner<'a>> {
        let procedure = match plan.benchmark {
            Benchmark::Collective(collective) => {
                collectives::procedure(mpi, collective, plan, largest)?
            }
            Benchmark::Sweep | Benchmark::Sort => kernels::procedure(mpi, plan, largest)?,
            Benchmark::OneSided(access) => one_sided::procedure(mpi, access, plan.window, largest)?,
            Benchmark::File(access) => files::procedure(mpi, access, plan)?,
            _ => pt2pt::procedure(mpi, plan, largest)?,
        };
        Ok(Runner {
            mpi,
            plan,
            procedure,
        })
    }

    fn sample(&mut self, size: usize) -> Result<Sample> {
        let repeats = self.afford(size)?;
        let timing = match self.plan.skew {
            Some(microseconds) => Timing::Skewed(microseconds * 1e-6),
            None if self.plan.percentiles.is_empty() => Timing::Together,
            None => Timing::Each,
        };
        synchronise(self.mpi)?;
        let timed = self.procedure.repeat(size, repeats, timing)?;
        let mut seconds = timed.seconds;
        let mine = seconds.iter().sum::<f64>();
        // Percentiles are of rank 0's times; the mean is over all ranks.
        let all = match self.plan.benchmark {
            Benchmark::MbwMr if self.plan.modelled => self.first_to_last(timed.span)?,
            _ => gather(self.mpi, &[mine])?.into_iter().flatten().collect(),
        };
        let pure = mine / repeats.iterations as f64;
        let overlapped = self.procedure.overlap(size, repeats, pure)?;
        let overlap = match overlapped {
            Some(mine) => gather(self.mpi, &[mine.overall, mine.compute])?,
            None => Vec::new(),
        };
        if self.mpi.rank() != 0 {
            return Ok(Sample::default());
        }
        seconds.sort_by(f64::total_cmp);
        let sample = self.evaluate(size, repeats.iterations, &all, &seconds);
        let mean = |at: usize| {
            let sum: f64 = overlap.iter().map(|rank| rank[at]).sum();
            sum * 1e6 / (overlap.len() * repeats.iterations) as f64
        };
        let overlap = overlapped.map(|_| Overlap::new(mean(0), mean(1), sample.value));
        Ok(Sample { overlap, ..sample })
    }

    /// For each rank, the time from the first rank's start to the last rank's end, in seconds. In
    /// virtual time all ranks have one clock. Pairs begin and end at different times, so the
    /// longest time of one pair is too short for the messages of all: other pairs fill the link
    /// before it begins.
    fn first_to_last(&self, span: (f64, f64)) -> Result<Vec<f64>> {
        let spans = gather(self.mpi, &[span.0, span.1])?;
        let first = spans
            .iter()
            .map(|span| span[0])
            .fold(f64::INFINITY, f64::min);
        let last = spans.iter().map(|span| span[1]).fold(0.0, f64::max);
        Ok(vec![last - first; spans.len()])
    }

    /// Computes a sample in the benchmark's unit. `all`: the times of all ranks, in seconds.
    /// `sorted`: this rank's times of iterations, in ascending order.
    fn evaluate(&self, size: usize, iterations: usize, all: &[f64], sorted: &[f64]) -> Sample {
        let benchmark = self.plan.benchmark;
        let count = iterations as f64;
        let messages = (self.plan.window * iterations) as f64;
        let slowest = all.iter().copied().fold(0.0, f64::max);
        let fastest = all.iter().copied().fold(f64::INFINITY, f64::min);
        let value = match benchmark {
            Benchmark::Latency | Benchmark::FirstTouch => all[0] * 1e6 / count / 2.0,
            Benchmark::OneSided(access) if !access.is_stream() => all[0] * 1e6 / count,
            Benchmark::Bw | Benchmark::OneSided(_) => size as f64 / 1e6 * messages / all[0],
            Benchmark::Bibw => 2.0 * size as f64 / 1e6 * messages / all[0],
            Benchmark::MbwMr => messages * (all.len() / 2) as f64 / slowest,
            Benchmark::File(access) => {
                (access.bytes(size) * all.len()) as f64 / 1e6 * count / slowest
            }
            _ => all.iter().sum::<f64>() * 1e6 / count / all.len() as f64,
        };
        let one = |seconds: f64| match benchmark {
            Benchmark::Latency => seconds * 1e6 / 2.0,
            Benchmark::Bw => size as f64 / 1e6 * self.plan.window as f64 / seconds,
            Benchmark::OneSided(access) if access.is_stream() => {
                size as f64 / 1e6 * self.plan.window as f64 / seconds
            }
            Benchmark::Bibw => 2.0 * size as f64 / 1e6 * self.plan.window as f64 / seconds,
            Benchmark::MbwMr => self.plan.window as f64 / seconds,
            Benchmark::File(access) => (access.bytes(size) * all.len()) as f64 / 1e6 / seconds,
            _ => seconds * 1e6,
        };
        let percentiles = self.plan.percentiles.iter();
        let percentiles = percentiles.map(|&p| {
            // 99 of 100 windows reach at least the 99th percentile of a rate.
            one(stats::percentile(sorted, p))
        });
        let ranks = matches!(benchmark.family(), Family::Collective | Family::Kernel)
            .then_some((fastest * 1e6 / count, slowest * 1e6 / count));
        Sample {
            size,
            iterations,
            value,
            overlap: None,
            ranks,
            percentiles: percentiles.collect(),
        }
    }

    /// The number of iterations for a size: rank 0 times a few iterations, chooses, and sends its
    /// choice to all ranks.
    fn afford(&mut self, size: usize) -> Result<Repeats> {
        if !self.plan.is_limited() {
            return Ok(self.plan.repeats(size));
        }
        synchronise(self.mpi)?;
        let pilot = Repeats {
            skip: 1,
            iterations: 4,
        };
        let timed = self.procedure.repeat(size, pilot, Timing::Together)?;
        let seconds: f64 = timed.seconds.iter().sum();
        let repeats = self
            .plan
            .affordable(size, seconds / pilot.iterations as f64);
        let mut bytes = [repeats.skip.to_le_bytes(), repeats.iterations.to_le_bytes()].concat();
        if self.mpi.rank() == 0 {
            for rank in 1..self.mpi.size() {
                self.mpi.send(&bytes, rank, TAG_AGREE)?;
            }
        } else {
            self.mpi.recv(&mut bytes, 0, TAG_AGREE)?;
        }
        let (skip, iterations) = bytes.split_at(size_of::<usize>());
        let number =
            |bytes: &[u8]| usize::from_le_bytes(bytes.try_into().expect("a usize's bytes"));
        Ok(Repeats {
            skip: number(skip),
            iterations: number(iterations),
        })
    }
}

const TAG_AGREE: i32 = 91;
const TAG_GATHER: i32 = 92;

/// Collects all ranks' numbers at rank 0 with plain sends: results must not depend on the library's
/// collectives, and a point-to-point benchmark must run on a library without them.
fn gather(mpi: &Mpi, mine: &[f64]) -> Result<Vec<Vec<f64>>> {
    if mpi.rank() != 0 {
        mpi.send(bytemuck::cast_slice(mine), 0, TAG_GATHER)?;
        return Ok(Vec::new());
    }
    let mut all = vec![mine.to_vec()];
    for rank in 1..mpi.size() {
        let mut theirs = vec![0.0; mine.len()];
        mpi.recv(bytemuck::cast_slice_mut(&mut theirs), rank, TAG_GATHER)?;
        all.push(theirs);
    }
    Ok(all)
}

/// Prints a message for the driver. Ends the worker if the driver does not read it any more.
fn say(line: &WorkerMessage) {
    let mut out = std::io::stdout().lock();
    if out
        .write_all(line.text().as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(1);
    }
}
