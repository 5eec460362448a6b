//! The parts of a lead: that of the network, and that of the hosts.
//!
//! Two machines differ in their networks (cards, rails, cables, switches) and perhaps in their
//! hosts (slots, memory, processors, the costs of the MPI library). Each network is therefore
//! replayed in the hosts of the other machine too. In equal hosts the network alone makes the
//! difference. That has two values, one in the hosts of each machine, because a faster network
//! saves a greater share of the time where hosts and library take less of it.

use anyhow::Result;

use crate::advice::{Advice, EQUAL};
use crate::jobs::{Runner, Task};
use crate::record::Record;
use crate::report::Row;
use crate::work::Measure;
use crate::{Request, start};

/// The values that decide (seconds, or prices times seconds) of two networks, each in the hosts of
/// both machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The names of both machines: the best, and its challenger.
    pub names: [String; 2],
    /// The names of their hosts in the catalogue.
    pub hosts: [String; 2],
    /// The values of each network, that of the best machine first, in the hosts of the best machine
    /// and in those of its challenger.
    pub values: [[f64; 2]; 2],
}

impl Exchange {
    /// The value of the challenger over that of the best machine.
    pub fn lead(&self) -> f64 {
        self.values[1][1] / self.values[0][0]
    }

    /// The value of the challenger's network over that of the best one, in the hosts of the best
    /// machine and in those of its challenger.
    pub fn of_network(&self) -> [f64; 2] {
        [0, 1].map(|hosts| self.values[1][hosts] / self.values[0][hosts])
    }

    /// The share of the lead that is the network's, in the hosts of the best machine and in those
    /// of its challenger: of factors that multiply, so by their logarithms. More than 1 where the
    /// hosts of the best machine are slower. `None` where there is no lead of which it could be a
    /// share.
    pub fn shares(&self) -> Option<[f64; 2]> {
        let lead = self.lead().max(0.0).ln();
        let share = |factor: f64| factor.ln() / lead;
        (lead >= EQUAL.ln_1p()).then(|| self.of_network().map(share))
    }

    /// The sentence. Empty where neither networks nor machines make a difference.
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

/// Whether machines of a comparison have different hosts, so that networks may be exchanged.
pub(crate) fn differ(request: &Request) -> bool {
    let first = &request.machines[0];
    let mut others = request.machines.iter();
    others.any(|machine| !machine.has_hosts_of(first))
}

/// Replays the networks of the best machine and of its challenger in each other's hosts. `None`:
/// the hosts are the same, or a network does not fit the other hosts.
pub(crate) fn exchange(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &[Row],
    measure: Measure,
    advice: &Advice,
) -> Result<Option<Exchange>> {
    let (Some(best), Some(rival)) = (advice.best(), advice.challenger()) else {
        return Ok(None);
    };
    let machines = [best, rival].map(|at| &request.machines[at]);
    if machines[0].has_hosts_of(machines[1]) {
        return Ok(None);
    }
    let ranks = advice.ranks;
    let pairs = [(best, rival), (rival, best)];
    let runs = pairs.map(|(network, hosts)| Task::in_hosts(network, hosts, ranks));
    let free = runs.clone().map(Task::with_free_start);
    let tasks = [runs, free].concat();
    let phase = "replaying both networks in each other's hosts";
    runner.phase(phase, Some(tasks.len()));
    let mut outcomes = runner.replay(request, record, &tasks)?;
    let free = outcomes.split_off(pairs.len());
    let marks = record.of(ranks);
    let marks = marks.and_then(|of| of.marks(None, &request.wanted));
    let exchanged = pairs.into_iter().zip(outcomes).zip(free);
    let values: Vec<Option<f64>> = exchanged
        .map(|(((network, hosts), run), free)| {
            let start = start(run.as_ref().ok()?, &free.ok()?)?;
            let value = measure.seconds(marks.as_ref(), run.as_ref().ok()?, start);
            let hosts = &request.machines[hosts];
            advice.value(&Row {
                value,
                price: request.machines[network].price_in(hosts, ranks, request.per_host),
                ..Row::new(request, network, ranks, run)
            })
        })
        .collect();
    let own = [best, rival].map(|at| {
        let row = rows
            .iter()
            .find(|row| (row.machine, row.ranks) == (at, ranks));
        advice.value(row?)
    });
    let ([Some(of_best), Some(of_rival)], [Some(best_there), Some(rival_there)]) =
        (own, values.as_slice())
    else {
        return Ok(None);
    };
    Ok(Some(Exchange {
        names: machines.map(|machine| machine.name.clone()),
        hosts: machines.map(|machine| machine.sheet.part("host").unwrap_or_default().to_owned()),
        values: [[of_best, *best_there], [*rival_there, of_rival]],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EDR in Haswell hosts beside QDR in Nehalem hosts.
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
        // The network in the challenger's hosts and the hosts with the best network make the lead.
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
        // The networks do, and the hosts take it back: there is no lead to have a share of.
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
