//! The protocol of an agent: the frames that it may send, and when. The launcher accepts no other
//! frame.
//!
//! Pure state without sockets: frames and the time are arguments, and the result may be a reason to
//! end the job.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::frame::{FromAgent, PIECE};
use super::liveness::{Liveness, Outlook};

/// The longest time for an agent to start its ranks.
const START: Duration = Duration::from_secs(300);

/// The length of the longest packet of a rank in a frame, in bytes. Bytes that are not UTF-8 take
/// up to three each.
const PACKET: usize = 3 * (16 << 10);

/// The length of the longest text about an agent's end, in bytes.
const TEXT: usize = 32 << 10;

/// The protocol state of one agent, from its answer to its last frame.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// The world ranks on the agent's host.
    ranks: Range<usize>,
    /// For each rank of the host: true if it has ended.
    ended: Vec<bool>,
    /// The most bytes of each output stream that the agent may send without confirmation.
    window: usize,
    /// The number of bytes of each output stream that have been received and not confirmed.
    taken: [usize; 2],
    /// The number of bytes of input that were sent and that the agent has not confirmed.
    input: usize,
    has_started: bool,
    /// True if the agent could not start all ranks. Those that it has started end.
    has_refused: bool,
    is_done: bool,
    liveness: Liveness,
    since: Instant,
}

impl Session {
    /// The state for an agent whose command has just been started.
    pub(crate) fn new(
        ranks: Range<usize>,
        window: usize,
        patience: Duration,
        now: Instant,
    ) -> Self {
        Session {
            ended: vec![false; ranks.len()],
            ranks,
            window,
            taken: [0; 2],
            input: 0,
            has_started: false,
            has_refused: false,
            is_done: false,
            liveness: Liveness::new(patience, now),
            since: now,
        }
    }

    /// True if the agent has started its ranks.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Records that the agent has answered, and begins to start its ranks.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since = now;
        self.liveness = Liveness::new(self.liveness.patience(), now);
    }

    /// Records that bytes from the agent have arrived.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.liveness.heard(now);
    }

    /// Checks a frame and records it. The error describes how the agent has violated the protocol.
    pub(crate) fn accept(&mut self, frame: &FromAgent, now: Instant) -> Result<(), String> {
        if self.is_done {
            return Err("it has sent a frame after its last one".into());
        }
        match frame {
            FromAgent::Started(pids) => {
                if self.has_started || self.has_refused || pids.len() != self.ranks.len() {
                    return Err(format!(
                        "it has reported {} started ranks, and its host has {} to start once",
                        pids.len(),
                        self.ranks.len()
                    ));
                }
                self.has_started = true;
                self.liveness.heard(now);
                Ok(())
            }
            FromAgent::Refused { why, .. } => {
                if self.has_started || self.has_refused {
                    return Err("it has refused the start after it".into());
                }
                self.has_refused = true;
                limit(why.len(), TEXT)
            }
            FromAgent::Leaving(why) => limit(why.len(), TEXT),
            FromAgent::Counted(_, bytes) => limit(bytes.len(), super::frame::LONGEST),
            FromAgent::Done => {
                self.is_done = true;
                Ok(())
            }
            FromAgent::Packet(rank, packet) => {
                self.own(*rank)?;
                limit(packet.len(), PACKET)
            }
            FromAgent::ProgramGone(rank) | FromAgent::EndOfOutput(rank, _) => {
                self.own(*rank).map(drop)
            }
            FromAgent::Ended(rank, ..) => {
                let at = self.own(*rank)?;
                match std::mem::replace(&mut self.ended[at], true) {
                    true => Err(format!("it has reported the end of rank {rank} twice")),
                    false => Ok(()),
                }
            }
            FromAgent::Output(rank, target, bytes) => {
                self.own(*rank)?;
                limit(bytes.len(), PIECE)?;
                let taken = &mut self.taken[*target as usize];
                *taken += bytes.len();
                match *taken > self.window + PIECE {
                    true => Err("it has sent more output than it may without confirmation".into()),
                    false => Ok(()),
                }
            }
            FromAgent::InputTaken(bytes) => {
                let left = self.input.checked_sub(*bytes);
                self.input = left.ok_or("it has confirmed more input than it got")?;
                Ok(())
            }
            FromAgent::Misused(rank, why) => {
                self.own(*rank)?;
                limit(why.len(), TEXT)
            }
            FromAgent::Up(_) if !self.has_started && !self.has_refused => {
                Err("it has spoken of values or a fence before the start".into())
            }
            // Such messages are checked by the state of the exchange.
            FromAgent::Up(_) => Ok(()),
            FromAgent::InputClosed | FromAgent::Beat => Ok(()),
        }
    }

    /// The index of a rank among those of the agent's host.
    fn own(&self, rank: usize) -> Result<usize, String> {
        if !self.has_started && !self.has_refused {
            return Err(format!("it has spoken of rank {rank} before the start"));
        }
        match self.ranks.contains(&rank) {
            true => Ok(rank - self.ranks.start),
            false => Err(format!("it has spoken of rank {rank}, which is elsewhere")),
        }
    }

    /// Returns the number of received bytes of an output stream that are not confirmed yet. The
    /// caller confirms them now.
    pub(crate) fn confirm(&mut self, target: usize) -> usize {
        std::mem::take(&mut self.taken[target])
    }

    /// Records that `bytes` bytes of input were sent to the agent.
    pub(crate) fn sent_input(&mut self, bytes: usize) {
        self.input += bytes;
    }

    /// The next time at which [`Session::check`] has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        match (self.is_done || self.has_refused, self.has_started) {
            (true, _) => None,
            (false, true) => self.liveness.next(),
            (false, false) => {
                let silence = self.liveness.next();
                silence.into_iter().chain([self.since + START]).min()
            }
        }
    }

    /// Checks at the time `now`. Returns true if a heartbeat must be sent, and the reason if the
    /// agent is given up.
    pub(crate) fn check(&mut self, now: Instant) -> (bool, Option<String>) {
        if self.is_done || self.has_refused {
            return (false, None);
        }
        if !self.has_started && now >= self.since + START {
            let seconds = START.as_secs();
            let why = format!("its agent has not started its ranks for {seconds} s");
            return (false, Some(why));
        }
        let Outlook { beat, is_dead } = self.liveness.check(now);
        let why = || {
            format!(
                "its agent has been silent for {} s: it is stopped, or the connection to the host is broken \
                 (FISHPLATE_HEARTBEAT sets the time)",
                self.liveness.patience().as_secs_f64()
            )
        };
        // While it starts its ranks, the agent does not read, so it needs no heartbeats.
        (beat && self.has_started, is_dead.then(why))
    }
}

fn limit(length: usize, most: usize) -> Result<(), String> {
    match length > most {
        true => Err(format!(
            "it has sent {length} bytes where {most} are the most"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
