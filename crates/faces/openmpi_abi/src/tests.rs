//! Tests of the parts of Open MPI's ABI that other old ABIs do not share.

use crate::predefined::{SYMBOLS, address};
use crate::program::{CLASSES, Program, Status};
use abi_convert::constants::standard;
use abi_convert::convert::*;
use abi_convert::handle::UNKNOWN;
use abi_convert::suite::alone;
use abi_convert::types::StandardStatus;
use abi_convert::{Abi, Class, Constants, Handles, classes};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::mem::offset_of;
use tables::constants::Group;

abi_convert::suite!(Program, include!(concat!(env!("OUT_DIR"), "/calls.rs")));

#[test]
fn statuses_have_the_sizes_of_the_abis() {
    assert_eq!((size_of::<Status>(), size_of::<StandardStatus>()), (24, 32));
    assert_eq!(offset_of!(Status, bytes), 16);
}

/// The predefined handles of the standard ABI that Open MPI does not have.
const MISSING: &[&str] = &["MPI_LOGICAL16"];

#[test]
fn every_predefined_handle_of_the_standard_has_one_of_open_mpi() {
    let handles = |groups: Vec<Group>| -> BTreeSet<String> {
        let constants = groups.into_iter().flat_map(|group| group.constants);
        let handles = constants.filter(|constant| {
            let ty = constant.c_type.split(' ').next().unwrap_or_default();
            let is_handle = ty.starts_with("MPI_") && !ty.starts_with("MPI_T_");
            is_handle && !ty.contains("_function") && !["MPI_Offset", "MPI_Status"].contains(&ty)
        });
        handles.map(|constant| constant.name).collect()
    };
    let standard = handles(tables::constants());
    let own = handles(convert_tables::openmpi());
    let missing: Vec<_> = standard.difference(&own).map(String::as_str).collect();
    assert_eq!(missing, MISSING);
}

#[test]
fn addresses_of_objects_are_handles_of_one_class_each() {
    let all: BTreeSet<_> = (1..=SYMBOLS as c_int).map(address).collect();
    assert_eq!(all.len(), SYMBOLS, "two symbols have one address");
    for number in 1..=SYMBOLS as c_int {
        let of = |class: &Class<Program>| {
            usize::from(
                abi_convert::Predefined::standard(&class.predefined, address(number)).is_some(),
            )
        };
        let classes: usize = classes::all::<Program>()
            .iter()
            .map(|(class, _)| of(class))
            .sum();
        let is_file = number == Program::MPI_FILE_NULL as c_int;
        assert_eq!(classes, usize::from(!is_file), "{number}");
    }
}

#[test]
fn every_predefined_handle_has_a_slot_of_its_own() {
    for (class, pairs) in classes::all::<Program>() {
        for &(number, _) in pairs {
            let address = address(number as c_int);
            assert!(class.predefined.is_at_its_slot(address), "{number}");
        }
    }
}

#[test]
fn the_first_name_of_a_handle_counts() {
    let complex = Program::handle(Program::MPI_C_FLOAT_COMPLEX as c_int);
    assert_eq!(
        CLASSES
            .datatype
            .program(standard::MPI_C_FLOAT_COMPLEX as usize),
        complex
    );
}

#[test]
fn fortran_has_an_integer_for_every_handle() {
    let _alone = alone();
    for (class, pairs) in classes::all::<Program>() {
        for &(number, _) in pairs {
            let handle = Program::handle(number as c_int);
            let integer = Program::toint(class, handle);
            assert!((0..Program::FIRST as c_int).contains(&integer), "{number}");
            assert_eq!(Program::fromint(class, integer), handle, "{number}");
        }
    }
    assert_eq!(
        Program::toint(
            &CLASSES.comm,
            Program::handle(Program::MPI_COMM_WORLD as c_int)
        ),
        0
    );
    assert_eq!(
        Program::toint(
            &CLASSES.datatype,
            Program::handle(Program::MPI_INTEGER as c_int)
        ),
        7
    );
    for word in [0x7fff_0000, usize::MAX - 0xff] {
        let object = CLASSES.comm.program(word);
        let integer = Program::toint(&CLASSES.comm, object);
        assert!(integer >= Program::FIRST as c_int);
        assert_eq!(
            (
                Program::toint(&CLASSES.comm, object),
                Program::fromint(&CLASSES.comm, integer)
            ),
            (integer, object)
        );
        CLASSES.comm.release(object);
    }
    assert_eq!(
        (
            Program::toint(&CLASSES.comm, 0),
            Program::fromint(&CLASSES.comm, -1)
        ),
        (-1, 0)
    );
}

