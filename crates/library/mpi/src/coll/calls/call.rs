//! A collective operation in flight: its members, and the communication steps of algorithms.

use datatype::local_work::LocalWork;
use datatype::{Buffer, Elements, Predefined, Type};

use super::carrier::By;
use super::pending::Pending;
use crate::algorithms::{Algorithm, CACHED_PIECE, Case, Collective, Network};
use crate::comm::{self, COLLECTIVE, Core, PERSISTENT};
use crate::matching::Key;
use crate::op::Operation;
use crate::rank::Rank;
use crate::request::Mode;
use crate::shape::{Shape, Spread};
use crate::state::Engine;
use crate::{Error, Result};

/// Bytes of a piece: its elements are combined while the next piece is in flight.
const PIECE: usize = 128 << 10;

/// The number, in the cache of algorithm choices, of subsets that are neither within one host nor
/// one leader of each host.
const OTHER_PART: u64 = 3;

/// A collective operation that is in progress, with this rank's part in it.
pub(super) struct Call<'a> {
    pub(super) by: By<'a>,
    pub(super) core: &'a Core,
    /// The context of the operation's messages.
    context: u64,
    /// The tag that separates this operation from others in flight on the communicator.
    tag: i32,
    /// The members that take part, with their hosts; `None`: all members of the communicator.
    among: Option<(&'a [u32], Spread)>,
    /// Bytes of a piece of a vector that is combined while it travels.
    piece: usize,
    /// True if the choice of an algorithm for these members is cached for later calls.
    keeps_choices: bool,
    /// This rank's number among the members that take part in the operation.
    me: usize,
    size: usize,
}

