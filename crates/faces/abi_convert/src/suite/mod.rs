//! The tests that every library of an older ABI runs, by the macro [`suite!`](crate::suite!):
//! conversions of every handle, constant, error code and status in both directions, and every entry
//! point with wild values.
#![allow(missing_docs)] // the names of the tests say what must hold

mod wild;

pub use wild::{Entry, Wild, no_entry_point_crashes_with_wild_values};

use crate::abi::Abi;
use crate::classes;
use crate::constants::standard;
use crate::convert::*;
use crate::datarep::{Conversion, Extent, Functions};
use crate::handle::{Handles, UNKNOWN};
use crate::program_status::Status;
use crate::types::Function;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard};

/// The tests of a library of entry points: of its ABI, and of its entry points, each with a call.
#[macro_export]
macro_rules! suite {
    ($program:ty, $entries:expr) => {
        $crate::suite! { @all $program;
            every_predefined_handle_converts_both_ways
            every_integer_with_a_meaning_converts_both_ways
            ranks_and_tags_with_a_meaning_convert_both_ways
            sets_convert_both_ways
            a_request_gives_its_number_to_the_next
            threads_never_share_a_number
            functions_of_a_representation_get_the_program_s_handles
            ranks_tags_and_keys_come_back
            counts_of_statuses_come_back
            handles_of_objects_come_back
            objects_keep_their_handles
        }

        #[test]
        fn no_entry_point_crashes_with_wild_values() {
            let name = concat!(module_path!(), "::no_entry_point_crashes_with_wild_values");
            $crate::suite::no_entry_point_crashes_with_wild_values::<$program>(name, $entries);
        }
    };
    (@all $program:ty; $($name:ident)*) => {$(
        #[test]
        fn $name() {
            $crate::suite::$name::<$program>();
        }
    )*};
}

pub fn every_predefined_handle_converts_both_ways<A: Abi>() {
    for (class, pairs) in classes::all::<A>() {
        for &(constant, standard) in pairs {
            let handle = A::handle(constant as c_int);
            assert_eq!(class.standard(handle), standard as usize, "{handle:#x}");
            let back = class.program(standard as usize);
            assert_eq!(class.standard(back), standard as usize, "{standard:#x}");
        }
    }
}

