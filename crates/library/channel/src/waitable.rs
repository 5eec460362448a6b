//! The questions of a waiter to each transport of its rank.

use std::os::fd::OwnedFd;

use crate::Result;
use crate::core_counts::CoreWatch;
use crate::doorbell::Bell;

/// The signal of a transport to a sleeping rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// The peer that writes rings the doorbell.
    ByDoorbell,
    /// Each arrival makes the descriptor of [`events`](Waitable::events) readable.
    ByEvent,
    /// Some arrivals give no signal.
    NotAlways,
}

/// A transport for which a rank can wait.
pub(crate) trait Waitable {
    /// A cheap check says that a poll would find nothing. False where no such check exists.
    fn has_nothing(&self) -> bool;

    /// Nothing has arrived at this moment that no event reports.
    fn is_quiet(&mut self) -> bool;

    /// The rank is about to sleep: what arrives from now on is to be signalled. The next poll
    /// covers all that has arrived before.
    fn arm(&mut self) -> Result<Wakes>;

    /// The descriptor that becomes readable with the events of an armed transport. The default is
    /// for transports without events.
    fn events(&mut self) -> Result<Option<OwnedFd>> {
        Ok(None)
    }

    /// This rank's doorbell, if its peers ring one: the rank sleeps on it. The default is for
    /// transports whose peers cannot.
    fn bell(&self) -> Option<Bell> {
        None
    }

    /// There are peers that can ring the doorbell.
    fn has_ringers(&self) -> bool {
        false
    }

    /// Rings this rank's doorbell, for its other threads.
    fn ring_own(&self) {}

    /// The watch of this rank over its core, if the transport counts the ranks on each.
    fn core_watch(&self) -> Option<CoreWatch> {
        None
    }

    /// Each rank that the transport reaches on this host has a core. `None`: not known yet.
    fn has_core_each(&mut self) -> Option<bool> {
        Some(true)
    }

    /// It lets time pass by itself ([`pass_time`](Waitable::pass_time)): it has devices.
    fn passes_time(&self) -> bool {
        false
    }

    /// Lets at most `nanos` nanoseconds pass, until something may have changed. The default is for
    /// transports that cannot.
    fn pass_time(&mut self, nanos: u64) -> Result<()> {
        let _ = nanos;
        Ok(())
    }

    /// Long messages are moved at this moment, while this rank does something else.
    fn moves_bulk(&self) -> bool {
        false
    }

    /// This host's processors do its work, so a rank that spins keeps them from it.
    fn needs_processors(&self) -> bool {
        false
    }

    /// It notices at once when no path to a peer carries anything.
    fn knows_cuts(&self) -> bool {
        false
    }

    /// Judges the peers that no path reaches, in a long wait. An error: one is lost.
    fn tend_last_paths(&mut self) -> Result<()> {
        Ok(())
    }
}
