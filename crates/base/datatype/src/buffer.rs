//! The user's memory for the layers above: contiguous bytes, or bytes spread by a datatype.
//!
//! `Buffer::new` and `Buffer::dense` take the one promise of the caller that makes everything else
//! here safe. A send of contiguous data touches no reference count and no datatype.

mod one;
mod segments;

use crate::copy_kind::{Direction, HandOver};
use crate::double::{Primitive, has_copied};
use crate::memcpy::{LINE, copy, fetch, hand_over, hand_over_by_call, stream};
use crate::pack::{Pack, Unpack};
use crate::spread::Spread;
use crate::types::Type;
use crate::walk::{Flow, Visit, copies};
use std::ptr;
use std::sync::Arc;

pub(crate) use one::One;
use segments::Segments;

/// The data of one operation in the user's memory: one run of bytes, or bytes that a datatype
/// selects. Addresses are stored as numbers, so a buffer may move to another thread.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The address of the first byte. With `spread`, the position of the data in the packed form of
    /// the elements.
    at: usize,
    /// The number of bytes of data in the buffer.
    len: usize,
    /// The memory and type of the data, if they are not one run, or if an owner keeps their memory
    /// valid. `None`: the data are one run of the user's memory.
    pub(crate) spread: Option<Arc<Spread>>,
}

impl Buffer {
    /// A buffer of `count` elements of `ty` at `base`. A null `base`, with addresses in the type,
    /// is MPI_BOTTOM.
    ///
    /// # Safety
    /// The bytes of the elements stay valid until the buffer, its clones and its slices are no
    /// longer used: readable if the buffer is read (`pack`, `segments`), writable if it is written
    /// (`unpack`, reductions), and not changed by anybody else meanwhile.
    #[inline]
    pub unsafe fn new(base: *mut u8, count: usize, ty: &Type) -> Buffer {
        let base = base.expose_provenance();
        match ty {
            Type::Predefined(basic) if basic.extent() == basic.bytes() => {
                Buffer::run(base, count.wrapping_mul(basic.bytes()))
            }
            _ => Buffer::typed(base, count, ty),
        }
    }

    /// A buffer of `len` bytes at `base`.
    ///
    /// # Safety
    /// The promise of [`Buffer::new`], for these bytes.
    #[inline]
    pub unsafe fn dense(base: *mut u8, len: usize) -> Buffer {
        Buffer::run(base.expose_provenance(), len)
    }

    #[inline(always)]
    pub(crate) fn run(address: usize, len: usize) -> Buffer {
        Buffer {
            at: address,
            len,
            spread: None,
        }
    }

    /// A buffer of bytes `start..end` of the packed form of elements.
    pub(crate) fn of_spread(spread: Arc<Spread>, start: usize, end: usize) -> Buffer {
        Buffer {
            at: start,
            len: end - start,
            spread: Some(spread),
        }
    }

    /// A buffer without data.
    #[inline]
    pub fn empty() -> Buffer {
        Buffer::run(ptr::dangling_mut::<u8>().expose_provenance(), 0)
    }

    /// The number of bytes of data in the buffer.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the buffer has no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address and the length of the data, if they are one run.
    #[inline]
    pub fn as_dense(&self) -> Option<(usize, usize)> {
        match &self.spread {
            None => Some((self.at, self.len)),
            Some(spread) => Some((spread.dense? + self.at, self.len)),
        }
    }

    /// True if both buffers begin with the same byte of memory.
    pub fn begins_with(&self, other: &Buffer) -> bool {
        let first = |buffer: &Buffer| match &buffer.spread {
            None => (buffer.at, 0),
            Some(spread) => (
                spread.base.wrapping_add_signed(spread.ty.true_lb()),
                buffer.at,
            ),
        };
        !self.is_empty() && !other.is_empty() && first(self) == first(other)
    }

    /// Copies data from byte `position` of the buffer on into `out`, up to the end of either.
    /// Returns the number of bytes copied.
    #[inline(always)]
    pub fn pack(&self, position: usize, out: &mut [u8]) -> usize {
        self.pack_by(
            position,
            out,
            #[inline(always)]
            |from, to, count| {
                // SAFETY: both have `count` bytes, apart.
                unsafe { copy(Direction::Forward, from, to, count) }
            },
        )
    }

