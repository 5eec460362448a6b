//! The launcher's part of the exchange: the whole store, and the ends of fences.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::agent::Misuse;
use super::members::{Members, covers, covers_all};
use super::shape::Shape;
use super::{Down, Put, Up};
use crate::kvs::Kvs;

/// The most bytes of values that leave with a fence, to all together. More wait for questions.
const WITH_FENCE: usize = 16 << 20;

/// The state of the launcher.
#[derive(Debug)]
pub(crate) struct Root {
    shape: Shape,
    /// Whether the agents below others hear through these alone.
    is_tree: bool,
    /// All values. Those who wait are hosts.
    kvs: Kvs,
    /// The values since the last fence, and those of that fence.
    fresh: Vec<Put>,
    last: Vec<Put>,
    is_open: bool,
    is_watching: bool,
    /// The number of fences that are complete.
    completed: u64,
    present: Members,
    ahead: Members,
    /// The last fence that a rank has begun, as far as this has been reported.
    begun: u64,
    /// The number of fences that each rank has entered that has ended.
    left: Vec<Option<u64>>,
    /// The messages that are to leave, by host.
    down: BTreeMap<usize, Down>,
    /// The answers among them: one to each host for a key, however often it asks.
    answered: HashSet<(usize, String)>,
}

impl Root {
    pub(crate) fn new(shape: Shape) -> Self {
        let (ranks, agents) = (shape.ranks(), shape.agents());
        Root {
            kvs: Kvs::for_others(ranks, agents),
            is_tree: false,
            fresh: Vec::new(),
            last: Vec::new(),
            is_open: false,
            is_watching: false,
            completed: 0,
            present: Members::new(ranks),
            ahead: Members::new(ranks),
            begun: 0,
            left: vec![None; ranks],
            down: BTreeMap::new(),
            answered: HashSet::new(),
            shape,
        }
    }

    /// The store.
    pub(crate) fn kvs(&self) -> &Kvs {
        &self.kvs
    }

    /// Whether a rank belongs to a host or to those below it.
    pub(crate) fn is_below(&self, rank: usize, host: usize) -> bool {
        covers(&self.shape.subtree(host), &(rank..rank.saturating_add(1)))
    }

    /// A message of a host's agent. Returns the ranks that broke a rule of the store; the error
    /// says how the agent has broken the rules.
    pub(crate) fn hear(&mut self, host: usize, up: Up) -> Result<Vec<Misuse>, String> {
        let below = self.shape.subtree(host);
        let own = |rank: usize| covers(&below, &(rank..rank.saturating_add(1)));
        if up.is_too_long() || !up.puts.iter().all(|put| own(put.by)) {
            return Err("it has sent values that are not those of its ranks".into());
        }
        if let Some(fence) = &up.fence {
            if !covers_all(&below, &fence.ranks) {
                return Err("it has sent the fence of ranks that are elsewhere".into());
            }
            self.join_fence(fence.number, &fence.ranks)?;
        }
        if let Some(number) = up.begun {
            if number > self.completed + 2 {
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
            match self.kvs.get_put(host, &key) {
                Ok(Some(put)) if self.answered.insert((host, key.clone())) => {
                    self.for_host(host).values.push(put);
                }
                Ok(Some(_)) => {}
                Ok(None) => self.open(),
                // An agent asks for its ranks, and for each value once.
                Err(why) => misuses.push(Misuse {
                    rank: below[0].start,
                    why,
                }),
            }
        }
        if self.present.len() == self.shape.ranks() {
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

    /// Agents below others hear through these alone from now on.
    pub(crate) fn use_tree(&mut self) {
        self.is_tree = true;
    }

    /// All agents hear from the launcher alone from now on. Says again what may have been lost.
    pub(crate) fn use_star(&mut self) {
        if !std::mem::replace(&mut self.is_tree, false) {
            return;
        }
        self.down.clear();
        self.kvs.forget(|_| true);
        self.is_open = true;
        let again = Down {
            fence: (self.completed > 0).then_some(self.completed),
            values: self.last.clone(),
            for_all: true,
            open: true,
            watch: self.is_watching,
        };
        self.tell_all(|down| *down = again.clone());
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

    fn join_fence(&mut self, number: u64, ranks: &[Range<usize>]) -> Result<(), String> {
        let members = match number.checked_sub(self.completed) {
            Some(1) => &mut self.present,
            Some(2) => &mut self.ahead,
            Some(0) | None => return Ok(()),
            Some(_) => return Err("it has entered a fence that none can be in".into()),
        };
        let ranks = ranks.iter().cloned().flatten();
        members.extend(ranks);
        Ok(())
    }

    fn complete(&mut self) {
        self.completed += 1;
        std::mem::swap(&mut self.present, &mut self.ahead);
        self.ahead.clear();
        self.last = std::mem::take(&mut self.fresh);
        let bytes = self.last.iter().map(|put| put.key.len() + put.value.len());
        if bytes.sum::<usize>() > WITH_FENCE / self.direct().len() {
            self.last.clear();
        }
        self.is_open = self.kvs.wanted().next().is_some();
        let (number, open, values) = (self.completed, self.is_open, self.last.clone());
        self.tell_all(|down| {
            down.fence = Some(number);
            down.open = open;
            down.for_all = true;
            down.values.extend_from_slice(&values);
        });
    }

    /// Lets all values leave at once.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.tell_all(|down| down.open = true);
        }
    }

    /// The hosts that hear from the launcher.
    fn direct(&self) -> Range<usize> {
        match self.is_tree {
            true => self.shape.top(),
            false => 0..self.shape.agents(),
        }
    }

    fn tell_all(&mut self, say: impl Fn(&mut Down)) {
        self.direct().for_each(|host| say(self.for_host(host)));
    }

    /// The message that will leave to a host.
    fn for_host(&mut self, host: usize) -> &mut Down {
        self.down.entry(host).or_default()
    }
}
