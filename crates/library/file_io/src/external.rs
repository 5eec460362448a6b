//! The layout of datatypes in files of the representation external32 (MPI 5.0 §14.5.2).

use datatype::{Predefined, Result, Type, external32};

/// The datatype with the layout that `ty` has in a file of external32. Its data are bytes.
///
/// # Errors
/// The type has parts that are not supported.
pub fn layout(ty: &Type) -> Result<Type> {
    ty.rebuilt(&|basic| {
        let bytes = external32::size(&basic.into(), 1)?;
        Type::contiguous(bytes as i64, &Predefined::BYTE.into())
    })
}
