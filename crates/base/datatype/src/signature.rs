//! The type signature: the sequence of basic types, without displacements.

use crate::error::{Error, Result};
use crate::predefined::{Class, Predefined};
use std::sync::Arc;

/// The signature of a type: its sequence of basic elements. Pairs count as two elements, as in
/// MPI_Get_elements.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub bytes: usize,
    pub elements: usize,
    shape: SignatureShape,
}

#[derive(Clone, Debug)]
enum SignatureShape {
    Empty,
    Uniform(Predefined),
    Repeat(Arc<Signature>),
    Sequence(Arc<[Part]>),
}

#[derive(Clone, Debug)]
struct Part {
    bytes_before: usize,
    elements_before: usize,
    signature: Signature,
}

const TOO_LARGE: Error = Error::TooLarge { what: "size" };

impl Signature {
    pub(crate) const EMPTY: Signature = Signature {
        bytes: 0,
        elements: 0,
        shape: SignatureShape::Empty,
    };

    pub(crate) fn basic(ty: Predefined) -> Signature {
        let elements = if ty.class() == Class::Pair { 2 } else { 1 };
        Signature {
            bytes: ty.bytes(),
            elements,
            shape: SignatureShape::Uniform(ty),
        }
    }

    pub(crate) fn repeated(self, count: usize) -> Result<Signature> {
        if count == 0 || self.bytes == 0 {
            return Ok(Signature::EMPTY);
        }
        let bytes = self
            .bytes
            .checked_mul(count)
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or(TOO_LARGE)?;
        let elements = self.elements * count; // never more than bytes
        let shape = match self.shape {
            SignatureShape::Uniform(_) | SignatureShape::Repeat(_) => self.shape,
            _ if count == 1 => self.shape,
            _ => SignatureShape::Repeat(Arc::new(self)),
        };
        Ok(Signature {
            bytes,
            elements,
            shape,
        })
    }

    pub(crate) fn sequence(parts: impl Iterator<Item = Signature>) -> Result<Signature> {
        let mut list: Vec<Signature> = Vec::new();
        for part in parts.filter(|part| part.bytes > 0) {
            match list.last_mut() {
                Some(last) if last.uniform().is_some() && last.uniform() == part.uniform() => {
                    last.bytes = last.bytes.checked_add(part.bytes).ok_or(TOO_LARGE)?;
                    last.elements += part.elements;
                }
                _ => list.push(part),
            }
        }
        if list.len() == 1 {
            return Ok(list.swap_remove(0));
        }
        let (mut bytes, mut elements) = (0usize, 0);
        let mut parts = Vec::with_capacity(list.len());
        for signature in list {
            let (bytes_before, elements_before) = (bytes, elements);
            bytes = bytes
                .checked_add(signature.bytes)
                .filter(|sum| isize::try_from(*sum).is_ok())
                .ok_or(TOO_LARGE)?;
            elements += signature.elements;
            parts.push(Part {
                bytes_before,
                elements_before,
                signature,
            });
        }
        let shape = if parts.is_empty() {
            SignatureShape::Empty
        } else {
            SignatureShape::Sequence(parts.into())
        };
        Ok(Signature {
            bytes,
            elements,
            shape,
        })
    }

    /// The basic type of all elements; `None` if there are several or none.
    pub(crate) fn uniform(&self) -> Option<Predefined> {
        match &self.shape {
            SignatureShape::Uniform(ty) => Some(*ty),
            _ => None,
        }
    }

    /// The number of whole basic elements in the first `bytes` of the packed form, which repeats
    /// without end.
    pub(crate) fn elements_in(&self, bytes: usize) -> usize {
        match &self.shape {
            SignatureShape::Empty => 0,
            SignatureShape::Uniform(ty) => {
                let first = match ty.pair() {
                    Some((value, _)) => value.size(),
                    None => return bytes / ty.bytes(),
                };
                bytes / ty.bytes() * 2 + usize::from(bytes % ty.bytes() >= first)
            }
            SignatureShape::Repeat(child) => child.elements_in(bytes),
            SignatureShape::Sequence(parts) => {
                let rest = bytes % self.bytes;
                let part = &parts[parts.partition_point(|part| part.bytes_before <= rest) - 1];
                let inside = part.signature.elements_in(rest - part.bytes_before);
                bytes / self.bytes * self.elements + part.elements_before + inside
            }
        }
    }

    /// Calls `visit` with each basic type and its number of elements; a type may be visited more
    /// than once.
    pub(crate) fn totals(
        &self,
        visit: &mut dyn FnMut(Predefined, usize) -> Result<()>,
    ) -> Result<()> {
        match &self.shape {
            SignatureShape::Repeat(child) => {
                let times = self.bytes / child.bytes;
                child.totals(&mut |ty, count| visit(ty, count.checked_mul(times).ok_or(TOO_LARGE)?))
            }
            SignatureShape::Sequence(parts) => parts
                .iter()
                .try_for_each(|part| part.signature.totals(visit)),
            SignatureShape::Empty | SignatureShape::Uniform(_) => self.for_each(visit),
        }
    }

    /// Calls `visit` with the basic types in order, as (type, number of consecutive elements).
    pub(crate) fn for_each(
        &self,
        visit: &mut dyn FnMut(Predefined, usize) -> Result<()>,
    ) -> Result<()> {
        match &self.shape {
            SignatureShape::Empty => Ok(()),
            SignatureShape::Uniform(ty) => visit(*ty, self.bytes / ty.bytes()),
            SignatureShape::Repeat(child) => {
                (0..self.bytes / child.bytes).try_for_each(|_| child.for_each(visit))
            }
            SignatureShape::Sequence(parts) => parts
                .iter()
                .try_for_each(|part| part.signature.for_each(visit)),
        }
    }
}
