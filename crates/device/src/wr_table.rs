//! Which request a completion is about.
//!
//! A device gives back a number of 64 bits that was posted with a request, and where the request has failed nothing else
//! can be relied on: not even whether it was a send or a receive. So the number at the device is ours: it names a queue
//! and a place in it, and the user's number waits there. That also tells which requests are over when one of them
//! completes, as those before it asked for no completion.

use crate::Completed;

/// What a request's number at the device says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub kind: Kind,
    /// How often the queue pair had been reset: what was posted before is forgotten.
    pub life: u8,
    /// The queue pair, or the shared receive queue.
    pub queue: u32,
    pub slot: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Send = 0,
    Receive = 1,
    Shared = 2,
}

/// Queue pairs, or shared receive queues, that a device can have had.
pub const QUEUES: usize = 1 << 22;

impl Number {
    #[inline]
    pub fn encode(self) -> u64 {
        let upper = (self.kind as u64) << 30 | u64::from(self.life) << 22 | u64::from(self.queue);
        upper << 32 | u64::from(self.slot)
    }

    #[inline]
    pub fn decode(number: u64) -> Number {
        let upper = number >> 32;
        Number {
            kind: match upper >> 30 {
                0 => Kind::Send,
                1 => Kind::Receive,
                _ => Kind::Shared,
            },
            life: (upper >> 22) as u8,
            queue: upper as u32 & (QUEUES as u32 - 1),
            slot: number as u32,
        }
    }
}

/// What was posted to a send queue and has not been heard of. Such requests complete in order.
pub struct Sends {
    places: Box<[Sent]>,
    /// The oldest, and the next to be posted.
    first: u32,
    next: u32,
    depth: u32,
}

#[derive(Clone, Copy)]
pub struct Sent {
    pub id: u64,
    pub of: Completed,
    /// What a read or an atomic brings.
    pub bytes: u32,
}

impl Sends {
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

    #[inline]
    pub fn is_full(&self) -> bool {
        self.next.wrapping_sub(self.first) >= self.depth
    }

    /// The place that the next request would take.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// The next request has been posted.
    #[inline]
    pub fn post(&mut self, sent: Sent) {
        *self.at(self.next) = sent;
        self.next = self.next.wrapping_add(1);
    }

    /// A request is over, and all before it. None: it was over before.
    #[inline]
    pub fn retire(&mut self, slot: u32) -> Option<Sent> {
        if slot.wrapping_sub(self.first) >= self.next.wrapping_sub(self.first) {
            return None;
        }
        self.first = slot.wrapping_add(1);
        Some(*self.at(slot))
    }

    pub fn clear(&mut self) {
        (self.first, self.next) = (0, 0);
    }
}

/// The user's numbers of receives, which of a shared queue may be used up in any order.
pub struct Receives {
    ids: Box<[u64]>,
    free: Vec<u32>,
}

impl Receives {
    pub fn new(depth: usize) -> Receives {
        let mut receives = Receives {
            ids: vec![0; depth].into(),
            free: Vec::with_capacity(depth),
        };
        receives.clear();
        receives
    }

    /// A place for a receive. None: all are taken.
    #[inline]
    pub fn take(&mut self, id: u64) -> Option<u32> {
        let slot = self.free.pop()?;
        self.ids[slot as usize] = id;
        Some(slot)
    }

    /// The receive at this place is over: whose it was.
    #[inline]
    pub fn give_back(&mut self, slot: u32) -> Option<u64> {
        let id = *self.ids.get(slot as usize)?;
        self.free.push(slot);
        Some(id)
    }

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
        for kind in [Kind::Send, Kind::Receive, Kind::Shared] {
            for (life, queue, slot) in [(0, 0, 0), (255, QUEUES as u32 - 1, u32::MAX), (7, 12, 3)] {
                let number = Number {
                    kind,
                    life,
                    queue,
                    slot,
                };
                assert_eq!(Number::decode(number.encode()), number);
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
