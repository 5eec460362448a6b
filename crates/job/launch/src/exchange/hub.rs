//! The launcher's part of the exchange: the whole store, and the ends of fences.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::agent::Misuse;
use super::members::Members;
use super::{Down, Put, Up};
use crate::kvs::Kvs;

/// The most bytes of values that leave with a fence, to all together. More wait for questions.
const WITH_FENCE: usize = 16 << 20;

/// The state of the launcher.
#[derive(Debug)]
pub(crate) struct Hub {
    /// The ranks of each host.
    hosts: Vec<Range<usize>>,
    /// All values. Those who wait are hosts.
    kvs: Kvs,
    /// The values since the last fence.
    fresh: Vec<Put>,
    is_open: bool,
    is_watching: bool,
    /// The number of fences that are complete.
    completed: u64,
    /// The hosts whose ranks are all in the fence after these.
    present: Members,
    /// The last fence that a rank has begun, as far as this has been reported.
    begun: u64,
    /// The number of fences that each rank has entered that has ended.
    left: Vec<Option<u64>>,
    /// The messages that are to leave, by host.
    down: BTreeMap<usize, Down>,
    /// The answers among them: one to each host for a key, however often it asks.
    answered: HashSet<(usize, String)>,
}

impl Hub {
    /// The part of a launcher with these numbers of ranks on each host.
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

    /// The store.
    pub(crate) fn kvs(&self) -> &Kvs {
        &self.kvs
    }

    /// A message of a host's agent. Returns the ranks that broke a rule of the store; the error
    /// says how the agent has broken the rules.
    pub(crate) fn hear(&mut self, host: usize, up: Up) -> Result<Vec<Misuse>, String> {
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
            // One that is complete may have ended while this was on its way.
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
                // An agent asks for its ranks, and for each value once.
                let rank = own.start;
                misuses.push(Misuse { rank, why });
            }
        }
        if self.present.is_full() {
            self.complete();
        }
        Ok(misuses)
    }

    /// A rank has ended after it has entered this many fences. From now on agents report which
    /// fences begin.
    pub(crate) fn end(&mut self, rank: usize, fences: u64) {
        self.left[rank] = Some(fences);
        if !std::mem::replace(&mut self.is_watching, true) {
            self.tell_all(|down| down.watch = true);
        }
    }

    /// Whether ranks are in a fence that this one has left out when it ended.
    pub(crate) fn fence_waits_for(&self, rank: usize) -> bool {
        self.left[rank].is_some_and(|fences| fences < self.begun)
    }

    /// Takes the messages that are to leave now, by host. Those to other hosts wait.
    pub(crate) fn take(&mut self, can_leave: impl Fn(usize) -> bool) -> BTreeMap<usize, Down> {
        let (now, later) = std::mem::take(&mut self.down)
            .into_iter()
            .partition(|(host, _)| can_leave(*host));
        self.down = later;
        self.answered
            .retain(|(host, _)| self.down.contains_key(host));
        now
    }

    /// A host asks for a value.
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
        self.tell_all(|down| {
            down.fence = Some(number);
            down.open = open;
            down.values.extend_from_slice(&values);
        });
    }

    /// Lets all values leave at once.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.tell_all(|down| down.open = true);
        }
    }

    fn tell_all(&mut self, say: impl Fn(&mut Down)) {
        (0..self.hosts.len()).for_each(|host| say(self.for_host(host)));
    }

    /// The message that will leave to a host.
    fn for_host(&mut self, host: usize) -> &mut Down {
        self.down.entry(host).or_default()
    }
}
