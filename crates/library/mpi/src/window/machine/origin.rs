//! The side of a window that accesses others: operations leave as active messages, within the
//! credit that each target grants.
//!
//! Invariants:
//! - operations on a target leave in the order of their calls;
//! - no target has more than [`CREDIT`] messages that it has not acknowledged;
//! - a receive of returned data is posted before the message that asks for them leaves;
//! - an operation is complete at its origin once no [`Local`] of it is left, and at its target once
//!   the target has answered a later flush.

use datatype::Op;

use super::messages::*;
use super::operation::{Access, Place};
use super::peers::{Carried, Data, Local, Outgoing};
use super::straight::Way;
use super::{Ports, Window};
use crate::request::{Operation, RequestId};
use crate::{Class, Error, PROC_NULL, Result, Status};

impl Window {
    /// Starts an operation. Returns its request, if `wants_request`.
    ///
    /// # Errors
    /// An argument is invalid, no epoch allows the operation, or the target is lost.
    pub(crate) fn start(
        &mut self,
        ports: &mut Ports,
        access: &Access,
        place: &Place,
        wants_request: bool,
    ) -> Result<Option<RequestId>> {
        let complete = |ports: &mut Ports| match wants_request {
            true => ports
                .messages
                .requests
                .add_complete(Status::EMPTY)
                .map(Some),
            false => Ok(None),
        };
        if place.rank == PROC_NULL {
            return complete(ports);
        }
        let target = self.member(place.rank)?;
        self.epochs.access(target)?;
        let bytes = access.check(place)?;
        let idle = matches!(access, Access::Accumulate { op: Op::NoOp, .. });
        if bytes == 0 || idle {
            return complete(ports);
        }
        let at = self.offset(target, place)?;
        if let Some(direct) = &mut self.direct {
            direct.apply(access, place, (target, at, bytes))?;
            return complete(ports);
        }
        let straight = match self.start_remote(ports, access, place, (target, at, bytes))? {
            Way::Done => return complete(ports),
            Way::Started(requests) => Some(requests),
            Way::Messages => None,
        };
        if let Some(requests) = straight {
            let user = self.user_request(ports, wants_request)?;
            self.keep_straight(target, requests, user);
            return Ok(user);
        }
        self.counts.messages += 1;
        if matches!(access, Access::Put(_) | Access::Accumulate { .. }) {
            self.targets.entry(target).or_default().has_messages = true;
        }
        let waits = self.wants_grant(target, bytes);
        self.ask_for_lock(ports, target, waits)?;
        let uses_memory = match access {
            Access::Put(_) => bytes > PIECE,
            Access::Accumulate { .. } => false,
            Access::Get(_) | Access::GetAccumulate { .. } | Access::CompareAndSwap { .. } => true,
        };
        if !uses_memory {
            self.send_access(ports, access, place, (target, at, bytes))?;
            self.pump(ports, target);
            return complete(ports);
        }
        let user = self.user_request(ports, wants_request)?;
        let known = self.targets.entry(target).or_default();
        known.locals.push_back(Local::new(Vec::new(), user, false));
        let sent = self.send_access(ports, access, place, (target, at, bytes));
        self.pump(ports, target);
        if let Err(error) = sent {
            // Messages that have left end like those of any other operation, but nobody waits for
            // its request.
            if let Some(local) = self.last_local(target) {
                local.user = None;
            }
            if let Some(user) = user {
                ports.messages.requests.complete(user, Status::EMPTY);
                ports.messages.requests.take(user)?;
            }
            return Err(error);
        }
        self.end_locals_of(ports, target);
        Ok(user)
    }

    fn user_request(&self, ports: &mut Ports, is_wanted: bool) -> Result<Option<RequestId>> {
        let context = Some(self.core.context);
        let operation = || Operation::Collective { context };
        is_wanted
            .then(|| ports.messages.requests.add(operation()))
            .transpose()
    }

