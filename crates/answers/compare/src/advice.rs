//! Chooses the answer of a comparison: the best number of ranks, the machines that are best with
//! it, and how sure that is.
//!
//! Machines that are equally good are named together, the cheapest first, or the simplest first if
//! prices are unknown: a buyer keeps the old machine if it does the work.

use results::table::distinct;

use crate::check::Check;
use crate::exchange::Exchange;
use crate::free_sources::FreeSources;
use crate::machine::{Machine, StandIn};
use crate::model_word::{ModelWord, of_model};
use crate::other_answers::recordings;
use crate::row::{EQUAL, Row};
use crate::sensitivity::Sensitivity;

/// The answer of a comparison: the recommended number of ranks and machines, with the figures
/// behind them.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The best number of ranks; of equally good ones the fewest.
    pub ranks: usize,
    /// The machines that are equally good with that many ranks; the recommended one is the first.
    /// Empty if no run has a time that can be compared.
    pub equals: Vec<usize>,
    /// The best machine that is not among `equals`; of equally good ones the first. `None`: all
    /// machines are equally good, or have no time that can be compared.
    pub rival: Option<usize>,
    /// True if the criterion is price times time; otherwise it is time alone.
    pub by_money: bool,
    /// The number of the machine that is fastest with the recommended number of ranks. `None`: no
    /// run has a time.
    pub fastest: Option<usize>,
    /// The rival's time, or price times time, divided by that of the best machine.
    pub lead: f64,
    /// The least time, or price times time, of the machines outside `equals`, divided by that of
    /// the rival: at most 1.
    closest: f64,
    /// The time, or price times time, of the last machine of `equals`, divided by that of the best
    /// machine.
    pub spread: f64,
    /// The other numbers of ranks, each with its best time, divided by that of
    /// [`ranks`](Advice::ranks).
    pub counts: Vec<(usize, f64)>,
    /// The number of recordings, or parts of the iterations, without which a machine other than the
    /// recommended one is better, and the number of all.
    pub recordings: (usize, usize),
    /// The assumptions that decide between the best machine and its challenger. `None`: they are
    /// unknown.
    pub sensitivity: Option<Sensitivity>,
    /// A comparison of the networks of the best machine and its challenger, each in the hosts of
    /// both. `None` if their hosts do not differ.
    pub exchange: Option<Exchange>,
    /// The certainty of the answer by the errors of the model on systems that were not used to
    /// build it. `None`: the model does not bear on the answer.
    pub model: Option<ModelWord>,
    /// The factor of the check by the recorded run, with the number of ranks of the answer. `None`:
    /// there is none.
    pub checked: Option<f64>,
    /// True if chance is unknown: there is one recording, without a loop of enough iterations.
    pub has_unknown_spread: bool,
    /// True if parts of the iterations were left out in turn, and not recordings.
    pub from_iterations: bool,
    /// The greatest spread of the times of a row, as a share. `None`: it is unknown.
    pub times_spread: Option<f64>,
    /// The number of placements on which the answer stays the same, and the number of all. `None`:
    /// there is one placement.
    pub placements: Option<(usize, usize)>,
    /// True if the nodes of these placements vary.
    pub nodes_vary: bool,
    /// The difference that the sources of receives from any source make. `None`: there are none.
    pub free_sources: Option<FreeSources>,
    names: Vec<String>,
    pub(crate) stand_ins: Vec<Vec<StandIn>>,
}

/// The value by which rows are compared: the row's time, or the price times that time.
fn deciding(by_money: bool) -> fn(&Row) -> Option<f64> {
    match by_money {
        true => Row::money,
        false => |row| row.value,
    }
}

/// The value of each machine, in ascending order; machines with equal values keep the user's order.
fn ordered(rows: &[&Row], value: impl Fn(&Row) -> Option<f64>) -> Vec<(f64, usize)> {
    let valued = rows
        .iter()
        .filter_map(|row| Some((value(row)?, row.machine)));
    let mut order: Vec<(f64, usize)> = valued.collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    order
}

