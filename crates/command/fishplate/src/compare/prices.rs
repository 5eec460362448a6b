//! Prices of a comparison, from the command line and from a file.
//!
//! Invariant: currencies that cannot be added, and money that buys no host, are errors before any
//! run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::compare::Machine;
use ::compare::cost::Terms;
use ::compare::machine::Change;
use clap::Args;
use fabric::Price;
use fabric::catalogue::Catalogue;
use fabric::quantity::{Quantity, Raw};
use results::arguments::{POSITIVE, whole_number};

use crate::fabric::files;

/// The kinds of parts that have a price.
const KINDS: [&str; 4] = ["host", "hca", "cable", "switch"];
/// The word for the price of an hour of a host.
const HOUR: &str = "hour";

#[derive(Args)]
pub(super) struct PriceArguments {
    /// Price of a part of a machine, or of an hour of one of its hosts: `edr.hca=700USD`,
    /// `edr.hour=3.60USD`, or `hca=700USD` for all machines. Parts are host, hca, cable and
    /// switch. May be repeated
    #[arg(long, value_name = "[NAME.]PART=AMOUNT", value_parser = price)]
    price: Vec<Given>,

    /// File of prices: tables [host], [hca], [cable] and [switch] with the names of the catalogue's
    /// parts, and [hour] with names of machines, each with an amount such as "700 USD"
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,

    /// Hosts of the cluster in which the job runs: its price is its part of them, with their
    /// switches [default: the hosts of the job]
    #[arg(long, value_name = "HOSTS", conflicts_with = "budget",
        value_parser = |word: &str| whole_number::<u32>(word, POSITIVE))]
    cluster: Option<u32>,

    /// Money for hosts of one machine: say how many it buys, and how many runs they make
    #[arg(long, value_name = "AMOUNT", value_parser = money)]
    budget: Option<Price>,

    /// Years of use over which a purchase is spread
    #[arg(long, value_name = "YEARS", default_value_t = 4.0, value_parser = years)]
    life: f64,
}

/// A price of the command line.
#[derive(Clone)]
struct Given {
    /// The words before the part; empty for all machines.
    machine: String,
    part: String,
    price: Price,
}

fn money(word: &str) -> Result<Price, String> {
    let read = <Option<Price>>::read(&Raw::Text(word.to_owned())).flatten();
    read.filter(|price| price.amount() > 0.0).ok_or_else(|| {
        "valid is an amount with its currency, such as 700USD or \"89.90 EUR\"".into()
    })
}

fn years(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok();
    number
        .filter(|years| (0.1..=30.0).contains(years))
        .ok_or_else(|| "valid are 0.1 to 30 years".into())
}

fn price(word: &str) -> Result<Given, String> {
    const VALID: &str = "valid are PART=AMOUNT and NAME.PART=AMOUNT, such as edr.hca=700USD; parts are host, hca, cable, switch and hour";
    let (key, amount) = word.rsplit_once('=').ok_or(VALID)?;
    let (machine, part) = key.rsplit_once('.').unwrap_or(("", key));
    match part == HOUR || KINDS.contains(&part) {
        true => Ok(Given {
            machine: machine.to_owned(),
            part: part.to_owned(),
            price: money(amount)?,
        }),
        false => Err(format!("'{part}' has no price; {VALID}")),
    }
}

/// The prices of a file: by kind, then by name.
type PriceList = BTreeMap<String, BTreeMap<String, Price>>;

/// Reads a file of prices.
fn list(file: &Path) -> Result<PriceList, String> {
    let read = files::open(Path::new(""), &file.to_string_lossy());
    let read = read.and_then(|(_, text)| parsed(&text));
    read.map_err(|why| format!("--prices {}: {why}", file.display()))
}

fn parsed(text: &str) -> Result<PriceList, String> {
    type Written = BTreeMap<String, BTreeMap<String, String>>;
    let written: Written = toml::from_str(text).map_err(|why| why.to_string().trim().to_owned())?;
    let mut list = PriceList::new();
    for (kind, prices) in written {
        if kind != HOUR && !KINDS.contains(&kind.as_str()) {
            return Err(format!(
                "[{kind}] is no table of prices; valid are [{}] and [{HOUR}]",
                KINDS.join("], [")
            ));
        }
        let prices = prices.into_iter().map(|(name, amount)| {
            let price = money(&amount);
            let price = price.map_err(|why| format!("{kind}.{name}: \"{amount}\": {why}"))?;
            Ok((name, price))
        });
        let prices = prices.collect::<Result<_, String>>()?;
        list.insert(kind, prices);
    }
    Ok(list)
}

