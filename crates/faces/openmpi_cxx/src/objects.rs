//! The objects that the bindings define, such as `MPI::COMM_WORLD`. The library sets them when it
//! is loaded, because a program at fixed addresses has copies of them, and because the virtual
//! function tables are the program's.
#![allow(non_upper_case_globals)]

use crate::Object;
use core::ffi::{CStr, c_char, c_int, c_void};

macro_rules! objects {
    ($($name:ident $exported:literal $functions:literal $handle:ident;)*) => {
        $(
            /// An object that the C++ bindings define, such as `MPI::COMM_WORLD`.
            #[unsafe(export_name = $exported)]
            pub(crate) static mut $name: Object = Object { functions: core::ptr::null(), handle: 0 };
        )*

        /// Sets the virtual function table and the handle of every object that the bindings define.
        extern "C" fn set() {
            // SAFETY: this runs before any code of the program; only the addresses of the handles'
            // objects are used, and the names are C strings.
            unsafe {
                $(
                    (&raw mut $name).write(Object {
                        functions: functions($functions),
                        handle: (&raw const $handle) as usize,
                    });
                )*
            }
        }
    };
}

unsafe extern "C" {
    static ompi_mpi_byte: c_char;
    static ompi_mpi_packed: c_char;
    static ompi_mpi_char: c_char;
    static ompi_mpi_short: c_char;
    static ompi_mpi_int: c_char;
    static ompi_mpi_long: c_char;
    static ompi_mpi_signed_char: c_char;
    static ompi_mpi_unsigned_char: c_char;
    static ompi_mpi_unsigned_short: c_char;
    static ompi_mpi_unsigned: c_char;
    static ompi_mpi_unsigned_long: c_char;
    static ompi_mpi_float: c_char;
    static ompi_mpi_double: c_char;
    static ompi_mpi_long_double: c_char;
    static ompi_mpi_wchar: c_char;
    static ompi_mpi_long_long_int: c_char;
    static ompi_mpi_unsigned_long_long: c_char;
    static ompi_mpi_cxx_bool: c_char;
    static ompi_mpi_cxx_cplex: c_char;
    static ompi_mpi_cxx_dblcplex: c_char;
    static ompi_mpi_cxx_ldblcplex: c_char;
    static ompi_mpi_cplex: c_char;
    static ompi_mpi_dblcplex: c_char;
    static ompi_mpi_integer: c_char;
    static ompi_mpi_real: c_char;
    static ompi_mpi_dblprec: c_char;
    static ompi_mpi_logical: c_char;
    static ompi_mpi_character: c_char;
    static ompi_mpi_integer1: c_char;
    static ompi_mpi_integer2: c_char;
    static ompi_mpi_integer4: c_char;
    static ompi_mpi_real2: c_char;
    static ompi_mpi_real4: c_char;
    static ompi_mpi_real8: c_char;
    static ompi_mpi_2real: c_char;
    static ompi_mpi_2dblprec: c_char;
    static ompi_mpi_2integer: c_char;
    static ompi_mpi_float_int: c_char;
    static ompi_mpi_double_int: c_char;
    static ompi_mpi_long_int: c_char;
    static ompi_mpi_2int: c_char;
    static ompi_mpi_short_int: c_char;
    static ompi_mpi_longdbl_int: c_char;
    static ompi_mpi_datatype_null: c_char;
    static ompi_mpi_op_max: c_char;
    static ompi_mpi_op_min: c_char;
    static ompi_mpi_op_sum: c_char;
    static ompi_mpi_op_prod: c_char;
    static ompi_mpi_op_land: c_char;
    static ompi_mpi_op_band: c_char;
    static ompi_mpi_op_lor: c_char;
    static ompi_mpi_op_bor: c_char;
    static ompi_mpi_op_lxor: c_char;
    static ompi_mpi_op_bxor: c_char;
    static ompi_mpi_op_maxloc: c_char;
    static ompi_mpi_op_minloc: c_char;
    static ompi_mpi_op_replace: c_char;
    static ompi_mpi_op_null: c_char;
    static ompi_mpi_comm_world: c_char;
    static ompi_mpi_comm_self: c_char;
    pub(crate) static ompi_mpi_comm_null: c_char;
    static ompi_mpi_group_null: c_char;
    static ompi_mpi_group_empty: c_char;
    static ompi_request_null: c_char;
    static ompi_mpi_info_null: c_char;
    static ompi_mpi_win_null: c_char;
    static ompi_mpi_file_null: c_char;
    static ompi_mpi_errhandler_null: c_char;
    static ompi_mpi_errors_are_fatal: c_char;
    static ompi_mpi_errors_return: c_char;
    static ompi_mpi_errors_throw_exceptions: c_char;
}

