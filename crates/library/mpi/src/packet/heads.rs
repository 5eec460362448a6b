//! The heads of packets: that of a message is its envelope, that of a control packet names a
//! request.

use channel::Head;
use datatype::Direction;

use super::RunClass;
use super::kinds::{Eager, Kind};
use crate::matching::Key;

/// The code of the kind of a whole eager message, the most frequent packet.
const WHOLE: u8 = Kind::Eager(Eager::Whole).code();
/// A flag in a head's first word, beside the kind: the body is copied out fastest from its end to
/// its start.
pub(super) const BACKWARD: u64 = 1 << 8;
/// The lowest bit of the class of the message's runs in a head's first word.
const RUNS: u32 = 9;

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) token: u32,
}

impl Envelope {
    #[inline(always)]
    pub(crate) fn encode(&self) -> Head {
        [
            u64::from(self.key.tag as u32) << 32 | u64::from(self.kind.code()),
            self.key.context,
            u64::from(self.token) << 32 | u64::from(self.key.source as u32),
        ]
    }

    /// The head of a whole message that requests no answer: the most frequent one, which is encoded
    /// without a test of its kind.
    #[inline(always)]
    pub(crate) fn whole(key: &Key) -> Head {
        [
            u64::from(key.tag as u32) << 32 | u64::from(WHOLE),
            key.context,
            u64::from(key.source as u32),
        ]
    }

    /// True if the head is that of a whole message that requests no answer.
    #[inline(always)]
    pub(crate) fn is_whole(head: Head) -> bool {
        head[0] as u8 == WHOLE
    }

    /// The envelope that the head of a message contains.
    #[inline(always)]
    pub(crate) fn key(head: Head) -> Key {
        Key {
            context: head[1],
            source: head[2] as u32 as i32,
            tag: (head[0] >> 32) as i32,
        }
    }

    /// Decodes a head. `None`: its code is that of no kind.
    #[inline(always)]
    pub(crate) fn decode(head: Head) -> Option<Envelope> {
        Some(Envelope {
            kind: Kind::from_code(head[0] as u8)?,
            key: Envelope::key(head),
            token: (head[2] >> 32) as u32,
        })
    }
}

/// The head of a packet whose body is to be copied out in this direction.
#[inline(always)]
pub(crate) fn copied_out([first, second, third]: Head, copy_out: Direction) -> Head {
    match copy_out {
        Direction::Backward => [first | BACKWARD, second, third],
        Direction::Forward => [first, second, third],
    }
}

/// The head of the first piece of a message whose send buffer has runs of this class.
pub(crate) fn in_runs([first, second, third]: Head, runs: RunClass) -> Head {
    [first | runs.code() << RUNS, second, third]
}

/// The class of the runs of the message whose first piece has this head.
pub(crate) fn runs_in(head: Head) -> RunClass {
    RunClass::from_code(head[0] >> RUNS)
}

/// The head of a control packet, which belongs to no communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) kind: Kind,
    pub(crate) token: u32,
    pub(crate) argument: u64,
}

impl Control {
    /// The head of a control packet about the request with number `token`, with argument 0.
    pub(crate) fn about(kind: impl Into<Kind>, token: u32) -> Control {
        Control {
            kind: kind.into(),
            token,
            argument: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn encode(&self) -> Head {
        [
            u64::from(self.kind.code()),
            self.argument,
            u64::from(self.token) << 32,
        ]
    }

    /// The argument that the head of a control packet contains.
    #[inline(always)]
    pub(crate) fn argument(head: Head) -> u64 {
        head[1]
    }
}

impl From<Envelope> for Head {
    fn from(envelope: Envelope) -> Head {
        envelope.encode()
    }
}

impl From<Control> for Head {
    fn from(control: Control) -> Head {
        control.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_as_it_was() {
        for &kind in Kind::ALL {
            for (tag, source) in [(0, 0), (i32::MAX, 17), (7, i32::MAX)] {
                let sent = Envelope {
                    kind,
                    key: Key {
                        context: u64::MAX - 3,
                        source,
                        tag,
                    },
                    token: 0x7fff_ffff,
                };
                for copy_out in [Direction::Forward, Direction::Backward] {
                    let head = copied_out(sent.encode(), copy_out);
                    for runs in RunClass::all() {
                        let head = in_runs(head, runs);
                        assert_eq!((Envelope::decode(head), runs_in(head)), (Some(sent), runs));
                    }
                }
            }
            let control = Control {
                argument: u64::MAX - 9,
                ..Control::about(kind, 5)
            };
            let decoded = Envelope::decode(control.encode()).unwrap();
            assert_eq!((decoded.kind, decoded.token), (kind, 5));
            assert_eq!(Control::argument(control.encode()), u64::MAX - 9);
        }
        assert_eq!(Envelope::decode([0, 0, 0]), None);
        assert_eq!(Envelope::decode([0x7f, 0, 0]), None);
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<u8> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
