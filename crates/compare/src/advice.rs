//! The answer: one sentence, and how sure it is.

use crate::machine::Machine;
use crate::report::Row;
use crate::sensitivity::Sensitivity;

/// Times that differ by less than this share count as equal.
pub const EQUAL: f64 = 0.02;

/// The answer for the most ranks.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of the best machine; `None` if the program ran on none.
    pub best: Option<usize>,
    /// The next best.
    pub rival: Option<usize>,
    /// Price times time decides; otherwise time alone.
    pub by_money: bool,
    /// The number of the fastest machine.
    pub fastest: Option<usize>,
    /// The rival's time, or price times time, over that of the best.
    pub lead: f64,
    /// The last machine's time, or price times time, over that of the best.
    pub spread: f64,
    /// The assumptions that decide between best and rival.
    pub sensitivity: Option<Sensitivity>,
    names: Vec<String>,
}

impl Advice {
    /// The best machine and its rival. Price times time decides if every machine has a price in one
    /// currency, otherwise time.
    pub fn of(rows: &[Row], machines: &[Machine], ranks: usize) -> Advice {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.ranks == ranks).collect();
        let prices: Vec<_> = rows
            .iter()
            .filter_map(|row| row.price.as_ref().ok())
            .collect();
        let by_money = prices.len() == rows.len()
            && prices
                .windows(2)
                .all(|two| two[0].currency() == two[1].currency());
        let order = |value: fn(&Row) -> Option<f64>| {
            let mut order: Vec<(f64, usize)> = rows
                .iter()
                .filter_map(|row| Some((value(row)?, row.machine)))
                .collect();
            // The sort is stable, so the user's order decides between equal ones.
            order.sort_by(|one, other| one.0.total_cmp(&other.0));
            order
        };
        let best = order(match by_money {
            true => Row::money,
            false => Row::time,
        });
        let over_best = |at: usize| best.get(at).map_or(1.0, |other| other.0 / best[0].0);
        Advice {
            ranks,
            best: best.first().map(|best| best.1),
            rival: best.get(1).map(|rival| rival.1),
            by_money,
            fastest: order(Row::time).first().map(|fastest| fastest.1),
            lead: over_best(1),
            spread: over_best(best.len().saturating_sub(1)),
            sensitivity: None,
            names: machines
                .iter()
                .map(|machine| machine.name.clone())
                .collect(),
        }
    }

    fn name(&self, machine: Option<usize>) -> &str {
        machine.map_or("none", |at| &self.names[at])
    }

    /// The sentence.
    pub fn sentence(&self) -> String {
        let (best, rival) = (self.name(self.best), self.name(self.rival));
        let ranks = self.ranks;
        if self.best.is_none() {
            return "The program ran on none of the machines.".into();
        }
        if self.rival.is_none() {
            return format!(
                "{best} is the only machine on which the program ran with {ranks} ranks."
            );
        }
        let what = match self.by_money {
            true => "price times time",
            false => "time",
        };
        let percent = (self.lead - 1.0) * 100.0;
        let mut sentence = if self.spread < 1.0 + EQUAL {
            format!(
                "The choice hardly matters for {ranks} ranks: in {what} all machines are within {:.1} % of {best}",
                (self.spread - 1.0) * 100.0
            )
        } else if self.lead < 1.0 + EQUAL {
            format!(
                "Take {best} or {rival} for {ranks} ranks: they are best in {what}, and differ by {percent:.1} %"
            )
        } else {
            format!(
                "Take {best} for {ranks} ranks: {rival}, the next best, needs {percent:.0} % more {what}"
            )
        };
        if self.by_money && self.fastest != self.best {
            sentence += &format!(" (the fastest is {})", self.name(self.fastest));
        }
        sentence + "; " + &self.certainty() + "."
    }

    /// The certainty of the answer.
    fn certainty(&self) -> String {
        let best = self.name(self.best);
        let Some(found) = &self.sensitivity else {
            return "nothing is known about its assumptions".into();
        };
        let count = found.assumptions;
        match (found.holds_for_all, found.deciding.as_slice()) {
            (true, _) => format!(
                "this is sure: {best} stays ahead even if all {count} assumed or inferred values are off by 20 % at once"
            ),
            (false, []) => format!(
                "this is fairly sure: none of the {count} assumed or inferred values changes it by being off by 20 %, but several at once do"
            ),
            (false, [one]) => format!(
                "this is unsure: it changes if {} is off by 20 %",
                one.assumption.name
            ),
            (false, many) => format!(
                "this is unsure: it changes if one of {} values is off by 20 %",
                many.len()
            ),
        }
    }
}
