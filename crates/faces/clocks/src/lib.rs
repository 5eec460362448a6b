//! `libfishplate_clock.so`: the system's clocks in virtual time. The launcher preloads it into the
//! processes of a modelled job, so that `clock_gettime`, `gettimeofday` and `time` show the time of
//! the modelled machine, and sleeps and deadlines use that time too.
//!
//! The MPI library registers a hook when MPI starts ([`process_time::fishplate_clock_register`]).
//! Without it, as in programs that do not use MPI, the clocks begin at a fixed time.
//!
//! - [`scale`]: the clocks of the system, and their values at the start of virtual time;
//! - [`process_time`]: the time of this process, which all clocks show;
//! - [`readings`], [`sleeps`], [`deadlines`]: the functions that are replaced;
//! - [`counter`]: the processor's time-stamp counter, with the program's handler of its signal
//!   ([`program_handler`]) and the functions that start other programs ([`starts`]);
//! - [`real`]: the system's own clocks and functions.
//!
//! Invariant: nothing here allocates or locks, so that signal handlers may read clocks.
//!
//! Never here: MPI, allocation, locks.

mod counter;
pub mod deadlines;
pub mod process_time;
pub mod program_handler;
pub mod readings;
mod real;
mod scale;
pub mod sleeps;
pub mod starts;
