//! The registrations of exposed memory, and the cache that keeps them for the next exposure.
//!
//! Memory is registered once for each protection domain, and the keys are handed to every rail of
//! the domain. A registration without users is kept, within [`Bounds`], least recently used first
//! out: registering again would cost more than the transfer of a message of many kilobytes.
//!
//! A device pins pages, so a kept registration is stale once the program has unmapped its memory.
//! The cache keeps only what a [`Watch`] reports on, and takes the reports before each exposure.
//! Where nothing can be watched, and in virtual time, memory is deregistered when its last user
//! retracts it. The model charges as a library with a cache would, and its device accesses memory
//! by address at the time of the transfer: there is neither a cost to save nor a page to go stale.
//!
//! Invariants:
//! - an exposure never gets a registration whose pages have changed since it was made;
//! - a registration with users is not deregistered, whatever happens to its memory;
//! - a registration covers the exposed bytes and no others: a peer that errs cannot reach the bytes
//!   beside a buffer.

mod cover;
mod domains;
mod userfault;
mod watch;

use std::collections::{BTreeMap, HashMap};

use device::Node;

use super::rail_set::{RailKeys, RailSet};
use crate::{Exposed, Fault, Result};
use cover::Cover;
use domains::Domains;
pub(super) use domains::ExposedRange;
use userfault::UserfaultWatch;
use watch::{Changes, Watch, pages, without};

/// The limits of what the registration cache keeps.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// The most registrations that the cache keeps, in use or not.
    count: usize,
    /// The most registered bytes, in all protection domains together.
    bytes: u64,
}

impl Bounds {
    /// 1,024 registrations of 1 GiB together, but at most a quarter of the memory that this process
    /// may lock: the rest is for rings and for registrations in use.
    fn of_process() -> Bounds {
        let mut limit = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: memory for the answer. If there is none, no limit is known.
        unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
        let bytes = match limit.rlim_cur {
            libc::RLIM_INFINITY => 1 << 30,
            limit => (limit / 4).min(1 << 30),
        };
        Bounds { count: 1024, bytes }
    }
}

/// The counts of a registration cache's hits and misses since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrationCounts {
    /// The number of exposures that found their memory registered.
    pub hits: u64,
    /// The number of exposures that registered their memory.
    pub misses: u64,
    /// The number of registrations that were dropped to make room for others.
    pub evicted: u64,
    /// The number of registrations that were dropped because the program has unmapped their memory.
    pub invalidated: u64,
    /// The number of registrations at present, in use or not.
    pub present: usize,
    /// The reason why registrations are not kept after their use. `None`: they are kept, or none
    /// has been made yet.
    pub off: Option<String>,
}

/// The state of the watch over the memory of registrations that are kept.
enum Watching {
    /// The watch has not started: the first registration starts it.
    NotStarted,
    On(Box<dyn Watch>),
    /// There is no watch over memory, so no registration is kept.
    Off,
}

/// A range of memory that is registered in every protection domain.
struct Registration {
    address: u64,
    len: usize,
    allows: Exposed,
    /// The keys of the memory on every rail.
    keys: RailKeys,
    /// The number of exposed ranges that use the registration.
    users: usize,
    /// True if the pages of the registration are watched.
    watched: bool,
    /// True if later exposures may find the registration.
    found: bool,
    /// The time at which the registration was last used, by the cache's own clock.
    used: u64,
}

/// The use of one exposed range: its exposures, and the registrations for them.
struct RangeUse {
    /// The number of exposures of the range that have not ended.
    exposures: usize,
    /// The registration for further exposures. `None`: its memory has changed.
    current: Option<usize>,
    /// Earlier registrations, whose memory has changed. A transfer may use them until no exposure
    /// is left: the change may lie outside the range.
    earlier: Vec<usize>,
}

