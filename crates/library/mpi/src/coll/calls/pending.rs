//! A send or receive that a collective operation has started, as a future of its completion.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "carriers")]
use super::carrier::Carrier;
use crate::rank::Rank;
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// A send or receive in progress. A receive that is dropped before its end is cancelled.
pub(crate) enum Pending<'a> {
    /// The message of a rank of the job.
    Rank(OfRank<'a>),
    /// The message with this number of a carrier.
    #[cfg(feature = "carriers")]
    Carrier(&'a dyn Carrier, u64),
}

impl<'a> Pending<'a> {
    /// The message of a rank with this request; `None` if it is complete.
    #[inline(always)]
    pub(super) fn of_rank(
        rank: &'a Rank,
        request: Option<RequestId>,
        expected: Option<u64>,
        peer: usize,
    ) -> Pending<'a> {
        Pending::Rank(OfRank {
            rank,
            request,
            expected,
            peer,
        })
    }

    /// The message with this number of a carrier.
    #[cfg(feature = "carriers")]
    pub(super) fn of_carrier(carrier: &'a dyn Carrier, message: u64) -> Pending<'a> {
        Pending::Carrier(carrier, message)
    }
}

/// A message of a rank of the job that is in flight.
pub(crate) struct OfRank<'a> {
    rank: &'a Rank,
    /// The request of the message; `None` once it is complete.
    request: Option<RequestId>,
    /// The number of bytes that a receive must get; `None` for a send.
    expected: Option<u64>,
    peer: usize,
}

impl Future for Pending<'_> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut *self {
            Pending::Rank(message) => message.poll(),
            #[cfg(feature = "carriers")]
            Pending::Carrier(carrier, message) => match carrier.is_done(*message) {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            },
        }
    }
}

impl OfRank<'_> {
    #[inline(always)]
    fn poll(&mut self) -> Poll<Result<()>> {
        let Some(id) = self.request else {
            return Poll::Ready(Ok(()));
        };
        let status = match self.rank.lock().engine.messages.requests.take(id) {
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

impl OfRank<'_> {
    #[cold]
    fn mismatch(&self, status: crate::Status) -> Error {
        let sent = match status.error {
            Class::TRUNCATE => "more".to_string(),
            Class::SUCCESS => format!("{}", status.bytes),
            class => {
                // Only the loss of a peer ends a message of the library with an error of this
                // class.
                let lost = self.rank.lock().engine.loss_with(class);
                let failed = || format!("the message from or to rank {} failed", self.peer);
                return lost.unwrap_or_else(|| Error::new(class, failed()));
            }
        };
        mismatch(self.peer, &sent, self.expected.unwrap_or_default())
    }
}

/// The error of a member that sent another number of bytes than this rank expects.
#[cold]
pub(super) fn wrong_length(member: usize, sent: usize, expected: usize) -> Error {
    mismatch(member, &sent.to_string(), expected as u64)
}

fn mismatch(member: usize, sent: &str, expected: u64) -> Error {
    let detail = format!(
        "rank {member} of the communicator sent {sent} where {expected} bytes are expected here: the ranks called different \
         collectives, or with counts or datatypes that do not fit together"
    );
    Error::new(Class::TRUNCATE, detail)
}

impl Drop for OfRank<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.request {
            self.abandon(id);
        }
    }
}

impl OfRank<'_> {
    /// Removes the request of an operation that has failed, and for which no call will wait.
    #[cold]
    fn abandon(&self, id: RequestId) {
        let state = &mut *self.rank.lock();
        if self.expected.is_some() {
            let _ = state.engine.cancel(&state.objects.comms, id);
        }
        let _ = state.engine.messages.requests.detach(id);
    }
}
