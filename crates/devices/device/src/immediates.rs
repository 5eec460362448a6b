//! Emulation of immediates for devices without them, such as those of iWARP: a wrapping node whose
//! devices keep all promises of the trait. Devices with immediates are not changed.
//!
//! Every message gets a *heading* of eight bytes in front, which contains its kind and its
//! immediate. Every receive gets memory for a heading. A write with immediate becomes a write
//! followed, on the same queue pair, by a message that consists of a heading only: a message
//! completes at the receiver only after all earlier writes are visible (RFC 5040, 5.5; IBA 9.5
//! requires the same order). Both ends must use headings, and both do: a rail connects devices
//! without immediates only with their like.
//!
//! Invariants:
//! - the caller sees one request where the device has two: one number, one completion, one entry in
//!   the send queue;
//! - a heading stays unchanged until its request, or its receive, has completed.

mod headings;
mod pair;

use std::cell::RefCell;
use std::collections::HashMap;

use crate::wr_table::{QueueKind, Sends, Sent, WrNumber};
use crate::{
    Access, Address, Attributes, Completed, Completion, Cq, Device, Ending, Error, Node, Operation,
    Qp, QpWanted, ReceiveQueue, Region, Result, Slice, Srq, State, Status, Work,
};
use headings::{HEADING, Headings, IMMEDIATE, Incoming, KIND, LONGEST, PLAIN, WRITTEN, pieces};
use pair::Pair;

/// Emulates immediates for the devices of a node that have none. A node whose devices all have
/// immediates is returned unchanged.
pub fn with_immediates(node: Box<dyn Node>) -> Box<dyn Node> {
    let mut node = node;
    let rails: Vec<Attributes> = (0..node.rails())
        .map(|rail| node.rail(rail).attributes().clone())
        .collect();
    if rails.iter().all(|rail| rail.immediates) {
        return node;
    }
    Box::new(Immediates {
        node: RefCell::new(node),
        rail: 0,
        rails: rails.into_iter().map(Rail::of).collect(),
    })
}

struct Immediates {
    /// The wrapped node. It is dropped before the headings, because that ends the devices' use of
    /// them.
    node: RefCell<Box<dyn Node>>,
    /// The rail of the current device, one without immediates.
    rail: usize,
    /// The state of each rail's device; `None`: the device has immediates.
    rails: Vec<Option<Box<Rail>>>,
}

/// The state of a device whose immediates are emulated.
struct Rail {
    attributes: Attributes,
    /// The queue pairs of the device in order of creation; `None`: destroyed.
    pairs: Vec<Option<Pair>>,
    places: HashMap<Qp, usize>,
    shared: Vec<Incoming>,
    shared_places: HashMap<Srq, usize>,
}

impl Rail {
    /// The state of the device with these attributes; `None` if it has immediates.
    fn of(attributes: Attributes) -> Option<Box<Rail>> {
        let rail = || Rail {
            attributes: Attributes {
                mtu: attributes.mtu.saturating_sub(HEADING),
                inline: attributes.inline.saturating_sub(HEADING),
                longest: attributes
                    .longest
                    .saturating_sub(HEADING as u64)
                    .min(LONGEST),
                immediates: true,
                ..attributes.clone()
            },
            pairs: Vec::new(),
            places: HashMap::new(),
            shared: Vec::new(),
            shared_places: HashMap::new(),
        };
        (!attributes.immediates).then(|| Box::new(rail()))
    }

    fn place(&self, qp: Qp) -> Result<usize> {
        match self.places.get(&qp) {
            Some(place) => Ok(*place),
            None => Err(Error::Invalid(format!(
                "{}: queue pair {} is not of this device",
                self.attributes.name, qp.0
            ))),
        }
    }

    fn pair(&mut self, qp: Qp) -> Result<(usize, &mut Pair)> {
        let place = self.place(qp)?;
        match &mut self.pairs[place] {
            Some(pair) => Ok((place, pair)),
            None => unreachable!("one that is gone has no place"),
        }
    }

    /// The queue pair of a request, if it has not been reset or destroyed since.
    fn alive(&mut self, number: WrNumber) -> Option<&mut Pair> {
        let pair = self.pairs.get_mut(number.queue as usize)?.as_mut()?;
        (pair.life == number.life).then_some(pair)
    }