    /// Copies data like [`Buffer::pack`], to memory that another core reads next. `how` applies to
    /// a single run.
    #[inline(always)]
    pub fn hand_over(&self, how: HandOver, position: usize, out: &mut [u8]) -> usize {
        self.pack_by(
            position,
            out,
            #[inline(always)]
            |from, to, count| {
                // SAFETY: both have `count` bytes, apart.
                unsafe { hand_over(how, from, to, count) }
            },
        )
    }

    /// Copies data like [`Buffer::pack`]. A single run is copied by `copy`, which gets the source,
    /// the target and the number of bytes; the two do not overlap.
    #[inline(always)]
    fn pack_by(
        &self,
        position: usize,
        out: &mut [u8],
        copy: impl FnOnce(*const u8, *mut u8, usize),
    ) -> usize {
        if self.spread.is_some() {
            return self.pack_spread(position, out);
        }
        let count = self.len.saturating_sub(position).min(out.len());
        // `position + count <= len`, readable by the promise of `new`; `out` is the caller's alone.
        copy(at(self.at.wrapping_add(position)), out.as_mut_ptr(), count);
        count
    }

    /// Copies `data` into the buffer from byte `position` on, up to the buffer's end. Returns the
    /// number of bytes copied.
    #[inline(always)]
    pub fn unpack(&self, position: usize, data: &[u8]) -> usize {
        self.unpack_in(Direction::Forward, position, data)
    }

    /// Copies data like [`Buffer::unpack`]; in the given direction, if they are one run.
    #[inline(always)]
    pub fn unpack_in(&self, direction: Direction, position: usize, data: &[u8]) -> usize {
        if self.spread.is_some() {
            return self.unpack_spread(position, data);
        }
        let count = self.len.saturating_sub(position).min(data.len());
        // SAFETY: `position + count <= len`, writable by the promise of `new`.
        unsafe {
            copy(
                direction,
                data.as_ptr(),
                at(self.at.wrapping_add(position)),
                count,
            )
        };
        count
    }

    /// The runs of memory from byte `position` on, at most `max` of them, as (address, length).
    /// Adjacent runs are joined.
    pub fn segments(&self, position: usize, max: usize) -> Vec<(usize, usize)> {
        let mut segments = Segments::new(max);
        let rest = self.len().saturating_sub(position);
        if rest > 0 && max > 0 {
            // The walk breaks off when the list is full, which is no error.
            let _ = self.walk(position, rest, &mut segments);
        }
        segments.list
    }

    /// The part of the data from byte `position` on, at most `len` bytes.
    pub fn slice(&self, position: usize, len: usize) -> Buffer {
        let position = position.min(self.len());
        let count = len.min(self.len() - position);
        Buffer {
            at: self.at.wrapping_add(position),
            len: count,
            spread: self.spread.clone(),
        }
    }

    /// Copies this buffer's data into another buffer, up to the end of either. Returns the number
    /// of bytes copied. Dense buffers may overlap.
    pub fn copy_to(&self, to: &Buffer) -> usize {
        let count = self.len().min(to.len());
        match (self.as_dense(), to.as_dense()) {
            (Some((from, _)), Some((address, _))) => {
                let is_long = count > LINE;
                if !(is_long && has_copied(Primitive::String, at(from), at(address), count)) {
                    // SAFETY: both sides hold `count` bytes by the promise of `new`.
                    unsafe { ptr::copy(at(from), at(address), count) };
                }
            }
            (Some((address, _)), None) => {
                // SAFETY: the dense side holds `count` bytes.
                let mut copy = unsafe { Unpack::new(at(address)) };
                let _ = to.walk(0, count, &mut copy);
                to.count_gaps(count);
            }
            (None, Some((address, _))) => {
                // SAFETY: the dense side has room for `count` bytes.
                let mut copy = unsafe { Pack::new(at(address)) };
                let _ = self.walk(0, count, &mut copy);
                self.count_gaps(count);
            }
            (None, None) => {
                let mut bounce = [0; 8192];
                let mut done = 0;
                while done < count {
                    let room = (count - done).min(bounce.len());
                    let packed = self.pack(done, &mut bounce[..room]);
                    done += to.unpack(done, &bounce[..packed]);
                }
            }
        }
        count
    }

