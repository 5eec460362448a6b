//! Finds the assumptions that decide which of two machines is better, by replays with changed
//! values.
//!
//! An estimate may stand in place of exact replays as long as its error cannot matter.
//!
//! Invariant: a group of assumptions is dismissed only if the answer stays although each of them is
//! varied on the best machine to its harm and on the rival to its benefit. This rests on one
//! premise: a value acts in one direction (a longer time never makes a program faster).

use anyhow::Result;

pub use crate::assumption::Assumption;
use crate::assumption::{LARGER, PRICE, SMALLER, assumptions};
use crate::machine::{Change, Machine};

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
    /// The numbers of pairs of times that were estimated, and of those that were then replayed the
    /// exact way because their errors could matter.
    pub estimated: (usize, usize),
    /// True if the answer stays even if all assumptions change at once.
    pub holds_for_all: bool,
    /// The assumptions each of which changes the answer by itself.
    pub deciding: Vec<Deciding>,
}

/// The times of the best machine and its rival with changed values, in seconds.
pub trait Times {
    /// Estimates of the times of each pair, with the greatest errors that they may have. `None`:
    /// there are no estimates.
    fn estimates(&mut self, pairs: &[Pair]) -> Result<Option<Vec<Estimate>>>;

    /// The times of each pair by exact replays.
    fn exact(&mut self, pairs: &[Pair]) -> Result<Vec<[f64; 2]>>;
}

/// Estimates of the times of the best machine and of its rival, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimated times.
    pub times: [f64; 2],
    /// The greatest errors of these times.
    pub errors: [f64; 2],
}

impl<F: FnMut(&[Pair]) -> Result<Vec<[f64; 2]>>> Times for F {
    fn estimates(&mut self, _pairs: &[Pair]) -> Result<Option<Vec<Estimate>>> {
        Ok(None)
    }

    fn exact(&mut self, pairs: &[Pair]) -> Result<Vec<[f64; 2]>> {
        self(pairs)
    }
}

/// Finds the assumptions on which the answer depends.
pub fn find(duel: &Duel, mut times: impl Times) -> Result<Sensitivity> {
    let mut all = assumptions(duel.best, duel.rival);
    all.retain(|assumption| duel.by_money.is_some() || !assumption.is_price());
    let mut estimated = (0, 0);
    let mut changes_answer = |pairs: &[Pair]| duel.lost(pairs, &mut times, &mut estimated);
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
        estimated,
        holds_for_all,
        deciding,
    })
}

impl Duel<'_> {
    /// For each pair of changes, true if the rival is better with them. Where an estimate leaves
    /// that open, the exact times decide. `counts`: the pairs that were estimated, and those of
    /// them that were left open.
    fn lost(
        &self,
        pairs: &[Pair],
        times: &mut impl Times,
        counts: &mut (usize, usize),
    ) -> Result<Vec<bool>> {
        // Replays do not depend on prices.
        let timed = |changes: &Vec<Change>| -> Vec<Change> {
            let timed = changes
                .iter()
                .filter(|change| !change.path.ends_with(PRICE));
            timed.cloned().collect()
        };
        let of_times = pairs
            .iter()
            .map(|pair| [timed(&pair[0]), timed(&pair[1])])
            .collect::<Vec<Pair>>();
        let Some(estimates) = times.estimates(&of_times)? else {
            let exact = times.exact(&of_times)?.into_iter().zip(pairs);
            return Ok(exact
                .map(|(times, pair)| self.is_lost(times, pair))
                .collect());
        };
        let bounds = estimates.iter().zip(pairs).map(|(estimate, pair)| {
            let [(best, of_best), (rival, of_rival)] =
                [0, 1].map(|of| (estimate.times[of], estimate.errors[of]));
            let least = self.is_lost([best - of_best, rival + of_rival], pair);
            let most = self.is_lost([best + of_best, rival - of_rival], pair);
            (least == most).then_some(most)
        });
        let bounds: Vec<Option<bool>> = bounds.collect();
        let open = (0..pairs.len()).filter(|at| bounds[*at].is_none());
        let open: Vec<usize> = open.collect();
        counts.0 += pairs.len();
        counts.1 += open.len();
        let exact = match open.as_slice() {
            [] => Vec::new(),
            open => {
                let wanted = open.iter().map(|at| of_times[*at].clone());
                times.exact(&wanted.collect::<Vec<Pair>>())?
            }
        };
        let mut exact = open.iter().zip(exact);
        let decided = bounds
            .into_iter()
            .enumerate()
            .map(|(at, known)| match known {
                Some(lost) => lost,
                None => exact
                    .next()
                    .is_some_and(|(_, times)| self.is_lost(times, &pairs[at])),
            });
        Ok(decided.collect())
    }

    /// True if the rival is better with these times. If the criterion includes prices, they are
    /// those after these changes.
    fn is_lost(&self, [best, rival]: [f64; 2], changes: &Pair) -> bool {
        let price = |machine: &Machine, changes: &[Change]| {
            let (ranks, per_host) = self.by_money?;
            machine.cost_with(changes, ranks, per_host)
        };
        let prices = (
            price(self.best, &changes[0]),
            price(self.rival, &changes[1]),
        );
        match prices {
            (Some(of_best), Some(of_rival)) => self.margin * of_rival.of(rival) < of_best.of(best),
            _ => self.margin * rival < best,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::is_uncertain;
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
        let found = find(&duel(&fdr, &qdr), |pairs: &[Pair]| {
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
        let found = find(&duel(&fdr, &qdr), |pairs: &[Pair]| {
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
        let found = find(&duel(&fdr, &qdr), |pairs: &[Pair]| {
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

    /// Estimates that are off by this time at most, and exact times.
    struct Estimated {
        error: f64,
        exact: usize,
    }

    impl Times for &mut Estimated {
        fn estimates(&mut self, pairs: &[Pair]) -> Result<Option<Vec<Estimate>>> {
            let estimate = Estimate {
                times: [9.0, 10.0],
                errors: [self.error, 0.0],
            };
            Ok(Some(vec![estimate; pairs.len()]))
        }

        fn exact(&mut self, pairs: &[Pair]) -> Result<Vec<[f64; 2]>> {
            self.exact += pairs.len();
            Ok(vec![[9.5, 10.0]; pairs.len()])
        }
    }

    #[test]
    fn an_estimate_decides_unless_its_error_may_change_the_answer() {
        let (qdr, fdr) = (machine("qdr"), machine("fdr"));
        for (error, left_open) in [(0.9, 0), (1.1, 1)] {
            let mut times = Estimated { error, exact: 0 };
            let found = find(&duel(&fdr, &qdr), &mut times).unwrap();
            assert!(found.holds_for_all, "{found:?}");
            assert_eq!(found.estimated, (1, left_open));
            assert_eq!(times.exact, left_open);
        }
    }
}
