//! The memory use of this process, as the kernel counts it.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

const SOURCE: &str = "/proc/self/smaps_rollup";
const STATUS: &str = "/proc/self/status";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProcessMemory {
    pub(crate) resident_kib: f64,
    /// Memory that no other process shares.
    pub(crate) private_kib: f64,
}

pub(crate) fn of_this_process() -> Result<ProcessMemory> {
    parsed(SOURCE, |text| {
        Some(ProcessMemory {
            resident_kib: field(text, "Rss")?,
            private_kib: field(text, "Private_Clean")? + field(text, "Private_Dirty")?,
        })
    })
}

/// The memory of a rank's data, without the pages of programs and libraries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DataMemory {
    /// The resident pages of the process.
    pub(crate) resident_kib: f64,
    /// The resident pages of the process, each divided by the number of processes that map it. The
    /// sum over all processes is the memory in use.
    pub(crate) share_kib: f64,
}

/// The growth of memory due to the messages of a pair of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PairMemory {
    /// The growth of both ranks together, where pages that they share count once.
    pub(crate) pair_kib: f64,
    /// The growth of the resident pages of the rank that grew more.
    pub(crate) resident_kib: f64,
}

pub(crate) fn of_data() -> Result<DataMemory> {
    let share_kib = parsed(SOURCE, |text| {
        Some(field(text, "Pss_Anon")? + field(text, "Pss_Shmem")?)
    })?;
    let resident_kib = parsed(STATUS, |text| {
        Some(field(text, "RssAnon")? + field(text, "RssShmem")?)
    })?;
    Ok(DataMemory {
        resident_kib,
        share_kib,
    })
}

fn parsed<T>(source: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
    let text = std::fs::read_to_string(source).with_context(|| format!("cannot read {source}"))?;
    parse(&text).with_context(|| format!("{source} has an unknown format"))
}

/// The kibibytes in the line with this name; `None` if there is no such line.
fn field(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "5586-7ffe ---p 00000000 00:00 0 [rollup]\nRss:    1836 kB\nPss:  700 kB\n\
                    Pss_Anon:   12 kB\nRssShmem:    88 kB\n";
        assert_eq!(field(text, "Rss"), Some(1836.0));
        assert_eq!(field(text, "Pss_Anon"), Some(12.0));
        assert_eq!(field(text, "Private_Clean"), None);
    }

    #[test]
    fn touched_memory_is_counted() {
        assert!(of_this_process().unwrap().private_kib > 100.0);
        let before = of_data().unwrap();
        let pages = std::hint::black_box(vec![1u8; 8 << 20]);
        let after = of_data().unwrap();
        assert!(after.resident_kib - before.resident_kib > 7000.0);
        assert!(after.share_kib - before.share_kib > 7000.0);
        drop(pages);
    }
}
