//! Users' functions in Fortran. The C library calls functions of this library instead, which
//! convert the arguments.

use crate::abi::Abi;
use crate::attributes::{load, store};
use crate::handle::{Class, Comm, Datatype, File, Session, Win, from_integer, to_integer};
use crate::logical;
use abi_convert::instances;
use abi_convert::pool::{MOST, Pool};
use abi_convert::types::Function;
use std::ffi::{c_int, c_void};
use std::mem::transmute;

/// The state that the C library passes to functions of this library: the program's functions and
/// extra state.
struct State {
    functions: [*mut c_void; 3],
    word: isize,
    /// The program's variable that contained the extra state.
    variable: *mut isize,
}

/// Makes the extra state for the C library. It is never freed: attributes outlive their key, and
/// data representations remain.
pub fn state(functions: &[*mut c_void], word: isize, variable: *mut c_void) -> *mut c_void {
    let mut all = [std::ptr::null_mut(); 3];
    all[..functions.len()].copy_from_slice(functions);
    let state = State {
        functions: all,
        word,
        variable: variable.cast(),
    };
    Box::into_raw(Box::new(state)).cast()
}

impl State {
    /// Lends the extra state to a function of a generalized request. It is a copy, so the program's
    /// argument may be an expression. A program whose function changes it, as other libraries
    /// allow, relies on its variable, so that is changed too.
    ///
    /// # Safety
    /// The program's variable exists if the function changes the extra state.
    unsafe fn lend(&mut self, to: impl FnOnce(*mut isize)) {
        let mut word = self.word;
        to(&mut word);
        if word != self.word {
            self.word = word;
            // SAFETY: promised.
            unsafe { *self.variable = word };
        }
    }
}

/// An integer type that contains an address, or that contained one in MPI 1.
trait Word: Copy + PartialEq {
    fn new(value: isize) -> Self;
    fn value(self) -> isize;
}

impl Word for isize {
    fn new(value: isize) -> Self {
        value
    }
    fn value(self) -> isize {
        self
    }
}

impl Word for c_int {
    fn new(value: isize) -> Self {
        value as c_int
    }
    fn value(self) -> isize {
        self as isize
    }
}

type Copy_<W> =
    unsafe extern "C" fn(*mut c_int, *mut c_int, *mut W, *mut W, *mut W, *mut c_int, *mut c_int);
type Delete<W> = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut W, *mut W, *mut c_int);

unsafe extern "C" fn copy<A: Abi, C: Class<A>, W: Word>(
    object: C::Handle,
    mut keyval: c_int,
    state: *mut c_void,
    attribute: *mut c_void,
    copied: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library passes on our state and an attribute of this key; the program's function
    // takes addresses of these types.
    unsafe {
        let state = &*state.cast::<State>();
        let users = transmute::<*mut c_void, Copy_<W>>(state.functions[0]);
        let (mut object, mut word) = (to_integer::<A, C>(object), W::new(state.word));
        let mut value = W::new(load::<A>(keyval, attribute));
        let (mut result, mut is_copied, mut code) = (value, logical::from_c(0), 0);
        users(
            &mut object,
            &mut keyval,
            &mut word,
            &mut value,
            &mut result,
            &mut is_copied,
            &mut code,
        );
        *flag = logical::to_c(is_copied);
        if code == 0 && *flag != 0 {
            // If the function copies the value unchanged, the attribute stays one of the language
            // that set it.
            let is_same = result == W::new(load::<A>(keyval, attribute));
            *copied = if is_same {
                attribute
            } else {
                store(result.value())
            };
        }
        code
    }
}

unsafe extern "C" fn delete<A: Abi, C: Class<A>, W: Word>(
    object: C::Handle,
    mut keyval: c_int,
    attribute: *mut c_void,
    state: *mut c_void,
) -> c_int {
    // SAFETY: the library passes on our state and an attribute of this key; the program's function
    // takes addresses of these types.
    unsafe {
        let state = &*state.cast::<State>();
        let users = transmute::<*mut c_void, Delete<W>>(state.functions[1]);
        let (mut object, mut word) = (to_integer::<A, C>(object), W::new(state.word));
        let (mut value, mut code) = (W::new(load::<A>(keyval, attribute)), 0);
        users(&mut object, &mut keyval, &mut value, &mut word, &mut code);
        code
    }
}

