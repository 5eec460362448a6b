//! A machine of the comparison: its name on the command line, its values, and its price.

use anyhow::{Result, anyhow};
use fabric::accuracy::{self, Case};
use fabric::catalogue::{HOST_KEYS, Sheet};
use fabric::components::Part;
use fabric::figures::Figures;
use fabric::quantity::Raw;
use fabric::{Host, Price, Software, Storage, System};
use model::check_cores;
use model::config::MachineConfig;
use model::placement::Placement;
use results::report::NetworkPicture;

use crate::cost::{Cost, Terms, cost};

/// A machine of the comparison.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The name of the machine for `fishplate run --fabric`: one of the catalogue, or a file.
    pub word: String,
    /// The name of the machine in tables: `word` without folders and suffix.
    pub name: String,
    /// The name of its hosts for `fishplate run --fabric-host`. `None`: the machine's own hosts.
    pub host: Option<String>,
    /// The values that the user has changed.
    pub changes: Vec<Change>,
    /// All values of the machine, with those hosts and those changes.
    pub sheet: Sheet,
    /// The time of computing on the machine's processor, divided by that on this computer, in
    /// thousandths.
    pub compute_scale: u64,
    /// The price of an hour of a host, in place of the prices of its parts.
    hour: Option<Price>,
    terms: Terms,
    system: System,
}

/// A job that is placed on a machine.
#[derive(Clone, Debug)]
pub struct JobOn {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of ranks on each host.
    pub per_host: usize,
    /// The hosts of the machine.
    pub placement: Placement,
}

impl JobOn {
    /// A job on the first hosts.
    pub fn new(ranks: usize, per_host: usize) -> JobOn {
        JobOn {
            ranks,
            per_host,
            placement: Placement::default(),
        }
    }
}

/// A changed value of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    /// The path of keys to the value, joined by dots.
    pub path: String,
    /// The value as text.
    pub value: String,
}

impl Change {
    /// A change of the value at `path` to `raw`.
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

    /// The value, parsed as `fishplate run --set` does.
    fn raw(&self) -> Raw {
        Raw::of_word(&self.value)
    }

    /// True if the change sets a value of a machine's hosts, rather than of its network.
    pub(crate) fn is_of_hosts(&self) -> bool {
        let first = self.path.split('.').next();
        first.is_some_and(|key| HOST_KEYS.contains(&key))
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

/// The parts of a machine, as a buyer knows them.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// The number of rails.
    pub rails: u32,
    /// The key figures of the first rail.
    pub figures: Figures,
    /// The name of the first rail's card in the catalogue.
    pub card: String,
    /// The name of the machine's host in the catalogue.
    pub host: String,
    /// The name of the machine's MPI library in the catalogue.
    pub software: String,
    /// The price of one host with its share of the network; `None` if the machine has no price.
    pub price: Option<Cost>,
    /// True if the machine has a model of storage, so that files take time.
    pub has_storage: bool,
    /// The picture of the first rail's network; `None` if the network is unknown.
    pub network: Option<NetworkPicture>,
}

/// Facts of a machine that the comparison shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The name of the machine in tables.
    pub name: String,
    /// The name of the machine on command lines.
    pub word: String,
    /// The number of the machine's values whose source begins with *assumed* or *inferred*.
    pub uncertain: usize,
    /// The number of all values of the machine.
    pub values: usize,
    /// The time of computing on the machine's processor, divided by that on this computer.
    pub compute_scale: f64,
    /// The name of the machine's hosts on command lines, if the user has chosen them.
    pub host: Option<String>,
    /// The values that the user has changed.
    pub changes: Vec<Change>,
    /// The hardware of the machine, as a buyer knows it.
    pub hardware: Hardware,
    /// The host and the MPI library of the machine, where these are assumed or inferred.
    pub stand_ins: Vec<StandIn>,
}

/// A host or MPI library of the catalogue that a machine is assumed or inferred to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The key of the part: `host` or `software`.
    pub key: String,
    /// The name of the part in the catalogue.
    pub part: String,
    /// The standing of the part: `assumed` or `inferred`.
    pub standing: &'static str,
    /// The reason for the assumption.
    pub reason: String,
}

/// The compute scale of this computer, in thousandths: its computing takes as long as recorded.
const THIS_SPEED: u64 = 1000;

