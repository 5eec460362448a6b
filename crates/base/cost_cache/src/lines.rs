//! The text of a file of costs: a head, the kind of host, one line for each cost, and an end by
//! which a reader recognises a whole file.

use std::collections::BTreeMap;
use std::fmt;

/// The first line of a file: its format.
const HEAD: &str = "fishplate costs 1";
/// The line that ends a file, so that a cut one is recognised.
const END: &str = "end";
/// The greatest number of costs that a file holds.
const MOST: usize = 512;
/// The greatest length of a cost's name, in bytes.
const LONGEST_NAME: usize = 64;
/// The slowest path that a file can describe, in picoseconds per byte.
const SLOWEST: u32 = 1_000_000_000;

/// Costs by name, in picoseconds per byte.
///
/// ```
/// let mut lines = cost_cache::CostLines::default();
/// lines.set("read.256K.near", 98);
/// let text = lines.text("a host");
/// assert_eq!(cost_cache::CostLines::parse(&text, "a host"), Some(lines));
/// assert_eq!(cost_cache::CostLines::parse(&text, "another host"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostLines {
    costs: BTreeMap<String, u32>,
}

impl CostLines {
    /// Length in bytes of the longest file.
    pub const LONGEST: usize = 64 << 10;

    /// The cost with this name in picoseconds per byte, if it is known.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.costs.get(name).copied()
    }

    /// Sets a cost in picoseconds per byte. A name of other characters than ASCII letters, digits
    /// and `.` is ignored, and so is a cost beyond the bounds of a file.
    pub fn set(&mut self, name: &str, ps_per_byte: u32) {
        let has_room = self.costs.len() < MOST || self.costs.contains_key(name);
        if has_room && is_name(name) && ps_per_byte > 0 {
            let cost = ps_per_byte.min(SLOWEST);
            self.costs.insert(name.into(), cost);
        }
    }

    /// All costs of the file, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.costs.iter().map(|(name, cost)| (name.as_str(), *cost))
    }

    /// True if no cost is known.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// The text of a file with these costs, measured on a host of this kind.
    pub fn text(&self, host: &str) -> String {
        let costs = Shown { lines: self, host };
        costs.to_string()
    }

    /// The costs in the text of a file. `None`: the file is damaged, or of another kind of host.
    pub fn parse(text: &str, host: &str) -> Option<CostLines> {
        let mut lines = text.lines();
        if text.len() > CostLines::LONGEST
            || lines.next() != Some(HEAD)
            || lines.next()?.strip_prefix("host ") != Some(host)
        {
            return None;
        }
        let mut found = CostLines::default();
        for line in lines.by_ref() {
            if line == END {
                return lines.next().is_none().then_some(found);
            }
            let (name, cost) = line.split_once(' ')?;
            let cost = cost.parse().ok();
            let cost = cost.filter(|cost| (1..=SLOWEST).contains(cost))?;
            let is_new = found.costs.len() < MOST && found.get(name).is_none();
            if !is_new || !is_name(name) {
                return None;
            }
            found.set(name, cost);
        }
        None
    }
}

struct Shown<'a> {
    lines: &'a CostLines,
    host: &'a str,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}\nhost {}", self.host)?;
        for (name, cost) in self.lines.iter() {
            writeln!(f, "{name} {cost}")?;
        }
        writeln!(f, "{END}")
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: u8| c.is_ascii_alphanumeric() || c == b'.';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "fishplate costs 1\nhost A\nlong.256K.near.read 98\nx 1\nend\n";

    #[test]
    fn a_file_comes_back() {
        let lines = CostLines::parse(GOOD, "A").unwrap();
        assert_eq!(lines.get("long.256K.near.read"), Some(98));
        assert_eq!((lines.text("A").as_str(), lines.get("y")), (GOOD, None));
    }

    #[test]
    fn a_damaged_file_is_none() {
        let line = |line: &str| format!("fishplate costs 1\nhost A\n{line}\nend\n");
        for bad in [
            "x",
            "x 0",
            "x -1",
            "x 1000000001",
            "x 1 2",
            "x 1\nx 2",
            "/etc/passwd 3",
            " 3",
            "end",
        ] {
            assert_eq!(CostLines::parse(&line(bad), "A"), None, "{bad}");
        }
        for cut in 1..GOOD.len() - 1 {
            assert_eq!(CostLines::parse(&GOOD[..cut], "A"), None, "{cut}");
        }
        assert_eq!(CostLines::parse(GOOD, "B"), None);
        let many: String = (0..=MOST).map(|at| format!("x{at} 1\n")).collect();
        assert_eq!(CostLines::parse(&line(many.trim_end()), "A"), None);
    }

    #[test]
    fn what_a_file_cannot_hold_is_not_set() {
        let mut lines = CostLines::default();
        lines.set("a b", 1);
        lines.set("", 1);
        lines.set("none", 0);
        lines.set("slow", u32::MAX);
        assert_eq!(lines.iter().collect::<Vec<_>>(), [("slow", SLOWEST)]);
        (0..2 * MOST).for_each(|at| lines.set(&format!("x{at}"), 1));
        let text = lines.text("A");
        assert_eq!(CostLines::parse(&text, "A"), Some(lines));
    }
}
