//! An open device of this host: its protection domain and its events, which its ports share.
//!
//! A region is registered once for all ports of a device. The events of all ports come through one
//! descriptor, so each event is copied to the inbox of every port, and the port selects those that
//! concern it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::library::{check, refused};
use super::memory;
use super::port::{self, Context};
use super::sys::*;
use device::{Error, Result};

/// An open RDMA device with one protection domain.
pub(crate) struct OpenDevice {
    context: Context,
    pd: *mut ibv_pd,
    /// The regions registered on the device, by local key.
    regions: Mutex<HashMap<u32, *mut ibv_mr>>,
    /// For each open port, the events that it has not read.
    inboxes: Mutex<BTreeMap<u8, VecDeque<DeviceEvent>>>,
}

// SAFETY: libibverbs may be called from any thread, and the other fields are behind locks.
unsafe impl Send for OpenDevice {}
// SAFETY: as for `Send`.
unsafe impl Sync for OpenDevice {}

/// An asynchronous event of a device.
#[derive(Clone, Copy)]
pub(crate) struct DeviceEvent {
    pub kind: ibv_event_type,
    pub of: EventOf,
}

/// The object that an event concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventOf {
    Port(u8),
    /// A queue pair, by its number on the wire.
    Qp(u32),
    /// A completion queue, by its address in the library.
    Cq(usize),
    Device,
}

/// The error for a local key that belongs to no region.
pub(crate) struct NoRegion;

impl Deref for OpenDevice {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl OpenDevice {
    /// Opens the device with this name.
    pub(crate) fn open(name: &str) -> Result<Arc<OpenDevice>> {
        let mut there = Vec::new();
        let mut found = None;
        for (other, context) in port::open_all()? {
            if other == name {
                found = Some(context?);
            }
            there.push(other);
        }
        let context = found.ok_or_else(|| port::not_there(name, &there))?;
        let pd = context.alloc_pd()?;
        let device = OpenDevice {
            context,
            pd,
            regions: Mutex::default(),
            inboxes: Mutex::default(),
        };
        nonblocking(name, device.events_fd())?;
        Ok(Arc::new(device))
    }

    pub(crate) fn pd(&self) -> *mut ibv_pd {
        self.pd
    }

    /// The descriptor that is readable when the device has events.
    pub(crate) fn events_fd(&self) -> RawFd {
        // SAFETY: an open device.
        unsafe { (*self.context.raw).async_fd }
    }

    fn regions(&self) -> MutexGuard<'_, HashMap<u32, *mut ibv_mr>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inboxes(&self) -> MutexGuard<'_, BTreeMap<u8, VecDeque<DeviceEvent>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers memory for all ports, and returns its local and its remote key.
    ///
    /// # Safety
    /// The memory stays allocated until the region is deregistered, or the device is closed.
    pub(crate) unsafe fn register(
        &self,
        name: &str,
        address: *mut u8,
        len: usize,
        rights: u32,
    ) -> Result<(u32, u32)> {
        let rights = rights as c_int;
        // SAFETY: the caller keeps the memory allocated.
        let mr = unsafe { (self.library.reg_mr)(self.pd, address.cast(), len, rights) };
        if mr.is_null() {
            return Err(memory::refused(name, len, io::Error::last_os_error()));
        }
        // SAFETY: the region was just registered.
        let keys = unsafe { ((*mr).lkey, (*mr).rkey) };
        self.regions().insert(keys.0, mr);
        Ok(keys)
    }

    /// Deregisters the region with this local key.
    pub(crate) fn deregister(
        &self,
        name: &str,
        lkey: u32,
    ) -> std::result::Result<Result<()>, NoRegion> {
        let mr = self.regions().remove(&lkey).ok_or(NoRegion)?;
        // SAFETY: the region was registered here, and is deregistered once.
        let answer = unsafe { (self.library.dereg_mr)(mr) };
        Ok(check(name, "deregistering memory", answer))
    }

    /// Creates the queue of unread events for a port, which must not be open already.
    pub(crate) fn add_port(&self, port: u8) -> Result<()> {
        match self.inboxes().insert(port, VecDeque::new()) {
            None => Ok(()),
            Some(_) => Err(Error::Invalid(format!(
                "{} port {port} is open already",
                self.name
            ))),
        }
    }

    pub(crate) fn remove_port(&self, port: u8) {
        self.inboxes().remove(&port);
    }

    /// Reads the pending events, and returns those in a port's inbox. An event is acknowledged at
    /// once, because the destruction of its queue pair waits for that.
    pub(crate) fn take_events(&self, port: u8) -> VecDeque<DeviceEvent> {
        let mut inboxes = self.inboxes();
        loop {
            // SAFETY: a pointer that may be null, and an integer.
            let mut event: ibv_async_event = unsafe { zeroed() };
            // SAFETY: an open device, whose descriptor does not block, and memory for the result.
            if unsafe { (self.library.get_async_event)(self.context.raw, &mut event) } != 0 {
                break;
            }
            let one = DeviceEvent {
                kind: event.event_type,
                of: object(&event),
            };
            // SAFETY: the event that has just been read.
            unsafe { (self.library.ack_async_event)(&mut event) };
            inboxes.values_mut().for_each(|inbox| inbox.push_back(one));
        }
        let inbox = inboxes.get_mut(&port);
        inbox.map(std::mem::take).unwrap_or_default()
    }
}

/// Makes reads of a device's event descriptor nonblocking.
pub(crate) fn nonblocking(device: &str, fd: RawFd) -> Result<()> {
    // SAFETY: only integers are passed.
    let answer = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    match answer < 0 {
        true => Err(refused(device, "its events")),
        false => Ok(()),
    }
}

fn object(event: &ibv_async_event) -> EventOf {
    // SAFETY: the kind of event determines the valid part of the union, and the object exists until
    // the event is acknowledged.
    unsafe {
        match event.event_type {
            IBV_EVENT_CQ_ERR => EventOf::Cq(event.element.cq.addr()),
            IBV_EVENT_QP_FATAL
            | IBV_EVENT_QP_REQ_ERR
            | IBV_EVENT_QP_ACCESS_ERR
            | IBV_EVENT_QP_LAST_WQE_REACHED => EventOf::Qp((*event.element.qp).qp_num),
            IBV_EVENT_PORT_ACTIVE
            | IBV_EVENT_PORT_ERR
            | IBV_EVENT_LID_CHANGE
            | IBV_EVENT_PKEY_CHANGE
            | IBV_EVENT_SM_CHANGE
            | IBV_EVENT_CLIENT_REREGISTER
            | IBV_EVENT_GID_CHANGE => EventOf::Port(event.element.port_num as u8),
            _ => EventOf::Device,
        }
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        let regions = std::mem::take(&mut *self.regions());
        // SAFETY: every port that used these objects is closed; each is destroyed once.
        unsafe {
            for mr in regions.into_values() {
                (self.library.dereg_mr)(mr);
            }
            (self.library.dealloc_pd)(self.pd);
        }
    }
}
