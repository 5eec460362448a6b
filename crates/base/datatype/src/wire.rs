//! Descriptions of types for other ranks: the constructor calls that made a type, as bytes.
//!
//! The length of a description depends on the arguments of the constructors, not on the size of the
//! flattened type.
//!
//! Invariant: a decoder builds types only by the constructors with their checks, so no bytes make a
//! type that a program could not have made.

use crate::combiner::{Combiner, Order};
use crate::distribution::{Dimension, Distribution};
use crate::envelope::Constructor;
use crate::f90::Kind;
use crate::predefined::Predefined;
use crate::types::Type;

impl Type {
    /// Appends an encoded description of the type, for a peer.
    pub fn describe(&self, to: &mut Vec<u8>) {
        self.write(to);
    }

    /// The length in bytes of the description of the type.
    pub fn description_len(&self) -> usize {
        let mut len = Len(0);
        self.write(&mut len);
        len.0
    }

    /// Writes a description of the type to `to`, which has
    /// [`description_len`](Type::description_len) bytes.
    ///
    /// # Panics
    /// The memory is shorter.
    pub fn describe_in(&self, mut to: &mut [u8]) {
        self.write(&mut to);
    }

    fn write(&self, to: &mut impl Sink) {
        match self {
            Type::Predefined(basic) => {
                to.put([Combiner::Named as u8]);
                to.put((basic.handle() as u16).to_ne_bytes());
            }
            Type::Derived(derived) => describe(&derived.constructor, to),
        }
    }

    /// The type that `bytes` describe. `None`: they are not exactly one description.
    pub fn described(bytes: &[u8]) -> Option<Type> {
        let mut reader = Reader(bytes);
        let ty = reader.ty(0)?;
        reader.0.is_empty().then_some(ty)
    }
}

/// A destination for the bytes of an encoded type.
trait Sink {
    fn put<const N: usize>(&mut self, bytes: [u8; N]);

    fn numbers(&mut self, values: impl ExactSizeIterator<Item = i64>) {
        values.for_each(|value| self.put(value.to_ne_bytes()));
    }
}

impl Sink for Vec<u8> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.extend_from_slice(&bytes);
    }

    fn numbers(&mut self, values: impl ExactSizeIterator<Item = i64>) {
        self.reserve(8 * values.len());
        values.for_each(|value| self.put(value.to_ne_bytes()));
    }
}

/// Writes to memory; the slice shrinks to the rest of it.
impl Sink for &mut [u8] {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let (place, rest) = std::mem::take(self).split_at_mut(N);
        place.copy_from_slice(&bytes);
        *self = rest;
    }
}

/// A sink that only counts bytes, and does not read the numbers of a list.
struct Len(usize);

impl Sink for Len {
    fn put<const N: usize>(&mut self, _: [u8; N]) {
        self.0 += N;
    }

    fn numbers(&mut self, values: impl ExactSizeIterator<Item = i64>) {
        self.0 += 8 * values.len();
    }
}

/// The greatest nesting depth that is decoded: a decoder recurses once for each level.
const DEEPEST: u32 = 2048;

// Over 80 lines: one arm for each constructor.
fn describe(constructor: &Constructor, to: &mut impl Sink) {
    to.put([constructor.combiner() as u8]);
    match constructor {
        Constructor::Dup(old) => old.write(to),
        Constructor::Contiguous { count, old } => {
            number(to, *count);
            old.write(to);
        }
        Constructor::Vector {
            count,
            blocklength,
            stride,
            old,
        } => {
            numbers(to, [*count, *blocklength, *stride]);
            old.write(to);
        }
        Constructor::Hvector {
            count,
            blocklength,
            stride,
            old,
        } => {
            numbers(to, [*count, *blocklength, *stride as i64]);
            old.write(to);
        }
        Constructor::Indexed {
            blocklengths,
            displacements,
            old,
        } => {
            list(to, blocklengths);
            list(to, displacements);
            old.write(to);
        }
        Constructor::Hindexed {
            blocklengths,
            displacements,
            old,
        } => {
            list(to, blocklengths);
            offsets(to, displacements);
            old.write(to);
        }
        Constructor::IndexedBlock {
            blocklength,
            displacements,
            old,
        } => {
            number(to, *blocklength);
            list(to, displacements);
            old.write(to);
        }
        Constructor::HindexedBlock {
            blocklength,
            displacements,
            old,
        } => {
            number(to, *blocklength);
            offsets(to, displacements);
            old.write(to);
        }
        Constructor::Struct {
            blocklengths,
            displacements,
            types,
        } => {
            list(to, blocklengths);
            offsets(to, displacements);
            types.iter().for_each(|ty| ty.write(to));
        }
        Constructor::Subarray {
            sizes,
            subsizes,
            starts,
            order,
            old,
        } => {
            list(to, sizes);
            list(to, subsizes);
            list(to, starts);
            number(to, *order as i64);
            old.write(to);
        }
        Constructor::Darray {
            size,
            rank,
            dimensions,
            order,
            old,
        } => {
            numbers(to, [*size, *rank, dimensions.len() as i64]);
            for dimension in dimensions {
                number(to, dimension.gsize);
                number(to, dimension.distribution.value().into());
                number(to, dimension.distribution.argument());
                number(to, dimension.psize);
            }
            number(to, *order as i64);
            old.write(to);
        }
        Constructor::Resized { lb, extent, old } => {
            numbers(to, [*lb as i64, *extent as i64]);
            old.write(to);
        }
        Constructor::F90(kind) => {
            let arguments = kind.arguments();
            arguments.into_iter().for_each(|one| number(to, one.into()));
        }
    }
}

