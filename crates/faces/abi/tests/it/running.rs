//! MPI that runs in the test itself, as the only rank, which returns every error and records it.

use mpi_abi::constants::*;
use mpi_abi::entry::*;
use mpi_abi::error::Error;
use mpi_abi::handle::Datatype;
use mpi_abi::object::Object;
use mpi_abi::state::{LIBRARY, Rank};
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, LazyLock};

/// The rank of every test of this binary.
pub(crate) static RANK: LazyLock<Rank> = LazyLock::new(|| {
    let knobs = knobs::Knobs::parse(std::iter::empty()).unwrap();
    let alone = mpi::Rank::new(None, knobs).unwrap();
    // Tests run in several threads.
    alone.allow_threads();
    Rank {
        in_virtual_time: false,
        modelled_host: None,
        watch: None,
        still_clock: None,
        explains: false,
        cost_cache: None,
        mpi: Arc::new(alone),
        raise: remember,
    }
});

/// An error that a call has raised.
#[derive(PartialEq, Debug)]
pub(crate) struct Raised {
    pub(crate) object: Object,
    pub(crate) procedure: String,
    pub(crate) text: String,
}

thread_local! {
    static RAISED: RefCell<Vec<Raised>> = const { RefCell::new(Vec::new()) };
}

fn remember(_: &mpi::Rank, object: Object, procedure: &str, error: &Error) -> c_int {
    let raised = Raised {
        object,
        procedure: procedure.into(),
        text: error.to_string(),
    };
    RAISED.with_borrow_mut(|all| all.push(raised));
    error.class.0
}

/// Makes calls while MPI is running. Returns the code of the last call and all errors raised.
pub(crate) fn call(call: impl FnOnce() -> c_int) -> (c_int, Vec<Raised>) {
    RAISED.take();
    LIBRARY.start(&RANK);
    let code = call();
    (code, RAISED.take())
}

/// Makes a call while MPI is running that must succeed.
macro_rules! ok {
    ($call:expr) => {{
        // SAFETY: every pointer is to a variable of the type that the procedure expects, or NULL.
        let (code, raised) = $crate::running::call(|| unsafe { $call });
        assert_eq!(code, MPI_SUCCESS, "{raised:?}");
    }};
}

/// Makes a call that must fail with this error class and these words in its message.
macro_rules! refused {
    ($call:expr, $class:expr, $words:expr) => {{
        // SAFETY: every pointer is to a variable of the type that the procedure expects, or NULL.
        let (code, raised) = $crate::running::call(|| unsafe { $call });
        assert_eq!(code, $class, "{raised:?}");
        let said = raised.last().map_or("", |raised| raised.text.as_str());
        assert!(said.contains($words), "{said}");
    }};
}

/// The datatype that a constructor makes.
macro_rules! made {
    ($procedure:ident($($argument:expr),*)) => {{
        let mut new = MPI_DATATYPE_NULL;
        ok!($procedure($($argument,)* &mut new));
        new
    }};
}

pub(crate) fn commit(mut datatype: Datatype) -> Datatype {
    ok!(MPI_Type_commit(&mut datatype));
    datatype
}

pub(crate) fn free(mut datatype: Datatype) {
    ok!(MPI_Type_free(&mut datatype));
    assert_eq!(datatype, MPI_DATATYPE_NULL);
}
