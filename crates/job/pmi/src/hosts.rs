//! The placement of a job: the host of each rank.
//!
//! Its text has one item for each run of ranks on one host: `0*2,1*2` places ranks 0 and 1 on host
//! 0, ranks 2 and 3 on host 1; `0,1,0` places three ranks alternately. Hosts are numbered in the
//! order of their first ranks.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::{Error, HOSTS};

/// The placement of a job: the host of each rank. Clones share their memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    of: Arc<Vec<u32>>,
}

impl Hosts {
    /// The placement of `ranks` ranks on one host.
    pub fn one(ranks: usize) -> Self {
        Hosts::new(vec![0; ranks])
    }

    /// The placement with these host numbers, one for each rank.
    pub fn new(of: Vec<u32>) -> Self {
        Hosts { of: Arc::new(of) }
    }

    /// The placement of ranks on these hosts, whose numbers may be any: they are numbered anew.
    pub fn renumbered(of: &[u32]) -> Self {
        let mut known = HashMap::new();
        let number = |host: &u32| {
            let next = known.len() as u32;
            *known.entry(*host).or_insert(next)
        };
        Hosts::new(of.iter().map(number).collect())
    }

    /// Places the first `counts[0]` ranks on host 0, the next `counts[1]` on host 1, and so on. No
    /// count may be 0, because a host without ranks has no number.
    pub fn blocks(counts: &[usize]) -> Self {
        debug_assert!(!counts.contains(&0));
        let runs = counts
            .iter()
            .zip(0..)
            .flat_map(|(&count, host)| std::iter::repeat_n(host, count));
        Hosts::new(runs.collect())
    }

    /// Parses a placement of `ranks` ranks, in the text form of the job's variable.
    pub fn parse(text: &str, ranks: usize) -> Result<Self, Error> {
        let wrong = |why: String| Error::Hosts {
            value: text.chars().take(200).collect(),
            why,
        };
        let mut of = Vec::new();
        let mut known = 0;
        for word in text.split(',') {
            let (host, count) = word.split_once('*').unwrap_or((word, "1"));
            let (host, count) = match (number(host), number(count)) {
                (Some(host), Some(count)) if count > 0 => (host, count as usize),
                _ => {
                    return Err(wrong(format!(
                        "`{word}` is neither HOST nor HOST*COUNT, such as 0*2"
                    )));
                }
            };
            if host > known {
                return Err(wrong(format!("host {host} comes before host {known}")));
            }
            known = known.max(host + 1);
            if count > ranks - of.len() {
                return Err(wrong(format!(
                    "it places more ranks than the {ranks} of the job"
                )));
            }
            of.extend(std::iter::repeat_n(host, count));
        }
        match of.len() == ranks {
            true => Ok(Hosts::new(of)),
            false => Err(wrong(format!(
                "it places {} ranks, and the job has {ranks}",
                of.len()
            ))),
        }
    }

    /// Places one more rank, on this host.
    pub fn add(&mut self, host: u32) {
        Arc::make_mut(&mut self.of).push(host);
    }

    /// The number of hosts of the job.
    pub fn count(&self) -> usize {
        self.of.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// The number of ranks of the job.
    pub fn ranks(&self) -> usize {
        self.of.len()
    }

    /// The number of a rank's host.
    pub fn of(&self, rank: usize) -> u32 {
        self.of[rank]
    }

    /// The ranks on a host, in ascending order.
    pub fn on(&self, host: u32) -> impl Iterator<Item = usize> + '_ {
        let all = self.of.iter().enumerate();
        all.filter(move |&(_, &of)| of == host)
            .map(|(rank, _)| rank)
    }

    /// The ranks on the host of `rank`, itself included, in ascending order.
    pub fn beside(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        self.on(self.of(rank))
    }

    /// The index of `rank` among the ranks of its host, which is its position in their segment.
    pub fn index(&self, rank: usize) -> usize {
        let host = self.of(rank);
        self.of[..rank].iter().filter(|&&of| of == host).count()
    }

    /// True if two ranks are on the same host.
    pub fn share(&self, one: usize, other: usize) -> bool {
        self.of(one) == self.of(other)
    }
}

/// Parses digits only: `str::parse` would accept `+1`.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, run) in self.of.chunk_by(|left, right| left == right).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match run {
                [host] => write!(f, "{comma}{host}")?,
                run => write!(f, "{comma}{}*{}", run[0], run.len())?,
            }
        }
        Ok(())
    }
}

/// The environment variable that holds the placement, with its value. `None` if all ranks are on
/// one host, which is the default.
pub(crate) fn variable(hosts: &Hosts) -> Option<(&'static str, String)> {
    (hosts.count() > 1).then(|| (HOSTS, hosts.to_string()))
}
