//! One descriptor that can be read when any of several can, or at a time: for a thread that waits in a rank's stead.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use device::{Error, Result};

pub(crate) struct Alarm {
    all: OwnedFd,
    timer: OwnedFd,
    is_set: bool,
}

impl Alarm {
    pub(crate) fn new() -> Result<Alarm> {
        // SAFETY: no arguments but flags; what comes is a new descriptor.
        let all = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))? };
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: as above.
        let timer = unsafe { owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))? };
        let alarm = Alarm {
            all,
            timer,
            is_set: false,
        };
        alarm.watch(alarm.timer.as_raw_fd())?;
        Ok(alarm)
    }

    pub(crate) fn watch(&self, fd: RawFd) -> Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        // SAFETY: open descriptors, and what is wanted of them.
        let answer =
            unsafe { libc::epoll_ctl(self.all.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        check(answer)
    }

    pub(crate) fn forget(&self, fd: RawFd) {
        // It may be closed, and so forgotten, already.
        // SAFETY: a descriptor of ours, and a number.
        unsafe {
            libc::epoll_ctl(
                self.all.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd,
                std::ptr::null_mut(),
            )
        };
    }

    /// From now on it also rings after so many nanoseconds, or not any more by itself.
    pub(crate) fn ring_at(&mut self, nanos: Option<u64>) -> Result<()> {
        if nanos.is_none() && !self.is_set {
            return Ok(());
        }
        self.is_set = nanos.is_some();
        // Zero would mean never.
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
        // SAFETY: a timer of ours, a time, and no place for the old one. Setting it makes it unreadable.
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
    // SAFETY: by the caller.
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
