//! The receiver's knowledge of which receives are worth an announcement (ready to receive, RTR).
//!
//! The posted size is not the size of the message, and a registration without a message is a loss:
//! a receive is announced only where messages with its key have usually been written to announced
//! receives, or long ones have met receives that waited for them.

use std::collections::HashMap;

use crate::matching::Key;

/// Most keys that are remembered.
const KEYS: usize = 1024;
/// Most announced receives without a message.
const OPEN: usize = 64;
/// Bound of a habit's score, either way.
const SURE: i8 = 4;
/// Loss of score for a receive that was announced in vain.
const IN_VAIN: i8 = 2;

/// Experience with announcements.
#[derive(Default)]
pub(super) struct Announcer {
    habits: HashMap<Key, Habit>,
    /// Number of announced receives without a message.
    open: usize,
}

/// Experience with one key: positive if an announcement is usually of use.
struct Habit {
    peer: usize,
    score: i8,
}

impl Announcer {
    /// True if some receives may have to be announced.
    #[inline(always)]
    pub(super) fn has_habits(&self) -> bool {
        !self.habits.is_empty()
    }

    /// The peer that usually sends messages with this key to announced receives.
    pub(super) fn expected_from(&self, key: &Key) -> Option<usize> {
        let habit = self.habits.get(key)?;
        (habit.score > 0).then_some(habit.peer)
    }

    /// A further receive may be announced.
    pub(super) fn has_room(&self) -> bool {
        self.open < OPEN
    }

    /// A receive is announced.
    pub(super) fn opened(&mut self) {
        self.open += 1;
    }

    /// An announced receive has its message, or will have none.
    pub(super) fn closed(&mut self) {
        self.open -= 1;
    }

    /// A long message with this key met a receive that waited.
    pub(super) fn learn(&mut self, peer: usize, key: Key) {
        if self.habits.len() < KEYS || self.habits.contains_key(&key) {
            let habit = self.habits.entry(key).or_insert(Habit { peer, score: 0 });
            habit.score = (habit.score + 1).min(SURE);
        }
    }

    /// A message was written to an announced receive.
    pub(super) fn confirm(&mut self, key: &Key) {
        if let Some(habit) = self.habits.get_mut(key) {
            habit.score = (habit.score + 1).min(SURE);
        }
    }

    /// A receive was announced in vain.
    pub(super) fn disappoint(&mut self, key: &Key) {
        if let Some(habit) = self.habits.get_mut(key) {
            habit.score = (habit.score - IN_VAIN).max(-SURE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key {
        context: 1,
        source: 2,
        tag: 3,
    };

    #[test]
    fn habits_decide_what_is_announced() {
        let mut announcer = Announcer::default();
        assert!(announcer.expected_from(&KEY).is_none());
        announcer.learn(4, KEY);
        assert_eq!(announcer.expected_from(&KEY), Some(4));
        announcer.disappoint(&KEY);
        assert!(announcer.expected_from(&KEY).is_none());
        announcer.learn(4, KEY);
        announcer.confirm(&KEY);
        assert_eq!(announcer.expected_from(&KEY), Some(4));
    }
}
