//! The device trait for one port of a real device.

use std::collections::HashMap;
use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{self, PortPath};
use super::keys::Keys;
use super::library::check;
use super::open_device::{DeviceEvent, NoRegion, OpenDevice};
use super::owned::{OwnCq, OwnQp, OwnSrq};
use super::rdmacm::Exchange;
use super::sys::*;
use device::check;
use device::wr_table::{QUEUES, Receives, Sends};
use device::{
    Access, Address, Attributes, Completion, Cq, Device, Ending, Error, PortChange, Qp, QpWanted,
    ReceiveQueue, Region, Result, Slice, Srq, State, Transport, Work,
};

/// The greatest number of memory slices of a work request.
pub(super) const SEND_SLICES: usize = 8;
/// The greatest number of slices of a receive. More would enlarge every entry of a queue: with
/// three slices and a datagram's header, a receive takes 64 bytes on devices that have rings of
/// descriptors.
pub(super) const RECEIVE_SLICES: usize = 3;
/// The length of the header before a datagram in the memory of its receive, in bytes.
pub(super) const GRH: u32 = 40;
/// The longest wait for the report Last WQE Reached of hardware: a device that has not reported it
/// by then never does.
const HARDWARE_DRAINS: Duration = Duration::from_millis(500);
/// The longest wait for that report of software. Soft-RoCE in Linux 6.1 never reports it, and
/// consumes no further receive for a queue pair in ERROR.
const SOFTWARE_DRAINS: Duration = Duration::from_millis(20);

/// One port of an RDMA device of this host. A work request has at most 8 slices of memory, a
/// receive 3.
pub struct VerbsDevice {
    pub(super) context: Arc<OpenDevice>,
    pub(super) path: PortPath,
    pub(super) keys: Keys,
    pub(super) attributes: Attributes,
    pub(super) limits: ibv_device_attr,
    /// The card that holds the device, if it is known.
    pub(super) card: Option<String>,
    /// The network interface of the port, for RoCE and iWARP.
    pub(super) interface: Option<String>,
    /// The channel of events of armed completion queues.
    pub(super) channel: *mut ibv_comp_channel,
    pub(super) cqs: Vec<OwnCq>,
    pub(super) srqs: Vec<OwnSrq>,
    pub(super) qps: Vec<Option<Box<OwnQp>>>,
    /// The handles of queue pairs, by their numbers on the wire. Destroyed ones remain, because
    /// completions of shared receives may arrive late.
    pub(super) numbers: HashMap<u32, u32>,
    /// Events of the device that have been handled and not yet reported.
    pub(super) heard: Vec<DeviceEvent>,
    /// Changes of the port that its node has not read yet.
    pub(super) changes: Vec<PortChange>,
    /// Address handles for datagrams, by the address of the destination port.
    pub(super) handles: HashMap<u128, *mut ibv_ah>,
    /// The connection manager of an iWARP device.
    pub(super) exchange: Option<Exchange>,
    /// Memory that receives the headers before datagrams, and is never read.
    pub(super) headers: Option<(Box<[u8; GRH as usize]>, Region)>,
}

// SAFETY: the pointers belong to this device only, and libibverbs may be called from any thread.
unsafe impl Send for VerbsDevice {}

impl VerbsDevice {
    pub(super) fn qp_attributes(
        &self,
        transport: Transport,
        (sends, receives): (u32, u32),
        inline: u32,
    ) -> ibv_qp_init_attr {
        // SAFETY: integers, and pointers that may be null.
        let mut wanted: ibv_qp_init_attr = unsafe { zeroed() };
        wanted.qp_type = match transport {
            Transport::Rc => IBV_QPT_RC,
            Transport::Uc => IBV_QPT_UC,
            Transport::Ud => IBV_QPT_UD,
        };
        wanted.cap.max_send_wr = sends.max(1);
        wanted.cap.max_recv_wr = receives.max(1);
        wanted.cap.max_send_sge = self.slices(SEND_SLICES);
        wanted.cap.max_recv_sge = self.slices(RECEIVE_SLICES + 1);
        wanted.cap.max_inline_data = inline;
        wanted
    }

    /// The number of slices `wanted`, or the device's limit if it is less.
    fn slices(&self, wanted: usize) -> u32 {
        (wanted as u32).min(self.limits.max_sge.max(1) as u32)
    }

    pub(super) fn invalid<T>(&self, what: String) -> Result<T> {
        let name = &self.attributes.name;
        Err(Error::Invalid(format!("{name}: {what}")))
    }

