//! Idealises machines for replays: changes the values of a machine so that one kind of its costs,
//! or all of them, disappear.

use anyhow::{Context, bail};
use fabric::components::Part;
use fabric::quantity::{Quantity, Raw};
use fabric::{GbPerSec, Host, Nanos, PerSec, Storage};
use profile::Summary;

use crate::machine::{Change, JobOn, Machine};

/// The part of a machine that costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ideal {
    /// The delays of messages that do not occupy a resource, so that messages overlap in them.
    Latency,
    /// The time of each byte: all rates in bytes per second are unlimited.
    Bandwidth,
    /// The time that a resource spends on each message, whatever its length.
    MessageRate,
    /// The time of accesses to files.
    Storage,
    /// The waits of messages for links between switches.
    Contention,
    /// All of these costs.
    Everything,
    /// All of these costs, and in addition ranks with equal calls share their work evenly.
    Distributed,
}

/// A bandwidth that no machine has, but with which the model can compute.
const FAST: &str = "100000 Gb/s";
/// A message rate that no machine has, but with which the model can compute.
const OFTEN: &str = "1000000 M/s";
/// The key of the rate of a host's work inside MPI.
const LOCAL: &str = "local";
/// The keys of a host's times that its processor spends on each message.
const PROCESSOR: [&str; 6] = [
    "post",
    "poll",
    "mmio_line",
    "register",
    "register_page",
    "rail_switch",
];

impl Ideal {
    /// The kinds of cost that are idealised one at a time.
    pub const SINGLE: [Ideal; 5] = [
        Ideal::Latency,
        Ideal::Bandwidth,
        Ideal::MessageRate,
        Ideal::Storage,
        Ideal::Contention,
    ];

    /// The kinds of cost that a machine has for a job on these of its hosts. Each but contention
    /// has values; contention goes with an option of a run.
    pub fn of(machine: &Machine, job: &JobOn) -> impl Iterator<Item = Ideal> {
        let has_storage = machine.sheet.part(Storage::KIND).is_some();
        let crosses = machine.crosses_inner_links(job);
        let single = Ideal::SINGLE.into_iter();
        single.filter(move |ideal| match ideal {
            Ideal::Storage => has_storage,
            Ideal::Contention => crosses,
            _ => true,
        })
    }

    /// The time of a replay on an ideal machine, or on the machine as it is (`None`), in seconds.
    /// An error says which machine failed, and why.
    pub(crate) fn seconds(
        ideal: Option<Ideal>,
        outcome: &Result<Summary, String>,
    ) -> anyhow::Result<f64> {
        let name = match ideal {
            None => "the machine with a free start",
            Some(Ideal::Latency) => "the machine without latency",
            Some(Ideal::Bandwidth) => "the machine with endless bandwidth",
            Some(Ideal::MessageRate) => "the machine with an endless message rate",
            Some(Ideal::Storage) => "the machine with an endless storage",
            Some(Ideal::Contention) => "the machine with wide links between switches",
            Some(Ideal::Everything) => "the ideal machine",
            Some(Ideal::Distributed) => "the ideal machine with evenly distributed work",
        };
        match outcome {
            Ok(summary) => summary
                .virtual_s
                .with_context(|| format!("the replay on {name} has no time")),
            Err(why) => bail!("the replay on {name} failed: {why}"),
        }
    }

    /// The changes of a machine's values that remove these costs.
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

/// The kind of cost of a value, and the value that removes the cost; `None` for a value that is
/// neither a time nor a rate.
fn ideal(part: &str, key: &str, raw: &Raw) -> Option<(Ideal, &'static str)> {
    if part == Storage::KIND {
        let value = if key == "latency" { "0 ns" } else { FAST };
        return Some((Ideal::Storage, value));
    }
    // Copies of messages become free, but work inside MPI does not.
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
            for ideal in Ideal::of(&machine, &JobOn::new(2, 1)) {
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
