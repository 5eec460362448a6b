//! Operations on a window that all members map: their origin applies them at once, by loads and
//! stores, and acquires window locks in the same memory. The target has no part in them.
//!
//! Invariants:
//! - an operation is complete at its origin and at its target when it returns;
//! - an accumulate changes an element only under the locks of the element's stripes, parts of the
//!   window with one lock each;
//! - no target of such a window is accessed by messages;
//! - an operation of this rank that loads does so after all stores that a flush has followed. A
//!   fence for that costs as much as a put, so it is delayed until the first such load; acquiring
//!   the lock of a stripe is a fence itself. Loads of the program are ordered after `MPI_Win_sync`,
//!   and after every flush once the program has queried the memory of others.

pub(super) mod near_place;

use std::sync::atomic::{Ordering, fence};

use channel::{Stripes, WindowLock, WindowMemory};
use datatype::{Buffer, Elements, Op, Predefined, reduce};

use super::hints::WORDS;
use super::locks::LockKind;
use super::operation::{Access, Place, compares, operand};
use crate::{Class, Error, Result};

/// The length in bytes of a word, the unit of atomic accumulates.
const WORD: usize = 8;
/// Bytes that one step of an accumulate changes if the data are not contiguous.
const PIECE: usize = 4096;
/// The number of flushes and unlocks between two calls of progress: they do not wait, so a program
/// that polls by them would otherwise never complete the messages of others.
const PER_PROGRESS: u32 = 64;

/// The state of a mapped window at one member.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) memory: WindowMemory,
    /// True if accumulates are only of 8-byte words, by atomic instructions of the processor.
    pub(crate) words: bool,
    /// True if the program itself loads from other members' memory, so that a flush must order its
    /// loads as well.
    is_loaded: bool,
    /// True if stores have been made that no flush has followed.
    has_stored: bool,
    /// True if a flush has followed stores, but no fence has ordered later loads after them yet.
    owes_fence: bool,
    /// The number of synchronisations since the last call of progress.
    synchronised: u32,
}

impl Direct {
    pub(crate) fn new(memory: WindowMemory, words: bool) -> Direct {
        Direct {
            memory,
            words,
            is_loaded: false,
            has_stored: false,
            owes_fence: false,
            synchronised: 0,
        }
    }

    /// Applies an operation of `bytes` bytes, `at` bytes from the start of the target's part.
    ///
    /// # Errors
    /// A process that accumulated there has ended.
    pub(super) fn apply(
        &mut self,
        access: &Access,
        place: &Place,
        (target, at, bytes): (u32, i64, usize),
    ) -> Result<()> {
        let target = target as usize;
        let part = self.memory.part(target);
        let found = part.elements_within(at as isize, place.count, &place.ty);
        let there = found.ok_or_else(|| {
            Error::new(Class::RMA_RANGE, "an access outside of the target's window")
        })?;
        let mut accumulate = |op, operands: Option<&Elements>, result: Option<&Elements>| {
            let sides = Sides {
                there: &there,
                operands: operands.map(Elements::buffer),
                result: result.map(Elements::buffer),
            };
            self.accumulate(target, (op, operand(op, &place.ty)?), &sides, bytes)
        };
        match access {
            Access::Put(origin) => {
                origin.copy_to(&there);
                self.has_stored = true;
                Ok(())
            }
            Access::Get(origin) => {
                self.pay_fence();
                there.copy_to(origin);
                Ok(())
            }
            Access::Accumulate { origin, op } => accumulate(*op, Some(origin), None),
            Access::GetAccumulate { origin, result, op } => {
                let operands = origin.as_ref().filter(|_| *op != Op::NoOp);
                accumulate(*op, operands, Some(result))
            }
            Access::CompareAndSwap {
                compare,
                origin,
                result,
            } => {
                let ty = compares(&place.ty)?;
                self.compare_and_swap(target, ty, &there, [compare, origin, result])
            }
        }
    }

