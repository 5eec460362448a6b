//! Waits for other members of a window.

use crate::Result;
use crate::matching::Key;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::State;
use crate::window::{Ports, Window};

/// The event that a wait for members of a window still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The wait is over: nothing is missing.
    Nothing,
    /// The wait continues: a message from this member has not arrived.
    Member(u32),
    /// The wait continues until any member has changed shared memory.
    Anyone,
    /// The wait continues until progress has completed requests.
    Progress,
}

impl From<Option<u32>> for Missing {
    fn from(member: Option<u32>) -> Missing {
        member.map_or(Missing::Nothing, Missing::Member)
    }
}

impl From<bool> for Missing {
    fn from(is_done: bool) -> Missing {
        match is_done {
            true => Missing::Nothing,
            false => Missing::Progress,
        }
    }
}

/// The message for which a wait is registered, so that the loss of its sender ends the wait.
#[derive(Default)]
struct AwaitedKey(Option<Key>);

impl AwaitedKey {
    /// Registers this message as awaited instead of the previous one; `None` registers no message.
    fn set(&mut self, state: &mut State, key: Option<Key>) {
        if self.0 == key {
            return;
        }
        let awaited = &mut state.engine.messages.awaited;
        let old = self.0;
        if let Some(at) = awaited.iter().position(|key| Some(*key) == old) {
            awaited.swap_remove(at);
        }
        awaited.extend(key);
        self.0 = key;
    }
}

impl Rank {
    /// Serves windows until nothing is missing.
    ///
    /// # Errors
    /// A member that must answer is lost, or progress failed.
    pub(super) fn wait_for_window(
        &self,
        operation: &'static str,
        win: u32,
        mut missing: impl FnMut(&mut Window, &mut Ports) -> Missing,
    ) -> Result<()> {
        let mut awaited = AwaitedKey::default();
        let waited = self.wait_until(&Waiting::in_call(operation), |state| {
            state.serve_windows()?;
            let (missing, key) = state.with_window(win, |window, ports| {
                let missing = missing(window, ports);
                let key = match missing {
                    Missing::Member(member) => Some(window.awaited(member)),
                    _ => None,
                };
                Ok((missing, key))
            })?;
            if missing == Missing::Anyone && state.engine.has_losses() {
                state.check_members(win)?;
            }
            awaited.set(state, key);
            if let Some(key) = key {
                state.engine.check_awaited(&state.objects.comms, &key)?;
            }
            Ok((missing == Missing::Nothing).then_some(()))
        });
        awaited.set(&mut self.lock(), None);
        waited
    }
}
