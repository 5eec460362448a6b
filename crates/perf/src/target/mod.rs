//! Where one end of a benchmark is: its device, its clock, and the way to the other end beside the device.

pub mod modelled;
pub mod remote;

use anyhow::Result;
use device::Device;
use model::Traffic;

/// One of two ends.
pub trait Place {
    /// Who begins, measures, and shows.
    fn is_client(&self) -> bool;

    fn device(&mut self) -> &mut dyn Device;

    /// Time is virtual: every message takes the same, and few say all.
    fn is_modelled(&self) -> bool;

    /// What has gone over the links of a modelled machine until now.
    fn traffic(&mut self) -> Option<Traffic> {
        None
    }

    /// Picoseconds since some fixed moment. Where time is virtual, looking at the clock takes none.
    fn clock(&mut self) -> u64;

    /// Makes visible what the other end has written until now: before a look at memory that it writes to.
    fn sync_memory(&mut self);

    /// Nothing was found: lets time pass until something may have changed, at most so many nanoseconds. An error if
    /// nothing has been found for so long that nothing will be.
    fn idle(&mut self, nanos: u64) -> Result<()>;

    /// Something was found.
    fn found(&mut self) -> Result<()> {
        Ok(())
    }

    /// Says something to the other end.
    fn oob_send(&mut self, words: &str) -> Result<()>;

    /// What the other end says next, if it has been said.
    fn oob_recv(&mut self) -> Result<Option<String>>;

    /// How long nothing may come until nothing is on its way any more, in nanoseconds.
    fn quiet(&self) -> u64;

    /// What the other end says next.
    fn hear(&mut self) -> Result<String> {
        loop {
            if let Some(words) = self.oob_recv()? {
                self.found()?;
                return Ok(words);
            }
            self.idle(u64::MAX)?;
        }
    }

    /// Both ends say something, and go on when they have heard the other.
    fn swap(&mut self, words: &str) -> Result<String> {
        self.oob_send(words)?;
        self.hear()
    }
}
