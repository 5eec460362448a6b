//! Deferred actions: work of a packet handler that needs the transports, which a handler may not
//! use.

use std::collections::VecDeque;

use channel::Exposure;

use super::cooperative_copy::Help;
use super::learned_costs::Preference;
use super::transfers::WriteBack;
use crate::Error;
use crate::matching::Key;
use crate::packet::{Progress, Run};
use crate::request::RequestId;

/// An action that the next call of progress performs.
pub(super) enum Action {
    /// Copies pieces of a message that this rank sends, in a cooperative copy.
    Help(Help),
    /// Writes a message of this rank into its receiver's buffer.
    Write(WriteBack),
    /// Acts on an announcement of the peer with this world rank, or on its revocation.
    Rtr(usize, RtrMessage),
    /// Releases the number of a notice, because the peer will not make the write that it ends.
    Forget {
        /// World rank of the peer.
        peer: usize,
        /// The number of the notice.
        notice: u32,
    },
    /// Ends a transport's access to a buffer.
    Retract(Exposure),
    /// Completes a send whose last packet leaves in this pass of progress.
    Complete(RequestId),
    /// Copies a piece of a shared message, which the receiver may read meanwhile.
    CopyOut,
    /// Informs a sender of a preference of this receiver.
    Prefer(Preference),
    /// Raises an error that concerns one peer or one communicator only.
    Raise(Error),
}

/// A message of a receiver about its announced receives.
pub(super) enum RtrMessage {
    Announced { progress: Progress, runs: Vec<Run> },
    Revoked { key: Key, receive: u32 },
}

/// The actions that the next call of progress performs, in order.
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

    /// Puts an unfinished action back to the front of the queue.
    pub(super) fn put_back(&mut self, action: Action) {
        self.actions.push_front(action);
    }

    /// Drops the actions for messages with a lost peer. Those that end accesses, complete sends or
    /// raise errors stay.
    pub(super) fn forget_peer(&mut self, peer: usize) {
        self.actions.retain(|action| match action {
            Action::Help(help) => help.peer() != peer,
            Action::Write(write) => write.peer != peer,
            Action::Rtr(of, _) => *of != peer,
            Action::Prefer(preference) => preference.sender != peer,
            Action::Forget { .. }
            | Action::Retract(_)
            | Action::Complete(_)
            | Action::CopyOut
            | Action::Raise(_) => true,
        });
    }

    /// The next action. `keeps_help`: help of which nothing has begun stays where it is.
    pub(super) fn next(&mut self, keeps_help: bool) -> Option<Action> {
        let stays = |action: &Action| {
            keeps_help && matches!(action, Action::Help(help) if help.claimed.is_empty())
        };
        let at = self.actions.iter().position(|action| !stays(action))?;
        self.actions.remove(at)
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
