//! Small blocking collectives of members that share memory: each shows what it has in its place of a lane and looks at
//! the places of the others, without packets.
//!
//! A communicator gets a lane after a few calls that could use one, by agreement of its members; without one it goes on
//! with messages. What must always hold:
//! - all members take the same turns, because whether a call takes one follows from what they all know;
//! - operands are combined in one order, so all ranks get the same bits.

use std::sync::Arc;

use channel::Router;
use channel::shm::{BODY, CollectiveBuffer, LANES, SLOTS, Shm};
use datatype::reduce::reduce_into;
use datatype::{Buffer, Elements, Op, Predefined};

use super::Work;
use super::call::Call;
use super::reduce::{Reduction, allreduce};
use super::table::{Algorithm, Collective};
use crate::comm::Members;
use crate::op::Operation;
use crate::rank::{Rank, State};
use crate::wait::Waiting;
use crate::{Class, Error, Result};

/// The longest vector that is done so, in bytes.
pub(super) const LONGEST: usize = BODY;
/// Calls on a communicator that could use a lane before its members try to agree on one.
const TRIALS: u32 = 2;
/// Up to so many members everyone looks at everyone; beyond, all look at one, which looks at all.
const FLAT: usize = 16;

/// A communicator's lane.
pub(crate) enum Sharing {
    /// There is none yet: so many calls could have used one, and after so many the members try to agree.
    Without {
        calls: u32,
        due: u32,
    },
    Ready(Box<Shared>),
}

impl Default for Sharing {
    fn default() -> Self {
        Sharing::Without {
            calls: 0,
            due: TRIALS,
        }
    }
}

impl Sharing {
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        matches!(self, Sharing::Ready(_))
    }

    /// Counts a call that could use a lane. True if it is time to agree on one.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        match self {
            Sharing::Without { calls, due } => {
                *calls = calls.saturating_add(1);
                *calls > *due
            }
            Sharing::Ready(_) => false,
        }
    }

    /// The members found no lane: they will try again, less and less often.
    fn put_off(&mut self) {
        if let Sharing::Without { calls, due } = self {
            (*calls, *due) = (0, due.saturating_mul(8));
        }
    }
}

pub(crate) struct Shared {
    held: Arc<Held>,
    /// The last turn taken.
    turn: u64,
    /// All members are known to be done with this turn.
    all_done: u64,
}

/// A lane in use, or one whose members may still be looking at it.
struct Held {
    lane: CollectiveBuffer,
    /// Where in the shared memory its members are.
    places: Members,
    /// Where this rank is.
    me: usize,
}

/// The lanes of a rank.
#[derive(Default)]
pub struct Lanes {
    held: Vec<Option<Arc<Held>>>,
    /// The highest turn taken in lanes that are free again.
    highest: u64,
    /// A thread is agreeing on one: no other may offer the same.
    offered: bool,
}

impl Lanes {
    /// The free lanes as bits, and the first turn that was never taken.
    fn offer(&mut self) -> (u64, u64) {
        let mut free = u64::MAX;
        let mut highest = self.highest;
        self.held.resize_with(LANES, || None);
        for (index, place) in self.held.iter_mut().enumerate() {
            let Some(held) = place else { continue };
            highest = highest.max(held.lane.done(held.me));
            if Arc::strong_count(held) > 1 || held.is_looked_at() {
                free &= !(1 << index);
            } else {
                *place = None;
            }
        }
        self.highest = highest;
        self.offered = free != 0;
        (free, highest + 1)
    }
}

impl Held {
    /// Is a member not done with the last turn that this rank took?
    fn is_looked_at(&self) -> bool {
        let last = self.lane.done(self.me);
        self.places.iter().any(|place| self.lane.done(place) < last)
    }
}

