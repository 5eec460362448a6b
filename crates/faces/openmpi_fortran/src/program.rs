//! Open MPI's ABI for Fortran: handles are small integers in Fortran and addresses in C, and a
//! status has 24 bytes.

use crate::common::handle::*;
use crate::common::{commons, library, standard};
use std::ffi::{c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The name by which programs need this library.
pub(crate) const LIBRARY: &str = "libmpi_mpifh.so.40";

/// The library of C that it calls.
pub(crate) const C_LIBRARY: &str = "libmpi.so.40";

/// A status: in C four integers and a number of bytes, in Fortran six integers.
pub(crate) type Status = [c_int; 6];

/// Handles are pointers in C.
pub(crate) mod handles {
    macro_rules! aliases {
        ($($name:ident)*) => { $(pub(crate) type $name = usize;)* };
    }
    aliases! { Comm Datatype Errhandler File Group Info Message Op Request Session Win }
}

pub(crate) const IN_PLACE: *mut c_void = without_provenance_mut(1);

/// Open MPI has no such constant, so its library of C takes the standard's.
pub(crate) const AUTOMATIC: *mut c_void = without_provenance_mut(2);

/// The address of statuses that are ignored.
pub(crate) const STATUS_IGNORE: usize = 0;

/// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY.
pub(crate) fn weights() -> [*mut c_int; 2] {
    [2, 3].map(without_provenance_mut)
}

/// C's key for Fortran's, which is that.
#[inline(always)]
pub(crate) fn keyval(keyval: c_int) -> c_int {
    keyval
}

/// Tells the C library what Fortran ignores. The variables of `mpi_f08` are those of `mpif.h`.
pub(crate) fn open() {
    let ignored = [
        (c"MPI_F_STATUS_IGNORE", commons::status_ignore()),
        (c"MPI_F_STATUSES_IGNORE", commons::statuses_ignore()),
        (c"MPI_F08_STATUS_IGNORE", commons::status_ignore()),
        (c"MPI_F08_STATUSES_IGNORE", commons::statuses_ignore()),
    ];
    for (name, address) in ignored {
        let variable = library::find(name).cast::<usize>();
        if !variable.is_null() {
            // SAFETY: the variable of this name is an address that the library of Fortran stores.
            unsafe { *variable = address };
        }
    }
}

/// Integers of predefined handles lie below.
const FIRST_OBJECT: usize = 128;

/// Whether the datatype is a predefined one.
pub(crate) fn is_predefined(datatype: handles::Datatype) -> bool {
    (0..FIRST_OBJECT as c_int).contains(&Datatype::to_integer(datatype))
}

/// The handles of predefined objects in C, which stay: 0 where the library has not been asked.
struct Known([AtomicUsize; FIRST_OBJECT]);

impl Known {
    const fn new() -> Known {
        Known([const { AtomicUsize::new(0) }; FIRST_OBJECT])
    }

    /// The handle for an integer, or 0.
    #[inline(always)]
    fn get(&self, integer: c_int) -> usize {
        let place = self.0.get(integer as usize);
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn handle(&self, integer: c_int, ask: impl FnOnce(c_int) -> usize) -> usize {
        let Some(place) = self.0.get(integer as usize) else {
            return ask(integer);
        };
        match place.load(Ordering::Relaxed) {
            0 => {
                let handle = ask(integer);
                place.store(handle, Ordering::Relaxed);
                handle
            }
            handle => handle,
        }
    }
}

macro_rules! classes {
    ($($name:ident $from:ident $to:ident;)*) => {$(
        impl $name {
            #[inline(always)]
            fn all_known() -> &'static Known {
                static KNOWN: Known = Known::new();
                &KNOWN
            }
        }

        impl Integers for $name {
            type Handle = usize;

            #[inline(always)]
            fn from_integer(integer: c_int) -> usize {
                // SAFETY: any integer is allowed.
                let ask = |integer| unsafe { standard::$from::<true>(integer) };
                Self::all_known().handle(integer, ask)
            }

            #[inline(always)]
            fn is_known(integer: c_int) -> bool {
                Self::all_known().get(integer) != 0
            }

            #[inline(always)]
            fn known(integer: c_int) -> usize {
                Self::all_known().get(integer)
            }

            #[inline(always)]
            fn to_integer(handle: usize) -> c_int {
                // SAFETY: the handle is one of the C library's.
                unsafe { standard::$to::<true>(handle) }
            }
        }
    )*};
}

classes! {
    Comm comm_fromint comm_toint;
    Datatype type_fromint type_toint;
    Errhandler errhandler_fromint errhandler_toint;
    File file_fromint file_toint;
    Group group_fromint group_toint;
    Info info_fromint info_toint;
    Message message_fromint message_toint;
    Op op_fromint op_toint;
    Request request_fromint request_toint;
    Session session_fromint session_toint;
    Win win_fromint win_toint;
}
