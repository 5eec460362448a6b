//! Views: the bytes of a file that a process sees, in order (MPI 5.0 §14.3).
//!
//! A position in a view counts bytes of data; an offset counts bytes from the start of the file.
//! Both are of the file's representation, so datatypes here are those of [`crate::external`] where
//! the representation is not the native one.

use std::fmt;
use std::ops::ControlFlow;

use datatype::{Predefined, RunOrder, Type};

use crate::strided::Strided;

/// The view of a file: the bytes of it that a process sees, in order.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    /// Length of an etype in bytes.
    etype: u64,
    filetype: Type,
    /// Number of data bytes in a filetype.
    tile: u64,
    /// True if the data of any number of successive filetypes are contiguous.
    is_dense: bool,
    order: RunOrder,
    strided: Option<Strided>,
}

/// The reason why an etype and a filetype cannot make a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewError {
    /// The etype has no data.
    EmptyEtype,
    /// The filetype is not made of whole etypes.
    PartOfEtype {
        /// Number of data bytes in the filetype.
        filetype: u64,
        /// Length of the etype in bytes.
        etype: u64,
    },
    /// A displacement of the filetype is negative.
    Negative,
    /// Displacements of the filetype do not ascend.
    Unordered,
    /// The extent of the filetype is not positive, so that filetypes cannot follow each other.
    Extent,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::EmptyEtype => write!(f, "the etype has no data"),
            ViewError::PartOfEtype { filetype, etype } => write!(
                f,
                "the filetype has {filetype} bytes, which is no whole number of etypes of {etype}"
            ),
            ViewError::Negative => write!(f, "the filetype has a negative displacement"),
            ViewError::Unordered => write!(f, "the displacements of the filetype do not ascend"),
            ViewError::Extent => write!(f, "the extent of the filetype is not positive"),
        }
    }
}

impl Default for View {
    fn default() -> View {
        View::new(0, &Predefined::BYTE.into(), &Predefined::BYTE.into())
            .expect("bytes are a valid view")
    }
}

impl View {
    /// The view in which the filetype is repeated from the displacement on.
    ///
    /// # Errors
    /// The datatypes cannot make a view.
    pub fn new(displacement: u64, etype: &Type, filetype: &Type) -> Result<View, ViewError> {
        let (bytes, tile) = (etype.size() as u64, filetype.size() as u64);
        if bytes == 0 {
            return Err(ViewError::EmptyEtype);
        }
        if tile % bytes != 0 {
            return Err(ViewError::PartOfEtype {
                filetype: tile,
                etype: bytes,
            });
        }
        if tile > 0 && filetype.true_lb() < 0 {
            return Err(ViewError::Negative);
        }
        let order = filetype.run_order();
        if order == RunOrder::Unordered {
            return Err(ViewError::Unordered);
        }
        if tile > 0 && filetype.extent() <= 0 {
            return Err(ViewError::Extent);
        }
        let mut view = View {
            displacement,
            etype: bytes,
            filetype: filetype.clone(),
            tile,
            is_dense: filetype.is_dense(),
            order,
            strided: None,
        };
        view.strided = view.with_one_run();
        Ok(view)
    }

    /// The runs of the view, if each filetype has one run and those of successive filetypes do not
    /// overlap. `None`: otherwise.
    fn with_one_run(&self) -> Option<Strided> {
        let stride = self.filetype.extent() as u64;
        let mut first = None;
        let (base, tile) = (usize::try_from(self.displacement).ok()?, self.tile as usize);
        let _ = self.filetype.visit_runs(base, 0, tile, &mut |offset, len| {
            first = Some((offset as u64, len as u64));
            ControlFlow::Break(())
        });
        let (first, run) = first?;
        (run == self.tile && run <= stride).then_some(Strided { first, run, stride })
    }

    /// The runs of the view, if they have one length and equal distances.
    pub fn strided(&self) -> Option<Strided> {
        self.strided
    }

    /// Length of an etype in bytes.
    pub fn etype(&self) -> u64 {
        self.etype
    }