impl Rank {
    /// The members agree on a lane.
    #[cold]
    pub(super) fn agree_on_lane(
        &self,
        waiting: &Waiting,
        call: &Call<'_>,
        comm: u32,
    ) -> Result<()> {
        let (free, turn) = {
            let state = &mut *self.lock();
            let members = &state.comms.get(comm)?.core.members;
            let shares = places(&state.router, members).is_some() && !state.lanes.offered;
            if shares { state.lanes.offer() } else { (0, 0) }
        };
        let agreed = self.block_on(waiting, agree(call, free, turn));
        let State {
            comms,
            lanes,
            router,
            ..
        } = &mut *self.lock();
        lanes.offered &= free == 0;
        let (free, turn) = agreed?;
        let entry = comms.get_mut(comm)?;
        let Some((shm, places)) = places(router, &entry.core.members).filter(|_| free != 0) else {
            entry.sharing.put_off();
            return Ok(());
        };
        let index = free.trailing_zeros() as usize;
        let held = Held {
            lane: shm.lane(index)?,
            places,
            me: shm.place(),
        };
        let held = Arc::new(held);
        lanes.held[index] = Some(held.clone());
        entry.sharing = Sharing::Ready(Box::new(Shared {
            held,
            turn: turn - 1,
            all_done: turn - 1,
        }));
        Ok(())
    }
}

/// The memory that the members share, and where in it they are, if they share any.
fn places<'a>(router: &'a Router, members: &Members) -> Option<(&'a Shm, Members)> {
    let shm = router.shared_memory()?;
    let place = |member| Some(shm.local().of(member)? as u32);
    let places: Option<Vec<u32>> = members.iter().map(place).collect();
    Some((shm, places?.into()))
}

/// The lanes that are free at all members, and the first turn that is new to all.
async fn agree(call: &Call<'_>, free: u64, turn: u64) -> Result<(u64, u64)> {
    let numbers = call.elements(2, &Predefined::UINT64_T.into())?;
    let [lanes, turns] = [0, 1].map(|at| numbers.part(at, 1));
    for (elements, number, op) in [(&lanes, free, Op::Band), (&turns, turn, Op::Max)] {
        elements.buffer().unpack(0, &number.to_ne_bytes());
        let work = Reduction {
            send: None,
            receive: Some(elements.clone()),
            op: Operation::Predefined(op),
        };
        allreduce(call, &work, Algorithm::RecursiveDoubling).await?;
    }
    let mut bytes = [0; 16];
    numbers.buffer().pack(0, &mut bytes);
    let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
    Ok((number(0), number(1)))
}

/// One look of a member at a lane, in the turn that it takes next.
struct Turn<'a> {
    shared: &'a mut Shared,
    shm: &'a Shm,
    /// This rank among the members.
    me: usize,
    collective: Collective,
    /// Bytes of the vector.
    len: usize,
    /// From this length on vectors are written past the cache.
    past_cache: usize,
}

