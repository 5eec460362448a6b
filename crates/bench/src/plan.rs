//! What is measured: the benchmarks, their sizes and how often each is repeated. The driver makes a
//! [`Plan`], every worker is given the same one.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A benchmark by MPI calls. The procedures are those of the OSU micro-benchmarks 7.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    Latency,
    Bw,
    Bibw,
    MbwMr,
    Init,
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
}

impl Benchmark {
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Latency => "latency",
            Benchmark::Bw => "bw",
            Benchmark::Bibw => "bibw",
            Benchmark::MbwMr => "mbw-mr",
            Benchmark::Init => "init",
            Benchmark::Barrier => "barrier",
            Benchmark::Bcast => "bcast",
            Benchmark::Reduce => "reduce",
            Benchmark::Allreduce => "allreduce",
            Benchmark::Gather => "gather",
            Benchmark::Scatter => "scatter",
            Benchmark::Allgather => "allgather",
            Benchmark::Alltoall => "alltoall",
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Benchmark::Bw | Benchmark::Bibw => Unit::MegabytesPerSecond,
            Benchmark::MbwMr => Unit::MessagesPerSecond,
            Benchmark::Init => Unit::Milliseconds,
            _ => Unit::Microseconds,
        }
    }

    pub fn family(self) -> Family {
        match self {
            Benchmark::Latency => Family::Latency,
            Benchmark::Bw | Benchmark::Bibw | Benchmark::MbwMr => Family::Bandwidth,
            Benchmark::Init => Family::Start,
            _ => Family::Collective,
        }
    }

    /// Whether messages have a size at all.
    pub fn sized(self) -> bool {
        !matches!(self, Benchmark::Init | Benchmark::Barrier)
    }

    /// The size of the elements of a message: sizes are multiples of it.
    pub fn element(self) -> usize {
        match self {
            Benchmark::Reduce | Benchmark::Allreduce => 4,
            _ => 1,
        }
    }

    /// What a job of this many ranks cannot do.
    pub fn check_ranks(self, ranks: usize) -> Result<()> {
        let name = self.name();
        match self {
            Benchmark::Latency | Benchmark::Bw | Benchmark::Bibw if ranks != 2 => {
                bail!("{name} runs between 2 ranks, not {ranks}")
            }
            Benchmark::MbwMr if ranks < 2 || !ranks.is_multiple_of(2) => {
                bail!("mbw-mr runs between pairs of ranks: {ranks} is not an even number from 2")
            }
            _ if ranks == 0 => bail!("{name} needs at least 1 rank"),
            _ => Ok(()),
        }
    }
}

/// Benchmarks that share their rules of repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Latency,
    Bandwidth,
    Collective,
    Start,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    MegabytesPerSecond,
    MessagesPerSecond,
    Kibibytes,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::MessagesPerSecond => "msg/s",
            Unit::Kibibytes => "KiB",
        }
    }

    /// For headings and axes.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Microseconds => "µs",
            other => other.name(),
        }
    }

    pub fn quantity(self) -> &'static str {
        match self {
            Unit::Microseconds | Unit::Milliseconds => "time",
            Unit::MegabytesPerSecond => "bandwidth",
            Unit::MessagesPerSecond => "message rate",
            Unit::Kibibytes => "memory",
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::MegabytesPerSecond | Unit::MessagesPerSecond)
    }
}

/// Above this many bytes a message counts as large.
pub const LARGE: usize = 8192;
/// The most one message may hold: counts are C ints, and both sides hold buffers of it.
pub const LARGEST: usize = 1 << 30;

/// How often a message of one size is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    pub skip: usize,
    pub iterations: usize,
}

/// Everything a worker has to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub benchmark: Benchmark,
    /// Bytes, in the order they are measured.
    pub sizes: Vec<usize>,
    /// Set by the user: then the same for all sizes, and never cut short.
    pub iterations: Option<usize>,
    pub skip: Option<usize>,
    pub window: usize,
    pub validate: bool,
    /// `init` only: ask for the time of Init and the memory after it, which disturbs the wall time.
    pub inspect: bool,
    /// Empty unless asked for.
    pub percentiles: Vec<f64>,
    /// What the iterations of one size may take before they are cut to fit.
    pub seconds_per_size: f64,
}

