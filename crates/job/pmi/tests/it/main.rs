//! Tests of the rank's side of job start-up.

mod bootstrap;
mod control;
mod foreign;
mod job;

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Makes a control socket. Returns the launcher's end and the rank's end.
fn control_socket(flags: SocketFlags) -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}
