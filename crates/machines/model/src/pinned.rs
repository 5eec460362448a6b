//! The processor time of memory registration. A library caches registrations for later transfers of
//! the same buffer. The cost therefore depends on the greatest number of buffers of one size that a
//! rank has registered at once, not on the number of registrations: only a registration that raises
//! this number costs time.
//!
//! Invariant: addresses do not matter. They differ from run to run, and virtual time must not.

use sim::memory::{Vec, WorldMemory};

/// The registrations of one size by one rank in one protection domain. The list is sorted by domain
/// and size.
#[derive(Clone, Copy)]
struct CachedSize {
    domain: u32,
    pages: u64,
    /// The number of registrations that accesses use now.
    used: u32,
    /// The greatest number of registrations of this size that have been in use at once.
    most: u32,
}

pub(crate) struct Pinned(Vec<CachedSize>);

impl Pinned {
    pub(crate) fn new(memory: WorldMemory) -> Pinned {
        Pinned(Vec::new_in(memory))
    }

    fn find(&self, domain: u32, pages: u64) -> Result<usize, usize> {
        let place = |kept: &CachedSize| (kept.domain, kept.pages);
        self.0.binary_search_by_key(&(domain, pages), place)
    }

    /// Takes one registration into use. True: no cached one was free, so it costs time.
    pub(crate) fn take(&mut self, domain: u32, pages: u64) -> bool {
        let at = self.find(domain, pages).unwrap_or_else(|at| {
            let (used, most) = (0, 0);
            let none = CachedSize {
                domain,
                pages,
                used,
                most,
            };
            self.0.insert(at, none);
            at
        });
        let kept = &mut self.0[at];
        kept.used += 1;
        let more = kept.used > kept.most;
        kept.most = kept.most.max(kept.used);
        more
    }

    pub(crate) fn give_back(&mut self, domain: u32, pages: u64) {
        if let Ok(at) = self.find(domain, pages) {
            self.0[at].used -= 1;
        }
    }
}
