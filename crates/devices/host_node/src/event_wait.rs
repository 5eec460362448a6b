//! One descriptor that becomes readable when any of several does, or at a given time: for a thread
//! that waits on behalf of a rank.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use device::{Error, Result};

pub(crate) struct EventWait {
    all: OwnedFd,
    timer: OwnedFd,
    is_set: bool,
}

impl EventWait {
    pub(crate) fn new() -> Result<EventWait> {
        // SAFETY: only flags are passed; the result is a new descriptor.
        let all = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))? };
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: as above.
        let timer = unsafe { owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))? };
        let event_wait = EventWait {
            all,
            timer,
            is_set: false,
        };
        event_wait.watch(event_wait.timer.as_raw_fd())?;
        Ok(event_wait)
    }

    pub(crate) fn watch(&self, fd: RawFd) -> Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        // SAFETY: open descriptors, and the events to wait for.
        let answer =
            unsafe { libc::epoll_ctl(self.all.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        check(answer)
    }

    pub(crate) fn forget(&self, fd: RawFd) {
        // The descriptor may have been closed, which removes it.
        // SAFETY: our own descriptor, and an integer.
        unsafe {
            libc::epoll_ctl(
                self.all.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd,
                std::ptr::null_mut(),
            )
        };
    }

    /// Sets the timer to `nanos` nanoseconds from now; `None` stops it.
    pub(crate) fn wake_at(&mut self, nanos: Option<u64>) -> Result<()> {
        if nanos.is_none() && !self.is_set {
            return Ok(());
        }
        self.is_set = nanos.is_some();
        // Zero would stop the timer.
        let nanos = nanos.map_or(0, |nanos| nanos.max(1));
        let never = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let time = libc::itimerspec {
            it_interval: never,
            it_value: libc::timespec {
                tv_sec: (nanos / 1_000_000_000) as libc::time_t,
                tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
            },
        };
        let timer = self.timer.as_raw_fd();
        // SAFETY: our own timer, a time, and no memory for the old one. Setting the timer resets
        // its readiness.
        check(unsafe { libc::timerfd_settime(timer, 0, &time, std::ptr::null_mut()) })
    }

    pub(crate) fn handle(&self) -> Result<OwnedFd> {
        self.all.try_clone().map_err(refused)
    }
}

/// # Safety
/// The descriptor is new, or negative.
unsafe fn owned(fd: RawFd) -> Result<OwnedFd> {
    check(fd.min(0))?;
    // SAFETY: by the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(answer: i32) -> Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(refused(io::Error::last_os_error())),
    }
}

fn refused(why: io::Error) -> Error {
    Error::System(format!("waiting for the devices' events: {why}"))
}
