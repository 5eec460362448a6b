//! A section of an array in memory: elements in array element order, dimensions with strides of
//! their own. This module does not depend on MPI, and accesses memory only in copies.

/// The highest rank of an array.
pub(crate) const MOST_DIMENSIONS: usize = 15;

/// A dimension: its extent in elements, and the distance of its elements in bytes, which may be
/// negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) extent: usize,
    pub(crate) stride: isize,
}

/// A section: runs of bytes without gaps, and the dimensions in which they lie, the innermost
/// first. No dimension has the extent 1, and none continues the next inner one without a gap.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) address: *mut u8,
    /// The number of bytes of each contiguous run.
    pub(crate) run: usize,
    dimensions: [Dimension; MOST_DIMENSIONS],
    rank: usize,
}

/// A part of a section: `count` slabs at the distance `stride` in bytes. A slab contains all
/// elements of the `inner` innermost dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: isize,
    pub(crate) inner: usize,
    pub(crate) count: usize,
    pub(crate) stride: isize,
}

/// The first bytes of a section: pieces, followed by `tail` bytes of one run.
pub(crate) struct Prefix {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) tail_offset: isize,
    pub(crate) tail: usize,
}

impl Section {
    /// A section of one element of `element` bytes.
    pub(crate) fn scalar(address: *mut u8, element: usize) -> Section {
        Section {
            address,
            run: element,
            dimensions: [Dimension {
                extent: 1,
                stride: 0,
            }; MOST_DIMENSIONS],
            rank: 0,
        }
    }

    /// Adds the next outer dimension to the section.
    pub(crate) fn push(&mut self, dimension: Dimension) {
        let Dimension { extent, stride } = dimension;
        let last = self.rank.checked_sub(1).map(|at| &mut self.dimensions[at]);
        match last {
            _ if extent == 1 => {}
            None if stride == self.run as isize => self.run *= extent,
            Some(last) if stride == last.stride.wrapping_mul(last.extent as isize) => {
                last.extent *= extent
            }
            _ => {
                self.dimensions[self.rank] = dimension;
                self.rank += 1;
            }
        }
    }

    pub(crate) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions[..self.rank]
    }

    /// The number of bytes of the section.
    pub(crate) fn bytes(&self) -> usize {
        let extents = self.dimensions().iter().map(|dimension| dimension.extent);
        self.run * extents.product::<usize>()
    }

    /// The first `bytes` bytes of the section, which has at least that many.
    pub(crate) fn prefix(&self, bytes: usize) -> Prefix {
        let (mut rest, mut offset, mut pieces) = (bytes, 0, Vec::new());
        let mut slab = self.bytes();
        for (inner, dimension) in self.dimensions().iter().enumerate().rev() {
            slab /= dimension.extent;
            let count = rest / slab;
            if count > 0 {
                let stride = dimension.stride;
                pieces.push(Piece {
                    offset,
                    inner,
                    count,
                    stride,
                });
                offset += stride * count as isize;
                rest -= count * slab;
            }
        }
        Prefix {
            pieces,
            tail_offset: offset,
            tail: rest,
        }
    }

    /// The offset of byte number `byte` from the address, and the number of bytes from it to the
    /// end of its run.
    pub(crate) fn place(&self, byte: usize) -> (isize, usize) {
        let (mut run, within) = (byte / self.run, byte % self.run);
        let mut offset = within as isize;
        for dimension in self.dimensions() {
            offset += (run % dimension.extent) as isize * dimension.stride;
            run /= dimension.extent;
        }
        (offset, self.run - within)
    }

    /// Calls `visit` with the offset of each run from the address, in array element order.
    pub(crate) fn for_each_run(&self, mut visit: impl FnMut(isize)) {
        if self.bytes() == 0 {
            return;
        }
        let Some((inner, outer)) = self.dimensions().split_first() else {
            return visit(0);
        };
        let (mut at, mut offset) = ([0; MOST_DIMENSIONS], 0);
        loop {
            for number in 0..inner.extent {
                visit(offset + number as isize * inner.stride);
            }
            let mut dimensions = outer.iter().zip(&mut at);
            loop {
                let Some((dimension, at)) = dimensions.next() else {
                    return;
                };
                *at += 1;
                offset += dimension.stride;
                if *at < dimension.extent {
                    break;
                }
                *at = 0;
                offset -= dimension.stride * dimension.extent as isize;
            }
        }
    }

    /// Copies the section to memory without gaps.
    ///
    /// # Safety
    /// Both are memory of [`bytes`](Section::bytes) bytes, which do not overlap.
    pub(crate) unsafe fn gather(&self, to: *mut u8) {
        // SAFETY: promised.
        unsafe {
            self.copy(to, |place, packed, run| {
                place.copy_to_nonoverlapping(packed, run)
            })
        }
    }

    /// Copies to the section from memory without gaps, but only the bytes that differ from
    /// `before`: other bytes may have been changed by others meanwhile.
    ///
    /// # Safety
    /// As for `gather`; `before` has the same length.
    pub(crate) unsafe fn scatter(&self, from: *const u8, before: *const u8) {
        // SAFETY: promised.
        unsafe {
            self.copy(from.cast_mut(), |place, packed, run| {
                let old = before.byte_offset(packed.byte_offset_from(from));
                write_changes(place, packed, old, run);
            });
        }
    }

    /// Calls `copy` for each run, with its address, its address in `packed`, and its length in
    /// bytes.
    ///
    /// # Safety
    /// `packed` is memory of as many bytes as the section.
    #[inline(always)]
    unsafe fn copy(&self, mut packed: *mut u8, copy: impl Fn(*mut u8, *mut u8, usize)) {
        let run = self.run;
        self.for_each_run(|offset| {
            copy(self.address.wrapping_offset(offset), packed, run);
            packed = packed.wrapping_add(run);
        });
    }
}

/// Writes the words that changed, and those bytes that changed behind the last whole word.
///
/// # Safety
/// All are memory of `bytes` bytes.
#[inline(always)]
unsafe fn write_changes(to: *mut u8, new: *const u8, old: *const u8, bytes: usize) {
    const WORD: usize = size_of::<u32>();
    let words = bytes / WORD;
    // SAFETY: promised; no alignment is needed.
    unsafe {
        let (to_words, new_words, old_words) =
            (to.cast::<u32>(), new.cast::<u32>(), old.cast::<u32>());
        for at in 0..words {
            let word = new_words.add(at).read_unaligned();
            if word != old_words.add(at).read_unaligned() {
                to_words.add(at).write_unaligned(word);
            }
        }
        for at in words * WORD..bytes {
            if *new.add(at) != *old.add(at) {
                *to.add(at) = *new.add(at);
            }
        }
    }
}
