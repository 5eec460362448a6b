//! A rank's place on a real host.
//!
//! Sleeping: an armed completion queue tells only of what comes after it was armed. So a [`Node::wait`] that has armed one
//! returns at once, for the rank to look again; the next, if nothing was found meanwhile, sleeps. A write that uses up no
//! receive raises no event: where rings are polled in memory, a sleep is short.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Instant;

use super::device::VerbsDevice;
use super::event_wait::Alarm;
use super::oob::{Directory, Office};
use device::{Device, Error, Node, Placement, Result};

/// The longest sleep where a write can come unnoticed, and elsewhere, in nanoseconds.
const SHORT_SLEEP: u64 = 500_000;
const LONG_SLEEP: u64 = 1_000_000_000;
/// How long a node that goes away waits until its last words have been heard.
const LAST_WORDS: u64 = 1_000_000_000;

pub struct VerbsNode {
    devices: Vec<VerbsDevice>,
    office: Office,
    start: Instant,
    longest_sleep: u64,
    /// Event descriptors of the devices, then those of the owner.
    fds: Vec<libc::pollfd>,
    notes: VecDeque<String>,
    /// For whoever waits in the rank's stead.
    alarm: Option<Alarm>,
}

impl VerbsNode {
    /// The place of rank `rank` among `ranks`, with a rail for each device. Words go over the first rail.
    pub fn new(
        devices: Vec<VerbsDevice>,
        rank: usize,
        ranks: usize,
        directory: Box<dyn Directory>,
    ) -> Result<VerbsNode> {
        let mut devices = devices;
        let Some(first) = devices.first_mut() else {
            return Err(Error::Invalid("a rank needs at least one device".into()));
        };
        let ip = first.ip();
        let office = Office::open(first, ip, rank, ranks, directory)?;
        let ordered = |device: &VerbsDevice| device.attributes().placement == Placement::Ordered;
        let longest_sleep = match devices.iter().any(ordered) {
            true => SHORT_SLEEP,
            false => LONG_SLEEP,
        };
        let events = devices.iter().flat_map(VerbsDevice::event_fds);
        // What is tended is read empty then.
        let tended = devices.iter().filter_map(VerbsDevice::exchange_fd);
        let fds = events.chain(tended).chain(office.fd()).map(wait_for);
        Ok(VerbsNode {
            fds: fds.collect(),
            devices,
            office,
            start: Instant::now(),
            longest_sleep,
            notes: VecDeque::new(),
            alarm: None,
        })
    }

    /// Wakes this rank also when this descriptor becomes readable. Whoever adds it reads it empty.
    pub fn wake_on(&mut self, fd: RawFd) -> Result<()> {
        self.fds.push(wait_for(fd));
        match &self.alarm {
            Some(alarm) => alarm.watch(fd),
            None => Ok(()),
        }
    }

    fn tend(&mut self) -> Result<()> {
        let now = self.start.elapsed().as_nanos() as u64;
        self.office.tend(&mut self.devices[0], now)
    }

    /// Has a queue pair been tied, or cannot be, since this was asked last?
    fn has_tied(&self) -> bool {
        let exchanges = self
            .devices
            .iter()
            .filter_map(|device| device.exchange.as_ref());
        // All are asked, for asking empties their files.
        exchanges.filter(|exchange| exchange.has_news()).count() > 0
    }

    /// Some descriptors are ready.
    fn hear(&mut self) -> Result<()> {
        let (events, owners) = self.fds.split_at_mut(2 * self.devices.len());
        for (device, fds) in self.devices.iter_mut().zip(events.chunks(2)) {
            if fds[0].revents != 0 {
                device.hear_completions();
            }
            if fds[1].revents != 0 {
                device.hear_device(&mut self.notes);
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
            // The owner learns by its own look why; here it is not waited for any more.
            if let Some(alarm) = &self.alarm {
                alarm.forget(fd.fd);
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
        // SAFETY: so many entries, a time, and no mask.
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

/// Nothing more comes from a descriptor, so it would be ready for ever.
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
        if self.has_tied() || self.office.has_arrived() {
            return Ok(());
        }
        let mut new = false;
        for device in &mut self.devices {
            new |= device.arm()?;
        }
        if new {
            return Ok(());
        }
        let due = self.office.due().unwrap_or(u64::MAX);
        let due = due.saturating_sub(self.now());
        self.sleep(nanos.min(due).min(self.longest_sleep))?;
        self.tend()
    }

    fn arm(&mut self) -> Result<()> {
        // What has been said until now is heard, or it would be said again.
        self.sleep(0)?;
        for device in &mut self.devices {
            device.arm()?;
        }
        self.has_tied();
        self.tend()?;
        match &mut self.alarm {
            Some(alarm) => {
                let due = self.office.due();
                alarm.ring_at(
                    due.map(|due| due.saturating_sub(self.start.elapsed().as_nanos() as u64)),
                )
            }
            None => Ok(()),
        }
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        if self.alarm.is_none() {
            let alarm = Alarm::new()?;
            let fds = self.fds.iter().filter(|fd| fd.fd >= 0);
            fds.into_iter().try_for_each(|fd| alarm.watch(fd.fd))?;
            self.alarm = Some(alarm);
            // When words are due is known to the alarm from here on.
            self.arm()?;
        }
        self.alarm.as_ref().map(Alarm::handle).transpose()
    }

    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        self.office.oob_send(peer, words)?;
        self.tend()
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        if !self.office.has_arrived() {
            self.tend()?;
        }
        Ok(self.office.oob_recv())
    }

    fn notes(&mut self) -> Vec<String> {
        for device in &mut self.devices {
            device.hear_device(&mut self.notes);
        }
        self.notes.drain(..).collect()
    }
}

impl Drop for VerbsNode {
    fn drop(&mut self) {
        let until = self.now().saturating_add(LAST_WORDS);
        // A peer that is gone answers no more; then the words matter to nobody.
        while self.tend().is_ok() && !self.office.is_settled() && self.now() < until {
            let due = self.office.due().unwrap_or(until);
            let nanos = due.min(until).saturating_sub(self.now());
            let armed = self.devices.iter_mut().all(|device| device.arm().is_ok());
            if !armed || self.sleep(nanos.min(1_000_000)).is_err() {
                break;
            }
        }
        self.office.close(&mut self.devices[0]);
    }
}