    pub(super) fn qp(&self, qp: Qp) -> Result<&OwnQp> {
        match self.qps.get(qp.0 as usize) {
            Some(Some(own)) => Ok(own),
            _ => self.invalid(format!("queue pair {} is not of this device", qp.0)),
        }
    }

    pub(super) fn qp_mut(&mut self, qp: Qp) -> Result<&mut OwnQp> {
        self.qp(qp)?;
        match &mut self.qps[qp.0 as usize] {
            Some(own) => Ok(own),
            None => unreachable!("just found"),
        }
    }

    pub(super) fn cq(&self, cq: Cq) -> Result<*mut ibv_cq> {
        match self.cqs.get(cq.0 as usize) {
            Some(own) => Ok(own.raw),
            None => self.invalid(format!("completion queue {} is not of this device", cq.0)),
        }
    }

    /// Checks that the depth of a queue does not exceed the device's limit.
    fn depth(&self, what: &str, depth: usize, most: c_int) -> Result<()> {
        match depth <= most.max(0) as usize {
            true => Ok(()),
            false => self.invalid(format!("{depth} {what}; it holds at most {most}")),
        }
    }

    /// Updates the state of a queue pair whose connection may have been made, so that it can be
    /// used.
    #[cold]
    pub(super) fn note_connected(&mut self, qp: Qp) -> Result<()> {
        let own = self.qp_mut(qp)?;
        if let (State::Connecting, Some(line)) = (own.state, &own.line) {
            own.state = line.state()?;
        }
        Ok(())
    }

    /// The address handle for datagrams to a port.
    pub(super) fn handle(&mut self, port: u128) -> Result<*mut ibv_ah> {
        if let Some(handle) = self.handles.get(&port) {
            return Ok(*handle);
        }
        let mut path = self.path.to(port);
        // SAFETY: an address vector for this port.
        let handle = unsafe { (self.context.library.create_ah)(self.context.pd(), &mut path) };
        let handle = self.context.made(
            handle,
            "creating an address handle (is the peer's port reachable?)",
        )?;
        self.handles.insert(port, handle);
        Ok(handle)
    }

    /// The memory slice that receives the header before a datagram.
    pub(super) fn header(&mut self) -> Result<ibv_sge> {
        if self.headers.is_none() {
            let mut place = Box::new([0; GRH as usize]);
            let access = Access {
                local_write: true,
                ..Access::default()
            };
            // SAFETY: the memory lives as long as the device, and is never read.
            let region = unsafe { self.register(place.as_mut_ptr(), GRH as usize, access)? };
            self.headers = Some((place, region));
        }
        let (address, lkey) = match &self.headers {
            Some((_, region)) => (region.address, region.lkey),
            None => unreachable!("made above"),
        };
        Ok(ibv_sge {
            addr: address,
            length: GRH,
            lkey,
        })
    }
}

