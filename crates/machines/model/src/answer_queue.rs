//! The queue of a queue pair's pending responses: requests of its peer that wait for a response
//! with data, in order.

use super::message::{Messages, NONE};

/// The queue of responses that a queue pair has still to send.
pub(crate) struct AnswerQueue {
    pub first: u32,
    last: u32,
}

impl AnswerQueue {
    /// A queue without pending responses.
    pub(crate) const EMPTY: AnswerQueue = AnswerQueue {
        first: NONE,
        last: NONE,
    };

    pub(crate) fn append(&mut self, messages: &mut Messages, number: u32) {
        match std::mem::replace(&mut self.last, number) {
            NONE => self.first = number,
            last => messages[last].next_answer = number,
        }
        messages[number].next_answer = NONE;
    }

    pub(crate) fn contains(&self, messages: &Messages, number: u32) -> bool {
        let mut at = self.first;
        while at != NONE && at != number {
            at = messages[at].next_answer;
        }
        at != NONE
    }

    /// Removes a request. False: the queue does not contain it.
    pub(crate) fn remove(&mut self, messages: &mut Messages, number: u32) -> bool {
        let (mut before, mut at) = (NONE, self.first);
        while at != NONE && at != number {
            (before, at) = (at, messages[at].next_answer);
        }
        if at == NONE {
            return false;
        }
        let next = messages[number].next_answer;
        match before {
            NONE => self.first = next,
            before => messages[before].next_answer = next,
        }
        if self.last == number {
            self.last = before;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_can_be_removed_from_anywhere() {
        let memory = sim::memory::Memory::private().unwrap();
        let mut messages = Messages::new(memory.shared());
        let mut queue = AnswerQueue::EMPTY;
        let numbers = [(); 4].map(|()| messages.take());
        numbers[..3]
            .iter()
            .for_each(|at| queue.append(&mut messages, *at));
        assert!(queue.remove(&mut messages, numbers[2]));
        assert!(!queue.remove(&mut messages, numbers[3]));
        queue.append(&mut messages, numbers[3]);
        assert!(queue.remove(&mut messages, numbers[0]));
        assert_eq!(queue.first, numbers[1]);
        let left = numbers.map(|at| queue.contains(&messages, at));
        assert_eq!(left, [false, true, false, true]);
    }
}
