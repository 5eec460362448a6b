//! Users' functions in Fortran. The library calls functions of ours in their places, which convert
//! the arguments.

use crate::common::attributes::{load, store};
use crate::common::handle::{
    Class, Comm, Datatype, File, Integers, Session, Win, from_integer, to_integer,
};
use crate::common::logical;
use crate::common::pool::{MOST, Pool, instances};
use crate::common::types::{Function, Status};
use crate::program::{LIBRARY, handles};
use std::ffi::{c_int, c_void};
use std::mem::transmute;

/// What the library passes to our functions: the program's, and the program's word.
struct State {
    functions: [*mut c_void; 3],
    word: isize,
    /// The program's variable that held the word.
    variable: *mut isize,
}

/// The word for the library. It stays: attributes outlive their key, and data representations stay.
pub(crate) fn state(functions: &[*mut c_void], word: isize, variable: *mut c_void) -> *mut c_void {
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
    /// Lends the word to a function of a generalised request. The word is a value, so the
    /// program's argument may be an expression. A program that changes it, as other libraries
    /// allow, relies on its variable, which therefore changes too.
    ///
    /// # Safety
    /// The program's variable is there if the function changes the word.
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

/// An integer that holds an address, or that held one in MPI 1.
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

unsafe extern "C" fn copy<C: Class, W: Word>(
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
        let (mut object, mut word) = (to_integer::<C>(object), W::new(state.word));
        let mut value = W::new(load(keyval, attribute));
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
            // A value that stays the same stays an attribute of the language that set it.
            let is_same = result == W::new(load(keyval, attribute));
            *copied = if is_same {
                attribute
            } else {
                store(result.value())
            };
        }
        code
    }
}

unsafe extern "C" fn delete<C: Class, W: Word>(
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
        let (mut object, mut word) = (to_integer::<C>(object), W::new(state.word));
        let (mut value, mut code) = (W::new(load(keyval, attribute)), 0);
        users(&mut object, &mut keyval, &mut value, &mut word, &mut code);
        code
    }
}

macro_rules! stand_ins {
    ($($name:ident $function:expr;)*) => {$(
        /// Stands for a function that the state names.
        pub(crate) fn $name(_: *mut c_void) -> Function {
            $function as Function
        }
    )*};
}

stand_ins! {
    comm_copy_attr_function copy::<Comm, isize>;
    comm_delete_attr_function delete::<Comm, isize>;
    type_copy_attr_function copy::<Datatype, isize>;
    type_delete_attr_function delete::<Datatype, isize>;
    win_copy_attr_function copy::<Win, isize>;
    win_delete_attr_function delete::<Win, isize>;
    old_comm_copy_attr_function copy::<Comm, c_int>;
    old_comm_delete_attr_function delete::<Comm, c_int>;
    grequest_query_function query;
    grequest_free_function free;
    grequest_cancel_function cancel;
    datarep_extent_function extent;
}

unsafe extern "C" fn query(state: *mut c_void, status: *mut Status) -> c_int {
    type Query = unsafe extern "C" fn(*mut isize, *mut Status, *mut c_int);
    // SAFETY: the library passes on our state and a status; the program's function takes these.
    unsafe {
        let state = &mut *state.cast::<State>();
        let users = transmute::<*mut c_void, Query>(state.functions[0]);
        let mut code = 0;
        state.lend(|word| users(word, status, &mut code));
        code
    }
}