/// All registrations of exposed memory of a rank.
pub(super) struct Registrations {
    domains: Domains,
    bounds: Bounds,
    watching: Watching,
    exposed: HashMap<ExposedRange, RangeUse>,
    all: Vec<Option<Registration>>,
    free: Vec<usize>,
    /// The registrations that an exposure may find: for reading, and for writing.
    covers: [Cover; 2],
    /// The registrations without users, by the time of their last use.
    idle: BTreeMap<u64, usize>,
    clock: u64,
    bytes: u64,
    counts: RegistrationCounts,
}

impl Registrations {
    /// The registrations on `rails` of a node. `keep`: they may be kept after their use.
    pub(super) fn new(node: &mut dyn Node, rails: RailSet, keep: bool) -> Registrations {
        let off = match (node.is_virtual(), keep) {
            (true, _) => Some("in virtual time the model charges as if they were kept".into()),
            (false, false) => Some("FISHPLATE_REGISTRATION_CACHE is off".into()),
            (false, true) => None,
        };
        let watching = match off.is_some() {
            true => Watching::Off,
            false => Watching::NotStarted,
        };
        Registrations {
            domains: Domains::of(node, rails),
            bounds: Bounds::of_process(),
            watching,
            exposed: HashMap::new(),
            all: Vec::new(),
            free: Vec::new(),
            covers: Default::default(),
            idle: BTreeMap::new(),
            clock: 0,
            bytes: 0,
            counts: RegistrationCounts {
                off,
                ..RegistrationCounts::default()
            },
        }
    }

    /// Exposes memory and returns its keys on every rail. Registered memory is not registered
    /// again.
    ///
    /// The caller keeps the memory until it has called `retract` once for each exposure.
    pub(super) fn expose(&mut self, node: &mut dyn Node, range: ExposedRange) -> Result<RailKeys> {
        self.drop_changed(node);
        if let Some(used) = self.exposed.get_mut(&range)
            && let Some(number) = used.current
        {
            used.exposures += 1;
            self.counts.hits += 1;
            return Ok(self.at(number).keys);
        }
        let number = match self.find(range) {
            Some(number) => {
                self.counts.hits += 1;
                number
            }
            None => {
                let number = self.make(node, range)?;
                self.counts.misses += 1;
                number
            }
        };
        let registration = self.at_mut(number);
        registration.users += 1;
        let (used, keys) = (registration.used, registration.keys);
        self.idle.remove(&used);
        let used = self.exposed.entry(range).or_insert(RangeUse {
            exposures: 0,
            current: None,
            earlier: Vec::new(),
        });
        used.exposures += 1;
        used.current = Some(number);
        Ok(keys)
    }

    /// The keys of a range of exposed memory.
    pub(super) fn keys(&self, range: ExposedRange) -> &RailKeys {
        let used = &self.exposed[&range];
        let number = used.current.or(used.earlier.last().copied());
        &self.at(number.expect("a registration for each range")).keys
    }

    /// Ends one exposure of a range of memory.
    pub(super) fn retract(&mut self, node: &mut dyn Node, range: ExposedRange) -> Result<()> {
        let used = self.exposed.get_mut(&range);
        let used = used.expect("memory is retracted once for each time it is exposed");
        used.exposures -= 1;
        if used.exposures > 0 {
            return Ok(());
        }
        let mut result = Ok(());
        if let Some(used) = self.exposed.remove(&range) {
            for number in used.earlier.into_iter().chain(used.current) {
                result = result.and(self.release(node, number));
            }
        }
        result
    }

    /// The counts of hits and misses since the start.
    pub(super) fn counts(&self) -> RegistrationCounts {
        RegistrationCounts {
            present: self.all.len() - self.free.len(),
            ..self.counts.clone()
        }
    }

    /// Deregisters everything. No request that needs it is posted.
    pub(super) fn end(&mut self, node: &mut dyn Node) {
        self.exposed.clear();
        for number in 0..self.all.len() {
            if self.all[number].is_some() {
                // A device's error no longer matters.
                let _ = self.deregister(node, number);
            }
        }
    }

    fn at(&self, number: usize) -> &Registration {
        self.all[number].as_ref().expect("a registration in use")
    }

