//! Sections 5.1.2 to 5.1.5 and 5.1.9 to 5.1.11: constructors, commit, copy and free of datatypes.
//! Section 7.8: names of datatypes.

use crate::args::{Counts, Out, OutText};
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Datatype;
use datatype::{Dimension, Distribution, Kind, Order, Type};
use std::ffi::{CStr, c_int};

/// `MPI_Type_contiguous` (MPI 5.0, chapter 5).
pub fn type_contiguous(
    call: &Running,
    count: i64,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    add(call, Type::contiguous(count, &old), newtype)
}

/// `MPI_Type_vector` (MPI 5.0, chapter 5).
pub fn type_vector(
    call: &Running,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    add(
        call,
        Type::vector(count, blocklength, stride, &old),
        newtype,
    )
}

/// `MPI_Type_create_hvector` (MPI 5.0, chapter 5).
pub fn type_create_hvector(
    call: &Running,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let new = Type::hvector(count, blocklength, stride as isize, &old);
    add(call, new, newtype)
}

/// `MPI_Type_indexed` (MPI 5.0, chapter 5).
pub fn type_indexed(
    call: &Running,
    _count: i64,
    blocklengths: Counts,
    displacements: Counts,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let new = Type::indexed(&numbers(blocklengths), &numbers(displacements), &old);
    add(call, new, newtype)
}

/// `MPI_Type_create_hindexed` (MPI 5.0, chapter 5).
pub fn type_create_hindexed(
    call: &Running,
    _count: i64,
    blocklengths: Counts,
    displacements: Counts,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let new = Type::hindexed(&numbers(blocklengths), &addresses(displacements), &old);
    add(call, new, newtype)
}

/// `MPI_Type_create_indexed_block` (MPI 5.0, chapter 5).
pub fn type_create_indexed_block(
    call: &Running,
    _count: i64,
    blocklength: i64,
    displacements: Counts,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let new = Type::indexed_block(blocklength, &numbers(displacements), &old);
    add(call, new, newtype)
}

/// `MPI_Type_create_hindexed_block` (MPI 5.0, chapter 5).
pub fn type_create_hindexed_block(
    call: &Running,
    _count: i64,
    blocklength: i64,
    displacements: Counts,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let new = Type::hindexed_block(blocklength, &addresses(displacements), &old);
    add(call, new, newtype)
}

/// `MPI_Type_create_struct` (MPI 5.0, chapter 5).
pub fn type_create_struct(
    call: &Running,
    _count: i64,
    blocklengths: Counts,
    displacements: Counts,
    types: &[Datatype],
    newtype: Out<Datatype>,
) -> Done {
    let types = types
        .iter()
        .enumerate()
        .map(|(index, handle)| type_of(call, *handle).map_err(|error| at_index(index, &error)))
        .collect::<Result<Vec<_>, _>>()?;
    let new = Type::struct_(&numbers(blocklengths), &addresses(displacements), &types);
    add(call, new, newtype)
}

/// `MPI_Type_create_subarray` (MPI 5.0, chapter 5).
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub fn type_create_subarray(
    call: &Running,
    _ndims: usize,
    sizes: Counts,
    subsizes: Counts,
    starts: Counts,
    order: c_int,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let order = Order::from_value(order).ok_or_else(|| bad_order(order))?;
    let [sizes, subsizes, starts] = [sizes, subsizes, starts].map(numbers);
    let new = Type::subarray(&sizes, &subsizes, &starts, order, &old);
    add(call, new, newtype)
}

