//! The sender's account of the slots of a ring.
//!
//! Invariant: a slot is written again only once the receiver has consumed its last packet *and*
//! every posted write of that packet has completed. Until then a device may still read the slot.
//! Writes complete in order on one link, but in any order on several: `in_flight` keeps them apart.
//!
//! The slot of a size class's next packet is chosen when its last packet is sent, which says it to
//! the receiver. If any slot is free then, the chosen one is free, and otherwise it becomes free
//! first: a size class is full only if a packet is in flight in each of its slots.

use super::immediate::NUMBER_BITS;
use super::in_flight::InFlight;
use super::layout::{Layout, SIZE_CLASSES, SizeClass};

/// The position of a slot in a ring: size class and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotPlace {
    /// The size class of the slot.
    pub class: usize,
    /// The number of the slot in its class.
    pub slot: u32,
}

/// The sender's record of the slots of the ring to one peer.
pub(super) struct Outbound {
    layout: Layout,
    /// The sequence number of the last packet that was sent.
    last: u64,
    /// The number of the last packet that the receiver has consumed, as far as this rank has
    /// learned.
    tail: u64,
    in_flight: InFlight,
    classes: [ClassSlots; SIZE_CLASSES],
}

/// The sender's record of the slots of one size class.
#[derive(Default)]
struct ClassSlots {
    /// The slot that the next packet of the size class gets.
    next: u32,
    /// The sequence number of the last packet in each slot.
    packets: Box<[u64]>,
    /// The link that carried the packet in each slot.
    links: Box<[u8]>,
    since_signal: u32,
    /// The number of packets since the last lap.
    since_lap: u32,
}

/// A slot of the peer's ring that was claimed for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimedSlot {
    /// The sequence number of the packet.
    pub sequence: u64,
    /// The size class of the slot.
    pub class: usize,
    /// True if the write of the packet asks for a completion.
    pub signaled: bool,
    /// True if the size class has had as many packets as it has slots since the last lap.
    pub lap: bool,
    /// The slot of the next packet of the size class. `None`: the slot after this one.
    pub next: Option<u8>,
}

impl ClassSlots {
    /// The slot of the packet after the one in `slot`, which has just been claimed. Packets up to
    /// `free` are consumed and written.
    #[inline(always)]
    fn choose(&self, class: &SizeClass, slot: u32, free: u64) -> u32 {
        let after = class.after(slot);
        if !class.can_tell() {
            return after;
        }
        let is_free = |slot: u32| self.packets[slot as usize] <= free;
        match (is_free(0), is_free(after)) {
            (true, _) => 0,
            (false, true) => after,
            (false, false) => self.oldest(),
        }
    }

    /// The slot with the oldest packet.
    #[cold]
    fn oldest(&self) -> u32 {
        let packets = (0..).zip(&self.packets);
        let oldest = packets.min_by_key(|(_, sequence)| **sequence);
        oldest.map_or(0, |(slot, _)| slot)
    }
}

impl Outbound {
    pub(super) fn new(layout: Layout) -> Outbound {
        let mut classes: [ClassSlots; SIZE_CLASSES] = Default::default();
        for (slots, class) in classes.iter_mut().zip(layout.classes()) {
            slots.packets = vec![0; class.count as usize].into();
            slots.links = vec![0; class.count as usize].into();
        }
        Outbound {
            layout,
            last: 0,
            tail: 0,
            in_flight: InFlight::default(),
            classes,
        }
    }

