//! Tests of packing: the limits of the packed buffer, and the data representations.

use mpi_abi::constants::*;
use mpi_abi::entry::*;
use std::ptr::{from_ref, null, null_mut};

#[test]
fn packing_stays_within_the_packed_buffer() {
    let (values, mut packed) = ([1, 2, 3], [0xeeu8; 16]);
    let (from, into) = (from_ref(&values).cast(), (&raw mut packed).cast());
    let (mut at, comm) = (4, MPI_COMM_WORLD);
    ok!(MPI_Pack(from, 2, MPI_INT, into, 12, &mut at, comm));
    assert_eq!(at, 12);
    assert_eq!(packed[..4], [0xee; 4]);
    assert_eq!(packed[12..], [0xee; 4]);
    refused!(
        MPI_Pack(from, 2, MPI_INT, into, 16, &mut at, comm),
        MPI_ERR_TRUNCATE,
        "8 bytes are needed from position 12 on, but the packed buffer has 4"
    );
    assert_eq!(at, 12);
    let mut back = [0i32; 3];
    let there = (&raw mut back).cast();
    refused!(
        MPI_Unpack(into, 16, &mut at, there, 2, MPI_INT, comm),
        MPI_ERR_TRUNCATE,
        "has 4 there"
    );
    for wrong in [-1, 17] {
        refused!(
            MPI_Unpack(into, 16, &mut wrong.clone(), there, 1, MPI_INT, comm),
            MPI_ERR_ARG,
            "0 to insize, which is 16"
        );
    }
    refused!(
        MPI_Pack(from, 1, MPI_INT, null_mut(), 16, &mut at, comm),
        MPI_ERR_ARG,
        "outbuf is NULL"
    );
    refused!(
        MPI_Pack(from, 1, MPI_INT, into, 16, &mut at, MPI_COMM_NULL),
        MPI_ERR_COMM,
        "MPI_COMM_NULL"
    );
    ok!(MPI_Pack(null(), 0, MPI_INT, null_mut(), 0, &mut 0, comm));
    assert_eq!(back, [0; 3]);
}

#[test]
fn external_packing_knows_one_representation_and_its_sizes() {
    let (big, mut packed) = (1i64 << 40, [0u8; 16]);
    let (from, into) = (from_ref(&big).cast(), (&raw mut packed).cast());
    let (mut size, mut at) = (0, 0);
    ok!(MPI_Pack_external_size(
        c"external32".as_ptr(),
        3,
        MPI_LONG,
        &mut size
    ));
    assert_eq!(size, 12);
    refused!(
        MPI_Pack_external_size(c"native".as_ptr(), 3, MPI_LONG, &mut size),
        MPI_ERR_ARG,
        "datarep is `native`"
    );
    refused!(
        MPI_Pack_external(c"external32".as_ptr(), from, 1, MPI_LONG, into, 16, &mut at),
        MPI_ERR_VALUE_TOO_LARGE,
        "MPI_LONG"
    );
    refused!(
        MPI_Pack_external(
            c"external32".as_ptr(),
            from,
            1,
            MPI_INT64_T,
            into,
            7,
            &mut at
        ),
        MPI_ERR_TRUNCATE,
        "8 bytes"
    );
    ok!(MPI_Pack_external(
        c"external32".as_ptr(),
        from,
        1,
        MPI_INT64_T,
        into,
        8,
        &mut at
    ));
    assert_eq!((at, &packed[..8]), (8, &big.to_be_bytes()[..]));
}
