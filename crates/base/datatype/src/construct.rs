//! The constructors (MPI 5.0, section 5.1.2 and following). Each checks its arguments, then makes
//! layout, bounds and signature by three operations: repeat, shift, join.

use crate::bounds::Bounds;
use crate::combiner::Order;
use crate::envelope::Constructor;
use crate::error::{Error, Result};
use crate::f90::Kind;
use crate::layout::{Builder, Piece};
use crate::signature::Signature;
use crate::types::{Derived, Type};
use std::sync::{Arc, OnceLock};

/// The deepest nesting of derived types. Freeing a type recurses, and must not exhaust the stack.
const DEPTH_LIMIT: u32 = 2048;

pub(crate) const TOO_LARGE: Error = Error::TooLarge { what: "size" };
pub(crate) const FAR: Error = Error::TooLarge {
    what: "displacement",
};

impl Type {
    /// `MPI_Type_dup`: a copy of a type.
    pub fn dup(old: &Type) -> Result<Type> {
        Parts::of(old)?.into_type(Constructor::Dup(old.clone()))
    }

    /// `MPI_Type_contiguous`: `count` elements one after the other.
    pub fn contiguous(count: i64, old: &Type) -> Result<Type> {
        let copies = non_negative("count", count)?;
        let parts = Parts::of(old)?.repeated(copies, old.extent())?;
        parts.into_type(Constructor::Contiguous {
            count,
            old: old.clone(),
        })
    }

