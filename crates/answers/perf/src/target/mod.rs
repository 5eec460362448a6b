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
    /// True if this side begins, measures and shows the results.
    fn is_client(&self) -> bool;

    /// The device under test.
    fn device(&mut self) -> &mut dyn Device;

    /// True if time is virtual: all messages of a size take equally long, so few are enough.
    fn is_modelled(&self) -> bool;

    /// The traffic on the links of a modelled machine until now.
    fn traffic(&mut self) -> Option<Traffic> {
        None
    }

    /// Picoseconds since a fixed moment. In virtual time, reading the clock takes no time.
    fn clock(&mut self) -> u64;

    /// Makes the other side's writes up to now visible. Required before a poll of memory that it
    /// writes.
    fn sync_memory(&mut self);

    /// Called after a poll without result: lets time pass until something may have changed, at most
    /// `nanos` nanoseconds. An error after so long that nothing can arrive any more.
    fn idle(&mut self, nanos: u64) -> Result<()>;

    /// Called after a poll with a result.
    fn found(&mut self) -> Result<()> {
        Ok(())
    }

    /// Sends a message to the other side over the control connection.
    fn oob_send(&mut self, words: &str) -> Result<()>;

    /// The next message of the other side, if it has arrived.
    fn oob_recv(&mut self) -> Result<Option<String>>;

    /// Waits for the other pairs of this side, if the benchmark has several.
    fn meet_pairs(&mut self) -> Result<()> {
        Ok(())
    }

    /// Time without arrivals after which nothing is in flight any more, in nanoseconds.
    fn quiet(&self) -> u64;

    /// Waits for the next message of the other side.
    fn hear(&mut self) -> Result<String> {
        loop {
            if let Some(words) = self.oob_recv()? {
                self.found()?;
                return Ok(words);
            }
            self.idle(u64::MAX)?;
        }
    }

    /// Sends a message and waits for that of the other side.
    fn swap(&mut self, words: &str) -> Result<String> {
        self.oob_send(words)?;
        self.hear()
    }
}
