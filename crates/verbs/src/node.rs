//! A rank's place on a real host.
//!
//! Sleep: an armed completion queue reports only completions that come after it was armed. A
//! [`Node::wait`] that has armed a queue therefore returns at once, so that the rank polls again;
//! the next call sleeps, if the rank found nothing. A write that consumes no receive raises no
//! event: where rings are polled in memory, sleeps are short.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use super::device::VerbsDevice;
use super::event_wait::EventWait;
use super::oob::{Directory, OutOfBand};
use device::{Attributes, Device, Error, Node, Placement, PortEvent, Result};

/// The longest sleep where a write may come without an event, in nanoseconds.
const POLLED_SLEEP: u64 = 500_000;
/// The longest sleep elsewhere, in nanoseconds.
const LONG_SLEEP: u64 = 1_000_000_000;
/// The longest wait of a closing node for the acknowledgement of its last messages, in nanoseconds.
const LAST_WORDS: u64 = 1_000_000_000;

/// A rank's place on a real host.
pub struct VerbsNode {
    devices: Vec<VerbsDevice>,
    oob: OutOfBand,
    start: Instant,
    longest_sleep: u64,
    /// Descriptors of the devices' events, then those that the owner added.
    fds: Vec<libc::pollfd>,
    notes: VecDeque<String>,
    /// For a thread that waits on behalf of the rank.
    event_wait: Option<EventWait>,
}

impl VerbsNode {
    /// The place of rank `rank` among `ranks`, with a rail for each device. Out-of-band messages
    /// use every rail.
    pub fn new(
        devices: Vec<VerbsDevice>,
        rank: usize,
        ranks: usize,
        directory: Box<dyn Directory>,
    ) -> Result<VerbsNode> {
        let mut devices = devices;
        if devices.is_empty() {
            return Err(Error::Invalid("a rank needs at least one device".into()));
        }
        number(&mut devices);
        let oob = OutOfBand::open(&mut devices, rank, ranks, directory)?;
        let ordered = |device: &VerbsDevice| device.attributes().placement == Placement::Ordered;
        let longest_sleep = match devices.iter().any(ordered) {
            true => POLLED_SLEEP,
            false => LONG_SLEEP,
        };
        let events = event_fds(&devices);
        // `tend` reads these empty.
        let tended = devices.iter().filter_map(VerbsDevice::exchange_fd);
        let fds = events.into_iter().chain(tended).chain(oob.fds());
        let fds = fds.map(wait_for);
        Ok(VerbsNode {
            fds: fds.collect(),
            devices,
            oob,
            start: Instant::now(),
            longest_sleep,
            notes: VecDeque::new(),
            event_wait: None,
        })
    }

    /// Adds a descriptor that wakes this rank when it is readable. The caller reads it empty.
    pub fn wake_on(&mut self, fd: RawFd) -> Result<()> {
        self.fds.push(wait_for(fd));
        match &self.event_wait {
            Some(event_wait) => event_wait.watch(fd),
            None => Ok(()),
        }
    }

    fn tend(&mut self) -> Result<()> {
        let now = self.start.elapsed().as_nanos() as u64;
        self.oob.tend(&mut self.devices, now)
    }

    /// True if a connection has been made, or has failed, since the last call.
    fn has_connected(&self) -> bool {
        let exchanges = self
            .devices
            .iter()
            .filter_map(|device| device.exchange.as_ref());
        // Every exchange is asked, because asking empties its descriptor.
        exchanges.filter(|exchange| exchange.has_news()).count() > 0
    }