macro_rules! stand_ins {
    ($($name:ident $function:expr;)*) => {$(
        /// The function that the C library gets instead of a function of the program, which is in
        /// the extra state.
        pub fn $name<A: Abi>(_: *mut c_void) -> Function {
            $function as Function
        }
    )*};
}

stand_ins! {
    comm_copy_attr_function copy::<A, Comm, isize>;
    comm_delete_attr_function delete::<A, Comm, isize>;
    type_copy_attr_function copy::<A, Datatype, isize>;
    type_delete_attr_function delete::<A, Datatype, isize>;
    win_copy_attr_function copy::<A, Win, isize>;
    win_delete_attr_function delete::<A, Win, isize>;
    old_comm_copy_attr_function copy::<A, Comm, c_int>;
    old_comm_delete_attr_function delete::<A, Comm, c_int>;
    grequest_query_function query::<A>;
    grequest_free_function free;
    grequest_cancel_function cancel;
    datarep_extent_function extent::<A>;
}

unsafe extern "C" fn query<A: Abi>(state: *mut c_void, status: *mut A::Status) -> c_int {
    type Query<S> = unsafe extern "C" fn(*mut isize, *mut S, *mut c_int);
    // SAFETY: the library passes on our state and a status; the program's function takes these.
    unsafe {
        let state = &mut *state.cast::<State>();
        let users = transmute::<*mut c_void, Query<A::Status>>(state.functions[0]);
        let mut code = 0;
        state.lend(|word| users(word, status, &mut code));
        code
    }
}

unsafe extern "C" fn free(state: *mut c_void) -> c_int {
    type Free = unsafe extern "C" fn(*mut isize, *mut c_int);
    // SAFETY: the library calls this once, as the last function, with our state.
    unsafe {
        let mut state = Box::from_raw(state.cast::<State>());
        let users = transmute::<*mut c_void, Free>(state.functions[1]);
        let mut code = 0;
        state.lend(|word| users(word, &mut code));
        code
    }
}

unsafe extern "C" fn cancel(state: *mut c_void, complete: c_int) -> c_int {
    type Cancel = unsafe extern "C" fn(*mut isize, *mut c_int, *mut c_int);
    // SAFETY: the library passes on our state; the program's function takes these addresses.
    unsafe {
        let state = &mut *state.cast::<State>();
        let users = transmute::<*mut c_void, Cancel>(state.functions[2]);
        let (mut complete, mut code) = (logical::from_c(complete), 0);
        state.lend(|word| users(word, &mut complete, &mut code));
        code
    }
}

unsafe extern "C" fn extent<A: Abi>(
    datatype: A::Handle,
    extent: *mut isize,
    state: *mut c_void,
) -> c_int {
    type Extent = unsafe extern "C" fn(*mut c_int, *mut isize, *mut isize, *mut c_int);
    // SAFETY: the library passes on our state; the program's function takes these addresses.
    unsafe {
        let state = &*state.cast::<State>();
        let users = transmute::<*mut c_void, Extent>(state.functions[2]);
        let mut datatype = to_integer::<A, Datatype>(datatype);
        let (mut word, mut code) = (state.word, 0);
        users(&mut datatype, extent, &mut word, &mut code);
        code
    }
}

/// Calls the program's conversion function at index `AT` of the state, with counts of type `N`.
unsafe extern "C" fn convert<A: Abi, const AT: usize, N>(
    user_buffer: *mut c_void,
    datatype: A::Handle,
    mut count: N,
    file_buffer: *mut c_void,
    mut position: i64,
    state: *mut c_void,
) -> c_int {
    type Conversion<N> = unsafe extern "C" fn(
        *mut c_void,
        *mut c_int,
        *mut N,
        *mut c_void,
        *mut i64,
        *mut isize,
        *mut c_int,
    );
    // SAFETY: the library passes on our state; the program's function takes these addresses.
    unsafe {
        let state = &*state.cast::<State>();
        let users = transmute::<*mut c_void, Conversion<N>>(state.functions[AT]);
        let mut datatype = to_integer::<A, Datatype>(datatype);
        let (mut word, mut code) = (state.word, 0);
        users(
            user_buffer,
            &mut datatype,
            &mut count,
            file_buffer,
            &mut position,
            &mut word,
            &mut code,
        );
        code
    }
}

