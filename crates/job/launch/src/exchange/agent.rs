//! An agent's part of the exchange: it combines the words of its ranks.
//!
//! Values wait here until every rank of the host has put one or is in the fence, so that they leave
//! in one message. They leave at once while somebody waits for a value.

use std::collections::HashSet;
use std::ops::Range;

use pmi::{FromLauncher, KvsError};

use super::members::Members;
use super::{Down, Put, Up};
use crate::kvs::Kvs;

/// The bytes of values that wait for others.
const HELD_LIMIT: usize = 64 << 10;

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
    /// Lines for the agent's ranks.
    pub lines: Vec<(usize, FromLauncher)>,
    pub misuses: Vec<Misuse>,
}

/// The state of an agent.
#[derive(Debug)]
pub(crate) struct Exchange {
    own: Range<usize>,
    /// The values that have passed. Those who wait are own ranks, counted from 0.
    kvs: Kvs,
    /// The keys that the launcher has been asked for.
    asked: HashSet<String>,
    held: Vec<Put>,
    held_bytes: usize,
    /// The own ranks, counted from 0, that have put a value since the last fence.
    has_put: Members,
    is_open: bool,
    is_watched: bool,
    /// The number of fences that are complete.
    completed: u64,
    /// The own ranks, counted from 0, in the fence after these.
    present: Members,
    /// Whether the launcher has heard that all are in this fence, and that one is.
    has_sent_fence: bool,
    has_sent_begun: bool,
    outbox: Outbox,
}

impl Exchange {
    /// The part of an agent with these ranks, in a job of `ranks`.
    pub(crate) fn new(own: Range<usize>, ranks: usize) -> Self {
        Exchange {
            kvs: Kvs::for_others(ranks, own.len()),
            asked: HashSet::new(),
            held: Vec::new(),
            held_bytes: 0,
            has_put: Members::new(own.len()),
            is_open: false,
            is_watched: false,
            completed: 0,
            present: Members::new(own.len()),
            has_sent_fence: false,
            has_sent_begun: false,
            outbox: Outbox::default(),
            own,
        }
    }

    /// Lets values leave at once until the next fence.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    /// A rank has put a value.
    pub(crate) fn put(&mut self, rank: usize, key: String, value: String) {
        match self.kvs.put(rank, &key, &value) {
            Ok(waiting) => {
                self.has_put.insert(rank - self.own.start);
                if let Some(waiting) = waiting {
                    self.answer(waiting, &key, &value);
                    self.held_bytes += key.len() + value.len();
                    self.held.push(Put {
                        by: rank,
                        key,
                        value,
                    });
                }
            }
            Err(why) => self.outbox.misuses.push(Misuse { rank, why }),
        }
    }

    /// A rank asks for a value.
    pub(crate) fn get(&mut self, rank: usize, key: &str) {
        let at = rank - self.own.start;
        match self.kvs.get(at, key) {
            Ok(Some(value)) => {
                let value = value.to_string();
                self.answer(vec![at], key, &value);
            }
            Ok(None) => {
                if self.asked.insert(key.to_string()) {
                    self.outbox.up.gets.push(key.to_string());
                }
            }
            Err(why) => self.outbox.misuses.push(Misuse { rank, why }),
        }
    }

    /// A rank enters the fence.
    pub(crate) fn enter_fence(&mut self, rank: usize) {
        if !self.present.insert(rank - self.own.start) {
            let why = KvsError::InFence.to_string();
            self.outbox.misuses.push(Misuse { rank, why });
        }
    }

    /// A rank has ended, after as many fences as are returned. It puts no more.
    pub(crate) fn end(&mut self, rank: usize) -> u64 {
        let at = rank - self.own.start;
        self.has_put.insert(at);
        self.completed + u64::from(self.present.contains(at))
    }

    /// A message of the launcher. The error says how it has broken the rules.
    pub(crate) fn hear(&mut self, down: Down) -> Result<(), String> {
        if let Some(number) = down.fence {
            if number != self.completed + 1 || self.present.is_empty() {
                return Err("it has ended a fence that no rank is in".into());
            }
            if !self.present.is_full() {
                return Err("it has ended a fence in which not all ranks are".into());
            }
        }
        for put in &down.values {
            self.asked.remove(&put.key);
            // A rank of this host that has put another value is in the wrong, as the launcher finds
            // when that value comes.
            if let Ok(Some(waiting)) = self.kvs.put(put.by, &put.key, &put.value) {
                self.answer(waiting, &put.key, &put.value);
            }
        }
        self.is_open |= down.open;
        self.is_watched |= down.watch;
        if down.fence.is_some() {
            self.complete(down.open);
        }
        Ok(())
    }

    /// Takes the messages that are to leave now.
    pub(crate) fn take(&mut self) -> Outbox {
        let number = self.completed + 1;
        let ends = self.present.is_full() && !self.has_sent_fence;
        let is_full = self.held_bytes >= HELD_LIMIT;
        if ends || is_full || self.has_put.is_full() || self.is_open {
            self.outbox.up.puts.append(&mut self.held);
            self.held_bytes = 0;
        }
        if ends {
            self.has_sent_fence = true;
            self.outbox.up.fence = Some(number);
        }
        if self.is_watched && !self.present.is_empty() && !self.has_sent_begun {
            self.has_sent_begun = true;
            self.outbox.up.begun = Some(number);
        }
        std::mem::take(&mut self.outbox)
    }

    /// Answers own ranks, counted from 0, that wait for a value.
    fn answer(&mut self, waiting: Vec<usize>, key: &str, value: &str) {
        for at in waiting {
            let (key, value) = (key.to_string(), value.to_string());
            let line = FromLauncher::Value { key, value };
            self.outbox.lines.push((self.own.start + at, line));
        }
    }

    fn complete(&mut self, is_open: bool) {
        self.completed += 1;
        self.is_open = is_open;
        self.has_put.clear();
        self.present.clear();
        self.has_sent_fence = false;
        self.has_sent_begun = false;
        let ranks = self.own.clone();
        let lines = ranks.map(|rank| (rank, FromLauncher::Fence));
        self.outbox.lines.extend(lines);
    }
}
