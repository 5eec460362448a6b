//! Where packets lie in a ring: the arithmetic that both ends share.
//!
//! A ring has a few *lanes*, each a row of slots of one size: small ones for the many short packets, large ones for
//! the few long ones. A packet takes the next slot of the smallest lane that it fits into (of a larger one if that is
//! full), and stands in it *right-aligned*: body, then the trailer, whose last word is the flag.
//!
//! ```text
//! slot:  | unused | body, padded to words | head: 3 words | info | flag |
//! ```
//!
//! What must always hold:
//! - the flag of a slot lies at a fixed place, its end, where nothing but flags is ever written; it is the packet's
//!   sequence number, of which no two are the same: so no stale byte can look like a new packet and nothing is zeroed;
//! - both ends find slots by these rules alone: no offset travels, and none has to be trusted.

use super::config::{Config, Design};
use crate::Head;

/// Head, info and flag.
pub const TRAILER: usize = 40;
pub const WORD: usize = 8;
const LINE: usize = 64;
const SMALL_SLOT: usize = 256;
const MEDIUM_SLOT: usize = 4096 + LINE;
const MIDDLE_SLOT: usize = 2048 + LINE;
/// The most lanes that a ring has.
pub const SIZE_CLASSES: usize = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// Of the first slot, in bytes from the beginning of the ring.
    offset: usize,
    /// Bytes of a slot.
    slot: usize,
    pub count: u32,
}

impl SizeClass {
    /// Where the slot ends.
    #[inline(always)]
    pub fn end(&self, slot: u32) -> usize {
        self.offset + (slot as usize + 1) * self.slot
    }

    pub fn start(&self, slot: u32) -> usize {
        self.offset + slot as usize * self.slot
    }

    /// The longest body.
    #[inline(always)]
    pub fn body(&self) -> usize {
        self.slot - TRAILER
    }

    #[inline(always)]
    pub fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.count { 0 } else { slot + 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    lanes: [SizeClass; SIZE_CLASSES],
    used: usize,
    pub bytes: usize,
}

impl Layout {
    pub fn of(config: &Config) -> Layout {
        let mut layout = Layout {
            lanes: [SizeClass::default(); SIZE_CLASSES],
            used: 0,
            bytes: 0,
        };
        let ring = config.ring_bytes.max(8 << 10);
        layout.add(SMALL_SLOT, (ring / 8 / SMALL_SLOT).clamp(4, 256));
        match config.design {
            Design::Basic | Design::Piggyback => {
                // A long body is one put, as long as the ring allows.
                layout.add(MEDIUM_SLOT, ring / 8 / MEDIUM_SLOT);
                layout.add((ring - layout.bytes) / LINE * LINE, 1);
            }
            Design::Pipeline | Design::ZeroCopy => {
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
            self.lanes[self.used] = SizeClass {
                offset: self.bytes,
                slot,
                count: count as u32,
            };
            self.used += 1;
            self.bytes += slot * count;
        }
    }

    #[inline(always)]
    pub fn lanes(&self) -> &[SizeClass] {
        &self.lanes[..self.used]
    }

    /// The longest body that any slot takes.
    #[inline]
    pub fn max_body(&self) -> usize {
        self.lanes[self.used - 1].body()
    }

    /// Slots of all lanes.
    pub fn slots(&self) -> usize {
        self.lanes().iter().map(|lane| lane.count as usize).sum()
    }
}

/// What is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Packet = 1,
    /// Several packets, each behind a head of its own.
    Packets = 2,
}

/// The word between head and flag: what is in the slot, how long it is, and how many packets of the other way have been
/// taken (the lower half of that number).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub content: Content,
    pub len: u32,
    pub tail: u32,
}

const LEN_BITS: u32 = 28;

impl Info {
    #[inline(always)]
    pub fn encode(self) -> u64 {
        u64::from(self.tail) << 32 | (self.content as u64) << LEN_BITS | u64::from(self.len)
    }

    #[inline(always)]
    pub fn decode(word: u64) -> Option<Info> {
        let content = match word >> LEN_BITS & 15 {
            1 => Content::Packet,
            2 => Content::Packets,
            _ => return None,
        };
        Some(Info {
            content,
            len: word as u32 & ((1 << LEN_BITS) - 1),
            tail: (word >> 32) as u32,
        })
    }
}

/// Room that a body takes.
#[inline(always)]
pub fn padded(len: usize) -> usize {
    len.next_multiple_of(WORD)
}

/// Head and length of a packet among several in a slot.
pub const SUBHEAD: usize = 4 * WORD;

pub fn subhead(head: Head, len: usize) -> [u8; SUBHEAD] {
    let mut bytes = [0; SUBHEAD];
    for (to, word) in bytes
        .chunks_exact_mut(WORD)
        .zip([len as u64, head[0], head[1], head[2]])
    {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The packet at `at` among several: its head, where its body lies, and where the next packet begins.
pub fn subpacket(content: &[u8], at: usize) -> Option<(Head, std::ops::Range<usize>, usize)> {
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
    fn lanes_lie_beside_each_other_and_slots_end_on_lines() {
        for design in [
            Design::Basic,
            Design::Piggyback,
            Design::Pipeline,
            Design::ZeroCopy,
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
                for lane in layout.lanes() {
                    assert_eq!(lane.start(0), next);
                    assert!(lane.end(0).is_multiple_of(LINE) && lane.slot.is_multiple_of(LINE));
                    next = lane.end(lane.count - 1);
                }
                assert!(next == layout.bytes && next <= ring_bytes, "{layout:?}");
                assert!(
                    layout
                        .lanes()
                        .windows(2)
                        .all(|two| two[0].slot < two[1].slot)
                );
            }
        }
    }

    #[test]
    fn what_stands_in_words_comes_back() {
        for content in [Content::Packet, Content::Packets] {
            let info = Info {
                content,
                len: (1 << LEN_BITS) - 1,
                tail: u32::MAX - 1,
            };
            assert_eq!(Info::decode(info.encode()), Some(info));
        }
        assert_eq!(Info::decode(0), None);
        let mut content = subhead([1, 2, 3], 5).to_vec();
        content.extend(b"hello\0\0\0");
        content.extend(subhead([4, 5, 6], 0));
        assert_eq!(subpacket(&content, 0), Some(([1, 2, 3], 32..37, 40)));
        assert_eq!(subpacket(&content, 40), Some(([4, 5, 6], 72..72, 72)));
        assert_eq!(subpacket(&content, 48), None);
        assert_eq!(subpacket(&subhead([0; 3], usize::MAX), 0), None);
    }
}
