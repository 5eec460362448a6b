//! The C face of the library: the standard MPI ABI.
//!
//! Three tables define it. `procedures.txt` lists every procedure with its parameters and its
//! state; `removed.txt` lists procedures of other libraries that the ABI does not have;
//! `constants.txt` lists every constant. The build script generates the entry points (`entry`) and
//! the constants from them. Tests compare `include/mpi.h` and `docs/figures/coverage.md` with the
//! tables.
//!
//! The path of a call: entry point (generated; checks each argument by its kind and converts both
//! integer widths to one) → `call_guard` (finds the rank, handles errors) → `procedures`
//! (hand-written, one function per procedure; looks up handles and calls `mpi`).
//!
//! **To implement a procedure**: write `pub fn name_without_mpi(call: &Running, …)` in the module
//! of `procedures` for its subject, with the parameters that the compiler reports as missing, and
//! change the procedure's state in `procedures.txt` to `works`. This implements its `_c` form too.
//! Then run `REGENERATE=1 cargo test -p abi generated`, which rewrites the coverage page.
//!
//! Invariant: the library exports the names of both tables of procedures and no others, and no
//! panic leaves a call.
//!
//! Never here: semantics.

#![allow(
    clippy::too_many_arguments,
    reason = "the standard's procedures have as many"
)]

mod allocator;
pub mod args;
mod arrays;
mod bootstrap;
pub mod buffer;
pub mod call_guard;
pub mod call_profile;
mod call_trace;
pub mod callback;
mod compute_clock;
pub mod constants;
mod counts;
pub mod entry;
pub mod error;
mod fortran;
pub mod handle;
pub mod hosted;
mod info;
mod interfaces;
mod kept_costs;
mod making;
mod message_notes;
pub mod object;
pub mod procedures;
mod process_environment;
mod raise;
mod real_clock;
mod recording;
pub mod refused;
mod remote;
pub mod state;
pub mod status;
pub mod still_clock;
mod system_clocks;
