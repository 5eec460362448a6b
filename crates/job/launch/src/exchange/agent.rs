//! An agent's part of the exchange: it combines the words of its ranks and of the agents below it.
//!
//! Values wait here until every rank of the subtree has put one or is in the fence, so that they
//! leave in one message. They leave at once while somebody waits for a value.

use std::collections::HashSet;
use std::ops::Range;

use pmi::{FromLauncher, KvsError};

use super::members::{Members, covers, covers_all};
use super::shape::Shape;
use super::{Down, FencePart, Put, Up};
use crate::kvs::Kvs;

/// The bytes of values that wait for others.
const HELD_LIMIT: usize = 64 << 10;

/// The place of an agent in the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The launcher has not decided yet: values and fences wait.
    Undecided,
    /// The launcher is the parent, and there are no children.
    Star,
    Tree,
}

/// A rank broke a rule of the key-value store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misuse {
    pub rank: usize,
    pub why: String,
}

/// The messages that are to leave.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub up: Up,
    /// Messages for children, by their place among the children.
    pub down: Vec<(usize, Down)>,
    /// Lines for the agent's own ranks.
    pub lines: Vec<(usize, FromLauncher)>,
    pub misuses: Vec<Misuse>,
}

/// The state of an agent.
#[derive(Debug)]
pub(crate) struct Exchange {
    own: Range<usize>,
    /// The ranks below each child.
    children: Vec<Vec<Range<usize>>>,
    mode: Mode,
    /// The values that have passed. Those who wait are own ranks, from 0, and then children.
    kvs: Kvs,
    /// The keys that the parent has been asked for.
    asked: HashSet<String>,
    held: Vec<Put>,
    held_bytes: usize,
    /// The ranks that have put a value since the last fence.
    has_put: Members,
    is_open: bool,
    is_watched: bool,
    /// The number of fences that each own rank has entered.
    entered: Vec<u64>,
    /// The number of fences that are complete.
    completed: u64,
    /// The ranks in the fence after these, and in the one after that: a child may be ahead.
    present: Members,
    ahead: Members,
    /// The last fence of which the parent knows.
    sent_fence: u64,
    sent_begun: u64,
    outbox: Outbox,
    /// The answers to children in it: one for a key, however often it is asked for.
    answered: HashSet<(usize, String)>,
}

impl Exchange {
    /// The part of the agent of a host.
    pub(crate) fn of_host(shape: &Shape, host: usize) -> Self {
        let children = shape.children(host).map(|child| shape.subtree(child));
        Exchange::new(
            shape.own(host),
            children.collect(),
            shape.ranks(),
            shape.is_tree(),
        )
    }

    /// The part of an agent with these ranks, in a job of `ranks`. `children`: the ranks below each
    /// agent that may come below this one. `waits`: whether the launcher will decide between tree
    /// and star.
    pub(crate) fn new(
        own: Range<usize>,
        children: Vec<Vec<Range<usize>>>,
        ranks: usize,
        waits: bool,
    ) -> Self {
        Exchange {
            kvs: Kvs::for_others(ranks, own.len() + children.len()),
            mode: if waits { Mode::Undecided } else { Mode::Star },
            entered: vec![0; own.len()],
            own,
            children,
            asked: HashSet::new(),
            held: Vec::new(),
            held_bytes: 0,
            has_put: Members::new(ranks),
            is_open: false,
            is_watched: false,
            completed: 0,
            present: Members::new(ranks),
            ahead: Members::new(ranks),
            sent_fence: 0,
            sent_begun: 0,
            outbox: Outbox::default(),
            answered: HashSet::new(),
        }
    }

    /// Lets values leave at once until the next fence.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    /// An own rank has put a value.
    pub(crate) fn put(&mut self, rank: usize, key: String, value: String) {
        self.store(Put {
            by: rank,
            key,
            value,
        });
    }

    /// An own rank asks for a value.
    pub(crate) fn get(&mut self, rank: usize, key: &str) {
        match self.kvs.get_put(rank - self.own.start, key) {
            Ok(Some(put)) => self.answer(vec![rank - self.own.start], &put),
            Ok(None) => self.ask(key),
            Err(why) => self.outbox.misuses.push(Misuse { rank, why }),
        }
    }

