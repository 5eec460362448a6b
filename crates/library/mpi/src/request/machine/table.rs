//! The requests of a rank, by handle.

use std::sync::Arc;

use super::*;

/// All requests of a rank, by handle.
pub struct Requests {
    slab: Slab<Request>,
    /// Count of completions, and of arrivals of messages that the library takes without a receive.
    /// Tasks and waiting calls check their conditions again when the count changes.
    pub completions: u64,
    /// The request shared by all sends that are complete when their call returns.
    done: RequestId,
    /// Functions of the generalised requests, by handle.
    functions: BTreeMap<u32, Arc<dyn Functions>>,
    /// Generalised requests that have been finished, and whose query and free functions are still
    /// to be called.
    ended: Vec<(RequestId, Arc<dyn Functions>)>,
}

/// An error class that marks a status as a placeholder. A complete generalised request has one,
/// because its true status comes from its query function, which runs without the rank's lock. The
/// field `bytes` of the placeholder holds the handle.
const BY_QUERY: Class = Class(i32::MAX);

impl Status {
    /// True if this is the placeholder for a status that a query function will give.
    #[inline(always)]
    pub fn is_by_query(&self) -> bool {
        self.error == BY_QUERY
    }

    /// The generalised request to which a placeholder ([`Status::is_by_query`]) belongs.
    pub(crate) fn generalized(&self) -> RequestId {
        RequestId(self.bytes as u32)
    }
}

impl Default for Requests {
    fn default() -> Self {
        let mut slab = Slab::new(ObjectKind::Request);
        let sent = Request {
            operation: Operation::NOBODYS,
            status: Some(Status::EMPTY),
            detached: false,
        };
        let done = RequestId(slab.insert(sent).expect("an empty table has room"));
        Requests {
            slab,
            completions: 0,
            done,
            functions: BTreeMap::new(),
            ended: Vec::new(),
        }
    }
}

impl Requests {
    /// The request of sends that are complete when their call returns.
    #[inline(always)]
    pub fn done(&self) -> RequestId {
        self.done
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Too many requests are active.
    pub fn add(&mut self, operation: Operation) -> Result<RequestId> {
        self.add_with(|| operation)
    }

    /// Adds a request whose operation is built in the memory of the table, without a copy.
    ///
    /// # Errors
    /// Too many requests are active.
    #[inline(always)]
    pub fn add_with(&mut self, operation: impl FnOnce() -> Operation) -> Result<RequestId> {
        let request = || Request {
            operation: operation(),
            status: None,
            detached: false,
        };
        match self.slab.insert_with(request) {
            Some(handle) => Ok(RequestId(handle)),
            None => Err(too_many()),
        }
    }

    /// Adds a request that is complete already.
    ///
    /// # Errors
    /// Too many requests are active.
    pub fn add_complete(&mut self, status: Status) -> Result<RequestId> {
        let id = self.add(Operation::NOBODYS)?;
        self.complete(id, status);
        Ok(id)
    }

    /// The request with this handle. `None`: the handle is invalid.
    #[inline(always)]
    pub fn get(&self, id: RequestId) -> Option<&Request> {
        self.slab.get(id.0)
    }

    /// The request with this handle, to be changed. `None`: the handle is invalid.
    #[inline(always)]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slab.get_mut(id.0)
    }

    /// The request with this handle.
    ///
    /// # Errors
    /// The handle is invalid.
    #[inline(always)]
    pub fn valid(&self, id: RequestId) -> Result<&Request> {
        self.slab.get(id.0).ok_or_else(|| unknown(id))
    }

    /// The send of a request. `None`: the handle is invalid, or the request is no send.
    pub fn send_mut(&mut self, id: RequestId) -> Option<&mut Send> {
        match &mut self.slab.get_mut(id.0)?.operation {
            Operation::Send(send) => Some(send),
            _ => None,
        }
    }

    /// The receive of a request. `None`: the handle is invalid, or the request is no receive.
    pub fn receive_mut(&mut self, id: RequestId) -> Option<&mut Receive> {
        match &mut self.slab.get_mut(id.0)?.operation {
            Operation::Receive(receive) => Some(receive),
            _ => None,
        }
    }

    /// Completes the operation of a request with this status.
    #[inline]
    pub fn complete(&mut self, id: RequestId, status: Status) {
        self.completions += 1;
        if let Some(request) = self.slab.get_mut(id.0) {
            request.status = Some(status);
            if request.detached {
                self.remove_detached(id, status);
            }
        }
    }

    /// Removes a request without a handle that is complete, and completes the user's request that
    /// waits for it.
    #[cold]
    #[inline(never)]
    fn remove_detached(&mut self, id: RequestId, status: Status) {
        let users = self.send_mut(id).and_then(|send| send.users.take());
        self.slab.remove(id.0);
        if let Some(users) = users {
            self.complete(users, status);
        }
    }