    /// Records a straight operation, which needs no process of the target, until it is complete.
    pub(super) fn keep_straight(
        &mut self,
        target: u32,
        requests: Vec<(RequestId, u64)>,
        user: Option<RequestId>,
    ) {
        let known = self.targets.entry(target).or_default();
        known.straight += 1;
        known.locals.push_back(Local::new(requests, user, true));
    }

    fn last_local(&mut self, target: u32) -> Option<&mut Local> {
        self.targets.get_mut(&target)?.locals.back_mut()
    }

    /// Queues a message for a target that only synchronises.
    fn signal(&mut self, ports: &mut Ports, target: u32, head: Head) -> Result<()> {
        let bytes = Carried::Short(head.encode().into());
        self.push(target, bytes, None);
        let known = self.targets.entry(target).or_default();
        if let Some(last) = known.queue.back_mut() {
            last.is_end = matches!(head.kind, Kind::Unlock | Kind::Complete);
        }
        self.pump(ports, target);
        Ok(())
    }

    /// Requests the lock of the current epoch from a target, if that has not been done. `waits`:
    /// this rank waits until the lock is granted.
    pub(super) fn ask_for_lock(
        &mut self,
        ports: &mut Ports,
        target: u32,
        waits: bool,
    ) -> Result<()> {
        let Some(held) = self.epochs.lock_of(target) else {
            return Ok(());
        };
        let known = self.targets.entry(target).or_default();
        if held.nocheck || known.is_locked {
            return Ok(());
        }
        (known.is_locked, known.is_granted) = (true, false);
        let exclusive = match held.kind {
            super::locks::LockKind::Exclusive => EXCLUSIVE,
            super::locks::LockKind::Shared => 0,
        };
        let flags = exclusive | if waits { WAITS } else { 0 };
        let head = Head {
            flags,
            ..Head::of(Kind::Lock)
        };
        self.signal(ports, target, head)
    }

    /// Ends the access epoch of `MPI_Win_start` at a target, by a message.
    pub(super) fn notify_complete(&mut self, ports: &mut Ports, target: u32) -> Result<()> {
        self.targets.entry(target).or_default().has_messages = false;
        self.signal(ports, target, Head::of(Kind::Complete))
    }

    /// Requests confirmation from a target that all operations have ended, if any has left since
    /// the last request.
    pub(super) fn ask_for_end(&mut self, ports: &mut Ports, target: u32) -> Result<()> {
        let Some(known) = self.targets.get_mut(&target) else {
            return Ok(());
        };
        known.has_messages = false;
        if !known.is_dirty {
            return Ok(());
        }
        known.asked += 1;
        self.signal(ports, target, Head::of(Kind::Flush))?;
        self.clean(target);
        Ok(())
    }

    /// Releases the lock of a target, and requests confirmation that all operations have ended.
    pub(super) fn ask_for_unlock(&mut self, ports: &mut Ports, target: u32) -> Result<()> {
        let Some(known) = self.targets.get_mut(&target) else {
            return Ok(());
        };
        if !std::mem::take(&mut known.is_locked) {
            return self.ask_for_end(ports, target);
        }
        known.asked += 1;
        self.signal(ports, target, Head::of(Kind::Unlock))?;
        self.clean(target);
        Ok(())
    }

    fn clean(&mut self, target: u32) {
        if let Some(known) = self.targets.get_mut(&target) {
            (known.is_dirty, known.has_long) = (false, false);
            known.has_messages = false;
        }
    }

    /// True if the target has confirmed all requests for confirmation.
    pub(super) fn is_synced(&self, target: u32) -> bool {
        let known = self.targets.get(&target);
        known.is_none_or(|known| known.asked == known.synced)
    }

    /// True if the target has acknowledged all messages of this rank.
    pub(super) fn is_acknowledged(&self, target: u32) -> bool {
        let known = self.targets.get(&target);
        known.is_none_or(|known| known.queue.is_empty() && known.sent == known.acknowledged)
    }

    /// Marks the target as dirty, so that the next confirmation is requested in any case.
    pub(super) fn must_ask(&mut self, target: u32) {
        if let Some(known) = self.targets.get_mut(&target) {
            known.is_dirty = true;
        }
    }

