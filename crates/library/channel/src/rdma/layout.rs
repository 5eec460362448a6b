//! The layout of a ring: the arithmetic that both ends share.
//!
//! A ring has a few *size classes*, each a row of slots of one size: small slots for the many short
//! packets, large slots for the few long ones. A packet takes the next slot of the smallest size
//! class that it fits into, or of a larger class if that one is full. It stands in the slot
//! *right-aligned*: body, then the trailer, whose last word is the flag.
//!
//! ```text
//! slot:  | unused | body, padded to words | head: 3 words | info | flag |
//! ```
//!
//! Invariants:
//! - the flag of a slot is its last word, where nothing but flags is ever written. It is the
//!   packet's sequence number, and no two packets have the same: no stale byte can pass for a new
//!   packet, and nothing is zeroed;
//! - both ends find slots by these rules alone: no offset travels, and none has to be trusted. A
//!   packet may say the number of the slot of the next one of its size class, which the receiver
//!   checks.
//!
//! The next slot is the one behind, or the first of its size class as soon as that is free: packets
//! that are consumed quickly take a few slots again and again, so that a connection touches a part
//! of its rings, and finds it in the caches.

use super::config::Config;
use crate::Head;
use knobs::RdmaDesign;

/// The offset of the word to which the peer writes its tail, in the memory that the peer writes to.
pub(super) const TAIL: usize = 0;
/// The offset of the word from which this rank sends its own tail, in the memory that the peer
/// writes to.
pub(super) const OWN: usize = 8;
/// The offset of the ring, in the memory that the peer writes to.
pub(super) const RING: usize = 64;

/// The length in bytes of the trailer of a slot: head, info and flag.
pub(super) const TRAILER: usize = 40;
/// The length of a word of a ring in bytes.
pub(super) const WORD: usize = 8;
const LINE: usize = 64;
const SMALL_SLOT: usize = 256;
const MEDIUM_SLOT: usize = 4096 + LINE;
const MIDDLE_SLOT: usize = 2048 + LINE;
/// The most size classes of a ring.
pub(super) const SIZE_CLASSES: usize = 3;

/// A row of slots of equal size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SizeClass {
    /// The offset of the first slot, in bytes from the beginning of the ring.
    offset: usize,
    /// The length of a slot in bytes.
    slot: usize,
    /// The number of slots that the size class has.
    pub count: u32,
}

impl SizeClass {
    /// The offset of the end of a slot in the ring.
    #[inline(always)]
    pub(super) fn end(&self, slot: u32) -> usize {
        self.offset + (slot as usize + 1) * self.slot
    }

    /// The offset of the beginning of a slot in the ring.
    pub(super) fn start(&self, slot: u32) -> usize {
        self.offset + slot as usize * self.slot
    }

    /// True if a packet in a slot can say the number of the next one's slot.
    #[inline(always)]
    pub(super) fn can_tell(&self) -> bool {
        self.count <= 1 << NEXT_BITS && self.slot < 1 << TELLING_LEN_BITS
    }

    /// The longest body that a slot takes, in bytes.
    #[inline(always)]
    pub(super) fn body(&self) -> usize {
        self.slot - TRAILER
    }

    /// The slot after `slot` in its size class; after the last one, the first.
    #[inline(always)]
    pub(super) fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.count { 0 } else { slot + 1 }
    }
}

/// The layout of a ring: its size classes, each a row of slots of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    classes: [SizeClass; SIZE_CLASSES],
    used: usize,
    /// The length of the ring in bytes.
    pub bytes: usize,
}

impl Layout {
    /// The layout of the rings for this configuration.
    pub(super) fn of(config: &Config) -> Layout {
        let mut layout = Layout {
            classes: [SizeClass::default(); SIZE_CLASSES],
            used: 0,
            bytes: 0,
        };
        let ring = config.ring_bytes.max(8 << 10);
        layout.add(SMALL_SLOT, (ring / 8 / SMALL_SLOT).clamp(4, 256));
        match config.design {
            RdmaDesign::Basic | RdmaDesign::Piggyback => {
                // A long body travels in one write, as long as the ring allows.
                layout.add(MEDIUM_SLOT, ring / 8 / MEDIUM_SLOT);
                layout.add((ring - layout.bytes) / LINE * LINE, 1);
            }
            RdmaDesign::Pipeline | RdmaDesign::ZeroCopy => {
                if config.chunk > MIDDLE_SLOT && ring >= 16 * MIDDLE_SLOT {
                    layout.add(MIDDLE_SLOT, ring / 4 / MIDDLE_SLOT);
                }
                let rest = ring - layout.bytes;
                let slot = (config.chunk + TRAILER).next_multiple_of(LINE);
                let slot = slot.clamp(2 * SMALL_SLOT, rest / 2 / LINE * LINE);
                layout.add(slot, rest / slot);
            }
        }
        layout
    }

