//! Waiting for what devices bring.

use std::os::fd::OwnedFd;

use super::Rdma;
use super::rail::Rail;
use crate::Result;
use crate::wait::{Waitable, Wakes};

impl Waitable for Rdma {
    /// Only a poll of the devices finds what has come.
    fn has_nothing(&self) -> bool {
        false
    }

    fn is_quiet(&mut self) -> bool {
        true
    }

    fn arm(&mut self) -> Result<Wakes> {
        self.attention.all = true;
        self.send_grants()?;
        self.probe()?;
        Rdma::tend_last_paths(self)?;
        self.node.arm()?;
        let mut in_use = self.in_use.iter();
        let raises = |rail: &Rail| rail.by_completion() || rail.polled();
        let is_sure = self.by_completion || in_use.all(|rail| raises(&self.rails[rail]));
        Ok(match is_sure {
            true => Wakes::ByEvent,
            false => Wakes::NotAlways,
        })
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        Ok(self.node.events()?)
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

    fn tend_last_paths(&mut self) -> Result<()> {
        Rdma::tend_last_paths(self)
    }
}
