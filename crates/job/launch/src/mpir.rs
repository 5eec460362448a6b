//! MPIR, the interface by which debuggers find the processes of a job ("The MPIR Process
//! Acquisition Interface", version 1, MPI Forum).
//!
//! A debugger that starts the launcher sets `MPIR_being_debugged` and a breakpoint in
//! `MPIR_Breakpoint`. Ranks then stop before their first instruction. Once all processes exist, the
//! launcher fills the process table and calls `MPIR_Breakpoint`; when that returns, the ranks
//! continue. The table is also filled without a debugger, for one that attaches to the launcher
//! later.
//!
//! Debuggers read these symbols by name, and expect C types. The Rust compiler describes types in
//! the namespace of a crate, so their debug information is written by hand below. Its sections have
//! private names, because linkers discard the debug sections of all other code; `make stage`
//! renames them to the standard names.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;

/// A process of the job, in the layout of the MPIR interface.
#[repr(C)]
struct ProcessDescriptor {
    host_name: *mut c_char,
    executable_name: *mut c_char,
    pid: c_int,
}

/// A value of `MPIR_debug_state`: all processes of the job exist.
const SPAWNED: c_int = 1;
/// A value of `MPIR_debug_state`: the job ends after a failure.
const ABORTING: c_int = 2;

/// The symbols of the interface. No code of this project refers to them by their exported names.
mod symbols {
    #![allow(non_upper_case_globals)]

    use super::{ProcessDescriptor, c_char, c_int, null_mut};

    /// The table of processes, in the order of ranks.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_proctable: *mut ProcessDescriptor = null_mut();
    /// The number of processes in the table.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_proctable_size: c_int = 0;
    /// Not 0 if a debugger controls this process; the debugger sets it.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_being_debugged: c_int = 0;
    /// The reason of the last call of `MPIR_Breakpoint`: `SPAWNED` or `ABORTING`.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_debug_state: c_int = 0;
    /// The reason why the job ends.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_debug_abort_string: *mut c_char = null_mut();
    /// Only the existence of this symbol matters: this process starts ranks, and is not a rank
    /// itself.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_i_am_starter: c_int = 1;
    /// Only the existence of this symbol matters: a debugger may attach to some of the ranks only.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_partial_attach_ok: c_int = 1;
    /// Only the existence of this symbol matters: ranks stop before their main function.
    #[unsafe(no_mangle)]
    pub(super) static mut MPIR_acquired_pre_main: c_int = 1;
}

/// The function at which a debugger sets a breakpoint in this process.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn MPIR_Breakpoint() {
    // Without this, the compiler would remove calls of the function.
    std::hint::black_box(());
}

/// True if a debugger controls this process, so that ranks stop at their start.
pub(crate) fn is_being_debugged() -> bool {
    // SAFETY: an aligned integer that only a debugger writes, while this process is stopped.
    unsafe { (&raw const symbols::MPIR_being_debugged).read_volatile() != 0 }
}

/// A process of the job, as shown to a debugger.
pub(crate) struct RankEntry {
    pub host: String,
    pub executable: String,
    pub pid: i32,
}

/// Publishes the processes in the order of ranks, and stops for a debugger if there is one. The
/// table stays valid until this process ends.
pub(crate) fn publish(ranks: Vec<RankEntry>) {
    let table: Vec<ProcessDescriptor> = ranks
        .into_iter()
        .map(|rank| ProcessDescriptor {
            host_name: text(rank.host),
            executable_name: text(rank.executable),
            pid: rank.pid,
        })
        .collect();
    let size = c_int::try_from(table.len()).unwrap_or(c_int::MAX);
    let table = table.leak().as_mut_ptr();
    // SAFETY: only the launcher's single thread writes these, and debuggers read while it is
    // stopped.
    unsafe {
        (&raw mut symbols::MPIR_proctable).write_volatile(table);
        (&raw mut symbols::MPIR_proctable_size).write_volatile(size);
        (&raw mut symbols::MPIR_debug_state).write_volatile(SPAWNED);
    }
    if is_being_debugged() {
        MPIR_Breakpoint();
    }
}

