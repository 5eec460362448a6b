//! Finds the assumptions that decide which of two machines is better, by replays with changed
//! values.
//!
//! A value is an assumption if its source begins with *assumed* or *inferred*. Each is varied by a
//! fifth, up and down; a size that must be a power of two is halved and doubled. Values of the two
//! machines that come from one line of the catalogue are one assumption and vary together.
//!
//! Invariant: a group of assumptions is dismissed only if the answer stays although each of them is
//! varied on the best machine to its harm and on the rival to its benefit. This rests on one
//! premise: a value acts in one direction (a longer time never makes a program faster).

use anyhow::Result;
use fabric::catalogue::NamedValue;
use fabric::quantity::{Quantity, Raw};
use fabric::{Bytes, GbPerSec, Metres, Nanos, PerSec, Price, Ratio};

use crate::machine::{Change, Machine, is_uncertain};

/// The best machine, and the machine that is most likely to be better if the answer is wrong.
pub struct Duel<'a> {
    /// The machine that is best.
    pub best: &'a Machine,
    /// The machine that may be better.
    pub rival: &'a Machine,
    /// The number of ranks and of ranks on each host, if the criterion is price times time.
    pub by_money: Option<(usize, usize)>,
    /// The greatest quotient, best machine's time divided by the rival's, with which the answer
    /// stays.
    pub margin: f64,
}

/// The changes of the best machine and those of the rival, for one pair of replays.
pub type Pair = [Vec<Change>; 2];

/// A value of the catalogue that is assumed or inferred.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    /// The catalogue's part and key of the value, such as `hca.connectx-2.send`.
    pub name: String,
    /// The value in the catalogue, as text.
    pub value: String,
    /// The source of the value.
    pub source: String,
    /// For each machine, the paths of keys to the value; empty on a machine without it.
    paths: [Vec<String>; 2],
    /// The decreased and the increased value; `None` for one that hardware cannot have.
    varied: [Option<Raw>; 2],
    /// True if a larger value makes the machine slower.
    larger_is_slower: bool,
}

/// An assumption on which the answer depends, with the changed values with which the rival is
/// better.
#[derive(Clone, Debug, PartialEq)]
pub struct Deciding {
    /// The assumption on which the answer depends.
    pub assumption: Assumption,
    /// The decreased and the increased value; `None` where the rival is not better with it.
    pub values: [Option<String>; 2],
}

/// The result of the search for assumptions that change the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The number of assumptions of the two machines.
    pub assumptions: usize,
    /// True if the answer stays even if all assumptions change at once.
    pub holds_for_all: bool,
    /// The assumptions each of which changes the answer by itself.
    pub deciding: Vec<Deciding>,
}

const SMALLER: usize = 0;
const LARGER: usize = 1;

/// Finds the assumptions on which the answer depends. `measure` gives the times of the best machine
/// and its rival with these changes.
pub fn find(
    duel: &Duel,
    mut measure: impl FnMut(&[Pair]) -> Result<Vec<[f64; 2]>>,
) -> Result<Sensitivity> {
    let mut all = assumptions(duel.best, duel.rival);
    all.retain(|assumption| duel.by_money.is_some() || !assumption.is_price());
    let mut changes_answer = |pairs: &[Pair]| -> Result<Vec<bool>> {
        // Replays do not depend on prices.
        let timed = |changes: &Vec<Change>| -> Vec<Change> {
            let timed = changes
                .iter()
                .filter(|change| !change.path.ends_with(PRICE));
            timed.cloned().collect()
        };
        let of_times: Vec<Pair> = pairs
            .iter()
            .map(|pair| [timed(&pair[0]), timed(&pair[1])])
            .collect();
        let times = measure(&of_times)?;
        let lost = times
            .into_iter()
            .zip(pairs)
            .map(|(times, pair)| duel.is_lost(times, pair));
        Ok(lost.collect())
    };
    // All groups are varied to the best machine's disadvantage. Groups that change the answer are
    // halved until they have one assumption.
    let mut groups = vec![all.iter().collect::<Vec<_>>()];
    groups.retain(|group| !group.is_empty());
    let (mut holds_for_all, mut suspects) = (true, Vec::new());
    while !groups.is_empty() {
        let pairs: Vec<Pair> = groups.iter().map(|group| worst(group)).collect();
        let lost = changes_answer(&pairs)?;
        let mut next = Vec::new();
        for (group, _) in groups.iter().zip(lost).filter(|(_, lost)| *lost) {
            holds_for_all = false;
            match group.as_slice() {
                [one] => suspects.push(*one),
                many => next.extend(many.chunks(many.len().div_ceil(2)).map(<[_]>::to_vec)),
            }
        }
        groups = next;
    }
    suspects.sort_by_key(|one| all.iter().position(|other| std::ptr::eq(*one, other)));
    let tests: Vec<(usize, usize)> = (0..suspects.len())
        .flat_map(|at| [(at, SMALLER), (at, LARGER)])
        .filter(|(at, to)| suspects[*at].varied[*to].is_some())
        .collect();
    let pairs: Vec<Pair> = tests
        .iter()
        .map(|(at, to)| suspects[*at].together(*to))
        .collect();
    let lost = changes_answer(&pairs)?;
    let mut deciding = Vec::new();
    for (number, assumption) in suspects.iter().enumerate() {
        let value = |to: usize| {
            let at = tests.iter().position(|test| *test == (number, to))?;
            let change = Change::new("", assumption.varied[to].as_ref()?);
            lost[at].then_some(change.value)
        };
        let values = [value(SMALLER), value(LARGER)];
        if values.iter().any(Option::is_some) {
            deciding.push(Deciding {
                assumption: (*assumption).clone(),
                values,
            });
        }
    }
    Ok(Sensitivity {
        assumptions: all.len(),
        holds_for_all,
        deciding,
    })
}

