//! The trait by which the waiter of a rank uses each transport: polls cheaply, arms it, sleeps on
//! its doorbell or events.

use std::os::fd::OwnedFd;

use crate::Result;
use crate::core_counts::CoreWatch;
use crate::doorbell::Bell;

/// The means by which a transport wakes a sleeping rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// The peer that writes a packet rings the rank's doorbell.
    ByDoorbell,
    /// Each arrival makes the descriptor of [`events`](Waitable::events) readable.
    ByEvent,
    /// Some arrivals neither ring the doorbell nor make a descriptor readable.
    NotAlways,
}

/// A transport on whose arrivals a rank can wait.
pub(crate) trait Waitable {
    /// True if a cheap check shows that a poll would find nothing. False where no such check
    /// exists.
    fn has_nothing(&self) -> bool;

    /// True unless something has arrived that no event will report.
    fn is_quiet(&mut self) -> bool;

    /// Prepares for a sleep of the rank: arrivals from now on are signalled. The next poll finds
    /// everything that has arrived before.
    fn arm(&mut self) -> Result<Wakes>;

    /// The descriptor that becomes readable by events of the armed transport. The default is for
    /// transports without events.
    fn events(&mut self) -> Result<Option<OwnedFd>> {
        Ok(None)
    }

    /// This rank's doorbell, on which the rank sleeps, if peers of this transport ring one. The
    /// default is for transports whose peers cannot.
    fn bell(&self) -> Option<Bell> {
        None
    }

    /// True if there are peers that can ring the doorbell.
    fn has_ringers(&self) -> bool {
        false
    }

    /// Rings this rank's doorbell, for its other threads.
    fn ring_own(&self) {}

    /// This rank's entry in the counts of this host's cores, if the transport has these counts.
    fn core_watch(&self) -> Option<CoreWatch> {
        None
    }

    /// True if each rank that the transport reaches on this host has a core. `None`: not known yet.
    fn has_core_each(&mut self) -> Option<bool> {
        Some(true)
    }

    /// True if the transport makes time pass by itself ([`pass_time`](Waitable::pass_time)): it has
    /// devices.
    fn passes_time(&self) -> bool {
        false
    }

    /// Lets time pass until something may have changed, for at most `nanos` nanoseconds. The
    /// default is for transports that cannot.
    fn pass_time(&mut self, nanos: u64) -> Result<()> {
        let _ = nanos;
        Ok(())
    }

    /// True if the transport is moving long messages at present, while this rank does something
    /// else.
    fn moves_bulk(&self) -> bool {
        false
    }

    /// True if processors of this host do the transport's work, so that a spinning rank delays it.
    fn needs_processors(&self) -> bool {
        false
    }

    /// True if the transport detects at once that no path to a peer works.
    fn knows_cuts(&self) -> bool {
        false
    }

    /// Checks, in a long wait, the peers that no path reaches. An error: one of them is lost.
    fn check_last_paths(&mut self) -> Result<()> {
        Ok(())
    }
}