    fn accumulate(
        &mut self,
        target: usize,
        (op, basic): (Op, Predefined),
        sides: &Sides,
        bytes: usize,
    ) -> Result<()> {
        if self.words {
            return self.accumulate_words(target, (op, basic), sides, bytes);
        }
        let element = basic.size().unwrap_or(1);
        let mut position = 0;
        self.stores_under_lock();
        while position < bytes {
            let (len, stripes) = self.piece(target, sides, element, position..bytes);
            let _held = self.memory.hold(target, stripes)?;
            if let Some(result) = &sides.result {
                let old = sides.there.slice(position, len);
                old.copy_to(&result.slice(position, len));
            }
            if let Some(operands) = &sides.operands {
                let combine =
                    |data: &[u8]| reduce::reduce_into(op, basic, data, sides.there, position);
                match operands.with_dense(position, len, combine) {
                    Some(combined) => combined?,
                    None => {
                        let mut packed = [0; PIECE];
                        operands.pack(position, &mut packed[..len]);
                        combine(&packed[..len])?;
                    }
                }
            }
            position += len;
        }
        Ok(())
    }

    /// The number of bytes that an accumulate changes in the next step, and the stripes (parts of
    /// the window with one lock each) in which they lie.
    #[inline]
    fn piece(
        &self,
        target: usize,
        sides: &Sides,
        element: usize,
        left: std::ops::Range<usize>,
    ) -> (usize, Stripes) {
        let start = self.memory.start(target);
        let (position, left) = (left.start, left.len());
        let packs = sides
            .operands
            .as_ref()
            .is_some_and(|data| data.as_dense().is_none());
        let short = PIECE - PIECE % element;
        if let Some((address, _)) = sides.there.as_dense() {
            let first = address - start + position;
            let room = self.memory.left_in_stripe(first);
            let mut len = left;
            if left > room {
                // The last element may reach into the next stripe.
                len = left.min(room.next_multiple_of(element));
            }
            if packs {
                len = len.min(short);
            }
            return (len, self.memory.stripes(first, len));
        }
        let len = left.min(short);
        let segments = sides.there.slice(position, len).segments(0, usize::MAX);
        let stripes = segments.into_iter().map(|(address, len)| {
            // Segments lie in the part: the whole access has been checked.
            self.memory.stripes(address - start, len)
        });
        (len, stripes.fold(Stripes::default(), Stripes::and))
    }

    fn compare_and_swap(
        &mut self,
        target: usize,
        ty: Predefined,
        there: &Buffer,
        [compare, origin, result]: [&Elements; 3],
    ) -> Result<()> {
        self.stores_under_lock();
        if self.words {
            let place = there
                .as_dense()
                .map(|(at, _)| at - self.memory.start(target));
            let place = place.ok_or_else(unpromised)?;
            return self.swap_word(
                (target, place),
                ty,
                [compare, origin, result].map(Elements::buffer).each_ref(),
            );
        }
        let len = there.len();
        if Some(len) != ty.size() {
            let detail = format!("a compare-and-swap of {len} bytes, which is no single element");
            return Err(Error::new(Class::TYPE, detail));
        }
        let stripes = there.as_dense().map(|(address, len)| {
            let first = address - self.memory.start(target);
            self.memory.stripes(first, len)
        });
        let _held = self.memory.hold(target, stripes.unwrap_or_default())?;
        let there = Swapped {
            part: there,
            offset: 0,
        };
        there.swap(
            len,
            [compare, origin, result].map(Elements::buffer).each_ref(),
        )
    }

    /// An accumulate in a window whose accumulates are only of 8-byte words.
    #[cold]
    fn accumulate_words(
        &self,
        target: usize,
        (op, basic): (Op, Predefined),
        sides: &Sides,
        bytes: usize,
    ) -> Result<()> {
        if !basic.is_word() || !matches!(op, Op::Sum | Op::NoOp) {
            return Err(unpromised());
        }
        let (part, start) = (self.memory.part(target), self.memory.start(target));
        let segments = sides.there.slice(0, bytes).segments(0, usize::MAX);
        let runs = segments.into_iter();
        let places = runs.flat_map(|(at, len)| (at - start..at - start + len).step_by(WORD));
        for (position, place) in (0..bytes).step_by(WORD).zip(places) {
            let mut operand = [0; WORD];
            if let Some(operands) = sides.operands.as_ref().filter(|_| op == Op::Sum) {
                operands.pack(position, &mut operand);
            }
            let old = reduce::add_atomically((part, place), u64::from_ne_bytes(operand));
            let old = old.ok_or_else(unpromised)?;
            if let Some(result) = &sides.result {
                result.unpack(position, &old.to_ne_bytes());
            }
        }
        Ok(())
    }