pub fn every_integer_with_a_meaning_converts_both_ways<A: Abi>() {
    type Conversion = fn(c_int) -> c_int;
    type Group = (&'static [(i64, i64)], Conversion, Conversion);
    let groups: [Group; 19] = [
        (A::LEVELS_OF_THREAD_SUPPORT, thread_in::<A>, thread_out::<A>),
        (A::ATTRIBUTE_KEYS, keyval_in::<A>, keyval_out::<A>),
        (A::TOPOLOGIES, topology_in::<A>, topology_out::<A>),
        (
            A::RESULTS_OF_COMPARISONS,
            comparison_in::<A>,
            comparison_out::<A>,
        ),
        (A::COMBINERS, combiner_in::<A>, combiner_out::<A>),
        (A::SPLIT_TYPES, split_type_in::<A>, split_type_out::<A>),
        (A::TYPE_CLASSES, type_class_in::<A>, type_class_out::<A>),
        (A::ORDERS_OF_ARRAYS, order_in::<A>, order_out::<A>),
        (
            A::DISTRIBUTIONS_OF_ARRAYS,
            distribution_in::<A>,
            distribution_out::<A>,
        ),
        (
            A::DEFAULT_ARGUMENT_OF_A_DISTRIBUTION,
            default_argument_in::<A>,
            default_argument_out::<A>,
        ),
        (A::TOOLS_VERBOSITY, verbosity_in::<A>, verbosity_out::<A>),
        (
            A::TOOLS_WHAT_A_VARIABLE_IS_BOUND_TO,
            bind_in::<A>,
            bind_out::<A>,
        ),
        (A::TOOLS_SCOPES, scope_in::<A>, scope_out::<A>),
        (
            A::TOOLS_CLASSES_OF_PERFORMANCE_VARIABLES,
            variable_class_in::<A>,
            variable_class_out::<A>,
        ),
        (A::LOCK_TYPES, lock_type_in::<A>, lock_type_out::<A>),
        (A::FLAVOURS_OF_WINDOWS, flavor_in::<A>, flavor_out::<A>),
        (
            A::MEMORY_MODELS_OF_WINDOWS,
            memory_model_in::<A>,
            memory_model_out::<A>,
        ),
        (A::POSITIONS_IN_FILES, whence_in::<A>, whence_out::<A>),
        (A::ERROR_CLASSES, error_in::<A>, error_out::<A>),
    ];
    for (pairs, to_standard, to_program) in groups {
        assert!(!pairs.is_empty());
        for &(program, standard) in pairs {
            assert_eq!(to_standard(program as c_int), standard as c_int);
            assert_eq!(to_program(standard as c_int), program as c_int);
        }
    }
}

pub fn ranks_and_tags_with_a_meaning_convert_both_ways<A: Abi>() {
    let ranks = [
        (A::MPI_ANY_SOURCE, standard::MPI_ANY_SOURCE),
        (A::MPI_PROC_NULL, standard::MPI_PROC_NULL),
        (A::MPI_ROOT, standard::MPI_ROOT),
    ];
    for (program, standard) in ranks {
        assert_eq!(rank_in::<A>(program as c_int), standard as c_int);
        assert_eq!(rank_out::<A>(standard as c_int), program as c_int);
    }
    assert_eq!(
        tag_in::<A>(A::MPI_ANY_TAG as c_int),
        standard::MPI_ANY_TAG as c_int
    );
    assert_eq!(
        tag_out::<A>(standard::MPI_ANY_TAG as c_int),
        A::MPI_ANY_TAG as c_int
    );
}

pub fn sets_convert_both_ways<A: Abi>() {
    for &(program, standard) in A::ASSERTIONS_OF_WINDOWS {
        assert_eq!(assertion_in::<A>(program as c_int), standard as c_int);
    }
    for &(program, standard) in A::MODES_OF_FILES {
        assert_eq!(file_mode_in::<A>(program as c_int), standard as c_int);
        assert_eq!(file_mode_out::<A>(standard as c_int), program as c_int);
    }
    let both = A::MPI_MODE_CREATE | A::MPI_MODE_WRONLY;
    let wanted = standard::MPI_MODE_CREATE | standard::MPI_MODE_WRONLY;
    assert_eq!(file_mode_in::<A>(both as c_int), wanted as c_int);
}

/// A lock of tests that give handles to objects. A test that frees objects checks that their
/// handles are unknown afterwards, and another test would reuse their indices.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The first of the standard's handles whose values no older ABI can use as its own.
const LARGE: usize = 0x5000_0000_0000_0000;

pub fn a_request_gives_its_number_to_the_next<A: Abi>() {
    let _alone = alone();
    let first = A::classes().request.program(LARGE);
    assert!(
        A::classes()
            .request
            .index(first)
            .is_some_and(|index| index >= A::FIRST)
    );
    assert_eq!(A::classes().request.standard(first), LARGE);
    let mut handle = first;
    // SAFETY: the address is that of a handle.
    unsafe {
        A::classes()
            .request
            .update(&mut handle, standard::MPI_REQUEST_NULL as usize)
    };
    assert_eq!(handle, A::handle(A::MPI_REQUEST_NULL as c_int));
    assert_eq!(A::classes().request.standard(first), UNKNOWN);
    assert_eq!(A::classes().request.program(LARGE + 1), first);
    A::classes().request.release(first);
}

pub fn threads_never_share_a_number<A: Abi>() {
    let _alone = alone();
    let work = |thread: usize| {
        for at in 0..20_000_usize {
            let standard = LARGE + (thread << 20) + at;
            let handle = A::classes().message.program(standard);
            assert_eq!(A::classes().message.standard(handle), standard);
            A::classes().message.release(handle);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || work(thread));
        }
    });
}

pub fn ranks_tags_and_keys_come_back<A: Abi>() {
    proptest!(|(value in prop_oneof![any::<c_int>(), -20..700])| {
        prop_assert_eq!(keyval_out::<A>(keyval_in::<A>(value)), value);
        prop_assert_eq!(keyval_in::<A>(keyval_out::<A>(value)), value);
        prop_assert_eq!(rank_in::<A>(rank_out::<A>(value)), value);
        prop_assert_eq!(rank_out::<A>(rank_in::<A>(value)), value);
        prop_assert_eq!(tag_out::<A>(tag_in::<A>(value)), value);
    });
}

pub fn counts_of_statuses_come_back<A: Abi>() {
    proptest!(|(bytes in 0..1_i64 << 62, cancelled: bool)| {
        let mut status = A::Status::default();
        status.set_count(bytes, cancelled);
        prop_assert_eq!((status.count(), status.is_cancelled()), (bytes, cancelled));
    });
}

