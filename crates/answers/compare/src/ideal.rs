//! Idealised machines: the parts of a machine that cost nothing in a replay.

use anyhow::{Context, bail};
use fabric::components::Part;
use fabric::quantity::{Quantity, Raw};
use fabric::{GbPerSec, Host, Nanos, PerSec, Storage};
use profile::Summary;

use crate::machine::{Change, Machine};

/// The part of a machine that costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ideal {
    /// Delays that several messages may pass at once.
    Latency,
    /// All rates in bytes.
    Bandwidth,
    /// Work for each message.
    MessageRate,
    /// Files.
    Storage,
    /// All of these.
    Everything,
    /// All of these, and the ranks with equal calls share their work evenly.
    Distributed,
}

/// A rate that no machine has, but that the model can compute with.
const FAST: &str = "100000 Gb/s";
const OFTEN: &str = "1000000 M/s";
/// The rate of a host's work inside MPI.
const LOCAL: &str = "local";
/// The times of a host that its processor spends on each message.
const PROCESSOR: [&str; 6] = [
    "post",
    "poll",
    "mmio_line",
    "register",
    "register_page",
    "rail_switch",
];

impl Ideal {
    /// The kinds of cost, one at a time.
    pub const SINGLE: [Ideal; 4] = [
        Ideal::Latency,
        Ideal::Bandwidth,
        Ideal::MessageRate,
        Ideal::Storage,
    ];

    /// The kinds of cost that a machine has.
    pub fn of(machine: &Machine) -> impl Iterator<Item = Ideal> {
        let has_storage = machine.sheet.part(Storage::KIND).is_some();
        let single = Ideal::SINGLE.into_iter();
        single.filter(move |ideal| *ideal != Ideal::Storage || has_storage)
    }

    /// The seconds of a replay on this machine. An error says which machine failed, and why.
    pub(crate) fn seconds(self, outcome: &Result<Summary, String>) -> anyhow::Result<f64> {
        let name = match self {
            Ideal::Latency => "the machine without latency",
            Ideal::Bandwidth => "the machine with endless bandwidth",
            Ideal::MessageRate => "the machine with an endless message rate",
            Ideal::Storage => "the machine with an endless storage",
            Ideal::Everything => "the ideal machine",
            Ideal::Distributed => "the ideal machine with evenly distributed work",
        };
        match outcome {
            Ok(summary) => summary
                .virtual_s
                .with_context(|| format!("the replay on {name} has no time")),
            Err(why) => bail!("the replay on {name} failed: {why}"),
        }
    }

    /// The changes of a machine that make it so.
    pub fn changes(self, machine: &Machine) -> Vec<Change> {
        let values = machine.sheet.values();
        let change = |value: &fabric::catalogue::NamedValue| {
            let (kind, ideal) = ideal(value.kind, value.key, &value.raw)?;
            let is_all = matches!(self, Ideal::Everything | Ideal::Distributed);
            let wanted = is_all || self == kind;
            wanted.then(|| Change {
                path: value.path.clone(),
                value: ideal.into(),
            })
        };
        values.iter().filter_map(change).collect()
    }
}

/// The kind of cost of a value, and the value without that cost; `None` for a value that is no
/// time and no rate.
fn ideal(part: &str, key: &str, raw: &Raw) -> Option<(Ideal, &'static str)> {
    if part == Storage::KIND {
        let value = if key == "latency" { "0 ns" } else { FAST };
        return Some((Ideal::Storage, value));
    }
    // Copies of messages are free then, and work inside MPI is not.
    if part == Host::KIND && key == LOCAL {
        return None;
    }
    if Nanos::read(raw).is_some() {
        let of_messages = part == "software" || part == "host" && PROCESSOR.contains(&key);
        return Some(match of_messages {
            true => (Ideal::MessageRate, "0 ns"),
            false => (Ideal::Latency, "0 ns"),
        });
    }
    match () {
        _ if GbPerSec::read(raw).is_some() => Some((Ideal::Bandwidth, FAST)),
        _ if PerSec::read(raw).is_some() => Some((Ideal::MessageRate, OFTEN)),
        _ if key == "one_by_one" && *raw == Raw::Boolean(true) => {
            Some((Ideal::MessageRate, "false"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::System;
    use fabric::catalogue::Catalogue;

    #[test]
    fn an_ideal_machine_keeps_the_rate_of_work_inside_mpi() {
        let catalogue = Catalogue::builtin();
        let sheet = catalogue.sheet(System::KIND, "qdr").unwrap();
        let machine = Machine::new("qdr", sheet).unwrap();
        let values = machine.sheet.values();
        assert!(values.iter().any(|value| value.path == "host.local"));
        let rates = |ideal: Ideal| {
            let changes = ideal.changes(&machine);
            let of = |key: &str| {
                let path = format!("host.{key}");
                let change = changes.iter().find(|change| change.path == path);
                change.map(|change| change.value.clone())
            };
            (of("copy"), of("local"))
        };
        for ideal in [Ideal::Bandwidth, Ideal::Everything] {
            assert_eq!(rates(ideal), (Some(FAST.into()), None));
        }
        assert_eq!(rates(Ideal::Latency), (None, None));
    }

    #[test]
    fn every_machine_of_the_catalogue_can_be_idealised() {
        let catalogue = Catalogue::builtin();
        for name in ["sdr", "qdr", "2xqdr", "2x-unequal", "edr", "mpich2-2003"] {
            let sheet = catalogue.sheet(System::KIND, name).unwrap();
            let machine = Machine::new(name, sheet).unwrap();
            let mut sum = 0;
            for ideal in Ideal::of(&machine) {
                let changes = ideal.changes(&machine);
                assert!(
                    !changes.is_empty() && machine.allows(&changes),
                    "{name} {ideal:?}"
                );
                sum += changes.len();
            }
            let everything = Ideal::Everything.changes(&machine);
            assert!(machine.allows(&everything), "{name}");
            assert_eq!(everything.len(), sum);
        }
    }
}
