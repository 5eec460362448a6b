//! The object of a call: the communicator, window, file or session whose error handler gets the
//! errors of the call.

use crate::handle::{Comm, Errhandler, File, Session, Win};

/// The object whose error handler gets the errors of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// The call has no such object: the handler of MPI_COMM_SELF gets its errors.
    None,
    /// A communicator.
    Comm(Comm),
    /// A window.
    Win(Win),
    /// A file.
    File(File),
    /// A session.
    Session(Session),
    /// An object that the call makes and that has this error handler.
    Made(Errhandler),
}

impl Object {
    /// The communicator of a call that gets the address of a handle. Later checks reject NULL.
    ///
    /// # Safety
    /// `place` is NULL or holds a handle.
    #[inline(always)]
    pub unsafe fn comm_at(place: *const Comm) -> Object {
        // SAFETY: the caller promises NULL or a handle.
        unsafe { place.as_ref() }.map_or(Object::None, |comm| Object::Comm(*comm))
    }

    /// The window of a call that gets the address of a handle. Later checks reject NULL.
    ///
    /// # Safety
    /// `place` is NULL or holds a handle.
    #[inline(always)]
    pub unsafe fn win_at(place: *const Win) -> Object {
        // SAFETY: the caller promises NULL or a handle.
        unsafe { place.as_ref() }.map_or(Object::None, |win| Object::Win(*win))
    }

    /// The file of a call that gets the address of a handle. Later checks reject NULL.
    ///
    /// # Safety
    /// `place` is NULL or holds a handle.
    #[inline(always)]
    pub unsafe fn file_at(place: *const File) -> Object {
        // SAFETY: the caller promises NULL or a handle.
        unsafe { place.as_ref() }.map_or(Object::None, |file| Object::File(*file))
    }

    /// The session of a call that gets the address of a handle. Later checks reject NULL.
    ///
    /// # Safety
    /// `place` is NULL or holds a handle.
    #[inline(always)]
    pub unsafe fn session_at(place: *const Session) -> Object {
        // SAFETY: the caller promises NULL or a handle.
        unsafe { place.as_ref() }.map_or(Object::None, |session| Object::Session(*session))
    }
}
