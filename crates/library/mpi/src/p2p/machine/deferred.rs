//! Deferred actions: work of a packet handler that needs the transports, which a handler may not
//! use.

use std::collections::VecDeque;

use channel::Exposure;

use super::cooperative_copy::Help;
use super::transfers::WriteBack;
use crate::Error;
use crate::matching::Key;
use crate::packet::{Progress, Run};
use crate::request::RequestId;

/// Work for the next progress.
pub(super) enum Action {
    /// Copies pieces of a message of this rank's.
    Help(Help),
    /// Writes a message of this rank's to its receiver's buffer.
    Write(WriteBack),
    /// Acts on an announcement of a peer, or on its revocation.
    Rtr(usize, RtrMessage),
    /// Gives back the number of a write that no peer will make.
    Forget {
        /// World rank of the peer.
        peer: usize,
        /// The number.
        notice: u32,
    },
    /// Ends a transport's access to a buffer.
    Retract(Exposure),
    /// Completes a send whose last packet leaves with this progress.
    Complete(RequestId),
    /// Raises an error that concerns one peer or one communicator only.
    Raise(Error),
}

/// A message of the receiver about its announcements.
pub(super) enum RtrMessage {
    Announced { progress: Progress, runs: Vec<Run> },
    Revoked { key: Key, receive: u32 },
}

/// The deferred actions, in order.
#[derive(Default)]
pub(super) struct Deferred {
    actions: VecDeque<Action>,
}

impl Deferred {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    pub(super) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Puts back an action that is not finished.
    pub(super) fn put_back(&mut self, action: Action) {
        self.actions.push_front(action);
    }

    /// Drops the actions for a lost peer, but not the ends of accesses.
    pub(super) fn forget_peer(&mut self, peer: usize) {
        self.actions.retain(|action| match action {
            Action::Help(help) => help.peer() != peer,
            Action::Write(write) => write.peer != peer,
            Action::Rtr(of, _) => *of != peer,
            Action::Forget { .. } | Action::Retract(_) | Action::Complete(_) | Action::Raise(_) => {
                true
            }
        });
    }

    pub(super) fn next(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next action that ends an access to a buffer.
    pub(super) fn next_end(&mut self) -> Option<Action> {
        let ends = |action: &Action| matches!(action, Action::Forget { .. } | Action::Retract(_));
        let at = self.actions.iter().position(ends)?;
        self.actions.remove(at)
    }

    /// Ends the access to a buffer, if the transport holds something for it.
    pub(super) fn retract(&mut self, exposure: Exposure) {
        if exposure.is_held() {
            self.push(Action::Retract(exposure));
        }
    }
}
