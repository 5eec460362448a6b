//! Reductions by algorithms for a power of two of ranks: each surplus rank sends its vector to a
//! neighbour, which takes part for both and returns the result.

use std::ops::Range;

use datatype::Elements;

use super::call::Call;
use crate::Result;
use crate::op::Operation;

/// The ranks that take part in an algorithm for a power of two of ranks, in the order of ranks. For
/// each surplus rank the first ranks have one pair: its second rank takes part, and represents its
/// first.
pub(super) struct Halves {
    /// The number of pairs of which only the second rank participates.
    pairs: usize,
    /// The number of ranks that take part: a power of two.
    pub(super) size: usize,
    /// This rank's number among the participants; `None` if its neighbour represents it.
    pub(super) me: Option<usize>,
}

impl Halves {
    pub(super) fn of(call: &Call<'_>) -> Halves {
        let size = 1 << call.size().ilog2();
        let pairs = call.size() - size;
        let me = match call.me() {
            me if me >= 2 * pairs => Some(me - pairs),
            me if me % 2 == 1 => Some(me / 2),
            _ => None,
        };
        Halves { pairs, size, me }
    }

    /// The rank of the participant that has the number `place`.
    pub(super) fn rank(&self, place: usize) -> usize {
        if place < self.pairs {
            2 * place + 1
        } else {
            place + self.pairs
        }
    }

    /// The ranks that these participants represent, the participants included.
    pub(super) fn ranks(&self, places: Range<usize>) -> Range<usize> {
        let first = |place: usize| {
            if place < self.pairs {
                2 * place
            } else {
                place + self.pairs
            }
        };
        first(places.start)..first(places.end)
    }

    /// The participant that represents this rank; `None` if this rank participates.
    fn delegate(&self, call: &Call<'_>) -> Option<usize> {
        self.me.is_none().then(|| call.me() + 1)
    }

    /// The rank that this rank represents beside itself, if there is one.
    pub(super) fn client(&self, call: &Call<'_>) -> Option<usize> {
        (self.me.is_some() && call.me() < 2 * self.pairs).then(|| call.me() - 1)
    }

    /// To be called before the algorithm: combines the contributions of represented ranks into
    /// those of their representatives. Returns false if another rank represents this one.
    pub(super) async fn fold(
        &self,
        call: &Call<'_>,
        sum: &Elements,
        op: &Operation,
    ) -> Result<bool> {
        if let Some(delegate) = self.delegate(call) {
            let none = sum.part(0, 0);
            call.exchange_and_combine((delegate, sum.clone()), (delegate, none), op, true)
                .await?;
            return Ok(false);
        }
        if let Some(client) = self.client(call) {
            let none = sum.part(0, 0);
            call.exchange_and_combine((client, none), (client, sum.clone()), op, true)
                .await?;
        }
        Ok(true)
    }

    /// To be called after the algorithm: sends the result to the represented ranks.
    pub(super) async fn unfold(&self, call: &Call<'_>, result: &Elements) -> Result<()> {
        if let Some(delegate) = self.delegate(call) {
            call.receive(delegate, result.buffer())?.await?;
        } else if let Some(client) = self.client(call) {
            call.send(client, result.buffer())?.await?;
        }
        Ok(())
    }
}