    /// An own rank enters the fence.
    pub(crate) fn enter_fence(&mut self, rank: usize) {
        let entered = &mut self.entered[rank - self.own.start];
        if *entered > self.completed {
            let why = KvsError::InFence.to_string();
            self.outbox.misuses.push(Misuse { rank, why });
            return;
        }
        *entered = self.completed + 1;
        self.present.insert(rank);
    }

    /// An own rank has ended, after as many fences as are returned. It puts no more.
    pub(crate) fn end(&mut self, rank: usize) -> u64 {
        self.has_put.insert(rank);
        self.entered[rank - self.own.start]
    }

    /// A message of a child. The error says how the child has broken the rules.
    pub(crate) fn hear_child(&mut self, child: usize, up: Up) -> Result<(), String> {
        if self.mode == Mode::Star {
            return Ok(());
        }
        let below = &self.children[child];
        let own = |rank: usize| covers(below, &(rank..rank.saturating_add(1)));
        if up.is_too_long() || !up.puts.iter().all(|put| own(put.by)) {
            return Err("it has sent values that are not those of its ranks".into());
        }
        if let Some(fence) = &up.fence {
            if !covers_all(below, &fence.ranks) {
                return Err("it has sent the fence of ranks that are elsewhere".into());
            }
            self.join_fence(fence)?;
        }
        if up.begun.is_some_and(|number| number > self.completed + 2) {
            return Err("it has begun a fence that none can be in".into());
        }
        up.puts.into_iter().for_each(|put| self.store(put));
        for key in up.gets {
            match self.kvs.get_put(self.own.len() + child, &key)? {
                Some(put) if self.answered.insert((child, key.clone())) => {
                    self.for_child(child).values.push(put);
                }
                Some(_) => {}
                None => self.ask(&key),
            }
        }
        if let Some(number) = up.begun.filter(|&number| number > self.sent_begun) {
            self.sent_begun = number;
            self.outbox.up.begun = Some(number);
        }
        Ok(())
    }

    /// A message of the parent. The error says how it has broken the rules.
    pub(crate) fn hear_parent(&mut self, down: Down) -> Result<(), String> {
        let ends = match down.fence {
            Some(number) if number > self.completed + 1 => {
                return Err("it has ended a fence that no rank is in".into());
            }
            Some(number) => number > self.completed,
            None => false,
        };
        let in_fence = |entered: &u64| *entered > self.completed;
        if ends && !self.entered.iter().all(in_fence) {
            return Err("it has ended a fence in which not all ranks are".into());
        }
        let to_children = self.mode == Mode::Tree;
        for put in &down.values {
            self.asked.remove(&put.key);
            // A rank of this host that has put another value is in the wrong, as the launcher finds
            // when that value comes.
            if let Ok(Some(mut waiting)) = self.kvs.put(put.by, &put.key, &put.value) {
                if to_children && down.for_all {
                    waiting.retain(|&other| other < self.own.len());
                }
                self.answer(waiting, put);
            }
        }
        self.is_open |= down.open;
        self.is_watched |= down.watch;
        let is_news = down.for_all || down.open || down.watch || down.fence.is_some();
        for child in 0..self.children.len() {
            if !to_children || !is_news {
                break;
            }
            let words = self.for_child(child);
            words.open |= down.open;
            words.watch |= down.watch;
            words.fence = down.fence.or(words.fence);
            if down.for_all {
                words.for_all = true;
                words.values.extend_from_slice(&down.values);
            }
        }
        if ends {
            self.complete(down.open);
        }
        Ok(())
    }

    /// The launcher has decided: this agent's children are there, and so is its parent.
    pub(crate) fn use_tree(&mut self) {
        self.mode = Mode::Tree;
    }

