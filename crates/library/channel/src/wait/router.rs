//! Queries and commands of a waiting rank to all its transports.

use std::os::fd::OwnedFd;

use crate::core_counts::CoreWatch;
use crate::doorbell::Bell;
use crate::transports::each;
use crate::waitable::{Waitable, Wakes};
use crate::{Result, Router};

impl Router {
    /// Wakes the other threads of this rank, which may sleep for a message that has just arrived.
    pub fn wake_threads(&self) {
        each!(&self.transports, transport => transport.ring_own());
    }

    /// True if a transport makes time pass by itself, through the rank's node.
    pub(crate) fn passes_time(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.passes_time() {
                return true;
            }
        });
        false
    }

    /// True if devices reach all peers, so that no peer rings this rank's doorbell.
    pub(crate) fn only_devices(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.has_ringers() {
                return false;
            }
        });
        self.passes_time()
    }

    /// True if processors of this host do the work of the rank's devices. A rank that spins then
    /// keeps them from that work.
    pub(crate) fn by_processor(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.needs_processors() {
                return true;
            }
        });
        false
    }

    /// True if a transport detects by itself that no path to a peer works.
    pub(super) fn knows_cuts(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.knows_cuts() {
                return true;
            }
        });
        false
    }

    /// True if a transport is moving long messages at present, while this rank does something else.
    #[inline(always)]
    pub(super) fn moves_bulk(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.moves_bulk() {
                return true;
            }
        });
        false
    }

    /// True unless something has arrived that no event will report.
    pub(super) fn is_quiet(&mut self) -> bool {
        each!(&mut self.transports, transport => {
            if !transport.is_quiet() {
                return false;
            }
        });
        true
    }

    /// Arms the transports. `None`: all are woken by the doorbell. Otherwise some are woken by
    /// events, and the result is true if each arrival raises one.
    pub(super) fn arm(&mut self) -> Result<Option<bool>> {
        let mut rings = None;
        each!(&mut self.transports, transport => {
            match transport.arm()? {
                Wakes::ByDoorbell => {}
                wakes => rings = Some(rings.unwrap_or(true) && wakes == Wakes::ByEvent),
            }
        });
        Ok(rings)
    }

    /// The descriptors that become readable by events of armed transports.
    pub(super) fn events(&mut self) -> Result<Vec<OwnedFd>> {
        let mut events = Vec::new();
        each!(&mut self.transports, transport => events.extend(transport.events()?));
        Ok(events)
    }

    /// Checks the peers that no path reaches. An error: one of them is lost.
    pub(super) fn check_last_paths(&mut self) -> Result<()> {
        each!(&mut self.transports, transport => transport.check_last_paths()?);
        Ok(())
    }

    /// Lets time pass through the rank's node until something may have changed, for at most `nanos`
    /// nanoseconds.
    pub(super) fn pass_time(&mut self, nanos: u64) -> Result<()> {
        each!(&mut self.transports, transport => transport.pass_time(nanos)?);
        Ok(())
    }

    /// This rank's doorbell; `None` if no memory is shared.
    pub(super) fn bell(&self) -> Option<Bell> {
        let mut bell = None;
        each!(&self.transports, transport => bell = bell.or(transport.bell()));
        bell
    }

    /// This rank's entry in the counts of ranks by core.
    pub(super) fn core_watch(&self) -> Option<CoreWatch> {
        let mut watch = None;
        each!(&self.transports, transport => watch = watch.or(transport.core_watch()));
        watch
    }

    /// True if each rank of this host has a core. `None`: not known yet.
    pub(super) fn has_core_each(&mut self) -> Option<bool> {
        let mut each = true;
        each!(&mut self.transports, transport => each &= transport.has_core_each()?);
        Some(each)
    }
}
