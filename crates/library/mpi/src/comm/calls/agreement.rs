//! Agreements: a few bytes that ranks exchange to make a new communicator, by messages in a context
//! of their own.
//!
//! An agreement numbers its ranks by *position* (`place`). Trees are binomial: the parent of
//! position `p` is `p` with its lowest bit cleared.
//!
//! A rank that has failed takes part all the same: its failure goes up and down the tree instead of
//! the bytes, so all ranks fail with the failure of the lowest position. A rank that leaves an
//! agreement because of a loss notifies those that wait for it. In an agreement of all members of
//! the communicator, the collective operation around it notifies them.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::comm::{AGREEMENT, COLLECTIVE, Core, bare, stage};
use crate::error::Cause;
use crate::matching::Key;
use crate::p2p::calls::awaited::Awaited;
use crate::rank::Rank;
use crate::rank::drive::Completion;
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// Length in bytes of an encoded error before its text: the class, and a flag if its cause is a
/// loss.
const HEAD: usize = 8;
/// The longest text of an error that is sent, in bytes. With its head it fits a packet.
const TEXT: usize = 500;

/// An agreement among ranks, with the part of one of them.
pub(crate) struct Agreement {
    rank: Arc<Rank>,
    core: Arc<Core>,
    /// For each position, the number of the rank in `core`. `None`: all ranks, in order.
    ranks: Option<Vec<u32>>,
    /// This rank's position among the ranks that agree.
    place: usize,
    context: u64,
    tag: i32,
}

impl Agreement {
    /// An agreement among all ranks of a communicator, in the collective operation with this tag.
    pub(crate) fn all(rank: &Arc<Rank>, core: &Arc<Core>, tag: i32) -> Agreement {
        let context = core.context | COLLECTIVE | AGREEMENT;
        Agreement {
            rank: rank.clone(),
            core: core.clone(),
            ranks: None,
            place: core.rank,
            context,
            tag,
        }
    }

    /// An agreement among some ranks of a communicator, with this one at position `place`.
    pub(crate) fn some(
        rank: &Arc<Rank>,
        core: &Arc<Core>,
        ranks: Vec<u32>,
        place: usize,
        tag: i32,
    ) -> Agreement {
        Agreement {
            ranks: Some(ranks),
            place,
            ..Agreement::all(rank, core, tag)
        }
    }

    /// This agreement with a tag of the user, in a context separate from collective operations.
    pub(crate) fn with_users_tag(self, tag: i32) -> Agreement {
        Agreement {
            context: self.core.context | AGREEMENT,
            tag,
            ..self
        }
    }

    /// This agreement as one between the leaders of two groups: with a tag of the user, in a
    /// context of its own.
    pub(crate) fn between_leaders(self, tag: i32) -> Agreement {
        Agreement {
            context: self.core.context | AGREEMENT | stage(1),
            tag,
            ..self
        }
    }

    /// The context of the communicator, if all of its members take part.
    pub(crate) fn context_of_all(&self) -> Option<u64> {
        self.ranks.is_none().then_some(self.core.context)
    }