impl PriceArguments {
    fn is_given(&self) -> bool {
        !self.price.is_empty()
            || self.prices.is_some()
            || self.cluster.is_some()
            || self.budget.is_some()
    }

    /// The machines with their prices.
    pub(super) fn priced(&self, machines: Vec<Machine>) -> Result<Vec<Machine>, String> {
        let list = self.prices.as_deref().map(list).transpose()?;
        let list = list.unwrap_or_default();
        self.check_names(&machines, &list)?;
        let terms = Terms {
            cluster: self.cluster,
            budget: self.budget,
            years: self.life,
        };
        let priced = machines.into_iter().map(|machine| {
            let machine = self.with_prices(machine, &list)?;
            Ok(machine.under(terms))
        });
        let priced: Vec<Machine> = priced.collect::<Result<_, String>>()?;
        self.check_money(&priced)?;
        Ok(priced)
    }

    /// A machine with the prices of the file, then with those of the command line.
    fn with_prices(&self, machine: Machine, list: &PriceList) -> Result<Machine, String> {
        let is_of = |given: &&Given| given.machine.is_empty() || given.machine == machine.word;
        let given = |part: &str| {
            let mut of = self.price.iter().rev().filter(is_of);
            of.find(|one| one.part == part).map(|one| one.price)
        };
        let listed = |kind: &str, name: &str| list.get(kind)?.get(name).copied();
        let hour = given(HOUR).or_else(|| listed(HOUR, &machine.word));
        let parts = machine.sheet.parts_of(&KINDS).into_iter();
        let prices = parts.filter_map(|(path, kind, part)| {
            let price = given(kind).or_else(|| listed(kind, &part))?;
            Some(Change {
                path: format!("{path}.price"),
                value: price.to_string(),
            })
        });
        let prices: Vec<Change> = prices.collect();
        let priced = machine.with_prices(&prices);
        let priced = priced.map_err(|why| format!("--price: {why}"))?;
        Ok(match hour {
            Some(hour) => priced.with_hour(hour),
            None => priced,
        })
    }

    /// Reports a price of a machine that is not compared, or of a part that nothing has.
    fn check_names(&self, machines: &[Machine], list: &PriceList) -> Result<(), String> {
        for Given { machine, part, .. } in &self.price {
            let is_known = machine.is_empty() || machines.iter().any(|one| one.word == *machine);
            if !is_known {
                return Err(format!(
                    "--price {machine}.{part}: {machine} is none of the machines of --fabrics"
                ));
            }
        }
        let catalogue = Catalogue::builtin();
        let own = machines.iter().flat_map(|one| one.sheet.parts_of(&KINDS));
        let own: Vec<(&str, String)> = own.map(|(_, kind, part)| (kind, part)).collect();
        for (kind, prices) in list {
            for name in prices.keys() {
                let of = match kind.as_str() {
                    HOUR => "system",
                    kind => kind,
                };
                let is_own = own.iter().any(|(kind, part)| *kind == of && part == name)
                    || machines
                        .iter()
                        .any(|one| of == "system" && one.word == *name);
                let found = catalogue.find(&format!("{of}.{name}"));
                if let (false, Err(why)) = (is_own, found) {
                    return Err(format!("--prices: {kind}.{name}: {}", why.what));
                }
            }
        }
        Ok(())
    }

