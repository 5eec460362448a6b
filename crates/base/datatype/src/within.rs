//! Elements within a run of memory: the targets of one-sided communication, whose offset and type
//! come from another rank.

use std::fmt::Debug;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::predefined::Predefined;
use crate::spread::{Owner, Spread};
use crate::types::Type;

impl Buffer {
    /// A buffer of `len` bytes at `base`, in memory that `owner` keeps as long as the buffer, its
    /// clones and its parts are in use.
    ///
    /// # Safety
    /// The promise of [`Buffer::new`], for these bytes, while `owner` exists.
    pub unsafe fn owned(base: *mut u8, len: usize, owner: Arc<dyn Debug + Send + Sync>) -> Buffer {
        let base = base.expose_provenance();
        let ty = Predefined::BYTE.into();
        let spread = Spread::kept(base, ty, Some(base), Some(owner));
        Buffer::of_spread(Arc::new(spread), 0, len)
    }

    /// A buffer of `count` elements of `ty` at `offset` bytes from the start of this buffer.
    /// `None`: this buffer is not one run, or some byte of the elements lies outside of it.
    pub fn elements_within(&self, offset: isize, count: usize, ty: &Type) -> Option<Buffer> {
        let (address, len) = self.as_dense()?;
        let (first, span) = ty.span(count).ok()?;
        let bytes = count.checked_mul(ty.size())?;
        let start = usize::try_from(offset.checked_add(first)?).ok()?;
        if start > len || span > len - start {
            return None;
        }
        if bytes == 0 {
            return Some(Buffer::empty());
        }
        let base = address.wrapping_add_signed(offset);
        let dense = ty.is_one_run(count);
        let dense = dense.map(|offset| base.wrapping_add_signed(offset));
        Some(match (dense, &self.spread) {
            (Some(run), None) => Buffer::run(run, bytes),
            (Some(run), Some(_)) => self.slice(run.wrapping_sub(address), bytes),
            (None, owner) => {
                let owner = owner.clone().map(|spread| spread as Owner);
                let spread = Spread::kept(base, ty.clone(), None, owner);
                Buffer::of_spread(Arc::new(spread), 0, bytes)
            }
        })
    }

    /// A buffer of `count` elements of `ty` at the address `at`, in memory of several buffers, each
    /// of which is one run. `holding` returns the buffer that contains the byte at an address.
    /// `None`: some byte of the elements is in none of them.
    pub fn elements_over<'a>(
        holding: impl Fn(usize) -> Option<&'a Buffer>,
        at: usize,
        count: usize,
        ty: &Type,
    ) -> Option<Buffer> {
        ty.span(count).ok()?;
        let bytes = count.checked_mul(ty.size())?;
        if bytes == 0 {
            return Some(Buffer::empty());
        }
        let dense = ty.is_one_run(count);
        let dense = dense.map(|offset| at.wrapping_add_signed(offset));
        let unchecked = Spread::kept(at, ty.clone(), dense, None);
        let unchecked = Buffer::of_spread(Arc::new(unchecked), 0, bytes);
        let mut owners: Vec<Arc<Spread>> = Vec::new();
        for (address, len) in unchecked.segments(0, usize::MAX) {
            let end = address.checked_add(len)?;
            let mut next = address;
            while next < end {
                let holder = holding(next)?;
                let (start, len) = holder.as_dense()?;
                if next < start || next - start >= len {
                    return None;
                }
                next = start + len;
                if let Some(owner) = &holder.spread
                    && !owners
                        .iter()
                        .rev()
                        .take(2)
                        .any(|other| Arc::ptr_eq(other, owner))
                {
                    owners.push(owner.clone());
                }
            }
        }
        let owner = Arc::new(owners) as Owner;
        let spread = Spread::kept(at, ty.clone(), dense, Some(owner));
        Some(Buffer::of_spread(Arc::new(spread), 0, bytes))
    }
}
