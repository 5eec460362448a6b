//! Sections 5.1.6 to 5.1.8 and 5.1.13: size, bounds, envelope and contents of a datatype. Section
//! 19.1.5: the datatype of a Fortran type class and size.

use super::types::type_of;
use crate::args::{Out, OutCount};
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Datatype;
use datatype::{Predefined, Type};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// `MPI_Type_size` (MPI 5.0, chapter 5).
pub fn type_size(call: &Running, datatype: Datatype, size: OutCount) -> Done {
    size.set(size_of(&type_of(call, datatype)?));
    Ok(())
}

/// `MPI_Type_size_x` (MPI 5.0, chapter 16).
pub fn type_size_x(call: &Running, datatype: Datatype, size: OutCount) -> Done {
    type_size(call, datatype, size)
}

/// `MPI_Type_get_extent` (MPI 5.0, chapter 5).
pub fn type_get_extent(call: &Running, datatype: Datatype, lb: OutCount, extent: OutCount) -> Done {
    let ty = supported(call, datatype)?;
    lb.set(ty.lb() as i64);
    extent.set(ty.extent() as i64);
    Ok(())
}

/// `MPI_Type_get_extent_x` (MPI 5.0, chapter 16).
pub fn type_get_extent_x(
    call: &Running,
    datatype: Datatype,
    lb: OutCount,
    extent: OutCount,
) -> Done {
    type_get_extent(call, datatype, lb, extent)
}

/// `MPI_Type_get_true_extent` (MPI 5.0, chapter 5).
pub fn type_get_true_extent(
    call: &Running,
    datatype: Datatype,
    lb: OutCount,
    extent: OutCount,
) -> Done {
    let ty = supported(call, datatype)?;
    lb.set(ty.true_lb() as i64);
    extent.set(ty.true_extent() as i64);
    Ok(())
}

/// `MPI_Type_get_true_extent_x` (MPI 5.0, chapter 16).
pub fn type_get_true_extent_x(
    call: &Running,
    datatype: Datatype,
    lb: OutCount,
    extent: OutCount,
) -> Done {
    type_get_true_extent(call, datatype, lb, extent)
}

/// `MPI_Type_get_envelope` (MPI 5.0, chapter 5).
pub fn type_get_envelope(
    call: &Running,
    datatype: Datatype,
    integers: OutCount,
    addresses: OutCount,
    counts: Option<OutCount>,
    types: OutCount,
    combiner: Out<c_int>,
) -> Done {
    let envelope = type_of(call, datatype)?.envelope();
    match counts {
        Some(place) => place.set(envelope.counts as i64),
        None if envelope.counts > 0 => return Err(only_large(call)),
        None => {}
    }
    integers.set(envelope.integers as i64);
    addresses.set(envelope.addresses as i64);
    types.set(envelope.types as i64);
    combiner.set(envelope.combiner as c_int);
    Ok(())
}

/// `MPI_Type_get_contents` (MPI 5.0, chapter 5). Derived datatypes in the contents are new handles,
/// which the caller frees.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub fn type_get_contents(
    call: &Running,
    datatype: Datatype,
    _max_integers: i64,
    _max_addresses: i64,
    _max_counts: Option<i64>,
    _max_types: i64,
    integers: &mut [MaybeUninit<c_int>],
    addresses: &mut [MaybeUninit<isize>],
    counts: Option<&mut [MaybeUninit<i64>]>,
    types: &mut [MaybeUninit<Datatype>],
) -> Done {
    let ty = type_of(call, datatype)?;
    let Some(contents) = ty.contents() else {
        let detail = "the datatype is predefined: it was not made by a constructor";
        return Err(Error::new(MPI_ERR_TYPE, detail));
    };
    let room = types.len();
    if room < contents.types.len() {
        return Err(no_room("max_datatypes", room, contents.types.len()));
    }
    match counts {
        Some(counts) => fill("max_large_counts", counts, &contents.counts)?,
        None if !contents.counts.is_empty() => return Err(only_large(call)),
        None => {}
    }
    fill("max_integers", integers, &contents.integers)?;
    fill("max_addresses", addresses, &contents.addresses)?;
    let mut state = call.rank.lock();
    for (place, ty) in types.iter_mut().zip(contents.types) {
        place.write(Datatype::from(state.objects_mut().types_mut().add(ty)?));
    }
    Ok(())
}

