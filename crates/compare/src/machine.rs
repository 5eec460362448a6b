//! A machine of the comparison: its name on the command line, its values, and its price.

use anyhow::{Result, anyhow};
use fabric::accuracy::{self, Case};
use fabric::catalogue::Sheet;
use fabric::figures::Figures;
use fabric::quantity::Raw;
use fabric::{Price, PriceGap, System};
use model::check_cores;
use model::config::MachineConfig;

/// A machine of the comparison.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The word that names it to `fishplate run --fabric`.
    pub word: String,
    /// Its name in tables: the word without folders and suffix.
    pub name: String,
    /// All its values.
    pub sheet: Sheet,
    /// The time of computing on its processor over that on this computer, in thousandths.
    pub compute_scale: u64,
    system: System,
}

/// A changed value of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    /// The keys that lead to the value.
    pub path: String,
    /// The value as text.
    pub value: String,
}

impl Change {
    /// Changes the value at `path` to `raw`.
    pub fn new(path: &str, raw: &Raw) -> Change {
        let value = match raw {
            Raw::Text(text) => text.clone(),
            other => other.to_string(),
        };
        Change {
            path: path.into(),
            value,
        }
    }

    /// The value as `fishplate run --set` reads it.
    fn raw(&self) -> Raw {
        match (self.value.as_str(), self.value.parse()) {
            ("true", _) => Raw::Boolean(true),
            ("false", _) => Raw::Boolean(false),
            (_, Ok(number)) => Raw::Integer(number),
            _ => Raw::Text(self.value.clone()),
        }
    }
}

/// The parts of a machine by which a buyer knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// The number of rails.
    pub rails: u32,
    /// The key figures of the first rail.
    pub figures: Figures,
    /// The name of its card in the catalogue.
    pub card: String,
    /// The name of its host.
    pub host: String,
    /// The name of its MPI library.
    pub software: String,
    /// The price of one host with its share of the network.
    pub price: Option<Price>,
}

/// Facts of a machine that the comparison shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name in tables.
    pub name: String,
    /// The word that names it.
    pub word: String,
    /// Its values whose source begins with *assumed* or *inferred*: their number.
    pub uncertain: usize,
    /// The number of all its values.
    pub values: usize,
    /// The time of computing on its processor over that on this computer.
    pub compute_scale: f64,
    /// Its parts.
    pub hardware: Hardware,
    /// Its host and its MPI library, where these are assumed or inferred.
    pub stand_ins: Vec<StandIn>,
}

/// A part of the catalogue that is assumed for a machine, or inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The key of the part: `host` or `software`.
    pub key: String,
    /// The name of the part.
    pub part: String,
    /// Whether it is `assumed` or `inferred`.
    pub standing: &'static str,
    /// The reason.
    pub reason: String,
}

impl Machine {
    /// The machine that `word` names, with its values.
    pub fn new(word: &str, sheet: Sheet) -> Result<Machine> {
        let system = sheet.build::<System>();
        let file = word.rsplit('/').next().unwrap_or(word);
        Ok(Machine {
            word: word.into(),
            name: file.replace(".toml", ""),
            system: system.map_err(|why| anyhow!("{word}: {why}"))?,
            sheet,
            compute_scale: 1000,
        })
    }

    /// The machine with processors that compute `speed` times as fast as this computer's.
    pub fn with_speed(mut self, speed: f64) -> Machine {
        self.compute_scale = ((1000.0 / speed).round() as u64).max(1);
        self
    }

    /// Checks that the machine can have as many hosts as the ranks need.
    pub fn check(&self, ranks: usize, per_host: usize) -> Result<()> {
        let config = MachineConfig::new(&self.system, ranks, per_host, 1);
        config.map_err(|why| anyhow!("{}: {why}", self.word))?;
        self.check_threads(ranks.min(per_host), 1)
    }

    /// Checks that a host has a core for each thread of its ranks.
    pub fn check_threads(&self, ranks: usize, threads: usize) -> Result<()> {
        check_cores(&self.system, ranks, threads).map_err(|why| anyhow!("{}: {why}", self.word))
    }

    /// The price of the hosts that the ranks need.
    pub fn price(&self, ranks: usize, per_host: usize) -> Result<Price, PriceGap> {
        self.system.price(ranks.div_ceil(per_host.max(1)) as u32)
    }

    /// The price with changed values, if it has one.
    pub fn price_with(&self, changes: &[Change], ranks: usize, per_host: usize) -> Option<Price> {
        let hosts = ranks.div_ceil(per_host.max(1)) as u32;
        self.changed(changes)?.price(hosts).ok()
    }

    /// Whether the machine exists with these changes.
    pub fn allows(&self, changes: &[Change]) -> bool {
        self.changed(changes).is_some()
    }

    fn changed(&self, changes: &[Change]) -> Option<System> {
        let mut sheet = self.sheet.clone();
        for change in changes {
            sheet.set(&change.path, change.raw(), "compare").ok()?;
        }
        sheet.build().ok()
    }

    /// The facts to show.
    pub(crate) fn facts(&self) -> Facts {
        let values = self.sheet.values();
        let uncertain = values.iter().filter(|value| is_uncertain(&value.source));
        Facts {
            name: self.name.clone(),
            word: self.word.clone(),
            uncertain: uncertain.count(),
            values: values.len(),
            compute_scale: self.compute_scale as f64 / 1000.0,
            hardware: self.hardware(),
            stand_ins: self.stand_ins(),
        }
    }

    fn hardware(&self) -> Hardware {
        let part = |key: &str| self.sheet.part(key).unwrap_or_default().to_owned();
        Hardware {
            rails: self.system.rails.count(),
            figures: Figures::of(&self.system, 0),
            card: part("hca"),
            host: part("host"),
            software: part("software"),
            price: self.system.price(1).ok(),
        }
    }

    /// Its host and its MPI library, where these are assumed or inferred.
    pub fn stand_ins(&self) -> Vec<StandIn> {
        let uncertain = self.sheet.uncertain().into_iter();
        let parts = uncertain.filter(|one| ["host", "software"].contains(&one.path.as_str()));
        parts
            .map(|one| StandIn {
                key: one.path,
                part: one.value,
                standing: one.standing,
                reason: one.reason,
            })
            .collect()
    }

    /// What is known of it, for the errors of its predictions.
    pub(crate) fn case(&self) -> Case {
        Case::of(&self.system, accuracy::names_library(&self.sheet))
    }

    /// Whether hosts and MPI libraries of both machines cost the same.
    pub(crate) fn has_equal_host(&self, other: &Machine) -> bool {
        accuracy::have_equal_hosts(&self.sheet, &other.sheet)
    }

    /// Whether both machines have the same values, so that only their processors may differ.
    pub fn equals(&self, other: &Machine) -> bool {
        let values = |machine: &Machine| -> Vec<(String, Raw)> {
            let values = machine.sheet.values().into_iter();
            values.map(|value| (value.path, value.raw)).collect()
        };
        values(self) == values(other)
    }
}

/// Whether a source is an assumption or an inference.
pub(crate) fn is_uncertain(source: &str) -> bool {
    let standing = source.split(':').next().unwrap_or_default().trim();
    ["assumed", "inferred"].contains(&standing)
}