impl Advice {
    /// The best number of ranks, by time, and the best machines with it. For machines the criterion
    /// is price times time if every row has a price, all in one currency; otherwise it is time.
    // Over 80 lines: one decision after the other, each by those before.
    pub fn of(rows: &[Row], machines: &[Machine]) -> Advice {
        let costs = rows.iter().map(|row| row.cost.as_ref().ok());
        let currencies = costs.map(|cost| cost.map(|cost| cost.price.currency().to_owned()));
        let by_money = matches!(&distinct(currencies)[..], [Some(_)]);
        let value = deciding(by_money);
        let sweep = distinct(rows.iter().map(|row| row.ranks));
        let best_of = |ranks: &usize| {
            let values = rows
                .iter()
                .filter(|row| row.ranks == *ranks)
                .filter_map(|row| row.value);
            Some((*ranks, values.reduce(f64::min)?))
        };
        let bests: Vec<(usize, f64)> = sweep.iter().filter_map(best_of).collect();
        let least = bests
            .iter()
            .map(|best| best.1)
            .fold(f64::INFINITY, f64::min);
        // Of equally good numbers of ranks the smallest: fewer ranks need fewer hosts.
        let equal = bests.iter().filter(|best| best.1 < least * (1.0 + EQUAL));
        let (ranks, value_there) = equal
            .copied()
            .min_by_key(|best| best.0)
            .unwrap_or((sweep.iter().copied().max().unwrap_or(1), least));
        let others = bests.iter().filter(|best| best.0 != ranks);
        let counts = others.map(|best| (best.0, best.1 / value_there));
        let here: Vec<&Row> = rows.iter().filter(|row| row.ranks == ranks).collect();
        let order = ordered(&here, value);
        // The machines that are as good as the one at position `first` of the order; none of those
        // before.
        let equals_from = |first: usize| {
            let least = order.get(first).map_or(0.0, |of| of.0);
            let others = order.iter().skip(first);
            let equal = others.take_while(|of| of.0 < least * (1.0 + EQUAL));
            let mut equal: Vec<usize> = equal.map(|of| of.1).collect();
            equal.sort_by_key(|at| (machines.get(*at).map(Machine::simplicity), *at));
            if by_money {
                equal.sort_by(|one, other| price(&here, *one).total_cmp(&price(&here, *other)));
            }
            equal
        };
        let equals = equals_from(0);
        let number = equals.len();
        let rival = equals_from(number).first().copied();
        let over = |least: usize, machine: Option<usize>| {
            let of = order.iter().find(|of| Some(of.1) == machine);
            of.map_or(1.0, |of| of.0 / order[least].0)
        };
        let last = order.get(number.saturating_sub(1)).map(|of| of.1);
        let mut advice = Advice {
            ranks,
            rival,
            by_money,
            fastest: ordered(&here, |row| row.value)
                .first()
                .map(|fastest| fastest.1),
            lead: over(0, rival),
            closest: rival.map_or(1.0, |_| 1.0 / over(number, rival)),
            spread: over(0, last),
            counts: counts.collect(),
            recordings: recordings(&here, &order, &equals),
            free_sources: FreeSources::of(&here, &order, &equals),
            equals,
            sensitivity: None,
            exchange: None,
            model: None,
            checked: None,
            has_unknown_spread: false,
            placements: None,
            nodes_vary: false,
            from_iterations: here.iter().any(|row| row.is_of_iterations),
            times_spread: rows.iter().filter_map(Row::spread).reduce(f64::max),
            names: machines
                .iter()
                .map(|machine| machine.name.clone())
                .collect(),
            stand_ins: machines.iter().map(Machine::stand_ins).collect(),
        };
        advice.judge(&here, machines, value);
        advice
    }

    /// Takes the error of the check by the recorded run in place of that of published figures.
    pub(crate) fn take_checks(&mut self, checks: &[Check], rows: &[Row], machines: &[Machine]) {
        let of = checks.iter().find(|check| check.ranks == self.ranks);
        self.checked = of.and_then(|check| check.outcome.as_ref().ok()?.factor());
        if self.checked.is_some() {
            let here: Vec<&Row> = rows.iter().filter(|row| row.ranks == self.ranks).collect();
            self.judge(&here, machines, deciding(self.by_money));
        }
    }

    /// Sets the certainty by the errors of the model.
    fn judge(&mut self, rows: &[&Row], machines: &[Machine], value: impl Fn(&Row) -> Option<f64>) {
        let (Some(best), Some(rival)) = (self.best(), self.challenger()) else {
            return;
        };
        let row = |machine: usize| rows.iter().find(|row| row.machine == machine);
        let (Some(of_best), Some(of_rival)) = (row(best), row(rival)) else {
            return;
        };
        if let (Some(one), Some(other)) = (value(of_best), value(of_rival)) {
            self.model = of_model(
                [&machines[best], &machines[rival]],
                [of_best, of_rival],
                [one, other],
                self.margin(),
                self.checked,
            );
        }
    }

    /// The value by which this row is compared: its time, or the price times that time. `None`: one
    /// of them is unknown.
    pub fn value(&self, row: &Row) -> Option<f64> {
        deciding(self.by_money)(row)
    }

    /// The number of the recommended machine. `None`: no run has a time that can be compared.
    pub fn best(&self) -> Option<usize> {
        self.equals.first().copied()
    }

