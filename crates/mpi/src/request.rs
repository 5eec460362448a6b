//! Requests: operations that have begun (MPI 5.0 §3.7).

use datatype::Buffer;

use crate::handle::{ObjectKind, Slab};
use crate::matching::Key;
use crate::p2p::Mode;
use crate::packet::Envelope;
use crate::{Class, Error, Result, Status};

/// The handle of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RequestId(pub u32);

pub struct Request {
    pub operation: Operation,
    /// Set when the operation is complete.
    pub status: Option<Status>,
    /// The user has freed the handle: the request goes when it completes.
    detached: bool,
}

pub enum Operation {
    /// In a box, because most sends are complete at once and need no request.
    Send(Box<Send>),
    Receive(Receive),
    /// A collective operation, or another with several steps: its task runs elsewhere and completes this request. The
    /// context is that of the communicator which hears of errors.
    Collective {
        context: Option<u64>,
    },
    /// A message sent by an operation that can be started again, and its current instance.
    Persistent(Box<Persistent>),
    /// An operation of the user's own (MPI 5.0 §13.2): completed by the user.
    Generalized,
}

impl Operation {
    /// One that belongs to no communicator.
    pub const NOBODYS: Operation = Operation::Collective { context: None };
}

pub struct Send {
    pub buffer: Buffer,
    pub peer: usize,
    pub(crate) envelope: Envelope,
    /// The peer has asked for the bytes as packets: they are on their way and the message cannot be taken back.
    pub streaming: bool,
    /// Bytes held of the room that the user attached for buffered sends.
    pub buffered: usize,
    /// A cancellation is under way.
    pub cancelling: bool,
}

pub struct Receive {
    pub buffer: Buffer,
    pub key: Key,
    /// The message's length, known once it is matched.
    pub announced: usize,
    /// Bytes that have come in packets.
    pub arrived: usize,
}

#[derive(Clone)]
pub struct Persistent {
    pub template: Template,
    /// The instance under way, or `None` while the request is inactive.
    pub active: Option<RequestId>,
}

/// What `MPI_Start` starts.
#[derive(Clone)]
pub enum Template {
    Send {
        mode: Mode,
        buffer: Buffer,
        dest: i32,
        tag: i32,
        comm: u32,
    },
    Receive {
        buffer: Buffer,
        source: i32,
        tag: i32,
        comm: u32,
    },
}

/// A request that has been completed.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    pub status: Status,
    /// The handle names nothing any more.
    pub gone: bool,
    /// The context of the communicator that the operation belonged to, if it failed and that is known.
    pub context: Option<u64>,
}

impl Finished {
    /// Of the null request.
    pub const NULL: Finished = Finished {
        status: Status::EMPTY,
        gone: true,
        context: None,
    };
}

/// All requests of a rank.
pub struct Requests {
    slab: Slab<Request>,
    /// Counts completions, and arrivals of messages that the library takes without a receive, so that who waits for one
    /// can tell whether to look again.
    pub completions: u64,
    /// The one request that every send that is complete at once shares.
    done: RequestId,
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
        }
    }
}

impl Requests {
    /// A send that was complete before its call returned.
    #[inline(always)]
    pub fn done(&self) -> RequestId {
        self.done
    }

    pub fn add(&mut self, operation: Operation) -> Result<RequestId> {
        self.add_with(|| operation)
    }

    /// The same for an operation that is made where it will be.
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

    /// A request of an operation that there is nothing to do for.
    pub fn add_complete(&mut self, status: Status) -> Result<RequestId> {
        let id = self.add(Operation::NOBODYS)?;
        self.complete(id, status);
        Ok(id)
    }

    #[inline(always)]
    pub fn get(&self, id: RequestId) -> Option<&Request> {
        self.slab.get(id.0)
    }

