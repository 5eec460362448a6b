//! Sections 3.2.5, 5.1.11 and 13.3: the amount of data in a status, in statuses of received
//! messages and in statuses that users fill.

use super::type_facts::supported;
use crate::args::OutCount;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Datatype;
use crate::status::Status;
use datatype::Type;

/// `MPI_Get_count` (MPI 5.0, chapter 3).
pub fn get_count(call: &Running, status: &Status, datatype: Datatype, count: OutCount) -> Done {
    let ty = supported(call, datatype)?;
    count.set(known(ty.count_in(status.bytes() as usize)));
    Ok(())
}

/// `MPI_Get_elements` (MPI 5.0, chapter 5).
pub fn get_elements(call: &Running, status: &Status, datatype: Datatype, count: OutCount) -> Done {
    let ty = supported(call, datatype)?;
    let bytes = status.bytes() as usize;
    let elements = ty.elements_in(bytes);
    // If the data end within a basic element, they do not match the type.
    let whole = bytes_of(&ty, elements) == Some(bytes);
    count.set(known(whole.then_some(elements)));
    Ok(())
}

/// `MPI_Get_elements_x` (MPI 5.0, chapter 16).
pub fn get_elements_x(
    call: &Running,
    status: &Status,
    datatype: Datatype,
    count: OutCount,
) -> Done {
    get_elements(call, status, datatype, count)
}

/// `MPI_Status_set_elements` (MPI 5.0, chapter 13).
pub fn status_set_elements(
    call: &Running,
    status: &mut Status,
    datatype: Datatype,
    count: i64,
) -> Done {
    let ty = supported(call, datatype)?;
    let bytes = usize::try_from(count)
        .ok()
        .and_then(|elements| bytes_of(&ty, elements))
        .ok_or_else(|| impossible(count, &ty))?;
    status.set_bytes(bytes as u64);
    Ok(())
}

/// `MPI_Status_set_elements_x` (MPI 5.0, chapter 16).
pub fn status_set_elements_x(
    call: &Running,
    status: &mut Status,
    datatype: Datatype,
    count: i64,
) -> Done {
    status_set_elements(call, status, datatype, count)
}

fn known(count: Option<usize>) -> i64 {
    count.map_or(MPI_UNDEFINED.into(), |count| count as i64)
}

/// The size in bytes of the first `elements` basic elements of the type's signature, repeated
/// without end.
fn bytes_of(ty: &Type, elements: usize) -> Option<usize> {
    let each = ty.num_elements();
    if each == 0 {
        return (elements == 0).then_some(0);
    }
    let (whole, rest) = (elements / each, elements % each);
    // The number of elements grows with the bytes, so a binary search finds the fewest bytes.
    let (mut few, mut enough) = (0, ty.size());
    while few < enough {
        let middle = few + (enough - few) / 2;
        if ty.elements_in(middle) < rest {
            few = middle + 1;
        } else {
            enough = middle;
        }
    }
    let bytes = whole.checked_mul(ty.size())?.checked_add(enough)?;
    i64::try_from(bytes).is_ok().then_some(bytes)
}

#[cold]
fn impossible(count: i64, ty: &Type) -> Error {
    let (class, why) = if count < 0 {
        (MPI_ERR_COUNT, "it must not be negative")
    } else if ty.num_elements() == 0 {
        (MPI_ERR_ARG, "a datatype without data has no elements")
    } else {
        (
            MPI_ERR_VALUE_TOO_LARGE,
            "so many take more bytes than a status can hold",
        )
    };
    Error::new(class, format!("count is {count}; {why}"))
}
