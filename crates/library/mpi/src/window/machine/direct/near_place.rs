//! The short path of an access to memory of another member that this rank maps: elements of one
//! predefined type without gaps.

use datatype::{Buffer, Op, Predefined, reduce};

use super::{Direct, Sides, Swapped, WORD, unpromised};
use crate::Result;
use crate::window::machine::operation::compares;

/// Bytes at a target whose part this rank maps: elements of one predefined type without gaps, as in
/// most accesses.
pub struct NearPlace<'a> {
    direct: &'a mut Direct,
    target: usize,
    offset: usize,
    bytes: usize,
}

impl Direct {
    /// The `bytes` bytes of a target's part from `offset` on, which must lie within the part.
    #[inline(always)]
    pub(in crate::window::machine) fn near(
        &mut self,
        target: usize,
        offset: usize,
        bytes: usize,
    ) -> NearPlace<'_> {
        NearPlace {
            direct: self,
            target,
            offset,
            bytes,
        }
    }
}

impl NearPlace<'_> {
    /// `MPI_Put`. Returns false, without a change, if the origin's data are not contiguous.
    #[inline]
    pub fn put(self, origin: &Buffer) -> bool {
        let part = self.direct.memory.part(self.target);
        self.direct.has_stored = true;
        origin.hand_over_run(0, part, self.offset, self.bytes)
    }

    /// `MPI_Get`. Returns false, without a change, if the origin's memory is not contiguous.
    #[inline]
    pub fn get(self, origin: &Buffer) -> bool {
        self.direct.pay_fence();
        let part = self.direct.memory.part(self.target);
        part.fetch_run(self.offset, origin, 0, self.bytes)
    }

    /// `MPI_Accumulate`, or with a result `MPI_Get_accumulate`. Without operands, the target does
    /// not change.
    ///
    /// # Errors
    /// The operation is not defined for the type, or a process that accumulated there has ended.
    #[inline]
    pub fn accumulate(
        self,
        (op, ty): (Op, Predefined),
        operands: Option<Buffer>,
        result: Option<Buffer>,
    ) -> Result<()> {
        self.direct.stores_under_lock();
        let memory = &self.direct.memory;
        let (target, offset, bytes) = (self.target, self.offset, self.bytes);
        let part = memory.part(target);
        if !self.direct.words && bytes <= memory.left_in_stripe(offset) {
            if !op.permits(ty) {
                return Err(datatype::Error::Operation { op, ty }.into());
            }
            let _held = memory.hold(target, memory.stripes(offset, bytes))?;
            let kept = result.is_none_or(|result| part.fetch_run(offset, &result, 0, bytes));
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

    /// [`accumulate`](NearPlace::accumulate) of one number of four or eight bytes, the most
    /// frequent kind. `MPI_NO_OP` does not read the operand. `None`, without a change: it is
    /// another kind, or an error.
    #[inline(always)]
    pub fn accumulate_word(
        &mut self,
        (op, ty): (Op, Predefined),
        operand: &Buffer,
        result: Option<&Buffer>,
    ) -> Option<Result<()>> {
        if !self.is_aligned_word() || ty.size() != Some(self.bytes) || !op.permits(ty) {
            return None;
        }
        if self.direct.words {
            let is_word = matches!(op, Op::Sum | Op::NoOp) && ty.is_word();
            return is_word.then(|| self.add_word(op, operand, result));
        }
        self.direct.stores_under_lock();
        let memory = &self.direct.memory;
        let _held = match memory.hold_one(self.target, self.offset) {
            Ok(held) => held,
            Err(error) => return Some(Err(error.into())),
        };
        let place = (memory.part(self.target), self.offset);
        reduce::reduce_word(op, ty, operand, place, result).then_some(Ok(()))
    }

    /// True if the bytes are an aligned number of four or eight bytes, which lies within one stripe
    /// (a part of the window with one lock).
    #[inline(always)]
    fn is_aligned_word(&self) -> bool {
        matches!(self.bytes, 4 | 8) && self.offset & (self.bytes - 1) == 0
    }

    /// A sum in a window whose accumulates are only of 8-byte words.
    #[inline(never)]
    fn add_word(&self, op: Op, operand: &Buffer, result: Option<&Buffer>) -> Result<()> {
        let mut word = [0; WORD];
        if op == Op::Sum {
            operand.pack(0, &mut word);
        }
        let place = (self.direct.memory.part(self.target), self.offset);
        let old = reduce::add_atomically(place, u64::from_ne_bytes(word)).ok_or_else(unpromised)?;
        if let Some(result) = result {
            result.unpack(0, &old.to_ne_bytes());
        }
        Ok(())
    }

    /// `MPI_Compare_and_swap`: writes the value of `origin` if the target has that of `compare`.
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
        self.direct.stores_under_lock();
        if self.direct.words {
            let place = (self.target, self.offset);
            let values = [&compare, &origin, &result];
            return self.direct.swap_word(place, ty, values);
        }
        if self.is_aligned_word() {
            let memory = &self.direct.memory;
            let _held = memory.hold_one(self.target, self.offset)?;
            let place = (memory.part(self.target), self.offset);
            if reduce::swap_word(self.bytes, place, [&compare, &origin, &result]) {
                return Ok(());
            }
        }
        let there = Swapped {
            part: self.direct.memory.part(self.target),
            offset: self.offset,
        };
        let stripes = self.direct.memory.stripes(self.offset, self.bytes);
        let _held = self.direct.memory.hold(self.target, stripes)?;
        there.swap(self.bytes, [&compare, &origin, &result])
    }
}
