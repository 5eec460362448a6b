//! Conversions both ways: every handle, constant, error code and status.

use crate::common::classes::{self, COMM, MESSAGE, REQUEST};
use crate::common::constants::{self, program, standard};
use crate::common::convert::*;
use crate::common::handle::{Handles, UNKNOWN};
use crate::common::types::ProgramStatus;
use crate::program::{FIRST, Handle, handle as handle_of};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};

#[test]
fn every_predefined_handle_converts_both_ways() {
    for (class, pairs) in classes::all() {
        for &(constant, standard) in pairs {
            let handle = handle_of(constant as c_int);
            assert_eq!(class.standard(handle), standard as usize, "{handle:#x}");
            let back = class.program(standard as usize);
            assert_eq!(class.standard(back), standard as usize, "{standard:#x}");
        }
    }
}

#[test]
fn every_integer_with_a_meaning_converts_both_ways() {
    type Conversion = fn(c_int) -> c_int;
    type Group = (&'static [(i64, i64)], Conversion, Conversion);
    let groups: [Group; 19] = [
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
        (constants::ORDERS_OF_ARRAYS, order_in, order_out),
        (
            constants::DISTRIBUTIONS_OF_ARRAYS,
            distribution_in,
            distribution_out,
        ),
        (
            constants::DEFAULT_ARGUMENT_OF_A_DISTRIBUTION,
            default_argument_in,
            default_argument_out,
        ),
        (constants::TOOLS_VERBOSITY, verbosity_in, verbosity_out),
        (
            constants::TOOLS_WHAT_A_VARIABLE_IS_BOUND_TO,
            bind_in,
            bind_out,
        ),
        (constants::TOOLS_SCOPES, scope_in, scope_out),
        (
            constants::TOOLS_CLASSES_OF_PERFORMANCE_VARIABLES,
            variable_class_in,
            variable_class_out,
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
    for (pairs, to_standard, to_program) in groups {
        assert!(!pairs.is_empty());
        for &(program, standard) in pairs {
            assert_eq!(to_standard(program as c_int), standard as c_int);
            assert_eq!(to_program(standard as c_int), program as c_int);
        }
    }
}

#[test]
fn ranks_and_tags_with_a_meaning_convert_both_ways() {
    let ranks = [
        (program::MPI_ANY_SOURCE, standard::MPI_ANY_SOURCE),
        (program::MPI_PROC_NULL, standard::MPI_PROC_NULL),
        (program::MPI_ROOT, standard::MPI_ROOT),
    ];
    for (program, standard) in ranks {
        assert_eq!(rank_in(program as c_int), standard as c_int);
        assert_eq!(rank_out(standard as c_int), program as c_int);
    }
    assert_eq!(
        tag_in(program::MPI_ANY_TAG as c_int),
        standard::MPI_ANY_TAG as c_int
    );
    assert_eq!(
        tag_out(standard::MPI_ANY_TAG as c_int),
        program::MPI_ANY_TAG as c_int
    );
}

#[test]
fn sets_convert_both_ways() {
    for &(program, standard) in constants::ASSERTIONS_OF_WINDOWS {
        assert_eq!(assertion_in(program as c_int), standard as c_int);
    }
    for &(program, standard) in constants::MODES_OF_FILES {
        assert_eq!(file_mode_in(program as c_int), standard as c_int);
        assert_eq!(file_mode_out(standard as c_int), program as c_int);
    }
    let both = program::MPI_MODE_CREATE | program::MPI_MODE_WRONLY;
    let wanted = standard::MPI_MODE_CREATE | standard::MPI_MODE_WRONLY;
    assert_eq!(file_mode_in(both as c_int), wanted as c_int);
}

/// Held by a test that gives objects handles: one that frees them checks that they are unknown
/// then, and another would use the same numbers.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The first of the standard's handles that no program's ABI has as its own.
const LARGE: usize = 0x5000_0000_0000_0000;

#[test]
fn a_request_gives_its_number_to_the_next() {
    let _alone = alone();
    let first = REQUEST.program(LARGE);
    assert!(REQUEST.index(first).is_some_and(|index| index >= FIRST));
    assert_eq!(REQUEST.standard(first), LARGE);
    let mut handle = first;
    // SAFETY: the address is that of a handle.
    unsafe { REQUEST.update(&mut handle, standard::MPI_REQUEST_NULL as usize) };
    assert_eq!(handle, handle_of(program::MPI_REQUEST_NULL as c_int));
    assert_eq!(REQUEST.standard(first), UNKNOWN);
    assert_eq!(REQUEST.program(LARGE + 1), first);
    REQUEST.release(first);
}

#[test]
fn threads_never_share_a_number() {
    let _alone = alone();
    let work = |thread: usize| {
        for at in 0..20_000_usize {
            let standard = LARGE + (thread << 20) + at;
            let handle = MESSAGE.program(standard);
            assert_eq!(MESSAGE.standard(handle), standard);
            MESSAGE.release(handle);
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
    fn ranks_tags_and_keys_come_back(value in prop_oneof![any::<c_int>(), -20..700]) {
        prop_assert_eq!(keyval_out(keyval_in(value)), value);
        prop_assert_eq!(keyval_in(keyval_out(value)), value);
        prop_assert_eq!(rank_in(rank_out(value)), value);
        prop_assert_eq!(rank_out(rank_in(value)), value);
        prop_assert_eq!(tag_out(tag_in(value)), value);
    }

    #[test]
    fn counts_of_statuses_come_back(bytes in 0..1_i64 << 62, cancelled: bool) {
        let mut status = ProgramStatus::default();
        status.set_count(bytes, cancelled);
        prop_assert_eq!((status.count(), status.is_cancelled()), (bytes, cancelled));
    }

    /// Handles of objects come back, whatever words the library has for them, in both directions.
    #[test]
    fn handles_of_objects_come_back(words in proptest::collection::vec(0x1000..usize::MAX, 1..40), bits in 0..52_u32) {
        let _alone = alone();
        for word in words.into_iter().map(|word: usize| (word >> bits).max(0x1000)) {
            for (class, _) in classes::all() {
                let handle = class.program(word);
                prop_assert_eq!(class.standard(handle), word, "{:#x}", handle);
                class.release(handle);
            }
            let mut request = handle_of(program::MPI_REQUEST_NULL as c_int);
            // SAFETY: the address is that of a handle.
            unsafe {
                REQUEST.give(&mut request, word);
                prop_assert_eq!(REQUEST.standard_at(&request), word);
                REQUEST.update(&mut request, standard::MPI_REQUEST_NULL as usize);
            }
            prop_assert_eq!(request, handle_of(program::MPI_REQUEST_NULL as c_int));
            prop_assert_eq!(REQUEST.standard(request), standard::MPI_REQUEST_NULL as usize);
        }
    }

    /// An object has one handle as long as it has any, whatever order it is returned and freed in.
    #[test]
    fn objects_keep_their_handles(steps in proptest::collection::vec((0..8_usize, any::<bool>()), 1..200)) {
        let _alone = alone();
        let mut held: BTreeMap<usize, (Handle, u32)> = BTreeMap::new();
        for (object, returned) in steps {
            // The process's other tests use no such addresses.
            let standard = (LARGE << 1) + (object << 12);
            if returned {
                let handle = COMM.program(standard);
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
