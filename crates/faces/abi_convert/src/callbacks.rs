//! Users' functions that the standard ABI calls without an extra state: reductions and error
//! handlers. The library gets a function of a pool instead, which finds the user's function by its
//! own number. Functions of generalized requests get an extra state, and need no pool.

use crate::abi::Abi;
use crate::convert::{error_in, error_out, file_out};
use crate::instances;
use crate::pool::{MOST, Pool};
use crate::types::{Function, StandardStatus};
use std::ffi::{c_int, c_void};

type User<N> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut N, *mut usize);
type UsersOwn<N, H> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut N, *mut H);

static USER: Pool = Pool::new();
static USER_C: Pool = Pool::new();

/// The function that the library gets instead of the program's reduction function.
pub fn user_function<A: Abi>(function: Function) -> Function {
    let all: &[User<c_int>; MOST] = const { &instances!(reduce, A) };
    USER.stand_in(function, all)
}

/// The function that the library gets instead of a reduction function with MPI_Count.
pub fn user_function_c<A: Abi>(function: Function) -> Function {
    let all: &[User<i64>; MOST] = const { &instances!(reduce_c, A) };
    USER_C.stand_in(function, all)
}

unsafe extern "C" fn reduce<A: Abi, const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut c_int,
    datatype: *mut usize,
) {
    // SAFETY: the library's promises about the arguments are passed on.
    unsafe { call_user::<A, _>(&USER, N, from, to, length, datatype) }
}

unsafe extern "C" fn reduce_c<A: Abi, const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut i64,
    datatype: *mut usize,
) {
    // SAFETY: the library's promises about the arguments are passed on.
    unsafe { call_user::<A, _>(&USER_C, N, from, to, length, datatype) }
}

#[inline(never)]
unsafe fn call_user<A: Abi, N>(
    pool: &Pool,
    number: usize,
    from: *mut c_void,
    to: *mut c_void,
    length: *mut N,
    datatype: *mut usize,
) {
    // SAFETY: the pool has the address of a function of this type at the number; the pointers are
    // the library's.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, UsersOwn<N, A::Handle>>(pool.get(number));
        A::classes().datatype.during(*datatype, |mut datatype| {
            function(from, to, length, &mut datatype)
        });
    }
}

/// A function that calls its argument with the program's handle of an object of the standard ABI.
type During = fn(usize, &mut dyn FnMut(*mut c_void));

#[inline(never)]
unsafe fn call_handler<A: Abi>(
    function: *mut c_void,
    during: During,
    object: *mut usize,
    code: *mut c_int,
) {
    type UsersOwn = unsafe extern "C" fn(*mut c_void, *mut c_int, ...);
    // SAFETY: the address is that of a function with these first arguments, which are passed as to
    // a function without variadic arguments; the pointers are the library's.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, UsersOwn>(function);
        let mut code = error_out::<A>(*code);
        during(*object, &mut |object| function(object, &mut code));
    }
}

type Handler = unsafe extern "C" fn(*mut usize, *mut c_int);