objects! {
    BYTE "_ZN3MPI4BYTEE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_byte;
    PACKED "_ZN3MPI6PACKEDE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_packed;
    CHAR "_ZN3MPI4CHARE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_char;
    SHORT "_ZN3MPI5SHORTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_short;
    INT "_ZN3MPI3INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_int;
    LONG "_ZN3MPI4LONGE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_long;
    SIGNED_CHAR "_ZN3MPI11SIGNED_CHARE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_signed_char;
    UNSIGNED_CHAR "_ZN3MPI13UNSIGNED_CHARE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_unsigned_char;
    UNSIGNED_SHORT "_ZN3MPI14UNSIGNED_SHORTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_unsigned_short;
    UNSIGNED "_ZN3MPI8UNSIGNEDE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_unsigned;
    UNSIGNED_LONG "_ZN3MPI13UNSIGNED_LONGE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_unsigned_long;
    FLOAT "_ZN3MPI5FLOATE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_float;
    DOUBLE "_ZN3MPI6DOUBLEE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_double;
    LONG_DOUBLE "_ZN3MPI11LONG_DOUBLEE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_long_double;
    WCHAR "_ZN3MPI5WCHARE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_wchar;
    LONG_LONG "_ZN3MPI9LONG_LONGE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_long_long_int;
    LONG_LONG_INT "_ZN3MPI13LONG_LONG_INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_long_long_int;
    UNSIGNED_LONG_LONG "_ZN3MPI18UNSIGNED_LONG_LONGE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_unsigned_long_long;
    BOOL "_ZN3MPI4BOOLE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_cxx_bool;
    COMPLEX "_ZN3MPI7COMPLEXE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_cxx_cplex;
    DOUBLE_COMPLEX "_ZN3MPI14DOUBLE_COMPLEXE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_cxx_dblcplex;
    LONG_DOUBLE_COMPLEX "_ZN3MPI19LONG_DOUBLE_COMPLEXE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_cxx_ldblcplex;
    F_COMPLEX "_ZN3MPI9F_COMPLEXE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_cplex;
    F_DOUBLE_COMPLEX "_ZN3MPI16F_DOUBLE_COMPLEXE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_dblcplex;
    INTEGER "_ZN3MPI7INTEGERE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_integer;
    REAL "_ZN3MPI4REALE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_real;
    DOUBLE_PRECISION "_ZN3MPI16DOUBLE_PRECISIONE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_dblprec;
    LOGICAL "_ZN3MPI7LOGICALE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_logical;
    CHARACTER "_ZN3MPI9CHARACTERE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_character;
    INTEGER1 "_ZN3MPI8INTEGER1E" c"_ZTVN3MPI8DatatypeE" ompi_mpi_integer1;
    INTEGER2 "_ZN3MPI8INTEGER2E" c"_ZTVN3MPI8DatatypeE" ompi_mpi_integer2;
    INTEGER4 "_ZN3MPI8INTEGER4E" c"_ZTVN3MPI8DatatypeE" ompi_mpi_integer4;
    REAL2 "_ZN3MPI5REAL2E" c"_ZTVN3MPI8DatatypeE" ompi_mpi_real2;
    REAL4 "_ZN3MPI5REAL4E" c"_ZTVN3MPI8DatatypeE" ompi_mpi_real4;
    REAL8 "_ZN3MPI5REAL8E" c"_ZTVN3MPI8DatatypeE" ompi_mpi_real8;
    TWOREAL "_ZN3MPI7TWOREALE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_2real;
    TWODOUBLE_PRECISION "_ZN3MPI19TWODOUBLE_PRECISIONE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_2dblprec;
    TWOINTEGER "_ZN3MPI10TWOINTEGERE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_2integer;
    FLOAT_INT "_ZN3MPI9FLOAT_INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_float_int;
    DOUBLE_INT "_ZN3MPI10DOUBLE_INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_double_int;
    LONG_INT "_ZN3MPI8LONG_INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_long_int;
    TWOINT "_ZN3MPI6TWOINTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_2int;
    SHORT_INT "_ZN3MPI9SHORT_INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_short_int;
    LONG_DOUBLE_INT "_ZN3MPI15LONG_DOUBLE_INTE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_longdbl_int;
    DATATYPE_NULL "_ZN3MPI13DATATYPE_NULLE" c"_ZTVN3MPI8DatatypeE" ompi_mpi_datatype_null;
    MAX "_ZN3MPI3MAXE" c"_ZTVN3MPI2OpE" ompi_mpi_op_max;
    MIN "_ZN3MPI3MINE" c"_ZTVN3MPI2OpE" ompi_mpi_op_min;
    SUM "_ZN3MPI3SUME" c"_ZTVN3MPI2OpE" ompi_mpi_op_sum;
    PROD "_ZN3MPI4PRODE" c"_ZTVN3MPI2OpE" ompi_mpi_op_prod;
    LAND "_ZN3MPI4LANDE" c"_ZTVN3MPI2OpE" ompi_mpi_op_land;
    BAND "_ZN3MPI4BANDE" c"_ZTVN3MPI2OpE" ompi_mpi_op_band;
    LOR "_ZN3MPI3LORE" c"_ZTVN3MPI2OpE" ompi_mpi_op_lor;
    BOR "_ZN3MPI3BORE" c"_ZTVN3MPI2OpE" ompi_mpi_op_bor;
    LXOR "_ZN3MPI4LXORE" c"_ZTVN3MPI2OpE" ompi_mpi_op_lxor;
    BXOR "_ZN3MPI4BXORE" c"_ZTVN3MPI2OpE" ompi_mpi_op_bxor;
    MAXLOC "_ZN3MPI6MAXLOCE" c"_ZTVN3MPI2OpE" ompi_mpi_op_maxloc;
    MINLOC "_ZN3MPI6MINLOCE" c"_ZTVN3MPI2OpE" ompi_mpi_op_minloc;
    REPLACE "_ZN3MPI7REPLACEE" c"_ZTVN3MPI2OpE" ompi_mpi_op_replace;
    OP_NULL "_ZN3MPI7OP_NULLE" c"_ZTVN3MPI2OpE" ompi_mpi_op_null;
    COMM_WORLD "_ZN3MPI10COMM_WORLDE" c"_ZTVN3MPI9IntracommE" ompi_mpi_comm_world;
    COMM_SELF "_ZN3MPI9COMM_SELFE" c"_ZTVN3MPI9IntracommE" ompi_mpi_comm_self;
    COMM_NULL "_ZN3MPI9COMM_NULLE" c"_ZTVN3MPI9Comm_NullE" ompi_mpi_comm_null;
    GROUP_NULL "_ZN3MPI10GROUP_NULLE" c"_ZTVN3MPI5GroupE" ompi_mpi_group_null;
    GROUP_EMPTY "_ZN3MPI11GROUP_EMPTYE" c"_ZTVN3MPI5GroupE" ompi_mpi_group_empty;
    REQUEST_NULL "_ZN3MPI12REQUEST_NULLE" c"_ZTVN3MPI7RequestE" ompi_request_null;
    INFO_NULL "_ZN3MPI9INFO_NULLE" c"_ZTVN3MPI4InfoE" ompi_mpi_info_null;
    WIN_NULL "_ZN3MPI8WIN_NULLE" c"_ZTVN3MPI3WinE" ompi_mpi_win_null;
    FILE_NULL "_ZN3MPI9FILE_NULLE" c"_ZTVN3MPI4FileE" ompi_mpi_file_null;
    ERRHANDLER_NULL "_ZN3MPI15ERRHANDLER_NULLE" c"_ZTVN3MPI10ErrhandlerE" ompi_mpi_errhandler_null;
    ERRORS_ARE_FATAL "_ZN3MPI16ERRORS_ARE_FATALE" c"_ZTVN3MPI10ErrhandlerE" ompi_mpi_errors_are_fatal;
    ERRORS_RETURN "_ZN3MPI13ERRORS_RETURNE" c"_ZTVN3MPI10ErrhandlerE" ompi_mpi_errors_return;
    ERRORS_THROW_EXCEPTIONS "_ZN3MPI23ERRORS_THROW_EXCEPTIONSE" c"_ZTVN3MPI10ErrhandlerE" ompi_mpi_errors_throw_exceptions;
}

