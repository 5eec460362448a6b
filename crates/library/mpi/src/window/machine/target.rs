//! The side of a window that is accessed: it receives active messages, applies those of each origin
//! in order, and answers.
//!
//! Invariants:
//! - an origin has at most [`CREDIT`] messages here, each no longer than [`LONGEST`];
//! - no message of an origin overtakes the origin's own request for a lock;
//! - an operation other than a long put waits until the earlier long puts of its origin have
//!   arrived. MPI requires this only of a flush, but programs read back what they have put after a
//!   local flush;
//! - an operation waits for the description of its type, and fails if this rank has no memory for
//!   it;
//! - the answer to a flush leaves once every operation before it is applied;
//! - returned data are sent once their operation is applied, so they confirm it.

use datatype::local_work::LocalWork;
use datatype::{Buffer, Op, Type, reduce};

use super::locks::LockKind;
use super::messages::*;
use super::operation::{compares, operand};
use super::peers::{Incoming, LastType, Origin};
use super::{Ports, Window, nonsense};
use crate::p2p::Taken;
use crate::request::RequestId;
use crate::{ANY_SOURCE, Class, Error, Result};

impl Window {
    /// Receives all messages that have arrived and does all work that is possible now. Returns true
    /// if anything moved.
    ///
    /// # Errors
    /// A peer broke the protocol, or progress failed.
    pub(super) fn serve(&mut self, ports: &mut Ports) -> Result<bool> {
        let mut moved = false;
        loop {
            let mut again = self.take_answers(ports)?;
            again |= self.take_operations(ports)?;
            let origins: Vec<u32> = self.origins.keys().copied().collect();
            for origin in origins {
                again |= self.apply_all(ports, origin)?;
            }
            again |= self.end_locals(ports);
            if !again {
                // The ends of transfers are recorded, so that an idle window is at rest.
                let origins = self.origins.values_mut();
                origins.for_each(|origin| origin.end_transfers(ports));
                return Ok(moved);
            }
            moved = true;
        }
    }

    /// True if no data are in transit from or to this rank's memory.
    pub(super) fn is_idle(&mut self, ports: &mut Ports) -> bool {
        self.origins.values_mut().all(|origin| {
            origin.end_transfers(ports);
            origin.arriving.is_empty() && origin.returning.is_empty() && !origin.is_described()
        })
    }

    fn take_answers(&mut self, ports: &mut Ports) -> Result<bool> {
        let key = self.stream_key_of(ANY_SOURCE, ANSWERS);
        let mut moved = false;
        while let Some(taken) = ports.messages.take_whole(&key) {
            let Taken::Here(peer, source, bytes) = taken else {
                return Err(nonsense(0, "a long answer"));
            };
            let from = self.sender(peer, source)?;
            let answer = Answer::decode(&bytes);
            let answer = answer.ok_or_else(|| nonsense(from, "an answer that cannot be read"))?;
            self.on_answer(ports, from, answer)?;
            moved = true;
        }
        Ok(moved)
    }

    fn take_operations(&mut self, ports: &mut Ports) -> Result<bool> {
        let key = self.stream_key_of(ANY_SOURCE, OPERATIONS);
        let mut moved = false;
        while let Some(taken) = ports.messages.take_whole(&key) {
            let (peer, source) = taken.sender();
            let from = self.sender(peer, source)?;
            let incoming = match taken {
                Taken::Here(_, _, bytes) => Incoming::Whole(bytes),
                Taken::Announced(found) => {
                    let len = found.message.body.bytes();
                    if len > LONGEST {
                        return Err(nonsense(from, "an operation that is too long"));
                    }
                    let room = ports.room(len)?;
                    let id = ports.messages.receive_message(room.clone(), found)?;
                    Incoming::Coming(id, room)
                }
            };
            let origin = self.origins.entry(from).or_default();
            origin.queue.push_back(incoming);
            if origin.queue.len() as u64 > CREDIT {
                return Err(nonsense(from, "more operations than it has credit for"));
            }
            moved = true;
        }
        if moved {
            ports.messages.flush(ports.router)?;
        }
        Ok(moved)
    }