    /// Lends the bytes of a dense buffer to `then`. `None` without a call if one of `others`
    /// overlaps them.
    pub(crate) fn with_bytes_apart<R, const OTHERS: usize>(
        &self,
        others: [&[u8]; OTHERS],
        then: impl FnOnce(&mut [u8]) -> R,
    ) -> Option<R> {
        let (address, len) = self.as_dense()?;
        if len == 0 {
            return Some(then(&mut []));
        }
        let is_apart = |other: &[u8]| {
            address.wrapping_sub(other.as_ptr().addr()) >= other.len()
                && other.as_ptr().addr().wrapping_sub(address) >= len
        };
        if !others.iter().all(|other| is_apart(other)) {
            return None;
        }
        // SAFETY: writable and not used by anybody else during the operation, by the promise of
        // `new`; no other overlaps it.
        Some(then(unsafe {
            std::slice::from_raw_parts_mut(at(address), len)
        }))
    }

    /// Copies `len` bytes, which another core may have written, from byte `position` on to another
    /// buffer, from its byte `at` on. Returns false, without a copy, if one of the two is not one
    /// run.
    ///
    /// # Panics
    /// If one of the two is too short.
    #[inline]
    pub fn fetch_run(&self, position: usize, to: &Buffer, at: usize, len: usize) -> bool {
        // SAFETY: the closure's caller promises runs of `len` bytes, apart.
        self.run_to((position, to, at, len), |from, to| unsafe {
            fetch(from, to, len);
        })
    }

    /// Copies data like [`fetch_run`](Buffer::fetch_run), to memory that another core reads next.
    ///
    /// # Panics
    /// If one of the two is too short.
    #[inline]
    pub fn hand_over_run(&self, position: usize, to: &Buffer, at: usize, len: usize) -> bool {
        // SAFETY: the closure's caller promises runs of `len` bytes, apart.
        self.run_to((position, to, at, len), |from, to| unsafe {
            hand_over_by_call(from, to, len);
        })
    }

    /// Copies `len` bytes between two runs. 8 bytes are one access; runs that overlap are moved;
    /// `copy` copies all others.
    #[inline(always)]
    fn run_to(
        &self,
        (position, to, at, len): (usize, &Buffer, usize, usize),
        copy: impl FnOnce(*const u8, *mut u8),
    ) -> bool {
        let (Some((from, here)), Some((address, room))) = (self.as_dense(), to.as_dense()) else {
            return false;
        };
        assert!(position <= here && len <= here - position && at <= room && len <= room - at);
        let (start, end) = (from + position, address + at);
        let (from, to) = (self::at(start), self::at(end));
        // SAFETY: both sides hold these bytes by the promise of `new`. Eight bytes are one access:
        // no other core sees half of it if it is aligned.
        unsafe {
            if len == 8 {
                let word = from.cast::<u64>().read_unaligned();
                to.cast::<u64>().write_unaligned(word);
            } else if start.wrapping_sub(end) < len || end.wrapping_sub(start) < len {
                ptr::copy(from, to, len);
            } else {
                copy(from, to);
            }
        }
        true
    }

    /// The number at byte `position` of the data. `None`: the data are not one run, or the number
    /// is not aligned to its size.
    ///
    /// # Panics
    /// If the buffer is too short.
    #[inline(always)]
    pub(crate) fn one<T: Copy>(&self, position: usize) -> Option<One<T>> {
        let (start, len) = self.as_dense()?;
        assert!(position <= len && size_of::<T>() <= len - position);
        let place = at(start + position).cast::<T>();
        place.is_aligned().then_some(One(place))
    }

    /// Lends the bytes of this buffer and, mutably, the same number of bytes of another to `then`.
    /// `None` without a call if one of them is not one run, or if they overlap.
    #[inline]
    pub(crate) fn with_both<R>(
        &self,
        other: &Buffer,
        then: impl FnOnce(&[u8], &mut [u8]) -> R,
    ) -> Option<R> {
        self.with_both_at(other, 0, then)
    }

    /// Lends bytes like [`with_both`](Buffer::with_both), from byte `position` of the other buffer
    /// on.
    #[inline]
    pub(crate) fn with_both_at<R>(
        &self,
        other: &Buffer,
        position: usize,
        then: impl FnOnce(&[u8], &mut [u8]) -> R,
    ) -> Option<R> {
        let ((from, len), (to, room)) = (self.as_dense()?, other.as_dense()?);
        let (to, room) = (to + position, room.checked_sub(position)?);
        let len = len.min(room);
        if from.wrapping_sub(to) < len || to.wrapping_sub(from) < len || len == 0 {
            return None;
        }
        // SAFETY: both hold `len` bytes, to be read and to be written, by the promise of `new`;
        // they do not overlap.
        Some(unsafe {
            then(
                std::slice::from_raw_parts(at(from), len),
                std::slice::from_raw_parts_mut(at(to), len),
            )
        })
    }

