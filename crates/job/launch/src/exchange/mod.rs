//! The exchange of key-value store entries and fences between the launcher and the agents of a job
//! on several hosts.
//!
//! Agents form a star around the launcher. Each agent combines the messages of its ranks into one
//! message ([`Up`]), and passes the launcher's messages ([`Down`]) to them. The state of an agent
//! is an [`agent::Exchange`], that of the launcher a [`hub::Hub`].
//!
//! Invariants:
//! - this module is pure state without sockets or clocks: messages go in, messages come out;
//! - only the launcher ends fences and judges ranks.

pub(crate) mod agent;
pub(crate) mod hub;
mod members;
#[cfg(test)]
mod simulation;

use pmi::{KEY_LIMIT, VALUE_LIMIT};
use serde::{Deserialize, Serialize};

/// The number of bytes of keys and values from which on a message is split. Far below the length of
/// the longest frame.
const CUT: usize = 32 << 10;

/// The bytes that the encoding of an entry takes in addition to its key and value: the rank's
/// number and two lengths.
const BESIDE: usize = 24;

/// An entry of the key-value store, as messages carry it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Put {
    /// The rank that has put the value.
    pub by: usize,
    pub key: String,
    pub value: String,
}

/// A message from an agent to the launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Up {
    /// Values that ranks of the agent's host have put.
    pub puts: Vec<Put>,
    /// Keys whose values ranks of the agent's host wait for.
    pub gets: Vec<String>,
    /// If set, all ranks of the host are in the fence with this number, from 1.
    pub fence: Option<u64>,
    /// If set, a rank of the host has entered the fence with this number.
    pub begun: Option<u64>,
}

/// A message from the launcher to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Down {
    /// Values that the agent has requested, or those that were put before the completed fence.
    pub values: Vec<Put>,
    /// If set, the fence with this number is complete.
    pub fence: Option<u64>,
    /// True if a rank waits for a value, so that values must be sent at once until the next fence.
    pub open: bool,
    /// True if the beginning of a fence must be reported, because a rank has ended.
    pub watch: bool,
}

impl Up {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Up::default()
    }

    /// Splits the message into frames of limited length. The fence is in the last one.
    pub(crate) fn frames(mut self) -> Vec<Up> {
        let mut frames: Vec<Up> = cut(&mut self.puts)
            .into_iter()
            .map(|puts| Up {
                puts,
                ..Up::default()
            })
            .collect();
        let mut gets = Vec::new();
        while self.gets.len() > CUT / (KEY_LIMIT + BESIDE) {
            let rest = self.gets.split_off(CUT / (KEY_LIMIT + BESIDE));
            gets.push(std::mem::replace(&mut self.gets, rest));
        }
        frames.extend(gets.into_iter().map(|gets| Up {
            gets,
            ..Up::default()
        }));
        frames.push(self);
        frames
    }

    /// True if a key or value exceeds the limits for ranks.
    pub(crate) fn is_too_long(&self) -> bool {
        let value = |put: &Put| put.key.len() > KEY_LIMIT || put.value.len() > VALUE_LIMIT;
        self.puts.iter().any(value) || self.gets.iter().any(|key| key.len() > KEY_LIMIT)
    }
}

impl Down {
    /// Splits the message into frames of limited length. The end of a fence is in the last one.
    pub(crate) fn frames(mut self) -> Vec<Down> {
        let mut frames: Vec<Down> = cut(&mut self.values)
            .into_iter()
            .map(|values| Down {
                values,
                ..Down::default()
            })
            .collect();
        frames.push(self);
        frames
    }
}

/// Removes the first values, in parts of limited length, until the rest is short enough for one
/// frame.
fn cut(values: &mut Vec<Put>) -> Vec<Vec<Put>> {
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for value in std::mem::take(values) {
        bytes += value.key.len() + value.value.len() + BESIDE;
        part.push(value);
        if bytes >= CUT {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
    }
    *values = part;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_into_frames_and_nothing_is_lost() {
        let put = |by: usize| Put {
            by,
            key: format!("key{by}"),
            value: "v".repeat(VALUE_LIMIT),
        };
        let up = Up {
            puts: (0..100).map(put).collect(),
            gets: (0..1000).map(|n| format!("get{n}")).collect(),
            fence: Some(3),
            begun: None,
        };
        let frames = up.clone().frames();
        let whole = |frame: &Up| postcard::to_stdvec(frame).unwrap().len();
        assert!(frames.iter().all(|frame| whole(frame) < 2 * CUT));
        assert!(frames.len() > 10 && frames.last().unwrap().fence == up.fence);
        let puts: Vec<Put> = frames.iter().flat_map(|frame| frame.puts.clone()).collect();
        let gets: Vec<String> = frames.iter().flat_map(|frame| frame.gets.clone()).collect();
        assert_eq!((puts, gets), (up.puts.clone(), up.gets));
        let down = Down {
            values: up.puts,
            fence: Some(3),
            ..Down::default()
        };
        let frames = down.frames();
        assert!(frames.len() > 5);
        assert!(
            frames
                .iter()
                .rev()
                .skip(1)
                .all(|frame| frame.fence.is_none())
        );
    }
}
