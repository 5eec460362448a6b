//! Functions that start another program. It inherits the refusal of the processor's time-stamp
//! counter but not the handler that replaces it, so the counter is restored before.

use std::ffi::{c_char, c_int, c_void};

use crate::counter::given_back;
use crate::real::call;

/// Defines functions that call those of the C library of the same name with the counter restored.
/// They return `$failed` if the C library has no such function.
macro_rules! starting {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, or $failed:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the function of the C library demands.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            let started = given_back(|| call!($name: fn($($type),*) -> $result, $($argument),*));
            started.unwrap_or($failed)
        }
    )*};
}

type Words = *const *const c_char;

starting! {
    /// Executes another program in this process (POSIX, `execve`).
    execve(path: *const c_char, words: Words, environment: Words) -> c_int, or -1;
    /// Executes another program in this process (POSIX, `execv`).
    execv(path: *const c_char, words: Words) -> c_int, or -1;
    /// Executes another program in this process, found by its name (POSIX, `execvp`).
    execvp(name: *const c_char, words: Words) -> c_int, or -1;
    /// Executes another program in this process, found by its name (`execvpe`).
    execvpe(name: *const c_char, words: Words, environment: Words) -> c_int, or -1;
    /// Executes another program in this process, by its descriptor (POSIX, `fexecve`).
    fexecve(file: c_int, words: Words, environment: Words) -> c_int, or -1;
    /// Starts another program (POSIX, `posix_spawn`).
    posix_spawn(
        child: *mut libc::pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void,
        words: Words, environment: Words
    ) -> c_int, or libc::ENOSYS;
    /// Starts another program, found by its name (POSIX, `posix_spawnp`).
    posix_spawnp(
        child: *mut libc::pid_t, name: *const c_char, actions: *const c_void, attributes: *const c_void,
        words: Words, environment: Words
    ) -> c_int, or libc::ENOSYS;
    /// Runs a command of the shell (C, `system`).
    system(command: *const c_char) -> c_int, or -1;
    /// Runs a command of the shell with a pipe (POSIX, `popen`).
    popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE, or std::ptr::null_mut();
}

/// Defines functions with a variable number of arguments, which jump to those of the C library. If
/// the program cannot be started, the counter stays restored.
#[cfg(target_arch = "x86_64")]
macro_rules! starting_with_words {
    ($($(#[$doc:meta])* $name:ident, $text:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the function of the C library demands.
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name() {
            /// Restores the counter, and returns the address of the function of the C library.
            extern "C" fn next() -> *const c_void {
                static FUNCTION: crate::real::Function = crate::real::Function::new($text);
                crate::counter::give_back();
                match FUNCTION.address() {
                    found if found.is_null() => failing as *const c_void,
                    found => found,
                }
            }
            // Seven pushed words keep the stack aligned for the call.
            std::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {next}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                next = sym next,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
extern "C" fn failing() -> c_int {
    -1
}

#[cfg(target_arch = "x86_64")]
starting_with_words! {
    /// Executes another program in this process (POSIX, `execl`).
    execl, c"execl";
    /// Executes another program in this process, with an environment (POSIX, `execle`).
    execle, c"execle";
    /// Executes another program in this process, found by its name (POSIX, `execlp`).
    execlp, c"execlp";
}