    /// `MPI_Type_vector`: `count` blocks; `stride` counts extents of the old type.
    pub fn vector(count: i64, blocklength: i64, stride: i64, old: &Type) -> Result<Type> {
        let bytes = scaled(stride, old).ok_or(FAR);
        let parts = blocks(count, blocklength, bytes, old)?;
        parts.into_type(Constructor::Vector {
            count,
            blocklength,
            stride,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_hvector`: `count` blocks; `stride` counts bytes.
    pub fn hvector(count: i64, blocklength: i64, stride: isize, old: &Type) -> Result<Type> {
        let parts = blocks(count, blocklength, Ok(stride), old)?;
        parts.into_type(Constructor::Hvector {
            count,
            blocklength,
            stride,
            old: old.clone(),
        })
    }

    /// `MPI_Type_indexed`: blocks of any length; `displacements` count extents of the old type.
    pub fn indexed(blocklengths: &[i64], displacements: &[i64], old: &Type) -> Result<Type> {
        same_length(
            "array_of_displacements",
            displacements.len(),
            blocklengths.len(),
        )?;
        let lengths = lengths(blocklengths)?;
        let parts = listed(
            lengths.zip(displacements.iter().map(|at| scaled(*at, old))),
            old,
        )?;
        let (blocklengths, displacements) = (blocklengths.into(), displacements.into());
        parts.into_type(Constructor::Indexed {
            blocklengths,
            displacements,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_hindexed`: blocks of any length; `displacements` count bytes.
    pub fn hindexed(blocklengths: &[i64], displacements: &[isize], old: &Type) -> Result<Type> {
        same_length(
            "array_of_displacements",
            displacements.len(),
            blocklengths.len(),
        )?;
        let lengths = lengths(blocklengths)?;
        let parts = listed(lengths.zip(displacements.iter().map(|at| Some(*at))), old)?;
        let (blocklengths, displacements) = (blocklengths.into(), displacements.into());
        parts.into_type(Constructor::Hindexed {
            blocklengths,
            displacements,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_indexed_block`: blocks of one length; `displacements` count extents of the
    /// old type.
    pub fn indexed_block(blocklength: i64, displacements: &[i64], old: &Type) -> Result<Type> {
        let length = in_range("blocklength", 0, blocklength)?;
        let parts = listed(
            displacements.iter().map(|at| (length, scaled(*at, old))),
            old,
        )?;
        let displacements = displacements.into();
        parts.into_type(Constructor::IndexedBlock {
            blocklength,
            displacements,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_hindexed_block`: blocks of one length; `displacements` count bytes.
    pub fn hindexed_block(blocklength: i64, displacements: &[isize], old: &Type) -> Result<Type> {
        let length = in_range("blocklength", 0, blocklength)?;
        let parts = listed(displacements.iter().map(|at| (length, Some(*at))), old)?;
        let displacements = displacements.into();
        parts.into_type(Constructor::HindexedBlock {
            blocklength,
            displacements,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_struct`: blocks of different types; `displacements` count bytes. The upper
    /// bound is padded to the largest alignment of the members, as in C.
    pub fn struct_(blocklengths: &[i64], displacements: &[isize], types: &[Type]) -> Result<Type> {
        same_length(
            "array_of_displacements",
            displacements.len(),
            blocklengths.len(),
        )?;
        same_length("array_of_types", types.len(), blocklengths.len())?;
        let mut row = Row::default();
        for ((length, at), old) in lengths(blocklengths)?.zip(displacements).zip(types) {
            row.push(Parts::of(old)?.repeated(length, old.extent())?, *at)?;
        }
        let mut parts = row.finish()?;
        parts.bounds = parts.bounds.padded(parts.alignment)?;
        let (blocklengths, displacements) = (blocklengths.into(), displacements.into());
        parts.into_type(Constructor::Struct {
            blocklengths,
            displacements,
            types: types.into(),
        })
    }

    /// `MPI_Type_create_subarray`: a block of an array with `sizes.len()` dimensions; sizes,
    /// subsizes and starts count elements of the old type.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        old: &Type,
    ) -> Result<Type> {
        same_length("array_of_subsizes", subsizes.len(), sizes.len())?;
        same_length("array_of_starts", starts.len(), sizes.len())?;
        if sizes.is_empty() {
            return Err(Error::Argument {
                argument: "ndims",
                index: 0,
                value: 0,
                valid: "1 or more".into(),
            });
        }
        let mut parts = Parts::of(old)?;
        let mut stride = old.extent();
        let mut offset = 0isize;
        let fastest_first: &mut dyn Iterator<Item = usize> = match order {
            Order::C => &mut (0..sizes.len()).rev(),
            Order::Fortran => &mut (0..sizes.len()),
        };
        for dim in fastest_first {
            let (size, subsize, start) = (sizes[dim], subsizes[dim], starts[dim]);
            let check = |argument, value, low: i64, high: i64| match value {
                value if (low..=high).contains(&value) => Ok(()),
                _ => Err(Error::Argument {
                    argument,
                    index: dim,
                    value,
                    valid: format!("{low} to {high}"),
                }),
            };
            check("array_of_sizes", size, 1, i64::MAX)?;
            check("array_of_subsizes", subsize, 1, size)?;
            check("array_of_starts", start, 0, size - subsize)?;
            parts = parts.repeated(subsize as usize, stride)?;
            let skip = stride.checked_mul(start as isize).ok_or(FAR)?;
            offset = offset.checked_add(skip).ok_or(FAR)?;
            stride = stride.checked_mul(size as isize).ok_or(FAR)?;
        }
        let parts = parts.shifted(offset)?.resized(0, stride)?;
        let [sizes, subsizes, starts] = [sizes, subsizes, starts].map(Into::into);
        parts.into_type(Constructor::Subarray {
            sizes,
            subsizes,
            starts,
            order,
            old: old.clone(),
        })
    }

    /// `MPI_Type_create_resized`: the old type with another lower bound and extent, in bytes.
    pub fn resized(lb: isize, extent: isize, old: &Type) -> Result<Type> {
        let parts = Parts::of(old)?.resized(lb, extent)?;
        parts.into_type(Constructor::Resized {
            lb,
            extent,
            old: old.clone(),
        })
    }

    /// The datatype of a Fortran kind.
    pub fn f90(kind: Kind) -> Result<Type> {
        let basic = kind.basic().ok_or(Error::NoKind { kind })?;
        Parts::of(&basic.into())?.into_type(Constructor::F90(kind))
    }

    /// Marks the type as made by the large-count form of its constructor, for envelope and
    /// contents. Only a type fresh from a constructor is marked; a shared one stays unchanged.
    pub fn into_large(mut self) -> Type {
        if let Type::Derived(derived) = &mut self
            && let Some(derived) = Arc::get_mut(derived)
        {
            derived.large = true;
        }
        self
    }
}

/// A type under construction: its layout, bounds, signature, alignment and depth of nesting.
#[derive(Clone)]
pub(crate) struct Parts {
    piece: Piece,
    bounds: Bounds,
    signature: Signature,
    alignment: usize,
    depth: u32,
}

impl Parts {
    pub(crate) fn of(old: &Type) -> Result<Parts> {
        old.checked()?;
        Ok(Parts {
            piece: old.with_piece(Piece::clone),
            bounds: old.bounds(),
            signature: old.signature(),
            alignment: old.alignment(),
            depth: old.depth(),
        })
    }

    pub(crate) fn repeated(self, count: usize, stride: isize) -> Result<Parts> {
        Ok(Parts {
            piece: self.piece.repeated(count, stride).ok_or(TOO_LARGE)?,
            bounds: self.bounds.repeated(count, stride, 0)?,
            signature: self.signature.repeated(count)?,
            alignment: if count == 0 { 1 } else { self.alignment },
            ..self
        })
    }

    pub(crate) fn shifted(self, by: isize) -> Result<Parts> {
        Ok(Parts {
            bounds: self.bounds.repeated(1, 0, by)?,
            piece: self.piece.shifted(by),
            ..self
        })
    }

    pub(crate) fn resized(self, lb: isize, extent: isize) -> Result<Parts> {
        Ok(Parts {
            bounds: self.bounds.resized(lb, extent)?,
            ..self
        })
    }

    /// Replaces the signature by that of `count` elements of `old`.
    pub(crate) fn with_elements(self, count: usize, old: &Type) -> Result<Parts> {
        Ok(Parts {
            signature: old.signature().repeated(count)?,
            ..self
        })
    }

    /// Appends the data of `other` to the data of this type. Neither is displaced.
    pub(crate) fn then(self, other: Parts) -> Result<Parts> {
        let mut row = Row {
            depth: self.depth,
            ..Row::default()
        };
        row.push(self, 0)?;
        row.push(other, 0)?;
        row.finish()
    }

    pub(crate) fn into_type(self, constructor: Constructor) -> Result<Type> {
        let Parts {
            piece,
            bounds,
            signature,
            alignment,
            depth,
        } = self;
        if depth >= DEPTH_LIMIT {
            return Err(Error::Nesting { limit: DEPTH_LIMIT });
        }
        debug_assert_eq!(piece.size, signature.bytes);
        let depth = depth + 1;
        Ok(Type::Derived(Arc::new(Derived {
            piece,
            bounds,
            alignment,
            signature,
            constructor,
            large: false,
            depth,
            meter: OnceLock::new(),
        })))
    }
}

/// Several types under construction, each at a displacement, joined to one.
struct Row {
    builder: Builder,
    bounds: Bounds,
    signatures: Vec<Signature>,
    alignment: usize,
    depth: u32,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            builder: Builder::default(),
            bounds: Bounds::VOID,
            signatures: Vec::new(),
            alignment: 1,
            depth: 0,
        }
    }
}

impl Row {
    fn push(&mut self, parts: Parts, at: isize) -> Result<()> {
        let parts = parts.shifted(at)?;
        self.builder.push(parts.piece).ok_or(TOO_LARGE)?;
        self.bounds = self.bounds.joined(parts.bounds)?;
        self.signatures.push(parts.signature);
        self.alignment = self.alignment.max(parts.alignment);
        self.depth = self.depth.max(parts.depth);
        Ok(())
    }

    fn finish(self) -> Result<Parts> {
        Ok(Parts {
            piece: self.builder.finish(),
            bounds: self.bounds,
            signature: Signature::sequence(self.signatures.into_iter())?,
            alignment: self.alignment,
            depth: self.depth,
        })
    }
}

/// A type of blocks of one length at one stride. A stride that overflows is an error only if there
/// are two blocks.
fn blocks(count: i64, blocklength: i64, stride: Result<isize>, old: &Type) -> Result<Parts> {
    let count = non_negative("count", count)?;
    let length = in_range("blocklength", 0, blocklength)?;
    let block = Parts::of(old)?.repeated(length, old.extent())?;
    if count > 1 && length > 0 {
        block.repeated(count, stride?)
    } else {
        block.repeated(count, 0)
    }
}

/// A type of blocks at any displacements. `None` is a displacement that overflows, which only an
/// empty block may have.
fn listed(blocks: impl Iterator<Item = (usize, Option<isize>)>, old: &Type) -> Result<Parts> {
    let one = Parts::of(old)?;
    let mut row = Row {
        depth: one.depth,
        ..Row::default()
    };
    let mut total = 0usize;
    // Most types have few different lengths, so the block is made again only when the length
    // changes.
    let mut block = (1, one.clone());
    for (length, at) in blocks {
        if length == 0 {
            continue;
        }
        if block.0 != length {
            block = (length, one.clone().repeated(length, old.extent())?);
        }
        total = total.checked_add(length).ok_or(TOO_LARGE)?;
        let parts = block.1.clone().shifted(at.ok_or(FAR)?)?;
        row.builder.push(parts.piece).ok_or(TOO_LARGE)?;
        row.bounds = row.bounds.joined(parts.bounds)?;
    }
    if total > 0 {
        row.alignment = one.alignment;
        row.signatures.push(one.signature.repeated(total)?);
    }
    row.finish()
}

fn scaled(count: i64, old: &Type) -> Option<isize> {
    old.extent().checked_mul(count as isize)
}

fn non_negative(argument: &'static str, value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::Count { argument, value })
}

fn in_range(argument: &'static str, index: usize, value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::Argument {
        argument,
        index,
        value,
        valid: "0 or more".into(),
    })
}

fn lengths(blocklengths: &[i64]) -> Result<impl Iterator<Item = usize>> {
    for (index, length) in blocklengths.iter().enumerate() {
        in_range("array_of_blocklengths", index, *length)?;
    }
    Ok(blocklengths.iter().map(|length| *length as usize))
}

fn same_length(argument: &'static str, length: usize, expected: usize) -> Result<()> {
    if length == expected {
        Ok(())
    } else {
        Err(Error::Lengths {
            argument,
            length,
            expected,
        })
    }
}
