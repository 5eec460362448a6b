//! Elements of one type, gaps and all: what a reduction computes on, where a [`Buffer`] is the bytes that travel.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::scratch::Spread;
use crate::types::Type;

/// `count` elements of a type, the user's or in scratch memory. Cheap to clone and to cut.
#[derive(Clone, Debug)]
pub struct Elements {
    base: usize,
    count: usize,
    ty: Type,
    /// The scratch memory that they are in, and how many elements lie before them there.
    scratch: Option<(Arc<Spread>, usize)>,
}

impl Elements {
    /// `count` elements of `ty` at `base`; null with addresses in the type is MPI_BOTTOM.
    ///
    /// # Safety
    /// As for [`Buffer::new`].
    #[inline]
    pub unsafe fn new(base: *mut u8, count: usize, ty: &Type) -> Elements {
        Elements {
            base: base.expose_provenance(),
            count,
            ty: ty.clone(),
            scratch: None,
        }
    }

    pub(crate) fn in_scratch(scratch: Arc<Spread>, count: usize, ty: &Type) -> Elements {
        Elements {
            base: scratch.base,
            count,
            ty: ty.clone(),
            scratch: Some((scratch, 0)),
        }
    }

    /// The number of elements.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The type of the elements.
    #[inline]
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Bytes of data.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.count.wrapping_mul(self.ty.size())
    }

    /// The address of the first element.
    #[inline]
    pub fn address(&self) -> usize {
        self.base
    }

    /// The same elements in the same memory?
    #[inline]
    pub fn is(&self, other: &Elements) -> bool {
        // With MPI_BOTTOM the type says where they are.
        let first = |elements: &Elements| elements.base.wrapping_add_signed(elements.ty.true_lb());
        first(self) == first(other)
    }

    /// Their bytes in a row.
    #[inline]
    pub fn buffer(&self) -> Buffer {
        match &self.scratch {
            // SAFETY: by the promise of `new`.
            None => unsafe {
                Buffer::new(
                    std::ptr::with_exposed_provenance_mut(self.base),
                    self.count,
                    &self.ty,
                )
            },
            Some((scratch, before)) => {
                let size = self.ty.size();
                Buffer::of_spread(scratch.clone(), before * size, (before + self.count) * size)
            }
        }
    }

    /// `count` elements from the `first` on; both are cut to what there is.
    pub fn part(&self, first: usize, count: usize) -> Elements {
        let first = first.min(self.count);
        Elements {
            base: self
                .base
                .wrapping_add_signed(self.ty.extent().wrapping_mul(first as isize)),
            count: count.min(self.count - first),
            ty: self.ty.clone(),
            scratch: self
                .scratch
                .as_ref()
                .map(|(scratch, before)| (scratch.clone(), before + first)),
        }
    }
}
