//! The target of a benchmark: the device of one side, its clock, and its control connection to the
//! other side.

pub mod modelled;
pub mod remote;

use anyhow::Result;
use device::Device;
use model::Traffic;

/// The environment of one of the two sides.
///
/// [`measure`](crate::measure::measure) runs on any implementation; this crate has one in virtual
/// time ([`modelled`]) and one for two processes ([`remote`]).
pub trait Target {
    /// True if this side sends first, measures, and shows the results.
    fn is_client(&self) -> bool;

    /// The device that the benchmark measures.
    fn device(&mut self) -> &mut dyn Device;

    /// True if time is virtual: all messages of a size take equal times, so a few are enough.
    fn is_modelled(&self) -> bool;

    /// The traffic on the links of a modelled machine until now; `None` on a real device.
    fn traffic(&mut self) -> Option<Traffic> {
        None
    }

    /// The time since a fixed moment, in picoseconds. In virtual time, reading the clock takes no
    /// time.
    fn clock(&mut self) -> u64;

    /// Makes writes of the other side up to now visible. Required before a poll of memory that the
    /// other side writes.
    fn sync_memory(&mut self);

    /// Called after a poll without a result: lets time pass until something may have changed, at
    /// most `nanos` nanoseconds. An error after a wait so long that nothing can arrive any more.
    fn idle(&mut self, nanos: u64) -> Result<()>;

    /// Called after a poll with a result: from now on, [`idle`](Target::idle) counts its wait anew.
    fn found(&mut self) -> Result<()> {
        Ok(())
    }

    /// Sends a text to the other side over the control connection.
    fn oob_send(&mut self, words: &str) -> Result<()>;

    /// The next text of the other side, if it has arrived.
    fn oob_recv(&mut self) -> Result<Option<String>>;

    /// Waits at a barrier for the other pairs of this side, if the benchmark has several.
    fn synchronise_pairs(&mut self) -> Result<()> {
        Ok(())
    }

    /// The time without arrivals after which nothing is in flight any more, in nanoseconds.
    fn quiet(&self) -> u64;

    /// Waits for the next text of the other side.
    fn receive_oob(&mut self) -> Result<String> {
        loop {
            if let Some(words) = self.oob_recv()? {
                self.found()?;
                return Ok(words);
            }
            self.idle(u64::MAX)?;
        }
    }

    /// Sends a text to the other side, and waits for the other side's text.
    fn swap(&mut self, words: &str) -> Result<String> {
        self.oob_send(words)?;
        self.receive_oob()
    }
}