fn number(to: &mut impl Sink, value: i64) {
    to.put(value.to_ne_bytes());
}

fn numbers<const N: usize>(to: &mut impl Sink, values: [i64; N]) {
    to.numbers(values.into_iter());
}

fn list(to: &mut impl Sink, values: &[i64]) {
    number(to, values.len() as i64);
    to.numbers(values.iter().copied());
}

fn offsets(to: &mut impl Sink, values: &[isize]) {
    number(to, values.len() as i64);
    to.numbers(values.iter().map(|value| *value as i64));
}

/// A reader of the bytes of an encoded type that are still to be read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn number(&mut self) -> Option<i64> {
        self.take().map(i64::from_ne_bytes)
    }

    fn small(&mut self) -> Option<i32> {
        i32::try_from(self.number()?).ok()
    }

    /// Reads the length of a list whose entries have `width` numbers each. `None`: the rest of the
    /// description is shorter than that.
    fn len(&mut self, width: usize) -> Option<usize> {
        let len = usize::try_from(self.number()?).ok()?;
        (len <= self.0.len() / (8 * width)).then_some(len)
    }

    fn list(&mut self) -> Option<Vec<i64>> {
        (0..self.len(1)?).map(|_| self.number()).collect()
    }

    fn dimensions(&mut self) -> Option<Vec<Dimension>> {
        let dimension = |reader: &mut Self| {
            let gsize = reader.number()?;
            let (value, argument) = (reader.small()?, reader.number()?);
            Some(Dimension {
                gsize,
                distribution: Distribution::from_value(value, argument)?,
                psize: reader.number()?,
            })
        };
        (0..self.len(4)?).map(|_| dimension(self)).collect()
    }

    fn offsets(&mut self) -> Option<Vec<isize>> {
        let offsets = self.list()?;
        Some(offsets.into_iter().map(|offset| offset as isize).collect())
    }

    fn ty(&mut self, depth: u32) -> Option<Type> {
        if depth > DEEPEST {
            return None;
        }
        let [code] = self.take()?;
        let is = |combiner: Combiner| code == combiner as u8;
        if is(Combiner::Named) {
            let handle = u16::from_ne_bytes(self.take()?);
            let basic = Predefined::from_handle(handle.into())?;
            return basic.size().map(|_| basic.into());
        }
        let made = if is(Combiner::Dup) {
            Type::dup(&self.ty(depth + 1)?)
        } else if is(Combiner::Contiguous) {
            let count = self.number()?;
            Type::contiguous(count, &self.ty(depth + 1)?)
        } else if is(Combiner::Vector) {
            let (count, block, stride) = (self.number()?, self.number()?, self.number()?);
            Type::vector(count, block, stride, &self.ty(depth + 1)?)
        } else if is(Combiner::Hvector) {
            let (count, block, stride) = (self.number()?, self.number()?, self.number()?);
            Type::hvector(count, block, stride as isize, &self.ty(depth + 1)?)
        } else if is(Combiner::Indexed) {
            let (blocks, displacements) = (self.list()?, self.list()?);
            Type::indexed(&blocks, &displacements, &self.ty(depth + 1)?)
        } else if is(Combiner::Hindexed) {
            let (blocks, displacements) = (self.list()?, self.offsets()?);
            Type::hindexed(&blocks, &displacements, &self.ty(depth + 1)?)
        } else if is(Combiner::IndexedBlock) {
            let (block, displacements) = (self.number()?, self.list()?);
            Type::indexed_block(block, &displacements, &self.ty(depth + 1)?)
        } else if is(Combiner::HindexedBlock) {
            let (block, displacements) = (self.number()?, self.offsets()?);
            Type::hindexed_block(block, &displacements, &self.ty(depth + 1)?)
        } else if is(Combiner::Struct) {
            let (blocks, displacements) = (self.list()?, self.offsets()?);
            let types: Option<Vec<Type>> = blocks.iter().map(|_| self.ty(depth + 1)).collect();
            Type::struct_(&blocks, &displacements, &types?)
        } else if is(Combiner::Subarray) {
            let (sizes, subsizes, starts) = (self.list()?, self.list()?, self.list()?);
            let order = Order::from_value(self.small()?)?;
            Type::subarray(&sizes, &subsizes, &starts, order, &self.ty(depth + 1)?)
        } else if is(Combiner::Darray) {
            let (size, rank) = (self.number()?, self.number()?);
            let dimensions = self.dimensions()?;
            let order = Order::from_value(self.small()?)?;
            Type::darray(size, rank, &dimensions, order, &self.ty(depth + 1)?)
        } else if is(Combiner::F90Real) {
            let (p, r) = (self.small()?, self.small()?);
            Type::f90(Kind::Real { p, r })
        } else if is(Combiner::F90Complex) {
            let (p, r) = (self.small()?, self.small()?);
            Type::f90(Kind::Complex { p, r })
        } else if is(Combiner::F90Integer) {
            let r = self.small()?;
            Type::f90(Kind::Integer { r })
        } else if is(Combiner::Resized) {
            let (lb, extent) = (self.number()?, self.number()?);
            Type::resized(lb as isize, extent as isize, &self.ty(depth + 1)?)
        } else {
            return None;
        };
        made.ok()
    }
}