impl Machine {
    /// The machine named `word`, with the values of `sheet`.
    pub fn new(word: &str, sheet: Sheet) -> Result<Machine> {
        let system = sheet.build::<System>();
        let file = word.rsplit('/').next().unwrap_or(word);
        Ok(Machine {
            word: word.into(),
            name: file.replace(".toml", ""),
            host: None,
            changes: Vec::new(),
            system: system.map_err(|why| anyhow!("{word}: {why}"))?,
            sheet,
            compute_scale: THIS_SPEED,
            hour: None,
            terms: Terms::default(),
        })
    }

    /// Records the name of the machine's hosts; `sheet` has their values already.
    pub fn in_hosts(mut self, word: &str) -> Machine {
        self.host = Some(word.to_owned());
        self
    }

    /// Changes values of the machine. An error names a change that is not valid.
    pub fn with_changes(mut self, changes: Vec<Change>) -> Result<Machine> {
        for change in &changes {
            let set = self.sheet.set(&change.path, change.raw(), "--set");
            set.map_err(|why| anyhow!("{}: {}", self.word, why.what))?;
        }
        let system = self.sheet.build();
        self.system = system.map_err(|why| anyhow!("{}: {}", self.word, why.what))?;
        self.changes = changes;
        Ok(self)
    }

    /// The machine with processors that compute `speed` times as fast as this computer's.
    pub fn with_speed(mut self, speed: f64) -> Machine {
        self.compute_scale = ((1000.0 / speed).round() as u64).max(1);
        self
    }

    /// Checks that the machine can have as many hosts as the ranks need, with a core for each rank.
    pub fn check(&self, ranks: usize, per_host: usize) -> Result<()> {
        self.check_placed(ranks, per_host, &Placement::default())
    }

    /// Checks that the ranks have room on the machine with this placement.
    pub fn check_placed(&self, ranks: usize, per_host: usize, placement: &Placement) -> Result<()> {
        let config = MachineConfig::placed(&self.system, (ranks, per_host), placement, 1);
        config.map_err(|why| anyhow!("{}: {why}", self.word))?;
        self.check_threads(ranks.min(per_host), 1)
    }

    /// True if some hosts of the job are not below one switch, so that its messages meet links
    /// between switches.
    pub(crate) fn crosses_inner_links(&self, job: &JobOn) -> bool {
        let placed = (job.ranks, job.per_host);
        let config = MachineConfig::placed(&self.system, placed, &job.placement, 1);
        config.is_ok_and(|MachineConfig { system, hosts, .. }| {
            let mut rails = (0..system.rails.count()).map(|number| system.rail(number));
            rails.any(|rail| {
                let network = system.network(&rail);
                let network = network.filter(|network| network.has_inner_links());
                let mut hosts = hosts.iter();
                let first = hosts.next().copied().unwrap_or(0);
                network.is_some_and(|network| hosts.any(|host| network.hops(first, *host) > 1))
            })
        })
    }

    /// The number of cores of a host for each of its ranks. `None`: the machine does not define it.
    pub(crate) fn cores_of_rank(&self, ranks: usize) -> Option<usize> {
        model::cores_of_rank(&self.system, ranks)
    }

    /// Checks that a host has a core for each thread of its ranks.
    pub fn check_threads(&self, ranks: usize, threads: usize) -> Result<()> {
        check_cores(&self.system, ranks, threads).map_err(|why| anyhow!("{}: {why}", self.word))
    }

    /// The machine with prices of its parts, by their paths, which no replay needs.
    ///
    /// # Errors
    /// A price that is not valid.
    pub fn with_prices(mut self, prices: &[Change]) -> Result<Machine> {
        for Change { path, value } in prices {
            let set = self.sheet.set(path, Raw::Text(value.clone()), "--price");
            set.map_err(|why| anyhow!("{}: {}", self.word, why.what))?;
        }
        let system = self.sheet.build();
        self.system = system.map_err(|why| anyhow!("{}: {}", self.word, why.what))?;
        Ok(self)
    }

    /// The machine with the price of an hour of a host.
    pub fn with_hour(mut self, hour: Price) -> Machine {
        self.hour = Some(hour);
        self
    }

    /// The machine under these terms.
    pub fn under(mut self, terms: Terms) -> Machine {
        self.terms = terms;
        self
    }

    /// The terms under which its hosts are paid.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// True if hosts of the machine are paid by the hour.
    pub fn is_hourly(&self) -> bool {
        self.hour.is_some()
    }