    /// True if messages for a target wait for a credit.
    pub(crate) fn has_queued(&self, target: i32) -> bool {
        let known = self.targets.get(&(target as u32));
        known.is_some_and(|known| !known.queue.is_empty())
    }

    /// True if the memory of all operations on a target can be used again.
    pub(super) fn is_local(&self, target: u32) -> bool {
        let known = self.targets.get(&target);
        known.is_none_or(|known| known.locals.is_empty())
    }

    /// Sends queued messages to a target as far as there is credit. Returns true if any left.
    pub(super) fn pump(&mut self, ports: &mut Ports, target: u32) -> bool {
        let mut moved = false;
        loop {
            let known = self.targets.entry(target).or_default();
            if known.sent - known.acknowledged >= CREDIT {
                return moved;
            }
            let first = known.queue.front();
            if first.is_some_and(|first| first.is_end && known.straight > 0) {
                return moved;
            }
            let Some(outgoing) = known.queue.pop_front() else {
                return moved;
            };
            known.sent += 1;
            moved = true;
            if let Err(error) = self.leave(ports, target, &outgoing) {
                return self.lose(target, error);
            }
        }
    }

    /// Sends a message, and starts the transfer of the data that belong to it.
    fn leave(&mut self, ports: &mut Ports, target: u32, outgoing: &Outgoing) -> Result<()> {
        let peer = self.world(target)?;
        let mut transfer = None;
        if let Some((Data::Returned(into), _)) = &outgoing.data {
            let id = ports.receive(into.clone(), self.data_key(target, RETURNED))?;
            transfer = Some((id, into.len() as u64));
        }
        let key = self.stream_key(self.core.rank as u32, OPERATIONS);
        let sent = match &outgoing.bytes {
            Carried::Short(bytes) => {
                let room = ports.room(bytes.len())?;
                room.unpack(0, bytes);
                ports.send_from_library(&room, peer, key)
            }
            Carried::Long(room) => ports.send_from_library(room, peer, key),
        };
        if let Some((Data::Following(from), _)) = &outgoing.data
            && sent.is_ok()
        {
            let key = self.data_key(self.core.rank as u32, FOLLOWING);
            transfer = ports.send(from, peer, key)?.map(|id| (id, 0));
        }
        if let Some((Data::Description(from), _)) = &outgoing.data
            && sent.is_ok()
        {
            let key = self.data_key(self.core.rank as u32, FOLLOWING);
            ports.send_from_library(from, peer, key)?;
        }
        if let Some((data, number)) = &outgoing.data
            && data.is_programs()
            && let Some(known) = self.targets.get_mut(&target)
            && let Some(at) = number.checked_sub(known.first_local)
            && let Some(local) = known.locals.get_mut(at as usize)
        {
            local.queued -= 1;
            local.open.extend(transfer);
        }
        sent
    }

    /// Drops the queue for a target that is lost, and fails its operations.
    #[cold]
    fn lose(&mut self, target: u32, error: Error) -> bool {
        if let Some(known) = self.targets.get_mut(&target) {
            known.queue.clear();
            for local in &mut known.locals {
                (local.queued, local.class) = (0, error.class);
            }
        }
        self.failure.get_or_insert(error);
        true
    }

    /// Processes the answer of a target to an operation.
    pub(super) fn on_answer(&mut self, ports: &mut Ports, from: u32, answer: Answer) -> Result<()> {
        let known = self.targets.entry(from).or_default();
        match answer {
            Answer::Post => *self.posts.entry(from).or_default() += 1,
            Answer::Granted => known.is_granted = true,
            Answer::Failed(error) => {
                // The target may have lacked memory for the type. The next operation describes the
                // type again, when there may be more memory.
                known.last_type = None;
                let detail = format!("at rank {from} of the window: {}", error.detail);
                self.failure.get_or_insert(Error::new(error.class, detail));
            }
            Answer::Processed(count) | Answer::Synced(count) => {
                if count > known.sent || count < known.acknowledged {
                    return Err(super::nonsense(
                        from,
                        "a count of operations that cannot be",
                    ));
                }
                known.acknowledged = count;
                if matches!(answer, Answer::Synced(_)) {
                    if known.synced == known.asked {
                        return Err(super::nonsense(from, "an answer to no question"));
                    }
                    known.synced += 1;
                    known.is_granted |= known.is_locked;
                }
                self.pump(ports, from);
            }
        }
        Ok(())
    }

