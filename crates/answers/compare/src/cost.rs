//! What the hosts of a job cost: a price to buy them, spread over their years of use, or a price of
//! an hour.

use fabric::{Price, System};

/// The hours of a year.
const HOURS: f64 = 365.25 * 24.0;

/// The conditions under which the hosts of all machines are paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The hosts of the cluster of which the job has a part. `None`: the job's hosts are the whole
    /// machine.
    pub cluster: Option<u32>,
    /// The money for hosts of one machine. The cluster is then as large as that allows.
    pub budget: Option<Price>,
    /// The years that a bought host is used, without a pause.
    pub years: f64,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            cluster: None,
            budget: None,
            years: 4.0,
        }
    }
}

/// The cost of the hosts of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The price of the hosts with their network: of all, or of an hour of all.
    pub price: Price,
    /// True if `price` is that of an hour.
    pub is_hourly: bool,
    /// The cost of an hour of the hosts, in units of the currency.
    pub an_hour: f64,
    /// What the budget buys. `None`: there is no budget.
    pub bought: Option<Bought>,
}

/// What a budget buys of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bought {
    /// The hosts; for hosts that are paid by the hour, the hours of one host.
    pub hosts: u64,
    /// The jobs that run at once on them; for hosts that are paid by the hour, the hours of a job.
    pub jobs: f64,
}

impl Bought {
    /// The runs that the budget gives, if one takes `seconds`: in an hour, or in all hours that
    /// are paid.
    pub fn runs(&self, seconds: f64) -> f64 {
        self.jobs * 3600.0 / seconds
    }
}

impl Cost {
    /// The cost of hosts that are bought for a price, and used for the usual time.
    #[cfg(test)]
    pub(crate) fn bought(price: Price) -> Cost {
        Cost {
            price,
            is_hourly: false,
            an_hour: price.amount() / (Terms::default().years * HOURS),
            bought: None,
        }
    }

    /// The cost of `seconds` of the job.
    pub fn of(&self, seconds: f64) -> f64 {
        self.an_hour * seconds / 3600.0
    }

    /// The price as a word of a table.
    pub fn word(&self) -> String {
        match self.is_hourly {
            true => format!("{} an hour", self.price),
            false => self.price.to_string(),
        }
    }
}

/// The cost of `hosts` hosts of a system under these terms. `hour`: the price of an hour of one
/// host, which stands in place of the prices of parts.
///
/// # Errors
/// The reason why there is no cost: prices that are missing or have different currencies, a cluster
/// or a budget that is too small for the job.
pub(crate) fn cost(
    system: &System,
    hour: Option<Price>,
    terms: &Terms,
    hosts: u32,
) -> Result<Cost, String> {
    if let Some(hour) = hour {
        let price = hour.part(hosts.into(), 1);
        let bought = terms.budget.map(|budget| {
            let hours = budget.amount() / hour.amount();
            Bought {
                hosts: hours as u64,
                jobs: hours / f64::from(hosts.max(1)),
            }
        });
        return Ok(Cost {
            price,
            is_hourly: true,
            an_hour: price.amount(),
            bought,
        });
    }
    let priced = |hosts: u32| system.price(hosts).map_err(|why| why.to_string());
    let cluster = match terms.budget {
        Some(budget) => Some(affordable(system, budget)?),
        None => terms.cluster,
    };
    let price = match cluster {
        None => priced(hosts)?,
        Some(all) if all < hosts => {
            let what = match terms.budget {
                Some(_) => "the budget buys",
                None => "the cluster has",
            };
            return Err(format!("{what} {all} hosts, and the job needs {hosts}"));
        }
        Some(all) => priced(all)?.part(hosts.into(), all.into()),
    };
    let bought = cluster.filter(|_| terms.budget.is_some());
    Ok(Cost {
        price,
        is_hourly: false,
        an_hour: price.amount() / (terms.years * HOURS),
        bought: bought.map(|all| Bought {
            hosts: all.into(),
            jobs: f64::from(all / hosts.max(1)),
        }),
    })
}

/// The most hosts of a system, with their network, for a budget.
fn affordable(system: &System, budget: Price) -> Result<u32, String> {
    let price = |hosts: u32| system.price(hosts).map_err(|why| why.to_string());
    let one = price(1)?;
    if one.currency() != budget.currency() {
        return Err(format!(
            "its prices are in {}, and the budget is in {}",
            one.currency(),
            budget.currency()
        ));
    }
    if one.amount() > budget.amount() {
        return Err(format!(
            "one host costs {one}, more than the budget of {budget}"
        ));
    }
    // A larger tree never costs less, so the greatest number is found by halves.
    let (mut least, mut most) = (1, system.most_hosts());
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        match price(middle)?.amount() <= budget.amount() {
            true => least = middle,
            false => most = middle - 1,
        }
    }
    Ok(least)
}

