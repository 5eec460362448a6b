//! The launcher's part in the exchange with agents: it has the job's whole key-value store, and
//! ends fences.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::agent::Misuse;
use super::members::Members;
use super::{Down, Put, Up};
use crate::kvs::Kvs;

/// The most bytes of values that are sent with the end of a fence, to all agents together. Beyond
/// it agents have to request them.
const WITH_FENCE: usize = 16 << 20;

/// The launcher's side of the exchange of keys and values between agents.
#[derive(Debug)]
pub(crate) struct Hub {
    /// The ranks on each host, as ranges.
    hosts: Vec<Range<usize>>,
    /// The values that all ranks have put. The requesters are hosts.
    kvs: Kvs,
    /// The values that ranks have put since the last fence.
    fresh: Vec<Put>,
    is_open: bool,
    is_watching: bool,
    /// The number of fences of the store that are complete.
    completed: u64,
    /// The hosts whose ranks are all in the present fence.
    present: Members,
    /// The number of the last fence that any rank has entered, as far as agents have reported it.
    begun: u64,
    /// For each rank that has ended, the number of fences that it had entered.
    left: Vec<Option<u64>>,
    /// The messages that must be sent to agents, by host.
    down: BTreeMap<usize, Down>,
    /// The requested values in these messages, by host and key: a key is sent to a host once,
    /// however often it is requested.
    answered: HashSet<(usize, String)>,
}

impl Hub {
    /// The state of a launcher with `counts` ranks on the hosts.
    pub(crate) fn new(counts: &[usize]) -> Self {
        let mut ranks = 0;
        let range = |count: &usize| {
            ranks += count;
            ranks - count..ranks
        };
        let hosts: Vec<Range<usize>> = counts.iter().map(range).collect();
        Hub {
            kvs: Kvs::for_others(ranks, hosts.len()),
            fresh: Vec::new(),
            is_open: false,
            is_watching: false,
            completed: 0,
            present: Members::new(hosts.len()),
            begun: 0,
            left: vec![None; ranks],
            down: BTreeMap::new(),
            answered: HashSet::new(),
            hosts,
        }
    }

    /// The key-value store of the job.
    pub(crate) fn kvs(&self) -> &Kvs {
        &self.kvs
    }

    /// Handles a message of a host's agent. Returns the ranks that have violated a rule of the
    /// store; the error says how the agent violates the protocol.
    pub(crate) fn handle(&mut self, host: usize, up: Up) -> Result<Vec<Misuse>, String> {
        let own = self.hosts[host].clone();
        if up.is_too_long() || !up.puts.iter().all(|put| own.contains(&put.by)) {
            return Err("it has sent values that are not those of its ranks".into());
        }
        if let Some(number) = up.fence
            && (number != self.completed + 1 || !self.present.insert(host))
        {
            return Err("it has entered a fence that it cannot be in".into());
        }
        if let Some(number) = up.begun {
            // That fence may have been completed while the message was in flight.
            if number > self.completed + 1 {
                return Err("it has begun a fence that none can be in".into());
            }
            self.begun = self.begun.max(number);
        }
        let mut misuses = Vec::new();
        for put in up.puts {
            let rank = put.by;
            match self.kvs.put(rank, &put.key, &put.value) {
                Ok(None) => {}
                Ok(Some(hosts)) => {
                    for host in hosts {
                        self.for_host(host).values.push(put.clone());
                    }
                    self.fresh.push(put);
                }
                Err(why) => misuses.push(Misuse { rank, why }),
            }
        }
        for key in up.gets {
            if let Err(why) = self.get(host, key) {
                // An agent requests on behalf of its ranks, and each value only once.
                let rank = own.start;
                misuses.push(Misuse { rank, why });
            }
        }
        if self.present.is_full() {
            self.complete();
        }
        Ok(misuses)
    }

    /// Records that a rank has ended after it has entered `fences` fences. From now on agents
    /// report which fences begin.
    pub(crate) fn end(&mut self, rank: usize, fences: u64) {
        self.left[rank] = Some(fences);
        if !std::mem::replace(&mut self.is_watching, true) {
            self.notify_all(|down| down.watch = true);
        }
    }

    /// True if a fence has begun that a rank, which has ended, had not entered before its end.
    pub(crate) fn fence_waits_for(&self, rank: usize) -> bool {
        self.left[rank].is_some_and(|fences| fences < self.begun)
    }

    /// Takes the messages that must be sent now, to the hosts for which `can_leave` is true. Those
    /// to other hosts stay.
    pub(crate) fn take(&mut self, can_leave: impl Fn(usize) -> bool) -> BTreeMap<usize, Down> {
        let (now, later) = std::mem::take(&mut self.down)
            .into_iter()
            .partition(|(host, _)| can_leave(*host));
        self.down = later;
        self.answered
            .retain(|(host, _)| self.down.contains_key(host));
        now
    }

    /// Handles a host's request for a value.
    fn get(&mut self, host: usize, key: String) -> Result<(), String> {
        let Some((by, value)) = self.kvs.get_with_rank(host, &key)? else {
            self.open();
            return Ok(());
        };
        let value = value.to_string();
        if self.answered.insert((host, key.clone())) {
            self.for_host(host).values.push(Put { by, key, value });
        }
        Ok(())
    }

    fn complete(&mut self) {
        self.completed += 1;
        self.present.clear();
        let mut values = std::mem::take(&mut self.fresh);
        let bytes = values.iter().map(|put| put.key.len() + put.value.len());
        if bytes.sum::<usize>() > WITH_FENCE / self.hosts.len() {
            values.clear();
        }
        self.is_open = self.kvs.wanted().next().is_some();
        let (number, open) = (self.completed, self.is_open);
        self.notify_all(|down| {
            down.fence = Some(number);
            down.open = open;
            down.values.extend_from_slice(&values);
        });
    }

    /// Lets all agents send their ranks' values at once, instead of holding them, until the next
    /// fence.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.notify_all(|down| down.open = true);
        }
    }

    fn notify_all(&mut self, say: impl Fn(&mut Down)) {
        (0..self.hosts.len()).for_each(|host| say(self.for_host(host)));
    }

    /// The message to a host that has not been sent.
    fn for_host(&mut self, host: usize) -> &mut Down {
        self.down.entry(host).or_default()
    }
}
