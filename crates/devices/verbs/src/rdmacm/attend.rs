//! The loop of a thread that handles events, and the descriptors that end it and signal its
//! results.

use std::io::{self, ErrorKind};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::library::refused;
use device::Result;

/// The greatest number of consecutive failures to read an event that the descriptor reports.
const TRIES: usize = 100;
/// The pause after each failure to read an event, in milliseconds.
const PAUSE: i32 = 10;

/// Calls `take` for each event that makes `events` readable, until `end` is readable. An error: no
/// more events can arrive, with the reason.
pub(super) fn attend(
    events: RawFd,
    end: &OwnedFd,
    take: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    let wait_for = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut fds = [wait_for(end.as_raw_fd()), wait_for(events)];
    let mut failed = 0;
    loop {
        // After a failure this waits only for the request to end.
        let (waiting, patience) = if failed == 0 { (2, -1) } else { (1, PAUSE) };
        // SAFETY: at most as many entries as there are.
        if unsafe { libc::poll(fds.as_mut_ptr(), waiting, patience) } < 0 {
            match io::Error::last_os_error() {
                why if why.kind() == ErrorKind::Interrupted => continue,
                why => return Err(why),
            }
        }
        if fds[0].revents != 0 {
            return Ok(());
        }
        if fds[1].revents & libc::POLLIN == 0 {
            return Err(io::Error::other("its descriptor was hung up"));
        }
        match take() {
            Ok(()) => failed = 0,
            // The event has disappeared with its id.
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                failed = 0;
            }
            Err(why) if failed == TRIES => return Err(why),
            Err(_) => failed += 1,
        }
    }
}

/// An eventfd: a descriptor that is readable once [`raise`] has been called.
pub(super) fn signal_file(device: &str) -> Result<OwnedFd> {
    // SAFETY: only integers are passed.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    match fd < 0 {
        true => Err(refused(device, "creating an event file")),
        // SAFETY: the descriptor is new, and nothing else owns it.
        false => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

pub(super) fn raise(file: &OwnedFd) {
    let one = 1u64.to_ne_bytes();
    // A failure means that the descriptor is readable already.
    // SAFETY: our own descriptor, and eight bytes.
    unsafe { libc::write(file.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Runs `start` with all signals blocked, so that a thread started by it receives none.
pub(super) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: signal sets, and memory for them.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The two ends of a pipe, for reading and for writing.
    fn pipe() -> [OwnedFd; 2] {
        let mut fds = [0; 2];
        // SAFETY: memory for two integers.
        assert_eq!(unsafe { libc::pipe(fds.as_mut_ptr()) }, 0);
        // SAFETY: the descriptors are new, and nothing else owns them.
        fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// The result of `attend` for a descriptor that is readable or hung up, and the number of calls
    /// of `take`.
    fn attended(
        is_hung_up: bool,
        take: impl Fn(usize) -> io::Result<()>,
    ) -> (io::Result<()>, usize) {
        let ([events, filler], end) = (pipe(), signal_file("a device").unwrap());
        let taken = Cell::new(0);
        if is_hung_up {
            drop(filler);
        } else {
            raise(&filler);
        }
        let ended = attend(events.as_raw_fd(), &end, || {
            taken.set(taken.get() + 1);
            if taken.get() == 1000 {
                raise(&end);
            }
            take(taken.get())
        });
        (ended, taken.get())
    }

    #[test]
    fn events_are_taken_until_the_end() {
        assert!(matches!(attended(false, |_| Ok(())), (Ok(()), 1000)));
        let gone = |_| Err(ErrorKind::WouldBlock.into());
        assert!(matches!(attended(false, gone), (Ok(()), 1000)));
    }

    #[test]
    fn a_file_that_is_hung_up_ends_it() {
        let (ended, taken) = attended(true, |_| Ok(()));
        assert!(ended.unwrap_err().to_string().contains("hung up"));
        assert_eq!(taken, 0);
    }

    #[test]
    fn events_that_cannot_be_taken_end_it_and_one_that_can_begins_the_count_anew() {
        let broken = || Err(io::Error::from_raw_os_error(libc::EIO));
        let (ended, taken) = attended(false, |at| if at == 50 { Ok(()) } else { broken() });
        assert_eq!(ended.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(taken, 50 + TRIES + 1);
    }
}