impl Turn<'_> {
    #[inline(always)]
    fn number(&self) -> u64 {
        self.shared.turn + 1
    }

    #[inline(always)]
    fn size(&self) -> usize {
        self.shared.held.places.len()
    }

    #[inline(always)]
    fn place(&self, member: usize) -> usize {
        self.shared
            .held
            .places
            .world(member)
            .expect("members are numbered up to the size")
    }

    /// Tells collectives and lengths apart.
    #[inline(always)]
    fn note(&self) -> u32 {
        (self.collective as u32) << 16 | self.len as u32
    }

    /// Shows the vector, and wakes those who may sleep until they see it. False: somebody may still look at what is in
    /// its place.
    #[inline(always)]
    fn show(&mut self, vector: &Buffer) -> bool {
        if self.number() > self.shared.all_done + SLOTS && !self.has_room() {
            return false;
        }
        let held = &self.shared.held;
        held.lane.post(
            held.me,
            self.number(),
            self.note(),
            self.len,
            |room| match self.len {
                0 => {}
                len if len < self.past_cache => _ = vector.pack(0, room),
                _ => _ = vector.pack_past_cache(0, room),
            },
        );
        for member in (0..self.size()).filter(|&member| member != self.me) {
            self.shm.ring(self.place(member));
        }
        true
    }

    #[cold]
    fn has_room(&mut self) -> bool {
        let held = &self.shared.held;
        let done = held.places.iter().map(|place| held.lane.done(place)).min();
        self.shared.all_done = self.shared.all_done.max(done.unwrap_or_default());
        self.number() <= self.shared.all_done + SLOTS
    }

    /// Has a member shown its vector?
    #[inline(always)]
    fn shows(&self, member: usize) -> Result<bool> {
        match self
            .shared
            .held
            .lane
            .posted(self.place(member), self.number())
        {
            None => Ok(false),
            Some(note) if note == self.note() => Ok(true),
            Some(note) => Err(self.mismatch(member, note)),
        }
    }

    #[cold]
    fn mismatch(&self, member: usize, note: u32) -> Error {
        let theirs = Collective::ALL
            .get(note as usize >> 16)
            .map_or("something else", |of| of.name());
        let detail = format!(
            "rank {member} of the communicator called {theirs} with {} bytes where this rank called {} with {}: all \
             ranks must call the same collective with counts and datatypes that fit together",
            note & 0xffff,
            self.collective.name(),
            self.len
        );
        Error::new(Class::TRUNCATE, detail)
    }

    /// What a member shows.
    #[inline(always)]
    fn see<R>(&self, member: usize, then: impl FnOnce(&[u8]) -> R) -> R {
        self.shared
            .held
            .lane
            .read(self.place(member), self.number(), self.len, then)
    }

    /// Folds what members show, from the one before `left` down to `last`. False: one has not come.
    #[inline(always)]
    fn fold(&self, vectors: &Vectors, left: &mut usize, last: usize) -> Result<bool> {
        while *left > last {
            if !self.shows(*left - 1)? {
                return Ok(false);
            }
            let member = *left - 1;
            let fold = |bytes: &[u8]| vectors.fold(bytes, *left == self.size());
            // What this rank shows may have gone past the cache; where its vector came from it still is.
            let own = member == self.me && vectors.stays;
            match own
                .then(|| vectors.ours.with_dense(0, self.len, fold))
                .flatten()
            {
                Some(done) => done?,
                None => self.see(member, fold)?,
            }
            *left -= 1;
        }
        Ok(true)
    }

    /// This rank is done with the turn. `all`: every member has taken it, and so is done with those before.
    #[inline(always)]
    fn end(&mut self, all: bool) {
        let turn = self.number();
        self.shared.turn = turn;
        self.shared.held.lane.set_done(self.shared.held.me, turn);
        if all {
            self.shared.all_done = turn - 1;
        }
    }

    /// Wakes a member that may sleep until this rank is done.
    #[inline(always)]
    fn tell(&self, member: usize) {
        self.shm.ring(self.place(member));
    }
}

/// A call that takes a turn.
pub(super) struct Taking<'a> {
    pub rank: &'a Rank,
    pub waiting: &'a Waiting<'a>,
    pub comm: u32,
    pub size: usize,
    pub collective: Collective,
    pub len: usize,
}

