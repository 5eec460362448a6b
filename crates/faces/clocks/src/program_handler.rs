//! The program's own handler of SIGSEGV, which [`crate::counter`] calls from its own. A thread that
//! blocks the signal would end with the next read of the counter, so nothing may block it.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use libc::{sigaction as Action, sighandler_t, siginfo_t, sigset_t};

use crate::counter::is_in_place;
use crate::real::call;

/// The address of the program's handler, its flags, and the signals that it blocks.
static HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicUsize = AtomicUsize::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// The program's own action for SIGSEGV.
pub(crate) fn get() -> Action {
    // SAFETY: a structure of numbers.
    let mut action: Action = unsafe { std::mem::zeroed() };
    action.sa_sigaction = HANDLER.load(Ordering::Relaxed);
    action.sa_flags = FLAGS.load(Ordering::Relaxed) as c_int;
    let mask = MASK.load(Ordering::Relaxed);
    // SAFETY: the set has more than 64 bits, of which the first are those of the signals.
    unsafe { (&raw mut action.sa_mask).cast::<u64>().write(mask) };
    action
}

/// Stores the action that the program sets for SIGSEGV.
pub(crate) fn set(action: &Action) {
    HANDLER.store(action.sa_sigaction, Ordering::Relaxed);
    FLAGS.store(action.sa_flags as usize, Ordering::Relaxed);
    // SAFETY: as in `get`.
    let mask = unsafe { (&raw const action.sa_mask).cast::<u64>().read() };
    MASK.store(mask, Ordering::Relaxed);
}

/// Handles a signal by the action that the program has set.
///
/// # Safety
/// The arguments are those that the kernel passes to a handler.
pub(crate) unsafe fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let action = get();
    match action.sa_sigaction {
        // The kernel does not let a fault be ignored.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: a structure of numbers, all of them 0: the default.
            let default: Action = unsafe { std::mem::zeroed() };
            // The instruction fails again, or the signal is raised again, and ends the process.
            call!(sigaction: fn(c_int, *const Action, *mut Action) -> c_int,
                signal, &raw const default, std::ptr::null_mut());
            // SAFETY: as this function demands.
            if unsafe { (*info).si_code } <= 0 {
                // SAFETY: the function has no conditions.
                unsafe { libc::raise(signal) };
            }
        }
        handler if action.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
            // SAFETY: the program has set a handler of this type, and gets what the system passes.
            unsafe { transmute::<usize, Handler>(handler)(signal, info, context) };
        }
        // SAFETY: the program has set a handler of this type.
        handler => unsafe { transmute::<usize, unsafe extern "C" fn(c_int)>(handler)(signal) },
    }
}

/// Sets and reads the action for a signal (POSIX, `sigaction`).
///
/// # Safety
/// The pointers are null or point to structures; `old` may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    if signal != libc::SIGSEGV || !is_in_place() {
        // SAFETY: as this function demands.
        let mut action = unsafe { new.as_ref() }.copied();
        if let Some(action) = action.as_mut().filter(|_| is_in_place()) {
            without_ours(&mut action.sa_mask);
        }
        let new = action.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let set =
            call!(sigaction: fn(c_int, *const Action, *mut Action) -> c_int, signal, new, old);
        return set.unwrap_or(-1);
    }
    let before = get();
    // SAFETY: as this function demands.
    if let Some(new) = unsafe { new.as_ref() } {
        set(new);
    }
    if !old.is_null() {
        // SAFETY: as this function demands.
        unsafe { old.write(before) };
    }
    0
}

/// Sets the handler of a signal (C, `signal`).
///
/// # Safety
/// `handler` is a handler of signals.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if signal != libc::SIGSEGV || !is_in_place() {
        let set = call!(signal: fn(c_int, sighandler_t) -> sighandler_t, signal, handler);
        return set.unwrap_or(libc::SIG_ERR);
    }
    let before = get();
    set(&Action {
        sa_sigaction: handler,
        sa_flags: libc::SA_RESTART,
        ..get()
    });
    before.sa_sigaction
}

/// Removes SIGSEGV from a set of signals.
fn without_ours(set: &mut sigset_t) {
    // SAFETY: the set is initialised, and the number is that of a signal.
    unsafe { libc::sigdelset(set, libc::SIGSEGV) };
}

/// Defines functions that change the signals that a thread blocks, except SIGSEGV.
macro_rules! blocking {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The pointers are null or point to sets; `old` may be written.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
            // SAFETY: as this function demands.
            let mut set = unsafe { new.as_ref() }.copied();
            if let Some(set) = set.as_mut().filter(|_| is_in_place() && how != libc::SIG_UNBLOCK) {
                without_ours(set);
            }
            let new = set.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            let done = call!($name: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int, how, new, old);
            done.unwrap_or(libc::ENOSYS)
        }
    )*};
}

blocking! {
    /// Changes the signals that a process with one thread blocks (POSIX, `sigprocmask`).
    sigprocmask;
    /// Changes the signals that a thread blocks (POSIX, `pthread_sigmask`).
    pthread_sigmask;
}
