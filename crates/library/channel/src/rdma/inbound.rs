//! The receiver's account of the slots of a ring: where the next packet will be.

use super::layout::{
    Layout, SIZE_CLASSES, SizeClass, SlotContent, SlotInfo, TRAILER, WORD, completion_flag, padded,
    subpacket,
};
use super::outbound::SlotPlace;
use super::registered::Block;
use super::reported_packets::ReportedPackets;
use crate::Head;

/// The receiver's record of the slots of the ring from one peer.
pub(super) struct Inbound {
    layout: Layout,
    /// The offset of the ring in its memory block, in bytes.
    base: usize,
    /// The sequence number of the last packet that was consumed.
    consumed: u64,
    next: [u32; SIZE_CLASSES],
    /// The number of packets consumed from each size class since the last report of the tail.
    since: [u32; SIZE_CLASSES],
    /// A report of the tail is due when one part in `credit` of the slots of a size class has been
    /// consumed.
    credit: u32,
    tail_due: bool,
    /// The packets that completions have reported. `None`: on every rail the flag in memory shows
    /// that a packet is complete.
    reported: Option<ReportedPackets>,
    /// The packet to read next, if it is not the first of its slot.
    within: Option<Coalesced>,
}

/// One packet in a slot that holds several coalesced ones.
#[derive(Clone, Copy)]
struct Coalesced {
    place: SlotPlace,
    info: SlotInfo,
    /// The offset of the packet in the memory block, in bytes.
    at: usize,
}

/// A packet that has arrived in a ring's slot.
pub(super) struct Arrived {
    pub head: Head,
    /// The range of the packet's body in the memory block, in bytes.
    pub body: std::ops::Range<usize>,
    /// The lower half of the number of packets that the sender has consumed.
    pub tail: u32,
    /// The slot that is free once the packet has been handled. `None`: further packets in the slot
    /// follow.
    slot: Option<SlotPlace>,
    /// The slot of the next packet of the size class.
    next_slot: u32,
    next: Option<Coalesced>,
}

/// A description of ring contents that no correct peer writes.
pub(super) type Nonsense = String;

impl Inbound {
    /// The slots of a ring at offset `base` of its block. `unordered`: on some rail only
    /// completions show that a packet is complete.
    pub(super) fn new(layout: Layout, base: usize, credit: usize, unordered: bool) -> Inbound {
        Inbound {
            layout,
            base,
            consumed: 0,
            next: [0; SIZE_CLASSES],
            since: [0; SIZE_CLASSES],
            credit: credit.max(1) as u32,
            tail_due: false,
            reported: unordered.then(|| ReportedPackets::new(layout.slots())),
            within: None,
        }
    }

    /// The sequence number of the last packet that was consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// True if some packets of a slot have been consumed, and some not.
    pub(super) fn is_amid_slot(&self) -> bool {
        self.within.is_some()
    }

    /// Records a completion: the packet whose number has the lower bits `lower` is complete, in a
    /// slot of size class `class`.
    pub(super) fn completion(&mut self, class: usize, lower: u32) -> Result<(), Nonsense> {
        let consumed = self.consumed;
        let Some(reported) = &mut self.reported else {
            return Err("a completion for a packet that needs none".into());
        };
        if class >= self.layout.classes().len() {
            return Err(format!("a completion for a packet of size class {class}"));
        }
        match reported.insert(class, lower, consumed) {
            true => Ok(()),
            false => Err(format!(
                "a completion for packet {lower} (its lower bits) where {} is the next",
                consumed + 1
            )),
        }
    }

    /// True if the sender should soon be informed of the tail (the consumed packets).
    #[inline(always)]
    pub(super) fn tail_due(&self) -> bool {
        self.tail_due
    }

    /// Makes the ring's tail (the number of consumed packets) due to be sent.
    pub(super) fn demand_tail(&mut self) {
        self.tail_due = true;
    }

    /// Returns the number of consumed packets, and records that it is sent to the peer now.
    #[inline(always)]
    pub(super) fn report_tail(&mut self) -> u64 {
        self.tail_due = false;
        self.since = [0; SIZE_CLASSES];
        self.consumed
    }

    /// The next packet, if it has arrived.
    #[inline(always)]
    pub(super) fn poll(&mut self, block: &Block) -> Result<Option<Arrived>, Nonsense> {
        if self.within.is_some() {
            return self.next_within(block);
        }
        let expected = self.consumed + 1;
        for (number, class) in self.layout.classes().iter().enumerate() {
            let slot = self.next[number];
            let end = self.base + class.end(slot);
            if block.load(end - WORD) == expected {
                let place = SlotPlace {
                    class: number,
                    slot,
                };
                return self.open(block, place).map(Some);
            }
        }
        let Some(reported) = &self.reported else {
            return self.check_nothing(block, expected);
        };
        match reported.class(expected) {
            Some(class) => self.open_reported(block, class, expected).map(Some),
            None => Ok(None),
        }
    }