    /// Reports currencies that cannot be compared, and a cluster or a budget without prices.
    fn check_money(&self, machines: &[Machine]) -> Result<(), String> {
        if !self.is_given() {
            return Ok(());
        }
        let option = match (self.budget, self.cluster) {
            (Some(budget), _) => format!("--budget {budget}"),
            (_, Some(hosts)) => format!("--cluster {hosts}"),
            _ => "--price".into(),
        };
        let needs_all = self.budget.is_some() || self.cluster.is_some();
        let mut first: Option<(&Machine, Price)> = None;
        for machine in machines {
            let cost = match machine.cost(1, 1) {
                Ok(cost) => cost,
                Err(why) if needs_all || why.contains("cannot be added") => {
                    return Err(format!(
                        "{option}: {}: {why} (--price {}.PART=AMOUNT, or --prices FILE)",
                        machine.word, machine.word
                    ));
                }
                Err(_) => continue,
            };
            let others = [first.map(|(one, price)| (one.word.as_str(), price))];
            let budget = self.budget.map(|budget| ("the budget", budget));
            for (of, price) in others.into_iter().chain([budget]).flatten() {
                if price.currency() != cost.price.currency() {
                    return Err(format!(
                        "{option}: prices of {} are in {}, and {of} is in {}: give all in one currency",
                        machine.word,
                        cost.price.currency(),
                        price.currency()
                    ));
                }
            }
            if let (Some((one, _)), true) = (first, self.budget.is_some())
                && one.is_hourly() != machine.is_hourly()
            {
                return Err(format!(
                    "{option}: hosts of {} and of {} are not paid alike, one by the hour and one bought: give both prices in one form",
                    one.word, machine.word
                ));
            }
            first = first.or(Some((machine, cost.price)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        machines: super::super::machines::MachineArguments,
        #[command(flatten)]
        prices: PriceArguments,
    }

    fn machines(words: &str) -> Result<Vec<Machine>, String> {
        let words = std::iter::once("compare").chain(words.split(' '));
        let parsed = Words::try_parse_from(words).map_err(|why| why.to_string())?;
        parsed.prices.priced(parsed.machines.machines(None)?)
    }

    const ALL: &str = "--fabrics qdr,edr --price host=1000USD --price cable=10USD --price switch=2000USD \
                       --price hca=100USD --price edr.hca=700USD";

    #[test]
    fn prices_of_the_command_line_are_for_one_machine_or_for_all() {
        let found = machines(ALL).unwrap();
        let price = |at: usize| found[at].cost(2, 1).unwrap().price.amount();
        assert_eq!((price(0), price(1)), (4220.0, 5420.0));
        let rented = machines("--fabrics qdr,edr --price edr.hour=2.50USD").unwrap();
        let cost = rented[1].cost(4, 2).unwrap();
        assert_eq!((cost.is_hourly, cost.an_hour), (true, 5.0));
        assert!(rented[0].cost(1, 1).is_err());
        let cluster = machines(&format!("{ALL} --cluster 20")).unwrap();
        assert_eq!(cluster[0].cost(1, 1).unwrap().price.amount(), 1210.0);
    }

    #[test]
    fn a_file_has_prices_of_parts_and_of_hours() {
        let text = "[hca]\nconnectx-4 = \"700 USD\"\n[hour]\nazure-hbv3 = \"3.60USD\"\n";
        let list = parsed(text).unwrap();
        assert_eq!(list["hca"]["connectx-4"].amount(), 700.0);
        assert_eq!(list["hour"]["azure-hbv3"].amount(), 3.6);
        for (text, says) in [
            ("[rack]\nx = \"1 USD\"\n", "[rack] is no table of prices"),
            (
                "[hca]\nx = \"cheap\"\n",
                "hca.x: \"cheap\": valid is an amount",
            ),
            ("[hca]\nx = 7\n", "invalid type"),
            ("hca", "TOML parse error"),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn money_that_cannot_be_compared_is_refused() {
        for (words, says) in [
            (
                format!("{ALL} --price qdr.hca=90EUR"),
                "prices in USD and EUR cannot be added",
            ),
            (
                "--fabrics qdr,edr --price qdr.hour=1USD --price edr.hour=2EUR".into(),
                "prices of edr are in EUR, and qdr is in USD",
            ),
            (
                format!("{ALL} --budget 3000USD"),
                "one host costs 3110 USD, more than the budget",
            ),
            (
                format!("{ALL} --budget 400000EUR"),
                "its prices are in USD, and the budget is in EUR",
            ),
            (
                format!("{ALL} --budget 9000USD --price edr.hour=2USD"),
                "are not paid alike",
            ),
            (
                "--fabrics qdr,edr --cluster 64".into(),
                "no price of its host, hca, cable",
            ),
            (
                "--fabrics qdr --price fdr.hca=7USD".into(),
                "fdr is none of the machines",
            ),
            (
                "--fabrics qdr --price rack=7USD".into(),
                "'rack' has no price",
            ),
            ("--fabrics qdr --price hca=7".into(), "valid is an amount"),
        ] {
            let why = machines(&words).map(drop).unwrap_err();
            assert!(why.contains(says), "{words}: {why}");
        }
    }
}