impl<'a> Call<'a> {
    /// The collective operation whose messages have the tag `tag`.
    #[inline(always)]
    pub(super) fn new(rank: &'a Rank, core: &'a Core, tag: i32) -> Call<'a> {
        Call::carried(By::Rank(rank), core, tag)
    }

    /// The operation with the tag `tag`, whose messages `by` carries.
    #[inline(always)]
    pub(super) fn carried(by: By<'a>, core: &'a Core, tag: i32) -> Call<'a> {
        Call {
            by,
            core,
            context: core.context | COLLECTIVE,
            tag,
            among: None,
            piece: PIECE,
            keeps_choices: true,
            me: core.rank,
            size: core.size(),
        }
    }

    /// The part of this operation on stage `stage` among `members`, which are numbered in this
    /// order; `spread` is their distribution over hosts. `None` if this rank is not one of them.
    /// Messages of different stages do not match, so stages may overlap in time.
    pub(super) fn among<'b>(
        &self,
        members: &'b [u32],
        spread: Spread,
        stage: u64,
    ) -> Option<Call<'b>>
    where
        'a: 'b,
    {
        debug_assert!(self.among.is_none());
        let is_this = |&member: &u32| member as usize == self.core.rank;
        let me = members.iter().position(is_this)?;
        Some(Call {
            context: self.context | comm::stage(stage),
            among: Some((members, spread)),
            me,
            size: members.len(),
            ..*self
        })
    }

    /// This operation with pieces that stay in the caches of the host's processors.
    pub(super) fn in_cache(&self) -> Call<'a> {
        Call {
            piece: CACHED_PIECE,
            ..*self
        }
    }

    /// This operation for members that no other calls have: the choice of algorithm is not cached.
    pub(super) fn unremembered(&self) -> Call<'a> {
        Call {
            keeps_choices: false,
            ..*self
        }
    }

    /// This operation with all its members, and with the messages of stage `stage`.
    pub(super) fn on_stage(&self, stage: u64) -> Call<'a> {
        Call {
            context: self.context | comm::stage(stage),
            ..*self
        }
    }

    /// An instance of the persistent operation with the tag `tag`. All instances use that tag: they
    /// run one after another, so their messages match in order.
    pub(super) fn persistent(rank: &'a Rank, core: &'a Core, tag: i32) -> Call<'a> {
        Call {
            context: core.context | COLLECTIVE | PERSISTENT,
            ..Call::new(rank, core, tag)
        }
    }

    /// This rank's number among the members that take part in the operation.
    #[inline(always)]
    pub(super) fn me(&self) -> usize {
        self.me
    }

    /// The number of members that take part in the operation.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The rank in the communicator of the member with this number among those that take part.
    #[inline(always)]
    pub(super) fn member(&self, number: usize) -> usize {
        match self.among {
            None => number,
            Some((members, _)) => members[number] as usize,
        }
    }

    /// The world ranks of the members that take part in the operation.
    pub(super) fn worlds(&self) -> Vec<usize> {
        let members = (0..self.size()).map(|number| self.member(number));
        members
            .filter_map(|member| self.core.members.world(member))
            .collect()
    }

    /// The member `steps` after this one, in a circle.
    #[inline(always)]
    pub(super) fn after(&self, steps: usize) -> usize {
        (self.me() + steps) % self.size()
    }

    /// The member `steps` before this one, in a circle; `steps` is at most the size.
    #[inline(always)]
    pub(super) fn before(&self, steps: usize) -> usize {
        (self.me() + self.size() - steps) % self.size()
    }

    /// The distribution over hosts of the communicator's members.
    pub(super) fn shape(&self) -> &'a Shape {
        self.core.shape(|world| self.by.host_of(world))
    }

    /// The facts by which the table chooses the algorithm of this call, if it has `bytes` bytes,
    /// blocks of one size, and a commutative operation if any.
    pub(super) fn case(&self, bytes: usize) -> Case {
        let spread = match self.among {
            None => self.shape().spread(),
            Some((_, spread)) => spread,
        };
        Case {
            spread,
            network: self.network(),
            arity: self.by.algorithms().arity(),
            ..Case::usual(bytes, self.size)
        }
    }

    /// The network between the members. They agree on it before an algorithm runs.
    fn network(&self) -> Network {
        let agreed = self.core.network.agreed.get();
        agreed.copied().unwrap_or(Network::MEMORY)
    }

    /// The algorithm that the table chooses for this call.
    pub(super) fn choose(&self, collective: Collective, case: Case) -> Algorithm {
        let choose = || self.by.algorithms().algorithm(collective, case);
        if case.is_in_memory() || !self.keeps_choices {
            return choose();
        }
        let part = match &self.among {
            None => 0,
            Some((_, spread)) if spread.hosts <= 1 => 1,
            Some((_, spread)) if spread.sharing == 1 => 2,
            Some(_) => OTHER_PART,
        };
        let recent = self.core.recent_choices();
        recent.get_or((collective, part), &case, choose)
    }

    /// The algorithm for a call between two groups: a cached choice, or the result of `choose`.
    pub(super) fn choose_between(
        &self,
        collective: Collective,
        joint: &Case,
        choose: impl FnOnce() -> Algorithm,
    ) -> Algorithm {
        if joint.is_in_memory() {
            return choose();
        }
        // Subsets with one rank of each host do not occur between two groups.
        let recent = self.core.recent_choices();
        recent.get_or((collective, OTHER_PART), joint, choose)
    }

    /// Starts a send. The buffer must not change until the returned message is complete.
    #[inline]
    pub(super) fn send(&self, to: usize, buffer: Buffer) -> Result<Pending<'a>> {
        match self.by {
            By::Rank(rank) => self.start_send(rank, &mut rank.lock().engine, to, buffer),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => self.carry_send(carrier, to, &buffer),
        }
    }

    /// Starts a receive of exactly the buffer's length. Messages of one member match in the order
    /// of sending.
    #[inline]
    pub(super) fn receive(&self, from: usize, buffer: Buffer) -> Result<Pending<'a>> {
        match self.by {
            By::Rank(rank) => self.start_receive(rank, &mut rank.lock().engine, from, buffer),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => self.carry_receive(carrier, from, &buffer),
        }
    }

    /// Sends to one member and receives from another.
    #[inline]
    pub(super) async fn exchange(
        &self,
        to: usize,
        out: Buffer,
        from: usize,
        into: Buffer,
    ) -> Result<()> {
        let (receiving, sending) = match self.by {
            By::Rank(rank) => {
                let mut state = rank.lock();
                (
                    self.start_receive(rank, &mut state.engine, from, into)?,
                    self.start_send(rank, &mut state.engine, to, out)?,
                )
            }
            #[cfg(feature = "carriers")]
            By::Carrier(_) => (self.receive(from, into)?, self.send(to, out)?),
        };
        receiving.await?;
        sending.await
    }

    /// Sends to one member and receives from another, piece by piece.
    pub(super) async fn exchange_pieces(
        &self,
        (to, out): (usize, Buffer),
        (from, into): (usize, Buffer),
    ) -> Result<()> {
        let mut at = 0;
        let mut last = None;
        while at < out.len().max(into.len()) {
            let (ours, theirs) = (out.slice(at, self.piece), into.slice(at, self.piece));
            let receiving = match theirs.is_empty() {
                true => None,
                false => Some(self.receive(from, theirs)?),
            };
            let sending = match ours.is_empty() {
                true => None,
                false => Some(self.send(to, ours)?),
            };
            if let Some((receiving, sending)) = last.replace((receiving, sending)) {
                end(receiving, sending).await?;
            }
            at += self.piece;
        }
        match last {
            Some((receiving, sending)) => end(receiving, sending).await,
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn start_send(
        &self,
        rank: &'a Rank,
        engine: &mut Engine,
        to: usize,
        buffer: Buffer,
    ) -> Result<Pending<'a>> {
        let to = self.member(to);
        let peer = self.world(to)?;
        let Engine {
            messages, router, ..
        } = engine;
        let key = self.key(self.core.rank);
        let id = messages.send(router, Mode::Standard, &buffer, peer, key)?;
        let request = (id != messages.requests.done()).then_some(id);
        Ok(Pending::of_rank(rank, request, None, to))
    }

    #[inline(always)]
    fn start_receive(
        &self,
        rank: &'a Rank,
        engine: &mut Engine,
        from: usize,
        buffer: Buffer,
    ) -> Result<Pending<'a>> {
        let expected = Some(buffer.len() as u64);
        let from = self.member(from);
        let Engine {
            messages, router, ..
        } = engine;
        let id = messages.receive(buffer, self.key(from))?;
        messages.flush(router)?;
        Ok(Pending::of_rank(rank, Some(id), expected, from))
    }

    #[inline(always)]
    pub(super) fn key(&self, source: usize) -> Key {
        Key {
            context: self.context,
            source: source as i32,
            tag: self.tag,
        }
    }

    #[inline(always)]
    pub(super) fn world(&self, member: usize) -> Result<usize> {
        self.core
            .members
            .world(member)
            .ok_or_else(|| self.core.no_such_rank(member as i32))
    }

    /// Temporary memory of the operation for `count` bytes.
    pub(super) fn bytes(&self, count: usize) -> Result<Buffer> {
        Ok(self.elements(count, &Predefined::BYTE.into())?.buffer())
    }

    /// Temporary memory of the operation for `count` elements.
    pub(super) fn elements(&self, count: usize, ty: &Type) -> Result<Elements> {
        match self.by {
            By::Rank(rank) => Ok(rank.lock().engine.scratch.elements(count, ty)?),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => carrier.elements(count, ty),
        }
    }

    /// Copies bytes within this rank's memory, as many as both buffers have.
    #[inline(always)]
    pub(super) fn copy(&self, from: &Buffer, to: &Buffer) {
        match self.by {
            By::Rank(rank) => {
                let bytes = from.copy_to(to);
                rank.worked(LocalWork::Copy, bytes, bytes);
            }
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => {
                let bytes = from.len().min(to.len());
                carrier.worked(LocalWork::Copy, bytes, bytes);
            }
        }
    }

    /// Combines elements: `inout[i] = input[i] op inout[i]`.
    #[inline]
    pub(super) fn combine(&self, op: &Operation, input: &Elements, inout: &Elements) -> Result<()> {
        self.combine_part(op, input, inout, inout.bytes())
    }

    /// Combines elements that are a part of vectors of `whole` bytes, as [`combine`](Self::combine)
    /// does.
    #[inline]
    pub(super) fn combine_part(
        &self,
        op: &Operation,
        input: &Elements,
        inout: &Elements,
        whole: usize,
    ) -> Result<()> {
        match self.by {
            By::Rank(rank) => rank.combine(op, input, inout, whole),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => {
                if let Some(work) = op.local_work(inout.ty()) {
                    carrier.worked(work, inout.bytes().min(input.bytes()), whole);
                }
                Ok(())
            }
        }
    }

    /// Sends `give` to one member, and combines elements from another into `keep`, piece by piece.
    /// `first`: the received elements are the first operand where the order matters.
    pub(super) async fn exchange_and_combine(
        &self,
        (to, give): (usize, Elements),
        (from, keep): (usize, Elements),
        op: &Operation,
        first: bool,
    ) -> Result<()> {
        let each = (self.piece / keep.ty().size().max(1)).max(1);
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
                self.combine_part(op, &theirs, &ours, keep.bytes())?;
            } else {
                self.combine_part(op, &ours, &theirs, keep.bytes())?;
                self.copy(&theirs.buffer(), &ours.buffer());
            }
            if let Some(sending) = sending {
                sending.await?;
            }
        }
        Ok(())
    }
}

async fn end(receiving: Option<Pending<'_>>, sending: Option<Pending<'_>>) -> Result<()> {
    if let Some(receiving) = receiving {
        receiving.await?;
    }
    match sending {
        Some(sending) => sending.await,
        None => Ok(()),
    }
}
