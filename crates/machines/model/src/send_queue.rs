//! The posted, incomplete messages of a queue pair, in the order of their posts.

use super::message::{Messages, NONE};

/// The send queue of a queue pair: a list of messages.
pub(crate) struct SendQueue {
    /// The number of the first message of the queue; `NONE` if the queue is empty.
    pub first: u32,
    /// The number of the last message of the queue; `NONE` if the queue is empty.
    last: u32,
    /// The number of the first message that the engine has not taken; `NONE` if there is none.
    pub to_begin: u32,
    /// The number of the first message that has not left; `NONE` if there is none.
    pub to_send: u32,
    /// The number of messages that have been posted, which is the sequence number of the next one.
    pub posted: u32,
    /// The number of slots freed so far. A slot is free once the completion that covers it has been
    /// polled.
    pub freed: u32,
}

impl SendQueue {
    /// A send queue without messages.
    pub(crate) const EMPTY: SendQueue = SendQueue {
        first: NONE,
        last: NONE,
        to_begin: NONE,
        to_send: NONE,
        posted: 0,
        freed: 0,
    };

    /// The number of slots of the send queue in use.
    pub(crate) fn used(&self) -> u32 {
        self.posted.wrapping_sub(self.freed)
    }

    /// Adds to the send queue a message that is posted now.
    #[inline]
    pub(crate) fn append(&mut self, messages: &mut Messages, number: u32) {
        self.posted = self.posted.wrapping_add(1);
        match std::mem::replace(&mut self.last, number) {
            NONE => self.first = number,
            last => messages[last].next = number,
        }
        if self.to_begin == NONE {
            self.to_begin = number;
        }
        if self.to_send == NONE {
            self.to_send = number;
        }
    }

    /// Removes the oldest message from the send queue.
    #[inline]
    pub(crate) fn take_first(&mut self, messages: &Messages) -> Option<u32> {
        let first = self.first;
        if first == NONE {
            return None;
        }
        self.first = messages[first].next;
        if self.first == NONE {
            self.last = NONE;
        }
        if self.to_begin == first {
            self.to_begin = self.first;
        }
        if self.to_send == first {
            self.to_send = self.first;
        }
        Some(first)
    }

    /// Marks all messages before this message as done, and the message itself if `itself`, except
    /// requests for data.
    pub(crate) fn settle_up_to(&self, messages: &mut Messages, number: u32, itself: bool) {
        let mut at = self.first;
        while at != NONE {
            let message = &mut messages[at];
            if at != number || itself {
                message.done |= !message.kind.is_answered();
            }
            if at == number {
                break;
            }
            at = message.next;
        }
    }

    /// Makes sending continue from this packet of the message `sequence`, if it is still
    /// incomplete.
    pub(crate) fn rewind(&mut self, messages: &mut Messages, sequence: u32, packet: u32) {
        let mut at = self.first;
        while at != NONE && (messages[at].sequence.wrapping_sub(sequence) as i32) < 0 {
            at = messages[at].next;
        }
        if at == NONE || !messages[at].begun {
            return;
        }
        let first = &mut messages[at];
        let from = match first.sequence == sequence {
            true => packet.min(first.packets() - 1),
            false => 0,
        };
        if first.sent < from {
            return;
        }
        self.to_send = at;
        (first.sent, first.answers) = (from, 0);
        at = first.next;
        while at != NONE && messages[at].begun {
            let message = &mut messages[at];
            (message.sent, message.answers) = (0, 0);
            at = message.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use sim::memory::Memory;

    use super::*;
    use crate::message::RequestKind;

    /// A queue of messages of three packets each, with the numbers of the messages.
    fn queue(messages: &mut Messages, count: u32) -> (SendQueue, Vec<u32>) {
        let mut queue = SendQueue::EMPTY;
        let post = |sequence| {
            let number = messages.take();
            let message = &mut messages[number];
            (message.sequence, message.len, message.mtu) = (sequence, 300, 100);
            message.begun = sequence < 3;
            message.sent = 3;
            queue.append(messages, number);
            number
        };
        let numbers = (0..count).map(post).collect();
        (queue, numbers)
    }

    #[test]
    fn messages_leave_in_the_order_of_their_posts() {
        let memory = Memory::private().unwrap();
        let mut messages = Messages::new(memory.shared());
        let (mut queue, numbers) = queue(&mut messages, 2);
        assert_eq!((queue.to_begin, queue.to_send), (numbers[0], numbers[0]));
        queue.to_begin = numbers[1];
        assert_eq!(queue.take_first(&messages), Some(numbers[0]));
        assert_eq!((queue.to_begin, queue.to_send), (numbers[1], numbers[1]));
        assert_eq!(queue.take_first(&messages), Some(numbers[1]));
        assert_eq!(queue.take_first(&messages), None);
        assert_eq!((queue.to_begin, queue.used()), (NONE, 2));
    }

    #[test]
    fn a_rewind_sends_again_what_has_begun() {
        let memory = Memory::private().unwrap();
        let mut messages = Messages::new(memory.shared());
        let (mut queue, numbers) = queue(&mut messages, 4);
        queue.to_send = numbers[3];
        queue.rewind(&mut messages, 1, 2);
        let sent: Vec<u32> = numbers.iter().map(|at| messages[*at].sent).collect();
        assert_eq!((queue.to_send, sent), (numbers[1], vec![3, 2, 0, 3]));
        // The responder has the whole message: its last packet, sent again, requests the
        // acknowledgement.
        messages[numbers[1]].sent = 3;
        queue.rewind(&mut messages, 1, u32::MAX);
        assert_eq!(messages[numbers[1]].sent, 2);
        queue.to_send = numbers[0];
        queue.rewind(&mut messages, 3, 0);
        assert_eq!(queue.to_send, numbers[0], "it has not begun");
    }

    #[test]
    fn an_acknowledgement_settles_all_but_requests_for_data() {
        let memory = Memory::private().unwrap();
        let mut messages = Messages::new(memory.shared());
        let (queue, numbers) = queue(&mut messages, 4);
        messages[numbers[1]].kind = RequestKind::Read;
        queue.settle_up_to(&mut messages, numbers[2], false);
        let done: Vec<bool> = numbers.iter().map(|at| messages[*at].done).collect();
        assert_eq!(done, [true, false, false, false]);
        queue.settle_up_to(&mut messages, numbers[2], true);
        assert!(messages[numbers[2]].done && !messages[numbers[3]].done);
    }
}
