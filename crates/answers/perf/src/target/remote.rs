//! One side on a device of this machine; the other side is another process, behind a
//! [`ControlLink`].
//!
//! Waiting is polling without a pause, as in perftest. From time to time this side sends a
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

/// Polls between two readings of the clock.
const POLLS: u32 = 256;
/// Polls of the device between two polls of the control connection.
const CONTROL: u32 = 64;
/// Time between two heartbeats.
const ALIVE: Duration = Duration::from_secs(1);
/// Nanoseconds without arrivals after which nothing is in flight: no network delays a packet
/// longer.
const QUIET: u64 = 200_000_000;

/// One side of a benchmark between two processes.
pub struct Remote<'a> {
    device: &'a mut dyn Device,
    link: ControlLink,
    client: bool,
    start: Instant,
    /// Time without arrivals after which the benchmark fails.
    patience: Duration,
    polls: u32,
    /// The start of the time without arrivals, as far as it is known.
    idle_since: Option<Instant>,
    alive_at: Instant,
    /// The place among the other pairs of this side.
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

/// Like [`run`] for one of several pairs, with its place among them.
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
    /// Waits for the next words of the other side, whose requests need this side's polls meanwhile.
    fn hear_and_work(&mut self) -> Result<String> {
        loop {
            self.device.sync_memory();
            if let Some(words) = self.oob_recv()? {
                self.idle_since = None;
                return Ok(words);
            }
            // The other side sends a heartbeat each second.
            self.found()?;
        }
    }

    /// The rare part of a poll: time limit and heartbeats.
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
        // A poll of the socket takes longer than a poll of the device, which must not wait for it.
        match self.polls.is_multiple_of(CONTROL) {
            true => self.link.heard(),
            false => Ok(None),
        }
    }

    fn meet_pairs(&mut self) -> Result<()> {
        if !self.client {
            return Ok(());
        }
        self.seat.arrive();
        while !self.seat.is_met()? {
            // The other side receives heartbeats meanwhile.
            self.check(false)?;
            std::thread::yield_now();
        }
        Ok(())
    }

    fn quiet(&self) -> u64 {
        QUIET
    }

    fn hear(&mut self) -> Result<String> {
        if self.device.attributes().polled {
            return self.hear_and_work();
        }
        let words = self.link.hear();
        self.idle_since = None;
        words
    }
}
