//! The table of posted work requests, by which the request of a completion is found.
//!
//! A completion returns the 64-bit number that was posted with its request, and after a failure
//! nothing else in it is reliable: not even whether the request was a send or a receive. The posted
//! number is therefore an index of ours: a queue and a slot of the table, which stores the caller's
//! number. The slot also shows which earlier, unsignaled requests a completion ends.

use crate::Completed;

/// The number by which the device reports a request that was posted to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrNumber {
    /// The kind of queue to which the request was posted.
    pub kind: QueueKind,
    /// The number of resets of the queue pair before the post. Requests from before the last reset
    /// are ignored.
    pub life: u8,
    /// The number of the queue pair or of the shared receive queue, as `kind` says.
    pub queue: u32,
    /// The slot of the request in the table of its queue.
    pub slot: u32,
}

/// The kind of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// The send queue of a queue pair.
    Send = 0,
    /// The receive queue of a queue pair.
    Receive = 1,
    /// A shared receive queue.
    Shared = 2,
}

/// The greatest number of queue pairs, or of shared receive queues, that a device creates in its
/// lifetime.
pub const QUEUES: usize = 1 << 22;

impl WrNumber {
    /// The number as the 64 bits that are posted.
    #[inline]
    pub fn encode(self) -> u64 {
        let upper = (self.kind as u64) << 30 | u64::from(self.life) << 22 | u64::from(self.queue);
        upper << 32 | u64::from(self.slot)
    }

    /// The number from a completion's 64 bits.
    #[inline]
    pub fn decode(number: u64) -> WrNumber {
        let upper = number >> 32;
        WrNumber {
            kind: match upper >> 30 {
                0 => QueueKind::Send,
                1 => QueueKind::Receive,
                _ => QueueKind::Shared,
            },
            life: (upper >> 22) as u8,
            queue: upper as u32 & (QUEUES as u32 - 1),
            slot: number as u32,
        }
    }
}

/// The posted and incomplete requests of one send queue. They complete in order.
pub struct Sends {
    places: Box<[Sent]>,
    /// The slot of the oldest request in the queue.
    first: u32,
    /// The slot of the next request to be posted.
    next: u32,
    depth: u32,
}

/// A request posted to a send queue.
#[derive(Clone, Copy)]
pub struct Sent {
    /// The caller's number of the request.
    pub id: u64,
    /// The kind of request.
    pub of: Completed,
    /// The length of a read's or an atomic's result, in bytes.
    pub bytes: u32,
}

impl Sends {
    /// An empty queue for `depth` requests.
    pub fn new(depth: usize) -> Sends {
        let none = Sent {
            id: 0,
            of: Completed::Send,
            bytes: 0,
        };
        Sends {
            places: vec![none; depth.next_power_of_two()].into(),
            first: 0,
            next: 0,
            depth: depth as u32,
        }
    }

    #[inline]
    fn at(&mut self, slot: u32) -> &mut Sent {
        let mask = self.places.len() - 1;
        &mut self.places[slot as usize & mask]
    }

    /// True if the queue is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.next.wrapping_sub(self.first) >= self.depth
    }

    /// The slot that the next posted request gets.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Records the request that has just been posted with the number of slot [`next`](Sends::next).
    #[inline]
    pub fn post(&mut self, sent: Sent) {
        *self.at(self.next) = sent;
        self.next = self.next.wrapping_add(1);
    }

    /// Ends the request in a slot and all before it, and returns it. `None`: it had ended before.
    #[inline]
    pub fn retire(&mut self, slot: u32) -> Option<Sent> {
        if slot.wrapping_sub(self.first) >= self.next.wrapping_sub(self.first) {
            return None;
        }
        self.first = slot.wrapping_add(1);
        Some(*self.at(slot))
    }

    /// Forgets all requests, after a reset.
    pub fn clear(&mut self) {
        (self.first, self.next) = (0, 0);
    }
}

/// The caller's numbers of a queue's posted receives. Receives of a shared queue complete in any
/// order.
pub struct Receives {
    ids: Box<[u64]>,
    free: Vec<u32>,
}

impl Receives {
    /// An empty queue for `depth` receives.
    pub fn new(depth: usize) -> Receives {
        let mut receives = Receives {
            ids: vec![0; depth].into(),
            free: Vec::with_capacity(depth),
        };
        receives.clear();
        receives
    }

    /// Claims a slot for a receive, and returns it. `None`: the queue is full.
    #[inline]
    pub fn take(&mut self, id: u64) -> Option<u32> {
        let slot = self.free.pop()?;
        self.ids[slot as usize] = id;
        Some(slot)
    }

    /// Removes the receive in a slot, and returns the caller's number. `None`: there is no such
    /// slot.
    #[inline]
    pub fn give_back(&mut self, slot: u32) -> Option<u64> {
        let id = *self.ids.get(slot as usize)?;
        self.free.push(slot);
        Some(id)
    }

    /// Forgets all receives, after a reset.
    pub fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.ids.len() as u32).rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(id: u64) -> Sent {
        Sent {
            id,
            of: Completed::Write,
            bytes: 0,
        }
    }

    #[test]
    fn a_number_says_what_was_put_into_it() {
        for kind in [QueueKind::Send, QueueKind::Receive, QueueKind::Shared] {
            for (life, queue, slot) in [(0, 0, 0), (255, QUEUES as u32 - 1, u32::MAX), (7, 12, 3)] {
                let number = WrNumber {
                    kind,
                    life,
                    queue,
                    slot,
                };
                assert_eq!(WrNumber::decode(number.encode()), number);
            }
        }
    }

    #[test]
    fn one_that_is_over_says_so_of_those_before() {
        let mut sends = Sends::new(3);
        sends.first = u32::MAX - 1;
        sends.next = u32::MAX - 1;
        let slots: Vec<u32> = (0..3)
            .map(|id| {
                let slot = sends.next();
                sends.post(sent(id));
                slot
            })
            .collect();
        assert!(sends.is_full());
        assert_eq!(sends.retire(slots[1]).unwrap().id, 1);
        assert!(sends.retire(slots[0]).is_none(), "it is over already");
        assert!(
            sends.retire(slots[2].wrapping_add(1)).is_none(),
            "never posted"
        );
        assert!(!sends.is_full());
        assert_eq!(sends.retire(slots[2]).unwrap().id, 2);
    }

    #[test]
    fn a_receive_has_its_place_until_it_is_over() {
        let mut receives = Receives::new(2);
        let (one, two) = (receives.take(10).unwrap(), receives.take(20).unwrap());
        assert_eq!(receives.take(30), None);
        assert_eq!(receives.give_back(two), Some(20));
        assert_eq!(receives.take(30), Some(two));
        assert_eq!(receives.give_back(one), Some(10));
        assert_eq!(receives.give_back(99), None);
    }
}
