//! The immediates of a ring's writes, where only completions tell that bytes are visible.
//!
//! Memory cannot show it: a word may be a mixture of the bytes of two successive tails, or of the
//! flags of two successive packets of a slot. Such a mixture can be the flag of a third packet,
//! which is in another size class. So a tail travels in the immediate alone, and the immediate of a
//! packet names the packet's size class.
//!
//! ```text
//! bit 31: tail | bits 29, 30: size class | bits 0 to 28: lower bits of the number
//! ```

use super::layout::SIZE_CLASSES;

const NUMBER: u32 = 29;
/// The mask of the bits of a packet's number that travel in immediates and tails.
pub(super) const NUMBER_BITS: u32 = (1 << NUMBER) - 1;
const TAIL: u32 = 1 << 31;

const _: () = assert!(SIZE_CLASSES <= 4, "a size class has two bits");

/// The contents of the immediate that a write to a ring carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Immediate {
    /// A tail: the lower bits of the number of packets that the sender of the write has consumed.
    Tail(u32),
    /// The packet with this number: all its bytes are visible.
    Whole {
        /// The size class of the packet's slot.
        class: usize,
        /// The lower bits of the packet's sequence number.
        lower: u32,
    },
}

impl Immediate {
    pub(super) fn encode(self) -> u32 {
        match self {
            Immediate::Tail(tail) => TAIL | (tail & NUMBER_BITS),
            Immediate::Whole { class, lower } => (class as u32) << NUMBER | (lower & NUMBER_BITS),
        }
    }

    pub(super) fn decode(immediate: u32) -> Immediate {
        let number = immediate & NUMBER_BITS;
        match immediate & TAIL {
            0 => Immediate::Whole {
                class: (immediate >> NUMBER) as usize,
                lower: number,
            },
            _ => Immediate::Tail(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_immediate_has_a_tail_or_a_packet_and_its_class() {
        for number in [0, 1, NUMBER_BITS] {
            let tail = Immediate::Tail(number);
            assert_eq!(Immediate::decode(tail.encode()), tail);
            for class in 0..SIZE_CLASSES {
                let whole = Immediate::Whole {
                    class,
                    lower: number,
                };
                assert_eq!(Immediate::decode(whole.encode()), whole);
            }
        }
        assert_eq!(Immediate::Tail(u32::MAX).encode(), TAIL | NUMBER_BITS);
    }
}