/// `MPI_Type_get_value_index` (MPI 5.0, chapter 5): the pair type of a value and an index, for
/// MPI_MINLOC and MPI_MAXLOC; MPI_DATATYPE_NULL if there is none.
pub fn type_get_value_index(
    call: &Running,
    value: Datatype,
    index: Datatype,
    pair: Out<Datatype>,
) -> Done {
    let (value, index) = (type_of(call, value)?, type_of(call, index)?);
    let found = match (value.predefined(), index.predefined()) {
        (Some(value), Some(index)) => Predefined::value_index(value, index),
        _ => None,
    };
    pair.set(found.map_or(MPI_DATATYPE_NULL, |pair| Datatype(pair.handle())));
    Ok(())
}

/// `MPI_Type_match_size` (MPI 5.0, chapter 19).
pub fn type_match_size(
    _: &Running,
    typeclass: c_int,
    size: c_int,
    datatype: Out<Datatype>,
) -> Done {
    use Predefined as P;
    // The long double of C is the only 16-byte real here; MPI_REAL16 is not supported.
    let candidates: &[Predefined] = match typeclass {
        MPI_TYPECLASS_REAL => &[P::REAL4, P::REAL8, P::LONG_DOUBLE],
        MPI_TYPECLASS_INTEGER => &[
            P::INTEGER1,
            P::INTEGER2,
            P::INTEGER4,
            P::INTEGER8,
            P::INTEGER16,
        ],
        MPI_TYPECLASS_COMPLEX => &[P::COMPLEX8, P::COMPLEX16, P::C_LONG_DOUBLE_COMPLEX],
        _ => {
            let detail = format!(
                "typeclass is {typeclass}; valid: MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_COMPLEX"
            );
            return Err(Error::new(MPI_ERR_ARG, detail));
        }
    };
    let found = candidates
        .iter()
        .find(|basic| basic.size() == usize::try_from(size).ok());
    match found {
        Some(basic) => datatype.set(Datatype(basic.handle())),
        None => {
            let detail = format!("size is {size}; no datatype of this class has so many bytes");
            return Err(Error::new(MPI_ERR_ARG, detail));
        }
    }
    Ok(())
}

/// The size in bytes; MPI_UNDEFINED for an optional datatype that is not supported (MPI 5.0 §20.4).
fn size_of(ty: &Type) -> i64 {
    match ty.predefined() {
        Some(basic) => basic
            .size()
            .map_or(MPI_UNDEFINED.into(), |size| size as i64),
        None => ty.size() as i64,
    }
}

/// The datatype of a handle, or an error for an optional datatype that is not supported.
pub(super) fn supported(call: &Running, handle: Datatype) -> Result<Type, Error> {
    let ty = type_of(call, handle)?;
    match ty.predefined() {
        Some(basic) if basic.size().is_none() => Err(datatype::Error::Unsupported(basic).into()),
        _ => Ok(ty),
    }
}

fn fill<T: Copy>(name: &str, places: &mut [MaybeUninit<T>], values: &[T]) -> Done {
    if places.len() < values.len() {
        return Err(no_room(name, places.len(), values.len()));
    }
    for (place, value) in places.iter_mut().zip(values) {
        place.write(*value);
    }
    Ok(())
}

#[cold]
fn no_room(name: &str, room: usize, needed: usize) -> Error {
    let detail = format!(
        "{name} is {room}, but there are {needed} of them; MPI_Type_get_envelope says how many"
    );
    Error::new(MPI_ERR_ARG, detail)
}

#[cold]
fn only_large(call: &Running) -> Error {
    let detail = format!(
        "the datatype was made by a large-count procedure: ask {}_c",
        call.procedure
    );
    Error::new(MPI_ERR_TYPE, detail)
}