    /// The sequence number of the last packet that was sent.
    #[inline(always)]
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Claims the sequence number of the next packet, which goes as a message and takes no slot.
    pub(super) fn claim_message(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The smallest free slot that takes a body of `len` bytes. The slot stays free.
    #[inline(always)]
    pub(super) fn find(&self, len: usize) -> Option<SlotPlace> {
        let free = self.tail.min(self.in_flight.completed());
        let classes = self.layout.classes().iter().zip(&self.classes).enumerate();
        for (number, (class, slots)) in classes {
            if len <= class.body() && slots.packets[slots.next as usize] <= free {
                return Some(SlotPlace {
                    class: number,
                    slot: slots.next,
                });
            }
        }
        None
    }

    /// True if a slot is free in the smallest size class that takes a body of `len` bytes.
    #[inline(always)]
    pub(super) fn fits_well(&self, len: usize) -> bool {
        let classes = self.layout.classes().iter().zip(&self.classes);
        let mut fits = classes.filter(|(class, _)| len <= class.body());
        let free = self.tail.min(self.in_flight.completed());
        fits.next()
            .is_some_and(|(_, slots)| slots.packets[slots.next as usize] <= free)
    }

    /// Claims a free slot, which `find` has returned, for the next packet, which `link` carries.
    #[inline(always)]
    pub(super) fn claim(&mut self, place: SlotPlace, link: usize) -> ClaimedSlot {
        let free = self.tail.min(self.in_flight.completed());
        let class = &self.layout.classes()[place.class];
        let slots = &mut self.classes[place.class];
        self.last += 1;
        slots.packets[place.slot as usize] = self.last;
        slots.links[place.slot as usize] = link as u8;
        self.in_flight.posted(link, self.last);
        slots.next = slots.choose(class, place.slot, free);
        slots.since_signal += 1;
        let signaled = slots.since_signal * 4 >= class.count;
        if signaled {
            slots.since_signal = 0;
        }
        slots.since_lap += 1;
        let lap = slots.since_lap == class.count;
        if lap {
            slots.since_lap = 0;
        }
        let told = slots.next != class.after(place.slot);
        ClaimedSlot {
            sequence: self.last,
            class: place.class,
            signaled,
            lap,
            next: told.then_some(slots.next as u8),
        }
    }

    /// Takes over the number of packets that the receiver has consumed, of which `lower` has the
    /// lower bits. False: no correct receiver reports that.
    #[inline(always)]
    pub(super) fn heard_tail(&mut self, lower: u32) -> bool {
        let ahead = lower.wrapping_sub(self.tail as u32) & NUMBER_BITS;
        let consumed = self.tail + u64::from(ahead);
        // The tail in memory may be older than one that came with a packet.
        let old = ahead > NUMBER_BITS / 2;
        if !old && consumed <= self.last {
            self.tail = consumed;
        }
        old || consumed <= self.last
    }

    /// Records that the writes on `link` of every packet up to `sequence` have completed.
    #[inline(always)]
    pub(super) fn heard_completed(&mut self, link: usize, sequence: u64) {
        self.in_flight.completed_on(link, sequence);
    }

    /// Records that the link is fenced, and that the receiver has consumed every packet up to
    /// `received`. Returns the packets that must be written again, because the link carried them
    /// last, in their order and with their slots.
    pub(super) fn fenced(&mut self, link: usize, received: u64) -> Vec<(u64, SlotPlace)> {
        self.tail = self.tail.max(received.min(self.last));
        self.in_flight.fenced(link);
        let mut lost = Vec::new();
        for (class, slots) in self.classes.iter().enumerate() {
            for (slot, &sequence) in slots.packets.iter().enumerate() {
                if sequence > self.tail && usize::from(slots.links[slot]) == link {
                    let slot = slot as u32;
                    lost.push((sequence, SlotPlace { class, slot }));
                    self.in_flight.replayed(link, sequence);
                }
            }
        }
        lost.sort_unstable_by_key(|(sequence, _)| *sequence);
        lost
    }

    /// Records that packet `sequence` in this slot is written again, on `link`.
    pub(super) fn replayed(&mut self, sequence: u64, place: SlotPlace, link: usize) {
        self.classes[place.class].links[place.slot as usize] = link as u8;
        self.in_flight.replay_completed(sequence);
        self.in_flight.replayed(link, sequence);
    }

    /// Records that the repeated write of packet `sequence` has completed.
    pub(super) fn replay_completed(&mut self, sequence: u64) {
        self.in_flight.replay_completed(sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    #[test]
    fn a_slot_is_free_only_when_consumed_and_written() {
        let layout = Layout::of(&Config::default());
        let mut out = Outbound::new(layout);
        let most = layout.max_body();
        let large = layout.classes()[2].count as u64;
        for sequence in 1..=large {
            let place = out.find(most).unwrap();
            assert_eq!(out.claim(place, 0).sequence, sequence);
        }
        assert_eq!(out.find(most), None);
        // A short packet still finds room in the small class.
        assert_eq!(out.find(10), Some(SlotPlace { class: 0, slot: 0 }));
        assert!(out.heard_tail(1));
        assert_eq!(out.find(most), None);
        out.heard_completed(0, 4);
        assert_eq!(out.find(most), Some(SlotPlace { class: 2, slot: 0 }));
        out.claim(out.find(most).unwrap(), 0);
        assert_eq!(out.find(most), None);
        assert!(out.heard_tail(0), "an old tail");
        assert!(!out.heard_tail(1000), "an impossible tail");
    }

    #[test]
    fn slots_are_taken_again_as_soon_as_they_are_free_and_a_class_is_full_with_all_in_flight() {
        let layout = Layout::of(&Config::default());
        let class = layout.classes()[1];
        let mut out = Outbound::new(layout);
        let (mut expected, mut in_flight, mut highest) = (0, 0, 0);
        let mut random = 1u64;
        for round in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005) | 1;
            // For a time the receiver is quick, and then slow.
            let is_quick = round / 1000 % 2 == 0;
            let consumed = match is_quick {
                true => in_flight,
                false => in_flight.min((random >> 33 & 1) as u32),
            };
            if consumed > 0 {
                in_flight -= consumed;
                let tail = out.last() - u64::from(in_flight);
                assert!(out.heard_tail(tail as u32));
                out.heard_completed(0, tail);
            }
            let place = out.find(class.body()).filter(|place| place.class == 1);
            assert_eq!(place.is_none(), in_flight == class.count);
            if let Some(place) = place {
                assert_eq!(place.slot, expected);
                let claimed = out.claim(place, 0);
                assert_eq!(
                    claimed.lap,
                    claimed.sequence.is_multiple_of(class.count.into())
                );
                expected = claimed.next.map_or(class.after(place.slot), u32::from);
                in_flight += 1;
                highest = if is_quick && round % 1000 > 500 {
                    highest.max(place.slot)
                } else {
                    0
                };
            }
            if round % 1000 == 999 && is_quick {
                assert!(
                    highest < 3,
                    "slot {highest} of a connection that is hardly used"
                );
            }
        }
    }
}