    /// A compare-and-swap in a window whose accumulates are only of 8-byte words.
    #[inline]
    fn swap_word(
        &self,
        (target, offset): (usize, usize),
        ty: Predefined,
        [compare, origin, result]: [&Buffer; 3],
    ) -> Result<()> {
        if !ty.is_word() {
            return Err(unpromised());
        }
        let read = |from: &Buffer| {
            let mut word = [0; WORD];
            from.pack(0, &mut word);
            u64::from_ne_bytes(word)
        };
        let place = (self.memory.part(target), offset);
        let old = reduce::swap_atomically(place, read(compare), read(origin));
        result.unpack(0, &old.ok_or_else(unpromised)?.to_ne_bytes());
        Ok(())
    }

    /// Orders all operations of this rank before all that follow. Returns true if the caller must
    /// make progress.
    #[inline]
    pub(crate) fn synchronise(&mut self) -> bool {
        fence(Ordering::AcqRel);
        self.owes_fence |= std::mem::take(&mut self.has_stored);
        if self.is_loaded {
            self.pay_fence();
        }
        self.synchronised = self.synchronised.saturating_add(1);
        self.synchronised >= PER_PROGRESS
    }

    /// Issues the delayed fence, if one is due: it orders later loads after stores that a flush has
    /// followed.
    #[inline(always)]
    fn pay_fence(&mut self) {
        if std::mem::take(&mut self.owes_fence) {
            fence(Ordering::SeqCst);
        }
    }

    /// Records that stores follow under the lock of a stripe, whose acquisition has been a fence.
    #[inline(always)]
    fn stores_under_lock(&mut self) {
        (self.has_stored, self.owes_fence) = (true, false);
    }

    /// Records that the program has queried other members' memory, and may load from it.
    pub(crate) fn is_loaded(&mut self) {
        self.is_loaded = true;
    }

    /// Records that the caller makes progress.
    pub(crate) fn progresses(&mut self) {
        self.synchronised = 0;
    }
}

/// The error of an accumulate that breaks the program's promise of word accumulates.
#[cold]
fn unpromised() -> Error {
    Error::new(
        Class::RMA_CONFLICT,
        format!(
            "the window was made with the info key {WORDS}, which promises MPI_SUM, MPI_NO_OP and \
             compare-and-swap of aligned integers of 8 bytes only: leave out the key"
        ),
    )
}

/// The value in the target's part that a compare-and-swap may replace.
struct Swapped<'a> {
    part: &'a Buffer,
    offset: usize,
}

impl Swapped<'_> {
    /// Compares and swaps a value while the lock of its stripe is held.
    #[inline]
    fn swap(&self, bytes: usize, [compare, origin, result]: [&Buffer; 3]) -> Result<()> {
        const LONGEST: usize = 32;
        if bytes > LONGEST {
            let detail = format!("a compare-and-swap of {bytes} bytes, which is no single element");
            return Err(Error::new(Class::TYPE, detail));
        }
        let (mut old, mut expected) = ([0; LONGEST], [0; LONGEST]);
        self.part.pack(self.offset, &mut old[..bytes]);
        compare.pack(0, &mut expected[..bytes]);
        if old == expected && !origin.hand_over_run(0, self.part, self.offset, bytes) {
            origin.copy_to(&self.part.slice(self.offset, bytes));
        }
        result.unpack(0, &old[..bytes]);
        Ok(())
    }
}

/// The memory of an accumulate: the elements at the target, and operands and result at the origin.
struct Sides<'a> {
    there: &'a Buffer,
    operands: Option<Buffer>,
    result: Option<Buffer>,
}

impl From<LockKind> for WindowLock {
    fn from(kind: LockKind) -> WindowLock {
        match kind {
            LockKind::Shared => WindowLock::Shared,
            LockKind::Exclusive => WindowLock::Exclusive,
        }
    }
}