impl Duel<'_> {
    /// True if the rival is better with these times. If the criterion includes prices, they are
    /// those after these changes.
    fn is_lost(&self, [best, rival]: [f64; 2], changes: &Pair) -> bool {
        let price = |machine: &Machine, changes: &[Change]| {
            let (ranks, per_host) = self.by_money?;
            machine.price_with(changes, ranks, per_host)
        };
        let prices = (
            price(self.best, &changes[0]),
            price(self.rival, &changes[1]),
        );
        match prices {
            (Some(of_best), Some(of_rival)) => {
                self.margin * rival * of_rival.amount() < best * of_best.amount()
            }
            _ => self.margin * rival < best,
        }
    }
}

/// The catalogue's key of prices.
const PRICE: &str = "price";

/// The changes that vary a group of assumptions to the best machine's disadvantage.
fn worst(group: &[&Assumption]) -> Pair {
    let of = |machine: usize| {
        let changes = group.iter().flat_map(|assumption| {
            let slower = machine == 0;
            let to = usize::from(assumption.larger_is_slower == slower);
            assumption.changes(machine, to)
        });
        changes.collect()
    };
    [of(0), of(1)]
}

impl Assumption {
    fn is_price(&self) -> bool {
        self.name.ends_with(PRICE)
    }

    /// The changes of one machine that set the decreased or the increased value.
    fn changes(&self, machine: usize, to: usize) -> Vec<Change> {
        let Some(raw) = &self.varied[to] else {
            return Vec::new();
        };
        let paths = self.paths[machine].iter();
        paths.map(|path| Change::new(path, raw)).collect()
    }

    /// The changes of both machines that set the decreased or the increased value.
    fn together(&self, to: usize) -> Pair {
        [self.changes(0, to), self.changes(1, to)]
    }
}

/// The assumptions of both machines that can be varied.
pub fn assumptions(best: &Machine, rival: &Machine) -> Vec<Assumption> {
    let mut places: Vec<NamedValue> = Vec::new();
    let mut found: Vec<Assumption> = Vec::new();
    for (machine, values) in [best.sheet.values(), rival.sheet.values()]
        .into_iter()
        .enumerate()
    {
        for value in values
            .into_iter()
            // No MPI program uses the network path through the kernel.
            .filter(|value| is_uncertain(&value.source) && value.kind != "kernel")
        {
            let same = |known: &NamedValue| {
                (known.key, &known.location, &known.raw) == (value.key, &value.location, &value.raw)
            };
            if let Some(at) = places.iter().position(same) {
                found[at].paths[machine].push(value.path);
                continue;
            }
            let mut paths = [Vec::new(), Vec::new()];
            paths[machine].push(value.path.clone());
            let part = match value.part.is_empty() {
                true => value.kind.to_string(),
                false => format!("{}.{}", value.kind, value.part),
            };
            found.push(Assumption {
                name: format!("{part}.{}", value.key),
                value: Change::new("", &value.raw).value,
                source: value.source.clone(),
                paths,
                varied: [None, None],
                larger_is_slower: larger_is_slower(&value),
            });
            places.push(value);
        }
    }
    for (assumption, value) in found.iter_mut().zip(&places) {
        assumption.varied = varied(value, |raw| {
            [best, rival].iter().enumerate().all(|(machine, sheet)| {
                let changes: Vec<Change> = assumption.paths[machine]
                    .iter()
                    .map(|path| Change::new(path, raw))
                    .collect();
                sheet.allows(&changes)
            })
        });
    }
    found.retain(|assumption| assumption.varied.iter().any(Option::is_some));
    found
}

