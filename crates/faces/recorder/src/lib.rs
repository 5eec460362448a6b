//! `libfishplate_record.so`: it is preloaded into programs of any MPI library and records their
//! calls as parts of a trace. It needs no other part of this project.
//!
//! The families of libraries differ in the values of constants, the width of handles and the form
//! of statuses, not in the names of procedures. So there is one library, and one table a family.
//!
//! - [`entry`]: the procedures that are recorded, with their profiled names, because Fortran
//!   libraries call those; those with large counts are in a library of their own
//!   (`recorder_large`), because not every MPI library has them;
//! - [`names`]: their names;
//! - [`original`]: the functions that these stand in front of;
//! - [`family`]: the family of the library, with its constants;
//! - [`words`]: arguments as the standard ABI has them;
//! - [`foreign`]: questions to the library about its objects;
//! - [`process`]: the recording of this process;
//! - [`clock`]: the time of calls and of computing, in [`ticks`];
//! - [`pcontrol`]: the phases that the program marks;
//! - [`limit`]: the limits of a recording, by time and by size;
//! - [`part_file`]: the file to which the processes of a host append.
//!
//! Invariants:
//! - each call of the program is recorded once, at its outermost entry; calls that the library
//!   makes itself pass;
//! - no call is replaced by another, and no message of MPI is added;
//! - the program goes on whatever happens to the recording;
//! - in a process without MPI nothing happens.
//!
//! Never here: replays, files of traces.

mod clock;
mod entry;
mod family;
mod foreign;
mod limit;
mod mark;
mod names;
mod original;
mod part_file;
mod pcontrol;
mod process;
mod start;
mod ticks;
mod words;