    /// Applies the messages of an origin up to the first that must wait. Returns true if any was
    /// applied.
    fn apply_all(&mut self, ports: &mut Ports, from: u32) -> Result<bool> {
        let mut moved = false;
        loop {
            let Some(origin) = self.origins.get_mut(&from) else {
                return Ok(moved);
            };
            let Some(front) = origin.queue.front() else {
                return Ok(moved);
            };
            if let Incoming::Coming(id, room) = front {
                let (id, room) = (*id, room.clone());
                let Some(status) = ports.messages.requests.take(id)? else {
                    return Ok(moved);
                };
                let mut bytes = vec![0; room.len()];
                room.pack(0, &mut bytes);
                if status.error != Class::SUCCESS || status.bytes != bytes.len() as u64 {
                    // The origin is lost, so none of its messages can be trusted to be complete.
                    origin.queue.clear();
                    return Ok(true);
                }
                origin.queue[0] = Incoming::Whole(bytes.into());
            }
            let Some(Incoming::Whole(bytes)) = origin.queue.pop_front() else {
                return Ok(moved);
            };
            if !self.apply(ports, from, &bytes)? {
                if let Some(origin) = self.origins.get_mut(&from) {
                    origin.queue.push_front(Incoming::Whole(bytes));
                }
                return Ok(moved);
            }
            moved = true;
            self.acknowledge(ports, from);
        }
    }

    /// Acknowledges the messages of an origin so early that its credit does not run out.
    fn acknowledge(&mut self, ports: &mut Ports, from: u32) {
        let origin = self.origins.entry(from).or_default();
        if origin.processed - origin.acknowledged >= CREDIT / 2 {
            origin.acknowledged = origin.processed;
            let answer = Answer::Processed(origin.processed);
            self.answer(ports, from, &answer);
        }
    }

    /// Applies an origin's message to the window. Returns false if it must wait.
    pub(super) fn apply(&mut self, ports: &mut Ports, from: u32, bytes: &[u8]) -> Result<bool> {
        let unreadable = || nonsense(from, "an operation that cannot be read");
        let (head, description, data) = Head::decode(bytes).ok_or_else(unreadable)?;
        let origin = self.origins.entry(from).or_default();
        match head.kind {
            Kind::Lock => {
                let kind = match head.flags & EXCLUSIVE != 0 {
                    true => LockKind::Exclusive,
                    false => LockKind::Shared,
                };
                if !self.locks.knows(from) {
                    self.locks.request(from, kind);
                }
                if !self.locks.holds(from) {
                    return Ok(false);
                }
                self.count(from);
                if head.flags & WAITS != 0 {
                    self.answer(ports, from, &Answer::Granted);
                }
            }
            Kind::Unlock | Kind::Flush | Kind::Complete => {
                origin.end_transfers(ports);
                // Returned data are read from this rank's memory, which may change after the epoch.
                let is_open = !origin.arriving.is_empty() || !origin.returning.is_empty();
                if is_open || origin.is_described() {
                    return Ok(false);
                }
                let processed = self.count(from);
                if head.kind == Kind::Complete {
                    *self.completes.entry(from).or_default() += 1;
                    return Ok(true);
                }
                if head.kind == Kind::Unlock && !self.locks.release(from) {
                    return Err(nonsense(from, "the end of a lock that it does not hold"));
                }
                if let Some(origin) = self.origins.get_mut(&from) {
                    origin.acknowledged = processed;
                }
                self.answer(ports, from, &Answer::Synced(processed));
            }
            Kind::Describe => {
                if origin.is_described() {
                    origin.end_transfers(ports);
                    if origin.is_described() {
                        return Ok(false);
                    }
                }
                self.count(from);
                self.take_description(ports, from, head.len)?;
            }
            _ => return self.operate(ports, from, (&head, description, data)),
        }
        Ok(true)
    }

