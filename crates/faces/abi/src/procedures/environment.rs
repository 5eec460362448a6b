//! Sections 9.1, 9.6 and 11.4: versions, names, time, the state of MPI; MPI_Pcontrol.

use crate::args::{Flag, Out, OutText};
use crate::call_guard::{Call, Running};
use crate::compute_clock::processor_time;
use crate::constants::{MPI_SUBVERSION, MPI_VERSION};
use crate::error::Done;
use crate::state::{LIBRARY, Rank, host_name};
use mpi::ProgramCall;
use pmi::Notice;
use std::ffi::c_int;

/// `MPI_Get_version` (MPI 5.0, chapter 9).
pub fn get_version(_: &Call, version: Out<c_int>, subversion: Out<c_int>) -> Done {
    version.set(MPI_VERSION);
    subversion.set(MPI_SUBVERSION);
    Ok(())
}

/// `MPI_Get_library_version` (MPI 5.0, chapter 9).
pub fn get_library_version(_: &Call, version: OutText, length: Out<c_int>) -> Done {
    let text = concat!(
        "Fishplate ",
        env!("CARGO_PKG_VERSION"),
        ", MPI 5.0, ABI 1.0"
    );
    length.set(version.set(text.as_bytes()) as c_int);
    Ok(())
}

/// `MPI_Get_processor_name` (MPI 5.0, chapter 9).
pub fn get_processor_name(_: &Running, name: OutText, length: Out<c_int>) -> Done {
    length.set(name.set(&host_name()) as c_int);
    Ok(())
}

/// `MPI_Initialized` (MPI 5.0, chapter 11).
pub fn initialized(_: &Call, flag: Out<Flag>) -> Done {
    flag.set(LIBRARY.initialised());
    Ok(())
}

/// `MPI_Finalized` (MPI 5.0, chapter 11).
pub fn finalized(_: &Call, flag: Out<Flag>) -> Done {
    flag.set(LIBRARY.finalised());
    Ok(())
}

/// `MPI_Wtime` (MPI 5.0, chapter 9): seconds since the machine started, by one clock for all its
/// ranks. On a modelled machine, the virtual time.
#[inline]
pub fn wtime() -> f64 {
    if let Some(seconds) = virtual_time() {
        return seconds;
    }
    seconds(|time| {
        // SAFETY: the structure is a local variable, and the clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time) }
    })
}

/// `MPI_Wtick` (MPI 5.0, chapter 9).
#[inline]
pub fn wtick() -> f64 {
    if virtual_rank().is_some() {
        return 1e-9;
    }
    seconds(|time| {
        // SAFETY: the structure is a local variable, and the clock exists on every Linux.
        unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, time) }
    })
}

#[inline]
fn virtual_rank() -> Option<&'static Rank> {
    LIBRARY.rank().filter(|rank| rank.in_virtual_time)
}

/// The virtual time in seconds, if the rank runs on a modelled machine.
#[inline]
fn virtual_time() -> Option<f64> {
    virtual_rank()?;
    Some(read_virtual_time("MPI_Wtime", 0, true)? as f64 * 1e-9)
}

/// Reads the virtual time of this rank, in nanoseconds, after `slept` nanoseconds of sleep. `None`:
/// a signal handler has interrupted the trace of calls, so the time cannot be read, and the caller
/// may not wait.
pub(crate) fn read_virtual_time(call: &'static str, slept: u64, may_wait: bool) -> Option<u64> {
    let rank = virtual_rank()?;
    // True inside a callback of the program, in a call of another thread, and without a trace.
    let is_announced = LIBRARY.rank_in_call().is_some();
    if slept > 0 && (!is_announced || rank.watch.is_none()) {
        // The sleep ends without a call: the program sleeps in a replay too, so a trace does not
        // count it.
        rank.enter(ProgramCall::after(slept, call));
        if let Some(watch) = &rank.watch {
            watch.slept(slept);
        }
    }
    let announced = match (is_announced, may_wait) {
        (true, _) => false,
        (false, true) => LIBRARY.enter(call, false),
        (false, false) => LIBRARY.try_enter(call)?,
    };
    let now = rank.now();
    if announced {
        LIBRARY.leave();
    }
    if let Some(clock) = &rank.still_clock
        && let Some(text) = clock.read(now, processor_time)
    {
        let topic = "still-clock";
        let warning = Notice::Warning { topic, text: &text };
        // If the launcher has gone, nobody reads the warning.
        let _ = rank.bootstrap().notify(warning);
    }
    Some(now)
}

#[inline]
fn seconds(ask: impl FnOnce(&mut libc::timespec) -> c_int) -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    ask(&mut time);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// `MPI_Pcontrol` (MPI 5.0, chapter 15): sets a mark in the trace of the program's calls, and has
/// no other effect. Tools define their own `MPI_Pcontrol`.
pub fn pcontrol(call: &Call, level: c_int) -> Done {
    let is_outside = LIBRARY.rank_in_call().is_none();
    if is_outside && LIBRARY.enter(call.procedure, false) {
        if let Some(watch) = LIBRARY.rank_in_call().and_then(|rank| rank.watch.as_ref()) {
            watch.level(level);
        }
        LIBRARY.leave();
    }
    Ok(())
}