    /// The launcher has decided that all agents speak with it alone. Everything that may have been
    /// lost on the way is said again.
    pub(crate) fn use_star(&mut self) {
        let before = std::mem::replace(&mut self.mode, Mode::Star);
        let own = self.own.len();
        self.kvs.forget(|other| other >= own);
        self.outbox.down.clear();
        self.present.keep(&self.own);
        self.ahead.clear();
        if before != Mode::Tree {
            return;
        }
        self.sent_fence = self.completed;
        self.sent_begun = 0;
        self.is_open = true;
        self.asked = self.kvs.wanted().map(str::to_string).collect();
        self.held.clear();
        self.outbox.up = Up {
            puts: self.kvs.put_by(self.own.clone()),
            gets: self.asked.iter().cloned().collect(),
            ..Up::default()
        };
    }

    /// Takes the messages that are to leave now.
    pub(crate) fn take(&mut self) -> Outbox {
        let tree = self.mode == Mode::Tree;
        let below = self.children.iter().filter(|_| tree).flatten();
        let ranks = self.own.len() + below.clone().map(Range::len).sum::<usize>();
        let is_decided = self.mode != Mode::Undecided;
        let ends = is_decided && self.sent_fence <= self.completed && self.present.len() == ranks;
        let is_full = self.held_bytes >= HELD_LIMIT;
        let all_have_put = is_decided && self.has_put.len() >= ranks;
        if ends || is_full || all_have_put || self.is_open {
            self.outbox.up.puts.append(&mut self.held);
            self.held_bytes = 0;
        }
        if ends {
            self.sent_fence = self.completed + 1;
            let own = std::iter::once(&self.own);
            self.outbox.up.fence = Some(FencePart {
                number: self.sent_fence,
                ranks: own.chain(below).cloned().collect(),
            });
        }
        let begun = match (self.present.is_empty(), self.ahead.is_empty()) {
            (_, false) => self.completed + 2,
            (false, true) => self.completed + 1,
            (true, true) => 0,
        };
        if self.is_watched && begun > self.sent_begun {
            self.sent_begun = begun;
            self.outbox.up.begun = Some(begun);
        }
        self.answered.clear();
        std::mem::take(&mut self.outbox)
    }

    fn store(&mut self, put: Put) {
        match self.kvs.put(put.by, &put.key, &put.value) {
            Ok(Some(waiting)) => {
                self.answer(waiting, &put);
                self.has_put.insert(put.by);
                self.held_bytes += put.key.len() + put.value.len();
                self.held.push(put);
            }
            Ok(None) => self.has_put.insert(put.by),
            Err(why) => self.outbox.misuses.push(Misuse { rank: put.by, why }),
        }
    }

    fn ask(&mut self, key: &str) {
        if self.asked.insert(key.to_string()) {
            self.outbox.up.gets.push(key.to_string());
        }
    }

    fn answer(&mut self, waiting: Vec<usize>, put: &Put) {
        for other in waiting {
            match other.checked_sub(self.own.len()) {
                Some(child) => self.for_child(child).values.push(put.clone()),
                None => {
                    let (key, value) = (put.key.clone(), put.value.clone());
                    let line = FromLauncher::Value { key, value };
                    self.outbox.lines.push((self.own.start + other, line));
                }
            }
        }
    }

    /// The message that will leave to a child.
    fn for_child(&mut self, child: usize) -> &mut Down {
        let down = &mut self.outbox.down;
        let place = down.iter().position(|(other, _)| *other == child);
        let place = place.unwrap_or_else(|| {
            down.push((child, Down::default()));
            down.len() - 1
        });
        &mut down[place].1
    }

    fn join_fence(&mut self, fence: &FencePart) -> Result<(), String> {
        let members = match fence.number.checked_sub(self.completed) {
            Some(1) => &mut self.present,
            Some(2) => &mut self.ahead,
            Some(0) | None => return Ok(()),
            Some(_) => return Err("it has entered a fence that none can be in".into()),
        };
        let ranks = fence.ranks.iter().cloned().flatten();
        members.extend(ranks);
        Ok(())
    }

    fn complete(&mut self, is_open: bool) {
        self.completed += 1;
        self.is_open = is_open;
        self.has_put.clear();
        std::mem::swap(&mut self.present, &mut self.ahead);
        self.ahead.clear();
        let ranks = self.own.clone();
        let lines = ranks.map(|rank| (rank, FromLauncher::Fence));
        self.outbox.lines.extend(lines);
    }
}