    /// Applies an origin's operation to the window. Returns false if it must wait.
    fn operate(
        &mut self,
        ports: &mut Ports,
        from: u32,
        (head, description, data): (&Head, &[u8], &[u8]),
    ) -> Result<bool> {
        let unreadable = || nonsense(from, "an operation that cannot be read");
        let origin = self.origins.entry(from).or_default();
        let waits = |origin: &Origin| {
            head.kind != Kind::LongPut && !origin.arriving.is_empty() || origin.is_described()
        };
        if waits(origin) {
            origin.end_transfers(ports);
            if waits(origin) {
                return Ok(false);
            }
        }
        if head.flags & SAME_TYPE == 0 {
            let ty = Type::described(description).ok_or_else(unreadable)?;
            origin.last_type = LastType::Known(ty);
        }
        match &origin.last_type {
            LastType::Known(ty) => {
                let ty = ty.clone();
                self.count(from);
                self.access(ports, from, (head, &ty, data))?;
            }
            LastType::Refused(error) => {
                let error = error.clone();
                self.count(from);
                self.refuse(ports, from, head, error)?;
            }
            LastType::Lost => {
                self.count(from);
            }
            _ => return Err(unreadable()),
        }
        Ok(true)
    }

    /// Receives a description that is a separate message, if there is memory for it.
    #[cold]
    fn take_description(&mut self, ports: &mut Ports, from: u32, len: u64) -> Result<()> {
        let memory = usize::try_from(len).ok().and_then(datatype::granted);
        let key = self.data_key(from, FOLLOWING);
        let last_type = match memory {
            Some(memory) => LastType::Coming(ports.receive(memory.clone(), key)?, memory),
            None => {
                // The bytes are sent nevertheless.
                self.arrive(ports, from, Buffer::empty())?;
                LastType::Refused(too_large(len))
            }
        };
        self.origins.entry(from).or_default().last_type = last_type;
        Ok(())
    }

    /// Counts a message of an origin as processed, and returns the number of all.
    fn count(&mut self, from: u32) -> u64 {
        let origin = self.origins.entry(from).or_default();
        origin.processed += 1;
        origin.processed
    }

    /// Applies an operation, or reports to its origin why that is impossible.
    fn access(
        &mut self,
        ports: &mut Ports,
        from: u32,
        (head, ty, data): (&Head, &Type, &[u8]),
    ) -> Result<()> {
        let found = self
            .memory
            .find(head.at, head.count as usize, ty)
            .and_then(|whole| part(&whole, head));
        let done = found.and_then(|place| self.perform(ports, from, (head, ty, data), &place));
        let Err(error) = done else {
            return Ok(());
        };
        self.refuse(ports, from, head, error)
    }

    /// Reports to an origin that its operation is impossible, and why.
    fn refuse(&mut self, ports: &mut Ports, from: u32, head: &Head, error: Error) -> Result<()> {
        if error.class == Class::INTERN || error.is_loss() {
            return Err(error);
        }
        self.answer(ports, from, &Answer::Failed(error));
        match head.kind {
            // The data are sent nevertheless.
            Kind::LongPut => self.arrive(ports, from, Buffer::empty()),
            Kind::Get | Kind::GetAccumulate | Kind::CompareAndSwap => {
                self.give_back(ports, from, &Buffer::empty())
            }
            _ => Ok(()),
        }
    }

    fn perform(
        &mut self,
        ports: &mut Ports,
        from: u32,
        (head, ty, data): (&Head, &Type, &[u8]),
        place: &Buffer,
    ) -> Result<()> {
        match head.kind {
            Kind::Put => {
                place.unpack(0, data);
                Ok(())
            }
            Kind::LongPut => self.arrive(ports, from, place.clone()),
            Kind::Get => self.give_back(ports, from, place),
            Kind::Accumulate | Kind::GetAccumulate => {
                let op = Op::from_handle(head.op.into());
                let op = op.ok_or_else(|| nonsense(from, "an unknown operation"))?;
                let basic = operand(op, ty)?;
                let old = match head.kind {
                    Kind::GetAccumulate => Some(copy_of(ports, place)?),
                    _ => None,
                };
                reduce::reduce_into(op, basic, data, place, 0)?;
                if let Some(meter) = &self.meter {
                    meter.add(LocalWork::Combine(op, basic), data.len(), data.len());
                }
                old.map_or(Ok(()), |old| self.give_back(ports, from, &old))
            }
            Kind::CompareAndSwap => {
                compares(ty)?;
                let (compare, new) = data.split_at(data.len() / 2);
                if place.len() != new.len() {
                    return Err(nonsense(from, "a value of the wrong length"));
                }
                let old = copy_of(ports, place)?;
                let equal = old.with_dense(0, old.len(), |old| old == compare);
                if equal == Some(true) {
                    place.unpack(0, new);
                }
                self.give_back(ports, from, &old)
            }
            _ => Err(nonsense(from, "an operation that is none")),
        }
    }

