//! All ranks, with the data that their processes see: registered memory, arrived data and
//! completions.
//!
//! A rank's memory is accessed only while it is that rank's turn.

use fabric::Bytes;
use sim::Time;
use sim::memory::Vec;

use super::completions::CompletionQueues;
use super::efforts::CALL;
use super::event::{Clocked, Event};
use super::inbox::Arrival;
use super::message::Messages;
use super::paths::Paths;
use super::rank::Rank;
use super::regions::Regions;
use super::run::Run;
use super::span::{Doing, Track};
use super::timing::Timing;
use device::{Error, PortEvent, Result, Signs};

/// The ranks of a modelled machine.
pub(crate) struct Ranks {
    all: Vec<Rank>,
    pub regions: Regions,
    pub cqs: CompletionQueues,
}

impl Ranks {
    /// Ranks on these hosts, one for each entry.
    ///
    /// Panics if the system does not have such a host.
    pub(crate) fn new(run: &Run, hosts: &[u32]) -> Ranks {
        let (memory, system) = (run.memory, &run.system);
        let mut all = Vec::new_in(memory);
        let mut on_host = vec![0; system.nodes as usize];
        for &host in hosts {
            assert!(
                host < system.nodes,
                "host {host} of a system with {} hosts",
                system.nodes
            );
            on_host[host as usize] += 1;
            all.push(Rank::new(memory, host, run.faults.slowness(host)));
        }
        // Progress threads have the cores that are left. A host whose number of cores is unknown
        // has enough. Threads that a program starts are not counted: the machine does not know
        // them.
        if let Some(cores) = system.host.cores {
            for rank in &mut all {
                rank.shares_core = on_host[rank.host as usize] >= cores;
            }
        }
        Ranks {
            all,
            regions: Regions::new(memory),
            cqs: CompletionQueues::new(memory),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, rank: usize) -> Option<&Rank> {
        self.all.get(rank)
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = u32> {
        self.all.iter().map(|rank| rank.host)
    }

    /// Adds data that becomes visible to a rank at `at`; `wakes`: it wakes the rank if that waits.
    #[inline]
    pub(crate) fn announce(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        at: Time,
        (what, wakes): (Arrival, bool),
        clock: &mut Clocked,
    ) {
        let own = &mut self[rank];
        if own.gone {
            return;
        }
        if let Arrival::Bytes { message, .. } = what {
            messages[message].uses += 1;
        }
        own.inbox.add(at, what, wakes);
        if wakes && clock.is_waiting(rank) {
            clock.at(at, Event::Wake { rank });
        }
    }

    /// Announces bytes that become visible to a rank: together at `at`, or scattered before.
    #[inline]
    pub(crate) fn announce_bytes(
        &mut self,
        run: &mut Run,
        rank: u32,
        at: Time,
        (what, wakes): (Arrival, bool),
        clock: &mut Clocked,
    ) {
        match run.faults.scatter {
            None => self.announce(&mut run.messages, rank, at, (what, wakes), clock),
            Some(over) => {
                let earliest = clock.now().max(at.saturating_sub(over));
                self.scatter(
                    &mut run.messages,
                    rank,
                    (earliest, at),
                    (what, wakes),
                    clock,
                )
            }
        }
    }

    /// Announces bytes in pieces, each at some time up to the last. The completion comes after all
    /// of them.
    #[cold]
    fn scatter(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        (earliest, at): (Time, Time),
        (what, wakes): (Arrival, bool),
        clock: &mut Clocked,
    ) {
        let Arrival::Bytes {
            message,
            from,
            len,
            key,
            to,
        } = what
        else {
            return;
        };
        let mut done = 0;
        while done < len {
            let left = u64::from(len - done);
            let size = (1 + clock.random.below(left.min(64))) as u32;
            let what = Arrival::Bytes {
                message,
                from: from + done,
                len: size,
                key,
                to: to + u64::from(done),
            };
            let when = at - clock.random.below(at - earliest + 1);
            self.announce(messages, rank, when, (what, wakes), clock);
            done += size;
        }
    }

    /// Wakes a rank to which something becomes visible, if it waits. A rank that ran ahead, and
    /// waits since a later time or since just now, may have seen it already.
    pub(crate) fn wake(&mut self, rank: u32, runs_ahead: bool, clock: &mut Clocked) {
        let since = clock.of(rank);
        let waited = !runs_ahead || since < clock.now();
        let next = || self[rank].inbox.next_wake();
        if waited || next().is_some_and(|at| at <= since) {
            clock.wake(rank);
        }
    }

    /// Delivers everything that has become visible to a rank by `now`. Called only where the rank's
    /// memory can be accessed.
    #[inline]
    pub(crate) fn receive(&mut self, messages: &mut Messages, rank: u32, now: Time) {
        loop {
            let own = &mut self[rank];
            let Some(entry) = own.inbox.take(now) else {
                return;
            };
            own.fresh |= entry.wakes;
            self.deliver(messages, rank, entry.what);
        }
    }

    #[inline]
    fn deliver(&mut self, messages: &mut Messages, rank: u32, what: Arrival) {
        match what {
            Arrival::Bytes {
                message,
                from,
                len,
                key,
                to,
            } => {
                if self.regions.stands(key) {
                    let piece = &messages[message].payload[from as usize..(from + len) as usize];
                    // SAFETY: the piece was checked against the region's bounds and rights when it
                    // arrived, and the region is still registered, so its owner keeps the memory
                    // and expects it to change. This is that rank's process.
                    unsafe {
                        std::ptr::copy_nonoverlapping(piece.as_ptr(), to as *mut u8, len as usize)
                    };
                    let own = &mut self[rank];
                    own.written = true;
                    own.written_regions.add(key);
                }
                messages.release(message);
            }
            Arrival::Completion { cq } => self.cqs.show(cq),
            Arrival::Datagram => self[rank].datagrams.arrive(),
        }
    }

    /// Sends an out-of-band message, which takes `latency`. While no path to the peer's host
    /// carries packets, the message waits: on a real machine it is sent repeatedly.
    pub(crate) fn oob_send(
        &mut self,
        run: &mut Run,
        (from, to): (u32, usize),
        bytes: &[u8],
        latency: Time,
        clock: &mut Clocked,
    ) -> Result<()> {
        let Some(theirs) = self.all.get(to) else {
            let ranks = self.all.len();
            return Err(Error::Invalid(format!("rank {to} of {ranks}")));
        };
        let paths = Paths::of(run);
        let leaves = paths.path_opens(self[from].host, theirs.host, clock.of(from));
        let Some(at) = leaves.checked_add(latency) else {
            return Ok(());
        };
        let own = &mut self.all[to];
        if !own.gone {
            own.datagrams.add(at, from, bytes, run.lookahead.is_some());
            let what = (Arrival::Datagram, true);
            self.announce(&mut run.messages, to as u32, at, what, clock);
        }
        Ok(())
    }

    /// The signs that a peer is alive, for a rank at the time `at`.
    pub(crate) fn signs(&self, run: &Run, rank: u32, peer: usize, at: Time) -> Signs {
        let Some(theirs) = self.all.get(peer) else {
            return Signs::default();
        };
        Paths::of(run).signs(self[rank].host, theirs.host, !theirs.gone, at)
    }

    /// Ends a rank's part in the machine: its memory is not accessed from now on. Returns its queue
    /// pairs.
    pub(crate) fn leave(&mut self, messages: &mut Messages, rank: u32) -> Vec<u32> {
        let own = &mut self[rank];
        own.gone = true;
        while let Some(entry) = own.inbox.take(Time::MAX) {
            if let Arrival::Bytes { message, .. } = entry.what {
                messages.release(message);
            }
        }
        own.datagrams.clear();
        let none = Vec::new_in(*own.qps.allocator());
        let qps = std::mem::replace(&mut own.qps, none);
        self.regions.forget(rank);
        qps
    }

    /// Schedules the times at which a rank checks its ports, and its paths to other ranks.
    pub(crate) fn watch_ports(&self, run: &Run, rank: u32, clock: &mut Clocked) {
        let paths = Paths::of(run);
        for (fault, plan) in (0..).zip(paths.faults.as_slice()) {
            if plan.cuts() || paths.causes_events(self[rank].host, plan) {
                clock.at_idle(plan.from, Event::Port { rank, fault });
            }
        }
    }

    /// Handles the time at which a fault begins, changes or ends.
    pub(crate) fn port_changes(&mut self, run: &Run, rank: u32, fault: u32, clock: &mut Clocked) {
        let own = &mut self[rank];
        if own.gone {
            return;
        }
        let (now, paths) = (clock.now(), Paths::of(run));
        let plan = &paths.faults.as_slice()[fault as usize];
        let changes = paths.causes_events(own.host, plan)
            && own.change_port(plan.rail, paths.is_down(own.host, plan.rail, now));
        if changes {
            own.fresh = true;
            clock.wake(rank);
        }
        if plan.cuts() {
            // The paths to some peer may have ended, or may carry packets again.
            own.fresh = true;
            clock.wake(rank);
        }
        if let Some(next) = plan.next_change(now) {
            clock.at_idle(next, Event::Port { rank, fault });
        }
    }

    /// Removes and returns the port events of a rank.
    pub(crate) fn take_port_events(&mut self, rank: u32) -> std::vec::Vec<PortEvent> {
        let changes = self[rank].changes.drain(..);
        let event = |(rail, change)| PortEvent {
            rail: rail as usize,
            change,
        };
        changes.map(event).collect()
    }

    /// The time on a rank's processor of work that takes `time` on a normal one.
    #[inline]
    pub(crate) fn cpu(&self, rank: u32, time: Time) -> Time {
        let own = &self[rank];
        let time = match own.slowness {
            100 => time,
            percent => time * u64::from(percent) / 100,
        };
        match own.is_free {
            true => time.min(CALL),
            false => time,
        }
    }

    /// Records that a rank's processor has been busy, or has waited, for `time` from `start` on.
    #[inline]
    pub(crate) fn note(&self, run: &mut Run, rank: u32, start: Time, time: Time, doing: Doing) {
        run.sums.add_processor(rank, doing.activity, time);
        if time > 0 && run.record.is_on() {
            let track = (self[rank].host, Track::Processor(rank));
            run.note(track, (start, start + time), doing);
        }
    }

    /// Registers memory of this length; returns the time that this takes on the rank's processor.
    pub(crate) fn pin(&mut self, timing: &Timing, (rank, domain): (u32, u32), len: u64) -> Time {
        let costs = &timing.costs;
        let (pages, time) = (costs.pages(Bytes(len)), costs.register(Bytes(len)));
        match self[rank].pinned.take(domain, pages) {
            true => self.cpu(rank, time.picos()),
            false => 0,
        }
    }

    pub(crate) fn unpin(&mut self, timing: &Timing, (rank, domain): (u32, u32), len: u64) {
        let pages = timing.costs.pages(Bytes(len));
        self[rank].pinned.give_back(domain, pages);
    }
}

impl std::ops::Index<u32> for Ranks {
    type Output = Rank;
    #[inline]
    fn index(&self, rank: u32) -> &Rank {
        &self.all[rank as usize]
    }
}

impl std::ops::IndexMut<u32> for Ranks {
    #[inline]
    fn index_mut(&mut self, rank: u32) -> &mut Rank {
        &mut self.all[rank as usize]
    }
}
