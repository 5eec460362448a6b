//! Which rank is on which host.
//!
//! As text, one word for each run of ranks on one host: `0*2,1*2` puts ranks 0 and 1 on host 0, ranks 2 and 3 on host 1;
//! `0,1,0` is three ranks that take turns. Hosts are numbered in the order of their first ranks.

use std::fmt;

use crate::{Error, HOSTS};

/// The host of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    of: Vec<u32>,
}

impl Hosts {
    /// All on one host.
    pub fn one(ranks: usize) -> Self {
        Hosts { of: vec![0; ranks] }
    }

    /// By the host of each rank.
    pub fn new(of: Vec<u32>) -> Self {
        Hosts { of }
    }

    /// The first `counts[0]` ranks on host 0, the next on host 1. Nobody is on a host whose count is 0, so such a host
    /// must not be among them.
    pub fn blocks(counts: &[usize]) -> Self {
        debug_assert!(!counts.contains(&0));
        let runs = counts
            .iter()
            .zip(0..)
            .flat_map(|(&count, host)| std::iter::repeat_n(host, count));
        Hosts { of: runs.collect() }
    }

    /// Reads the text for a job of this many ranks.
    pub fn parse(text: &str, ranks: usize) -> Result<Self, Error> {
        let wrong = |why: String| Error::Hosts {
            value: text.chars().take(200).collect(),
            why,
        };
        let mut hosts = Hosts { of: Vec::new() };
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
            let known = hosts.count() as u32;
            if host > known {
                return Err(wrong(format!("host {host} comes before host {known}")));
            }
            if count > ranks - hosts.of.len() {
                return Err(wrong(format!(
                    "it places more ranks than the {ranks} of the job"
                )));
            }
            hosts.of.extend(std::iter::repeat_n(host, count));
        }
        match hosts.of.len() == ranks {
            true => Ok(hosts),
            false => Err(wrong(format!(
                "it places {} ranks, and the job has {ranks}",
                hosts.of.len()
            ))),
        }
    }

    /// How many hosts there are.
    pub fn count(&self) -> usize {
        self.of.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.of.len()
    }

    /// The host of a rank.
    pub fn of(&self, rank: usize) -> u32 {
        self.of[rank]
    }

    /// The ranks of a host, in order.
    pub fn on(&self, host: u32) -> impl Iterator<Item = usize> + '_ {
        let all = self.of.iter().enumerate();
        all.filter(move |&(_, &of)| of == host)
            .map(|(rank, _)| rank)
    }

    /// The ranks that share a host with this one, itself among them, in order.
    pub fn beside(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        self.on(self.of(rank))
    }

    /// Its index among them: its place in what they share.
    pub fn index(&self, rank: usize) -> usize {
        let host = self.of(rank);
        self.of[..rank].iter().filter(|&&of| of == host).count()
    }

    pub fn share(&self, one: usize, other: usize) -> bool {
        self.of(one) == self.of(other)
    }
}

/// Plain digits: `+1` is a number to `str::parse`, but not here.
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

/// The variable for a job, if it needs one: where all ranks are on one host, nothing is said.
pub(crate) fn variable(hosts: &Hosts) -> Option<(&'static str, String)> {
    (hosts.count() > 1).then(|| (HOSTS, hosts.to_string()))
}
