//! The sender's end of a ring: which slot the next packet takes.
//!
//! What must always hold: a slot is written again only once the receiver has taken what was in it *and* its write has
//! completed, for until then the device may still read it.

use super::layout::{Layout, SIZE_CLASSES};

/// The bits of a tail that travel.
pub const TAIL_BITS: u32 = u32::MAX >> 1;

/// A slot that the next packet may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub lane: usize,
    pub slot: u32,
}

/// Packets that are gathered in a slot and have not been posted.
#[derive(Clone, Copy, Debug)]
pub struct Gathering {
    pub place: Place,
    /// Bytes so far.
    pub len: usize,
}

pub struct Outbound {
    layout: Layout,
    /// Sequence number of the last packet posted.
    pub last: u64,
    /// The receiver has taken all up to here.
    tail: u64,
    /// The writes of all up to here have completed.
    completed: u64,
    turns: [Turn; SIZE_CLASSES],
    pub gathering: Option<Gathering>,
    /// What was gathered has ended a lap, and the sender has not been told.
    pub lapped: bool,
    /// A head pointer that is written once the data before it has been: of which packet, and where.
    pub head_due: Option<(u64, usize)>,
}

#[derive(Default)]
struct Turn {
    next: u32,
    /// What is, or was, in each slot.
    packets: Box<[u64]>,
    since_signal: u32,
}

impl Outbound {
    pub fn new(layout: Layout) -> Outbound {
        let mut turns: [Turn; SIZE_CLASSES] = Default::default();
        for (turn, lane) in turns.iter_mut().zip(layout.lanes()) {
            turn.packets = vec![0; lane.count as usize].into();
        }
        Outbound {
            layout,
            last: 0,
            tail: 0,
            completed: 0,
            turns,
            gathering: None,
            lapped: false,
            head_due: None,
        }
    }

    /// The smallest slot that a body of `len` bytes fits into and that is free. Nothing is taken yet.
    #[inline(always)]
    pub fn find(&self, len: usize) -> Option<Place> {
        let free = self.tail.min(self.completed);
        let lanes = self.layout.lanes().iter().zip(&self.turns).enumerate();
        for (lane, (shape, turn)) in lanes {
            if len <= shape.body() && turn.packets[turn.next as usize] <= free {
                return Some(Place {
                    lane,
                    slot: turn.next,
                });
            }
        }
        None
    }

    /// Is a slot free of the size that is meant for such a body?
    #[inline(always)]
    pub fn fits_well(&self, len: usize) -> bool {
        let lanes = self.layout.lanes().iter().zip(&self.turns);
        let mut fits = lanes.filter(|(shape, _)| len <= shape.body());
        let free = self.tail.min(self.completed);
        fits.next()
            .is_some_and(|(_, turn)| turn.packets[turn.next as usize] <= free)
    }

    /// The next packet takes this slot: its sequence number, whether it should ask for a completion, and whether the
    /// lane has been gone round.
    #[inline(always)]
    pub fn take(&mut self, place: Place) -> Taken {
        let shape = &self.layout.lanes()[place.lane];
        let turn = &mut self.turns[place.lane];
        self.last += 1;
        turn.packets[place.slot as usize] = self.last;
        turn.next = shape.after(place.slot);
        turn.since_signal += 1;
        let signaled = turn.since_signal * 4 >= shape.count;
        if signaled {
            turn.since_signal = 0;
        }
        Taken {
            sequence: self.last,
            signaled,
            lap: turn.next == 0,
        }
    }

    /// The receiver says, by the lower bits of the number, how many packets it has taken. False: it cannot have.
    #[inline(always)]
    pub fn heard_tail(&mut self, lower: u32) -> bool {
        let ahead = lower.wrapping_sub(self.tail as u32) & TAIL_BITS;
        let taken = self.tail + u64::from(ahead);
        // An old word may be read after a newer one that came with a packet.
        let old = ahead > TAIL_BITS / 2;
        if !old && taken <= self.last {
            self.tail = taken;
        }
        old || taken <= self.last
    }

    #[inline(always)]
    pub fn heard_completed(&mut self, sequence: u64) {
        self.completed = self.completed.max(sequence);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub sequence: u64,
    pub signaled: bool,
    pub lap: bool,
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    #[test]
    fn a_slot_is_free_only_when_taken_and_written() {
        let layout = Layout::of(&Config::default());
        let mut out = Outbound::new(layout);
        let most = layout.max_body();
        let large = layout.lanes()[2].count as u64;
        for sequence in 1..=large {
            let place = out.find(most).unwrap();
            assert_eq!(out.take(place).sequence, sequence);
        }
        assert_eq!(out.find(most), None);
        // A short one still has room, in the small lane.
        assert_eq!(out.find(10), Some(Place { lane: 0, slot: 0 }));
        assert!(out.heard_tail(1));
        assert_eq!(out.find(most), None);
        out.heard_completed(4);
        assert_eq!(out.find(most), Some(Place { lane: 2, slot: 0 }));
        out.take(out.find(most).unwrap());
        assert_eq!(out.find(most), None);
        assert!(out.heard_tail(0), "old news");
        assert!(!out.heard_tail(1000), "news that cannot be");
    }
}
