//! Sections 7.7, 7.8 and 9.3 for windows: attributes, names and error handlers.

use super::super::attributes::{create_keyval, free_keyval, get_attr};
use super::super::errhandlers::create_errhandler;
use crate::args::{Flag, Out, OutText};
use crate::call_guard::Running;
use crate::callback::{WinCopyAttr, WinDeleteAttr, WinErrhandler};
use crate::error::{Done, Error};
use crate::handle::{Errhandler, Win};
use crate::object::Object;
use crate::raise::raise_for_program;
use mpi::attributes::{Holder, predefined};
use mpi::handle::ObjectKind;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

/// `MPI_Win_create_keyval` (MPI 5.0, chapter 7).
pub fn win_create_keyval(
    call: &Running,
    copy: WinCopyAttr,
    delete: WinDeleteAttr,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Done {
    create_keyval(call, ObjectKind::Window, copy, delete, keyval, extra_state)
}

/// `MPI_Win_free_keyval` (MPI 5.0, chapter 7).
pub fn win_free_keyval(call: &Running, keyval: &mut c_int) -> Done {
    free_keyval(call, ObjectKind::Window, keyval)
}

/// `MPI_Win_set_attr` (MPI 5.0, chapter 7).
pub fn win_set_attr(call: &Running, win: Win, keyval: c_int, value: *mut c_void) -> Done {
    call.rank.set_attribute(
        Holder::Window(win.id()),
        keyval as u32,
        value.expose_provenance(),
    )
}

/// `MPI_Win_get_attr` (MPI 5.0, chapter 7). The value of a predefined attribute is an address
/// within the window object, valid until it is freed; that of `MPI_WIN_BASE` is the base itself.
pub fn win_get_attr(
    call: &Running,
    win: Win,
    keyval: c_int,
    value: Out<*mut c_void>,
    flag: Out<Flag>,
) -> Done {
    let facts = call.rank.objects().windows().get(win.id())?.facts.clone();
    let place: *const c_void = match keyval as u32 {
        predefined::WIN_BASE => with_exposed_provenance_mut::<c_void>(facts.base),
        predefined::WIN_SIZE => (&raw const facts.size).cast(),
        predefined::WIN_DISP_UNIT => (&raw const facts.disp_unit).cast(),
        predefined::WIN_CREATE_FLAVOR => (&raw const facts.flavor).cast(),
        predefined::WIN_MODEL => (&raw const facts.model).cast(),
        _ => return get_attr(call, Holder::Window(win.id()), keyval, value, flag),
    };
    value.set(place.cast_mut());
    flag.set(true);
    Ok(())
}

/// `MPI_Win_delete_attr` (MPI 5.0, chapter 7).
pub fn win_delete_attr(call: &Running, win: Win, keyval: c_int) -> Done {
    call.rank
        .delete_attribute(Holder::Window(win.id()), keyval as u32)
}

/// `MPI_Win_set_name` (MPI 5.0, chapter 7).
pub fn win_set_name(call: &Running, win: Win, name: &CStr) -> Done {
    let name = name.to_string_lossy();
    call.rank
        .objects()
        .windows_mut()
        .get_mut(win.id())?
        .set_name(&name);
    Ok(())
}

/// `MPI_Win_get_name` (MPI 5.0, chapter 7). The null handle has a name too, for programs that print
/// handles.
pub fn win_get_name(call: &Running, win: Win, name: OutText, length: Out<c_int>) -> Done {
    if win == crate::constants::MPI_WIN_NULL {
        length.set(name.set(b"MPI_WIN_NULL") as c_int);
        return Ok(());
    }
    let state = call.rank.lock();
    let text = &state.objects().windows().get(win.id())?.name;
    length.set(name.set(text.as_bytes()) as c_int);
    Ok(())
}

/// `MPI_Win_create_errhandler` (MPI 5.0, chapter 9).
pub fn win_create_errhandler(
    call: &Running,
    function: WinErrhandler,
    errhandler: Out<Errhandler>,
) -> Done {
    create_errhandler::<Win>(call, ObjectKind::Window, function, errhandler)
}

/// `MPI_Win_set_errhandler` (MPI 5.0, chapter 9).
pub fn win_set_errhandler(call: &Running, win: Win, errhandler: Errhandler) -> Done {
    let mut state = call.rank.lock();
    state
        .objects_mut()
        .set_window_errhandler(win.id(), errhandler.id())
}

/// `MPI_Win_get_errhandler` (MPI 5.0, chapter 9).
pub fn win_get_errhandler(call: &Running, win: Win, errhandler: Out<Errhandler>) -> Done {
    errhandler.set(call.rank.objects().window_errhandler(win.id())?);
    Ok(())
}

/// `MPI_Win_call_errhandler` (MPI 5.0, chapter 9). The call succeeds, whatever the handler returns.
pub fn win_call_errhandler(call: &Running, win: Win, code: c_int) -> Done {
    call.rank.objects().windows().get(win.id())?;
    let error = Error::new(code, "the program called the error handler");
    raise_for_program(call.rank, Object::Win(win), call.procedure, &error);
    Ok(())
}