    /// Handles the descriptors that are ready.
    fn hear(&mut self) -> Result<()> {
        let (events, owners) = self.fds.split_at_mut(2 * self.devices.len());
        if events.chunks(2).any(|fds| fds[1].revents != 0) {
            // Ports of one device share a descriptor.
            for device in &mut self.devices {
                device.take_device_events(&mut self.notes);
            }
        }
        for (device, fds) in self.devices.iter_mut().zip(events.chunks(2)) {
            if fds[0].revents != 0 {
                device.take_cq_events();
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
            // The owner finds the reason when it polls; here it is removed from the wait.
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
            _ => self.hear(),
        }
    }
}

/// Numbers the cards and protection domains of a node's devices. Ports of unknown cards count as
/// cards of their own.
fn number(devices: &mut [VerbsDevice]) {
    for at in 0..devices.len() {
        let (before, rest) = devices.split_at_mut(at);
        let device = &mut rest[0];
        let next = |of: fn(&Attributes) -> usize| {
            let numbers = before.iter().map(|other| of(other.attributes()));
            numbers.max().map_or(0, |last| last + 1)
        };
        let same = before
            .iter()
            .find(|other| Arc::ptr_eq(&other.context, &device.context));
        let domain = same.map(|other| other.attributes.domain);
        let domain = domain.unwrap_or_else(|| next(|attributes| attributes.domain));
        let shares = |other: &&VerbsDevice| device.card.is_some() && other.card == device.card;
        let card = same.or_else(|| before.iter().find(shares));
        let card = card.map(|other| other.attributes.card);
        device.attributes.card = card.unwrap_or_else(|| next(|attributes| attributes.card));
        device.attributes.domain = domain;
    }
}

/// Two descriptors for each device: of its completion queues, and of the device's other events. A
/// device that shares the latter with one before it has none of its own.
fn event_fds(devices: &[VerbsDevice]) -> Vec<RawFd> {
    let mut fds: Vec<RawFd> = Vec::new();
    for device in devices {
        for fd in device.event_fds() {
            fds.push(if fds.contains(&fd) { -1 } else { fd });
        }
    }
    fds
}

/// True if a descriptor was closed at its other end, and so would stay ready for ever.
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

impl Node for VerbsNode {
    fn rails(&self) -> usize {
        self.devices.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        &mut self.devices[rail]
    }

    fn now(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn sync_memory(&mut self) {}

    fn wait(&mut self, nanos: u64) -> Result<()> {
        self.tend()?;
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
        let due = self.oob.due().unwrap_or(u64::MAX);
        let due = due.saturating_sub(self.now());
        self.sleep(nanos.min(due).min(self.longest_sleep))?;
        self.tend()
    }

    fn arm(&mut self) -> Result<()> {
        // Earlier events are taken, otherwise they would be reported again.
        self.sleep(0)?;
        for device in &mut self.devices {
            device.arm()?;
        }
        self.has_connected();
        self.tend()?;
        match &mut self.event_wait {
            Some(event_wait) => {
                let due = self.oob.due();
                event_wait.wake_at(
                    due.map(|due| due.saturating_sub(self.start.elapsed().as_nanos() as u64)),
                )
            }
            None => Ok(()),
        }
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        if self.event_wait.is_none() {
            let event_wait = EventWait::new()?;
            let fds = self.fds.iter().filter(|fd| fd.fd >= 0);
            fds.into_iter().try_for_each(|fd| event_wait.watch(fd.fd))?;
            self.event_wait = Some(event_wait);
            // This sets the timer for retransmissions.
            self.arm()?;
        }
        self.event_wait.as_ref().map(EventWait::handle).transpose()
    }

    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        self.oob.oob_send(peer, words)?;
        self.tend()
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        if !self.oob.has_arrived() {
            self.tend()?;
        }
        Ok(self.oob.oob_recv())
    }

    fn notes(&mut self) -> Vec<String> {
        for device in &mut self.devices {
            device.take_device_events(&mut self.notes);
        }
        self.notes.drain(..).collect()
    }

    fn port_events(&mut self) -> Vec<PortEvent> {
        let mut events = Vec::new();
        for (rail, device) in self.devices.iter_mut().enumerate() {
            device.hear_events();
            let changes = device.changes.drain(..);
            events.extend(changes.map(|change| PortEvent { rail, change }));
        }
        events
    }
}

impl Drop for VerbsNode {
    fn drop(&mut self) {
        let until = self.now().saturating_add(LAST_WORDS);
        // A peer that has ended does not answer, and then the messages do not matter.
        while self.tend().is_ok() && !self.oob.is_settled() && self.now() < until {
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