impl Device for VerbsDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        check::register(address as u64, len, access).or_else(|why| self.invalid(why))?;
        // On iWARP the result of a read arrives as a peer's write (RFC 5040, 5.3).
        let remote_write = access.remote_write || self.context.is_iwarp() && access.local_write;
        let rights = [
            (access.local_write, IBV_ACCESS_LOCAL_WRITE),
            (remote_write, IBV_ACCESS_REMOTE_WRITE),
            (access.remote_read, IBV_ACCESS_REMOTE_READ),
            (access.remote_atomic, IBV_ACCESS_REMOTE_ATOMIC),
        ];
        let rights = rights.into_iter().filter(|(given, _)| *given);
        let rights = rights.fold(0, |all, (_, right)| all | right);
        let name = &self.attributes.name;
        // SAFETY: the caller keeps the memory valid.
        let (lkey, rkey) = unsafe { self.context.register(name, address, len, rights)? };
        Ok(Region {
            address: address as u64,
            len: len as u64,
            lkey,
            rkey,
        })
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        let done = self.context.deregister(&self.attributes.name, region.lkey);
        done.unwrap_or_else(|NoRegion| {
            self.invalid(format!("key {:#x} is of no region of it", region.lkey))
        })
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        self.depth("completions", depth, self.limits.max_cqe)?;
        let number = self.cqs.len();
        // SAFETY: an open device and its channel; the context is a number that is never
        // dereferenced.
        let raw = unsafe {
            (self.context.library.create_cq)(
                self.context.raw,
                depth.max(1) as c_int,
                ptr::without_provenance_mut(number),
                self.channel,
                0,
            )
        };
        let raw = self.context.made(raw, "creating a completion queue")?;
        self.cqs.push(OwnCq {
            raw,
            armed: false,
            overrun: false,
        });
        Ok(Cq(number as u32))
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        self.depth("receives", depth, self.limits.max_srq_wr)?;
        // SAFETY: integers, and a pointer that may be null.
        let mut wanted: ibv_srq_init_attr = unsafe { zeroed() };
        wanted.attr.max_wr = depth.max(1) as u32;
        wanted.attr.max_sge = (RECEIVE_SLICES as u32).min(self.limits.max_srq_sge.max(1) as u32);
        // SAFETY: a protection domain of this device.
        let raw = unsafe { (self.context.library.create_srq)(self.context.pd(), &mut wanted) };
        let raw = self.context.made(raw, "creating a shared receive queue")?;
        let receives = Receives::new(depth);
        self.srqs.push(OwnSrq { raw, receives });
        Ok(Srq(self.srqs.len() as u32 - 1))
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        let most = self.attributes.inline;
        if wanted.inline > most {
            let inline = wanted.inline;
            return self.invalid(format!("{inline} bytes inline; it takes at most {most}"));
        }
        self.depth("sends", wanted.sends, self.limits.max_qp_wr)?;
        self.depth("receives", wanted.receives, self.limits.max_qp_wr)?;
        if self.qps.len() == QUEUES {
            return self.invalid(format!("it has had {QUEUES} queue pairs"));
        }
        check::shares(wanted.transport, wanted.srq.is_some()).or_else(|why| self.invalid(why))?;
        if !self.attributes.datagrams && wanted.transport != Transport::Rc {
            return self.invalid("it has reliable connections only".into());
        }
        let depths = (wanted.sends as u32, wanted.receives as u32);
        let mut raw = self.qp_attributes(wanted.transport, depths, wanted.inline as u32);
        raw.send_cq = self.cq(wanted.send_cq)?;
        raw.recv_cq = self.cq(wanted.receive_cq)?;
        if let Some(srq) = wanted.srq {
            raw.srq = match self.srqs.get(srq.0 as usize) {
                Some(own) => own.raw,
                None => {
                    return self.invalid(format!(
                        "shared receive queue {} is not of this device",
                        srq.0
                    ));
                }
            };
        }
        // SAFETY: the attributes name queues of this device.
        let made = unsafe { (self.context.library.create_qp)(self.context.pd(), &mut raw) };
        let made = self.context.made(made, "creating a queue pair")?;
        let own = OwnQp {
            raw: made,
            transport: wanted.transport,
            state: State::Reset,
            life: 0,
            inline: wanted.inline as u32,
            line: None,
            sends: Sends::new(wanted.sends),
            receives: wanted.srq.is_none().then(|| Receives::new(wanted.receives)),
            last_wqe: false,
            asked: None,
        };
        let handle = self.qps.len() as u32;
        // SAFETY: the queue pair was just created.
        self.numbers.insert(unsafe { (*made).qp_num }, handle);
        self.qps.push(Some(Box::new(own)));
        // SAFETY: as above.
        let number = unsafe { (*made).qp_num };
        let begun = match &self.exchange {
            None => {
                let transport = wanted.transport;
                connection::begin(&self.context, &self.path, &self.keys, made, transport)
                    .map(|()| None)
            }
            Some(exchange) => exchange
                .listen(number, self.path.address, &self.path)
                .map(Some),
        };
        match begun {
            Ok(line) => {
                self.qp_mut(Qp(handle))?.line = line;
                Ok(Qp(handle))
            }
            Err(error) => {
                self.destroy_qp(Qp(handle))?;
                Err(error)
            }
        }
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        let raw = self.qp(qp)?.raw;
        // SAFETY: a queue pair of this device, not destroyed before.
        let answer = unsafe { (self.context.library.destroy_qp)(raw) };
        check(&self.attributes.name, "destroying a queue pair", answer)?;
        self.qps[qp.0 as usize] = None;
        Ok(())
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        let own = self.qp(qp)?;
        if let Some(line) = &own.line {
            return Ok(line.address());
        }
        let raw = own.raw;
        Ok(Address {
            port: self.path.address,
            // SAFETY: a queue pair of this device that is not destroyed.
            qp: unsafe { (*raw).qp_num },
        })
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        let own = self.qp(qp)?;
        let (raw, transport, state) = (own.raw, own.transport, own.state);
        check::connect(transport, state, peer)
            .or_else(|why| self.invalid(format!("queue pair {}: {why}", qp.0)))?;
        if let (Some(line), Some(peer)) = (&own.line, peer) {
            line.connect(peer)?;
            self.qp_mut(qp)?.state = State::Connecting;
            return Ok(());
        }
        let answer =
            connection::finish(&self.context, &self.path, &self.keys, raw, transport, peer);
        if answer.is_err() {
            // The queue pair may be between two states.
            self.modify(qp, Ending::Reset)?;
        } else {
            self.qp_mut(qp)?.state = State::Rts;
        }
        answer
    }

    fn state(&self, qp: Qp) -> Result<State> {
        let own = self.qp(qp)?;
        let state = match (own.state, &own.line) {
            (State::Connecting, Some(line)) => line.state()?,
            (state, _) => state,
        };
        if state != State::Rts {
            return Ok(state);
        }
        // SAFETY: integers, and pointers that may be null.
        let (mut now, mut first): (ibv_qp_attr, ibv_qp_init_attr) = unsafe { (zeroed(), zeroed()) };
        let mask = IBV_QP_STATE as c_int;
        // SAFETY: a queue pair of this device, and memory for the results.
        let answer =
            unsafe { (self.context.library.query_qp)(own.raw, &mut now, mask, &mut first) };
        check(
            &self.attributes.name,
            "querying a queue pair's state",
            answer,
        )?;
        Ok(match now.qp_state {
            IBV_QPS_SQE | IBV_QPS_ERR => State::Error,
            _ => State::Rts,
        })
    }

    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        if self.qp(qp)?.receives.is_some() {
            return Ok(true);
        }
        if self.state(qp)? != State::Error {
            return Ok(false);
        }
        self.handle_events();
        let limit = match self.attributes.by_processor {
            true => SOFTWARE_DRAINS,
            false => HARDWARE_DRAINS,
        };
        let own = self.qp_mut(qp)?;
        let asked = *own.asked.get_or_insert_with(Instant::now);
        Ok(own.last_wqe || asked.elapsed() >= limit)
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        let own = self.qp(qp)?;
        let (raw, transport) = (own.raw, own.transport);
        match to {
            Ending::Error => {
                let what = "taking a queue pair to ERROR";
                connection::end(&self.context, raw, IBV_QPS_ERR, what)?;
                self.qp_mut(qp)?.state = State::Error;
            }
            Ending::Reset if self.exchange.is_some() => {
                let why =
                    "a queue pair of iWARP cannot be used again; destroy it and create another";
                return self.invalid(why.into());
            }
            Ending::Reset => {
                // Reports about the present epoch must not count for the next one.
                self.handle_events();
                let what = "taking a queue pair to RESET";
                connection::end(&self.context, raw, IBV_QPS_RESET, what)?;
                let own = self.qp_mut(qp)?;
                own.state = State::Reset;
                own.life = own.life.wrapping_add(1);
                own.sends.clear();
                (own.last_wqe, own.asked) = (false, None);
                if let Some(receives) = &mut own.receives {
                    receives.clear();
                }
                connection::begin(&self.context, &self.path, &self.keys, raw, transport)?;
            }
        }
        Ok(())
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { self.post_work(qp, work) }
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.post_buffer(queue, id, into) }
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        self.take_completions(cq, into)
    }
}

impl Drop for VerbsDevice {
    fn drop(&mut self) {
        let library = self.context.library;
        // SAFETY: each object was created by this device and is destroyed once, queue pairs before
        // what they use. Registered memory outlives them, with the open device.
        unsafe {
            for qp in self.qps.drain(..).flatten() {
                (library.destroy_qp)(qp.raw);
            }
            for (_, handle) in self.handles.drain() {
                (library.destroy_ah)(handle);
            }
            for srq in self.srqs.drain(..) {
                (library.destroy_srq)(srq.raw);
            }
            for cq in self.cqs.drain(..) {
                (library.destroy_cq)(cq.raw);
            }
            if !self.channel.is_null() {
                (library.destroy_comp_channel)(self.channel);
            }
        }
        if let Some((_, region)) = self.headers.take() {
            let _ = self.context.deregister(&self.attributes.name, region.lkey);
        }
        self.context.remove_port(self.path.port);
    }
}