/// Stops for a debugger, if there is one, because the job is ending for the reason `why`.
pub(crate) fn aborting(why: &str) {
    if !is_being_debugged() {
        return;
    }
    let why = text(why.to_string());
    // SAFETY: as in `publish`.
    unsafe {
        (&raw mut symbols::MPIR_debug_abort_string).write_volatile(why);
        (&raw mut symbols::MPIR_debug_state).write_volatile(ABORTING);
    }
    MPIR_Breakpoint();
}

/// Makes a text for a debugger, which lives as long as the process.
fn text(text: String) -> *mut c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    text.into_raw()
}

// Debug information for these types and variables in DWARF 4, as a C compiler would write it. Flag
// R makes linkers keep the sections, and thereby the symbols.
std::arch::global_asm!(
    r#"
    .pushsection .mpir_abbrev,"R",@progbits
    .Lmpir_abbrev:
    .uleb128 1, 0x11            /* compile unit: name, language */
    .byte 1
    .uleb128 0x03, 0x08, 0x13, 0x0b, 0, 0
    .uleb128 2, 0x24            /* base type: name, size, encoding */
    .byte 0
    .uleb128 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
    .uleb128 3, 0x0f            /* pointer: size, type */
    .byte 0
    .uleb128 0x0b, 0x0b, 0x49, 0x13, 0, 0
    .uleb128 4, 0x13            /* structure: name, size */
    .byte 1
    .uleb128 0x03, 0x08, 0x0b, 0x0b, 0, 0
    .uleb128 5, 0x0d            /* member: name, type, offset */
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0, 0
    .uleb128 6, 0x16            /* typedef: name, type */
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0, 0
    .uleb128 7, 0x34            /* variable: name, type, external, location */
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x3f, 0x19, 0x02, 0x18, 0, 0
    .byte 0
    .popsection

    .macro mpir_variable name, type
    .uleb128 7
    .asciz "\name"
    .long \type - .Lmpir_unit
    .uleb128 9                  /* one operation: the address */
    .byte 3
    .quad \name
    .endm
    .macro mpir_member name, type, offset
    .uleb128 5
    .asciz "\name"
    .long \type - .Lmpir_unit
    .byte \offset
    .endm

    .pushsection .mpir_info,"R",@progbits
    .Lmpir_unit:
    .long .Lmpir_end - .Lmpir_version
    .Lmpir_version:
    .short 4
    .long .Lmpir_abbrev
    .byte 8
    .uleb128 1
    .asciz "mpir"
    .byte 0x0c                  /* C99 */
    .Lmpir_int:
    .uleb128 2
    .asciz "int"
    .byte 4, 5
    .Lmpir_char:
    .uleb128 2
    .asciz "char"
    .byte 1, 6
    .Lmpir_string:
    .uleb128 3
    .byte 8
    .long .Lmpir_char - .Lmpir_unit
    .Lmpir_descriptor:
    .uleb128 4
    .asciz "MPIR_PROCDESC"
    .byte 24
    mpir_member host_name, .Lmpir_string, 0
    mpir_member executable_name, .Lmpir_string, 8
    mpir_member pid, .Lmpir_int, 16
    .byte 0
    .uleb128 6
    .asciz "MPIR_PROCDESC"
    .long .Lmpir_descriptor - .Lmpir_unit
    .Lmpir_table:
    .uleb128 3
    .byte 8
    .long .Lmpir_descriptor - .Lmpir_unit
    mpir_variable MPIR_proctable, .Lmpir_table
    mpir_variable MPIR_proctable_size, .Lmpir_int
    mpir_variable MPIR_being_debugged, .Lmpir_int
    mpir_variable MPIR_debug_state, .Lmpir_int
    mpir_variable MPIR_debug_abort_string, .Lmpir_string
    mpir_variable MPIR_i_am_starter, .Lmpir_int
    mpir_variable MPIR_partial_attach_ok, .Lmpir_int
    mpir_variable MPIR_acquired_pre_main, .Lmpir_int
    .byte 0
    .Lmpir_end:
    .popsection
    .purgem mpir_variable
    .purgem mpir_member
"#
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_description() {
        assert_eq!(size_of::<ProcessDescriptor>(), 24);
        assert_eq!(std::mem::offset_of!(ProcessDescriptor, executable_name), 8);
        assert_eq!(std::mem::offset_of!(ProcessDescriptor, pid), 16);
    }
}
