//! The interface [`Waitable`] of the RDMA transport: a rank sleeps until the devices report
//! arrivals.

use std::os::fd::OwnedFd;

use super::Rdma;
use super::rail::Rail;
use crate::Result;
use crate::waitable::{Waitable, Wakes};

impl Waitable for Rdma {
    /// Always false: a poll of the devices costs no more than a check would.
    fn has_nothing(&self) -> bool {
        false
    }

    fn is_quiet(&mut self) -> bool {
        true
    }

    fn arm(&mut self) -> Result<Wakes> {
        self.connections.attention.all = true;
        self.send_grants()?;
        self.probes.probe(&mut self.connections)?;
        Rdma::check_last_paths(self)?;
        let local = &mut self.connections.local;
        local.node.arm()?;
        let raises = |rail: &Rail| rail.is_unordered() || rail.polled();
        let is_sure = local.unordered || local.rails_in_use().all(raises);
        Ok(match is_sure {
            true => Wakes::ByEvent,
            false => Wakes::NotAlways,
        })
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        Ok(self.connections.local.node.events()?)
    }

    #[inline]
    fn passes_time(&self) -> bool {
        true
    }

    fn pass_time(&mut self, nanos: u64) -> Result<()> {
        self.wait(nanos)
    }

    #[inline(always)]
    fn moves_bulk(&self) -> bool {
        self.is_moving()
    }

    fn needs_processors(&self) -> bool {
        Rdma::needs_processors(self)
    }

    fn knows_cuts(&self) -> bool {
        Rdma::knows_cuts(self)
    }

    fn check_last_paths(&mut self) -> Result<()> {
        Rdma::check_last_paths(self)
    }
}
