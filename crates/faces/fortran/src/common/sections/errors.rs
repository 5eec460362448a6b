//! Buffers that cannot be used: errors, which go to the handler of the object of the call.

use crate::common::constants::*;
use crate::common::handle::{Comm, File, Session, Win, from_integer};
use crate::common::standard;
use crate::program;
use std::ffi::{CStr, c_int};
use std::sync::Mutex;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The buffer ends before its last element.
    TooShort,
    /// A part of an element lies before the buffer.
    Before,
    /// The memory must have no gaps.
    Gaps,
    /// The library's own code, of which a handler knows already.
    OfLibrary(c_int),
    /// The library packs the datatype in another form than its bytes.
    Opaque,
}

/// The object whose error handler is called: the address of Fortran's handle.
#[derive(Clone, Copy)]
pub(crate) enum Object {
    Comm(*const c_int),
    Win(*const c_int),
    File(*const c_int),
    Session(*const c_int),
    /// The call has none, so that of MPI_COMM_SELF is (MPI 5.0 §9.3).
    None,
}

impl Object {
    /// Whether data are converted on their way: to a file with another representation.
    ///
    /// # Safety
    /// The address is that of a handle.
    pub(crate) unsafe fn converts(self) -> bool {
        let Object::File(file) = self else {
            return false;
        };
        let (mut displacement, mut etype, mut filetype) = (0, 0, 0);
        let mut representation = [0; MPI_MAX_DATAREP_STRING as usize + 1];
        // SAFETY: promised; the addresses are those of variables, and the string has the room that
        // the standard demands.
        unsafe {
            let code = standard::file_get_view::<true>(
                from_integer::<File>(*file),
                &mut displacement,
                &mut etype,
                &mut filetype,
                representation.as_mut_ptr(),
            );
            if code != 0 {
                return false;
            }
            for mut datatype in [etype, filetype] {
                if !program::is_predefined(datatype) {
                    standard::type_free::<true>(&mut datatype);
                }
            }
            CStr::from_ptr(representation.as_ptr()) != c"native"
        }
    }
}

/// The codes of problems, made when they are needed.
static CODES: Mutex<[c_int; 4]> = Mutex::new([0; 4]);

impl Problem {
    /// Class, text, and the place of the code.
    fn description(self) -> Option<(c_int, &'static CStr, usize)> {
        Some(match self {
            Problem::TooShort => (
                MPI_ERR_COUNT,
                c"the section that is passed as a buffer has fewer bytes than count and datatype need",
                0,
            ),
            Problem::Before => (
                MPI_ERR_TYPE,
                c"the datatype or a displacement begins before the section that is passed as a buffer",
                1,
            ),
            Problem::Gaps => (
                MPI_ERR_BUFFER,
                c"the section that is passed as a buffer has gaps, and this procedure needs memory without gaps",
                2,
            ),
            Problem::Opaque => (
                MPI_ERR_TYPE,
                c"the datatype cannot be applied to a section with gaps: pass memory without gaps",
                3,
            ),
            Problem::OfLibrary(_) => return None,
        })
    }

    fn code(self) -> c_int {
        let Some((class, text, place)) = self.description() else {
            return match self {
                Problem::OfLibrary(code) => code,
                _ => MPI_ERR_INTERN,
            };
        };
        let mut codes = CODES
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if codes[place] == 0 {
            codes[place] = class;
            let mut made = 0;
            // SAFETY: the addresses are those of an integer and of a C string. A library that adds
            // no code to a class of the standard leaves the class, which is a code, too.
            unsafe {
                if standard::add_error_code::<true>(class, &mut made) == 0
                    && standard::add_error_string::<true>(made, text.as_ptr()) == 0
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
    pub(crate) unsafe fn raise(self, object: Object) -> c_int {
        let code = self.code();
        if let Problem::OfLibrary(code) = self {
            return code;
        }
        // SAFETY: promised.
        unsafe {
            match object {
                Object::Comm(comm) => {
                    standard::comm_call_errhandler::<true>(from_integer::<Comm>(*comm), code)
                }
                Object::Win(win) => {
                    standard::win_call_errhandler::<true>(from_integer::<Win>(*win), code)
                }
                Object::File(file) => {
                    standard::file_call_errhandler::<true>(from_integer::<File>(*file), code)
                }
                Object::Session(session) => standard::session_call_errhandler::<true>(
                    from_integer::<Session>(*session),
                    code,
                ),
                Object::None => standard::comm_call_errhandler::<true>(
                    from_integer::<Comm>(MPI_COMM_SELF),
                    code,
                ),
            };
        }
        code
    }
}
