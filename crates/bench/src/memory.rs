//! The memory use of this process, as the kernel counts it.

use anyhow::{Context, Result};

const SOURCE: &str = "/proc/self/smaps_rollup";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProcessMemory {
    pub(crate) resident_kib: f64,
    /// Memory that no other process shares.
    pub(crate) private_kib: f64,
}

pub(crate) fn of_this_process() -> Result<ProcessMemory> {
    let text = std::fs::read_to_string(SOURCE).with_context(|| format!("cannot read {SOURCE}"))?;
    parse(&text).with_context(|| format!("{SOURCE} has an unknown format"))
}

fn parse(text: &str) -> Option<ProcessMemory> {
    let field = |name: &str| -> Option<f64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some(ProcessMemory {
        resident_kib: field("Rss")?,
        private_kib: field("Private_Clean")? + field("Private_Dirty")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_rollup() {
        let text = "5586-7ffe ---p 00000000 00:00 0 [rollup]\nRss:    1836 kB\nPss:  700 kB\n\
                    Private_Clean:   12 kB\nPrivate_Dirty:    88 kB\n";
        assert_eq!(
            parse(text),
            Some(ProcessMemory {
                resident_kib: 1836.0,
                private_kib: 100.0
            })
        );
        assert_eq!(parse("Rss: 5 kB\n"), None);
        assert!(of_this_process().unwrap().resident_kib > 100.0);
    }
}
