//! Adopting a descriptor whose number stands in a variable.
//!
//! The number comes from outside, so nothing about it is believed: the descriptor must be open, must not be
//! close-on-exec, and must be of the kind that the variable promises. Not being close-on-exec is what tells a
//! descriptor that was left here for us from one that somebody in this process opened (Rust, Python and libc's own
//! helpers all set the flag) and from one that was adopted before, because adopting sets it.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{FileType, fcntl_get_seals, fstat};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::Error;

/// What a descriptor has to be.
#[derive(Clone, Copy)]
pub(crate) enum InheritedKind {
    /// A memfd.
    Memory,
    /// A unix socket that keeps packets apart.
    Socket,
}

impl InheritedKind {
    fn name(self) -> &'static str {
        match self {
            InheritedKind::Memory => "shared memory",
            InheritedKind::Socket => "a socket to the launcher",
        }
    }
}

/// A descriptor that is what its variable says, not yet taken over.
pub(crate) struct Inherited {
    variable: &'static str,
    number: RawFd,
    descriptor: ManuallyDrop<OwnedFd>,
}

impl Inherited {
    /// Looks at the descriptor. One that is refused is left as it was.
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
        // SAFETY: the launcher left this descriptor for this process alone to take. That it did is checked below,
        // before anything else is done with it: a descriptor that is not open, already has an owner here (it is
        // close-on-exec), or is of another kind is neither closed nor kept, because of the `ManuallyDrop`.
        let descriptor = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
        let flags = fcntl_getfd(&*descriptor).map_err(|_| {
            refuse("it is not open; a program between the launcher and this one has closed it")
        })?;
        if flags.contains(FdFlags::CLOEXEC) {
            return Err(refuse(
                "this process opened it for something else, or has taken it before",
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

    /// Takes it over, and sets close-on-exec.
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
        // Only memory-backed files have seals.
        InheritedKind::Memory => {
            found == FileType::RegularFile && fcntl_get_seals(descriptor).is_ok()
        }
        InheritedKind::Socket => {
            found == FileType::Socket
                && sockopt::socket_domain(descriptor)? == AddressFamily::UNIX
                && sockopt::socket_type(descriptor)? == SocketType::SEQPACKET
        }
    })
}