    /// Completes a receive with the status that `take` returns after it has copied the message.
    /// Nothing happens if the request is no receive.
    #[inline(always)]
    pub fn complete_receive(&mut self, id: RequestId, take: impl FnOnce(&mut Receive) -> Status) {
        let Some(request) = self.slab.get_mut(id.0) else {
            return;
        };
        if let Operation::Receive(receive) = &mut request.operation {
            request.status = Some(take(receive));
            self.completions += 1;
            if request.detached {
                self.slab.remove(id.0);
            }
        }
    }

    /// Removes a request that is complete, and returns its status. `None`: it is not complete.
    ///
    /// # Errors
    /// The handle is invalid.
    #[inline(always)]
    pub fn take(&mut self, id: RequestId) -> Result<Option<Status>> {
        let request = self.slab.get(id.0).ok_or_else(|| unknown(id))?;
        let Some(status) = request.status else {
            return Ok(None);
        };
        self.release(id);
        Ok(Some(status))
    }

    #[inline(always)]
    fn release(&mut self, id: RequestId) {
        if id != self.done {
            self.slab.discard(id.0);
        }
    }

    /// Finishes a user's request that is complete: removes it, or makes it inactive if it is
    /// persistent. An inactive request has an empty status. `None`: the request is not complete.
    ///
    /// # Errors
    /// The handle is invalid.
    #[inline(always)]
    pub fn finish(&mut self, id: RequestId) -> Result<Option<Finished>> {
        let request = self.slab.get(id.0).ok_or_else(|| unknown(id))?;
        if let Some(status) = request.status {
            if status.error != Class::SUCCESS {
                return Ok(Some(self.finish_failed(id, status)));
            }
            self.release(id);
            return Ok(Some(Finished {
                status,
                gone: true,
                context: None,
            }));
        }
        match request.operation {
            Operation::Persistent(_) => self.finish_instance(id),
            _ => Ok(None),
        }
    }

    /// Finishes a request whose status has an error, a loss to be reported, or a placeholder.
    #[cold]
    fn finish_failed(&mut self, id: RequestId, status: Status) -> Finished {
        let context = self.context(id);
        if status.is_by_query()
            && let Some(functions) = self.remove_generalized(id)
        {
            self.ended.push((id, functions));
        }
        match self.reported(id, status) {
            Some(status) => Finished {
                status,
                gone: false,
                context,
            },
            None => {
                self.release(id);
                Finished {
                    status,
                    gone: true,
                    context,
                }
            }
        }
    }

    /// Adds a generalised request with the user's functions.
    ///
    /// # Errors
    /// Too many requests are active.
    pub fn add_generalized(&mut self, functions: Arc<dyn Functions>) -> Result<RequestId> {
        let id = self.add(Operation::Generalized)?;
        self.functions.insert(id.0, functions);
        Ok(id)
    }

    /// Completes a generalised request. If the user has freed its handle, the result has its
    /// functions: the caller has to call the free function.
    ///
    /// # Errors
    /// The request is no generalised one, or is complete already.
    pub fn complete_generalized(&mut self, id: RequestId) -> Result<Option<Arc<dyn Functions>>> {
        let request = self.slab.get_mut(id.0).ok_or_else(|| unknown(id))?;
        match request.operation {
            Operation::Generalized if request.status.is_none() => {}
            Operation::Generalized => return Err(not_open(id, "complete already")),
            _ => return Err(not_open(id, "no generalised request")),
        }
        self.completions += 1;
        request.status = Some(Status {
            error: BY_QUERY,
            bytes: id.0.into(),
            ..Status::EMPTY
        });
        match request.detached {
            true => Ok(self.remove_generalized(id)),
            false => Ok(None),
        }
    }

    /// The functions of a generalised request, and true if it is complete. `None`: the handle is
    /// invalid, or the request is no generalised one.
    pub fn generalized(&self, id: RequestId) -> Option<(Arc<dyn Functions>, bool)> {
        let functions = self.functions.get(&id.0)?.clone();
        Some((functions, !self.slab.get(id.0)?.is_open()))
    }

    /// Takes the functions of a generalised request that has been finished with this status.
    pub fn take_ended(&mut self, finished: Status) -> Option<Arc<dyn Functions>> {
        let id = finished.generalized();
        let at = self.ended.iter().position(|ended| ended.0 == id)?;
        Some(self.ended.swap_remove(at).1)
    }

    fn remove_generalized(&mut self, id: RequestId) -> Option<Arc<dyn Functions>> {
        let functions = self.functions.remove(&id.0)?;
        self.slab.remove(id.0);
        Some(functions)
    }

    /// Frees the handle of a request as [`Requests::detach`] does. For a complete generalised
    /// request the result has its functions: the caller has to call the free function.
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn free(&mut self, id: RequestId) -> Result<Option<Arc<dyn Functions>>> {
        if let Some((_, true)) = self.generalized(id) {
            return Ok(self.remove_generalized(id));
        }
        self.detach(id).map(|()| None)
    }

