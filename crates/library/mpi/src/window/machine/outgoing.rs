//! The messages of operations on other members' windows: a queue for each target, in the order of
//! the calls.

use std::sync::Arc;

use datatype::{Buffer, Elements, Op, Predefined, Type};

use super::messages::*;
use super::operation::{Access, Place};
use super::peers::{Carried, Data, Outgoing};
use super::{Ports, Window};
use crate::request::{Mode, RequestId};
use crate::{Class, Error, Result};

impl Window {
    /// Queues the messages of an operation on a window.
    pub(super) fn send_access(
        &mut self,
        ports: &mut Ports,
        access: &Access,
        place: &Place,
        (target, at, bytes): (u32, i64, usize),
    ) -> Result<()> {
        let head = |kind| Head {
            at,
            count: place.count as u64,
            len: bytes as u64,
            ..Head::of(kind)
        };
        let (kind, values, data) = match access {
            Access::Put(origin) if bytes <= PIECE => (Kind::Put, vec![origin.clone()], None),
            Access::Put(origin) => {
                let data = Data::Following(origin.clone());
                (Kind::LongPut, Vec::new(), Some(data))
            }
            Access::Get(origin) => {
                let data = Data::Returned(origin.slice(0, bytes));
                (Kind::Get, Vec::new(), Some(data))
            }
            Access::Accumulate { origin, op } => {
                let pieces = (Some(origin.buffer()), None);
                return self.pieces(ports, place, (target, at, bytes), (pieces, *op));
            }
            Access::GetAccumulate { origin, result, op } => {
                let operands = origin.as_ref().filter(|_| *op != Op::NoOp);
                let pieces = (operands.map(Elements::buffer), Some(result.buffer()));
                return self.pieces(ports, place, (target, at, bytes), (pieces, *op));
            }
            Access::CompareAndSwap {
                compare,
                origin,
                result,
            } => {
                let values = vec![compare.buffer(), origin.buffer()];
                let data = Data::Returned(result.buffer());
                (Kind::CompareAndSwap, values, Some(data))
            }
        };
        let message = self.message(ports, target, head(kind), &place.ty, &values)?;
        self.push(target, message, data);
        Ok(())
    }

    /// Queues the messages of an accumulate, in pieces of whole elements.
    fn pieces(
        &mut self,
        ports: &mut Ports,
        place: &Place,
        (target, at, bytes): (u32, i64, usize),
        ((operands, result), op): ((Option<Buffer>, Option<Buffer>), Op),
    ) -> Result<()> {
        let element = place
            .ty
            .basic()
            .map_or(1, |basic| basic.size().unwrap_or(1));
        let piece = PIECE - PIECE % element;
        for position in (0..bytes).step_by(piece) {
            let len = piece.min(bytes - position);
            let kind = match result {
                Some(_) => Kind::GetAccumulate,
                None => Kind::Accumulate,
            };
            let head = Head {
                at,
                count: place.count as u64,
                position: position as u64,
                len: len as u64,
                op: op.handle() as u16,
                ..Head::of(kind)
            };
            let values = operands.iter().map(|all| all.slice(position, len));
            let values: Vec<Buffer> = values.collect();
            let message = self.message(ports, target, head, &place.ty, &values)?;
            let data = result.as_ref().map(|all| all.slice(position, len));
            self.push(target, message, data.map(Data::Returned));
        }
        Ok(())
    }

    /// Queues a message. `data` is memory of the most recent operation, to which the message
    /// belongs.
    pub(super) fn push(&mut self, target: u32, bytes: Carried, data: Option<Data>) {
        let known = self.targets.entry(target).or_default();
        match &data {
            Some(Data::Following(_)) => (known.is_dirty, known.has_long) = (true, true),
            // Operations are applied in order, so the data that this one returns confirm those
            // before it; long data of earlier puts are separate messages and may arrive later.
            Some(Data::Returned(_)) => known.is_dirty &= known.has_long,
            // The operations behind a description wait for it.
            Some(Data::Description(_)) | None => known.is_dirty = true,
        }
        let number = known.first_local + known.locals.len() as u64;
        let is_programs = data.as_ref().is_some_and(Data::is_programs);
        if is_programs && let Some(local) = known.locals.back_mut() {
            local.queued += 1;
        }
        let data = data.map(|data| (data, number.wrapping_sub(1)));
        known.queue.push_back(Outgoing {
            bytes,
            is_end: false,
            data,
        });
    }

