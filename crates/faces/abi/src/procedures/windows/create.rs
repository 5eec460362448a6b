//! Section 12.2: creation of windows, their memory and their hints.

use super::super::comms::pairs;
use super::super::info::info_of;
use super::super::memory::{alignment, allocate, release};
use crate::args::Out;
use crate::call_guard::Running;
use crate::constants::{MPI_ERR_ARG, MPI_WIN_NULL};
use crate::counts::OutCount;
use crate::error::{Done, Error};
use crate::handle::{Comm, Group, Info, Win};
use crate::making::arguments;
use datatype::Buffer;
use mpi::WindowSpec;
use mpi::window::Flavor;
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// The size of a page in bytes. Mapped memory is aligned to it.
const PAGE: usize = 4096;

/// `MPI_Win_create` (MPI 5.0, chapter 12).
///
/// # Safety
/// `base` is the start of `size` bytes that stay valid until the window is freed; accesses to them
/// keep the rules of MPI 5.0 §12.7.
pub unsafe fn win_create(
    call: &Running,
    base: *mut c_void,
    size: usize,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    win: Out<Win>,
) -> Done {
    // SAFETY: the caller promises this memory as long as the window exists.
    let memory = unsafe { Buffer::dense(base.cast(), size) };
    let made = make(call, Flavor::Create, memory, disp_unit, (info, comm));
    set_new(win, made)
}

/// `MPI_Win_allocate` (MPI 5.0, chapter 12).
pub fn win_allocate(
    call: &Running,
    size: usize,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    base: Out<*mut c_void>,
    win: Out<Win>,
) -> Done {
    let alignment = arguments(call.procedure, comm, alignment(info))?;
    let info = arguments(call.procedure, comm, pairs(info))?;
    let spec = WindowSpec {
        memory: Buffer::empty(),
        disp_unit,
        info: &info,
    };
    let mut start = null_mut();
    let private = || {
        start = allocate(size, alignment).ok()?;
        // SAFETY: the memory is new, and `win_free` releases it once the window is gone.
        Some(unsafe { Buffer::dense(start.cast(), size) })
    };
    // Memory mapped by the ranks begins on a page, which limits its alignment.
    let sizes = (size, alignment <= PAGE);
    let made = call
        .rank
        .window_allocate(call.procedure, comm.id(), sizes, spec, private);
    match &made {
        Ok(handle) => base.set(start_of(call, *handle)?),
        // SAFETY: no window uses the memory. It is NULL if there is none.
        Err(_) => unsafe { release(start) },
    }
    set_new(win, made)
}

/// The address of the first byte of this rank's part of a window.
fn start_of(call: &Running, handle: u32) -> Result<*mut c_void, Error> {
    let address = call.rank.objects().windows().get(handle)?.facts.base;
    Ok(with_exposed_provenance_mut(address))
}

/// `MPI_Win_allocate_shared` (MPI 5.0, chapter 12).
pub fn win_allocate_shared(
    call: &Running,
    size: usize,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    base: Out<*mut c_void>,
    win: Out<Win>,
) -> Done {
    let info = arguments(call.procedure, comm, pairs(info))?;
    let spec = WindowSpec {
        memory: Buffer::empty(),
        disp_unit,
        info: &info,
    };
    let made = call
        .rank
        .window_create_shared(call.procedure, comm.id(), size, spec);
    if let Ok(handle) = made {
        base.set(start_of(call, handle)?);
    }
    set_new(win, made)
}

/// `MPI_Win_create_dynamic` (MPI 5.0, chapter 12).
pub fn win_create_dynamic(call: &Running, info: Info, comm: Comm, win: Out<Win>) -> Done {
    let made = make(call, Flavor::Dynamic, Buffer::empty(), 1, (info, comm));
    set_new(win, made)
}

/// `MPI_Win_attach` (MPI 5.0, chapter 12).
///
/// # Safety
/// `base` is the start of `size` bytes that stay valid until they are detached or the window is
/// freed; accesses to them keep the rules of MPI 5.0 §12.7.
pub unsafe fn win_attach(call: &Running, win: Win, base: *mut c_void, size: usize) -> Done {
    if base.is_null() && size > 0 {
        return Err(Error::new(MPI_ERR_ARG, "base is NULL, and size is not 0"));
    }
    // SAFETY: the caller promises this memory as long as it is attached.
    let region = unsafe { Buffer::dense(base.cast(), size) };
    call.rank.window_attach(win.id(), region)
}

/// `MPI_Win_detach` (MPI 5.0, chapter 12).
pub fn win_detach(call: &Running, win: Win, base: *const c_void) -> Done {
    call.rank.objects().window_detach(win.id(), base.addr())
}

/// `MPI_Win_free` (MPI 5.0, chapter 12).
pub fn win_free(call: &Running, win: &mut Win) -> Done {
    let (facts, is_mapped) = {
        let state = call.rank.lock();
        let window = state.objects().windows().get(win.id())?;
        (window.facts.clone(), window.is_mapped())
    };
    call.rank.window_free(call.procedure, win.id())?;
    if facts.flavor == Flavor::Allocate as i32 && !is_mapped {
        // SAFETY: `win_allocate` allocated the memory for this window, which has been freed.
        unsafe { release(with_exposed_provenance_mut(facts.base)) };
    }
    *win = MPI_WIN_NULL;
    Ok(())
}

/// `MPI_Win_get_group` (MPI 5.0, chapter 12).
pub fn win_get_group(call: &Running, win: Win, group: Out<Group>) -> Done {
    group.set(call.rank.objects().window_group(win.id())?);
    Ok(())
}

/// `MPI_Win_shared_query` (MPI 5.0, chapter 12).
pub fn win_shared_query(
    call: &Running,
    win: Win,
    rank: c_int,
    size: Out<isize>,
    disp_unit: OutCount,
    base: Out<*mut c_void>,
) -> Done {
    let (address, bytes, unit) = call.rank.objects().window_shared_query(win.id(), rank)?;
    size.set(bytes as isize);
    disp_unit.set(unit);
    base.set(with_exposed_provenance_mut::<c_void>(address));
    Ok(())
}

/// `MPI_Win_set_info` (MPI 5.0, chapter 12).
pub fn win_set_info(call: &Running, win: Win, info: Info) -> Done {
    let info = pairs(info)?;
    let mut state = call.rank.lock();
    state
        .objects_mut()
        .windows_mut()
        .get_mut(win.id())?
        .hints
        .update(&info)
}

/// `MPI_Win_get_info` (MPI 5.0, chapter 12).
pub fn win_get_info(call: &Running, win: Win, info: Out<Info>) -> Done {
    let pairs = call.rank.objects().windows().info(win.id())?;
    info.set(info_of(pairs)?);
    Ok(())
}

fn make(
    call: &Running,
    flavor: Flavor,
    memory: Buffer,
    disp_unit: i64,
    (info, comm): (Info, Comm),
) -> Result<u32, Error> {
    let info = arguments(call.procedure, comm, pairs(info))?;
    let spec = WindowSpec {
        memory,
        disp_unit,
        info: &info,
    };
    call.rank
        .window_create(call.procedure, comm.id(), flavor, spec)
}

/// Writes the handle of a new window. A failed call writes the null handle, so that the program
/// uses no stale one.
fn set_new(win: Out<Win>, made: Result<u32, Error>) -> Done {
    win.set(*made.as_ref().unwrap_or(&mpi::window::NULL));
    made.map(drop)
}