    /// Translates a completion of the device for the caller. `None`: the request has been reported
    /// already.
    fn translate(&mut self, one: &Completion) -> Option<Completion> {
        let number = WrNumber::decode(one.id);
        if number.kind == QueueKind::Send {
            let sent = self.alive(number)?.sends.retire(number.slot)?;
            return Some(Completion {
                id: sent.id,
                of: sent.of,
                ..*one
            });
        }
        let incoming = match number.kind {
            QueueKind::Shared => self.shared.get_mut(number.queue as usize)?,
            _ => self.alive(number)?.incoming.as_mut()?,
        };
        let id = incoming.receives.give_back(number.slot)?;
        if one.status != Status::Success {
            return Some(Completion { id, ..*one });
        }
        let heading = incoming.headings.read(number.slot);
        let immediate = Some(heading as u32);
        let behind = one.bytes.checked_sub(HEADING as u32);
        let (of, immediate, bytes) = match heading & KIND {
            PLAIN => (Completed::Receive, None, behind),
            IMMEDIATE => (Completed::Receive, immediate, behind),
            WRITTEN => (
                Completed::ReceiveWrite,
                immediate,
                Some((heading & !KIND) >> 32).map(|len| len as u32),
            ),
            _ => (Completed::Receive, None, None),
        };
        Some(Completion {
            id,
            of,
            immediate,
            status: match bytes {
                Some(_) => Status::Success,
                None => Status::BadResponse,
            },
            bytes: bytes.unwrap_or(0),
            ..*one
        })
    }
}

impl Immediates {
    fn node(&mut self) -> &mut dyn Node {
        &mut **self.node.get_mut()
    }

    /// The current device, and the state of its emulation.
    fn both(&mut self) -> (&mut dyn Device, &mut Rail) {
        let device = self.node.get_mut().rail(self.rail);
        match &mut self.rails[self.rail] {
            Some(rail) => (device, rail),
            None => unreachable!("the current device has no immediates"),
        }
    }

    fn device(&mut self) -> &mut dyn Device {
        self.both().0
    }
}

impl Device for Immediates {
    fn attributes(&self) -> &Attributes {
        match &self.rails[self.rail] {
            Some(rail) => &rail.attributes,
            None => unreachable!("the current device has no immediates"),
        }
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        // SAFETY: the caller's promise.
        unsafe { self.device().register(address, len, access) }
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        self.device().deregister(region)
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        self.device().create_cq(depth)
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        let (device, rail) = self.both();
        let srq = device.create_srq(depth)?;
        rail.shared_places.insert(srq, rail.shared.len());
        rail.shared.push(Incoming::new(device, depth)?);
        Ok(srq)
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        let (device, rail) = self.both();
        let most = rail.attributes.inline;
        if wanted.inline > most {
            let (name, inline) = (&rail.attributes.name, wanted.inline);
            return Err(Error::Invalid(format!(
                "{name}: {inline} bytes inline; it takes at most {most}"
            )));
        }
        let inline = match wanted.inline {
            0 => 0,
            inline => inline + HEADING,
        };
        let qp = device.create_qp(&QpWanted {
            sends: 2 * wanted.sends,
            inline,
            ..wanted.clone()
        })?;
        let incoming = match wanted.srq {
            None => Some(Incoming::new(device, wanted.receives)?),
            Some(_) => None,
        };
        let pair = Pair {
            life: 0,
            sends: Sends::new(wanted.sends),
            out: Headings::new(device, wanted.sends, Access::default())?,
            incoming,
        };
        rail.places.insert(qp, rail.pairs.len());
        rail.pairs.push(Some(pair));
        Ok(qp)
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        let (device, rail) = self.both();
        let place = rail.place(qp)?;
        device.destroy_qp(qp)?;
        rail.places.remove(&qp);
        if let Some(pair) = rail.pairs[place].take() {
            device.deregister(pair.out.region)?;
            if let Some(incoming) = pair.incoming {
                device.deregister(incoming.headings.region)?;
            }
        }
        Ok(())
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        self.node.borrow_mut().rail(self.rail).address(qp)
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        self.device().connect(qp, peer)
    }

