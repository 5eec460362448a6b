//! The start order: the launcher's command to the agent of a host to start the host's ranks, with
//! all that the agent needs for it.

use std::time::Duration;

use pmi::{Hosts, MOST_RANKS};
use secret::Secret;
use serde::{Deserialize, Serialize};

use crate::Program;
use crate::binding::BindingRequest;
use crate::output::OutputOptions;

/// The launcher's command to the agent of a host to start the host's ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub programs: Vec<Program>,
    pub output: OutputOptions,
    /// The rank that reads the launcher's standard input, if it is on this host.
    pub input: Option<usize>,
    /// True if a host with more ranks than cores is an error.
    pub one_core_each: bool,
    /// True if a program may be linked with the MPI library of another ABI.
    pub allow_other_mpi: bool,
    /// True if the MPI libraries of each program are to be reported.
    pub verbose: bool,
    /// True if ranks stop before their first instruction, until they get SIGCONT.
    pub held: bool,
    /// The world rank of the first rank to start.
    pub first: usize,
    /// The number of ranks to start.
    pub count: usize,
    /// The placement of the job, in the form that ranks parse.
    pub hosts: String,
    /// The number of ranks of the whole job.
    pub ranks: usize,
    /// True if rank 0 must explain its choices.
    pub explain: bool,
    /// The user's request for the binding of ranks.
    pub binding: BindingRequest,
    /// True if the ranks record their calls and messages for the job's profile.
    pub counts: bool,
    /// The most bytes of one output stream that may be sent without the launcher's confirmation.
    pub window: usize,
    /// The longest silence of either end of the connection. Zero: no limit.
    pub patience: Duration,
    /// The secret of the job.
    #[serde(with = "secret_bytes")]
    pub secret: Secret,
}

/// The encoding of a secret in a frame: its bytes.
mod secret_bytes {
    use secret::Secret;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        secret.as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        Deserialize::deserialize(from).map(Secret::from_bytes)
    }
}

impl StartOrder {
    /// Checks the numbers in the order, which come from another process. The error says which
    /// number is invalid.
    pub(crate) fn check(&self) -> Result<(), String> {
        let last = self.first.checked_add(self.count);
        let programs = self.programs.iter().map(|program| program.ranks);
        let places = programs.fold(0, usize::saturating_add);
        let fits = self.count > 0 && last.is_some_and(|last| last <= self.ranks.min(places));
        match fits && self.ranks <= MOST_RANKS {
            true => Ok(()),
            false => Err(format!(
                "it orders {} ranks from {} of a job of {}, and a job has from 1 to {MOST_RANKS}",
                self.count, self.first, self.ranks
            )),
        }
    }

    /// The placement of the job, if the order is valid. The error is the reason why it is not.
    pub(crate) fn placed(&self) -> Result<Hosts, String> {
        self.check()?;
        let hosts = Hosts::parse(&self.hosts, self.ranks).map_err(|why| why.to_string())?;
        let own = self.first..self.first + self.count;
        match hosts.beside(self.first).eq(own) {
            true => Ok(hosts),
            false => Err(format!(
                "it orders {} ranks from {}, which are not those of one host",
                self.count, self.first
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::frame::{ToAgent, WINDOW};
    use crate::agent::link::tests::link;

    fn order(first: usize, count: usize, ranks: usize) -> StartOrder {
        StartOrder {
            programs: vec![Program {
                ranks,
                ..Program::default()
            }],
            output: OutputOptions::default(),
            input: None,
            one_core_each: false,
            allow_other_mpi: false,
            verbose: false,
            held: false,
            first,
            count,
            hosts: String::new(),
            ranks,
            explain: false,
            binding: BindingRequest::default(),
            counts: false,
            window: WINDOW,
            patience: Duration::ZERO,
            secret: Secret::from_bytes([0xa5; Secret::LENGTH]),
        }
    }

    #[test]
    fn an_order_carries_the_secret_and_does_not_show_it() {
        let (mut here, mut there) = link();
        here.post(&ToAgent::Start(Box::new(order(0, 1, 1))));
        there.pull();
        let Ok(Some(ToAgent::Start(order))) = there.next() else {
            panic!("no order")
        };
        assert_eq!(order.secret.as_bytes(), &[0xa5; Secret::LENGTH]);
        let shown = format!("{order:?}");
        assert!(!shown.contains("165") && !shown.contains("a5"), "{shown}");
    }

    #[test]
    fn impossible_orders_are_refused() {
        let most = usize::MAX;
        for (first, count, ranks, is_valid) in [
            (0, 2, 2, true),
            (1, 4095, 4096, true),
            (0, 0, 2, false),
            (1, 2, 2, false),
            (most, 1, 4, false),
            (0, 1 << 62, 1 << 62, false),
            (most, most, most, false),
        ] {
            let order = order(first, count, ranks);
            assert_eq!(order.check().is_ok(), is_valid, "{first} {count} {ranks}");
        }
    }

    #[test]
    fn an_order_has_all_ranks_of_one_host() {
        for (first, count, is_valid) in [(0, 2, true), (2, 2, true), (1, 2, false), (2, 1, false)] {
            let hosts = "0*2,1*2".into();
            let order = StartOrder {
                hosts,
                ..order(first, count, 4)
            };
            assert_eq!(order.placed().is_ok(), is_valid, "{first} {count}");
        }
    }
}
