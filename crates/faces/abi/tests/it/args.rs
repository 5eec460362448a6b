//! Tests of the checks and views of arguments.

use mpi_abi::args;
use mpi_abi::constants::*;
use mpi_abi::status::Status;
use std::ffi::{c_int, c_void};
use std::ptr::{from_ref, null, null_mut};

fn class<T>(result: Result<T, mpi_abi::error::Error>) -> c_int {
    result.err().map_or(MPI_SUCCESS, |error| error.class.0)
}

#[test]
fn ranks_and_tags_know_their_special_values() {
    for (value, dest, source, root) in [
        (0, MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS),
        (c_int::MAX, MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS),
        (MPI_PROC_NULL, MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS),
        (MPI_ANY_SOURCE, MPI_ERR_RANK, MPI_SUCCESS, MPI_ERR_ROOT),
        (MPI_ROOT, MPI_ERR_RANK, MPI_ERR_RANK, MPI_SUCCESS),
        (-9, MPI_ERR_RANK, MPI_ERR_RANK, MPI_ERR_ROOT),
    ] {
        assert_eq!(class(args::dest("dest", value)), dest, "{value}");
        assert_eq!(class(args::source("source", value)), source, "{value}");
        assert_eq!(class(args::root("root", value)), root, "{value}");
    }
    assert_eq!(class(args::tag("tag", MPI_ANY_TAG)), MPI_ERR_TAG);
    assert_eq!(class(args::tag_any("tag", MPI_ANY_TAG)), MPI_SUCCESS);
    assert_eq!(class(args::tag_any("tag", -1)), MPI_ERR_TAG);
    assert_eq!(class(args::rank("rank", MPI_PROC_NULL)), MPI_ERR_RANK);
}

#[test]
fn lengths_must_not_be_negative_and_say_so() {
    assert_eq!(args::count("count", 1 << 40), Ok(1 << 40));
    assert_eq!(class(args::n("count", -1)), MPI_ERR_COUNT);
    assert_eq!(class(args::len("n", -1)), MPI_ERR_ARG);
    assert_eq!(class(args::ndims("ndims", -1)), MPI_ERR_DIMS);
    let error = args::count("count", -7).unwrap_err();
    assert_eq!(
        error.to_string(),
        "count is -7; it must not be negative (MPI_ERR_COUNT)"
    );
}

#[test]
fn both_widths_of_counts_read_the_same() {
    let (small, large) = ([1 as c_int, -2, 3], [1i64, -2, 3]);
    // SAFETY: the arrays have three elements.
    let (small, large) = unsafe {
        let small = args::counts("counts", small.as_ptr().cast(), false, small.len()).unwrap();
        let large = args::counts("counts", large.as_ptr().cast(), true, large.len()).unwrap();
        (small, large)
    };
    assert!(small.iter().eq(large.iter()));
    assert_eq!((small.get(1), small.len()), (-2, 3));
}

#[test]
fn an_array_as_long_as_the_communicator_is_checked_when_it_is_used() {
    let counts = [4 as c_int, 5];
    // SAFETY: the address is NULL or that of two elements.
    unsafe {
        let absent = args::counts_of_comm("recvcounts", null(), false);
        assert_eq!(class(absent.with_len(2)), MPI_ERR_ARG);
        assert_eq!(class(absent.with_len(0)), MPI_SUCCESS);
        let present = args::counts_of_comm("recvcounts", counts.as_ptr().cast(), false);
        assert_eq!(present.with_len(2).unwrap().get(1), 5);
    }
}

#[test]
fn a_count_that_does_not_fit_an_int_is_undefined() {
    let (mut small, mut large): (c_int, i64) = (0, 0);
    for (value, seen) in [(7, 7), (1 << 31, MPI_UNDEFINED), (-1, -1)] {
        // SAFETY: the addresses are those of integers of these widths.
        unsafe {
            args::out_count("count", (&raw mut small).cast(), false)
                .unwrap()
                .set(value);
            args::out_count("count", (&raw mut large).cast(), true)
                .unwrap()
                .set(value);
        }
        assert_eq!((small, large), (seen, value));
    }
}

#[test]
fn a_text_is_cut_to_fit_with_its_nul() {
    let mut buffer = [b'?'; 6];
    // SAFETY: the buffer has five bytes and one more.
    let text = unsafe { args::out_text("name", buffer.as_mut_ptr().cast(), 5) }.unwrap();
    assert_eq!(text.set(b"communicator"), 4);
    assert_eq!(&buffer, b"comm\0?");
}

#[test]
fn a_status_of_one_operation_keeps_its_error_field() {
    let mut status = Status::empty();
    status.error = 77;
    // SAFETY: the address is a status.
    let place = unsafe { args::status(&mut status) }.unwrap();
    place.fill(Status::new(1, 2, 3));
    assert_eq!(
        (status.source, status.tag, status.bytes(), status.error),
        (1, 2, 3, 77)
    );
    // SAFETY: NULL is MPI_STATUS_IGNORE.
    assert!(unsafe { args::status(null_mut()) }.is_none());
}

#[test]
fn an_empty_array_may_be_null_and_another_may_not() {
    // SAFETY: the functions reject NULL, which this test checks.
    unsafe {
        assert_eq!(args::slice::<c_int>("ranks", null(), 0).unwrap(), []);
        assert_eq!(class(args::slice::<c_int>("ranks", null(), 1)), MPI_ERR_ARG);
        assert_eq!(
            class(args::slice_mut::<c_int>("requests", null_mut(), 1)),
            MPI_ERR_ARG
        );
    }
}

#[test]
fn special_addresses_can_be_told() {
    // SAFETY: the array is not read.
    let weights = unsafe { args::array_of_comm("weights", MPI_UNWEIGHTED.cast_const()) };
    assert_eq!(weights.address(), MPI_UNWEIGHTED.cast_const());
    let element: c_int = 3;
    // SAFETY: one element.
    let one = unsafe { args::array_of_comm("weights", from_ref(&element)).with_len(1) };
    assert_eq!(one.unwrap(), [3]);
    assert_ne!(MPI_IN_PLACE, null_mut::<c_void>());
}
