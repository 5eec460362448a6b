//! The choices of algorithms that MPI libraries make for collectives, as tables, and these choices
//! as a setting of this library.
//!
//! The tables are data (`catalogue/collectives.toml`). A table has the rules of a range of
//! releases, in the words of their source: a rule selects by the number of ranks, and its steps by
//! the number of bytes. Each name of an algorithm is mapped to an algorithm of this library, equal
//! or *nearest*, or to none: then this library chooses.
//!
//! Invariant: a table has, for each of its collectives and each number of ranks, one choice for
//! every number of bytes.

mod bound;
mod read;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::release::{Project, Release, Version};
use bound::Bound;

const FILE: (&str, &str) = (
    "collectives.toml",
    include_str!("../../catalogue/collectives.toml"),
);

/// The built-in tables.
static TABLES: LazyLock<Vec<ChoiceTable>> = LazyLock::new(|| {
    let (name, text) = FILE;
    read::read(name, text).unwrap_or_else(|problem| panic!("the catalogue is damaged: {problem}"))
});

/// The name of the setting's choice that leaves an algorithm to this library.
const AUTO: &str = "auto";

/// The choices of the releases of one library from one version on.
#[derive(Clone, Debug)]
pub struct ChoiceTable {
    /// The name of the table: its first release.
    pub name: String,
    /// The releases in a few words.
    pub about: String,
    /// The source of the choices: a standing, a colon, and a reference.
    pub source: String,
    project: Project,
    since: Version,
    collectives: Vec<Collective>,
}

/// The choices for one collective.
#[derive(Clone, Debug)]
struct Collective {
    name: String,
    /// The conversion of bytes in the rules to bytes in the setting.
    scale: Scale,
    /// The algorithm that is used wherever it can be.
    first: Option<String>,
    rules: Vec<Rule>,
    algorithms: Vec<NamedAlgorithm>,
}

/// An algorithm of the library, and the one of this library in its place.
#[derive(Clone, Debug, PartialEq)]
struct NamedAlgorithm {
    name: String,
    /// The algorithm of this library; `None`: this library chooses.
    ours: Option<String>,
    /// The difference between the two; `None`: they are equal.
    difference: Option<String>,
}

/// The choices for some numbers of ranks.
#[derive(Clone, Debug)]
struct Rule {
    ranks: Ranks,
    steps: Vec<Step>,
}

/// The numbers of ranks for which a rule is used, unless an earlier rule is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ranks {
    Any,
    Below(u64),
    PowerOfTwo,
}

/// Algorithms for calls with fewer bytes than a bound: the first that can be used is.
#[derive(Clone, Debug)]
struct Step {
    names: Vec<String>,
    /// `None`: any number of bytes.
    bound: Option<Bound>,
}

/// The conversion of bytes in a table's rules to those by which this library chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    /// Both count the same bytes.
    Same,
    /// The rules count one rank's block, this library the blocks of all ranks.
    TimesRanks,
    /// The rules count the blocks of all ranks, this library one rank's block.
    ByRanks,
}

impl Scale {
    /// The least number of this library's bytes for `bytes` bytes of the rules.
    fn apply(self, bytes: u64, ranks: u64) -> u64 {
        match self {
            Scale::Same => bytes,
            Scale::TimesRanks => bytes.saturating_mul(ranks),
            Scale::ByRanks => bytes.div_ceil(ranks),
        }
    }
}

impl Ranks {
    fn include(self, ranks: u64) -> bool {
        match self {
            Ranks::Any => true,
            Ranks::Below(bound) => ranks < bound,
            Ranks::PowerOfTwo => ranks.is_power_of_two(),
        }
    }
}

/// A choice: from a number of bytes on, these algorithms of this library, of which the first that
/// can be used is.
type Choice<'a> = (u64, Vec<&'a str>);