    #[inline(always)]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slab.get_mut(id.0)
    }

    /// The request, or the error for a handle that names none.
    #[inline(always)]
    pub fn valid(&self, id: RequestId) -> Result<&Request> {
        self.slab.get(id.0).ok_or_else(|| unknown(id))
    }

    pub fn send_mut(&mut self, id: RequestId) -> Option<&mut Send> {
        match &mut self.slab.get_mut(id.0)?.operation {
            Operation::Send(send) => Some(send),
            _ => None,
        }
    }

    pub fn receive_mut(&mut self, id: RequestId) -> Option<&mut Receive> {
        match &mut self.slab.get_mut(id.0)?.operation {
            Operation::Receive(receive) => Some(receive),
            _ => None,
        }
    }

    /// The operation is complete.
    #[inline]
    pub fn complete(&mut self, id: RequestId, status: Status) {
        self.completions += 1;
        if let Some(request) = self.slab.get_mut(id.0) {
            request.status = Some(status);
            if request.detached {
                self.slab.remove(id.0);
            }
        }
    }

    /// The whole message of a receive is here: `take` moves it and says with which status the receive is complete.
    /// Nothing happens if the request is not a receive.
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

    /// The status of a complete request, which is then gone; `None` while it is not complete.
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

    /// The same for any request of the user's: one that can be started again becomes inactive instead, and answers with
    /// an empty status when it is inactive already.
    #[inline(always)]
    pub fn finish(&mut self, id: RequestId) -> Result<Option<Finished>> {
        let request = self.slab.get(id.0).ok_or_else(|| unknown(id))?;
        if let Some(status) = request.status {
            let context = match status.error {
                Class::SUCCESS => None,
                _ => self.context(id),
            };
            self.release(id);
            return Ok(Some(Finished {
                status,
                gone: true,
                context,
            }));
        }
        match request.operation {
            Operation::Persistent(_) => self.finish_instance(id),
            _ => Ok(None),
        }
    }

    /// The same for a request that is complete, has not failed and cannot be started again; nothing happens to others.
    #[inline(always)]
    pub fn finish_well(&mut self, id: RequestId) -> Option<Status> {
        let status = self.slab.get(id.0)?.status?;
        if status.error != Class::SUCCESS {
            return None;
        }
        self.release(id);
        Some(status)
    }

    /// Finishes what a persistent request has under way.
    #[inline(never)]
    fn finish_instance(&mut self, id: RequestId) -> Result<Option<Finished>> {
        let context = self.context(id);
        let active = self.persistent_mut(id).and_then(|it| it.active);
        let status = match active {
            None => Status::EMPTY,
            Some(active) => match self.take(active)? {
                None => return Ok(None),
                Some(status) => status,
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

    /// The status that `finish` would give, without finishing.
    pub fn peek(&self, id: RequestId) -> Result<Option<Status>> {
        let request = self.valid(id)?;
        match &request.operation {
            Operation::Persistent(persistent) => persistent
                .active
                .map_or(Ok(Some(Status::EMPTY)), |active| self.peek(active)),
            _ => Ok(request.status),
        }
    }

    /// Is there an operation under way, or complete and not yet taken? (Not so for an inactive one.)
    pub fn is_active(&self, id: RequestId) -> Result<bool> {
        Ok(match &self.valid(id)?.operation {
            Operation::Persistent(persistent) => persistent.active.is_some(),
            _ => true,
        })
    }

    pub fn persistent_mut(&mut self, id: RequestId) -> Option<&mut Persistent> {
        match &mut self.slab.get_mut(id.0)?.operation {
            Operation::Persistent(persistent) => Some(persistent),
            _ => None,
        }
    }

    /// The context of the communicator that the request belongs to, if it is known.
    pub fn context(&self, id: RequestId) -> Option<u64> {
        match &self.slab.get(id.0)?.operation {
            Operation::Send(send) => Some(send.envelope.key.context),
            Operation::Receive(receive) => Some(receive.key.context),
            Operation::Persistent(persistent) => self.context(persistent.active?),
            Operation::Collective { context } => *context,
            Operation::Generalized => None,
        }
    }

    /// The user no longer wants to know; the operation goes on by itself.
    pub fn detach(&mut self, id: RequestId) -> Result<()> {
        let request = self.slab.get_mut(id.0).ok_or_else(|| unknown(id))?;
        if id == self.done {
            return Ok(());
        }
        let active = match &request.operation {
            Operation::Persistent(persistent) => persistent.active,
            _ if request.status.is_none() => {
                request.detached = true;
                return Ok(());
            }
            _ => None,
        };
        self.slab.remove(id.0);
        active.map_or(Ok(()), |active| self.detach(active))
    }

    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.slab
            .iter()
            .map(|(handle, request)| (RequestId(handle), request))
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
fn unknown(id: RequestId) -> Error {
    Error::new(
        Class::REQUEST,
        format!(
            "{:#x} is not a request: it was never one, or it has been completed or freed",
            id.0
        ),
    )
}
