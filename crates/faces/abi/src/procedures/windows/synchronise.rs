//! Section 12.5: synchronization of windows.

use crate::args::{Flag, Out};
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::{Group, Win};
use std::ffi::c_int;

/// `MPI_Win_fence` (MPI 5.0, chapter 12).
pub fn win_fence(call: &Running, assert: c_int, win: Win) -> Done {
    call.rank.window_fence(call.procedure, win.id(), assert)
}

/// `MPI_Win_start` (MPI 5.0, chapter 12).
pub fn win_start(call: &Running, group: Group, assert: c_int, win: Win) -> Done {
    call.rank
        .window_start(call.procedure, win.id(), group.id(), assert)
}

/// `MPI_Win_complete` (MPI 5.0, chapter 12).
pub fn win_complete(call: &Running, win: Win) -> Done {
    call.rank.window_complete(call.procedure, win.id())
}

/// `MPI_Win_post` (MPI 5.0, chapter 12).
pub fn win_post(call: &Running, group: Group, assert: c_int, win: Win) -> Done {
    call.rank.window_post(win.id(), group.id(), assert)
}

/// `MPI_Win_wait` (MPI 5.0, chapter 12).
pub fn win_wait(call: &Running, win: Win) -> Done {
    call.rank.window_wait(call.procedure, win.id())
}

/// `MPI_Win_test` (MPI 5.0, chapter 12).
pub fn win_test(call: &Running, win: Win, flag: Out<Flag>) -> Done {
    flag.set(call.rank.window_test(call.procedure, win.id())?);
    Ok(())
}

/// `MPI_Win_lock` (MPI 5.0, chapter 12).
pub fn win_lock(call: &Running, lock_type: c_int, rank: c_int, assert: c_int, win: Win) -> Done {
    call.rank
        .window_lock(call.procedure, win.id(), (lock_type, rank, assert))
}

/// `MPI_Win_lock_all` (MPI 5.0, chapter 12).
pub fn win_lock_all(call: &Running, assert: c_int, win: Win) -> Done {
    call.rank.window_lock_all(call.procedure, win.id(), assert)
}

/// `MPI_Win_unlock` (MPI 5.0, chapter 12).
pub fn win_unlock(call: &Running, rank: c_int, win: Win) -> Done {
    call.rank.window_unlock(call.procedure, win.id(), rank)
}

/// `MPI_Win_unlock_all` (MPI 5.0, chapter 12).
pub fn win_unlock_all(call: &Running, win: Win) -> Done {
    call.rank.window_unlock_all(call.procedure, win.id())
}

/// `MPI_Win_flush` (MPI 5.0, chapter 12).
pub fn win_flush(call: &Running, rank: c_int, win: Win) -> Done {
    call.rank.window_flush(call.procedure, win.id(), Some(rank))
}

/// `MPI_Win_flush_all` (MPI 5.0, chapter 12).
pub fn win_flush_all(call: &Running, win: Win) -> Done {
    call.rank.window_flush(call.procedure, win.id(), None)
}

/// `MPI_Win_flush_local` (MPI 5.0, chapter 12).
pub fn win_flush_local(call: &Running, rank: c_int, win: Win) -> Done {
    call.rank
        .window_flush_local(call.procedure, win.id(), Some(rank))
}

/// `MPI_Win_flush_local_all` (MPI 5.0, chapter 12).
pub fn win_flush_local_all(call: &Running, win: Win) -> Done {
    call.rank.window_flush_local(call.procedure, win.id(), None)
}

/// `MPI_Win_sync` (MPI 5.0, chapter 12).
pub fn win_sync(call: &Running, win: Win) -> Done {
    call.rank.window_sync(win.id())
}
