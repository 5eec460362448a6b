//! Tests of the parts of MPICH's ABI that other old ABIs do not share.

use crate::program::{CLASSES, Program, Status};
use abi_convert::constants::standard;
use abi_convert::convert::*;
use abi_convert::handle::UNKNOWN;
use abi_convert::suite::alone;
use abi_convert::types::StandardStatus;
use abi_convert::{Constants, Handles, classes};
use proptest::prelude::*;
use std::ffi::c_int;

abi_convert::suite!(Program, include!(concat!(env!("OUT_DIR"), "/calls.rs")));

#[test]
fn statuses_have_the_sizes_of_the_abis() {
    assert_eq!((size_of::<Status>(), size_of::<StandardStatus>()), (20, 32));
}

#[test]
fn every_predefined_handle_of_the_standard_has_one_of_mpich() {
    let count: usize = classes::all::<Program>()
        .iter()
        .map(|(_, pairs)| pairs.len())
        .sum();
    let handles = standard_handles();
    assert_eq!(
        count, handles,
        "a predefined handle of the standard ABI has no row in constants.txt"
    );
    for (class, pairs) in classes::all::<Program>() {
        for &(program, standard) in pairs {
            assert_eq!(class.program(standard as usize), program as c_int);
        }
    }
}

/// The number of predefined handles of the standard ABI that are integers in MPICH's.
fn standard_handles() -> usize {
    let groups = tables::constants();
    let all = groups.iter().flat_map(|group| &group.constants);
    let classes = [
        "Comm",
        "Datatype",
        "Errhandler",
        "Group",
        "Info",
        "Message",
        "Op",
        "Request",
        "Session",
        "Win",
    ];
    let is_handle = |ty: &str| classes.iter().any(|class| ty == format!("MPI_{class}"));
    all.filter(|constant| is_handle(&constant.c_type)).count()
}

#[test]
fn a_number_that_is_no_rank_or_tag_in_one_abi_is_none_in_the_other() {
    assert_eq!((rank_in::<Program>(-4), tag_in::<Program>(-2)), (-2, -1));
}

#[test]
fn codes_of_a_program_lie_above_the_last_code() {
    let first = standard::MPI_ERR_LASTCODE as c_int + 1;
    assert!(error_out::<Program>(first) > Program::MPI_ERR_LASTCODE as c_int);
    assert_eq!(
        error_out::<Program>(first + 1),
        error_out::<Program>(first) + 1
    );
    // Codes of a library derived from MPICH lie there already.
    let behind = Program::MPI_ERR_LASTCODE as c_int + 0x81;
    assert_eq!(error_out::<Program>(behind), behind);
}

#[test]
fn a_word_that_is_no_handle_is_unknown() {
    let world = CLASSES.comm.standard(0x4400_0000) as c_int;
    for wild in [0, 1, -1, world, 0xfff, c_int::MIN, 0x8c00_0005_u32 as c_int] {
        assert_eq!(CLASSES.comm.standard(wild), UNKNOWN, "{wild:#x}");
        assert_eq!(CLASSES.request.standard(wild), UNKNOWN, "{wild:#x}");
        assert_eq!(CLASSES.datatype.standard(wild), UNKNOWN, "{wild:#x}");
    }
}

#[test]
fn an_object_whose_word_is_a_predefined_handle_has_another_one() {
    let _alone = alone();
    for taken in [0x4400_0000, 0x4400_0001, 0x0400_0000] {
        let handle = CLASSES.comm.program(taken);
        assert_ne!(handle, taken as c_int);
        assert_eq!(CLASSES.comm.standard(handle), taken);
        CLASSES.comm.release(handle);
    }
    let taken = Program::MPI_REQUEST_NULL as usize;
    let mut handle = 0;
    // SAFETY: the address is that of a handle.
    unsafe { CLASSES.request.give(&mut handle, taken) };
    assert_ne!(handle, taken as c_int);
    assert_eq!(CLASSES.request.standard(handle), taken);
    CLASSES.request.release(handle);
}

proptest! {
    #[test]
    fn error_codes_come_back(code in 0..c_int::MAX) {
        let class_without_a_name = (63..=107).contains(&code);
        prop_assert!(class_without_a_name || error_in::<Program>(error_out::<Program>(code)) == code);
    }
}
