//! MPI running in the test itself, alone, with a rank that returns every error and remembers its words.

#![allow(dead_code, unused_macros, reason = "each test uses a part")]

use mpi_abi::call_guard::Object;
use mpi_abi::constants::*;
use mpi_abi::entry::*;
use mpi_abi::error::Error;
use mpi_abi::handle::Datatype;
use mpi_abi::state::Rank;
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, LazyLock};

pub static RANK: LazyLock<Rank> = LazyLock::new(|| {
    let knobs = knobs::Knobs::parse(std::iter::empty()).unwrap();
    let alone = mpi::Rank::new(None, knobs).unwrap();
    // Tests run in threads.
    alone.allow_threads();
    Rank {
        in_virtual_time: false,
        watch: None,
        mpi: Arc::new(alone),
        raise: remember,
    }
});

thread_local! {
    pub static RAISED: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn remember(_: &Rank, _: Object, _: &str, error: &Error) -> c_int {
    RAISED.set(Some(error.to_string()));
    error.class.0
}

/// Calls while MPI is running; the call must succeed.
macro_rules! ok {
    ($call:expr) => {{
        mpi_abi::state::LIBRARY.start(&$crate::running::RANK);
        // SAFETY: every pointer is to a variable of the type that C promises, or NULL.
        let code = unsafe { $call };
        assert_eq!(code, MPI_SUCCESS, "{:?}", $crate::running::RAISED.take());
    }};
}

/// The call must fail with this class, and say this.
macro_rules! refused {
    ($call:expr, $class:expr, $words:expr) => {{
        mpi_abi::state::LIBRARY.start(&$crate::running::RANK);
        // SAFETY: as above.
        let code = unsafe { $call };
        let said = $crate::running::RAISED.take().unwrap_or_default();
        assert_eq!(code, $class, "{said}");
        assert!(said.contains($words), "{said}");
    }};
}

/// A datatype that a constructor writes.
macro_rules! made {
    ($procedure:ident($($argument:expr),*)) => {{
        let mut new = MPI_DATATYPE_NULL;
        ok!($procedure($($argument,)* &mut new));
        new
    }};
}

pub fn commit(mut datatype: Datatype) -> Datatype {
    ok!(MPI_Type_commit(&mut datatype));
    datatype
}

pub fn free(mut datatype: Datatype) {
    ok!(MPI_Type_free(&mut datatype));
    assert_eq!(datatype, MPI_DATATYPE_NULL);
}
