//! A rank's node on a real host.
//!
//! Sleep: an armed completion queue reports only completions that arrive after it was armed. A
//! [`Node::wait`] that has armed a queue therefore returns at once, so that the rank polls again;
//! the next call sleeps, if the rank found nothing. A write that consumes no receive raises no
//! event: where rings are polled in memory, sleeps are short.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Instant;

use super::event_wait::EventWait;
use super::oob::{Directory, OutOfBand};
use device::{
    Attributes, Device, Error, HostDevice, Identity, Node, Placement, PortEvent, Result, Signs,
};
use secret::Secret;

/// The longest sleep where a write may arrive without an event, in nanoseconds.
const POLLED_SLEEP: u64 = 500_000;
/// The longest sleep where every arrival raises an event, in nanoseconds.
const LONG_SLEEP: u64 = 1_000_000_000;
/// The default of the longest wait of a closing node for the acknowledgement of its last messages,
/// in nanoseconds.
const LAST_WORDS: u64 = 1_000_000_000;
/// The time of such a wait after which hosts are probed for peers that have ended, in nanoseconds.
const ASKS_AFTER: u64 = 100_000_000;

/// A rank's node on a real host.
pub struct HostNode {
    devices: Vec<Box<dyn HostDevice>>,
    oob: OutOfBand,
    start: Instant,
    longest_sleep: u64,
    /// The descriptors whose events are awaited: two for each device, then all others.
    fds: Vec<libc::pollfd>,
    notes: VecDeque<String>,
    /// The descriptor for a thread that waits on behalf of the rank, once it is needed.
    event_wait: Option<EventWait>,
    last_words: u64,
}

impl HostNode {
    /// The node of rank `rank` of `ranks`, with a rail for each device. Out-of-band messages use
    /// every rail, and carry codes made with the job's secret. Ranks publish their cards in
    /// `directory`.
    pub fn new(
        devices: Vec<Box<dyn HostDevice>>,
        rank: usize,
        ranks: usize,
        secret: &Secret,
        directory: Box<dyn Directory>,
    ) -> Result<HostNode> {
        let mut devices = devices;
        if devices.is_empty() {
            return Err(Error::Invalid("a rank needs at least one device".into()));
        }
        number(&mut devices);
        let oob = OutOfBand::open(&mut devices, rank, ranks, secret, directory)?;
        let longest_sleep = match devices.iter().any(|one| writes_silently(one.attributes())) {
            true => POLLED_SLEEP,
            false => LONG_SLEEP,
        };
        let events = event_fds(&devices);
        // `progress` drains these descriptors.
        let tended = devices.iter().filter_map(|one| one.event_fds().connections);
        let fds = events.into_iter().chain(tended).chain(oob.fds());
        let fds = fds.map(wait_for);
        Ok(HostNode {
            fds: fds.collect(),
            devices,
            oob,
            start: Instant::now(),
            longest_sleep,
            notes: VecDeque::new(),
            event_wait: None,
            last_words: LAST_WORDS,
        })
    }

    /// Sets the longest wait of the closing node for the acknowledgement of its last messages, in
    /// nanoseconds. `None`: without limit. It does not wait for a peer that has ended; where no
    /// host reports the end of a process, it waits at most one second for each peer.
    pub fn with_last_words(mut self, nanos: Option<u64>) -> HostNode {
        self.last_words = nanos.unwrap_or(u64::MAX).max(LAST_WORDS);
        self
    }

    /// Adds a descriptor that wakes this rank when it is readable. The caller drains it.
    pub fn wake_on(&mut self, fd: RawFd) -> Result<()> {
        self.fds.push(wait_for(fd));
        match &self.event_wait {
            Some(event_wait) => event_wait.watch(fd),
            None => Ok(()),
        }
    }

    fn progress(&mut self) -> Result<()> {
        let now = self.start.elapsed().as_nanos() as u64;
        self.oob.progress(&mut self.devices, now)
    }

    /// True if a connection has been made, or has failed, since the last call.
    fn has_connected(&mut self) -> bool {
        // Every device is called, because the call resets its descriptor.
        let devices = self.devices.iter_mut();
        devices
            .filter_map(|one| one.has_connected().then_some(()))
            .count()
            > 0
    }

    /// Time from `now` until something is due although nothing arrives, in nanoseconds. `None`:
    /// never.
    fn due(&self, now: u64) -> Option<u64> {
        let messages = self.oob.due().map(|due| due.saturating_sub(now));
        let devices = self.devices.iter().filter_map(|one| one.due());
        devices.chain(messages).min()
    }

