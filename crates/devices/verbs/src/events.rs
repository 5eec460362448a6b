//! Events of a device, such as a completion in an armed completion queue or a port that goes down.
//!
//! An armed queue reports only the first completion after it was armed. A rank that sleeps must
//! therefore poll once more between arming and sleeping; any later completion finds the queue armed
//! and is reported.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr;

use super::device::VerbsDevice;
use super::open_device::{DeviceEvent, EventOf, nonblocking};
use super::sys::*;
use device::{Device, MOST_NOTES, PortChange, Result};

impl VerbsDevice {
    pub(super) fn make_events_nonblocking(&self) -> Result<()> {
        nonblocking(&self.attributes().name, self.channel_fds()[0])
    }

    /// The descriptors that are readable when there are events: of the completion queues, and of
    /// the device; the ports of a device share the latter.
    pub(super) fn channel_fds(&self) -> [RawFd; 2] {
        // SAFETY: an open channel.
        unsafe { [(*self.channel).fd, self.context.events_fd()] }
    }

    /// Arms all completion queues. True: some were not armed, so the owner must poll once more
    /// before it sleeps.
    pub(super) fn arm_queues(&mut self) -> Result<bool> {
        let mut new = false;
        for at in 0..self.cqs.len() {
            let cq = &mut self.cqs[at];
            if cq.armed {
                continue;
            }
            // SAFETY: a completion queue of this device.
            let answer = unsafe {
                let notify = (*(*cq.raw).context).ops.req_notify_cq;
                notify.map_or(libc::EOPNOTSUPP, |notify| notify(cq.raw, 0))
            };
            super::library::check(&self.context.name, "arming a completion queue", answer)?;
            self.cqs[at].armed = true;
            new = true;
        }
        Ok(new)
    }

    /// Reads and acknowledges the events of completion queues, and marks the queues as not armed.
    pub(super) fn take_cq_events(&mut self) {
        let library = self.context.library;
        loop {
            let (mut cq, mut number) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel of this device, which does not block, and memory for the results.
            let answer = unsafe { (library.get_cq_event)(self.channel, &mut cq, &mut number) };
            if answer != 0 {
                return;
            }
            // SAFETY: the event that has just been read.
            unsafe { (library.ack_cq_events)(cq, 1) };
            if let Some(own) = self.cqs.get_mut(number.addr()) {
                own.armed = false;
            }
        }
    }

    /// Appends the reports about the device's events to `notes`, and removes them from the device.
    pub(super) fn take_device_events(&mut self, notes: &mut VecDeque<String>) {
        self.handle_events();
        for event in std::mem::take(&mut self.heard) {
            if let Some(note) = self.words_of(event) {
                if notes.len() == MOST_NOTES {
                    notes.pop_front();
                }
                notes.push_back(note);
            }
        }
    }

    /// Handles the pending events of the device, and keeps them for a report.
    pub(super) fn handle_events(&mut self) {
        for event in self.context.take_events(self.path.port) {
            if self.heed(event) && self.heard.len() < MOST_NOTES {
                self.heard.push(event);
            }
        }
    }

    /// Handles an event. False: it concerns another port, or an object of another port.
    fn heed(&mut self, event: DeviceEvent) -> bool {
        match event.of {
            EventOf::Port(port) if port != self.path.port => return false,
            EventOf::Cq(cq) => {
                let own = self.cqs.iter_mut().find(|own| own.raw.addr() == cq);
                let Some(own) = own else { return false };
                own.overrun = true;
            }
            EventOf::Qp(number) => {
                let handle = self.numbers.get(&number).copied();
                let own = handle.and_then(|handle| self.qps.get_mut(handle as usize)?.as_mut());
                let Some(own) = own else { return false };
                own.last_wqe |= event.kind == IBV_EVENT_QP_LAST_WQE_REACHED;
            }
            EventOf::Port(_) | EventOf::Device => {}
        }
        if let Some(change) = change(event.kind) {
            if matches!(change, PortChange::Up | PortChange::Address) {
                self.follow_addresses();
            }
            // With a single rail, nothing may ever read them, so their number is limited.
            if self.changes.len() == MOST_NOTES {
                self.changes.remove(0);
            }
            self.changes.push(change);
        }
        true
    }

    /// The report about an event, for the user. `None`: the event needs no report.
    fn words_of(&self, event: DeviceEvent) -> Option<String> {
        let (name, port) = (&self.context.name, self.path.port);
        // SAFETY: a static string of the library.
        let words = unsafe { CStr::from_ptr((self.context.library.event_type_str)(event.kind)) };
        let words = words.to_string_lossy();
        match (event.kind, event.of) {
            (IBV_EVENT_PORT_ERR, _) => Some(format!(
                "{name} port {port} has gone down: cable, switch port?"
            )),
            (IBV_EVENT_PORT_ACTIVE, _) => Some(format!("{name} port {port} has come up")),
            (IBV_EVENT_GID_CHANGE | IBV_EVENT_LID_CHANGE, _) => Some(format!(
                "{name} port {port} has another address now ({words}): peers that know the old one cannot reach it"
            )),
            (IBV_EVENT_CQ_ERR, _) => {
                Some(format!("{name}: a completion queue has overrun ({words})"))
            }
            (IBV_EVENT_QP_LAST_WQE_REACHED, _) => None,
            (_, EventOf::Qp(number)) => {
                Some(format!("{name}: queue pair {number} on the wire: {words}"))
            }
            (IBV_EVENT_DEVICE_FATAL, _) => Some(format!("{name} has failed ({words})")),
            _ => None,
        }
    }
}

/// The change of the port that an event reports, if it reports one.
fn change(kind: ibv_event_type) -> Option<PortChange> {
    match kind {
        IBV_EVENT_PORT_ERR => Some(PortChange::Down),
        IBV_EVENT_PORT_ACTIVE => Some(PortChange::Up),
        IBV_EVENT_LID_CHANGE
        | IBV_EVENT_GID_CHANGE
        | IBV_EVENT_PKEY_CHANGE
        | IBV_EVENT_SM_CHANGE
        | IBV_EVENT_CLIENT_REREGISTER => Some(PortChange::Address),
        IBV_EVENT_DEVICE_FATAL => Some(PortChange::Fatal),
        _ => None,
    }
}
