//! Tests of buffers from an address, a count and a datatype: valid ones, and the errors of others.

use crate::running::{RANK, commit, free};
use datatype::Predefined;
use mpi_abi::buffer::UserBuffer;
use mpi_abi::constants::*;
use mpi_abi::entry::*;
use mpi_abi::handle::Datatype;
use std::ffi::{c_int, c_void};
use std::ptr::{from_ref, null, null_mut, without_provenance};

fn check(address: *const c_void, count: i64, datatype: Datatype) -> Result<usize, (c_int, String)> {
    // SAFETY: only the length of the buffer is read.
    let buffer = unsafe { UserBuffer::new(address, count, datatype) };
    let made = buffer.buffer(&RANK.lock());
    made.map(|buffer| buffer.len())
        .map_err(|error| (error.class.0, error.to_string()))
}

#[track_caller]
fn refuses(address: *const c_void, count: i64, datatype: Datatype, class: c_int, words: &str) {
    let (found, said) = check(address, count, datatype).expect_err(words);
    assert_eq!(found, class, "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn buffers_of_every_predefined_datatype() {
    let place = [0u8; 64];
    for basic in Predefined::all() {
        let datatype = Datatype(basic.handle());
        match basic.size() {
            Some(size) => assert_eq!(check(from_ref(&place).cast(), 2, datatype), Ok(2 * size)),
            None => refuses(
                from_ref(&place).cast(),
                2,
                datatype,
                MPI_ERR_TYPE,
                "optional",
            ),
        }
    }
}

#[test]
fn a_buffer_says_what_is_wrong_with_its_datatype() {
    let place = from_ref(&[0u8; 64]).cast();
    refuses(
        place,
        1,
        MPI_DATATYPE_NULL,
        MPI_ERR_TYPE,
        "MPI_DATATYPE_NULL",
    );
    for none in [0, 1, 0x204, MPI_COMM_WORLD.0, 0xdead_beef, usize::MAX] {
        refuses(place, 1, Datatype(none), MPI_ERR_TYPE, "not a datatype");
    }
    let pair = made!(MPI_Type_contiguous(2, MPI_INT));
    refuses(place, 1, pair, MPI_ERR_TYPE, "MPI_Type_commit");
    assert_eq!(check(place, 3, commit(pair)), Ok(24));
    free(pair);
    refuses(place, 0, pair, MPI_ERR_TYPE, "freed");
}

#[test]
fn a_buffer_says_what_is_wrong_with_its_address() {
    refuses(null(), 1, MPI_INT, MPI_ERR_BUFFER, "MPI_BOTTOM needs");
    refuses(null(), 1, MPI_SHORT_INT, MPI_ERR_BUFFER, "MPI_BOTTOM needs");
    refuses(
        MPI_IN_PLACE,
        1,
        MPI_INT,
        MPI_ERR_BUFFER,
        "must not be MPI_IN_PLACE",
    );
    refuses(without_provenance(0x10), 1, MPI_INT, MPI_ERR_BUFFER, "0x10");
    assert_eq!(check(null(), 0, MPI_INT), Ok(0));

    let relative = commit(made!(MPI_Type_contiguous(2, MPI_INT)));
    refuses(null(), 1, relative, MPI_ERR_BUFFER, "MPI_BOTTOM needs");
    let empty = commit(made!(MPI_Type_contiguous(0, MPI_INT)));
    assert_eq!(check(null(), 5, empty), Ok(0));

    let value = 7i32;
    let mut address = 0;
    ok!(MPI_Get_address(from_ref(&value).cast(), &mut address));
    let absolute = commit(made!(MPI_Type_create_hindexed_block(
        1, 1, &address, MPI_INT
    )));
    assert_eq!(check(MPI_BOTTOM, 1, absolute), Ok(4));
    // SAFETY: the datatype's address is that of `value`.
    let bottom = unsafe { UserBuffer::new(MPI_BOTTOM, 1, absolute) };
    let bottom = bottom.buffer(&RANK.lock()).unwrap();
    let mut packed = [0; 4];
    bottom.pack(0, &mut packed);
    assert_eq!(i32::from_ne_bytes(packed), value);
    [relative, empty, absolute].into_iter().for_each(free);
}

#[test]
fn more_than_memory_is_no_count() {
    let place = from_ref(&[0u8; 64]).cast();
    assert_eq!(check(place, i64::MAX, MPI_CHAR), Ok(i64::MAX as usize));
    refuses(place, i64::MAX, MPI_SHORT, MPI_ERR_COUNT, "2 bytes");
    let wide = commit(made!(MPI_Type_contiguous_c(1 << 40, MPI_INT)));
    refuses(place, 1 << 22, wide, MPI_ERR_COUNT, "more than any memory");
    free(wide);
}

#[test]
fn in_place_is_no_buffer() {
    let form = |address, datatype| {
        // SAFETY: nothing is read.
        let buffer = unsafe { UserBuffer::new(address, 4, datatype) };
        buffer
            .buffer_unless_in_place(&RANK.lock())
            .map(|buffer| buffer.map(|buffer| buffer.len()))
            .map_err(|error| error.class.0)
    };
    assert_eq!(form(MPI_IN_PLACE, MPI_DATATYPE_NULL), Ok(None));
    assert_eq!(form(from_ref(&[0u8; 32]).cast(), MPI_DOUBLE), Ok(Some(32)));
    assert_eq!(form(null_mut(), MPI_DOUBLE), Err(MPI_ERR_BUFFER));
}