#[used]
#[unsafe(link_section = ".init_array")]
static SET: extern "C" fn() = set;

/// The virtual functions of a class, which lie after two words of the program's table. NULL if the
/// program has no table of the class, and so calls none of its functions.
unsafe fn functions(table: &CStr) -> *const c_void {
    // SAFETY: the name is a C string, and a table has two words before the functions.
    unsafe {
        let table = crate::dlsym(core::ptr::null_mut(), table.as_ptr()).cast::<usize>();
        if table.is_null() {
            core::ptr::null()
        } else {
            table.add(2).cast()
        }
    }
}

/// An address that programs read from a variable.
#[repr(transparent)]
pub(crate) struct Pointer(*const c_void);

// SAFETY: nothing is read or written through the address.
unsafe impl Sync for Pointer {}

macro_rules! pointers {
    ($($name:ident $exported:literal $address:literal;)*) => {$(
        /// An address that is a constant.
        #[unsafe(export_name = $exported)]
        pub(crate) static $name: Pointer = Pointer(core::ptr::without_provenance($address));
    )*};
}

pointers! {
    BOTTOM "_ZN3MPI6BOTTOME" 0;
    IN_PLACE "_ZN3MPI8IN_PLACEE" 1;
    ARGV_NULL "_ZN3MPI9ARGV_NULLE" 0;
    ARGVS_NULL "_ZN3MPI10ARGVS_NULLE" 0;
}

/// The last error, which no function of the bindings sets.
#[unsafe(export_name = "_ZN3MPI9mpi_errnoE")]
pub(crate) static mut MPI_ERRNO: c_int = 0;
