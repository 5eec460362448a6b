//! Reduction to one rank along a k-ary tree, in pieces: a rank receives one piece from all branches
//! below it while it combines the previous piece.
//!
//! Invariant: operands are combined in the order of the members' positions in the tree.

use datatype::Elements;

use super::call::Call;
use super::pending::Pending;
use super::reduction::Reduction;
use crate::Result;
use crate::algorithms::{CHAIN_PIECE, branches};

/// This rank's part of a reduction along a tree.
struct Part<'a> {
    call: &'a Call<'a>,
    ours: Elements,
    /// The number of elements of each piece of the vector.
    each: usize,
    /// The ranks at the roots of the branches below.
    below: Vec<usize>,
    /// Memory for two pieces of each branch, used alternately.
    rooms: [Vec<Elements>; 2],
}

/// Combines up a k-ary tree whose root is `top`, and sends the result to `root`.
pub(super) async fn reduce(
    call: &Call<'_>,
    work: &Reduction,
    (root, top): (usize, usize),
) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let arity = call.case(ours.bytes()).tree_arity();
    let (branch, above) = branches::branch(call.before(top), call.size(), arity);
    let member = |place: usize| (place + top) % call.size();
    let below = branches::below(&branch, arity).map(|branch| member(branch.start));
    let part = Part::new(call, ours, below.collect())?;
    if let Some(above) = above {
        part.run(work, Some(member(above)), None).await?;
        if call.me() == root
            && let Some(receive) = &work.receive
        {
            call.receive(top, receive.buffer())?.await?;
        }
        return Ok(());
    }
    let result = match &work.receive {
        Some(receive) if call.me() == root => receive.clone(),
        _ => call.elements(ours.count(), ours.ty())?,
    };
    part.run(work, None, Some(&result)).await?;
    match call.me() == root {
        true => Ok(()),
        false => call.send(root, result.buffer())?.await,
    }
}

impl<'a> Part<'a> {
    fn new(call: &'a Call<'a>, ours: &Elements, below: Vec<usize>) -> Result<Part<'a>> {
        let each = (CHAIN_PIECE / ours.ty().size().max(1)).max(1);
        let room = |first: usize| -> Result<Vec<Elements>> {
            let count = ours.count().saturating_sub(first).min(each);
            below
                .iter()
                .map(|_| call.elements(count, ours.ty()))
                .collect()
        };
        Ok(Part {
            call,
            ours: ours.clone(),
            each,
            rooms: [room(0)?, room(each)?],
            below,
        })
    }

    /// The memory for piece `number` from branch `branch`.
    fn room(&self, number: usize, branch: usize) -> Elements {
        let left = self.ours.count().saturating_sub(number * self.each);
        self.rooms[number % 2][branch].part(0, left)
    }

    /// Combines all pieces, and sends each to the rank above, or copies it into the result.
    async fn run(
        &self,
        work: &Reduction,
        above: Option<usize>,
        result: Option<&Elements>,
    ) -> Result<()> {
        let pieces = self.ours.count().div_ceil(self.each);
        let receive = |number: usize| -> Result<Vec<_>> {
            let wanted = self.below.iter().enumerate().filter(|_| number < pieces);
            wanted
                .map(|(branch, &from)| {
                    let room = self.room(number, branch);
                    self.call.receive(from, room.buffer())
                })
                .collect()
        };
        let mut ahead = receive(0)?;
        let mut sending: Option<Pending<'_>> = None;
        for number in 0..pieces {
            // The next piece uses the memory of the previous one.
            if let Some(last) = sending.take() {
                last.await?;
            }
            let next = receive(number + 1)?;
            for receiving in std::mem::replace(&mut ahead, next) {
                receiving.await?;
            }
            let mut sum = self.ours.part(number * self.each, self.each);
            for branch in 0..self.below.len() {
                let theirs = self.room(number, branch);
                self.call
                    .combine_part(&work.op, &sum, &theirs, self.ours.bytes())?;
                sum = theirs;
            }
            if let Some(above) = above {
                sending = Some(self.call.send(above, sum.buffer())?);
            } else if let Some(result) = result {
                let place = result.part(number * self.each, self.each);
                if !place.is(&sum) {
                    self.call.copy(&sum.buffer(), &place.buffer());
                }
            }
        }
        match sending {
            Some(last) => last.await,
            None => Ok(()),
        }
    }
}