    /// Makes the next wait for this receive report an error of this class, while the receive stays
    /// active (an *alarm*). `for_ever`: every later wait reports it, too.
    pub(crate) fn alarm(&mut self, id: RequestId, class: Class, for_ever: bool) {
        if let Some(request) = self.slab.get_mut(id.0) {
            request.status = Some(Status {
                error: Class(-class.0),
                dropped: for_ever.into(),
                ..Status::EMPTY
            });
            self.completions += 1;
        }
    }

    /// The status with which a wait reports the loss for which an active receive has an alarm. The
    /// alarm ends, unless it is for ever. `None`: the status has no alarm.
    fn reported(&mut self, id: RequestId, status: Status) -> Option<Status> {
        let shown = shown(status);
        if shown.error == status.error {
            return None;
        }
        if status.dropped == 0
            && let Some(request) = self.slab.get_mut(id.0)
        {
            request.status = None;
        }
        Some(shown)
    }

    /// Removes a request that is complete, has not failed and is not persistent, and returns its
    /// status. `None`: the request is not of this kind, and is unchanged.
    #[inline(always)]
    pub fn finish_well(&mut self, id: RequestId) -> Option<Status> {
        let status = self.slab.get(id.0)?.status?;
        if status.error != Class::SUCCESS {
            return None;
        }
        self.release(id);
        Some(status)
    }

    /// Finishes the current instance of a persistent request.
    #[inline(never)]
    fn finish_instance(&mut self, id: RequestId) -> Result<Option<Finished>> {
        let context = self.context(id);
        let active = self.persistent_mut(id).and_then(|it| it.active);
        let status = match active {
            None => Status::EMPTY,
            Some(active) => match self.finish(active)? {
                None => return Ok(None),
                // The instance stays active: its wait has only reported a loss.
                Some(Finished {
                    gone: false,
                    status,
                    ..
                }) => {
                    return Ok(Some(Finished {
                        status,
                        gone: false,
                        context,
                    }));
                }
                Some(finished) => finished.status,
            },
        };
        if let Some(persistent) = self.persistent_mut(id) {
            persistent.active = None;
        }
        Ok(Some(Finished {
            status,
            gone: false,
            context,
        }))
    }

    /// The status that [`Requests::finish`] would return. The request stays as it is.
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn peek(&self, id: RequestId) -> Result<Option<Status>> {
        let request = self.valid(id)?;
        match &request.operation {
            Operation::Persistent(persistent) => persistent
                .active
                .map_or(Ok(Some(Status::EMPTY)), |active| self.peek(active)),
            _ => Ok(request.status.map(shown)),
        }
    }

    /// False for an inactive persistent request, true for every other request.
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn is_active(&self, id: RequestId) -> Result<bool> {
        Ok(match &self.valid(id)?.operation {
            Operation::Persistent(persistent) => persistent.active.is_some(),
            _ => true,
        })
    }

    /// The persistent operation of a request. `None`: the handle is invalid, or the request is not
    /// persistent.
    pub fn persistent_mut(&mut self, id: RequestId) -> Option<&mut Persistent> {
        match &mut self.slab.get_mut(id.0)?.operation {
            Operation::Persistent(persistent) => Some(persistent),
            _ => None,
        }
    }

    /// The context of the request's communicator. `None`: the request belongs to none.
    pub fn context(&self, id: RequestId) -> Option<u64> {
        match &self.slab.get(id.0)?.operation {
            Operation::Send(send) => Some(send.envelope.key.context),
            Operation::Receive(receive) => Some(receive.key.context),
            Operation::Persistent(persistent) => self.context(persistent.active?),
            Operation::Collective { context } => *context,
            Operation::Access { .. } | Operation::Generalized => None,
        }
    }

    /// Frees the handle of a request, whose operation continues (`MPI_Request_free`).
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn detach(&mut self, id: RequestId) -> Result<()> {
        let request = self.slab.get_mut(id.0).ok_or_else(|| unknown(id))?;
        if id == self.done {
            return Ok(());
        }
        let active = match &request.operation {
            Operation::Persistent(persistent) => persistent.active,
            _ if request.is_open() => {
                request.detached = true;
                return Ok(());
            }
            _ => None,
        };
        self.slab.remove(id.0);
        active.map_or(Ok(()), |active| self.detach(active))
    }

    /// All requests, with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.slab
            .iter()
            .map(|(handle, request)| (RequestId(handle), request))
    }
}

/// The status as a wait reports it. An alarm, which makes the wait for an active receive report a
/// lost peer, is stored as a negated error class.
fn shown(status: Status) -> Status {
    match status.error.0 {
        0.. => status,
        alarm => Status {
            error: Class(-alarm),
            dropped: 0,
            ..status
        },
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(
        Class::NO_MEM,
        "more than a million requests are under way: wait for some of them first",
    )
}

#[cold]
fn not_open(id: RequestId, fault: &str) -> Error {
    let detail = format!("{:#x} is {fault}: it cannot be completed", id.0);
    Error::new(Class::REQUEST, detail)
}

#[cold]
fn unknown(id: RequestId) -> Error {
    Error::new(
        Class::REQUEST,
        format!(
            "{:#x} is not a request: it was never one, or it has been completed or freed",
            id.0
        ),
    )
}