    /// This rank's position among the ranks that agree.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> usize {
        self.ranks.as_ref().map_or(self.core.size(), Vec::len)
    }

    /// Sends the bytes of position 0 to all positions. `mine`: those bytes, at position 0; `len`:
    /// their number.
    pub(crate) async fn bcast(&self, mine: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        self.bcast_result(Ok(mine), len).await
    }

    /// Sends the bytes of position 0, or its failure, to all positions, as [`bcast`](Self::bcast)
    /// does.
    pub(crate) async fn bcast_result(&self, mine: Result<Vec<u8>>, len: usize) -> Result<Vec<u8>> {
        let bytes = match self.place {
            0 => mine,
            place => self.receive(place & (place - 1), len).await,
        };
        let mut sends = Vec::new();
        let mut step = self.span() / 2;
        while step > 0 {
            if self.place + step < self.size() {
                sends.push(match &bytes {
                    Ok(bytes) => self.send(self.place + step, bytes),
                    Err(error) if self.ranks.is_some() || !error.is_loss() => {
                        self.send_failure(self.place + step, error)
                    }
                    Err(error) => Err(error.clone()),
                });
            }
            step /= 2;
        }
        // The loss of one rank must not keep the bytes from the others.
        let mut sent = Ok(());
        for request in sends {
            let this = match request {
                Ok(request) => self.complete(request).await,
                Err(error) => Err(error),
            };
            sent = sent.and(this);
        }
        let bytes = bytes?;
        sent.map(|()| bytes)
    }

    /// Sends the bytes of position 0 to all positions, unless some rank has failed. `mine`: those
    /// bytes at position 0, nothing elsewhere, or this rank's failure; `len`: the number of bytes.
    ///
    /// # Errors
    /// The failure of the lowest position that has failed, on all ranks.
    pub(crate) async fn bcast_agreed(&self, mine: Result<Vec<u8>>, len: usize) -> Result<Vec<u8>> {
        let own = mine.as_ref().err().cloned();
        let (bytes, verdict) = match mine {
            Ok(bytes) => (bytes, Ok(vec![0])),
            Err(error) => (Vec::new(), Err(error)),
        };
        let block = self.collect(verdict, 1).await?;
        let told = self.bcast_result(block.map(|_| bytes), len).await;
        told.map_err(|error| self.as_here(error, own))
    }

    /// Collects the bytes of all positions, in order, on all ranks. All contribute an equal number
    /// of bytes.
    pub(crate) async fn allgather(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let len = mine.len();
        self.allgather_agreed(Ok(mine), len).await
    }

    /// Collects the `len` bytes of each position, in order, on all ranks.
    ///
    /// # Errors
    /// The failure of the lowest position that has failed, on all ranks.
    pub(crate) async fn allgather_agreed(
        &self,
        mine: Result<Vec<u8>>,
        len: usize,
    ) -> Result<Vec<u8>> {
        let own = mine.as_ref().err().cloned();
        let block = self.collect(mine, len).await?;
        let told = self.bcast_result(block, len * self.size()).await;
        told.map_err(|error| self.as_here(error, own))
    }

    /// Reports failures to position 0. The result there is the failure of the lowest position that
    /// has failed; elsewhere it does not show all failures.
    pub(crate) async fn gather_failures(&self, mine: Result<()>) -> Result<Result<()>> {
        let block = self.collect(mine.map(|()| vec![0]), 1).await?;
        Ok(block.map(drop))
    }

    /// Collects the `len` bytes of each position of this rank's subtree, or the failure of the
    /// lowest position there, and sends them to the parent.
    ///
    /// # Errors
    /// A rank is lost, and all ranks of the communicator take part.
    async fn collect(&self, mine: Result<Vec<u8>>, len: usize) -> Result<Result<Vec<u8>>> {
        let mut block = mine.map_err(|error| self.for_others(&error));
        let mut step = 1;
        while step < self.span() && self.place + step < self.size() {
            let places = step.min(self.size() - self.place - step);
            let theirs = self.receive(self.place + step, places * len).await;
            block = match (block, theirs) {
                (Ok(mut block), Ok(theirs)) => {
                    block.extend(theirs);
                    Ok(block)
                }
                (_, Err(error)) if error.is_loss() && self.ranks.is_none() => return Err(error),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
            step *= 2;
        }
        if self.place > 0 {
            let parent = self.place & (self.place - 1);
            let request = match &block {
                Ok(block) => self.send(parent, block),
                Err(error) => self.send_failure(parent, error),
            };
            self.complete(request?).await?;
        }
        Ok(block)
    }

    /// The beginning of the text with which other ranks report this rank's failure.
    fn origin(&self) -> String {
        format!("rank {} of the communicator: ", self.core.rank)
    }

    /// This rank's failure, as other ranks report it.
    fn for_others(&self, error: &Error) -> Error {
        match error.is_loss() {
            true => error.clone(),
            false => Error::new(error.class, format!("{}{}", self.origin(), error.detail)),
        }
    }

    /// Returns this rank's own error if the agreed failure is that one, otherwise the agreed
    /// failure.
    fn as_here(&self, agreed: Error, own: Option<Error>) -> Error {
        own.filter(|_| agreed.detail.starts_with(&self.origin()))
            .unwrap_or(agreed)
    }

    /// Sends this rank's failure to all other positions, for a rank that does not know its
    /// position.
    #[cold]
    pub(crate) async fn fail_everywhere(&self, error: &Error) -> Result<()> {
        let error = self.for_others(error);
        for place in (0..self.size()).filter(|place| self.rank_at(*place) != self.core.rank) {
            let request = self.send_failure(place, &error)?;
            self.complete(request).await?;
        }
        Ok(())
    }

    /// The most positions that the subtree of this one can have, itself included.
    fn span(&self) -> usize {
        match self.place {
            0 => self.size().next_power_of_two(),
            place => place & place.wrapping_neg(),
        }
    }

    fn rank_at(&self, place: usize) -> usize {
        self.ranks
            .as_ref()
            .map_or(place, |ranks| ranks[place] as usize)
    }

    fn send(&self, place: usize, bytes: &[u8]) -> Result<RequestId> {
        let peer = self
            .core
            .members
            .world(self.rank_at(place))
            .expect("places are ranks of the communicator");
        let key = Key {
            context: self.context,
            source: self.core.rank as i32,
            tag: self.tag,
        };
        let engine = &mut self.rank.lock().engine;
        engine
            .messages
            .send_owned(&mut engine.router, peer, key, bytes)
    }

    /// Sends a failure instead of bytes: an empty piece, then head and text.
    #[cold]
    fn send_failure(&self, place: usize, error: &Error) -> Result<RequestId> {
        self.send(place, &[])?;
        let head = [error.class.0, i32::from(error.is_loss())];
        let mut bytes = head.map(i32::to_ne_bytes).concat();
        bytes.extend(error.detail.as_bytes().iter().take(TEXT));
        self.send(place, &bytes)
    }

    /// Decodes the failure that the rank at a position has sent.
    #[cold]
    fn failure(&self, place: usize, bytes: &[u8]) -> Error {
        let (head, text) = bytes.split_at(bytes.len().min(HEAD));
        let text = String::from_utf8_lossy(text);
        let (class, is_loss) = match *head.as_chunks().0 {
            [class, is_loss] => (i32::from_ne_bytes(class), is_loss != [0; 4]),
            _ => (Class::OTHER.0, true),
        };
        if !is_loss {
            return Error::new(class, text.into_owned());
        }
        let rank = self.rank_at(place);
        let detail = format!("rank {rank} has left the making of a communicator: {text}");
        let context = bare(self.context);
        Error::new(class, detail).because(Cause::LeftCollective { context })
    }

    async fn complete(&self, request: RequestId) -> Result<()> {
        Completion {
            rank: self.rank.clone(),
            request,
        }
        .await
        .map(|_| ())
    }

    async fn receive(&self, place: usize, len: usize) -> Result<Vec<u8>> {
        let key = Key {
            context: self.context,
            source: self.rank_at(place) as i32,
            tag: self.tag,
        };
        let mut bytes = Vec::with_capacity(len);
        let mut has_failed = false;
        let _awaited = Awaited::new(&self.rank, key);
        poll_fn(|_| {
            let mut state = self.rank.lock();
            while bytes.len() < len {
                let Some(piece) = state.engine.messages.take_owned(&key) else {
                    return match state.engine.check_awaited(&state.objects.comms, &key) {
                        Ok(()) => Poll::Pending,
                        Err(error) => Poll::Ready(Err(error)),
                    };
                };
                if has_failed {
                    return Poll::Ready(Err(self.failure(place, &piece)));
                }
                has_failed = piece.is_empty();
                bytes.extend_from_slice(&piece);
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        Ok(bytes)
    }
}