#[test]
fn a_word_that_is_no_handle_is_unknown() {
    let _alone = alone();
    for wild in [0, 1, 0xfff, usize::MAX, CLASSES.comm.handle(0x3ff_ffff)] {
        for (class, _) in classes::all::<Program>() {
            assert_eq!(class.standard(wild), UNKNOWN, "{wild:#x}");
        }
        assert_eq!(CLASSES.request.standard(wild), UNKNOWN, "{wild:#x}");
    }
    let object = CLASSES.op.program(0x7fff_1000);
    assert_eq!(
        CLASSES.comm.standard(object),
        UNKNOWN,
        "an object of another class"
    );
    assert_eq!(CLASSES.op.standard(object + 1), UNKNOWN);
    CLASSES.op.release(object);
}

#[test]
fn an_object_in_the_place_of_another_has_its_handle() {
    let _alone = alone();
    let object = CLASSES.op.program(0x7fff_2000);
    assert_eq!(CLASSES.op.replace(object, 0x7fff_3000), Some(0x7fff_2000));
    assert_eq!(CLASSES.op.standard(object), 0x7fff_3000);
    assert_eq!(CLASSES.op.program(0x7fff_3000), object);
    CLASSES.op.release(object);
    CLASSES.op.release(object);
    assert_eq!(CLASSES.op.standard(object), UNKNOWN);
    assert_eq!(
        CLASSES
            .op
            .replace(Program::handle(Program::MPI_SUM as c_int), 1),
        None
    );
}

#[test]
fn values_without_a_meaning_in_one_abi_have_none_in_the_other() {
    assert_eq!(
        (
            rank_in::<Program>(-3),
            rank_out::<Program>(-2),
            tag_in::<Program>(-2)
        ),
        (-2, -3, -1)
    );
    // A library may assign a key that is a predefined one of Open MPI.
    let (own, theirs) = (Program::MPI_LASTUSEDCODE, standard::MPI_LASTUSEDCODE);
    assert_eq!(keyval_out::<Program>(own as c_int), theirs as c_int);
    assert_eq!(keyval_in::<Program>(theirs as c_int), own as c_int);
}

#[test]
fn codes_of_a_program_lie_above_the_last_code() {
    let first = standard::MPI_ERR_LASTCODE as c_int + 1;
    assert_eq!(error_out::<Program>(first), first);
    assert!(first > Program::MPI_ERR_LASTCODE as c_int);
}

#[test]
fn a_set_of_modes_and_a_set_of_assertions_share_bits() {
    let file = Program::MPI_MODE_CREATE | Program::MPI_MODE_WRONLY;
    let window = Program::MPI_MODE_NOCHECK | Program::MPI_MODE_NOPUT;
    assert_eq!(file, window);
    assert_eq!(
        i64::from(file_mode_in::<Program>(file as c_int)),
        standard::MPI_MODE_CREATE | standard::MPI_MODE_WRONLY
    );
    assert_eq!(
        i64::from(assertion_in::<Program>(window as c_int)),
        standard::MPI_MODE_NOCHECK | standard::MPI_MODE_NOPUT
    );
}

proptest! {
    #[test]
    fn error_codes_come_back(code in prop_oneof![0..1100, 16_384..c_int::MAX]) {
        // Error classes of the standard that Open MPI does not have become MPI_ERR_UNKNOWN.
        let class_without_a_name = code <= 92 || (1001..=1018).contains(&code);
        prop_assert!(class_without_a_name || error_in::<Program>(error_out::<Program>(code)) == code);
    }

    #[test]
    fn wild_words_are_unknown_or_for_the_library(word: usize, bits in 0..60_u32) {
        let word = word >> bits;
        for (class, _) in classes::all::<Program>() {
            let standard = class.standard(word);
            let is_predefined = class.numbers().any(|number| Program::handle(number) == word);
            prop_assert!(standard == UNKNOWN || standard == word || is_predefined);
        }
    }
}