    fn state(&self, qp: Qp) -> Result<State> {
        self.node.borrow_mut().rail(self.rail).state(qp)
    }

    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        self.device().is_drained(qp)
    }

    fn set_probing(&mut self, qp: Qp, probing: bool) -> Result<()> {
        self.device().set_probing(qp, probing)
    }

    fn cork(&mut self) {
        self.device().cork()
    }

    fn uncork(&mut self) {
        self.device().uncork()
    }

    fn is_corked(&self, qp: Qp) -> bool {
        self.node.borrow_mut().rail(self.rail).is_corked(qp)
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        let (device, rail) = self.both();
        device.modify(qp, to)?;
        if to == Ending::Reset {
            let (_, pair) = rail.pair(qp)?;
            pair.life = pair.life.wrapping_add(1);
            pair.sends.clear();
            if let Some(incoming) = &mut pair.incoming {
                incoming.receives.clear();
            }
        }
        Ok(())
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        let (device, rail) = self.both();
        let (place, pair) = rail.pair(qp)?;
        if pair.sends.is_full() {
            return Err(Error::Full);
        }
        let slot = pair.sends.next();
        let number = WrNumber {
            kind: QueueKind::Send,
            life: pair.life,
            queue: place as u32,
            slot,
        };
        let id = work.id;
        let work = Work {
            id: number.encode(),
            ..*work
        };
        let of = match work.operation {
            Operation::Write {
                to,
                immediate: Some(immediate),
            } => {
                // SAFETY: by the caller's promise for `work`.
                unsafe { pair.write_with_immediate(device, qp, &work, to, immediate)? };
                Completed::Write
            }
            Operation::Send { immediate } => {
                // SAFETY: by the caller's promise for `work`.
                unsafe { pair.send(device, qp, &work, immediate)? };
                Completed::Send
            }
            operation => {
                // SAFETY: by the caller's promise for `work`.
                unsafe { device.post(qp, &work)? };
                match operation {
                    Operation::Write { .. } => Completed::Write,
                    Operation::Read { .. } => Completed::Read,
                    _ => Completed::Atomic,
                }
            }
        };
        pair.sends.post(Sent { id, of, bytes: 0 });
        Ok(())
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        let (device, rail) = self.both();
        let unknown = || Error::Invalid("a shared receive queue that is not of this device".into());
        let (kind, place, life, incoming) = match queue {
            ReceiveQueue::Own(qp) => {
                let (place, pair) = rail.pair(qp)?;
                let incoming = pair.incoming.as_mut().ok_or_else(|| {
                    let number = qp.0;
                    Error::Invalid(format!(
                        "queue pair {number}: it takes its receives from a shared queue"
                    ))
                })?;
                (QueueKind::Receive, place, pair.life, incoming)
            }
            ReceiveQueue::Shared(srq) => {
                let place = *rail.shared_places.get(&srq).ok_or_else(unknown)?;
                (QueueKind::Shared, place, 0, &mut rail.shared[place])
            }
        };
        let slot = incoming.receives.take(id).ok_or(Error::Full)?;
        let number = WrNumber {
            kind,
            life,
            queue: place as u32,
            slot,
        };
        let (pieces, count) = pieces(incoming.headings.slice(slot), into)?;
        // SAFETY: by the caller's promise; the heading's memory stays until this receive has
        // completed.
        let posted = unsafe { device.post_receive(queue, number.encode(), &pieces[..count]) };
        if posted.is_err() {
            incoming.receives.give_back(slot);
        }
        posted
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let (device, rail) = self.both();
        let mut count = 0;
        while count < into.len() {
            let begin = count;
            let got = device.poll(cq, &mut into[begin..])?;
            for at in begin..begin + got {
                if let Some(one) = rail.translate(&into[at]) {
                    into[count] = one;
                    count += 1;
                }
            }
            if begin + got < into.len() {
                break;
            }
        }
        Ok(count)
    }
}

impl Node for Immediates {
    fn rails(&self) -> usize {
        self.rails.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        if self.rails[rail].is_none() {
            return self.node.get_mut().rail(rail);
        }
        self.rail = rail;
        self
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        self.node().wait(nanos)
    }

    fn wait_idle(&mut self, nanos: u64) -> Result<()> {
        self.node().wait_idle(nanos)
    }

    crate::delegate_to_node!(without rail);
}