    /// Bytes from the start of the file to the first filetype.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// True if the view contains no data.
    pub fn is_empty(&self) -> bool {
        self.tile == 0
    }

    /// True if some bytes of the file appear more than once, so that the view can only be read.
    pub fn overlaps(&self) -> bool {
        self.order == RunOrder::Overlapping
    }

    /// True if offsets grow with positions, across filetypes too.
    pub fn ascends(&self) -> bool {
        self.order == RunOrder::Ascending
            && (self.is_empty() || self.filetype.extent() >= self.filetype.true_extent())
    }

    /// The offset in the file of the byte at a position of the view. `None`: it does not fit 63
    /// bits.
    pub fn offset_of(&self, position: u64) -> Option<u64> {
        if self.is_dense {
            return fits(self.displacement.checked_add(position)?);
        }
        if self.is_empty() {
            return Some(self.displacement);
        }
        let (tiles, rest) = (position / self.tile, (position % self.tile) as usize);
        let start = tiles.checked_mul(self.filetype.extent() as u64)?;
        let start = fits(self.displacement.checked_add(start)?)?;
        let mut found = None;
        let _ = self
            .filetype
            .visit_runs(start as usize, rest, rest + 1, &mut |offset, _| {
                found = fits(offset as u64);
                ControlFlow::Break(())
            });
        found
    }

    /// The number of bytes of the view that lie before an offset of the file.
    pub fn bytes_before(&self, offset: u64) -> u64 {
        let Some(most) = offset.checked_sub(self.displacement) else {
            return 0;
        };
        if self.is_dense || self.is_empty() {
            return if self.is_empty() { 0 } else { most };
        }
        if let Some(strided) = &self.strided {
            return strided.bytes_before(offset);
        }
        // Each byte of an ascending view has its own byte of the file, so there are at most `most`.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.offset_of(middle) {
                Some(found) if found < offset => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// The start and the end of the range of the file that contains `count` bytes of the view from
    /// a position on. `None`: there are no such bytes, or they do not fit 63 bits.
    pub fn bounds(&self, position: u64, count: u64) -> Option<(u64, u64)> {
        let last = position.checked_add(count.checked_sub(1)?)?;
        if self.is_empty() {
            return None;
        }
        if self.ascends() {
            return Some((self.offset_of(position)?, self.offset_of(last)? + 1));
        }
        let mut bounds: Option<(u64, u64)> = None;
        self.offset_of(last)?;
        let _ = self.runs(position, count, &mut |offset, len| {
            let (start, end) = bounds.unwrap_or((offset, offset));
            bounds = Some((start.min(offset), end.max(offset + len)));
            ControlFlow::Continue(())
        });
        bounds
    }

    /// Visits the runs of `count` bytes from a position on: offsets and lengths, in the order of
    /// the view. Adjacent runs are joined. The caller has checked that they fit 63 bits.
    pub fn runs(
        &self,
        position: u64,
        count: u64,
        visit: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if count == 0 || self.is_empty() {
            return ControlFlow::Continue(());
        }
        if self.is_dense {
            return visit(self.displacement + position, count);
        }
        let (tiles, rest) = (position / self.tile, position % self.tile);
        let start = self.displacement + tiles * self.filetype.extent() as u64;
        let mut last: Option<(u64, u64)> = None;
        let end = rest as usize + count as usize;
        self.filetype
            .visit_runs(start as usize, rest as usize, end, &mut |offset, len| {
                let (offset, len) = (offset as u64, len as u64);
                match &mut last {
                    Some((before, size)) if *before + *size == offset => {
                        *size += len;
                        ControlFlow::Continue(())
                    }
                    _ => match last.replace((offset, len)) {
                        Some((before, size)) => visit(before, size),
                        None => ControlFlow::Continue(()),
                    },
                }
            })?;
        last.map_or(ControlFlow::Continue(()), |(offset, len)| {
            visit(offset, len)
        })
    }
}

/// The offset, if it and the end of the byte there fit the 63 bits of the system's offsets. `None`:
/// they do not.
fn fits(offset: u64) -> Option<u64> {
    (offset < i64::MAX as u64).then_some(offset)
}
