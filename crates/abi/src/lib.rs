//! The C face of the library: the standard MPI ABI.
//!
//! Two tables stand for it. `procedures.txt` lists every procedure with its parameters and whether it
//! works; `constants.txt` lists every constant. From them the build script makes the entry points
//! (`entry`) and the constants, and the tests make sure that `include/mpi.h` and `docs/coverage.md`
//! are what the tables say.
//!
//! A call goes: entry point (generated: checks what follows from the kinds of its parameters, turns
//! both integer widths into one) → `frame` (is MPI running, errors, panics) → `face` (hand-written,
//! one function per procedure: looks up handles and calls the library).
//!
//! **To make a procedure work**: write `pub fn name_without_mpi(call: &Running, …)` in the module of
//! `face` that its subject belongs to, with the parameters that the compiler asks for, and change the
//! procedure's state in `procedures.txt` to `works`. Its `_c` form comes with it. Then run
//! `REGENERATE=1 cargo test -p abi generated`, which rewrites the coverage page.
//!
//! What must hold: nothing but the ABI's names is exported, and no panic leaves a call.

#![allow(
    clippy::too_many_arguments,
    reason = "the standard's procedures have as many"
)]

pub mod args;
mod bootstrap;
pub mod buffer;
pub mod call_guard;
mod call_trace;
pub mod callback;
pub mod constants;
mod counts;
pub mod entry;
pub mod error;
pub mod handle;
mod info;
pub mod procedures;
mod raise;
mod remote;
pub mod state;
pub mod status;