/// Keys of counts and names, which cannot be varied.
const STRUCTURE: [&str; 10] = [
    "width",
    "lanes",
    "timed_lanes",
    "ports",
    "nodes",
    "socket",
    "card",
    "subnet",
    "rails",
    "reach",
];

/// The decreased and the increased value, if hardware can have them.
fn varied(value: &NamedValue, allows: impl Fn(&Raw) -> bool) -> [Option<Raw>; 2] {
    if STRUCTURE.contains(&value.key) {
        return [None, None];
    }
    // A fifth less and more; if this is not possible, half and double.
    const STEPS: [[(u64, u64); 2]; 2] = [[(4, 5), (6, 5)], [(1, 2), (2, 1)]];
    [SMALLER, LARGER].map(|to| {
        let candidates = STEPS.map(|step| scaled(&value.raw, step[to]));
        candidates
            .into_iter()
            .flatten()
            .find(|raw| *raw != value.raw && allows(raw))
    })
}

/// A quantity times the fraction `over / under`; `None` for a value that is not a quantity.
fn scaled(raw: &Raw, (over, under): (u64, u64)) -> Option<Raw> {
    let part = |number: u64| (u128::from(number) * u128::from(over) / u128::from(under)) as u64;
    let text = if let Some(time) = Nanos::read(raw) {
        format!("{} ps", part(time.picos()))
    } else if let Some(rate) = GbPerSec::read(raw) {
        GbPerSec::from_bits_per_sec(part(rate.bits_per_sec())).show()
    } else if let Some(rate) = PerSec::read(raw) {
        PerSec(part(rate.0)).show()
    } else if let Some(length) = Metres::read(raw) {
        Metres::from_millimetres(part(length.millimetres())).show()
    } else if let Some(size) = Bytes::read(raw) {
        format!("{} B", part(size.0))
    } else if let Some(share) = Ratio::read(raw) {
        let share = share.times(Ratio::new(over.min(under) as u32, under.max(over) as u32)?)?;
        // A share cannot be larger than 1.
        if over > under {
            return None;
        }
        share.show()
    } else if let Some(Some(price)) = Option::<Price>::read(raw) {
        Some(price.part(over, under)).show()
    } else if let Raw::Integer(number) = raw {
        let by = (number / 5).max(1);
        let changed = if over > under {
            number + by
        } else {
            number - by
        };
        return Some(Raw::Integer(changed));
    } else {
        return None;
    };
    Some(Raw::Text(text))
}