    /// Encodes a message with the position and type at the target, in memory of the library.
    fn message(
        &mut self,
        ports: &mut Ports,
        target: u32,
        mut head: Head,
        ty: &Type,
        data: &[Buffer],
    ) -> Result<Carried> {
        let known = self.targets.entry(target).or_default();
        let mut description = Vec::new();
        let is_same = |last: &Type| is_same(last, ty);
        if known.last_type.as_ref().is_some_and(is_same) {
            head.flags |= SAME_TYPE;
        } else {
            let len = ty.description_len();
            if len > DESCRIPTION {
                self.describe(target, ty, len)?;
                head.flags |= SAME_TYPE;
            } else {
                description.reserve_exact(len);
                ty.describe(&mut description);
                known.last_type = Some(ty.clone());
            }
        }
        head.description = description.len() as u32;
        let before = HEAD + description.len();
        let carried: usize = data.iter().map(Buffer::len).sum();
        if before + carried <= SHORT {
            let mut bytes = vec![0; before + carried];
            bytes[..HEAD].copy_from_slice(&head.encode());
            bytes[HEAD..before].copy_from_slice(&description);
            let mut at = before;
            for data in data {
                at += data.pack(0, &mut bytes[at..]);
            }
            return Ok(Carried::Short(bytes.into()));
        }
        let room = ports.room(before + carried)?;
        room.unpack(0, &head.encode());
        room.unpack(HEAD, &description);
        let mut at = before;
        for data in data {
            room.with_dense_mut(at, data.len(), |room| data.pack(0, room));
            at += data.len();
        }
        Ok(Carried::Long(room))
    }

    /// Queues a description as a separate message, for the operations behind it.
    #[cold]
    fn describe(&mut self, target: u32, ty: &Type, len: usize) -> Result<()> {
        let memory = datatype::granted(len).ok_or_else(|| {
            let detail = format!(
                "the system refuses {len} bytes for the description of the target's datatype; see \
                 the limits of the process (ulimit -v), or use fewer blocks"
            );
            Error::new(Class::NO_MEM, detail)
        })?;
        memory.with_dense_mut(0, len, |bytes| ty.describe_in(bytes));
        let head = Head {
            len: len as u64,
            ..Head::of(Kind::Describe)
        };
        let bytes = Carried::Short(head.encode().into());
        self.push(target, bytes, Some(Data::Description(memory)));
        self.targets.entry(target).or_default().last_type = Some(ty.clone());
        Ok(())
    }
}

/// True if both are the same type, by identity.
fn is_same(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Predefined(one), Type::Predefined(other)) => one == other,
        (Type::Derived(one), Type::Derived(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

impl Ports<'_> {
    /// Memory of the library for `bytes` bytes of an operation.
    pub(super) fn room(&mut self, bytes: usize) -> Result<Buffer> {
        let byte = Predefined::BYTE.into();
        Ok(self.scratch.elements(bytes, &byte)?.buffer())
    }

    /// Posts a receive of a message of the window.
    pub(super) fn receive(&mut self, into: Buffer, key: crate::matching::Key) -> Result<RequestId> {
        let id = self.messages.receive(into, key)?;
        self.messages.flush(self.router)?;
        Ok(id)
    }

    /// Starts a send of a message of the window. `None`: the send is complete.
    pub(super) fn send(
        &mut self,
        from: &Buffer,
        peer: usize,
        key: crate::matching::Key,
    ) -> Result<Option<RequestId>> {
        let id = self
            .messages
            .send(self.router, Mode::Standard, from, peer, key)?;
        Ok((id != self.messages.requests.done()).then_some(id))
    }

    /// Sends memory of the library, which the send keeps until it is complete.
    pub(super) fn send_from_library(
        &mut self,
        from: &Buffer,
        peer: usize,
        key: crate::matching::Key,
    ) -> Result<()> {
        match self.send(from, peer, key)? {
            Some(id) => self.messages.requests.detach(id),
            None => Ok(()),
        }
    }
}
