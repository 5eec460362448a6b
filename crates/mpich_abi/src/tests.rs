//! Conversions both ways: every handle, constant, error code and status.

use crate::classes::{self, COMM, DATATYPE, REQUEST};
use crate::constants::{self, mpich, standard};
use crate::convert::*;
use crate::handle::UNKNOWN;
use crate::objects::FIRST;
use crate::types::{MpichStatus, StandardStatus};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::c_int;

#[test]
fn statuses_have_the_sizes_of_the_abis() {
    assert_eq!(
        (size_of::<MpichStatus>(), size_of::<StandardStatus>()),
        (20, 32)
    );
}

#[test]
fn every_predefined_handle_converts_both_ways() {
    let mut count = 0;
    for (class, pairs) in classes::all() {
        for &(mpich, standard) in pairs {
            assert_eq!(
                class.standard(mpich as c_int),
                standard as usize,
                "{mpich:#x}"
            );
            assert_eq!(
                class.mpich(standard as usize),
                mpich as c_int,
                "{standard:#x}"
            );
            count += 1;
        }
    }
    let handles = standard_handles();
    assert_eq!(
        count, handles,
        "a predefined handle of the standard ABI has no row in constants.txt"
    );
}

/// The predefined handles of the standard ABI that are integers in MPICH's.
fn standard_handles() -> usize {
    let text = include_str!("../../abi/constants.txt");
    let types: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
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
    let is_handle = |ty: &&&str| classes.iter().any(|class| **ty == format!("MPI_{class}"));
    types.iter().filter(is_handle).count()
}

#[test]
fn every_integer_with_a_meaning_converts_both_ways() {
    type Conversion = fn(c_int) -> c_int;
    type Group = (&'static [(i64, i64)], Conversion, Conversion);
    let groups: [Group; 13] = [
        (constants::LEVELS_OF_THREAD_SUPPORT, thread_in, thread_out),
        (constants::ATTRIBUTE_KEYS, keyval_in, keyval_out),
        (constants::TOPOLOGIES, topology_in, topology_out),
        (
            constants::RESULTS_OF_COMPARISONS,
            comparison_in,
            comparison_out,
        ),
        (constants::COMBINERS, combiner_in, combiner_out),
        (constants::SPLIT_TYPES, split_type_in, split_type_out),
        (constants::TYPE_CLASSES, type_class_in, type_class_out),
        (
            constants::ORDERS_AND_DISTRIBUTIONS_OF_ARRAYS,
            order_in,
            order_out,
        ),
        (constants::LOCK_TYPES, lock_type_in, lock_type_out),
        (constants::FLAVOURS_OF_WINDOWS, flavor_in, flavor_out),
        (
            constants::MEMORY_MODELS_OF_WINDOWS,
            memory_model_in,
            memory_model_out,
        ),
        (constants::POSITIONS_IN_FILES, whence_in, whence_out),
        (constants::ERROR_CLASSES, error_in, error_out),
    ];
    for (pairs, to_standard, to_mpich) in groups {
        assert!(!pairs.is_empty());
        for &(mpich, standard) in pairs {
            assert_eq!(to_standard(mpich as c_int), standard as c_int);
            assert_eq!(to_mpich(standard as c_int), mpich as c_int);
        }
    }
}

#[test]
fn ranks_and_tags_with_a_meaning_convert_both_ways() {
    let ranks = [
        (mpich::MPI_ANY_SOURCE, standard::MPI_ANY_SOURCE),
        (mpich::MPI_PROC_NULL, standard::MPI_PROC_NULL),
        (mpich::MPI_ROOT, standard::MPI_ROOT),
    ];
    for (mpich, standard) in ranks {
        assert_eq!(rank_in(mpich as c_int), standard as c_int);
        assert_eq!(rank_out(standard as c_int), mpich as c_int);
    }
    assert_eq!(
        tag_in(mpich::MPI_ANY_TAG as c_int),
        standard::MPI_ANY_TAG as c_int
    );
    assert_eq!(
        tag_out(standard::MPI_ANY_TAG as c_int),
        mpich::MPI_ANY_TAG as c_int
    );
    // A number that is no rank and no tag in one ABI is none in the other.
    assert_eq!((rank_in(-4), tag_in(-2)), (-2, -1));
}

#[test]
fn sets_convert_both_ways() {
    for &(mpich, standard) in constants::MODES_OF_FILES_ASSERTIONS_OF_WINDOWS {
        if mpich >= mpich::MPI_MODE_NOCHECK {
            assert_eq!(assertion_in(mpich as c_int), standard as c_int);
        } else {
            assert_eq!(file_mode_in(mpich as c_int), standard as c_int);
            assert_eq!(file_mode_out(standard as c_int), mpich as c_int);
        }
    }
    let both = mpich::MPI_MODE_CREATE | mpich::MPI_MODE_WRONLY;
    let wanted = standard::MPI_MODE_CREATE | standard::MPI_MODE_WRONLY;
    assert_eq!(file_mode_in(both as c_int), wanted as c_int);
}

#[test]
fn codes_of_a_program_lie_above_the_last_code() {
    let first = standard::MPI_ERR_LASTCODE as c_int + 1;
    assert!(error_out(first) > mpich::MPI_ERR_LASTCODE as c_int);
    assert_eq!(error_out(first + 1), error_out(first) + 1);
    // Those of a library that is made of MPICH lie there already.
    let behind = mpich::MPI_ERR_LASTCODE as c_int + 0x81;
    assert_eq!(error_out(behind), behind);
}

#[test]
fn a_word_that_is_no_handle_is_unknown() {
    for wild in [
        0,
        1,
        -1,
        0x4c00_0455,
        c_int::MIN,
        c_int::MAX,
        COMM.standard(0x4400_0000) as c_int,
    ] {
        assert_eq!(COMM.standard(wild), UNKNOWN, "{wild:#x}");
    }
    assert_eq!(DATATYPE.standard(0x8c00_0005_u32 as c_int), UNKNOWN);
}

#[test]
fn a_request_gives_its_number_to_the_next() {
    let first = REQUEST.mpich(0x1000);
    assert!(REQUEST.index(first).is_some_and(|index| index >= FIRST));
    assert_eq!(REQUEST.standard(first), 0x1000);
    let mut handle = first;
    // SAFETY: the address is that of a handle.
    unsafe { REQUEST.update(&mut handle, standard::MPI_REQUEST_NULL as usize) };
    assert_eq!(handle, mpich::MPI_REQUEST_NULL as c_int);
    assert_eq!(REQUEST.standard(first), UNKNOWN);
    assert_eq!(REQUEST.mpich(0x2000), first);
    REQUEST.release(first);
}

#[test]
fn threads_never_share_a_number() {
    let work = |thread: usize| {
        for at in 0..20_000_usize {
            let standard = 0x10_0000 + (thread << 20) + at;
            let handle = crate::classes::MESSAGE.mpich(standard);
            assert_eq!(crate::classes::MESSAGE.standard(handle), standard);
            crate::classes::MESSAGE.release(handle);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || work(thread));
        }
    });
}

