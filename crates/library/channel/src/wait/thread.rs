//! Threads of the library: they sleep until something arrives for the rank, work for some
//! microseconds, and sleep again.
//!
//! Each requests a short time slice of the scheduler. The scheduler prefers the thread whose slice
//! has the earliest deadline, so a thread with a short slice preempts a computing program as soon
//! as it wakes up. Otherwise it would wait for the end of the program's slice, some milliseconds.
//! Its share of the processor stays that of any thread.

use std::thread::JoinHandle;

/// The time slice in nanoseconds: the shortest that Linux accepts.
const SLICE: u64 = 100_000;

/// Starts a thread of the library. All signals are blocked in it: they are for the program's
/// threads.
pub(super) fn spawn(
    name: &str,
    stack: usize,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are ours, and the first is filled before it is used. The new thread gets
    // this one's mask, which is restored below.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = std::thread::Builder::new()
        .name(name.into())
        .stack_size(stack)
        .spawn(|| {
            shorten_slice();
            run();
        });
    // SAFETY: this is the mask from before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread
}

/// Gives this thread a short time slice (`sched_runtime` of a normal policy, Linux 6.12). Older
/// kernels ignore it. Where the system call is refused, the slice stays as it is.
fn shorten_slice() {
    const SIZE: libc::c_uint = size_of::<libc::sched_attr>() as _;
    let mut own = std::mem::MaybeUninit::<libc::sched_attr>::zeroed();
    // SAFETY: the kernel writes at most `SIZE` bytes to the structure, in which zero is valid. It
    // then reads as many bytes, and changes only this thread.
    unsafe {
        if libc::syscall(libc::SYS_sched_getattr, 0, own.as_mut_ptr(), SIZE, 0) != 0 {
            return;
        }
        let mut own = own.assume_init();
        // Other policies use this field for another purpose.
        if own.sched_policy != libc::SCHED_OTHER as u32 {
            return;
        }
        own.sched_runtime = SLICE;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const own, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels with slices per thread report them; the others report zero.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no scheduler")]
    fn a_thread_of_the_library_has_a_short_slice_and_the_program_keeps_its_own() {
        fn slice() -> Option<(u32, u64)> {
            const SIZE: libc::c_uint = size_of::<libc::sched_attr>() as _;
            let mut own = std::mem::MaybeUninit::<libc::sched_attr>::zeroed();
            // SAFETY: as in `shorten_slice`.
            let own = unsafe {
                let own = own.as_mut_ptr();
                (libc::syscall(libc::SYS_sched_getattr, 0, own, SIZE, 0) == 0).then(|| own.read())
            };
            own.map(|own| (own.sched_policy, own.sched_runtime))
        }
        let before = slice();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = spawn("test", 64 << 10, move || tell.send(slice()).unwrap()).unwrap();
        thread.join().unwrap();
        let there = told.recv().unwrap();
        match before {
            Some((policy, usual)) if policy == libc::SCHED_OTHER as u32 && usual > 0 => {
                assert_eq!(there, Some((policy, SLICE)));
            }
            _ => assert_eq!(there, before),
        }
        assert_eq!(slice(), before);
    }
}
