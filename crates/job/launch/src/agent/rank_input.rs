//! The agent's part in forwarding the launcher's standard input to the rank that reads it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::frame::FromAgent;
use super::link::FrameLink;

/// The standard input of the rank that reads the launcher's: bytes to write, and the rank's pipe.
#[derive(Default)]
pub(super) struct RankInput {
    pub(super) pending: Vec<u8>,
    pub(super) at_end: bool,
    pub(super) pipe: Option<OwnedFd>,
}

impl RankInput {
    /// Writes pending input to the rank's pipe without blocking.
    pub(super) fn move_to_rank(&mut self, link: &mut FrameLink) {
        let RankInput {
            pending,
            at_end,
            pipe,
        } = self;
        while let Some(file) = pipe.as_ref().filter(|_| !pending.is_empty()) {
            match rustix::io::write(file.as_fd(), pending) {
                Ok(length) => {
                    pending.drain(..length);
                    link.post(&FromAgent::InputTaken(length));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    *pipe = None;
                    link.post(&FromAgent::InputClosed);
                }
            }
        }
        if *at_end && pending.is_empty() {
            *pipe = None;
        }
    }
}
