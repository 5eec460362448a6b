//! Events of a device: an armed completion queue has a completion, a port has gone down.
//!
//! An armed queue reports the first completion after it was armed, and no other. A rank that sleeps
//! must therefore poll once more between arming and sleeping; any later completion finds the queue
//! armed and is reported.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::ptr;

use super::device::VerbsDevice;
use super::library::refused;
use super::sys::*;
use device::{Device, Result};

/// The most notes that are kept.
const NOTES: usize = 64;

/// Makes reads of a device's descriptor nonblocking.
pub(crate) fn nonblocking(device: &str, fd: RawFd) -> Result<()> {
    // SAFETY: numbers.
    let answer = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    match answer < 0 {
        true => Err(refused(device, "its events")),
        false => Ok(()),
    }
}

impl VerbsDevice {
    pub(super) fn make_events_nonblocking(&self) -> Result<()> {
        let name = &self.attributes().name;
        let fds = self.event_fds();
        fds.into_iter().try_for_each(|fd| nonblocking(name, fd))
    }

    /// The descriptors that are readable when there are events: of completion queues, and of the
    /// device.
    pub(super) fn event_fds(&self) -> [RawFd; 2] {
        // SAFETY: an open device and its channel.
        unsafe { [(*self.channel).fd, (*self.context.raw).async_fd] }
    }

    /// Arms all completion queues. True: some were not armed, so the owner must poll once more
    /// before it sleeps.
    pub(super) fn arm(&mut self) -> Result<bool> {
        let mut new = false;
        for at in 0..self.cqs.len() {
            let cq = &mut self.cqs[at];
            if cq.armed {
                continue;
            }
            // SAFETY: a queue of this device.
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

    /// Takes the events of completion queues.
    pub(super) fn take_cq_events(&mut self) {
        let library = self.context.library;
        loop {
            let (mut cq, mut number) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel of this device, which does not block, and places for the answers.
            let answer = unsafe { (library.get_cq_event)(self.channel, &mut cq, &mut number) };
            if answer != 0 {
                return;
            }
            // SAFETY: the event that has just been taken.
            unsafe { (library.ack_cq_events)(cq, 1) };
            if let Some(own) = self.cqs.get_mut(number.addr()) {
                own.armed = false;
            }
        }
    }

    /// Takes the events of the device, as sentences.
    pub(super) fn take_device_events(&mut self, notes: &mut VecDeque<String>) {
        let library = self.context.library;
        loop {
            // SAFETY: a pointer that may be null, and a number.
            let mut event: ibv_async_event = unsafe { zeroed() };
            // SAFETY: an open device, which does not block, and a place for the answer.
            if unsafe { (library.get_async_event)(self.context.raw, &mut event) } != 0 {
                return;
            }
            if let Some(note) = self.words_of(&event) {
                if notes.len() == NOTES {
                    notes.pop_front();
                }
                notes.push_back(note);
            }
            if event.event_type == IBV_EVENT_CQ_ERR {
                // SAFETY: the kind of event says which part of the union holds.
                let cq = unsafe { event.element.cq };
                let own = self.cqs.iter_mut().find(|own| own.raw == cq);
                own.into_iter().for_each(|own| own.overrun = true);
            }
            // SAFETY: the event that has just been taken.
            unsafe { (library.ack_async_event)(&mut event) };
        }
    }

    /// A sentence for an event. None: the event needs no report.
    fn words_of(&self, event: &ibv_async_event) -> Option<String> {
        let name = &self.context.name;
        // SAFETY: the kind of event says which part of the union holds.
        let port = unsafe { event.element.port_num };
        // SAFETY: a static string of the library.
        let words =
            unsafe { CStr::from_ptr((self.context.library.event_type_str)(event.event_type)) };
        let words = words.to_string_lossy();
        match event.event_type {
            IBV_EVENT_PORT_ERR => Some(format!(
                "{name} port {port} has gone down: cable, switch port?"
            )),
            IBV_EVENT_PORT_ACTIVE => Some(format!("{name} port {port} has come up")),
            IBV_EVENT_GID_CHANGE | IBV_EVENT_LID_CHANGE => Some(format!(
                "{name} port {port} has another address now ({words}): peers that know the old one cannot reach it"
            )),
            IBV_EVENT_CQ_ERR => Some(format!("{name}: a completion queue has overrun ({words})")),
            IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR => {
                // SAFETY: these events concern a queue pair of this device.
                let number = unsafe { (*event.element.qp).qp_num };
                Some(format!("{name}: queue pair {number} on the wire: {words}"))
            }
            IBV_EVENT_DEVICE_FATAL => Some(format!("{name} has failed ({words})")),
            _ => None,
        }
    }
}