macro_rules! errhandlers {
    ($($(#[$doc:meta])* $name:ident $call:ident $pool:ident $during:expr;)*) => {$(
        static $pool: Pool = Pool::new();

        $(#[$doc])*
        pub fn $name<A: Abi>(function: Function) -> Function {
            let all: &[Handler; MOST] = const { &instances!($call, A) };
            $pool.stand_in(function, all)
        }

        unsafe extern "C" fn $call<A: Abi, const N: usize>(object: *mut usize, code: *mut c_int) {
            // SAFETY: the library's promises about the arguments are passed on.
            unsafe { call_handler::<A>($pool.get(N), $during, object, code) }
        }
    )*};
}

errhandlers! {
    /// The function that the library gets instead of a communicator's error handler.
    comm_errhandler comm_error COMM_POOL
        |object, call| A::classes().comm.during(object, |mut object| call((&raw mut object).cast()));
    /// The function that the library gets instead of a window's error handler.
    win_errhandler win_error WIN_POOL
        |object, call| A::classes().win.during(object, |mut object| call((&raw mut object).cast()));
    /// The function that the library gets instead of a session's error handler.
    session_errhandler session_error SESSION_POOL
        |object, call| A::classes().session.during(object, |mut object| call((&raw mut object).cast()));
    /// The function that the library gets instead of a file's error handler.
    file_errhandler file_error FILE_POOL
        |object, call| {
            let mut object = file_out::<A>(object);
            call((&raw mut object).cast());
        };
}

/// The program's functions of a generalized request, and their extra state.
struct Grequest<S> {
    query: Option<unsafe extern "C" fn(*mut c_void, *mut S) -> c_int>,
    free: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    cancel: Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>,
    extra_state: *mut c_void,
}

/// The extra state that the library gets for a generalized request.
///
/// # Safety
/// The functions are NULL or those that the standard describes.
pub unsafe fn grequest<A: Abi>(
    query: Function,
    free: Function,
    cancel: Function,
    extra_state: *mut c_void,
) -> *mut c_void {
    // SAFETY: promised; NULL is None.
    let request = unsafe {
        Grequest {
            query: std::mem::transmute::<
                Function,
                Option<unsafe extern "C" fn(*mut c_void, *mut A::Status) -> c_int>,
            >(query),
            free: std::mem::transmute::<Function, Option<unsafe extern "C" fn(*mut c_void) -> c_int>>(
                free,
            ),
            cancel: std::mem::transmute::<
                Function,
                Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>,
            >(cancel),
            extra_state,
        }
    };
    Box::into_raw(Box::new(request)).cast()
}

/// Frees the extra state of a generalized request if the request has not started.
///
/// # Safety
/// `request` is what [`grequest`] returned, and `code` is the outcome of the call that got it.
pub unsafe fn started_grequest<A: Abi>(code: c_int, request: *mut c_void) {
    if code != 0 {
        // SAFETY: the library has not kept the address.
        drop(unsafe { Box::from_raw(request.cast::<Grequest<A::Status>>()) });
    }
}

/// The functions that the library gets for a generalized request: query, free and cancel.
pub fn grequest_functions<A: Abi>() -> [Function; 3] {
    [
        query::<A> as Function,
        free::<A> as Function,
        cancel::<A> as Function,
    ]
}

unsafe extern "C" fn query<A: Abi>(request: *mut c_void, status: *mut StandardStatus) -> c_int {
    // SAFETY: the library passes on the address that `grequest` gave it, and a status.
    unsafe {
        let request = &*request.cast::<Grequest<A::Status>>();
        let mut users = A::Status::default();
        let code = request
            .query
            .map_or(0, |query| query(request.extra_state, &mut users));
        if !status.is_null() {
            // Only MPI sets MPI_ERROR.
            let error = (*status).error;
            *status = crate::status::standard::<A>(&users);
            (*status).error = error;
        }
        error_in::<A>(code)
    }
}

unsafe extern "C" fn free<A: Abi>(request: *mut c_void) -> c_int {
    // SAFETY: the library calls this once with the address that `grequest` gave it.
    let request = unsafe { Box::from_raw(request.cast::<Grequest<A::Status>>()) };
    // SAFETY: the program's function gets its extra state.
    error_in::<A>(
        request
            .free
            .map_or(0, |free| unsafe { free(request.extra_state) }),
    )
}

unsafe extern "C" fn cancel<A: Abi>(request: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: the library passes on the address that `grequest` gave it.
    let request = unsafe { &*request.cast::<Grequest<A::Status>>() };
    // SAFETY: the program's function gets its extra state.
    error_in::<A>(
        request
            .cancel
            .map_or(0, |cancel| unsafe { cancel(request.extra_state, complete) }),
    )
}