impl Plan {
    pub fn new(benchmark: Benchmark, range: Option<&SizeRange>) -> Result<Plan> {
        let sizes = match (benchmark.sized(), range) {
            (true, range) => range.unwrap_or(&SizeRange::default()).sizes(benchmark)?,
            (false, None) => vec![0],
            (false, Some(_)) => bail!("{} has no message sizes: leave out -m", benchmark.name()),
        };
        Ok(Plan {
            benchmark,
            sizes,
            iterations: None,
            skip: None,
            window: 64,
            validate: false,
            inspect: false,
            percentiles: Vec::new(),
            seconds_per_size: 1.0,
        })
    }

    pub fn repeats(&self, size: usize) -> Repeats {
        let (skip, iterations) = match (self.benchmark.family(), size > LARGE) {
            (Family::Latency, false) => (100, 10_000),
            (Family::Latency, true) => (10, 1_000),
            (Family::Bandwidth, false) => (10, 100),
            (Family::Bandwidth, true) => (2, 20),
            (Family::Collective, false) => (100, 1_000),
            (Family::Collective, true) => (10, 100),
            (Family::Start, _) => (0, 1),
        };
        Repeats {
            skip: self.skip.unwrap_or(skip),
            iterations: self.iterations.unwrap_or(iterations),
        }
    }

    /// The repeats of `size` when one iteration was seen to take `seconds`: a library that takes
    /// milliseconds for a barrier must not take minutes of the user's time.
    pub fn affordable(&self, size: usize, seconds: f64) -> Repeats {
        let wanted = self.repeats(size);
        if self.iterations.is_some() || seconds <= 0.0 {
            return wanted;
        }
        let fitting = (self.seconds_per_size / seconds) as usize;
        if fitting >= wanted.iterations {
            return wanted;
        }
        let iterations = fitting.max(5);
        let skip = self.skip.unwrap_or(wanted.skip.min(iterations / 10));
        Repeats { skip, iterations }
    }
}

/// `-m`: from which size to which. Sizes double from the smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeRange {
    min: Option<usize>,
    max: Option<usize>,
}

impl SizeRange {
    /// `MIN:MAX`, `MIN:`, `:MAX` or `MAX`; each with K, M or G for powers of 1024.
    pub fn parse(text: &str) -> Result<SizeRange> {
        let bound = |text: &str| match text {
            "" => Ok(None),
            text => parse_bytes(text).map(Some),
        };
        let range = match text.split_once(':') {
            Some((min, max)) => SizeRange {
                min: bound(min)?,
                max: bound(max)?,
            },
            None => SizeRange {
                min: None,
                max: bound(text)?,
            },
        };
        if let (Some(min), Some(max)) = (range.min, range.max)
            && min > max
        {
            bail!("{text:?}: the smallest size {min} is above the largest {max}");
        }
        Ok(range)
    }

    pub fn exactly(size: usize) -> SizeRange {
        SizeRange {
            min: Some(size),
            max: Some(size),
        }
    }

    fn sizes(&self, benchmark: Benchmark) -> Result<Vec<usize>> {
        let element = benchmark.element();
        let usual = if benchmark.family() == Family::Collective {
            1 << 20
        } else {
            1 << 22
        };
        let min = self
            .min
            .unwrap_or_else(|| element.min(self.max.unwrap_or(element)));
        let max = self.max.unwrap_or(usual.max(min));
        let name = benchmark.name();
        if !min.is_multiple_of(element) {
            bail!("{name} sums {element}-byte integers: {min} bytes is no multiple of {element}");
        }
        if min == 0 && benchmark.family() == Family::Bandwidth {
            bail!("{name} divides by the size of a message: it cannot be 0");
        }
        let mut sizes = Vec::new();
        let mut size = min;
        while size <= max {
            sizes.push(size);
            size = if size == 0 { element } else { size * 2 };
        }
        if sizes.is_empty() {
            bail!("{name} has no size from {min} to {max} bytes");
        }
        Ok(sizes)
    }
}

/// A number of bytes: `4096`, `4K`, `4KiB`, `1M`.
fn parse_bytes(text: &str) -> Result<usize> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        unit => bail!("{text:?} is no size: {unit:?} is none of K, M, G"),
    };
    let number: usize = digits
        .parse()
        .with_context(|| format!("{text:?} is no size in bytes"))?;
    match number.checked_mul(1 << shift) {
        Some(bytes) if bytes <= LARGEST => Ok(bytes),
        _ => bail!(
            "{text:?} is more than the largest message, {}",
            size_label(LARGEST)
        ),
    }
}