/// An amount of money with as many digits as it needs.
pub(crate) fn amount(amount: f64, currency: &str) -> String {
    match amount {
        small if small > 0.0 && small < 0.001 => format!("{small:.2e} {currency}"),
        large if large >= 100.0 => format!("{large:.0} {currency}"),
        usual => format!("{} {currency}", results::table::significant(usual)),
    }
}

/// A number of runs with three digits.
pub(crate) fn runs(number: f64) -> String {
    match number {
        large if large >= 1e6 => format!("{large:.2e}"),
        large if large >= 100.0 => format!("{large:.0}"),
        small => results::table::significant(small),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    /// QDR hosts for 1000 EUR, HCAs for 100, cables for 10, switches for 2000.
    fn priced() -> System {
        let mut catalogue = Catalogue::builtin();
        let text = "[system.x]\nfrom = \"qdr\"\nsource = \"assumed: a test\"\nhost = { price = \"1000 EUR\" }\n\
                    hca = { price = \"100 EUR\" }\ncable = { price = \"10 EUR\" }\nswitch = { price = \"2000 EUR\" }\n";
        catalogue.add("test.toml", text).unwrap();
        catalogue.system("x").unwrap()
    }

    fn euro(amount: u32) -> Price {
        let text = fabric::quantity::Raw::Text(format!("{amount} EUR"));
        <Option<Price> as fabric::quantity::Quantity>::read(&text)
            .flatten()
            .unwrap()
    }

    #[test]
    fn a_job_pays_for_its_part_of_the_cluster() {
        let system = priced();
        let alone = cost(&system, None, &Terms::default(), 2).unwrap();
        assert_eq!(alone.price.amount(), 2.0 * 1110.0 + 2000.0);
        let terms = Terms {
            cluster: Some(20),
            ..Terms::default()
        };
        let part = cost(&system, None, &terms, 2).unwrap();
        assert_eq!(part.price.amount(), (20.0 * 1110.0 + 2000.0) / 10.0);
        let hours = 4.0 * HOURS;
        assert!((part.an_hour - part.price.amount() / hours).abs() < 1e-9);
        assert!((part.of(3600.0) - part.an_hour).abs() < 1e-12);
        let why = cost(&system, None, &terms, 21).unwrap_err();
        assert_eq!(why, "the cluster has 20 hosts, and the job needs 21");
    }

    #[test]
    fn a_budget_buys_whole_hosts_with_their_network() {
        let system = priced();
        let terms = |budget| Terms {
            budget: Some(euro(budget)),
            ..Terms::default()
        };
        // 20 hosts below one switch: 24,200 EUR.
        let of = cost(&system, None, &terms(24_200), 8).unwrap();
        assert_eq!(
            of.bought,
            Some(Bought {
                hosts: 20,
                jobs: 2.0
            })
        );
        assert_eq!(of.bought.unwrap().runs(1800.0), 4.0);
        let less = cost(&system, None, &terms(24_199), 8).unwrap();
        assert_eq!(less.bought.unwrap().hosts, 19);
        // Far beyond one switch the price of the bought cluster still fits.
        let many = cost(&system, None, &terms(1_000_000), 8).unwrap();
        let hosts = many.bought.unwrap().hosts as u32;
        assert!(system.price(hosts).unwrap().amount() <= 1e6);
        assert!(system.price(hosts + 1).unwrap().amount() > 1e6);
        let why = cost(&system, None, &terms(3000), 1).unwrap_err();
        assert_eq!(
            why,
            "one host costs 3110 EUR, more than the budget of 3000 EUR"
        );
        let why = cost(&system, None, &terms(24_200), 30).unwrap_err();
        assert_eq!(why, "the budget buys 20 hosts, and the job needs 30");
    }

    #[test]
    fn hosts_by_the_hour_cost_what_their_hours_cost() {
        let system = Catalogue::builtin().system("edr").unwrap();
        let terms = Terms {
            budget: Some(euro(100)),
            ..Terms::default()
        };
        let of = cost(&system, Some(euro(2)), &terms, 5).unwrap();
        assert_eq!((of.price.amount(), of.is_hourly), (10.0, true));
        assert_eq!(
            of.bought,
            Some(Bought {
                hosts: 50,
                jobs: 10.0
            })
        );
        assert_eq!(of.bought.unwrap().runs(3600.0), 10.0);
    }

    #[test]
    fn amounts_keep_three_digits() {
        assert_eq!(amount(0.000_012_34, "EUR"), "1.23e-5 EUR");
        assert_eq!(amount(12345.0, "EUR"), "12345 EUR");
        assert_eq!(amount(1.234, "EUR"), "1.23 EUR");
    }
}
