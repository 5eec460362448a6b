//! Reductions between the two groups of an intercommunicator.

use datatype::Elements;

use super::{Between, FIRST_MEMBERS, INSIDE, numbers};
use crate::Result;
use crate::algorithms::{Algorithm, Case, Collective};
use crate::coll::calls::blocks::Blocks;
use crate::coll::calls::check::RootBetween;
use crate::coll::calls::reduction::{Counts, Reduction};
use crate::coll::calls::{bcast, gather, reduce, reduce_scatter};

impl Between<'_> {
    pub(super) async fn reduce(&self, reduction: &Reduction, root: i32) -> Result<()> {
        let (call, theirs) = (self.call.on_stage(FIRST_MEMBERS), self.groups.theirs());
        match (RootBetween::of(self.groups, root)?, &reduction.receive) {
            (RootBetween::Here, Some(result)) if result.bytes() > 0 => {
                call.receive(theirs.start, result.buffer())?.await
            }
            (RootBetween::There(root), _) => match self.reduced(reduction).await? {
                Some(sum) => call.send(theirs.start + root, sum.buffer())?.await,
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The combined vectors of this group, at its first member. `None` at the other members, and if
    /// the vectors have no elements.
    async fn reduced(&self, reduction: &Reduction) -> Result<Option<Elements>> {
        let Some(send) = reduction.send.as_ref().filter(|send| send.bytes() > 0) else {
            return Ok(None);
        };
        let members = numbers(self.groups.ours());
        let Some(call) = self.among(&members, INSIDE) else {
            return Ok(None);
        };
        if call.size() == 1 {
            return Ok(Some(send.clone()));
        }
        let is_first = call.me() == 0;
        let sum = match is_first {
            true => Some(call.elements(send.count(), send.ty())?),
            false => None,
        };
        let within = Reduction {
            send: Some(send.clone()),
            receive: sum.clone(),
            op: reduction.op.clone(),
        };
        reduce::flat(&call, &within, 0).await?;
        Ok(sum)
    }

    pub(super) async fn allreduce(&self, reduction: &Reduction) -> Result<()> {
        let (Some(send), Some(result)) = (&reduction.send, &reduction.receive) else {
            return Ok(());
        };
        if send.bytes() == 0 {
            return Ok(());
        }
        let bytes = send.bytes();
        let case = Case {
            commutative: reduction.op.is_commutative(),
            ..self.call.case(bytes)
        };
        match self.choose(Collective::Allreduce, case, |of| of.allreduce(bytes)) {
            Algorithm::Linear => self.combine_all(reduction, send, result).await,
            Algorithm::TwoLevelParts => self.combine_parts(reduction, send, result).await,
            _ => {
                self.swap_sums(reduction, result).await?;
                let members = numbers(self.groups.ours());
                match self.among(&members, INSIDE) {
                    Some(call) => bcast::flat(&call, &result.buffer(), 0).await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Each member receives the vectors of all members of the remote group, and combines them.
    async fn combine_all(
        &self,
        reduction: &Reduction,
        send: &Elements,
        result: &Elements,
    ) -> Result<()> {
        let remote = self.groups.theirs().len();
        let mut vectors = Vec::with_capacity(remote);
        for _ in 1..remote {
            vectors.push(self.call.elements(result.count(), result.ty())?);
        }
        // The last vector becomes the result, as the second operand of each combination.
        vectors.push(result.clone());
        let bytes = send.bytes();
        self.exchange(bytes, |_| send.buffer(), |member| vectors[member].buffer())
            .await?;
        let mut before = vectors[..remote - 1].iter().rev();
        before.try_for_each(|vector| self.call.combine(&reduction.op, vector, result))
    }

    /// Each member combines a part of the vectors of its group, and sends it to each member of the
    /// remote group.
    async fn combine_parts(
        &self,
        reduction: &Reduction,
        send: &Elements,
        result: &Elements,
    ) -> Result<()> {
        let members = numbers(self.groups.ours());
        let Some(call) = self.among(&members, INSIDE) else {
            return Ok(());
        };
        let counts = parts(send.count(), call.size());
        let part = match call.size() {
            1 => send.clone(),
            _ => {
                let part = call.elements(counts.of(call.me()), send.ty())?;
                let within = Reduction {
                    send: Some(send.clone()),
                    receive: Some(part.clone()),
                    op: reduction.op.clone(),
                };
                reduce_scatter::flat(&call, &within, &counts).await?;
                part
            }
        };
        let theirs = parts(result.count(), self.groups.theirs().len());
        let place = |member: usize| {
            let at = theirs.elements(member..member + 1);
            result.part(at.start, at.len()).buffer()
        };
        // The parts of a vector are longest in the smaller group.
        let least = call.size().min(self.groups.theirs().len());
        let bytes = send.count().div_ceil(least) * send.ty().size();
        self.exchange(bytes, |_| part.buffer(), place).await
    }

    /// The first members of the groups exchange the combined vectors of their groups. Each gets the
    /// other's in `result`.
    async fn swap_sums(&self, reduction: &Reduction, result: &Elements) -> Result<()> {
        let Some(sum) = self.reduced(reduction).await? else {
            return Ok(());
        };
        let first = self.groups.theirs().start;
        let call = self.call.on_stage(FIRST_MEMBERS);
        let (give, take) = ((first, sum.buffer()), (first, result.buffer()));
        call.exchange(give.0, give.1, take.0, take.1).await
    }

    pub(super) async fn reduce_scatter(
        &self,
        reduction: &Reduction,
        counts: &Counts,
    ) -> Result<()> {
        let (Some(send), Some(result)) = (&reduction.send, &reduction.receive) else {
            return Ok(());
        };
        if send.bytes() == 0 {
            return Ok(());
        }
        let members = numbers(self.groups.ours());
        let Some(call) = self.among(&members, INSIDE) else {
            return Ok(());
        };
        let own = result.part(0, counts.of(call.me())).buffer();
        if call.me() > 0 {
            self.reduced(reduction).await?;
            return gather::scatter_linear(&call, None, Some(&own), 0).await;
        }
        let all = call.elements(send.count(), send.ty())?;
        self.swap_sums(reduction, &all).await?;
        let part = |member: usize| {
            let at = counts.elements(member..member + 1);
            all.part(at.start, at.len()).buffer()
        };
        let blocks = Blocks::Each((0..call.size()).map(part).collect());
        gather::scatter_linear(&call, Some(&blocks), Some(&own), 0).await
    }
}

/// Divides `count` elements into nearly equal parts, one for each member.
fn parts(count: usize, members: usize) -> Counts {
    let start = |member: usize| count * member / members;
    Counts::Each(
        (0..members)
            .map(|member| start(member + 1) - start(member))
            .collect(),
    )
}