    /// Opens packet `expected`, which a completion has reported as complete in a slot of size class
    /// `class`.
    fn open_reported(
        &mut self,
        block: &Block,
        class: usize,
        expected: u64,
    ) -> Result<Arrived, Nonsense> {
        let slot = self.next[class];
        let end = self.base + self.layout.classes()[class].end(slot);
        match block.load(end - WORD) == completion_flag(expected) {
            true => self.open(block, SlotPlace { class, slot }),
            false => Err(format!(
                "a completion reports packet {expected}, but the packet is not there"
            )),
        }
    }

    /// For a poll that has found no packet: `None`, or an error if a flag is further ahead than the
    /// ring is long, which no correct peer writes.
    #[inline(always)]
    fn check_nothing(&self, block: &Block, expected: u64) -> Result<Option<Arrived>, Nonsense> {
        for (number, class) in self.layout.classes().iter().enumerate() {
            let flag = block.load(self.base + class.end(self.next[number]) - WORD);
            if flag > expected + self.layout.slots() as u64 {
                return Err(format!("packet {flag} where {expected} is the next"));
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn open(&mut self, block: &Block, place: SlotPlace) -> Result<Arrived, Nonsense> {
        let class = &self.layout.classes()[place.class];
        let trailer = self.base + class.end(place.slot) - TRAILER;
        let word = block.load(trailer + 3 * WORD);
        let info = SlotInfo::decode(word)
            .filter(|info| padded(info.len as usize) <= class.body())
            .ok_or_else(|| format!("a packet with the impossible info {word:#x}"))?;
        if info.content == SlotContent::Coalesced {
            let at = trailer - padded(info.len as usize);
            self.within = Some(Coalesced { place, info, at });
            let first = self.next_within(block)?;
            return first.ok_or_else(|| "a slot of coalesced packets without a packet".to_string());
        }
        let body = trailer - padded(info.len as usize);
        Ok(Arrived {
            head: std::array::from_fn(|word| block.load(trailer + word * WORD)),
            body: body..body + info.len as usize,
            tail: info.tail,
            slot: Some(place),
            next_slot: next_slot(class, place.slot, info)?,
            next: None,
        })
    }

    #[inline(never)]
    fn next_within(&mut self, block: &Block) -> Result<Option<Arrived>, Nonsense> {
        let Some(Coalesced { place, info, at }) = self.within else {
            return Ok(None);
        };
        let class = &self.layout.classes()[place.class];
        let trailer = self.base + class.end(place.slot) - TRAILER;
        let content = block.bytes(at, trailer - at);
        let (head, body, next) = subpacket(content, 0)
            .ok_or_else(|| format!("{} bytes of coalesced packets that are none", content.len()))?;
        let at_next = at + next;
        let more = at_next < trailer;
        Ok(Some(Arrived {
            head,
            body: at + body.start..at + body.end,
            tail: info.tail,
            slot: (!more).then_some(place),
            next_slot: next_slot(class, place.slot, info)?,
            next: more.then_some(Coalesced {
                place,
                info,
                at: at_next,
            }),
        }))
    }

    /// Checks the number of a packet that has arrived as a message: it must be the next one, and
    /// one that was granted.
    pub(super) fn check_message(&self, sequence: u64, granted: u64) -> Result<(), Nonsense> {
        let expected = self.consumed + 1;
        if sequence > granted {
            return Err(format!(
                "packet {sequence}, where packets up to {granted} were granted"
            ));
        }
        if sequence != expected {
            return Err(format!("packet {sequence} where {expected} is the next"));
        }
        Ok(())
    }

    /// Records that the packet of the next message has been handled.
    pub(super) fn consume_message(&mut self) {
        self.consumed += 1;
    }

    /// Records that packet `arrived` of the ring has been handled.
    #[inline(always)]
    pub(super) fn consume(&mut self, arrived: Arrived) {
        self.within = arrived.next;
        if let Some(place) = arrived.slot {
            let class = &self.layout.classes()[place.class];
            self.consumed += 1;
            if let Some(reported) = &mut self.reported {
                reported.remove(self.consumed);
            }
            self.next[place.class] = arrived.next_slot;
            self.since[place.class] += 1;
            self.tail_due |= self.since[place.class] * self.credit >= class.count;
        }
    }
}

/// The slot of the packet after the one in `slot` with this info.
#[inline(always)]
fn next_slot(class: &SizeClass, slot: u32, info: SlotInfo) -> Result<u32, Nonsense> {
    match info.next.map(u32::from) {
        None => Ok(class.after(slot)),
        Some(next) if next < class.count => Ok(next),
        Some(next) => Err(format!(
            "a packet says that slot {next} of {} is the next",
            class.count
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    /// Writes a packet with this flag, without a body, to slot `slot` of the small class.
    fn write(block: &Block, layout: &Layout, slot: u32, flag: u64) {
        write_to(block, layout, (0, slot), flag);
    }

    fn write_to(block: &Block, layout: &Layout, (class, slot): (usize, u32), flag: u64) {
        let info = SlotInfo {
            content: SlotContent::Packet,
            len: 0,
            tail: 0,
            next: None,
        };
        let end = layout.classes()[class].end(slot);
        block.store(end - 2 * WORD, info.encode());
        block.store(end - WORD, flag);
    }

    #[test]
    fn the_tail_is_due_after_a_part_of_the_ring() {
        let layout = Layout::of(&Config::default());
        let block = Block::new(layout.bytes);
        let mut inbound = Inbound::new(layout, 0, 4, false);
        let part = layout.classes()[0].count.div_ceil(4);
        for number in 0..part {
            assert!(!inbound.tail_due() && inbound.poll(&block).unwrap().is_none());
            write(&block, &layout, number, u64::from(number) + 1);
            let arrived = inbound.poll(&block).unwrap().unwrap();
            inbound.consume(arrived);
        }
        assert!(inbound.tail_due());
        assert_eq!(inbound.report_tail(), u64::from(part));
        assert!(!inbound.tail_due());
    }

    #[test]
    fn a_packet_counts_as_here_only_after_its_completion_where_that_is_the_rule() {
        let layout = Layout::of(&Config::default());
        let block = Block::new(layout.bytes);
        let mut inbound = Inbound::new(layout, 0, 4, true);
        write(&block, &layout, 0, completion_flag(1));
        assert!(inbound.poll(&block).unwrap().is_none());
        inbound.completion(0, 1).unwrap();
        inbound.completion(0, 1).unwrap();
        let arrived = inbound.poll(&block).unwrap().unwrap();
        inbound.consume(arrived);
        inbound.completion(0, 1).unwrap();
        assert!(inbound.poll(&block).unwrap().is_none(), "consumed already");
        inbound.completion(0, 2).unwrap();
        assert!(inbound.poll(&block).is_err(), "the second is not there");
        let far = layout.slots() as u32 + 2;
        assert!(inbound.completion(0, far).is_err(), "beyond the ring");
    }

    #[test]
    fn packets_of_ordered_and_unordered_rails_are_consumed_in_their_order() {
        let layout = Layout::of(&Config::default());
        let block = Block::new(layout.bytes);
        let mut inbound = Inbound::new(layout, 0, 4, true);
        write(&block, &layout, 1, 2);
        write(&block, &layout, 0, completion_flag(1));
        assert!(inbound.poll(&block).unwrap().is_none());
        inbound.completion(0, 1).unwrap();
        for _ in 0..2 {
            let arrived = inbound.poll(&block).unwrap().unwrap();
            inbound.consume(arrived);
        }
        assert_eq!(inbound.consumed(), 2);
    }

    /// The flag of a packet that is arriving and the one before it in its slot may make a mixture
    /// that equals the flag of a packet elsewhere.
    #[test]
    fn a_packet_is_taken_from_the_size_class_that_its_completion_names() {
        let layout = Layout::of(&Config::default());
        let block = Block::new(layout.bytes);
        let mut inbound = Inbound::new(layout, 0, 4, true);
        write(&block, &layout, 0, completion_flag(1));
        write_to(&block, &layout, (1, 0), completion_flag(1));
        inbound.completion(1, 1).unwrap();
        let arrived = inbound.poll(&block).unwrap().unwrap();
        assert_eq!(arrived.slot.map(|place| place.class), Some(1));
        let beyond = layout.classes().len();
        assert!(inbound.completion(beyond, 2).is_err(), "no such class");
    }

    #[test]
    fn a_packet_says_where_the_next_one_comes() {
        let layout = Layout::of(&Config::default());
        let block = Block::new(layout.bytes);
        let mut inbound = Inbound::new(layout, 0, 4, false);
        let tell = |slot: u32, flag: u64, next: u8| {
            write(&block, &layout, slot, flag);
            let info = SlotInfo {
                content: SlotContent::Packet,
                len: 0,
                tail: 0,
                next: Some(next),
            };
            let end = layout.classes()[0].end(slot);
            block.store(end - 2 * WORD, info.encode());
        };
        tell(0, 1, 7);
        tell(7, 2, 0);
        write(&block, &layout, 0, 3);
        tell(1, 4, layout.classes()[0].count as u8);
        // The first slot has the third packet by now.
        assert!(inbound.poll(&block).unwrap().is_none());
        tell(0, 1, 7);
        for _ in 0..2 {
            let arrived = inbound.poll(&block).unwrap().unwrap();
            inbound.consume(arrived);
        }
        write(&block, &layout, 0, 3);
        let arrived = inbound.poll(&block).unwrap().unwrap();
        inbound.consume(arrived);
        assert!(inbound.poll(&block).is_err(), "no such slot");
    }
}