unsafe extern "C" fn free(state: *mut c_void) -> c_int {
    type Free = unsafe extern "C" fn(*mut isize, *mut c_int);
    // SAFETY: the library calls this once, at last, with our state.
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

unsafe extern "C" fn extent(
    datatype: handles::Datatype,
    extent: *mut isize,
    state: *mut c_void,
) -> c_int {
    type Extent = unsafe extern "C" fn(*mut c_int, *mut isize, *mut isize, *mut c_int);
    // SAFETY: the library passes on our state; the program's function takes these addresses.
    unsafe {
        let state = &*state.cast::<State>();
        let users = transmute::<*mut c_void, Extent>(state.functions[2]);
        let mut datatype = to_integer::<Datatype>(datatype);
        let (mut word, mut code) = (state.word, 0);
        users(&mut datatype, extent, &mut word, &mut code);
        code
    }
}

/// The conversion whose function is at this place of the state, with counts of type `N`.
unsafe extern "C" fn convert<const AT: usize, N>(
    user_buffer: *mut c_void,
    datatype: handles::Datatype,
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
        let mut datatype = to_integer::<Datatype>(datatype);
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

/// Stands for a conversion of a data representation. NULL: the representation is the native one.
pub(crate) fn datarep_conversion_function<const AT: usize>(function: *mut c_void) -> Function {
    if crate::common::predefined::is_no_conversion(function) {
        return std::ptr::null();
    }
    convert::<AT, c_int> as Function
}

/// Stands for a conversion with MPI_Count.
pub(crate) fn large_datarep_conversion_function<const AT: usize>(
    function: *mut c_void,
) -> Function {
    if crate::common::predefined::is_no_conversion(function) {
        return std::ptr::null();
    }
    convert::<AT, i64> as Function
}

type User<N> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut N, *mut c_int);

/// Reductions and error handlers get no word of the program's, so each has one of a pool.
static USER: Pool = Pool::new(LIBRARY);
static LARGE_USER: Pool = Pool::new(LIBRARY);

/// Stands for a function of a reduction.
pub(crate) fn user_function(function: *mut c_void) -> Function {
    static ALL: [unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *mut c_int,
        *mut handles::Datatype,
    ); MOST] = instances!(reduce);
    USER.stand_in(function, &ALL)
}

/// Stands for a function of a reduction with MPI_Count.
pub(crate) fn large_user_function(function: *mut c_void) -> Function {
    static ALL: [unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut handles::Datatype);
        MOST] = instances!(reduce_large);
    LARGE_USER.stand_in(function, &ALL)
}

unsafe extern "C" fn reduce<const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut c_int,
    datatype: *mut handles::Datatype,
) {
    // SAFETY: the library's promises about the arguments are passed on.
    unsafe { call_user(USER.get(N), from, to, length, datatype) }
}

unsafe extern "C" fn reduce_large<const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut i64,
    datatype: *mut handles::Datatype,
) {
    // SAFETY: the library's promises about the arguments are passed on.
    unsafe { call_user(LARGE_USER.get(N), from, to, length, datatype) }
}

#[inline(never)]
unsafe fn call_user<N>(
    function: *mut c_void,
    from: *mut c_void,
    to: *mut c_void,
    length: *mut N,
    datatype: *mut handles::Datatype,
) {
    // SAFETY: the pool has the address of a function of this type; the pointers are the library's.
    unsafe {
        let users = transmute::<*mut c_void, User<N>>(function);
        users(from, to, length, &mut to_integer::<Datatype>(*datatype));
    }
}

macro_rules! errhandlers {
    ($($name:ident $call:ident $pool:ident $class:ty;)*) => {$(
        static $pool: Pool = Pool::new(LIBRARY);

        /// Stands for an error handler.
        pub(crate) fn $name(function: *mut c_void) -> Function {
            static ALL: [unsafe extern "C" fn(*mut <$class as Integers>::Handle, *mut c_int); MOST] = instances!($call);
            $pool.stand_in(function, &ALL)
        }

        unsafe extern "C" fn $call<const N: usize>(object: *mut <$class as Integers>::Handle, code: *mut c_int) {
            // SAFETY: the library's promises about the arguments are passed on.
            unsafe { handle_error::<$class>($pool.get(N), object, code) }
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
unsafe fn handle_error<C: Class>(function: *mut c_void, object: *mut C::Handle, code: *mut c_int) {
    type Users = unsafe extern "C" fn(*mut c_int, *mut c_int);
    // SAFETY: the pool has the address of a function of this type; the pointers are the library's.
    unsafe {
        let users = transmute::<*mut c_void, Users>(function);
        let old = to_integer::<C>(*object);
        let mut integer = old;
        users(&mut integer, code);
        if integer != old {
            *object = from_integer::<C>(integer);
        }
    }
}
