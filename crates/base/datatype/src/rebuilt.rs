//! The layout of a datatype in another data representation, made by its constructors with other
//! predefined types.

use crate::envelope::Constructor;
use crate::error::{Error, Result};
use crate::predefined::Predefined;
use crate::types::Type;

impl Type {
    /// The type that the same constructors make if `leaf` replaces each predefined type.
    /// Displacements that count extents scale with them; displacements in bytes do not change.
    ///
    /// # Errors
    /// Those of `leaf` and of the constructors.
    pub fn rebuilt(&self, leaf: &dyn Fn(Predefined) -> Result<Type>) -> Result<Type> {
        let derived = match self {
            Type::Predefined(basic) => return leaf(*basic),
            Type::Derived(derived) => derived,
        };
        let new = |old: &Type| old.rebuilt(leaf);
        match &derived.constructor {
            Constructor::Dup(old) => new(old),
            Constructor::Contiguous { count, old } => Type::contiguous(*count, &new(old)?),
            Constructor::Vector {
                count,
                blocklength,
                stride,
                old,
            } => Type::vector(*count, *blocklength, *stride, &new(old)?),
            Constructor::Hvector {
                count,
                blocklength,
                stride,
                old,
            } => Type::hvector(*count, *blocklength, *stride, &new(old)?),
            Constructor::Indexed {
                blocklengths,
                displacements,
                old,
            } => Type::indexed(blocklengths, displacements, &new(old)?),
            Constructor::Hindexed {
                blocklengths,
                displacements,
                old,
            } => Type::hindexed(blocklengths, displacements, &new(old)?),
            Constructor::IndexedBlock {
                blocklength,
                displacements,
                old,
            } => Type::indexed_block(*blocklength, displacements, &new(old)?),
            Constructor::HindexedBlock {
                blocklength,
                displacements,
                old,
            } => Type::hindexed_block(*blocklength, displacements, &new(old)?),
            Constructor::Struct {
                blocklengths,
                displacements,
                types,
            } => {
                let types = types.iter().map(new).collect::<Result<Vec<_>>>()?;
                Type::struct_(blocklengths, displacements, &types)
            }
            Constructor::Subarray {
                sizes,
                subsizes,
                starts,
                order,
                old,
            } => Type::subarray(sizes, subsizes, starts, *order, &new(old)?),
            Constructor::Darray {
                size,
                rank,
                dimensions,
                order,
                old,
            } => Type::darray(*size, *rank, dimensions, *order, &new(old)?),
            Constructor::Resized { lb, extent, old } => Type::resized(*lb, *extent, &new(old)?),
            Constructor::F90(kind) => match kind.basic() {
                Some(basic) => leaf(basic),
                None => Err(Error::NoKind { kind: *kind }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displacements_in_extents_scale_and_those_in_bytes_stay() {
        // Each long becomes four bytes.
        let short = |ty: &Type| {
            ty.rebuilt(&|basic| {
                let bytes = if basic == Predefined::LONG {
                    4
                } else {
                    basic.bytes()
                };
                Type::contiguous(bytes as i64, &Predefined::BYTE.into())
            })
            .unwrap()
        };
        let long: Type = Predefined::LONG.into();
        let facts = |ty: &Type| (ty.size(), ty.extent(), ty.true_extent());
        assert_eq!(facts(&short(&long)), (4, 4, 4));
        let vector = Type::vector(3, 2, 5, &long).unwrap();
        assert_eq!(facts(&vector), (48, 96, 96));
        assert_eq!(facts(&short(&vector)), (24, 48, 48));
        let bytes = Type::hvector(3, 2, 100, &long).unwrap();
        assert_eq!(facts(&short(&bytes)), (24, 208, 208));
        let resized = Type::resized(0, 64, &vector).unwrap();
        assert_eq!(facts(&short(&resized)), (24, 64, 48));
        let mixed = Type::struct_(&[1, 2], &[0, 8], &[Predefined::INT.into(), long]).unwrap();
        assert_eq!(short(&mixed).size(), 12);
    }
}