    fn at_mut(&mut self, number: usize) -> &mut Registration {
        self.all[number].as_mut().expect("a registration in use")
    }

    /// A registration that covers the range and allows its use.
    fn find(&self, (address, len, exposed): ExposedRange) -> Option<usize> {
        let [reads, writes] = &self.covers;
        let for_writing = || writes.find(address, len);
        match exposed {
            Exposed::ToRead => reads.find(address, len).or_else(for_writing),
            Exposed::ToWrite | Exposed::ToBoth => for_writing(),
        }
    }

    /// Registers a range that no registration covers.
    fn make(&mut self, node: &mut dyn Node, range: ExposedRange) -> Result<usize> {
        let (address, len, allows) = range;
        let bytes = self.domains.cost(len);
        let may_be_kept = bytes <= self.bounds.bytes && self.start_watch();
        if may_be_kept {
            self.make_room(node, 1, bytes);
        }
        let keys = self.register(node, range, may_be_kept)?;
        // After the evictions, which end the watch over pages that nothing else needs.
        let watched = may_be_kept && self.watch(address, len);
        let registration = Registration {
            address,
            len,
            allows,
            keys,
            users: 0,
            watched,
            found: watched,
            used: self.tick(),
        };
        self.bytes += bytes;
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.all.push(None);
                self.all.len() - 1
            }
        };
        self.all[number] = Some(registration);
        if watched {
            self.enter(node, number, range);
        }
        Ok(number)
    }

    /// Lets later exposures find a registration, instead of those that lie within it.
    fn enter(&mut self, node: &mut dyn Node, number: usize, (address, len, exposed): ExposedRange) {
        let narrower = match exposed {
            Exposed::ToRead => 0..1,
            Exposed::ToWrite | Exposed::ToBoth => 0..2,
        };
        let mut within = Vec::new();
        for cover in &mut self.covers[narrower] {
            within.extend(cover.take_within(address, len));
        }
        self.covers[cover_of(exposed)].insert(address, len, number);
        for other in within {
            let registration = self.at_mut(other);
            registration.found = false;
            if registration.users == 0 {
                // The memory is registered all the same, by the wider registration.
                let _ = self.deregister(node, other);
            }
        }
    }

    /// Registers a range in every domain. If too much memory is locked, kept registrations are
    /// dropped to make room. The error is that of the first attempt.
    fn register(
        &mut self,
        node: &mut dyn Node,
        range: ExposedRange,
        kept: bool,
    ) -> Result<RailKeys> {
        let first = match self.domains.register(node, range, kept) {
            Err(error) if is_shortage(&error) => error,
            answer => return answer,
        };
        let needed = self.domains.cost(range.1);
        while !self.idle.is_empty() {
            let kept_bytes = self.bytes;
            while kept_bytes - self.bytes < needed && self.evict(node) {}
            match self.domains.register(node, range, kept) {
                Err(error) if is_shortage(&error) => {}
                answer => return answer,
            }
        }
        Err(first)
    }

    /// Ends the use of a registration by a range of memory.
    fn release(&mut self, node: &mut dyn Node, number: usize) -> Result<()> {
        let clock = self.tick();
        let registration = self.at_mut(number);
        registration.users -= 1;
        registration.used = clock;
        match (registration.users, registration.found) {
            (0, true) => {
                self.idle.insert(clock, number);
                self.make_room(node, 0, 0);
                Ok(())
            }
            (0, false) => self.deregister(node, number),
            _ => Ok(()),
        }
    }

    /// Deregisters a registration without users.
    fn deregister(&mut self, node: &mut dyn Node, number: usize) -> Result<()> {
        let gone = self.all[number].take().expect("a registration");
        self.free.push(number);
        self.idle.remove(&gone.used);
        self.bytes -= self.domains.cost(gone.len);
        if gone.found {
            self.covers[cover_of(gone.allows)].remove(gone.address);
        }
        if gone.watched {
            self.unwatch(gone.address, gone.len);
        }
        self.domains
            .deregister(node, (gone.address, gone.len), &gone.keys)
    }

    /// Advances the cache's clock of uses. Returns the new time.
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Drops registrations until `count` further ones of `bytes` bytes together are within the
    /// bounds.
    fn make_room(&mut self, node: &mut dyn Node, count: usize, bytes: u64) {
        let is_full = |all: &Registrations| {
            all.all.len() - all.free.len() + count > all.bounds.count
                || all.bytes + bytes > all.bounds.bytes
        };
        while is_full(self) && self.evict(node) {}
    }

    /// Deregisters the registration that has not been used for longest. False: all are in use.
    fn evict(&mut self, node: &mut dyn Node) -> bool {
        let Some((_, &number)) = self.idle.first_key_value() else {
            return false;
        };
        self.counts.evicted += 1;
        // Its key is not used again, whatever the device answers.
        let _ = self.deregister(node, number);
        true
    }

    /// Drops the registrations whose memory has changed, by the reports of the watch.
    #[inline]
    fn drop_changed(&mut self, node: &mut dyn Node) {
        if let Watching::On(watch) = &mut self.watching
            && let Some(changes) = watch.take_changes()
        {
            self.invalidate(node, &changes);
        }
    }

    /// Drops every registration of changed memory. Those in use go with their last user: the
    /// program has unmapped memory under a transfer.
    #[cold]
    fn invalidate(&mut self, node: &mut dyn Node, changes: &Changes) {
        for number in 0..self.all.len() {
            let is_changed =
                |one: &Registration| one.watched && changes.touch(&pages(one.address, one.len));
            let Some(registration) = self.all[number].as_mut().filter(|one| is_changed(one)) else {
                continue;
            };
            self.counts.invalidated += 1;
            let (was_found, users) = (registration.found, registration.users);
            registration.found = false;
            registration.watched = false;
            let (address, len, allows) =
                (registration.address, registration.len, registration.allows);
            if was_found {
                self.covers[cover_of(allows)].remove(address);
            }
            self.unwatch(address, len);
            if users == 0 {
                // Its key is not used again, whatever the device answers.
                let _ = self.deregister(node, number);
                continue;
            }
            for used in self.exposed.values_mut() {
                let was_current = used.current.take_if(|current| *current == number);
                used.earlier.extend(was_current);
            }
        }
    }

    /// Starts the watch, if it has not been started. False: nothing can be watched.
    fn start_watch(&mut self) -> bool {
        if matches!(self.watching, Watching::NotStarted) {
            self.watching = match UserfaultWatch::start() {
                Ok(watch) => Watching::On(Box::new(watch)),
                Err(why) => {
                    self.counts.off = Some(why);
                    Watching::Off
                }
            };
        }
        matches!(self.watching, Watching::On(_))
    }

    /// Watches the pages of a range. False: these pages cannot be watched.
    fn watch(&mut self, address: u64, len: usize) -> bool {
        match &mut self.watching {
            Watching::On(watch) => watch.watch(pages(address, len)),
            _ => false,
        }
    }

    /// Stops watching the pages of a range, except those of other registrations.
    fn unwatch(&mut self, address: u64, len: usize) {
        let Watching::On(watch) = &mut self.watching else {
            return;
        };
        let range = pages(address, len);
        let others = self.all.iter().flatten().filter(|other| other.watched);
        let others = others.map(|other| pages(other.address, other.len));
        let others = others.filter(|other| other.start < range.end && range.start < other.end);
        for part in without(range.clone(), others.collect()) {
            watch.unwatch(part);
        }
    }
}

/// The position in `covers` of registrations for this access: 0 for reading, 1 for writing. An
/// exposure for reading may find both kinds.
fn cover_of(allows: Exposed) -> usize {
    usize::from(allows != Exposed::ToRead)
}

/// True if the error may disappear once other memory is deregistered.
fn is_shortage(error: &crate::Error) -> bool {
    matches!(error.fault(), Fault::Device(device::Error::Shortage(_)))
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod mapped_tests;
#[cfg(test)]
mod tests;
