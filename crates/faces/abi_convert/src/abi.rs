//! The properties in which the older ABIs differ, as the trait [`Abi`].

use crate::classes::Classes;
use crate::constants::Constants;
use crate::handle::Class;
use crate::program_status::Status;
use std::ffi::c_int;
use std::fmt::{Debug, LowerHex};

/// An older ABI, called the program's. A file handle is a pointer in all of them.
pub trait Abi: Constants + Sized + 'static {
    /// A handle of any class except files.
    type Handle: Word;

    /// `MPI_Status`
    type Status: Status;

    /// The table of the predefined handles of a class, by the program's handles.
    type Predefined: Predefined<Self>;

    /// The first index of an object's handle. Predefined handles have lower ones.
    const FIRST: u32;

    /// The greatest error class that the ABI defines.
    const LAST_ERROR_CLASS: c_int;

    /// The classes of handles of the library of entry points.
    fn classes() -> &'static Classes<Self>;

    /// The predefined handle for a value in the table of constants.
    fn handle(constant: c_int) -> Self::Handle;

    /// The program's handle with the same value as the standard's handle; `None` if values of its
    /// kind are not shared. A predefined handle of the program may have this value too.
    fn shared(standard: usize) -> Option<Self::Handle>;

    /// The standard's handle with the value of the program's handle; `None` if values of its kind
    /// are not shared.
    fn shared_in(handle: Self::Handle) -> Option<usize>;

    /// The null handle of requests.
    fn request_null() -> Self::Handle;

    /// The null handle of files.
    fn file_null() -> usize;

    /// The handles MPI_LB and MPI_UB, which the standard ABI does not have.
    fn markers() -> [Self::Handle; 2];

    /// The addresses MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY of the ABI.
    fn weights() -> (*const c_int, *const c_int);

    /// The Fortran integer of a handle.
    fn toint(class: &Class<Self>, handle: Self::Handle) -> c_int;

    /// The handle of a Fortran integer.
    fn fromint(class: &Class<Self>, integer: c_int) -> Self::Handle;

    /// The standard's code of an error that the program's ABI does not define, and the other way
    /// round; `None` if there is no such code.
    fn free_error(code: c_int) -> Option<c_int>;
}

/// The predefined handles of a class, with the standard's handles for them.
pub trait Predefined<A: Abi>: 'static {
    /// The standard's handle for a predefined handle of the program; `None` for other handles.
    fn standard(&self, handle: A::Handle) -> Option<usize>;
}

/// An integer type that can hold a handle.
pub trait Word: Copy + Eq + Default + Debug + LowerHex + Send + 'static {
    /// The bits of the handle as a number, extended by zeros.
    fn bits(self) -> usize;

    /// The handle that has these bits.
    fn of_bits(bits: usize) -> Self;
}

impl Word for c_int {
    #[inline(always)]
    fn bits(self) -> usize {
        self as u32 as usize
    }

    #[inline(always)]
    fn of_bits(bits: usize) -> c_int {
        bits as c_int
    }
}

impl Word for usize {
    #[inline(always)]
    fn bits(self) -> usize {
        self
    }

    #[inline(always)]
    fn of_bits(bits: usize) -> usize {
        bits
    }
}
