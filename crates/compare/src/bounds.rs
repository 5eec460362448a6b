//! The bound of a program on a machine: the greatest of six shares of its time.
//!
//! The time of a run falls into three parts: the mean computing of the ranks; the time beyond it
//! that remains on a machine without any cost of communication, which is *imbalance* (uneven
//! computing, and ranks that wait for each other's computing); and the rest, which the network
//! and the storage cost. The rest is divided in proportion to the time that disappears if one kind
//! of cost alone is idealised: *latency* (delays that messages share: chips, buses, cables,
//! switches), *bandwidth* (all rates in bytes), *message rate* (work for each message, one after
//! the other: processors and libraries, and the engines of HCAs), and *storage* (files, on a
//! machine with a storage).

use fabric::components::Part;
use fabric::quantity::{Quantity, Raw};
use fabric::{GbPerSec, Nanos, PerSec, Storage};
use profile::Summary;

use crate::machine::{Change, Machine};
use crate::report::Row;

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
}

/// A rate that no machine has, but that the model can compute with.
const FAST: &str = "100000 Gb/s";
const OFTEN: &str = "1000000 M/s";

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

    /// The changes of a machine that make it so.
    pub fn changes(self, machine: &Machine) -> Vec<Change> {
        let values = machine.sheet.values();
        let change = |value: &fabric::catalogue::NamedValue| {
            let (kind, ideal) = ideal(value.kind, value.key, &value.raw)?;
            let wanted = self == Ideal::Everything || self == kind;
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

/// The shares of a run's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The shares of [`Bounds::NAMES`].
    pub shares: [f64; 6],
}

impl Bounds {
    /// The names of the shares.
    pub const NAMES: [&str; 6] = [
        "computing",
        "imbalance",
        "latency",
        "bandwidth",
        "message rate",
        "storage",
    ];

    /// The shares of a run. `everything` is its time on a machine without cost of communication;
    /// `single` its times without each of [`Ideal::SINGLE`].
    pub fn of(summary: &Summary, everything: f64, single: [f64; 4]) -> Bounds {
        let time = summary.virtual_s.unwrap_or(0.0);
        if time <= 0.0 {
            return Bounds { shares: [0.0; 6] };
        }
        let computed: f64 = summary.per_rank.iter().map(|rank| rank.compute_s).sum();
        let mean = (computed / summary.ranks.max(1) as f64).min(time);
        // A replay without costs may take a little longer where it takes another path.
        let everything = everything.clamp(mean, time);
        let saved = single.map(|without| (time - without).max(0.0));
        let sum: f64 = saved.iter().sum();
        let costs = time - everything;
        let [latency, bandwidth, rate, storage] = match sum > 0.0 {
            true => saved.map(|saved| costs * saved / sum / time),
            // Nothing shows whose costs they are: they are the network's.
            false => {
                let third = costs / 3.0 / time;
                [third, third, third, 0.0]
            }
        };
        Bounds {
            shares: [
                mean / time,
                (everything - mean) / time,
                latency,
                bandwidth,
                rate,
                storage,
            ],
        }
    }

    /// The names of the shares that some of these rows have: storage only where a machine has one.
    pub fn names<'a>(rows: impl IntoIterator<Item = &'a Row>) -> &'static [&'static str] {
        let storage = |row: &Row| row.bounds.is_some_and(|bounds| bounds.shares[5] > 0.0);
        match rows.into_iter().any(storage) {
            true => &Bounds::NAMES,
            false => &Bounds::NAMES[..5],
        }
    }

    /// The name of the greatest share; the first of equal ones.
    pub fn name(&self) -> &'static str {
        let mut best = 0;
        for at in 1..self.shares.len() {
            if self.shares[at] > self.shares[best] {
                best = at;
            }
        }
        Bounds::NAMES[best]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::System;
    use fabric::catalogue::Catalogue;
    use fabric::components::Part;
    use profile::RankTimes;

    fn summary(time: f64, computed: [f64; 2]) -> Summary {
        let rank = |(rank, compute_s)| RankTimes {
            rank,
            compute_s,
            mpi_s: time - compute_s,
            wait_s: None,
        };
        Summary {
            ranks: 2,
            virtual_s: Some(time),
            per_rank: computed.into_iter().enumerate().map(rank).collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn the_greatest_share_is_the_bound() {
        for (time, computed, everything, single, name) in [
            (10.0, [8.0, 8.0], 8.0, [9.0, 9.5, 9.9, 10.0], "computing"),
            (10.0, [1.0, 9.0], 9.5, [9.9, 9.9, 9.9, 10.0], "computing"),
            (10.0, [0.0, 9.0], 9.5, [9.9, 9.9, 9.9, 10.0], "imbalance"),
            (10.0, [1.0, 1.0], 2.0, [4.0, 9.0, 8.0, 10.0], "latency"),
            (10.0, [1.0, 1.0], 2.0, [9.0, 3.0, 8.0, 10.0], "bandwidth"),
            (10.0, [1.0, 1.0], 2.0, [9.0, 8.0, 3.0, 10.0], "message rate"),
            (10.0, [1.0, 1.0], 2.0, [9.0, 8.0, 7.0, 2.0], "storage"),
        ] {
            let bounds = Bounds::of(&summary(time, computed), everything, single);
            assert_eq!(bounds.name(), name, "{bounds:?}");
            let sum: f64 = bounds.shares.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{bounds:?}");
        }
    }

    #[test]
    fn a_replay_that_takes_longer_without_costs_counts_as_no_saving() {
        let bounds = Bounds::of(&summary(10.0, [9.0, 9.0]), 10.5, [11.0, 9.9, 10.0, 10.0]);
        assert_eq!(bounds.shares[2..], [0.0; 4]);
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