/// The function that the C library gets instead of a conversion of a data representation. NULL: the
/// representation is the native one.
pub fn datarep_conversion_function<A: Abi, const AT: usize>(function: *mut c_void) -> Function {
    if crate::predefined::is_no_conversion::<A>(function) {
        return std::ptr::null();
    }
    convert::<A, AT, c_int> as Function
}

/// The function that the C library gets instead of a conversion with MPI_Count.
pub fn large_datarep_conversion_function<A: Abi, const AT: usize>(
    function: *mut c_void,
) -> Function {
    if crate::predefined::is_no_conversion::<A>(function) {
        return std::ptr::null();
    }
    convert::<A, AT, i64> as Function
}

type User<N> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut N, *mut c_int);

/// The program's reduction functions. Reduction functions and error handlers get no extra state, so
/// the C library gets functions of pools instead.
static USER: Pool = Pool::new();
static LARGE_USER: Pool = Pool::new();

/// The type of this library's functions for reductions.
type Reduce<N, H> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut N, *mut H);

/// The function that the C library gets instead of a reduction function.
pub fn user_function<A: Abi>(function: *mut c_void) -> Function {
    let all: &[Reduce<c_int, A::Handle>; MOST] = const { &instances!(reduce, A) };
    USER.stand_in(function, all)
}

/// The function that the C library gets instead of a reduction function with MPI_Count.
pub fn large_user_function<A: Abi>(function: *mut c_void) -> Function {
    let all: &[Reduce<i64, A::Handle>; MOST] = const { &instances!(reduce_large, A) };
    LARGE_USER.stand_in(function, all)
}

unsafe extern "C" fn reduce<A: Abi, const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut c_int,
    datatype: *mut A::Handle,
) {
    // SAFETY: the library's promises about the arguments are passed on.
    unsafe { call_user::<A, _>(USER.get(N), from, to, length, datatype) }
}

unsafe extern "C" fn reduce_large<A: Abi, const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut i64,
    datatype: *mut A::Handle,
) {
    // SAFETY: the library's promises about the arguments are passed on.
    unsafe { call_user::<A, _>(LARGE_USER.get(N), from, to, length, datatype) }
}

#[inline(never)]
unsafe fn call_user<A: Abi, N>(
    function: *mut c_void,
    from: *mut c_void,
    to: *mut c_void,
    length: *mut N,
    datatype: *mut A::Handle,
) {
    // SAFETY: the pool has the address of a function of this type; the pointers are the library's.
    unsafe {
        let users = transmute::<*mut c_void, User<N>>(function);
        users(from, to, length, &mut to_integer::<A, Datatype>(*datatype));
    }
}

/// The type of this library's functions for error handlers.
type HandleError<H> = unsafe extern "C" fn(*mut H, *mut c_int);

macro_rules! errhandlers {
    ($($name:ident $call:ident $pool:ident $class:ty;)*) => {$(
        static $pool: Pool = Pool::new();

        /// The function that the C library gets instead of an error handler.
        pub fn $name<A: Abi>(function: *mut c_void) -> Function {
            let all: &[HandleError<<$class as Class<A>>::Handle>; MOST] = const { &instances!($call, A) };
            $pool.stand_in(function, all)
        }

        unsafe extern "C" fn $call<A: Abi, const N: usize>(object: *mut <$class as Class<A>>::Handle, code: *mut c_int) {
            // SAFETY: the library's promises about the arguments are passed on.
            unsafe { handle_error::<A, $class>($pool.get(N), object, code) }
        }
    )*};
}

errhandlers! {
    comm_errhandler_function comm_error COMM_POOL Comm;
    win_errhandler_function win_error WIN_POOL Win;
    file_errhandler_function file_error FILE_POOL File;
    session_errhandler_function session_error SESSION_POOL Session;
}

#[inline(never)]
unsafe fn handle_error<A: Abi, C: Class<A>>(
    function: *mut c_void,
    object: *mut C::Handle,
    code: *mut c_int,
) {
    type Users = unsafe extern "C" fn(*mut c_int, *mut c_int);
    // SAFETY: the pool has the address of a function of this type; the pointers are the library's.
    unsafe {
        let users = transmute::<*mut c_void, Users>(function);
        let old = to_integer::<A, C>(*object);
        let mut integer = old;
        users(&mut integer, code);
        if integer != old {
            *object = from_integer::<A, C>(integer);
        }
    }
}
