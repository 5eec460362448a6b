//! An inherited descriptor whose number is in an environment variable, and its adoption.
//!
//! The number comes from outside and is checked: the descriptor must be open, must not be
//! close-on-exec, and must be of the kind that the variable claims. A missing close-on-exec flag
//! shows that the launcher left the descriptor to this process. A descriptor that this process
//! opened has the flag (Rust, Python and libc's helpers set it), and so has one that was adopted
//! before.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{FileType, fcntl_get_seals, fstat};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::Error;

/// The kind of file behind an inherited descriptor.
#[derive(Clone, Copy)]
pub(crate) enum InheritedKind {
    /// An anonymous memory file (memfd).
    Memory,
    /// A Unix socket of type SEQPACKET.
    Socket,
    /// A socket of type STREAM.
    Stream,
}

impl InheritedKind {
    fn name(self) -> &'static str {
        match self {
            InheritedKind::Memory => "shared memory",
            InheritedKind::Socket | InheritedKind::Stream => "a socket to the launcher",
        }
    }
}

/// A descriptor that has been checked and not been adopted yet.
pub(crate) struct Inherited {
    variable: &'static str,
    number: RawFd,
    descriptor: ManuallyDrop<OwnedFd>,
}

impl Inherited {
    /// Checks the descriptor. If the check fails, the descriptor stays as it was.
    pub(crate) fn find(
        variable: &'static str,
        value: &str,
        kind: InheritedKind,
    ) -> Result<Self, Error> {
        let number: RawFd = value.parse().map_err(|_| Error::NotANumber {
            variable,
            value: value.to_string(),
        })?;
        let refuse = |why: &str| Error::Descriptor {
            variable,
            number,
            why: why.to_string(),
        };
        if number <= 2 {
            return Err(refuse("0, 1 and 2 are the standard streams"));
        }
        // SAFETY: the launcher left this descriptor to this process, whose only owner of it is this
        // value. The checks below establish that. A descriptor that is not open, has an owner in
        // this process already (it is close-on-exec), or is of another kind is neither closed nor
        // kept, because of the `ManuallyDrop`.
        let descriptor = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
        let flags = fcntl_getfd(&*descriptor).map_err(|_| {
            refuse("it is not open; a program between the launcher and this one has closed it")
        })?;
        if flags.contains(FdFlags::CLOEXEC) {
            return Err(refuse(
                "this process opened it for another purpose, or has taken it before",
            ));
        }
        match is(descriptor.as_fd(), kind) {
            Ok(true) => Ok(Inherited {
                variable,
                number,
                descriptor,
            }),
            Ok(false) => Err(refuse(&format!("it is not {}", kind.name()))),
            Err(errno) => Err(refuse(&errno.to_string())),
        }
    }

    /// The number of the descriptor.
    pub(crate) fn number(&self) -> RawFd {
        self.number
    }

    /// Adopts the descriptor: makes it close-on-exec, and returns its owner.
    pub(crate) fn take(self) -> Result<OwnedFd, Error> {
        let Inherited {
            variable,
            number,
            descriptor,
        } = self;
        let refuse = |errno: Errno| Error::Descriptor {
            variable,
            number,
            why: errno.to_string(),
        };
        fcntl_setfd(&*descriptor, FdFlags::CLOEXEC).map_err(refuse)?;
        Ok(ManuallyDrop::into_inner(descriptor))
    }
}

fn is(descriptor: BorrowedFd<'_>, kind: InheritedKind) -> Result<bool, Errno> {
    let found = FileType::from_raw_mode(fstat(descriptor)?.st_mode);
    Ok(match kind {
        // Only memory files have seals.
        InheritedKind::Memory => {
            found == FileType::RegularFile && fcntl_get_seals(descriptor).is_ok()
        }
        InheritedKind::Socket => {
            found == FileType::Socket
                && sockopt::socket_domain(descriptor)? == AddressFamily::UNIX
                && sockopt::socket_type(descriptor)? == SocketType::SEQPACKET
        }
        InheritedKind::Stream => {
            found == FileType::Socket && sockopt::socket_type(descriptor)? == SocketType::STREAM
        }
    })
}