    fn typed(base: usize, count: usize, ty: &Type) -> Buffer {
        let end = count.wrapping_mul(ty.size());
        if end == 0 {
            return Buffer::empty();
        }
        match ty.is_one_run(count) {
            Some(offset) => Buffer::run(base.wrapping_add_signed(offset), end),
            None => Buffer::of_spread(Arc::new(Spread::of_user(base, ty)), 0, end),
        }
    }

    #[inline(never)]
    fn pack_spread(&self, position: usize, out: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(position).min(out.len());
        // SAFETY: the walk stays within the buffer's data, readable by the promise of `new`, and
        // visits `count` bytes, for which `out` has room.
        let mut pack = unsafe { Pack::new(out.as_mut_ptr()) };
        let _ = self.walk(position, count, &mut pack);
        self.count_gaps(count);
        count
    }

    #[inline(never)]
    fn unpack_spread(&self, position: usize, data: &[u8]) -> usize {
        let count = self.len().saturating_sub(position).min(data.len());
        // SAFETY: the walk stays within the buffer's data, writable by the promise of `new`, and
        // visits `count` bytes, all of which `data` has.
        let mut unpack = unsafe { Unpack::new(data.as_ptr()) };
        let _ = self.walk(position, count, &mut unpack);
        self.count_gaps(count);
        count
    }

    /// On a modelled machine, counts a copy of `count` bytes to or from these elements, if they are
    /// not one run.
    fn count_gaps(&self, count: usize) {
        if let Some(spread) = &self.spread
            && spread.dense.is_none()
        {
            spread.ty.count_gaps(count, self.len);
        }
    }

    /// Visits `count` bytes from `position` on; the caller has checked that the buffer has them.
    fn walk<V: Visit>(&self, position: usize, count: usize, visit: &mut V) -> Flow {
        if count == 0 {
            return Flow::Continue(());
        }
        let Some(spread) = &self.spread else {
            return visit.run(self.at.wrapping_add(position), count);
        };
        let (from, ty) = (self.at + position, &spread.ty);
        match spread.dense {
            Some(address) => visit.run(address.wrapping_add(from), count),
            None => ty.with_piece(|piece| {
                copies(piece, ty.extent(), spread.base, from, from + count, visit)
            }),
        }
    }
}

/// The pointer to memory of the user at this address.
#[inline]
fn at(address: usize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address)
}

impl Buffer {
    /// Copies data like [`Buffer::pack`], by non-temporal stores where the processor has them: for
    /// bytes that a core without a common cache will read.
    pub fn pack_past_cache(&self, position: usize, out: &mut [u8]) -> usize {
        match self.as_dense() {
            Some((address, len)) if position <= len => {
                let count = (len - position).min(out.len());
                // SAFETY: `position + count <= len`, readable by the promise of `new`; `out` is the
                // caller's alone.
                unsafe { stream(at(address + position), out.as_mut_ptr(), count) };
                count
            }
            _ => self.pack(position, out),
        }
    }

    /// Lends bytes `position..position + len` to `read`. `None` without a call if they are not one
    /// run.
    pub fn with_dense<R>(
        &self,
        position: usize,
        len: usize,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let (address, whole) = self.as_dense()?;
        assert!(position <= whole && len <= whole - position);
        // SAFETY: within the buffer; readable and not changed by others by the promise of `new`.
        Some(read(unsafe {
            std::slice::from_raw_parts(at(address + position), len)
        }))
    }

    /// Lets `fill` write bytes `position..position + len` where they lie. `None` without a call if
    /// they are not one run.
    pub fn with_dense_mut<R>(
        &self,
        position: usize,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> R,
    ) -> Option<R> {
        let (address, whole) = self.as_dense()?;
        assert!(position <= whole && len <= whole - position);
        // SAFETY: within the buffer; writable and not used by others by the promise of `new`.
        Some(fill(unsafe {
            std::slice::from_raw_parts_mut(at(address + position), len)
        }))
    }
}
