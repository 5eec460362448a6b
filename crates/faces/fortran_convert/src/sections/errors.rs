//! Buffers that cannot be used: their errors are raised on the object of the call.

use crate::abi::Abi;
use crate::handle::{Comm, File, Session, Win, from_integer};
use crate::standard;
use std::ffi::{CStr, c_int};
use std::sync::Mutex;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The actual argument ends before the last element that the call accesses.
    TooShort,
    /// A part of an element lies before the buffer.
    Before,
    /// The call needs memory without gaps.
    Gaps,
    /// An error code of the library, whose handler has been called already.
    OfLibrary(c_int),
    /// The library packs the datatype in a form other than its bytes.
    Opaque,
}

/// The object whose error handler is called, as the address of Fortran's handle.
#[derive(Clone, Copy)]
pub enum Object {
    /// A communicator.
    Comm(*const c_int),
    /// A window.
    Win(*const c_int),
    /// A file.
    File(*const c_int),
    /// A session.
    Session(*const c_int),
    /// No object: the handler of MPI_COMM_SELF is called (MPI 5.0 §9.3).
    None,
}

impl Object {
    /// True if data are converted between memory and the object: a file with another data
    /// representation.
    ///
    /// # Safety
    /// The address is that of a handle.
    pub unsafe fn converts<A: Abi>(self) -> bool {
        let Object::File(file) = self else {
            return false;
        };
        let mut displacement = 0;
        let [mut etype, mut filetype] = [A::Handle::default(); 2];
        let mut representation = vec![0; A::MPI_MAX_DATAREP_STRING as usize + 1];
        // SAFETY: promised; the addresses are those of variables, and the string has the room that
        // the standard demands.
        unsafe {
            let code = standard::file_get_view::<A, true>(
                from_integer::<A, File>(*file),
                &mut displacement,
                &mut etype,
                &mut filetype,
                representation.as_mut_ptr(),
            );
            if code != 0 {
                return false;
            }
            for mut datatype in [etype, filetype] {
                if !A::is_predefined(datatype) {
                    standard::type_free::<A, true>(&mut datatype);
                }
            }
            CStr::from_ptr(representation.as_ptr()) != c"native"
        }
    }
}

/// The error codes of problems, added when they are first needed.
static CODES: Mutex<[c_int; 4]> = Mutex::new([0; 4]);

impl Problem {
    /// The error class, the text, and the index in [`CODES`] of the problem's code.
    fn description<A: Abi>(self) -> Option<(c_int, &'static CStr, usize)> {
        Some(match self {
            Problem::TooShort => (
                A::MPI_ERR_COUNT,
                c"the section that is passed as a buffer has fewer bytes than count and datatype need",
                0,
            ),
            Problem::Before => (
                A::MPI_ERR_TYPE,
                c"the datatype or a displacement begins before the section that is passed as a buffer",
                1,
            ),
            Problem::Gaps => (
                A::MPI_ERR_BUFFER,
                c"the section that is passed as a buffer has gaps, and this procedure needs memory without gaps",
                2,
            ),
            Problem::Opaque => (
                A::MPI_ERR_TYPE,
                c"the datatype cannot be applied to a section with gaps: pass memory without gaps",
                3,
            ),
            Problem::OfLibrary(_) => return None,
        })
    }

    fn code<A: Abi>(self) -> c_int {
        let Some((class, text, place)) = self.description::<A>() else {
            return match self {
                Problem::OfLibrary(code) => code,
                _ => A::MPI_ERR_INTERN,
            };
        };
        let mut codes = CODES
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if codes[place] == 0 {
            codes[place] = class;
            let mut made = 0;
            // SAFETY: the addresses are those of an integer and of a C string. If a library cannot
            // add a code to a class of the standard, the class itself is used, which is a code too.
            unsafe {
                if standard::add_error_code::<A, true>(class, &mut made) == 0
                    && standard::add_error_string::<A, true>(made, text.as_ptr()) == 0
                {
                    codes[place] = made;
                }
            }
        }
        codes[place]
    }

    /// Calls the error handler and returns the error code.
    ///
    /// # Safety
    /// The address is that of a handle.
    pub unsafe fn raise<A: Abi>(self, object: Object) -> c_int {
        let code = self.code::<A>();
        if let Problem::OfLibrary(code) = self {
            return code;
        }
        // SAFETY: promised.
        unsafe {
            match object {
                Object::Comm(comm) => {
                    standard::comm_call_errhandler::<A, true>(from_integer::<A, Comm>(*comm), code)
                }
                Object::Win(win) => {
                    standard::win_call_errhandler::<A, true>(from_integer::<A, Win>(*win), code)
                }
                Object::File(file) => {
                    standard::file_call_errhandler::<A, true>(from_integer::<A, File>(*file), code)
                }
                Object::Session(session) => standard::session_call_errhandler::<A, true>(
                    from_integer::<A, Session>(*session),
                    code,
                ),
                Object::None => standard::comm_call_errhandler::<A, true>(
                    from_integer::<A, Comm>(A::MPI_COMM_SELF),
                    code,
                ),
            };
        }
        code
    }
}
