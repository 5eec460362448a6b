//! One collective operation under way: who takes part, and the steps that algorithms are made of.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use datatype::{Buffer, Elements, Predefined, Type};

use crate::comm::{COLLECTIVE, Core};
use crate::matching::Key;
use crate::op::Operation;
use crate::p2p::Mode;
use crate::rank::{Rank, State};
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// Elements are combined in pieces of so many bytes while the next piece travels.
const PIECE: usize = 128 << 10;

pub(super) struct Call<'a> {
    pub rank: &'a Rank,
    pub core: &'a Core,
    /// Keeps the operations under way on one communicator apart.
    pub tag: i32,
}

impl<'a> Call<'a> {
    #[inline(always)]
    pub fn me(&self) -> usize {
        self.core.rank
    }

    #[inline(always)]
    pub fn size(&self) -> usize {
        self.core.size()
    }

    /// The member `steps` after this one, in a circle.
    #[inline(always)]
    pub fn after(&self, steps: usize) -> usize {
        (self.me() + steps) % self.size()
    }

    /// The member `steps` before this one; `steps` is at most the size.
    #[inline(always)]
    pub fn before(&self, steps: usize) -> usize {
        (self.me() + self.size() - steps) % self.size()
    }

    /// Starts to send. The buffer must stay as it is until the answer is complete.
    #[inline]
    pub fn send(&self, to: usize, buffer: Buffer) -> Result<Pending<'a>> {
        self.start_send(&mut self.rank.lock(), to, buffer)
    }

    /// Starts to receive exactly this many bytes. Messages of one member come in the order in which it sent them.
    #[inline]
    pub fn receive(&self, from: usize, buffer: Buffer) -> Result<Pending<'a>> {
        self.start_receive(&mut self.rank.lock(), from, buffer)
    }

    /// Sends to one member and receives from another.
    #[inline]
    pub async fn exchange(&self, to: usize, out: Buffer, from: usize, into: Buffer) -> Result<()> {
        let (receiving, sending) = {
            let mut state = self.rank.lock();
            (
                self.start_receive(&mut state, from, into)?,
                self.start_send(&mut state, to, out)?,
            )
        };
        receiving.await?;
        sending.await
    }

    #[inline(always)]
    fn start_send(&self, state: &mut State, to: usize, buffer: Buffer) -> Result<Pending<'a>> {
        let peer = self.world(to)?;
        let State {
            messages, router, ..
        } = state;
        let id = messages.send(router, Mode::Standard, &buffer, peer, self.key(self.me()))?;
        let request = (id != messages.requests.done()).then_some(id);
        Ok(Pending {
            rank: self.rank,
            request,
            expected: None,
            peer: to,
        })
    }

    #[inline(always)]
    fn start_receive(&self, state: &mut State, from: usize, buffer: Buffer) -> Result<Pending<'a>> {
        let expected = Some(buffer.len() as u64);
        let State {
            messages, router, ..
        } = state;
        let id = messages.receive(buffer, self.key(from))?;
        messages.flush(router)?;
        Ok(Pending {
            rank: self.rank,
            request: Some(id),
            expected,
            peer: from,
        })
    }

    #[inline(always)]
    fn key(&self, source: usize) -> Key {
        Key {
            context: self.core.context | COLLECTIVE,
            source: source as i32,
            tag: self.tag,
        }
    }

    #[inline(always)]
    fn world(&self, member: usize) -> Result<usize> {
        self.core
            .members
            .world(member)
            .ok_or_else(|| self.core.no_such_rank(member as i32))
    }

    /// Memory for bytes in between.
    pub fn bytes(&self, count: usize) -> Result<Buffer> {
        Ok(self.elements(count, &Predefined::BYTE.into())?.buffer())
    }

    /// Memory for elements in between.
    pub fn elements(&self, count: usize, ty: &Type) -> Result<Elements> {
        Ok(self.rank.lock().scratch.elements(count, ty)?)
    }

    /// Sends `give` to one member while elements from another are combined into `keep`, piece by piece. `first`: theirs
    /// come before ours, where the order matters.
    pub async fn exchange_and_combine(
        &self,
        (to, give): (usize, Elements),
        (from, keep): (usize, Elements),
        op: &Operation,
        first: bool,
    ) -> Result<()> {
        let each = (PIECE / keep.ty().size().max(1)).max(1);
        let pieces = give.count().max(keep.count()).div_ceil(each);
        let rooms = [0, 1]
            .map(|at| self.elements(keep.count().saturating_sub(at * each).min(each), keep.ty()));
        let [even, odd] = rooms;
        let rooms = [even?, odd?];
        let start = |piece: usize| {
            let theirs = rooms[piece % 2].part(0, keep.count().saturating_sub(piece * each));
            let receiving = if theirs.count() > 0 {
                Some(self.receive(from, theirs.buffer())?)
            } else {
                None
            };
            let ours = give.part(piece * each, each);
            let sending = if ours.count() > 0 {
                Some(self.send(to, ours.buffer())?)
            } else {
                None
            };
            Ok::<_, Error>((receiving, sending, theirs))
        };
        let mut next = if pieces > 0 { Some(start(0)?) } else { None };
        for piece in 0..pieces {
            let Some((receiving, sending, theirs)) = next.take() else {
                break;
            };
            if piece + 1 < pieces {
                next = Some(start(piece + 1)?);
            }
            if let Some(receiving) = receiving {
                receiving.await?;
            }
            let ours = keep.part(piece * each, each);
            if first || op.is_commutative() {
                op.combine(&theirs, &ours)?;
            } else {
                op.combine(&ours, &theirs)?;
                theirs.buffer().copy_to(&ours.buffer());
            }
            if let Some(sending) = sending {
                sending.await?;
            }
        }
        Ok(())
    }
}

/// A message that has been started. Dropped before its end, a receive takes nothing any more.
pub(super) struct Pending<'a> {
    rank: &'a Rank,
    /// None once it is complete.
    request: Option<RequestId>,
    /// Bytes that must come, of a receive.
    expected: Option<u64>,
    peer: usize,
}

impl Future for Pending<'_> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(id) = self.request else {
            return Poll::Ready(Ok(()));
        };
        let status = match self.rank.lock().messages.requests.take(id) {
            Ok(None) => return Poll::Pending,
            Ok(Some(status)) => status,
            Err(error) => return Poll::Ready(Err(error)),
        };
        self.request = None;
        if status.error == Class::SUCCESS && self.expected.is_none_or(|bytes| bytes == status.bytes)
        {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(self.mismatch(status)))
    }
}

impl Pending<'_> {
    #[cold]
    fn mismatch(&self, status: crate::Status) -> Error {
        let sent = match status.error {
            Class::TRUNCATE => "more".to_string(),
            Class::SUCCESS => format!("{}", status.bytes),
            class => {
                return Error::new(
                    class,
                    format!("a message of rank {} did not arrive", self.peer),
                );
            }
        };
        let detail = format!(
            "rank {} of the communicator sent {sent} where {} bytes are expected here: the ranks called different \
             collectives, or with counts or datatypes that do not fit together",
            self.peer,
            self.expected.unwrap_or_default()
        );
        Error::new(Class::TRUNCATE, detail)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.request {
            self.abandon(id);
        }
    }
}

impl Pending<'_> {
    /// What was begun for an operation that has failed: nobody will ask for it.
    #[cold]
    fn abandon(&self, id: RequestId) {
        let mut state = self.rank.lock();
        if self.expected.is_some() {
            let _ = state.cancel(id);
        }
        let _ = state.messages.requests.detach(id);
    }
}
