//! Tests of datatypes through the entry points: refused arguments with class and message, and the
//! differences between the forms of a procedure. The C programs check that they move the right
//! bytes.

use crate::running::free;
use mpi_abi::constants::*;
use mpi_abi::entry::*;
use mpi_abi::handle::Datatype;
use mpi_abi::status::Status;
use std::ffi::c_int;
use std::ptr::null_mut;

#[test]
fn an_unsupported_optional_datatype_has_no_size_and_is_refused() {
    let (mut size, mut large, mut lb, mut extent) = (0, 0, 0, 0);
    ok!(MPI_Type_size(MPI_REAL16, &mut size));
    ok!(MPI_Type_size_c(MPI_COMPLEX4, &mut large));
    assert_eq!((size, large), (MPI_UNDEFINED, i64::from(MPI_UNDEFINED)));
    let (mut new, words) = (MPI_DATATYPE_NULL, "MPI_REAL2 is an optional datatype");
    refused!(
        MPI_Type_get_extent(MPI_REAL2, &mut lb, &mut extent),
        MPI_ERR_TYPE,
        words
    );
    refused!(
        MPI_Type_contiguous(1, MPI_REAL2, &mut new),
        MPI_ERR_TYPE,
        words
    );
}

#[test]
fn constructors_name_the_argument_that_is_wrong() {
    let mut new = MPI_DATATYPE_NULL;
    refused!(
        MPI_Type_indexed(2, [1, -2].as_ptr(), [0, 8].as_ptr(), MPI_INT, &mut new),
        MPI_ERR_ARG,
        "array_of_blocklengths[1] is -2"
    );
    let types = [MPI_INT, Datatype(0x31)];
    refused!(
        MPI_Type_create_struct(
            2,
            [1, 1].as_ptr(),
            [0, 8].as_ptr(),
            types.as_ptr(),
            &mut new
        ),
        MPI_ERR_TYPE,
        "array_of_types[1]: 0x31 is not a datatype"
    );
    let (four, three, two, none) = (4, 3, 2, 0);
    refused!(
        MPI_Type_create_subarray(1, &four, &three, &two, MPI_ORDER_C, MPI_INT, &mut new),
        MPI_ERR_ARG,
        "array_of_starts[0] is 2"
    );
    refused!(
        MPI_Type_create_subarray(1, &four, &three, &none, 9, MPI_INT, &mut new),
        MPI_ERR_ARG,
        "order is 9"
    );
    refused!(
        MPI_Type_vector_c(1 << 40, 1 << 40, 1, MPI_INT, &mut new),
        MPI_ERR_VALUE_TOO_LARGE,
        "63 bits"
    );
    assert_eq!(new, MPI_DATATYPE_NULL);
    refused!(
        MPI_Type_free(&mut MPI_INT.clone()),
        MPI_ERR_TYPE,
        "MPI_INT is predefined"
    );
}

/// The arguments of a large-count constructor can be queried only by the large-count form.
#[test]
fn contents_of_large_count_datatypes() {
    let large = made!(MPI_Type_create_hvector_c(3, 2, 16, MPI_INT));
    let (mut integers, mut addresses, mut types, mut combiner) = (-1, -1, -1, -1);
    refused!(
        MPI_Type_get_envelope(
            large,
            &mut integers,
            &mut addresses,
            &mut types,
            &mut combiner
        ),
        MPI_ERR_TYPE,
        "MPI_Type_get_envelope_c"
    );
    let (mut number, mut address, mut inner) = (0, 0, MPI_DATATYPE_NULL);
    refused!(
        MPI_Type_get_contents(large, 3, 1, 1, &mut number, &mut address, &mut inner),
        MPI_ERR_TYPE,
        "MPI_Type_get_contents_c"
    );
    let mut counts = [0; 3];
    let into = counts.as_mut_ptr();
    refused!(
        MPI_Type_get_contents_c(large, 0, 0, 2, 1, null_mut(), null_mut(), into, &mut inner),
        MPI_ERR_ARG,
        "max_large_counts is 2, but there are 3"
    );
    ok!(MPI_Type_get_contents_c(
        large,
        0,
        0,
        3,
        1,
        null_mut(),
        null_mut(),
        into,
        &mut inner
    ));
    assert_eq!((counts, inner), ([3, 2, 16], MPI_INT));
    free(large);

    // The copy is made by a call without counts.
    let large = made!(MPI_Type_contiguous_c(1 << 40, MPI_CHAR));
    let copy = made!(MPI_Type_dup(large));
    ok!(MPI_Type_get_envelope(
        copy,
        &mut integers,
        &mut addresses,
        &mut types,
        &mut combiner
    ));
    assert_eq!(
        (integers, addresses, types, combiner),
        (0, 0, 1, MPI_COMBINER_DUP)
    );
    [large, copy].into_iter().for_each(free);
}