    /// Posts the receive for the data of a long put.
    fn arrive(&mut self, ports: &mut Ports, from: u32, into: Buffer) -> Result<()> {
        let id = ports.receive(into, self.data_key(from, FOLLOWING))?;
        self.origins.entry(from).or_default().arriving.push(id);
        Ok(())
    }

    /// Sends the data of an operation back to the origin.
    fn give_back(&mut self, ports: &mut Ports, from: u32, data: &Buffer) -> Result<()> {
        let key = self.data_key(self.core.rank as u32, RETURNED);
        match ports.send(data, self.world(from)?, key) {
            Ok(id) => {
                let origin = self.origins.entry(from).or_default();
                origin.returning.extend(id);
                Ok(())
            }
            // A lost origin does not wait.
            Err(error) if error.is_loss() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends an answer. A lost origin does not wait for it.
    pub(super) fn answer(&mut self, ports: &mut Ports, to: u32, answer: &Answer) {
        let key = self.stream_key(self.core.rank as u32, ANSWERS);
        let sent = self.world(to).and_then(|peer| {
            let bytes = answer.encode();
            let id = ports.messages.send_owned(ports.router, peer, key, &bytes)?;
            ports.messages.requests.detach(id)
        });
        if let Err(error) = sent {
            self.failure.get_or_insert(error);
        }
    }
}

impl Origin {
    /// Removes the transfers of data that are complete, and makes the type if its description has
    /// arrived.
    fn end_transfers(&mut self, ports: &mut Ports) {
        let requests = &mut ports.messages.requests;
        let mut is_open = |id: &RequestId| matches!(requests.take(*id), Ok(None));
        self.arriving.retain(&mut is_open);
        self.returning.retain(&mut is_open);
        if self.is_described() {
            self.end_description(ports);
        }
    }

    /// Makes the datatype whose description has arrived completely.
    #[cold]
    fn end_description(&mut self, ports: &mut Ports) {
        let LastType::Coming(id, memory) = &self.last_type else {
            return;
        };
        let (len, needed) = (memory.len() as u64, memory.len().saturating_mul(MADE));
        self.last_type = match ports.messages.requests.take(*id) {
            Ok(None) => return,
            Ok(Some(status)) if status.error == Class::SUCCESS && status.bytes == len => {
                if datatype::is_granted(needed) {
                    let made = memory.with_dense(0, memory.len(), Type::described);
                    made.flatten().map_or(LastType::Unreadable, LastType::Known)
                } else {
                    LastType::Refused(too_large(len))
                }
            }
            _ => LastType::Lost,
        };
    }
}

/// The error of an operation whose type needs more memory than is available.
#[cold]
fn too_large(len: u64) -> Error {
    let detail = format!(
        "the system refuses memory for the target's datatype, whose description has {len} bytes; \
         see the limits of this rank's process (ulimit -v), or use fewer blocks"
    );
    Error::new(Class::NO_MEM, detail)
}

/// The part of the target's elements to which a message belongs.
fn part(whole: &Buffer, head: &Head) -> Result<Buffer> {
    let (position, len) = (head.position as usize, head.len as usize);
    match position.checked_add(len) {
        Some(end) if end <= whole.len() => Ok(whole.slice(position, len)),
        _ => Err(Error::new(
            Class::RMA_RANGE,
            "more data than the elements at the target have room for",
        )),
    }
}

/// A copy of the data at `place` in memory of the library.
fn copy_of(ports: &mut Ports, place: &Buffer) -> Result<Buffer> {
    let copy = ports.room(place.len())?;
    place.copy_to(&copy);
    Ok(copy)
}