    fn add(&mut self, slot: usize, count: usize) {
        if count > 0 {
            self.classes[self.used] = SizeClass {
                offset: self.bytes,
                slot,
                count: count as u32,
            };
            self.used += 1;
            self.bytes += slot * count;
        }
    }

    /// The size classes, the smallest first.
    #[inline(always)]
    pub(super) fn classes(&self) -> &[SizeClass] {
        &self.classes[..self.used]
    }

    /// The longest body that a slot of any class takes, in bytes.
    #[inline]
    pub(super) fn max_body(&self) -> usize {
        self.classes[self.used - 1].body()
    }

    /// The number of slots of all classes.
    pub(super) fn slots(&self) -> usize {
        self.classes()
            .iter()
            .map(|class| class.count as usize)
            .sum()
    }
}

/// The kind of contents of a ring's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotContent {
    /// One packet.
    Packet = 1,
    /// Several coalesced packets, each behind its own subhead.
    Coalesced = 2,
}

/// The info word in a slot's trailer, between head and flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotInfo {
    pub content: SlotContent,
    /// The length of the slot's contents in bytes.
    pub len: u32,
    /// The lower half of the number of packets that the sender has consumed from the ring of the
    /// other direction. In a message instead: that of the number of the last message that the
    /// sender grants.
    pub tail: u32,
    /// The slot of the next packet of this size class. `None`: the slot after this one.
    pub next: Option<u8>,
}

const LEN_BITS: u32 = 28;
/// The bits of the number of the next packet's slot, which are the upper ones of the length.
const NEXT_BITS: u32 = 8;
const TELLING_LEN_BITS: u32 = LEN_BITS - NEXT_BITS;
/// The bit of the content that marks an info with the next packet's slot.
const TELLS: u64 = 4;

impl SlotInfo {
    #[inline(always)]
    pub(super) fn encode(self) -> u64 {
        let told = self.next.map_or(0, |next| {
            TELLS << LEN_BITS | u64::from(next) << TELLING_LEN_BITS
        });
        let content = (self.content as u64) << LEN_BITS;
        u64::from(self.tail) << 32 | told | content | u64::from(self.len)
    }

    #[inline(always)]
    pub(super) fn decode(word: u64) -> Option<SlotInfo> {
        let kind = word >> LEN_BITS & 15;
        let content = match kind & !TELLS {
            1 => SlotContent::Packet,
            2 => SlotContent::Coalesced,
            _ => return None,
        };
        let tells = kind & TELLS != 0;
        let len_bits = if tells { TELLING_LEN_BITS } else { LEN_BITS };
        Some(SlotInfo {
            content,
            len: word as u32 & ((1 << len_bits) - 1),
            tail: (word >> 32) as u32,
            next: tells.then_some((word >> TELLING_LEN_BITS) as u8),
        })
    }
}

/// The flag of packet `sequence` where bytes become visible in any order. While only some of its
/// bytes are visible, the word equals no number that the receiver expects, whatever the slot had
/// before: the lower half only clears bytes of smaller numbers, and each byte of the upper half has
/// a bit that numbers below 2^39 lack. The receiver waits for the completion, which names the size
/// class: a mixture of two such flags may equal a third.
#[inline(always)]
pub(super) const fn completion_flag(sequence: u64) -> u64 {
    let bits = sequence & 0x7f
        | sequence << 1 & 0x7f00
        | sequence << 2 & 0x7f_0000
        | sequence << 3 & 0x7f00_0000;
    (bits | 0x8080_8080) << 32
}

/// The length that a body of `len` bytes takes in a slot, in bytes.
#[inline(always)]
pub(super) fn padded(len: usize) -> usize {
    len.next_multiple_of(WORD)
}