#[test]
fn contents_that_have_no_room_make_no_datatypes() {
    let inner = made!(MPI_Type_contiguous(2, MPI_INT));
    let outer = made!(MPI_Type_contiguous(2, inner));
    let (mut number, mut found) = (0, MPI_DATATYPE_NULL);
    refused!(
        MPI_Type_get_contents(outer, 1, 0, 0, &mut number, null_mut(), null_mut()),
        MPI_ERR_ARG,
        "max_datatypes is 0, but there are 1"
    );
    refused!(
        MPI_Type_get_contents(outer, 0, 0, 1, null_mut(), null_mut(), &mut found),
        MPI_ERR_ARG,
        "max_integers is 0, but there are 1"
    );
    assert_eq!(found, MPI_DATATYPE_NULL);
    refused!(
        MPI_Type_get_contents(MPI_INT, 1, 0, 1, &mut number, null_mut(), &mut found),
        MPI_ERR_TYPE,
        "predefined"
    );
    [inner, outer].into_iter().for_each(free);
}

#[test]
fn elements_of_a_status_there_and_back() {
    let types = [MPI_CHAR, MPI_DOUBLE_INT, MPI_SHORT];
    let mixed = made!(MPI_Type_create_struct(
        3,
        [2, 1, 3].as_ptr(),
        [0, 8, 32].as_ptr(),
        types.as_ptr()
    ));
    // Sizes of the members: two chars, a pair that counts as two, three shorts.
    let sizes = [1, 1, 8, 4, 2, 2, 2];
    let mut status = Status::empty();
    let (mut count, mut whole) = (-1, -1);
    for elements in 0..30 {
        let bytes: u64 = (0..elements).map(|element| sizes[element % 7]).sum();
        ok!(MPI_Status_set_elements(
            &mut status,
            mixed,
            elements as c_int
        ));
        assert_eq!(status.bytes(), bytes);
        ok!(MPI_Get_elements(&status, mixed, &mut count));
        ok!(MPI_Get_count(&status, mixed, &mut whole));
        assert_eq!(count, elements as c_int);
        let complete = elements % 7 == 0;
        assert_eq!(
            whole,
            if complete {
                elements as c_int / 7
            } else {
                MPI_UNDEFINED
            }
        );
    }
    // Bytes that end within an element have no count.
    ok!(MPI_Get_elements(&Status::new(0, 0, 11), mixed, &mut count));
    assert_eq!(count, MPI_UNDEFINED);
    // A value beyond C's int is undefined here; the large-count form reports it.
    let (mut large, far) = (-1, 7i64 << 40);
    ok!(MPI_Status_set_elements_c(&mut status, mixed, far));
    ok!(MPI_Get_elements(&status, mixed, &mut count));
    ok!(MPI_Get_elements_x(&status, mixed, &mut large));
    assert_eq!((count, large), (MPI_UNDEFINED, far));
    refused!(
        MPI_Status_set_elements_c(&mut status, mixed, i64::MAX),
        MPI_ERR_VALUE_TOO_LARGE,
        "more bytes than a status"
    );
    refused!(
        MPI_Status_set_elements(&mut status, mixed, -1),
        MPI_ERR_COUNT,
        "count is -1"
    );
    free(mixed);
}

#[test]
fn a_datatype_without_data_counts_nothing() {
    let empty = made!(MPI_Type_contiguous(0, MPI_INT));
    let (mut count, mut elements) = (-1, -1);
    for (bytes, wanted) in [(0, 0), (4, MPI_UNDEFINED)] {
        let status = Status::new(0, 0, bytes);
        ok!(MPI_Get_count(&status, empty, &mut count));
        ok!(MPI_Get_elements(&status, empty, &mut elements));
        assert_eq!((count, elements), (wanted, wanted));
    }
    let mut status = Status::empty();
    ok!(MPI_Status_set_elements(&mut status, empty, 0));
    refused!(
        MPI_Status_set_elements(&mut status, empty, 1),
        MPI_ERR_ARG,
        "without data"
    );
    free(empty);
}

#[test]
fn pairs_by_their_parts() {
    let mut pair = MPI_INT;
    ok!(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &mut pair));
    assert_eq!(pair, MPI_DOUBLE_INT);
    ok!(MPI_Type_get_value_index(MPI_CHAR, MPI_DOUBLE, &mut pair));
    assert_eq!(pair, MPI_DATATYPE_NULL);
}

#[test]
fn datatypes_by_class_and_size() {
    let mut found = MPI_INT;
    for (class, size, wanted) in [
        (MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16),
        (MPI_TYPECLASS_REAL, 4, MPI_REAL4),
        (MPI_TYPECLASS_REAL, 16, MPI_LONG_DOUBLE),
        (MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16),
    ] {
        ok!(MPI_Type_match_size(class, size, &mut found));
        assert_eq!(found, wanted);
    }
    refused!(
        MPI_Type_match_size(1, 4, &mut found),
        MPI_ERR_ARG,
        "typeclass is 1"
    );
    refused!(
        MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &mut found),
        MPI_ERR_ARG,
        "size is 3"
    );
}
