//! Divides the advantage of the best machine over its challenger into a part of its network and a
//! part of its hosts.

use crate::row::EQUAL;

/// The times (in seconds), or prices times times, of two networks, each in the hosts of both
/// machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The names of both machines: the best one, then its challenger.
    pub names: [String; 2],
    /// The names of the machines' hosts in the catalogue.
    pub hosts: [String; 2],
    /// The values of each network, that of the best machine first, in the hosts of the best machine
    /// and in those of its challenger.
    pub values: [[f64; 2]; 2],
}

impl Exchange {
    /// The value of the challenger divided by that of the best machine.
    pub fn lead(&self) -> f64 {
        self.values[1][1] / self.values[0][0]
    }

    /// The value of the challenger's network divided by that of the best machine's network: in the
    /// hosts of the best machine, and in those of the challenger.
    pub fn of_network(&self) -> [f64; 2] {
        [0, 1].map(|hosts| self.values[1][hosts] / self.values[0][hosts])
    }

    /// The share of the lead that the network causes, in the hosts of the best machine and in those
    /// of its challenger. Factors multiply, so shares are quotients of logarithms. A share is more
    /// than 1 if the hosts of the best machine are slower. `None` if there is no lead.
    pub fn shares(&self) -> Option<[f64; 2]> {
        let lead = self.lead().max(0.0).ln();
        let share = |factor: f64| factor.ln() / lead;
        (lead >= EQUAL.ln_1p()).then(|| self.of_network().map(share))
    }

    /// A sentence about the shares of network and hosts in the lead. Empty if neither networks nor
    /// machines make a difference.
    pub fn sentence(&self) -> String {
        let [in_best, in_rival] = self.of_network();
        let factors = [in_best, in_rival, self.lead()];
        if factors.iter().all(|factor| (factor - 1.0).abs() < EQUAL) {
            return String::new();
        }
        let percent = |factor: f64| format!("{:.0} %", (factor - 1.0) * 100.0).replace("-0 ", "0 ");
        let [best, rival] = &self.names;
        let (of_best, of_rival) = (&self.hosts[0], &self.hosts[1]);
        let rest = match self.lead() {
            lead if in_best.max(in_rival) > lead * (1.0 + EQUAL) => {
                format!("host and library of {best} take some of it back")
            }
            lead if in_best.min(in_rival) * (1.0 + EQUAL) > lead => {
                "host and library add nothing to it".to_owned()
            }
            _ => "the rest is host and library".to_owned(),
        };
        format!(
            "The network of {best} alone gives {} in the hosts of {rival} ({of_rival}) and {} in those of {best} ({of_best}); {rest}",
            percent(in_rival),
            percent(in_best),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EDR in Haswell hosts, compared with QDR in Nehalem hosts.
    fn exchange(values: [[f64; 2]; 2]) -> Exchange {
        Exchange {
            names: ["edr", "qdr"].map(String::from),
            hosts: ["haswell", "nehalem"].map(String::from),
            values,
        }
    }

    #[test]
    fn both_orders_are_named_and_the_rest() {
        let of = exchange([[1.0, 1.28], [1.15, 1.41]]);
        assert_eq!(
            of.sentence(),
            "The network of edr alone gives 10 % in the hosts of qdr (nehalem) and 15 % in those of edr (haswell); the rest is \
             host and library"
        );
        let shares = of.shares().unwrap();
        assert!((shares[0] - 1.15_f64.ln() / 1.41_f64.ln()).abs() < 1e-12);
        // The network in the challenger's hosts and the hosts with the best network together make
        // the lead.
        let host = (1.28_f64).ln() / 1.41_f64.ln();
        assert!((shares[1] + host - 1.0).abs() < 1e-12, "{shares:?}");
    }

    #[test]
    fn a_lead_of_the_network_alone_and_hosts_that_take_some_back_are_told() {
        let all = exchange([[1.0, 1.0], [1.4, 1.41]]).sentence();
        assert!(
            all.ends_with("; host and library add nothing to it"),
            "{all}"
        );
        let less = exchange([[1.0, 0.8], [1.3, 1.1]]);
        assert!(
            less.sentence()
                .ends_with("; host and library of edr take some of it back"),
            "{}",
            less.sentence()
        );
        assert!(less.shares().unwrap()[0] > 1.0);
    }

    #[test]
    fn networks_that_make_no_difference_have_no_sentence_and_no_share() {
        let equal = exchange([[1.0, 1.005], [0.999, 1.01]]);
        assert_eq!((equal.sentence().as_str(), equal.shares()), ("", None));
        // The networks differ, and the hosts cancel the difference: there is no lead to divide.
        let hidden = exchange([[1.0, 0.9], [1.12, 1.01]]);
        assert!(
            hidden.sentence().contains("12 % in the hosts of qdr"),
            "{}",
            hidden.sentence()
        );
        assert_eq!(hidden.shares(), None);
        let none = exchange([[1.0, 1.4], [0.999, 1.4]]).sentence();
        assert!(
            none.contains("gives 0 % in the hosts of qdr") && none.contains("and 0 % in"),
            "{none}"
        );
    }
}
