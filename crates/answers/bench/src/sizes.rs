//! Message sizes: the range that a user gives, and the list of sizes in it.

use anyhow::{Result, bail};
use results::sizes::parse_bytes;

use crate::benchmark::{Benchmark, Family};
use crate::file_access::FileAccess;

/// The range of sizes that `-m` sets. Sizes double from the smallest to the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SizeRange {
    min: Option<usize>,
    max: Option<usize>,
}

impl SizeRange {
    /// Parses `MIN:MAX`, `MIN:`, `:MAX` or `MAX`; each number may have K, M or G for powers of
    /// 1024.
    pub(crate) fn parse(text: &str) -> Result<SizeRange> {
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
            bail!("{text:?}: the smallest size {min} is above the largest size {max}");
        }
        Ok(range)
    }

    pub(crate) fn exactly(size: usize) -> SizeRange {
        SizeRange {
            min: Some(size),
            max: Some(size),
        }
    }

    /// The sizes for one benchmark, in bytes, with its defaults for missing bounds.
    pub(crate) fn sizes(&self, benchmark: Benchmark) -> Result<Vec<usize>> {
        let element = benchmark.element();
        let usual = match benchmark.family() {
            _ if benchmark == Benchmark::File(FileAccess::COLLECTIVE) => 1 << 16,
            Family::Kernel | Family::FirstTouch => 1 << 16,
            Family::Collective => 1 << 20,
            _ => 1 << 22,
        };
        let smallest = match benchmark.family() {
            Family::FirstTouch | Family::File => 64,
            _ => element,
        };
        let min = self
            .min
            .unwrap_or_else(|| smallest.min(self.max.unwrap_or(smallest)));
        let max = self.max.unwrap_or(usual.max(min));
        let name = benchmark.name();
        if !min.is_multiple_of(element) {
            bail!(
                "{name} sums {element}-byte integers: {min} bytes is not a multiple of {element}"
            );
        }
        if min == 0 && matches!(benchmark.family(), Family::Bandwidth | Family::File) {
            bail!(
                "-m: the smallest size of {name} cannot be 0, because a bandwidth of empty messages means nothing"
            );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WorkerPlan;

    fn sizes(benchmark: Benchmark, range: &str) -> Result<Vec<usize>> {
        Ok(WorkerPlan::new(benchmark, Some(&SizeRange::parse(range)?))?.sizes)
    }

    #[test]
    fn sizes_double() {
        assert_eq!(sizes(Benchmark::Latency, "1:8").unwrap(), [1, 2, 4, 8]);
        assert_eq!(sizes(Benchmark::Latency, "0:4").unwrap(), [0, 1, 2, 4]);
        assert_eq!(sizes(Benchmark::Latency, "3:20").unwrap(), [3, 6, 12]);
        assert_eq!(sizes(Benchmark::Bw, "1K:4KiB").unwrap(), [1024, 2048, 4096]);
        assert_eq!(
            sizes(Benchmark::collective("allreduce"), ":16").unwrap(),
            [4, 8, 16]
        );
        assert_eq!(
            sizes(Benchmark::collective("allreduce"), "0:8").unwrap(),
            [0, 4, 8]
        );
        assert_eq!(sizes(Benchmark::Bw, "2").unwrap(), [1, 2]);
    }

    #[test]
    fn usual_sizes_end_at_4_mib_and_for_collectives_at_1_mib() {
        let last = |b| *WorkerPlan::new(b, None).unwrap().sizes.last().unwrap();
        assert_eq!(last(Benchmark::Latency), 4 << 20);
        assert_eq!(last(Benchmark::collective("alltoall")), 1 << 20);
        assert_eq!(last(Benchmark::collective("barrier")), 0);
        assert_eq!(
            sizes(Benchmark::collective("bcast"), "2M:").unwrap(),
            [2 << 20]
        );
    }

    #[test]
    fn wrong_sizes_say_what_is_wrong() {
        let error = |benchmark, range| sizes(benchmark, range).unwrap_err().to_string();
        assert!(error(Benchmark::Latency, "8:4").contains("above the largest"));
        assert!(error(Benchmark::Latency, "4X").contains("none of K, M, G"));
        assert!(error(Benchmark::Latency, "x:4").contains("\"x\""));
        assert!(error(Benchmark::Latency, "2G").contains("largest message, 1 GiB"));
        assert!(error(Benchmark::collective("allreduce"), "3:9").contains("not a multiple of 4"));
        assert!(error(Benchmark::collective("allreduce"), ":2").contains("not a multiple of 4"));
        assert!(error(Benchmark::Bw, "0:9").contains("cannot be 0"));
        assert!(error(Benchmark::collective("barrier"), "1:9").contains("no message sizes"));
    }
}
