//! The arguments of all reductions: vectors, operation, and the parts of the result.

use std::ops::Range;

use datatype::Elements;

use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, Case, Collective};
use crate::op::Operation;

/// The vectors and the operation of a reduction.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The contribution of this rank; `None`: `receive` holds it (`MPI_IN_PLACE`).
    pub send: Option<Elements>,
    /// The memory for the result; `None` on ranks that get none.
    pub receive: Option<Elements>,
    /// The operation that combines the vectors.
    pub op: Operation,
}

impl Reduction {
    /// The contribution of this rank, from `send` or `receive`.
    pub(super) fn ours(&self) -> Option<&Elements> {
        self.send.as_ref().or(self.receive.as_ref())
    }

    /// True if the reduction has no elements.
    pub(super) fn is_empty(&self) -> bool {
        self.ours().is_none_or(|ours| ours.bytes() == 0)
    }

    /// The algorithm that the table chooses for this reduction.
    pub(super) fn choose(&self, call: &Call<'_>, collective: Collective) -> Algorithm {
        let bytes = self.ours().map_or(0, Elements::bytes);
        let case = Case {
            commutative: self.op.is_commutative(),
            ..call.case(bytes)
        };
        call.choose(collective, case)
    }

    /// Memory that contains this rank's contribution and may be changed.
    pub(super) fn accumulator(&self, call: &Call<'_>) -> Result<Elements> {
        let into = match (&self.receive, &self.send) {
            (Some(receive), _) => receive.clone(),
            (None, Some(send)) => call.elements(send.count(), send.ty())?,
            (None, None) => call.elements(0, &datatype::Predefined::BYTE.into())?,
        };
        if let Some(send) = &self.send {
            call.copy(&send.buffer(), &into.buffer());
        }
        Ok(into)
    }

    /// Copies the result to `receive`, if it is not there already.
    pub(super) fn deliver(&self, call: &Call<'_>, result: &Elements) {
        if let Some(receive) = &self.receive
            && !receive.is(result)
        {
            call.copy(&result.buffer(), &receive.buffer());
        }
    }
}

/// The number of elements of the result that each rank gets.
#[derive(Clone, Debug)]
pub enum Counts {
    /// Every rank gets this number of elements.
    Even(usize),
    /// Each rank gets a number of elements of its own.
    Each(Box<[usize]>),
}

impl Counts {
    /// The number of elements that a rank gets.
    pub fn of(&self, rank: usize) -> usize {
        match self {
            Counts::Even(count) => *count,
            Counts::Each(counts) => counts[rank],
        }
    }

    /// The positions of these ranks' elements in the whole vector.
    pub fn elements(&self, ranks: Range<usize>) -> Range<usize> {
        match self {
            Counts::Even(count) => ranks.start * count..ranks.end * count,
            Counts::Each(counts) => {
                let start = counts[..ranks.start].iter().sum();
                start..start + counts[ranks].iter().sum::<usize>()
            }
        }
    }
}
