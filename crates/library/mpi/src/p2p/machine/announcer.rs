//! The receiver's knowledge of which receives are worth an announcement (ready to receive, RTR).
//!
//! The posted size is not the size of the message, and an announcement without a message is a loss.
//! So a long receive is announced only where long messages with its envelope have usually matched
//! receives that waited for them. Over several rails short receives are announced too, where their
//! messages have usually been written to announced receives. That is tried as soon as several
//! receives with one envelope wait at a time, otherwise after some receives, and again after ever
//! longer pauses: a trial in vain costs as much as a short message.

use std::collections::HashMap;

use crate::matching::Key;

/// The greatest number of topics (an envelope, with short or long buffers) that are remembered.
const KEYS: usize = 1024;
/// The greatest number of announced receives whose messages have not arrived.
const OPEN: usize = 64;
/// The greatest absolute value of a topic's score, which is positive if announcements were of use.
const SURE: i8 = 4;
/// The amount by which a receive that was announced in vain lowers its topic's score.
const IN_VAIN: i8 = 2;
/// Number of receives before the first trial announcement, unless several receives wait at a time.
/// Only receives with no other of their envelope before them count.
const FIRST_PAUSE: u32 = 16;
/// The greatest number of receives between two trial announcements. Only receives with no other of
/// their envelope before them count.
const LONGEST_PAUSE: u32 = 1024;

/// The experience of a receiver with the use of announcements, by topic.
pub(super) struct Announcer {
    habits: HashMap<Topic, Habit>,
    /// Number of announced receives whose messages have not arrived.
    open: usize,
    /// True if short receives may be announced, too.
    tries_short: bool,
    /// True if every receive is announced.
    always: bool,
    /// True if each receive has to be checked when it is posted.
    active: bool,
}

/// A set of receives whose announcements are judged together: those with one envelope, short or
/// long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    pub(super) key: Key,
    /// True if the buffer is so short that its message fits one packet.
    pub(super) short: bool,
}

/// The experience with one topic. The score is positive if an announcement is usually of use.
struct Habit {
    peer: usize,
    score: i8,
    /// The number of receives between two trial announcements of their kind.
    pause: u32,
    /// The number of receives of the kind since the last trial announcement.
    paused: u32,
    was_tried: bool,
}

impl Habit {
    fn new(peer: usize) -> Habit {
        Habit {
            peer,
            score: 0,
            pause: FIRST_PAUSE,
            paused: 0,
            was_tried: false,
        }
    }

    /// Makes the first trial announcement due, because several receives wait at a time: a stream of
    /// messages gains most from announcements.
    fn try_next(&mut self) {
        if !self.was_tried {
            self.pause = 0;
        }
    }

    /// Counts a receive whose score does not justify an announcement. True: a trial announcement is
    /// due.
    fn try_again(&mut self) -> bool {
        let is_due = self.paused >= self.pause;
        if is_due {
            self.pause = (self.pause * 2).clamp(1, LONGEST_PAUSE);
            (self.paused, self.score, self.was_tried) = (0, 1, true);
        } else {
            self.paused += 1;
        }
        is_due
    }
}

impl Announcer {
    /// The announcer of a rank. `tries_short`: short receives may be announced. `always`: every
    /// receive is announced, whatever the experience is.
    pub(super) fn new(tries_short: bool, always: bool) -> Announcer {
        Announcer {
            habits: HashMap::new(),
            open: 0,
            tries_short,
            always,
            active: tries_short || always,
        }
    }

    /// True if receives have to be checked when they are posted: they may have to be announced, or
    /// may have lost their sender.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Requires that receives are checked when they are posted, from now on.
    pub(super) fn activate(&mut self) {
        self.active = true;
    }

    /// Permits the announcement of short receives from now on.
    pub(super) fn try_short(&mut self) {
        (self.tries_short, self.active) = (true, true);
    }

    /// True if short receives may be announced.
    pub(super) fn tries_short(&self) -> bool {
        self.tries_short
    }

    /// True if messages with this envelope are usually written to announced receives.
    pub(super) fn expects(&self, key: &Key) -> bool {
        [false, true].into_iter().any(|short| {
            let habit = self.habits.get(&Topic { key: *key, short });
            habit.is_some_and(|habit| habit.score > 0)
        })
    }

