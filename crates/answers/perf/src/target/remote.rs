//! One side on a device of this machine; the other side is another process, which a [`ControlLink`]
//! reaches.
//!
//! Waiting means polling without a pause, as in perftest. From time to time this side sends a
//! heartbeat and checks those of the other.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use device::Device;

use super::Target;
use crate::control::ControlLink;
use crate::measure::{Sample, measure};
use crate::pairs::Seat;
use crate::plan::PerfPlan;

/// The number of polls between two readings of the clock.
const POLLS: u32 = 256;
/// The number of polls of the device between two polls of the control connection.
const CONTROL: u32 = 64;
/// The time between two heartbeats.
const ALIVE: Duration = Duration::from_secs(1);
/// The nanoseconds without arrivals after which nothing is in flight: no network delays a packet
/// for longer.
const QUIET: u64 = 200_000_000;

/// One side of a benchmark whose sides are two processes.
pub struct Remote<'a> {
    device: &'a mut dyn Device,
    link: ControlLink,
    client: bool,
    start: Instant,
    /// The time without anything from the other side after which the benchmark fails.
    patience: Duration,
    polls: u32,
    /// The start of the time without arrivals. `None`: something has just arrived.
    idle_since: Option<Instant>,
    alive_at: Instant,
    /// The membership in the barrier with the other pairs of this side.
    seat: Seat,
}

/// Runs this side of a plan. `patience` is the time without arrivals after which it fails; `step`
/// is called after each size.
pub fn run(
    device: &mut dyn Device,
    link: ControlLink,
    client: bool,
    patience: Duration,
    plan: &PerfPlan,
    step: &mut dyn FnMut(usize),
) -> Result<Vec<Sample>> {
    run_pair(device, link, (client, Seat::alone()), patience, plan, step)
}

/// Like [`run`], for one of several pairs, with its membership in their barrier.
pub fn run_pair(
    device: &mut dyn Device,
    link: ControlLink,
    (client, seat): (bool, Seat),
    patience: Duration,
    plan: &PerfPlan,
    step: &mut dyn FnMut(usize),
) -> Result<Vec<Sample>> {
    let start = Instant::now();
    let mut target = Remote {
        device,
        link,
        client,
        start,
        patience,
        polls: 0,
        idle_since: None,
        alive_at: start + ALIVE,
        seat,
    };
    let found = measure(&mut target, plan, step);
    match &found {
        Err(why) => target.link.failed(&format!("{why:#}")),
        Ok(_) => target.seat.leave(),
    }
    found
}

impl Remote<'_> {
    /// Waits for the next text of the other side, and polls the device meanwhile: requests of the
    /// other side need these polls.
    fn receive_oob_and_poll(&mut self) -> Result<String> {
        loop {
            self.device.sync_memory();
            if let Some(words) = self.oob_recv()? {
                self.idle_since = None;
                return Ok(words);
            }
            // Do not count this as silence: the other side sends a heartbeat every second.
            self.found()?;
        }
    }

    /// The rare part of a poll: checks the time limit, and exchanges heartbeats.
    #[cold]
    fn check(&mut self, idle: bool) -> Result<()> {
        let now = Instant::now();
        if idle {
            let since = *self.idle_since.get_or_insert(now);
            if now - since > self.patience {
                // The other side may have sent the reason.
                self.link.check()?;
                bail!(
                    "{}: nothing has arrived for {} s: a message was lost, or the other side is stuck",
                    self.device.attributes().name,
                    self.patience.as_secs_f64()
                );
            }
        }
        if now >= self.alive_at {
            self.alive_at = now + ALIVE;
            self.link.check()?;
            self.link.alive()?;
        }
        Ok(())
    }
}

impl Target for Remote<'_> {
    fn is_client(&self) -> bool {
        self.client
    }

    fn device(&mut self) -> &mut dyn Device {
        self.device
    }

    fn is_modelled(&self) -> bool {
        false
    }

    fn clock(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64 * 1000
    }

    fn sync_memory(&mut self) {
        fence(Ordering::Acquire);
        self.device.sync_memory();
    }

    fn idle(&mut self, _nanos: u64) -> Result<()> {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS) {
            self.check(true)?;
        }
        Ok(())
    }

    fn found(&mut self) -> Result<()> {
        self.idle_since = None;
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS) {
            self.check(false)?;
        }
        Ok(())
    }

    fn oob_send(&mut self, words: &str) -> Result<()> {
        self.link.say(words)
    }

    fn oob_recv(&mut self) -> Result<Option<String>> {
        // Polling the socket takes longer than polling the device, so do it rarely.
        match self.polls.is_multiple_of(CONTROL) {
            true => self.link.heard(),
            false => Ok(None),
        }
    }

    fn synchronise_pairs(&mut self) -> Result<()> {
        if !self.client {
            return Ok(());
        }
        self.seat.arrive();
        while !self.seat.is_met()? {
            // Send heartbeats to the other side while waiting.
            self.check(false)?;
            std::thread::yield_now();
        }
        Ok(())
    }

    fn quiet(&self) -> u64 {
        QUIET
    }

    fn receive_oob(&mut self) -> Result<String> {
        if self.device.attributes().polled {
            return self.receive_oob_and_poll();
        }
        let words = self.link.receive();
        self.idle_since = None;
        words
    }
}
