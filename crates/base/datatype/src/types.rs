//! Datatypes: predefined ones, and those built from others.

use crate::bounds::Bounds;
use crate::envelope::{Constructor, Contents, Envelope};
use crate::error::{Error, Result};
use crate::f90::Kind;
use crate::layout::{Builder, Piece};
use crate::local_work::{LocalWork, Meter};
use crate::predefined::Predefined;
use crate::signature::Signature;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock, OnceLock};

/// A datatype. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Type {
    /// A type that the standard names.
    Predefined(Predefined),
    /// A type that a constructor made.
    Derived(Arc<Derived>),
}

/// A derived type: the arguments of its constructor, and everything computed from them.
#[derive(Debug)]
pub struct Derived {
    pub(crate) piece: Piece,
    pub(crate) bounds: Bounds,
    pub(crate) alignment: usize,
    pub(crate) signature: Signature,
    pub(crate) constructor: Constructor,
    /// True if the large-count form made the type. It determines the positions of the arguments in
    /// the contents.
    pub(crate) large: bool,
    pub(crate) depth: u32,
    /// The meter of copies to and from the elements, on a modelled machine.
    pub(crate) meter: OnceLock<Arc<Meter>>,
}

impl Derived {
    /// The kind of work of a copy to or from the elements: the mean length of a run, and the mean
    /// distance from one run to the next.
    #[cold]
    fn gaps(&self) -> LocalWork {
        let (run, stride) = self.piece.runs();
        let stride = match self.piece.is_run() {
            true => self.bounds.extent().unsigned_abs(),
            false => stride,
        };
        let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        LocalWork::Strided {
            run: number(run),
            stride: number(stride),
        }
    }

    #[cold]
    fn kind(&self) -> Option<Kind> {
        match &self.constructor {
            Constructor::F90(kind) => Some(*kind),
            _ => None,
        }
    }
}

impl From<Predefined> for Type {
    fn from(basic: Predefined) -> Type {
        Type::Predefined(basic)
    }
}

impl Type {
    /// The number of bytes of data in one element; 0 for an optional type that is not supported.
    #[inline]
    pub fn size(&self) -> usize {
        match self {
            Type::Predefined(basic) => basic.bytes(),
            Type::Derived(derived) => derived.piece.size,
        }
    }

    /// The extent in bytes: the difference of upper and lower bound.
    #[inline]
    pub fn extent(&self) -> isize {
        match self {
            Type::Predefined(basic) => basic.extent() as isize,
            Type::Derived(derived) => derived.bounds.extent(),
        }
    }

    /// The lower bound in bytes.
    pub fn lb(&self) -> isize {
        self.bounds().lb
    }

    /// The upper bound in bytes.
    pub fn ub(&self) -> isize {
        self.bounds().ub
    }

    /// The offset in bytes of the first byte of data (the true lower bound).
    #[inline]
    pub fn true_lb(&self) -> isize {
        match self {
            Type::Predefined(_) => 0,
            Type::Derived(derived) => derived.bounds.true_lb,
        }
    }

    /// The number of bytes from the first byte of data to the end of the last.
    pub fn true_extent(&self) -> isize {
        let bounds = self.bounds();
        bounds.true_ub - bounds.true_lb
    }

    /// True if any number of elements is one run of bytes that begins at the buffer's address.
    #[inline]
    pub fn is_dense(&self) -> bool {
        match self {
            Type::Predefined(basic) => basic.extent() == basic.bytes(),
            Type::Derived(derived) => {
                let piece = &derived.piece;
                piece.is_run()
                    && piece.offset == 0
                    && derived.bounds.extent() == piece.size as isize
            }
        }
    }

    /// The offset from the elements' address to the data of `count` elements, if these are one run.
    #[inline]
    pub(crate) fn is_one_run(&self, count: usize) -> Option<isize> {
        match self {
            Type::Predefined(basic) if basic.extent() == basic.bytes() => Some(0),
            _ => self.with_piece(|piece| {
                let one_run =
                    piece.is_run() && (count == 1 || self.extent() == piece.size as isize);
                one_run.then_some(piece.offset)
            }),
        }
    }

    /// The type itself, if it is predefined, or the predefined type of its Fortran kind.
    #[inline]
    pub fn predefined(&self) -> Option<Predefined> {
        match self {
            Type::Predefined(basic) => Some(*basic),
            Type::Derived(derived) => derived.kind().and_then(Kind::basic),
        }
    }