/// True if a larger value is slower or costlier: times, lengths, prices, and overheads in bytes.
fn larger_is_slower(value: &NamedValue) -> bool {
    const OVERHEADS: [&str; 9] = [
        "work_request",
        "completion",
        "write_overhead",
        "completion_overhead",
        "request_overhead",
        "copy_traffic",
        "header",
        "hops",
        "read_completion_overhead",
    ];
    Nanos::read(&value.raw).is_some()
        || Metres::read(&value.raw).is_some()
        || value.key == PRICE
        || OVERHEADS.contains(&value.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::System;
    use fabric::catalogue::Catalogue;
    use fabric::components::Part;

    fn machine(name: &str) -> Machine {
        let sheet = Catalogue::builtin().sheet(System::KIND, name).unwrap();
        Machine::new(name, sheet).unwrap()
    }

    fn duel<'a>(best: &'a Machine, rival: &'a Machine) -> Duel<'a> {
        Duel {
            best,
            rival,
            by_money: None,
            margin: 1.0,
        }
    }

    /// The sum of times with these changes, in picoseconds. Each key has its unchanged time in
    /// nanoseconds and a weight.
    fn sum(changes: &[Change], keys: &[(&str, f64, f64)]) -> f64 {
        let time = |&(path, value, weight): &(&str, f64, f64)| {
            let changed = changes.iter().find(|change| change.path == path);
            let picos = changed.map_or(value * 1e3, |change| {
                change.value.trim_end_matches(" ps").parse().unwrap()
            });
            picos * weight
        };
        keys.iter().map(time).sum()
    }

    #[test]
    fn values_of_one_line_are_one_assumption_of_both_machines() {
        let (qdr, fdr) = (machine("qdr"), machine("fdr"));
        let all = assumptions(&qdr, &fdr);
        let find = |name: &str| all.iter().find(|one| one.name.ends_with(name));
        let shared = find("cable.copper.length").expect("both have the cable");
        assert_eq!(
            shared.paths,
            [["cable.length"], ["cable.length"]].map(|p| p.map(String::from).to_vec())
        );
        let own = find("hca.connectx-2.send").expect("QDR has its own HCA");
        assert!(!own.paths[0].is_empty() && own.paths[1].is_empty());
        assert!(all.iter().all(|one| is_uncertain(&one.source)));
        assert!(all.len() > 20, "{}", all.len());
    }

    #[test]
    fn a_clear_answer_needs_one_comparison() {
        let (qdr, fdr) = (machine("qdr"), machine("fdr"));
        let mut asked = 0;
        let found = find(&duel(&fdr, &qdr), |pairs| {
            asked += pairs.len();
            Ok(vec![[1.0, 2.0]; pairs.len()])
        });
        let found = found.unwrap();
        assert!(found.holds_for_all && found.deciding.is_empty());
        assert_eq!(asked, 1);
    }

    #[test]
    fn the_values_that_decide_are_named_with_their_direction() {
        let (qdr, fdr) = (machine("qdr"), machine("fdr"));
        // FDR leads by 10 of 1,000 ns. Of its values only the poll of 60 ns changes that by itself.
        let best = [
            ("host.poll", 60.0, 1.0),
            ("host.dma_read", 650.0, 0.01),
            ("", 930.0, 1.0),
        ];
        let rival = [("host.post", 80.0, 0.1), ("", 998.5, 1.0)];
        let found = find(&duel(&fdr, &qdr), |pairs| {
            let times = pairs.iter().map(|[a, b]| [sum(a, &best), sum(b, &rival)]);
            Ok(times.collect())
        });
        let found = found.unwrap();
        assert!(!found.holds_for_all);
        let names: Vec<_> = found
            .deciding
            .iter()
            .map(|one| one.assumption.name.as_str())
            .collect();
        assert_eq!(names, ["host.sandy-bridge.poll"]);
        assert_eq!(found.deciding[0].values, [None, Some("72000 ps".into())]);
    }

    #[test]
    fn a_price_that_is_assumed_decides_without_a_run() {
        let priced = |name: &str, hca: &str| {
            let mut catalogue = Catalogue::builtin();
            let parts = ["host", "cable", "switch"];
            let parts = parts.map(|part| {
                format!("{part} = {{ price = \"10 USD\", source = \"published: a list\" }}\n")
            });
            let hca = format!("hca = {{ price = \"{hca}\", source = \"assumed: an offer\" }}\n");
            let text = format!(
                "[system.{name}]\nfrom = \"{name}-base\"\n{}{hca}",
                parts.concat()
            );
            let text = text.replace(&format!("{name}-base"), "qdr");
            catalogue.add("shop.toml", &text).unwrap();
            let sheet = catalogue.sheet(System::KIND, name).unwrap();
            Machine::new(name, sheet).unwrap()
        };
        let (best, rival) = (priced("one", "100 USD"), priced("other", "110 USD"));
        let mut duel = duel(&best, &rival);
        let mut timed = 0;
        let mut measure = |pairs: &[Pair]| {
            timed += pairs
                .iter()
                .flatten()
                .flatten()
                .filter(|change| change.path.ends_with("price"))
                .count();
            Ok(vec![[1.0, 1.0]; pairs.len()])
        };
        duel.by_money = Some((2, 1));
        let found = find(&duel, &mut measure).unwrap();
        let names: Vec<_> = found
            .deciding
            .iter()
            .map(|one| one.assumption.name.as_str())
            .collect();
        assert_eq!(names, ["hca.connectx-2.price", "hca.connectx-2.price"]);
        assert_eq!(found.deciding[0].values, [None, Some("120 USD".into())]);
        duel.by_money = None;
        assert!(find(&duel, &mut measure).unwrap().deciding.is_empty());
        assert_eq!(timed, 0);
    }

    #[test]
    fn a_common_value_that_acts_on_both_alike_does_not_decide() {
        let (qdr, fdr) = (machine("qdr"), machine("fdr"));
        let both = [("cable.metre", 5.0, 100.0)];
        let found = find(&duel(&fdr, &qdr), |pairs| {
            let times = pairs
                .iter()
                .map(|[a, b]| [sum(a, &both), sum(b, &both) + 1.0]);
            Ok(times.collect())
        });
        let found = found.unwrap();
        assert!(
            !found.holds_for_all && found.deciding.is_empty(),
            "{found:?}"
        );
    }
}