impl Collective {
    /// The choices among `ranks` ranks, by rising numbers of bytes from 0 on.
    fn choices(&self, ranks: u64) -> Vec<Choice<'_>> {
        let mut choices: Vec<Choice> = Vec::new();
        let mut from = 0;
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.ranks.include(ranks));
        for step in rule.iter().flat_map(|rule| &rule.steps) {
            let end = step.bound.map_or(u64::MAX, |bound| {
                self.scale.apply(bound.first_beyond(ranks), ranks)
            });
            if end <= from {
                continue;
            }
            let algorithms = self.ours(step);
            if choices.last().is_none_or(|(_, last)| *last != algorithms) {
                choices.push((from, algorithms));
            }
            from = end;
        }
        choices
    }

    /// The algorithms of this library in place of those of a step.
    fn ours(&self, step: &Step) -> Vec<&str> {
        let names = self.first.iter().chain(&step.names);
        let mut ours: Vec<&str> = names
            .filter_map(|name| {
                let mut known = self.algorithms.iter();
                known.find(|one| one.name == *name)?.ours.as_deref()
            })
            .collect();
        if ours.is_empty() || self.first.is_some() && ours.len() == 1 {
            ours.push(AUTO);
        }
        ours
    }

    /// Appends the choices of this collective, as a setting, for jobs of `ranks` ranks.
    fn append_to(&self, setting: &mut Vec<String>, sizes: &[u64]) {
        let mut last = Vec::new();
        for &ranks in sizes {
            let choices = self.choices(ranks);
            if choices == last {
                continue;
            }
            for (from, algorithms) in &choices {
                // Of choices with equal bounds the last is tried first.
                for algorithm in algorithms.iter().rev() {
                    setting.push(match from {
                        0 => format!("{}/{ranks}={algorithm}", self.name),
                        from => format!("{}@{from}/{ranks}={algorithm}", self.name),
                    });
                }
            }
            last = choices;
        }
    }
}

impl ChoiceTable {
    /// All built-in tables.
    pub fn all() -> &'static [ChoiceTable] {
        &TABLES
    }

    /// The table of a release.
    pub fn of(release: Release) -> &'static ChoiceTable {
        let mut tables = TABLES.iter().rev();
        let table =
            tables.find(|table| table.project == release.project && table.since <= release.version);
        table.expect("a release has a table: tests compare the first of each project")
    }

    /// The table's choices as the value of `FISHPLATE_COLLECTIVES` for jobs of up to `ranks` ranks.
    /// Among other than the computed numbers of ranks, the choices of the next lower number hold.
    pub fn setting(&self, ranks: usize) -> String {
        let sizes = self.sizes(ranks as u64);
        let mut setting = Vec::new();
        for collective in &self.collectives {
            collective.append_to(&mut setting, &sizes);
        }
        setting.join(",")
    }

    /// The collectives whose choices the table has.
    pub fn collectives(&self) -> Vec<&str> {
        self.collectives.iter().map(|of| &*of.name).collect()
    }

    /// The algorithms that this library has not: for each the collective, the library's name, this
    /// library's algorithm in its place (`None`: this library chooses), and the difference.
    pub fn differences(&self) -> Vec<[&str; 4]> {
        let all = self.collectives.iter();
        all.flat_map(|of| {
            of.algorithms.iter().filter_map(|one| {
                let difference = one.difference.as_deref()?;
                let ours = one.ours.as_deref().unwrap_or(AUTO);
                Some([&*of.name, &*one.name, ours, difference])
            })
        })
        .collect()
    }

    /// The numbers of ranks for which choices are computed: all up to 8, powers of two and the next
    /// numbers, the bounds of the rules, and the number of the job.
    fn sizes(&self, ranks: u64) -> Vec<u64> {
        let powers = (3..20).map(|power| 1 << power);
        let powers = powers.flat_map(|power: u64| [power, power + 1]);
        let rules = self.collectives.iter().flat_map(|of| &of.rules);
        let bounds = rules.filter_map(|rule| match rule.ranks {
            Ranks::Below(bound) => Some(bound),
            _ => None,
        });
        let all = (2..8).chain(powers).chain(bounds).chain([ranks]);
        let mut sizes: Vec<u64> = all.filter(|size| (2..=ranks).contains(size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}