    /// The machine that is most likely to be better if the answer is wrong: the best one outside
    /// `equals`, or else another of `equals`.
    pub fn challenger(&self) -> Option<usize> {
        let other = |machine: &&usize| Some(**machine) != self.best();
        self.rival
            .or_else(|| self.fastest.filter(|fastest| Some(*fastest) != self.best()))
            .or_else(|| self.equals.iter().find(other).copied())
    }

    /// The greatest quotient, best machine's time divided by the challenger's, with which the
    /// answer stays. It is not always 1: another machine, as good as the challenger, may be a
    /// little faster, and if all machines are equal, a small difference changes nothing.
    pub fn margin(&self) -> f64 {
        match self.rival {
            Some(_) => self.closest,
            None => 1.0 + 2.0 * EQUAL,
        }
    }

    pub(crate) fn name(&self, machine: Option<usize>) -> &str {
        machine.map_or("none", |at| &self.names[at])
    }

    fn what(&self) -> &'static str {
        match self.by_money {
            true => "price times time",
            false => "time",
        }
    }

    /// The names of the equal machines, joined by commas and `last`.
    pub(crate) fn equal_names(&self, last: &str) -> String {
        let names: Vec<&str> = self.equals.iter().map(|at| self.name(Some(*at))).collect();
        match names.as_slice() {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
        }
    }

    /// The answer as sentences for the user.
    pub fn sentence(&self) -> String {
        let Some(best) = self.best() else {
            return "The program ran, but no run has a time that can be compared: the times of its start or of its loop are missing.".into();
        };
        let (best, ranks) = (self.name(Some(best)), self.ranks);
        let what = self.what();
        let mut sentence = match (self.equals.as_slice(), self.rival) {
            ([_], None) => {
                let counts = self.counts_sentence();
                return match self.names.len() {
                    1 => format!("{counts}Only {best} was compared: name further machines."),
                    _ => format!(
                        "{counts}With {ranks} ranks the program could be compared on {best} alone, so nothing is advised: the reasons of the other machines are above."
                    ),
                };
            }
            (_, None) => format!(
                "With {ranks} ranks the choice hardly matters: in {what} {} are within {:.1} %; take {best}, {}",
                self.equal_names("and"),
                (self.spread - 1.0) * 100.0,
                match self.by_money {
                    true => "the cheapest",
                    false => "the simplest, unless another costs less",
                }
            ),
            ([_], Some(rival)) => format!(
                "Take {best} with {ranks} ranks: {}, the next best, needs {:.0} % more {what}",
                self.name(Some(rival)),
                (self.lead - 1.0) * 100.0
            ),
            (_, Some(rival)) => format!(
                "Take {} with {ranks} ranks, whichever costs least: in {what} they are within {:.1} %; {}, the next best, needs {:.0} % more",
                self.equal_names("or"),
                (self.spread - 1.0) * 100.0,
                self.name(Some(rival)),
                (self.lead - 1.0) * 100.0
            ),
        };
        if self.by_money
            && self
                .fastest
                .is_some_and(|fastest| !self.equals.contains(&fastest))
        {
            sentence += &format!(" (the fastest is {})", self.name(self.fastest));
        }
        format!(
            "{}{sentence}; {}.{}{}{}",
            self.counts_sentence(),
            self.certainty_sentence(),
            self.placements_sentence(),
            self.exchange_sentence(),
            self.stand_ins_sentence()
        )
    }

    /// The sentence about networks and hosts; empty if the hosts are the same.
    fn exchange_sentence(&self) -> String {
        let said = self.exchange.as_ref().map(Exchange::sentence);
        said.filter(|said| !said.is_empty())
            .map_or(String::new(), |said| format!(" {said}."))
    }

    /// The sentence about the other numbers of ranks; empty if there are none.
    fn counts_sentence(&self) -> String {
        if self.counts.is_empty() {
            return String::new();
        }
        let other = |(ranks, over): &(usize, f64)| match (over - 1.0).abs() < EQUAL {
            true => format!("{ranks} need as much"),
            false => format!("{ranks} need {:.0} % more", (over - 1.0) * 100.0),
        };
        let others: Vec<String> = self.counts.iter().map(other).collect();
        format!(
            "{} ranks are best, each number on its best machine: {} time. ",
            self.ranks,
            others.join(", ")
        )
    }
}

