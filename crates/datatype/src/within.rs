//! Elements within a run of memory: the targets of one-sided communication, whose place and type
//! come from another rank.

use std::fmt::Debug;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::predefined::Predefined;
use crate::scratch::{Owner, Spread};
use crate::types::Type;

impl Buffer {
    /// `len` bytes at `base`, in memory that `owner` keeps as long as the buffer, its clones and
    /// its parts are in use.
    ///
    /// # Safety
    /// The promise of [`Buffer::new`], for these bytes, while `owner` exists.
    pub unsafe fn owned(base: *mut u8, len: usize, owner: Arc<dyn Debug + Send + Sync>) -> Buffer {
        let base = base.expose_provenance();
        let ty = Predefined::BYTE.into();
        let spread = Spread::kept(base, ty, Some(base), Some(owner));
        Buffer::of_spread(Arc::new(spread), 0, len)
    }

    /// `count` elements of `ty` at `offset` from the first byte of this buffer. `None`: this buffer
    /// is not one run, or some byte of the elements lies outside of it.
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
        let owner = self.spread.clone().map(|spread| spread as Owner);
        Some(match (dense, owner) {
            (Some(run), None) => Buffer::run(run, bytes),
            (dense, owner) => {
                let spread = Spread::kept(base, ty.clone(), dense, owner);
                Buffer::of_spread(Arc::new(spread), 0, bytes)
            }
        })
    }
}