    /// The Fortran kind for which the type was made (`MPI_Type_create_f90_real` and its like);
    /// `None` for other types.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Type::Predefined(_) => None,
            Type::Derived(derived) => derived.kind(),
        }
    }

    /// The basic type of all data of this type, if there is only one.
    pub fn basic(&self) -> Option<Predefined> {
        match self {
            Type::Predefined(basic) => Some(*basic),
            Type::Derived(derived) => derived.signature.uniform(),
        }
    }

    /// Calls `visit` with the basic types of one element in order, as (type, number of consecutive
    /// elements), until it breaks.
    pub fn visit_basic(&self, visit: &mut dyn FnMut(Predefined, usize) -> ControlFlow<()>) {
        let stopped = Err(Error::TooLarge { what: "signature" });
        let mut visit = |ty, count| match visit(ty, count) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => stopped.clone(),
        };
        // The error is the visitor's own end.
        let _ = self.with_signature(|signature| signature.for_each(&mut visit));
    }

    /// The number of basic elements in one element of this type; a pair counts as two.
    pub fn num_elements(&self) -> usize {
        self.with_signature(|signature| signature.elements)
    }

    /// The number of whole basic elements in `bytes` bytes of packed data of this type
    /// (MPI_Get_elements).
    pub fn elements_in(&self, bytes: usize) -> usize {
        self.with_signature(|signature| signature.elements_in(bytes))
    }

    /// The number of elements of this type in `bytes` bytes of packed data (MPI_Get_count). `None`:
    /// `bytes` is not a multiple of the size (MPI_UNDEFINED).
    pub fn count_in(&self, bytes: usize) -> Option<usize> {
        match (self.size(), bytes) {
            (0, 0) => Some(0),
            (0, _) => None,
            (size, bytes) => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// The memory that `count` elements span, gaps included: the offset of the first byte from the
    /// buffer's address, and the length in bytes.
    pub fn span(&self, count: usize) -> Result<(isize, usize)> {
        let bounds = self.bounds().repeated(count, self.extent(), 0)?;
        Ok((bounds.true_lb, (bounds.true_ub - bounds.true_lb) as usize))
    }

    /// The constructor of the type, and the number of its arguments of each kind
    /// (`MPI_Type_get_envelope`).
    pub fn envelope(&self) -> Envelope {
        match self {
            Type::Predefined(_) => Envelope::NAMED,
            Type::Derived(derived) => derived.constructor.contents(derived.large).1,
        }
    }

    /// The arguments of the constructor (`MPI_Type_get_contents`); `None` for a predefined type.
    pub fn contents(&self) -> Option<Contents> {
        match self {
            Type::Predefined(_) => None,
            Type::Derived(derived) => Some(derived.constructor.contents(derived.large).0),
        }
    }

    /// Makes buffers of this type count their copies at `meter`. A type that already has a meter
    /// keeps it; a predefined type has none.
    pub fn meter_by(&self, meter: &Arc<Meter>) {
        if let Type::Derived(derived) = self {
            derived.meter.get_or_init(|| meter.clone());
        }
    }

    /// Counts the extra time of a copy to or from separate runs, compared with one run: of `amount`
    /// bytes, a part of `of` bytes.
    #[inline]
    pub(crate) fn count_gaps(&self, amount: usize, of: usize) {
        if let Type::Derived(derived) = self
            && let Some(meter) = derived.meter.get()
        {
            meter.add_gaps(derived.gaps(), amount, of);
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        match self {
            Type::Predefined(basic) => {
                let end = match basic.index_offset() {
                    Some(offset) => offset + basic.pair().map_or(0, |(_, index)| index.size()),
                    None => basic.bytes(),
                };
                Bounds::element(basic.extent() as isize, end as isize)
            }
            Type::Derived(derived) => derived.bounds,
        }
    }

    pub(crate) fn alignment(&self) -> usize {
        match self {
            Type::Predefined(basic) => basic.alignment(),
            Type::Derived(derived) => derived.alignment,
        }
    }

    pub(crate) fn depth(&self) -> u32 {
        match self {
            Type::Predefined(_) => 0,
            Type::Derived(derived) => derived.depth,
        }
    }

    pub(crate) fn signature(&self) -> Signature {
        self.with_signature(Signature::clone)
    }

    pub(crate) fn with_signature<R>(&self, then: impl FnOnce(&Signature) -> R) -> R {
        match self {
            Type::Predefined(basic) if basic.size().is_none() => then(&Signature::EMPTY),
            Type::Predefined(basic) => then(&Signature::basic(*basic)),
            Type::Derived(derived) => then(&derived.signature),
        }
    }

    #[inline]
    pub(crate) fn with_piece<R>(&self, then: impl FnOnce(&Piece) -> R) -> R {
        match self {
            Type::Predefined(Predefined::SHORT_INT) => then(&SHORT_INT),
            Type::Predefined(basic) => then(&Piece::run(0, basic.bytes())),
            Type::Derived(derived) => then(&derived.piece),
        }
    }

    /// Returns an error for an optional type that is not supported.
    pub(crate) fn checked(&self) -> Result<&Type> {
        match self {
            Type::Predefined(basic) if basic.size().is_none() => Err(Error::Unsupported(*basic)),
            _ => Ok(self),
        }
    }
}

/// The layout of SHORT_INT, the only pair with a gap between its members.
static SHORT_INT: LazyLock<Piece> = LazyLock::new(|| {
    let mut builder = Builder::default();
    for piece in [Piece::run(0, 2), Piece::run(4, 4)] {
        builder.push(piece).expect("six bytes fit");
    }
    builder.finish()
});