proptest! {
    #[test]
    fn error_codes_come_back(code in 0..c_int::MAX) {
        let class_without_a_name = (63..=107).contains(&code);
        prop_assert!(class_without_a_name || error_in(error_out(code)) == code);
    }

    #[test]
    fn ranks_and_tags_come_back(value: c_int) {
        prop_assert_eq!(rank_out(rank_in(value)), value);
        prop_assert_eq!(tag_out(tag_in(value)), value);
    }

    #[test]
    fn counts_of_statuses_come_back(bytes in 0..1_i64 << 62, cancelled: bool) {
        let mut status = MpichStatus::default();
        status.set_count(bytes, cancelled);
        prop_assert_eq!((status.count(), status.is_cancelled()), (bytes, cancelled));
    }

    /// An object has one handle as long as it has any, whatever order it is returned and freed in.
    #[test]
    fn objects_keep_their_handles(steps in proptest::collection::vec((0..8_usize, any::<bool>()), 1..200)) {
        let mut held: BTreeMap<usize, (c_int, u32)> = BTreeMap::new();
        for (object, returned) in steps {
            // The process's other tests use no such addresses.
            let standard = 0x7000_0000 + (object << 12);
            if returned {
                let handle = COMM.mpich(standard);
                let (known, references) = held.entry(standard).or_insert((handle, 0));
                prop_assert_eq!(*known, handle);
                *references += 1;
            } else if let Some((handle, references)) = held.get_mut(&standard) {
                COMM.release(*handle);
                *references -= 1;
                if *references == 0 {
                    held.remove(&standard);
                }
            }
            for (standard, (handle, _)) in &held {
                prop_assert_eq!(COMM.standard(*handle), *standard);
            }
        }
        for (handle, references) in held.into_values() {
            (0..references).for_each(|_| COMM.release(handle));
            prop_assert_eq!(COMM.standard(handle), UNKNOWN);
        }
    }
}