/// `64`, `4 KiB`, `1 MiB`: powers of 1024 where they are whole.
pub fn size_label(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 30 && b % (1 << 30) == 0 => format!("{} GiB", b >> 30),
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(benchmark: Benchmark, range: &str) -> Result<Vec<usize>> {
        Ok(Plan::new(benchmark, Some(&SizeRange::parse(range)?))?.sizes)
    }

    #[test]
    fn sizes_double() {
        assert_eq!(sizes(Benchmark::Latency, "1:8").unwrap(), [1, 2, 4, 8]);
        assert_eq!(sizes(Benchmark::Latency, "0:4").unwrap(), [0, 1, 2, 4]);
        assert_eq!(sizes(Benchmark::Latency, "3:20").unwrap(), [3, 6, 12]);
        assert_eq!(sizes(Benchmark::Bw, "1K:4KiB").unwrap(), [1024, 2048, 4096]);
        assert_eq!(sizes(Benchmark::Allreduce, ":16").unwrap(), [4, 8, 16]);
        assert_eq!(sizes(Benchmark::Allreduce, "0:8").unwrap(), [0, 4, 8]);
        assert_eq!(sizes(Benchmark::Bw, "2").unwrap(), [1, 2]);
    }

    #[test]
    fn usual_sizes_end_at_4_mib_and_for_collectives_at_1_mib() {
        let last = |b| *Plan::new(b, None).unwrap().sizes.last().unwrap();
        assert_eq!(last(Benchmark::Latency), 4 << 20);
        assert_eq!(last(Benchmark::Alltoall), 1 << 20);
        assert_eq!(last(Benchmark::Barrier), 0);
        assert_eq!(sizes(Benchmark::Bcast, "2M:").unwrap(), [2 << 20]);
    }

    #[test]
    fn wrong_sizes_say_what_is_wrong() {
        let error = |benchmark, range| sizes(benchmark, range).unwrap_err().to_string();
        assert!(error(Benchmark::Latency, "8:4").contains("above the largest"));
        assert!(error(Benchmark::Latency, "4X").contains("none of K, M, G"));
        assert!(error(Benchmark::Latency, "x:4").contains("\"x\""));
        assert!(error(Benchmark::Latency, "2G").contains("largest message, 1 GiB"));
        assert!(error(Benchmark::Allreduce, "3:9").contains("no multiple of 4"));
        assert!(error(Benchmark::Allreduce, ":2").contains("no multiple of 4"));
        assert!(error(Benchmark::Bw, "0:9").contains("cannot be 0"));
        assert!(error(Benchmark::Barrier, "1:9").contains("no message sizes"));
    }

    #[test]
    fn large_messages_are_repeated_less() {
        let plan = Plan::new(Benchmark::Latency, None).unwrap();
        assert_eq!(
            plan.repeats(8192),
            Repeats {
                skip: 100,
                iterations: 10_000
            }
        );
        assert_eq!(
            plan.repeats(8193),
            Repeats {
                skip: 10,
                iterations: 1_000
            }
        );
        let plan = Plan {
            iterations: Some(7),
            skip: Some(0),
            ..plan
        };
        assert_eq!(
            plan.repeats(1 << 20),
            Repeats {
                skip: 0,
                iterations: 7
            }
        );
    }

    #[test]
    fn slow_sizes_are_cut_to_the_time_given_unless_the_user_said_how_many() {
        let plan = Plan::new(Benchmark::Allreduce, None).unwrap();
        assert_eq!(plan.affordable(4, 1e-6), plan.repeats(4));
        assert_eq!(
            plan.affordable(4, 0.01),
            Repeats {
                skip: 10,
                iterations: 100
            }
        );
        assert_eq!(
            plan.affordable(4, 10.0),
            Repeats {
                skip: 0,
                iterations: 5
            }
        );
        let plan = Plan {
            iterations: Some(300),
            ..plan
        };
        assert_eq!(plan.affordable(4, 10.0).iterations, 300);
    }

    #[test]
    fn ranks_fit_the_benchmark() {
        assert!(Benchmark::Latency.check_ranks(3).is_err());
        assert!(Benchmark::MbwMr.check_ranks(3).is_err());
        assert!(Benchmark::MbwMr.check_ranks(4).is_ok());
        assert!(Benchmark::Barrier.check_ranks(0).is_err());
        assert!(Benchmark::Barrier.check_ranks(1).is_ok());
    }

    #[test]
    fn labels() {
        assert_eq!(size_label(1), "1 B");
        assert_eq!(size_label(1536), "1536 B");
        assert_eq!(size_label(64 << 10), "64 KiB");
        assert_eq!(size_label(4 << 20), "4 MiB");
    }
}