    /// The peer that usually sends long messages with this envelope to announced receives.
    pub(super) fn expected_from(&self, key: &Key) -> Option<usize> {
        let topic = Topic {
            key: *key,
            short: false,
        };
        let habit = self.habits.get(&topic)?;
        (habit.score > 0).then_some(habit.peer)
    }

    /// True if a receive of a message from this peer should be announced. `is_first`: no other
    /// receive with its envelope is posted before it.
    pub(super) fn is_worth(&mut self, topic: Topic, peer: usize, is_first: bool) -> bool {
        if self.always {
            return true;
        }
        if !topic.short {
            return self.expected_from(&topic.key) == Some(peer);
        }
        if !self.tries_short || self.habits.len() >= KEYS && !self.habits.contains_key(&topic) {
            return false;
        }
        let habit = self.habits.entry(topic).or_insert_with(|| Habit::new(peer));
        if !is_first {
            habit.try_next();
        }
        habit.score > 0 || is_first && habit.try_again()
    }

    /// True if a further receive may be announced.
    pub(super) fn has_room(&self) -> bool {
        self.open < OPEN
    }

    /// Records that a receive is announced.
    pub(super) fn opened(&mut self) {
        self.open += 1;
    }

    /// Records that an announced receive has its message, or will have none.
    pub(super) fn closed(&mut self) {
        self.open -= 1;
    }

    /// Records that a long message with this envelope matched a receive that waited.
    pub(super) fn learn(&mut self, peer: usize, key: Key) {
        let topic = Topic { key, short: false };
        if self.habits.len() < KEYS || self.habits.contains_key(&topic) {
            self.active = true;
            let habit = self.habits.entry(topic).or_insert_with(|| Habit::new(peer));
            habit.score = (habit.score + 1).min(SURE);
        }
    }

    /// Records that a message was written to a receive that was announced.
    pub(super) fn confirm(&mut self, topic: &Topic) {
        if let Some(habit) = self.habits.get_mut(topic) {
            habit.score = (habit.score + 1).min(SURE);
            (habit.pause, habit.paused) = (0, 0);
        }
    }

    /// Records that the announcement of a receive was of no use.
    pub(super) fn disappoint(&mut self, topic: &Topic) {
        if let Some(habit) = self.habits.get_mut(topic) {
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
    const LONG: Topic = Topic {
        key: KEY,
        short: false,
    };
    const SHORT: Topic = Topic {
        key: KEY,
        short: true,
    };

    #[test]
    fn habits_decide_what_is_announced() {
        let mut announcer = Announcer::new(false, false);
        assert!(!announcer.is_active() && announcer.expected_from(&KEY).is_none());
        announcer.learn(4, KEY);
        assert!(announcer.is_worth(LONG, 4, true) && announcer.expects(&KEY));
        announcer.disappoint(&LONG);
        assert!(announcer.expected_from(&KEY).is_none());
        announcer.learn(4, KEY);
        announcer.confirm(&LONG);
        assert_eq!(announcer.expected_from(&KEY), Some(4));
        assert!(!announcer.is_worth(SHORT, 4, true), "one rail");
    }

    /// A ping-pong whose sender is always ahead.
    #[test]
    fn short_receives_in_vain_are_tried_ever_more_rarely() {
        let mut announcer = Announcer::new(true, false);
        let mut tried = Vec::new();
        for number in 0..10_000 {
            if announcer.is_worth(SHORT, 4, true) {
                tried.push(number);
                announcer.disappoint(&SHORT);
            }
        }
        assert_eq!(tried[..6], [16, 49, 114, 243, 500, 1013]);
        assert!(tried.len() < 20, "{tried:?}");
        assert!(!announcer.is_worth(LONG, 4, true), "another experience");
    }

    #[test]
    fn a_short_receive_of_use_is_announced_again_with_those_behind_it() {
        let mut announcer = Announcer::new(true, false);
        assert!(!announcer.is_worth(SHORT, 4, true) && !announcer.is_worth(SHORT, 4, false));
        // They wait together, so it is tried at once.
        assert!(announcer.is_worth(SHORT, 4, true) && announcer.is_worth(SHORT, 4, false));
        announcer.disappoint(&SHORT);
        announcer.confirm(&SHORT);
        announcer.confirm(&SHORT);
        assert!(announcer.is_worth(SHORT, 4, false) && announcer.expects(&KEY));
        announcer.disappoint(&SHORT);
        assert!(!announcer.is_worth(SHORT, 4, false));
        assert!(announcer.is_worth(SHORT, 4, true));
    }
}