/// Handles of objects of the library, with any value, are converted to the program's and back.
pub fn handles_of_objects_come_back<A: Abi>() {
    proptest!(|(words in proptest::collection::vec(0x1000..usize::MAX, 1..40), bits in 0..52_u32)| {
        let _alone = alone();
        for word in words.into_iter().map(|word: usize| (word >> bits).max(0x1000)) {
            for (class, _) in classes::all::<A>() {
                let handle = class.program(word);
                prop_assert_eq!(class.standard(handle), word, "{:#x}", handle);
                class.release(handle);
            }
            let mut request = A::handle(A::MPI_REQUEST_NULL as c_int);
            // SAFETY: the address is that of a handle.
            unsafe {
                A::classes().request.give(&mut request, word);
                prop_assert_eq!(A::classes().request.standard_at(&request), word);
                A::classes().request.update(&mut request, standard::MPI_REQUEST_NULL as usize);
            }
            prop_assert_eq!(request, A::handle(A::MPI_REQUEST_NULL as c_int));
            prop_assert_eq!(A::classes().request.standard(request), standard::MPI_REQUEST_NULL as usize);
        }
    });
}

/// An object keeps its handle as long as it has one, in whatever order it is returned and freed.
pub fn objects_keep_their_handles<A: Abi>() {
    proptest!(|(steps in proptest::collection::vec((0..8_usize, any::<bool>()), 1..200))| {
        let _alone = alone();
        let mut held: BTreeMap<usize, (A::Handle, u32)> = BTreeMap::new();
        for (object, returned) in steps {
            // Other tests of the process use no such handles.
            let standard = (LARGE << 1) + (object << 12);
            if returned {
                let handle = A::classes().comm.program(standard);
                let (known, references) = held.entry(standard).or_insert((handle, 0));
                prop_assert_eq!(*known, handle);
                *references += 1;
            } else if let Some((handle, references)) = held.get_mut(&standard) {
                A::classes().comm.release(*handle);
                *references -= 1;
                if *references == 0 {
                    held.remove(&standard);
                }
            }
            for (standard, (handle, _)) in &held {
                prop_assert_eq!(A::classes().comm.standard(*handle), *standard);
            }
        }
        for (handle, references) in held.into_values() {
            (0..references).for_each(|_| A::classes().comm.release(handle));
            prop_assert_eq!(A::classes().comm.standard(handle), UNKNOWN);
        }
    });
}

/// A function of the program: checks that it gets the program's datatype and state, and fails with
/// a code of the program.
unsafe extern "C" fn users<A: Abi, const CODED: bool>(
    _buffer: *mut c_void,
    datatype: A::Handle,
    count: i64,
    _file: *mut c_void,
    position: i64,
    state: *mut c_void,
) -> c_int {
    assert_eq!(datatype, A::handle(A::MPI_INT as c_int));
    assert_eq!((count, position, state.addr()), (3, 4, 5));
    if CODED {
        A::MPI_ERR_CONVERSION as c_int
    } else {
        0
    }
}

unsafe extern "C" fn extent<A: Abi>(
    datatype: A::Handle,
    extent: *mut isize,
    _state: *mut c_void,
) -> c_int {
    assert_eq!(datatype, A::handle(A::MPI_INT as c_int));
    // SAFETY: the pointer is the test's own.
    unsafe { *extent = 8 };
    0
}

pub fn functions_of_a_representation_get_the_program_s_handles<A: Abi>() {
    let state = std::ptr::without_provenance_mut(5);
    let read = users::<A, false> as Function;
    let write = users::<A, true> as Function;
    let own = Functions::new::<A, i64>(read, write, extent::<A> as Function, state);
    let none = std::ptr::null_mut();
    let datatype = standard::MPI_INT as usize;
    // SAFETY: these are the functions of these types, and the state is theirs.
    unsafe {
        let read = std::mem::transmute::<Function, Conversion<usize, i64>>(own.read);
        let write = std::mem::transmute::<Function, Conversion<usize, i64>>(own.write);
        let extent = std::mem::transmute::<Function, Extent<usize>>(own.extent);
        assert_eq!(read(none, datatype, 3, none, 4, own.extra_state), 0);
        let code = write(none, datatype, 3, none, 4, own.extra_state);
        assert_eq!(code, standard::MPI_ERR_CONVERSION as c_int);
        let mut bytes = 0;
        assert_eq!(extent(datatype, &mut bytes, own.extra_state), 0);
        assert_eq!(bytes, 8);
    }
    let without = Functions::new::<A, i64>(std::ptr::null(), std::ptr::null(), read, state);
    assert!(without.read.is_null() && without.write.is_null());
}