impl Taking<'_> {
    /// Looks until `step` says that the turn is over.
    #[inline(always)]
    fn take(&self, mut step: impl FnMut(&mut Turn) -> Result<bool>) -> Result<()> {
        self.rank.wait_until(self.waiting, |state| {
            let State { comms, router, .. } = state;
            let entry = comms.get_mut(self.comm)?;
            let (Sharing::Ready(shared), Some(shm)) = (&mut entry.sharing, router.shared_memory())
            else {
                return Err(gone());
            };
            let past_cache = shm.non_temporal_vectors_from();
            let (me, collective, len) = (entry.core.rank, self.collective, self.len);
            let over = step(&mut Turn {
                shared,
                shm,
                me,
                collective,
                len,
                past_cache,
            })?;
            Ok(over.then_some(()))
        })
    }

    #[inline]
    pub fn run(&self, work: &Work) -> Result<()> {
        match work {
            Work::Bcast { buffer, root } => self.bcast(buffer, *root as usize),
            Work::Reduce { reduction, root } => {
                self.reduce(&Vectors::of(reduction), *root as usize)
            }
            Work::Allreduce(reduction) => self.all(&Vectors::of(reduction)),
            _ => self.all(&Vectors::none()),
        }
    }

    fn bcast(&self, buffer: &Buffer, root: usize) -> Result<()> {
        self.take(|turn| {
            if turn.me == root {
                let shown = turn.show(buffer);
                if shown {
                    turn.end(false);
                }
                return Ok(shown);
            }
            if !turn.shows(root)? {
                return Ok(false);
            }
            turn.see(root, |bytes| buffer.unpack(0, bytes));
            turn.end(false);
            turn.tell(root);
            Ok(true)
        })
    }

    fn reduce(&self, vectors: &Vectors, root: usize) -> Result<()> {
        let (mut shown, mut left) = (false, self.size);
        self.take(|turn| {
            shown = shown || turn.show(&vectors.ours);
            if turn.me != root || !shown {
                if shown {
                    turn.end(false);
                }
                return Ok(shown);
            }
            if !turn.fold(vectors, &mut left, 0)? {
                return Ok(false);
            }
            turn.end(true);
            let others = (0..self.size).filter(|&member| member != root);
            others.for_each(|member| turn.tell(member));
            Ok(true)
        })
    }

    /// Everyone looks at everyone: an allreduce, and a barrier, which is one of nothing.
    #[inline(always)]
    fn all(&self, vectors: &Vectors) -> Result<()> {
        if self.size > FLAT {
            return self.one_for_all(vectors);
        }
        let (mut shown, mut left) = (false, self.size);
        self.take(|turn| {
            shown = shown || turn.show(&vectors.ours);
            let over = shown && turn.fold(vectors, &mut left, 0)?;
            if over {
                turn.end(true);
            }
            Ok(over)
        })
    }

    /// The same where that would cost too much: the first member folds, and shows the result.
    #[inline(never)]
    fn one_for_all(&self, vectors: &Vectors) -> Result<()> {
        let mut own = vec![0; self.len];
        vectors.ours.pack(0, &mut own);
        let (mut shown, mut left) = (false, self.size);
        self.take(|turn| {
            if turn.me > 0 {
                shown = shown || turn.show(&vectors.ours);
                if !shown || !turn.shows(0)? {
                    return Ok(false);
                }
                turn.see(0, |bytes| vectors.result.unpack(0, bytes));
                turn.end(true);
                return Ok(true);
            }
            if left > 0 {
                if !turn.fold(vectors, &mut left, 1)? {
                    return Ok(false);
                }
                vectors.fold(&own, false)?;
                left = 0;
            }
            shown = turn.show(&vectors.result);
            if shown {
                turn.end(true);
            }
            Ok(shown)
        })
    }
}

/// What a reduction reads and writes.
struct Vectors {
    ours: Buffer,
    /// It is not where the result goes.
    stays: bool,
    /// Empty where there is none.
    result: Buffer,
    combine: Option<(Op, Predefined)>,
}

impl Vectors {
    fn of(work: &Reduction) -> Vectors {
        let buffer =
            |elements: Option<&Elements>| elements.map_or_else(Buffer::empty, Elements::buffer);
        let ty = work.ours().and_then(|ours| ours.ty().predefined());
        let combine = match work.op {
            Operation::Predefined(op) => ty.map(|ty| (op, ty)),
            Operation::User { .. } => None,
        };
        Vectors {
            ours: buffer(work.ours()),
            stays: work.send.is_some(),
            result: buffer(work.receive.as_ref()),
            combine,
        }
    }

    fn none() -> Vectors {
        Vectors {
            ours: Buffer::empty(),
            stays: false,
            result: Buffer::empty(),
            combine: None,
        }
    }

    /// Puts another vector, of a lower rank than those before, into the result.
    #[inline(always)]
    fn fold(&self, bytes: &[u8], first: bool) -> Result<()> {
        match self.combine {
            Some(_) if first => _ = self.result.unpack(0, bytes),
            Some((op, ty)) => reduce_into(op, ty, bytes, &self.result, 0)?,
            None => {}
        }
        Ok(())
    }
}

#[cold]
fn gone() -> Error {
    Error::new(
        Class::INTERN,
        "the communicator's lane went away while it was in use",
    )
}
