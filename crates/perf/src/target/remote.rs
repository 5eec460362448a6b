//! One end on a device of this machine; the other is another process, reached by a [`Link`].
//!
//! Waiting is polling without a pause, as perftest does it. Now and then, never between two looks, the other end is told that this one is
//! alive and asked whether it is.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use device::Device;

use super::Place;
use crate::link::Link;
use crate::measure::{Sample, measure};
use crate::plan::Plan;

/// Looks between two readings of the clock.
const LOOKS: u32 = 256;
/// Looks between two questions whether the other end has said something.
const ASK: u32 = 64;
/// Between two signs of life.
const ALIVE: Duration = Duration::from_secs(1);
/// Nanoseconds without anything after which nothing is on its way: networks hold nothing back for so long.
const QUIET: u64 = 200_000_000;

pub struct Remote<'a> {
    device: &'a mut dyn Device,
    link: Link,
    client: bool,
    start: Instant,
    /// How long nothing may be found.
    patience: Duration,
    looks: u32,
    /// Since when nothing has been found, as far as it is known.
    idle_since: Option<Instant>,
    alive_at: Instant,
}

/// Runs this end of a plan.
pub fn run(
    device: &mut dyn Device,
    link: Link,
    client: bool,
    patience: Duration,
    plan: &Plan,
    step: &mut dyn FnMut(usize),
) -> Result<Vec<Sample>> {
    let start = Instant::now();
    let mut place = Remote {
        device,
        link,
        client,
        start,
        patience,
        looks: 0,
        idle_since: None,
        alive_at: start + ALIVE,
    };
    let found = measure(&mut place, plan, step);
    if let Err(why) = &found {
        place.link.failed(&format!("{why:#}"));
    }
    found
}

impl Remote<'_> {
    /// The rare part of a look.
    #[cold]
    fn check(&mut self, idle: bool) -> Result<()> {
        let now = Instant::now();
        if idle {
            let since = *self.idle_since.get_or_insert(now);
            if now - since > self.patience {
                // The other end may have said why.
                self.link.check()?;
                bail!(
                    "{}: nothing has come for {} s: a message was lost, or the other end is stuck",
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

impl Place for Remote<'_> {
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
    }

    fn idle(&mut self, _nanos: u64) -> Result<()> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS) {
            self.check(true)?;
        }
        Ok(())
    }

    fn found(&mut self) -> Result<()> {
        self.idle_since = None;
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS) {
            self.check(false)?;
        }
        Ok(())
    }

    fn oob_send(&mut self, words: &str) -> Result<()> {
        self.link.say(words)
    }

    fn oob_recv(&mut self) -> Result<Option<String>> {
        // Asking the socket takes longer than a look at the device, which must not wait for it.
        match self.looks.is_multiple_of(ASK) {
            true => self.link.heard(),
            false => Ok(None),
        }
    }

    fn quiet(&self) -> u64 {
        QUIET
    }

    fn hear(&mut self) -> Result<String> {
        let words = self.link.hear();
        self.idle_since = None;
        words
    }
}
