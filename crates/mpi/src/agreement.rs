//! How ranks agree on what a new communicator is: a few bytes over point-to-point messages of their own context.
//!
//! Trees are binomial: place `p` hangs below `p` with its lowest bit cleared.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::Result;
use crate::comm::{AGREEMENT, COLLECTIVE, Core};
use crate::matching::Key;
use crate::rank::Rank;
use crate::request::RequestId;
use crate::task::Completion;

/// The ranks that agree, each of which knows its place.
pub(crate) struct Circle {
    rank: Arc<Rank>,
    core: Arc<Core>,
    /// Ranks of `core` by their place; none: all of them in order.
    ranks: Option<Vec<u32>>,
    place: usize,
    context: u64,
    tag: i32,
}

impl Circle {
    /// All ranks of a communicator, in the collective operation with this tag.
    pub fn all(rank: &Arc<Rank>, core: &Arc<Core>, tag: i32) -> Circle {
        let context = core.context | COLLECTIVE | AGREEMENT;
        Circle {
            rank: rank.clone(),
            core: core.clone(),
            ranks: None,
            place: core.rank,
            context,
            tag,
        }
    }

    /// Some of them, this one at `place`.
    pub fn some(
        rank: &Arc<Rank>,
        core: &Arc<Core>,
        ranks: Vec<u32>,
        place: usize,
        tag: i32,
    ) -> Circle {
        Circle {
            ranks: Some(ranks),
            place,
            ..Circle::all(rank, core, tag)
        }
    }

    /// The tag is the user's, and so apart from those of collective operations.
    pub fn with_users_tag(self, tag: i32) -> Circle {
        Circle {
            context: self.core.context | AGREEMENT,
            tag,
            ..self
        }
    }

    fn size(&self) -> usize {
        self.ranks.as_ref().map_or(self.core.size(), Vec::len)
    }

    /// What the first place says, `len` bytes, at every place.
    pub async fn bcast(&self, said: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        let bytes = match self.place {
            0 => said,
            place => self.hear(place & (place - 1), len).await?,
        };
        let mut sent = Vec::new();
        let mut step = self.reach() / 2;
        while step > 0 {
            if self.place + step < self.size() {
                sent.push(self.tell(self.place + step, &bytes)?);
            }
            step /= 2;
        }
        for request in sent {
            self.sent(request).await?;
        }
        Ok(bytes)
    }

    /// What every place says, as many bytes each, in order, at every place.
    pub async fn allgather(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let len = mine.len();
        let mut block = mine;
        let mut step = 1;
        while step < self.reach() && self.place + step < self.size() {
            let places = step.min(self.size() - self.place - step);
            block.extend(self.hear(self.place + step, places * len).await?);
            step *= 2;
        }
        if self.place > 0 {
            let request = self.tell(self.place & (self.place - 1), &block)?;
            self.sent(request).await?;
        }
        self.bcast(block, len * self.size()).await
    }

    /// How many places the tree below this one, itself included, may have.
    fn reach(&self) -> usize {
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

    fn tell(&self, place: usize, bytes: &[u8]) -> Result<RequestId> {
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
        let state = &mut *self.rank.lock();
        state
            .messages
            .send_owned(&mut state.router, peer, key, bytes)
    }

    async fn sent(&self, request: RequestId) -> Result<()> {
        Completion {
            rank: self.rank.clone(),
            request,
        }
        .await
        .map(|_| ())
    }

    async fn hear(&self, place: usize, len: usize) -> Result<Vec<u8>> {
        let key = Key {
            context: self.context,
            source: self.rank_at(place) as i32,
            tag: self.tag,
        };
        let mut bytes = Vec::with_capacity(len);
        poll_fn(|_| {
            let messages = &mut self.rank.lock().messages;
            while bytes.len() < len {
                let Some(piece) = messages.take_owned(&key) else {
                    return Poll::Pending;
                };
                bytes.extend_from_slice(&piece);
            }
            Poll::Ready(())
        })
        .await;
        Ok(bytes)
    }
}