    /// Handles the descriptors that are ready.
    fn handle_ready(&mut self) -> Result<()> {
        let (events, owners) = self.fds.split_at_mut(2 * self.devices.len());
        // Ports of one device share a descriptor.
        let others = events.chunks(2).any(|fds| fds[1].revents != 0);
        for (device, fds) in self.devices.iter_mut().zip(events.chunks(2)) {
            device.take_events(fds[0].revents != 0, others);
            if others {
                device.take_notes(&mut self.notes);
            }
            if fds.iter().any(is_over) {
                let name = &device.attributes().name;
                let notes: Vec<&str> = self.notes.iter().map(String::as_str).collect();
                return Err(Error::System(format!(
                    "{name} has gone away; {}",
                    notes.join("; ")
                )));
            }
        }
        for fd in owners.iter_mut().filter(|fd| is_over(fd)) {
            // The owner finds the reason when it polls; here the descriptor is removed from the
            // wait.
            if let Some(event_wait) = &self.event_wait {
                event_wait.forget(fd.fd);
            }
            fd.fd = -1;
        }
        Ok(())
    }

    fn sleep(&mut self, nanos: u64) -> Result<()> {
        let time = libc::timespec {
            tv_sec: (nanos / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `fds.len()` entries, a time, and no mask.
        let ready = unsafe {
            libc::ppoll(
                self.fds.as_mut_ptr(),
                self.fds.len() as libc::nfds_t,
                &time,
                std::ptr::null(),
            )
        };
        if ready < 0 {
            let why = io::Error::last_os_error();
            return match why.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(Error::System(format!("waiting for events: {why}"))),
            };
        }
        match ready {
            0 => Ok(()),
            _ => self.handle_ready(),
        }
    }
}

/// True for a device at which a peer's write may become visible without an event.
fn writes_silently(attributes: &Attributes) -> bool {
    attributes.placement == Placement::Ordered && !attributes.polled
}

/// Assigns numbers to the cards and protection domains of a node's devices.
fn number(devices: &mut [Box<dyn HostDevice>]) {
    let mut known: Vec<(Identity, usize, usize)> = Vec::new();
    for device in devices {
        let own = device.identity();
        let next = |of: fn(&(Identity, usize, usize)) -> usize| {
            known.iter().map(|one| of(one) + 1).max().unwrap_or(0)
        };
        let shares = |(other, ..): &&(Identity, usize, usize)| {
            own.domain.is_some() && own.domain == other.domain
        };
        let same = known.iter().find(shares);
        let domain = same.map_or_else(|| next(|one| one.2), |one| one.2);
        let on_card =
            |(other, ..): &&(Identity, usize, usize)| own.card.is_some() && own.card == other.card;
        let card = same.or_else(|| known.iter().find(on_card));
        let card = card.map_or_else(|| next(|one| one.1), |one| one.1);
        device.set_numbers(card, domain);
        known.push((own, card, domain));
    }
}

/// Two descriptors for each device: for events of its completion queues, and for its other events.
/// -1: a device before it has the same descriptor.
fn event_fds(devices: &[Box<dyn HostDevice>]) -> Vec<RawFd> {
    let mut fds: Vec<RawFd> = Vec::new();
    for device in devices {
        let own = device.event_fds();
        for fd in [own.completions, own.others] {
            let fd = fd.filter(|fd| !fds.contains(fd));
            fds.push(fd.unwrap_or(-1));
        }
    }
    fds
}

/// True if a descriptor was closed at its other end, so that it would stay ready for ever.
fn is_over(fd: &libc::pollfd) -> bool {
    fd.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0
}

fn wait_for(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

impl Node for HostNode {
    fn rails(&self) -> usize {
        self.devices.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        &mut *self.devices[rail]
    }

    fn now(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn sync_memory(&mut self) {
        for device in &mut self.devices {
            device.sync_memory();
        }
    }

    fn written(&mut self, keys: &mut Vec<u32>) -> bool {
        let mut known = true;
        // Every device is called, so that none keeps old keys.
        for device in &mut self.devices {
            known &= device.written(keys);
        }
        known
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        self.progress()?;
        if self.has_connected() || self.oob.has_arrived() {
            return Ok(());
        }
        let mut new = false;
        for device in &mut self.devices {
            new |= device.arm()?;
        }
        if new {
            return Ok(());
        }
        let now = self.now();
        let due = self.due(now).unwrap_or(u64::MAX);
        self.sleep(nanos.min(due).min(self.longest_sleep))?;
        self.progress()
    }

    fn arm(&mut self) -> Result<()> {
        // Earlier events are consumed, because otherwise they would be reported again.
        self.sleep(0)?;
        for device in &mut self.devices {
            device.arm()?;
        }
        self.has_connected();
        self.progress()?;
        let now = self.now();
        let due = self.due(now);
        match &mut self.event_wait {
            Some(event_wait) => event_wait.wake_at(due),
            None => Ok(()),
        }
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        if self.event_wait.is_none() {
            let event_wait = EventWait::new()?;
            let fds = self.fds.iter().filter(|fd| fd.fd >= 0);
            fds.into_iter().try_for_each(|fd| event_wait.watch(fd.fd))?;
            self.event_wait = Some(event_wait);
            // This also sets the timer for retransmissions.
            self.arm()?;
        }
        self.event_wait.as_ref().map(EventWait::handle).transpose()
    }

    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        self.oob.oob_send(peer, words)?;
        self.progress()
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        if !self.oob.has_arrived() {
            self.progress()?;
        }
        Ok(self.oob.oob_recv())
    }

    fn add_ranks(&mut self, ranks: usize) -> Result<()> {
        self.oob.add_ranks(ranks);
        self.progress()
    }

    fn notes(&mut self) -> Vec<String> {
        for device in &mut self.devices {
            device.take_notes(&mut self.notes);
        }
        self.notes.extend(self.oob.take_notes());
        self.notes.drain(..).collect()
    }

    fn warnings(&mut self) -> Vec<(usize, String)> {
        let devices = self.devices.iter_mut().enumerate();
        let of = |(rail, device): (usize, &mut Box<dyn HostDevice>)| {
            let warnings = device.take_warnings().into_iter();
            warnings.map(move |words| (rail, words))
        };
        let of_devices = devices.flat_map(of);
        of_devices.chain(self.oob.take_warnings()).collect()
    }

    fn strangers(&mut self) -> Vec<u64> {
        let devices = self.devices.iter().enumerate();
        devices
            .map(|(rail, device)| device.strangers() + self.oob.strangers(rail))
            .collect()
    }

    fn port_events(&mut self) -> Vec<PortEvent> {
        let mut events = Vec::new();
        for (rail, device) in self.devices.iter_mut().enumerate() {
            let changes = device.take_changes().into_iter();
            events.extend(changes.map(|change| PortEvent { rail, change }));
        }
        events
    }

    fn signs(&mut self, peer: usize) -> Signs {
        // An arrived datagram is a sign. Errors are handled where messages are awaited.
        let _ = self.progress();
        let now = self.now();
        self.oob.signs(peer, now)
    }

    fn place_of(&mut self, peer: usize) -> String {
        self.oob.place_of(peer)
    }

    fn give_up(&mut self, peer: usize) {
        self.oob.give_up(peer);
    }
}

impl HostNode {
    /// True while a living peer lacks a message, or an acknowledgement has not left.
    fn has_last_words(&mut self, since: u64) -> bool {
        let now = self.now();
        let waited = now.saturating_sub(since);
        let late = waited > ASKS_AFTER;
        for peer in self.oob.unsettled().into_iter().filter(|_| late) {
            // A peer that has ended acknowledges nothing and needs nothing. Not every network
            // reports ends.
            let is_told = self.oob.is_told_of_ends(peer) || waited < LAST_WORDS;
            if !is_told || self.oob.signs(peer, now).refused.is_some() {
                self.oob.give_up(peer);
            }
        }
        // A device whose port is down may never report that a datagram has left.
        !self.oob.unsettled().is_empty() || waited < LAST_WORDS && !self.oob.is_quiet()
    }
}

impl Drop for HostNode {
    fn drop(&mut self) {
        let since = self.now();
        let until = since.saturating_add(self.last_words);
        while self.progress().is_ok() && self.has_last_words(since) && self.now() < until {
            let due = self.oob.due().unwrap_or(until);
            let nanos = due.min(until).saturating_sub(self.now());
            let armed = self.devices.iter_mut().all(|device| device.arm().is_ok());
            if !armed || self.sleep(nanos.min(1_000_000)).is_err() {
                break;
            }
        }
        self.oob.close(&mut self.devices);
    }
}