    /// Ends operations whose sends and receives are complete. Returns true if any ended.
    pub(super) fn end_locals(&mut self, ports: &mut Ports) -> bool {
        let waits = self.targets.iter();
        let waits = waits.filter(|(_, known)| !known.locals.is_empty());
        let targets: Vec<u32> = waits.map(|(target, _)| *target).collect();
        let mut moved = false;
        for target in targets {
            if self.end_locals_of(ports, target) {
                moved = true;
                // The message that ends an epoch may have waited for these operations.
                self.pump(ports, target);
            }
        }
        moved
    }

    /// Ends the first operations on a target, as far as they are complete. Operations end in order,
    /// so that each costs one check however many there are.
    fn end_locals_of(&mut self, ports: &mut Ports, target: u32) -> bool {
        let peer = self.world(target).ok();
        let Some(known) = self.targets.get_mut(&target) else {
            return false;
        };
        let requests = &mut ports.messages.requests;
        let mut moved = false;
        while let Some(local) = known.locals.front_mut() {
            local
                .open
                .retain(|(id, expected)| match requests.take(*id) {
                    Ok(None) => true,
                    Ok(Some(status)) => {
                        if status.error != Class::SUCCESS {
                            local.class = status.error;
                        } else if status.bytes < *expected {
                            // The target returns no data for an access outside of its memory.
                            local.class = Class::RMA_RANGE;
                        } else {
                            local.is_answered |= *expected > 0;
                        }
                        false
                    }
                    Err(_) => false,
                });
            if local.queued > 0 || !local.open.is_empty() {
                return moved;
            }
            let error = local.class;
            if let Some(user) = local.user {
                let status = Status {
                    error,
                    ..Status::EMPTY
                };
                requests.complete(user, status);
            } else if error != Class::SUCCESS && self.failure.is_none() {
                let loss = peer.and_then(|peer| ports.messages.losses.error_of(peer));
                let detail = || format!("an access to rank {target} of the window has failed");
                let failure = loss.cloned();
                self.failure = Some(failure.unwrap_or_else(|| Error::new(error, detail())));
            }
            known.straight -= usize::from(local.is_straight);
            known.is_granted |= known.is_locked && local.is_answered;
            known.locals.pop_front();
            known.first_local += 1;
            moved = true;
        }
        moved
    }

    /// The position of `place` in bytes from the start of the target's window, or its address in a
    /// dynamic window.
    ///
    /// # Errors
    /// Not all elements of `place` are within the window.
    pub(super) fn offset(&self, target: u32, place: &Place) -> Result<i64> {
        let Some(part) = self.part(target) else {
            return Ok(place.disp);
        };
        if place.disp < 0 {
            let detail = format!("target_disp is {}; it must not be negative", place.disp);
            return Err(Error::new(Class::DISP, detail));
        }
        let (first, span) = place.ty.span(place.count)?;
        let inside = place.disp.checked_mul(part.disp_unit).filter(|at| {
            let start = at.checked_add(first as i64);
            start.is_some_and(|start| {
                start >= 0 && start as u64 <= part.size && span as u64 <= part.size - start as u64
            })
        });
        inside.ok_or_else(|| {
            let detail = format!(
                "{span} bytes at displacement {} in units of {} bytes, {first} bytes after it, \
                 are not within the window of rank {target}, which has {} bytes",
                place.disp, part.disp_unit, part.size
            );
            Error::new(Class::RMA_RANGE, detail)
        })
    }
}
