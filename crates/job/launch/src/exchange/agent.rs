//! An agent's part in the exchange of key-value store entries and fences: it combines the messages
//! of its ranks.
//!
//! Values are held here until every rank of the host has put one or is in the fence, so that they
//! are sent in one message. While any rank waits for a value, they are sent at once.

use std::collections::HashSet;
use std::ops::Range;

use pmi::{FromLauncher, KvsError};

use super::members::Members;
use super::{Down, Put, Up};
use crate::kvs::Kvs;

/// The most bytes of values that are held before they are sent.
const HELD_LIMIT: usize = 64 << 10;

/// The violation of a rule of the key-value store by a rank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misuse {
    pub rank: usize,
    pub why: String,
}

/// The output of an agent: a message to the launcher and lines to its ranks. Also violations
/// by ranks, to be reported.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub up: Up,
    /// Lines for ranks of this agent, each with its rank.
    pub lines: Vec<(usize, FromLauncher)>,
    pub misuses: Vec<Misuse>,
}

/// The agent's side of the exchange of keys and values between ranks and launcher.
#[derive(Debug)]
pub(crate) struct Exchange {
    own: Range<usize>,
    /// The values that have passed through this agent. The requesters are its ranks, counted from
    /// 0.
    kvs: Kvs,
    /// The keys whose values have been requested from the launcher and have not arrived.
    asked: HashSet<String>,
    held: Vec<Put>,
    held_bytes: usize,
    /// The ranks of this agent, counted from 0, that have put a value since the last fence.
    has_put: Members,
    is_open: bool,
    is_watched: bool,
    /// The number of fences of the store that are complete.
    completed: u64,
    /// The ranks of this agent, counted from 0, in the present fence.
    present: Members,
    /// True if the launcher has been notified that all ranks of this agent are in the present
    /// fence.
    has_sent_fence: bool,
    /// True if the launcher has been notified that a rank of this agent is in the present fence.
    has_sent_begun: bool,
    outbox: Outbox,
}

impl Exchange {
    /// The state of the agent for the ranks `own`, in a job of `ranks` ranks.
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

    /// Sends the values of this agent's ranks at once, and not at the fence, until the next fence.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    /// Handles a value that a rank has put.
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

    /// Handles a rank's request for a value.
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

    /// Records that a rank enters the fence.
    pub(crate) fn enter_fence(&mut self, rank: usize) {
        if !self.present.insert(rank - self.own.start) {
            let why = KvsError::InFence.to_string();
            self.outbox.misuses.push(Misuse { rank, why });
        }
    }

    /// Records that a rank has ended. Returns the number of fences that it has entered.
    pub(crate) fn end(&mut self, rank: usize) -> u64 {
        let at = rank - self.own.start;
        self.has_put.insert(at);
        self.completed + u64::from(self.present.contains(at))
    }

    /// Handles a message of the launcher. The error describes how it violates the protocol.
    pub(crate) fn handle(&mut self, down: Down) -> Result<(), String> {
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
            // If a rank of this host has put another value, that rank has violated a rule. The
            // launcher detects it when that value arrives.
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

    /// Takes the messages that must be sent now.
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

    /// Sends a value to the ranks of this agent, counted from 0, that wait for it.
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