    /// The cost of the hosts that the ranks need. An error is the reason why there is none.
    pub fn cost(&self, ranks: usize, per_host: usize) -> Result<Cost, String> {
        cost(&self.system, self.hour, &self.terms, hosts(ranks, per_host))
    }

    /// The cost of the hosts of another machine with the network of this one.
    pub fn cost_in(
        &self,
        hosts_of: &Machine,
        ranks: usize,
        per_host: usize,
    ) -> Result<Cost, String> {
        let system = System {
            host: hosts_of.system.host,
            ..self.system
        };
        cost(&system, self.hour, &self.terms, hosts(ranks, per_host))
    }

    /// The cost of the machine with changed values, if it has one.
    pub fn cost_with(&self, changes: &[Change], ranks: usize, per_host: usize) -> Option<Cost> {
        let system = self.changed(changes)?;
        cost(&system, self.hour, &self.terms, hosts(ranks, per_host)).ok()
    }

    /// True if a machine with these changes is valid.
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

    /// The facts of the machine that the comparison shows.
    pub(crate) fn facts(&self) -> Facts {
        let values = self.sheet.values();
        let uncertain = values.iter().filter(|value| is_uncertain(&value.source));
        Facts {
            name: self.name.clone(),
            word: self.word.clone(),
            uncertain: uncertain.count(),
            values: values.len(),
            compute_scale: self.compute_scale as f64 / 1000.0,
            host: self.host.clone(),
            changes: self.changes.clone(),
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
            price: self.cost(1, 1).ok(),
            has_storage: self.sheet.part(Storage::KIND).is_some(),
            network: NetworkPicture::of(&self.name, &self.system, 0),
        }
    }

    /// The host and the MPI library of the machine, where these are assumed or inferred.
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

    /// True if the hosts of both machines are the same for a program: every value of time, the MPI
    /// library, and the speed of the processors. A system that is derived from another and changes
    /// only the card, the cable, the switch or the rails has the hosts of the other.
    pub fn has_hosts_of(&self, other: &Machine) -> bool {
        let hosts = |machine: &Machine| -> (Host, Software, u64) {
            let timed = Host {
                cores: None,
                price: None,
                ..machine.system.host
            };
            let software = machine.system.software.costs_alone();
            (timed, software, machine.compute_scale)
        };
        hosts(self) == hosts(other)
    }

    /// The order of machines by simplicity, the simplest first: by the number of rails, then by the
    /// rate of the first rail's link in bits per second, then by the year of its card. More of each
    /// costs a buyer more.
    pub(crate) fn simplicity(&self) -> (u32, u64, u32) {
        let rail = self.system.rail(0);
        let rate = rail.link_rate().bits_per_sec();
        (self.system.rails.count(), rate, rail.hca.year)
    }

    /// The time of a short message without MPI, in seconds, and the rate of all rails, in bytes per
    /// second.
    pub(crate) fn latency_and_rate(&self) -> (f64, f64) {
        let Hardware { rails, figures, .. } = self.hardware();
        let rate = figures.peak.bits_per_sec() as f64 / 8.0 * f64::from(rails);
        (figures.latency.picos() as f64 * 1e-12, rate)
    }

    /// The case of the machine, on which the errors of predictions depend: its MPI library is named
    /// or assumed, or its messages travel by TCP.
    pub(crate) fn case(&self) -> Case {
        Case::of(&self.system, accuracy::names_library(&self.sheet))
    }

    /// True if hosts and MPI libraries of both machines have the same costs.
    pub(crate) fn has_equal_host(&self, other: &Machine) -> bool {
        accuracy::have_equal_hosts(&self.sheet, &other.sheet)
    }

    /// True if both machines have the same values, so that only their processors may differ.
    pub fn equals(&self, other: &Machine) -> bool {
        let values = |machine: &Machine| -> Vec<(String, Raw)> {
            let values = machine.sheet.values().into_iter();
            values.map(|value| (value.path, value.raw)).collect()
        };
        values(self) == values(other)
    }
}

/// The number of hosts that ranks need.
fn hosts(ranks: usize, per_host: usize) -> u32 {
    ranks.div_ceil(per_host.max(1)) as u32
}

/// True if a value with this source is assumed or inferred.
pub(crate) fn is_uncertain(source: &str) -> bool {
    let standing = source.split(':').next().unwrap_or_default().trim();
    ["assumed", "inferred"].contains(&standing)
}

#[cfg(test)]
mod tests;
