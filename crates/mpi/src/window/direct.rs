//! Operations on a window that all members map: their origin applies them at once, by loads and
//! stores, and takes window locks in the same memory. The target has no part in them.
//!
//! Invariants:
//! - an operation is complete at its origin and at its target when it returns;
//! - an accumulate changes an element only under the locks of the element's stripes;
//! - no target of such a window is accessed by messages.

use std::sync::atomic::{Ordering, fence};

use channel::{Stripes, WindowLock, WindowMemory};
use datatype::{Buffer, Elements, Op, Predefined, reduce};

use super::locks::LockKind;
use super::operation::{Access, Place, compares, operand};
use crate::{Class, Error, Result};

/// Bytes that one step of an accumulate changes where data are not one run.
const PIECE: usize = 4096;
/// Flushes and unlocks between two rounds of progress: they wait for nobody, so a program that
/// polls by them would never end the messages of others.
const PER_PROGRESS: u32 = 64;

/// The state of such a window at one member.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) memory: WindowMemory,
    /// Stores have been made that no fence follows.
    has_stored: bool,
    /// Synchronisations since the last round of progress.
    synchronised: u32,
}

impl Direct {
    pub(crate) fn new(memory: WindowMemory) -> Direct {
        Direct {
            memory,
            has_stored: false,
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
        let accumulate = |op, operands: Option<&Elements>, result: Option<&Elements>| {
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
        &self,
        target: usize,
        (op, basic): (Op, Predefined),
        sides: &Sides,
        bytes: usize,
    ) -> Result<()> {
        let element = basic.size().unwrap_or(1);
        let mut position = 0;
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

    /// The next bytes that an accumulate changes at once, and their stripes.
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
            // Segments lie in the part, by the check of the whole.
            self.memory.stripes(address - start, len)
        });
        (len, stripes.fold(Stripes::default(), Stripes::and))
    }

    fn compare_and_swap(
        &self,
        target: usize,
        ty: Predefined,
        there: &Buffer,
        [compare, origin, result]: [&Elements; 3],
    ) -> Result<()> {
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

    /// `bytes` bytes of a target's part from `offset` on, within it.
    #[inline]
    pub(super) fn near(&mut self, target: usize, offset: usize, bytes: usize) -> NearPlace<'_> {
        NearPlace {
            direct: self,
            target,
            offset,
            bytes,
        }
    }

    /// Orders all operations of this rank before all that follow, also its loads and stores. True:
    /// a round of progress is due.
    #[inline]
    pub(crate) fn synchronise(&mut self) -> bool {
        match std::mem::take(&mut self.has_stored) {
            true => fence(Ordering::SeqCst),
            // The locks of accumulates are fences.
            false => fence(Ordering::AcqRel),
        }
        self.synchronised = self.synchronised.saturating_add(1);
        self.synchronised >= PER_PROGRESS
    }

    /// A round of progress follows.
    pub(crate) fn progresses(&mut self) {
        self.synchronised = 0;
    }
}

/// Bytes at a target whose part this rank maps: elements of one predefined type without gaps, as
/// most accesses have them.
pub struct NearPlace<'a> {
    direct: &'a mut Direct,
    target: usize,
    offset: usize,
    bytes: usize,
}

impl NearPlace<'_> {
    /// `MPI_Put`. False, without a change: the origin's data are not one run.
    #[inline]
    pub fn put(self, origin: &Buffer) -> bool {
        let part = self.direct.memory.part(self.target);
        self.direct.has_stored = true;
        origin.copy_run(0, part, self.offset, self.bytes)
    }

    /// `MPI_Get`. False, without a change: the origin's memory is not one run.
    #[inline]
    pub fn get(self, origin: &Buffer) -> bool {
        let part = self.direct.memory.part(self.target);
        part.copy_run(self.offset, origin, 0, self.bytes)
    }

    /// `MPI_Accumulate`, and `MPI_Get_accumulate` with a result; without operands, nothing changes.
    ///
    /// # Errors
    /// The operation is none of the type, or a process that accumulated there has ended.
    #[inline]
    pub fn accumulate(
        self,
        (op, ty): (Op, Predefined),
        operands: Option<Buffer>,
        result: Option<Buffer>,
    ) -> Result<()> {
        let memory = &self.direct.memory;
        let (target, offset, bytes) = (self.target, self.offset, self.bytes);
        let part = memory.part(target);
        if bytes <= memory.left_in_stripe(offset) {
            if !op.permits(ty) {
                return Err(datatype::Error::Operation { op, ty }.into());
            }
            let _held = memory.hold(target, memory.stripes(offset, bytes))?;
            let kept = result.is_none_or(|result| part.copy_run(offset, &result, 0, bytes));
            debug_assert!(kept, "the caller gives runs");
            let Some(operands) = operands else {
                return Ok(());
            };
            return match reduce::reduce_run(op, ty, &operands, part, offset) {
                Some(reduced) => Ok(reduced?),
                None => {
                    let mut copy = vec![0; bytes];
                    operands.pack(0, &mut copy);
                    Ok(reduce::reduce_into(op, ty, &copy, part, offset)?)
                }
            };
        }
        let there = part.slice(offset, bytes);
        let sides = Sides {
            there: &there,
            operands,
            result,
        };
        self.direct.accumulate(target, (op, ty), &sides, bytes)
    }

    /// `MPI_Compare_and_swap`, of the origin's value where the target has that of `compare`.
    ///
    /// # Errors
    /// The type cannot be compared, or a process that accumulated there has ended.
    #[inline]
    pub fn compare_and_swap(
        self,
        ty: Predefined,
        [compare, origin, result]: [Buffer; 3],
    ) -> Result<()> {
        compares(&ty.into())?;
        let there = Swapped {
            part: self.direct.memory.part(self.target),
            offset: self.offset,
        };
        let stripes = self.direct.memory.stripes(self.offset, self.bytes);
        let _held = self.direct.memory.hold(self.target, stripes)?;
        there.swap(self.bytes, [&compare, &origin, &result])
    }
}

/// The place of a compare-and-swap.
struct Swapped<'a> {
    part: &'a Buffer,
    offset: usize,
}

impl Swapped<'_> {
    /// Swaps, under the lock of the place.
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
        if old == expected && !origin.copy_run(0, self.part, self.offset, bytes) {
            origin.copy_to(&self.part.slice(self.offset, bytes));
        }
        result.unpack(0, &old[..bytes]);
        Ok(())
    }
}

/// The memory of an accumulate: elements at the target, and at the origin.
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
