//! Elements of one type with their gaps: the operands of reductions. A [`Buffer`], in contrast, is
//! the bytes of elements on their way to another rank.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::spread::Spread;
use crate::types::Type;

/// `count` elements of a type, in the user's or in scratch memory. Cheap to clone and to split.
#[derive(Clone, Debug)]
pub struct Elements {
    base: usize,
    count: usize,
    ty: Type,
    /// The scratch memory that contains the elements, and the number of elements before them in it.
    /// `None`: they are in the user's memory.
    scratch: Option<(Arc<Spread>, usize)>,
}

impl Elements {
    /// `count` elements of `ty` at `base`. A null `base`, with addresses in the type, is
    /// MPI_BOTTOM.
    ///
    /// # Safety
    /// The promise of [`Buffer::new`], for all buffers made from these elements.
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

    /// The number of elements of the datatype.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The datatype of the elements.
    #[inline]
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The number of bytes of the elements' data.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.count.wrapping_mul(self.ty.size())
    }

    /// The address of the first element.
    #[inline]
    pub fn address(&self) -> usize {
        self.base
    }

    /// True if both operands begin at one byte of memory.
    #[inline]
    pub fn is(&self, other: &Elements) -> bool {
        // With MPI_BOTTOM, the type holds the address.
        let first = |elements: &Elements| elements.base.wrapping_add_signed(elements.ty.true_lb());
        first(self) == first(other)
    }

    /// The bytes of the elements as a buffer.
    #[inline]
    pub fn buffer(&self) -> Buffer {
        match &self.scratch {
            // SAFETY: `new` was promised the memory of these elements.
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

    /// The elements from number `first` on, `count` of them or as many as exist.
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