/// The length of a subhead in bytes.
pub(super) const SUBHEAD: usize = 4 * WORD;

/// The subhead of a coalesced packet: its length and its head.
pub(super) fn subhead(head: Head, len: usize) -> [u8; SUBHEAD] {
    let mut bytes = [0; SUBHEAD];
    for (to, word) in bytes
        .chunks_exact_mut(WORD)
        .zip([len as u64, head[0], head[1], head[2]])
    {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The packet at `at` in a slot of coalesced packets: its head, the range of its body, and the
/// offset of the next packet. `None`: these bytes are no packet.
pub(super) fn subpacket(
    content: &[u8],
    at: usize,
) -> Option<(Head, std::ops::Range<usize>, usize)> {
    let bytes = content.get(at..at.checked_add(SUBHEAD)?)?;
    let word =
        |number: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[number * WORD + i]));
    let len = usize::try_from(word(0))
        .ok()
        .filter(|len| *len <= content.len())?;
    let body = at + SUBHEAD..at + SUBHEAD + len;
    let next = at + SUBHEAD + padded(len);
    (next <= content.len()).then_some(([word(1), word(2), word(3)], body, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_completion_flag_is_no_expected_number() {
        let masks = |placed: u8| {
            let bytes: [u8; 8] = std::array::from_fn(|byte| (placed >> byte & 1) * 0xff);
            u64::from_le_bytes(bytes)
        };
        let lap = 200;
        for near in [lap, 1 << 16, 1 << 28, 1 << 32] {
            for sequence in near - lap + 1..near + lap {
                let flag = completion_flag(sequence);
                assert_ne!(flag, completion_flag(sequence + 1));
                let earlier = sequence.saturating_sub(lap);
                for before in [0, earlier, completion_flag(earlier)] {
                    for placed in 1..=u8::MAX {
                        let word = before & !masks(placed) | flag & masks(placed);
                        let expected = earlier + 1..=sequence;
                        assert!(!expected.contains(&word), "{word:#x} for {sequence}");
                    }
                }
            }
        }
    }

    #[test]
    fn size_classes_lie_beside_each_other_and_slots_end_on_lines() {
        for design in [
            RdmaDesign::Basic,
            RdmaDesign::Piggyback,
            RdmaDesign::Pipeline,
            RdmaDesign::ZeroCopy,
        ] {
            for (ring_bytes, chunk) in [(8 << 10, 1024), (256 << 10, 16 << 10), (100_000, 1 << 20)]
            {
                let config = Config {
                    design,
                    ring_bytes,
                    chunk,
                    ..Config::default()
                };
                let layout = Layout::of(&config);
                let mut next = 0;
                for class in layout.classes() {
                    assert_eq!(class.start(0), next);
                    assert!(class.end(0).is_multiple_of(LINE) && class.slot.is_multiple_of(LINE));
                    next = class.end(class.count - 1);
                }
                assert!(next == layout.bytes && next <= ring_bytes, "{layout:?}");
                assert!(
                    layout
                        .classes()
                        .windows(2)
                        .all(|two| two[0].slot < two[1].slot)
                );
            }
        }
    }

    #[test]
    fn infos_and_subheads_come_back_as_they_were() {
        for content in [SlotContent::Packet, SlotContent::Coalesced] {
            for (next, bits) in [(None, LEN_BITS), (Some(201), TELLING_LEN_BITS)] {
                let info = SlotInfo {
                    content,
                    len: (1 << bits) - 1,
                    tail: u32::MAX - 1,
                    next,
                };
                assert_eq!(SlotInfo::decode(info.encode()), Some(info));
            }
        }
        assert_eq!(SlotInfo::decode(0), None);
        let mut content = subhead([1, 2, 3], 5).to_vec();
        content.extend(b"hello\0\0\0");
        content.extend(subhead([4, 5, 6], 0));
        assert_eq!(subpacket(&content, 0), Some(([1, 2, 3], 32..37, 40)));
        assert_eq!(subpacket(&content, 40), Some(([4, 5, 6], 72..72, 72)));
        assert_eq!(subpacket(&content, 48), None);
        assert_eq!(subpacket(&subhead([0; 3], usize::MAX), 0), None);
    }
}