/// `MPI_Type_create_darray` (MPI 5.0, chapter 5).
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub fn type_create_darray(
    call: &Running,
    size: c_int,
    rank: c_int,
    _ndims: usize,
    gsizes: Counts,
    distribs: &[c_int],
    dargs: &[c_int],
    psizes: &[c_int],
    order: c_int,
    oldtype: Datatype,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    let order = Order::from_value(order).ok_or_else(|| bad_order(order))?;
    let deals = distribs.iter().zip(dargs).enumerate();
    let deals = deals.map(|(at, (&value, &argument))| {
        Distribution::from_value(value, argument.into()).ok_or_else(|| bad_distribution(at, value))
    });
    let dimensions = gsizes.iter().zip(psizes).zip(deals);
    let dimensions = dimensions
        .map(|((gsize, &psize), distribution)| {
            Ok(Dimension {
                gsize,
                distribution: distribution?,
                psize: psize.into(),
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let new = Type::darray(size.into(), rank.into(), &dimensions, order, &old);
    add(call, new, newtype)
}

/// `MPI_Type_create_f90_real` (MPI 5.0, chapter 19).
pub fn type_create_f90_real(call: &Running, p: c_int, r: c_int, newtype: Out<Datatype>) -> Done {
    newtype.set(
        call.rank
            .objects()
            .types_mut()
            .of_kind(Kind::Real { p, r })?,
    );
    Ok(())
}

/// `MPI_Type_create_f90_complex` (MPI 5.0, chapter 19).
pub fn type_create_f90_complex(call: &Running, p: c_int, r: c_int, newtype: Out<Datatype>) -> Done {
    newtype.set(
        call.rank
            .objects()
            .types_mut()
            .of_kind(Kind::Complex { p, r })?,
    );
    Ok(())
}

/// `MPI_Type_create_f90_integer` (MPI 5.0, chapter 19).
pub fn type_create_f90_integer(call: &Running, r: c_int, newtype: Out<Datatype>) -> Done {
    newtype.set(
        call.rank
            .objects()
            .types_mut()
            .of_kind(Kind::Integer { r })?,
    );
    Ok(())
}

/// `MPI_Type_create_resized` (MPI 5.0, chapter 5).
pub fn type_create_resized(
    call: &Running,
    oldtype: Datatype,
    lb: i64,
    extent: i64,
    newtype: Out<Datatype>,
) -> Done {
    let old = type_of(call, oldtype)?;
    add(
        call,
        Type::resized(lb as isize, extent as isize, &old),
        newtype,
    )
}

/// `MPI_Type_dup` (MPI 5.0, chapter 5). Copy functions of attributes run without the rank's lock.
pub fn type_dup(call: &Running, oldtype: Datatype, newtype: Out<Datatype>) -> Done {
    newtype.set(call.rank.type_dup(oldtype.id())?);
    Ok(())
}

/// `MPI_Type_commit` (MPI 5.0, chapter 5).
pub fn type_commit(call: &Running, datatype: &mut Datatype) -> Done {
    call.rank.objects().types_mut().commit(datatype.id())
}

/// `MPI_Type_free` (MPI 5.0, chapter 5). Delete functions of attributes run without the rank's
/// lock.
pub fn type_free(call: &Running, datatype: &mut Datatype) -> Done {
    call.rank.type_free(datatype.id())?;
    *datatype = MPI_DATATYPE_NULL;
    Ok(())
}

/// `MPI_Type_get_name` (MPI 5.0, chapter 7).
pub fn type_get_name(
    call: &Running,
    datatype: Datatype,
    name: OutText,
    length: Out<c_int>,
) -> Done {
    let found = call.rank.objects().types().name(datatype.id())?;
    length.set(name.set(found.as_bytes()) as c_int);
    Ok(())
}

/// `MPI_Type_set_name` (MPI 5.0, chapter 7).
pub fn type_set_name(call: &Running, datatype: Datatype, name: &CStr) -> Done {
    let name = name.to_string_lossy();
    call.rank
        .objects()
        .types_mut()
        .set_name(datatype.id(), &name)
}

/// The datatype of a handle, committed or not. The rank's lock is released again, because building
/// a datatype may take long.
pub(super) fn type_of(call: &Running, handle: Datatype) -> Result<Type, Error> {
    Ok(call.rank.objects().types().get(handle.id())?.clone())
}

/// Adds a new datatype to the table, writes its handle, and records which form of the constructor
/// made it (MPI_Type_get_contents).
fn add(call: &Running, new: datatype::Result<Type>, place: Out<Datatype>) -> Done {
    let mut new = new?;
    if call.procedure.ends_with("_c") {
        new = new.into_large();
    }
    place.set(call.rank.objects().types_mut().add(new)?);
    Ok(())
}

fn numbers(counts: Counts) -> Vec<i64> {
    counts.iter().collect()
}

fn addresses(counts: Counts) -> Vec<isize> {
    counts.iter().map(|count| count as isize).collect()
}

#[cold]
fn at_index(index: usize, error: &Error) -> Error {
    Error::new(
        error.class,
        format!("array_of_types[{index}]: {}", error.detail),
    )
}

#[cold]
fn bad_order(order: c_int) -> Error {
    let detail = format!("order is {order}; valid: MPI_ORDER_C, MPI_ORDER_FORTRAN");
    Error::new(MPI_ERR_ARG, detail)
}

#[cold]
fn bad_distribution(at: usize, value: c_int) -> Error {
    let detail = format!(
        "array_of_distribs[{at}] is {value}; valid: MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, \
         MPI_DISTRIBUTE_NONE"
    );
    Error::new(MPI_ERR_ARG, detail)
}