/// The cost of an hour of a machine; infinite if it has none.
fn price(rows: &[&Row], machine: usize) -> f64 {
    let row = rows.iter().find(|row| row.machine == machine);
    row.and_then(|row| row.cost.as_ref().ok())
        .map_or(f64::INFINITY, |cost| cost.an_hour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::cost::Cost;
    use crate::row::Outcome;
    use fabric::System;
    use fabric::catalogue::Catalogue;
    use fabric::components::Part;
    use fabric::quantity::{Quantity, Raw};
    use profile::Summary;

    fn machine(name: &str) -> Machine {
        let sheet = Catalogue::builtin().sheet(System::KIND, name).unwrap();
        Machine::new(name, sheet).unwrap()
    }

    /// A row with this time; `network` is the share of it that latencies cost.
    fn row(machine: usize, ranks: usize, seconds: f64, network: f64) -> Row {
        let summary = Summary {
            virtual_s: Some(seconds),
            ..Summary::default()
        };
        Row {
            machine,
            ranks,
            outcome: Outcome::Ran(Box::new(summary)),
            bounds: Some(Bounds::of_latency(network)),
            no_bounds: None,
            start: Some(0.0),
            prediction: None,
            iteration: None,
            value: Some(seconds),
            cost: Err("no price of its host".into()),
            free: None,
            without: vec![seconds; 3],
            is_of_iterations: false,
            placed: Vec::new(),
        }
    }

    fn advice(rows: &[Row]) -> Advice {
        let mut advice = Advice::of(rows, &[machine("qdr"), machine("edr")]);
        advice.sensitivity = Some(Sensitivity {
            assumptions: 40,
            estimated: (0, 0),
            holds_for_all: true,
            deciding: Vec::new(),
        });
        advice
    }

    #[test]
    fn stand_ins_are_named() {
        let says = advice(&[row(0, 8, 2.0, 0.1), row(1, 8, 1.0, 0.1)]).sentence();
        let wanted = "Stand-ins, which are assumed: hosts (haswell for edr, nehalem for qdr); costs of the MPI library (haswell \
                      for edr, nehalem for qdr).";
        assert!(says.ends_with(wanted), "{says}");
        // One part for several machines is named once.
        let machines = [machine("qdr"), machine("2xqdr")];
        let says = Advice::of(&[row(0, 8, 2.0, 0.1), row(1, 8, 1.0, 0.1)], &machines).sentence();
        assert!(
            says.ends_with("costs of the MPI library (nehalem for 2xqdr and qdr)."),
            "{says}"
        );
    }

    #[test]
    fn of_equal_machines_the_simplest_comes_first() {
        // As good as the dual rail, whose time is shorter by half a percent.
        let equal = [row(0, 8, 1.0, 0.5), row(1, 8, 1.005, 0.5)];
        let machines = [machine("2xqdr"), machine("qdr")];
        let advice = Advice::of(&equal, &machines);
        assert_eq!((&advice.equals, advice.rival), (&vec![1, 0], None));
        assert!((advice.spread - 1.005).abs() < 1e-12);
        let says = advice.sentence();
        assert!(
            says.contains("qdr and 2xqdr are within") && says.contains("take qdr, the simplest"),
            "{says}"
        );
        // Equally good machines that come second, after a better one.
        let behind = [equal[0].clone(), equal[1].clone(), row(2, 8, 0.9, 0.5)];
        let machines = [machine("2xqdr"), machine("qdr"), machine("edr")];
        let mut advice = Advice::of(&behind, &machines);
        assert_eq!((&advice.equals, advice.rival), (&vec![2], Some(1)));
        assert!((advice.lead - 1.005 / 0.9).abs() < 1e-12);
        // The margin is relative to the fastest of the machines that are as good as the rival.
        assert!((advice.margin() - 1.0 / 1.005).abs() < 1e-12);
        assert!(
            advice
                .sentence()
                .contains("qdr, the next best, needs 12 % more time")
        );
        // Prices decide if there are any.
        let euro = |row: &Row, amount: &str| {
            let price = <Option<fabric::Price>>::read(&Raw::Text(format!("{amount} EUR")));
            Row {
                cost: Ok(Cost::bought(price.flatten().unwrap())),
                ..row.clone()
            }
        };
        let priced = [euro(&equal[0], "100"), euro(&equal[1], "100.10")];
        let of_money = Advice::of(&priced, &machines);
        assert_eq!((of_money.by_money, &of_money.equals), (true, &vec![0, 1]));
        // Systems with equally many rails of one rate are ordered by the year of their card, then
        // by the user's order.
        let twins = [machine("r620-qdr"), machine("qdr"), machine("r610-qdr")];
        let rows = [0, 1, 2].map(|at| row(at, 2, 1.0, 0.5));
        assert_eq!(Advice::of(&rows, &twins).equals, [1, 2, 0]);
        advice.exchange = Some(Exchange {
            names: ["edr", "qdr"].map(String::from),
            hosts: ["haswell", "nehalem"].map(String::from),
            values: [[1.0, 1.28], [1.15, 1.41]],
        });
        let says = advice.sentence();
        assert!(
            says.contains(". The network of edr alone gives 10 % in the hosts of qdr"),
            "{says}"
        );
        assert!(
            says.contains("; the rest is host and library. Stand-ins"),
            "{says}"
        );
    }
}
