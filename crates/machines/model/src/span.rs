//! Times in which a resource was busy, and what it did: the entries of a record.

use sim::Time;

use super::message::NONE;
pub use super::message::RequestKind;

/// The length of an encoded span, in words.
pub(crate) const SPAN: usize = 7;

/// A time in which a resource was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its start.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// The host of the resource.
    pub host: u32,
    /// The resource.
    pub track: Track,
    /// Its activity.
    pub activity: Activity,
    /// The number of bytes moved.
    pub bytes: u32,
    /// The number of the call's name, for a call.
    pub name: u32,
    /// The message that it served.
    pub of: Option<MessageRef>,
}

/// The message, and the packet of it, that a resource served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRef {
    /// Its number among the run's messages.
    pub message: u64,
    /// Its operation.
    pub kind: RequestKind,
    /// Its length, in bytes.
    pub len: u32,
    /// The rank that sent it.
    pub from: u32,
    /// The rank that receives it. A datagram may have none.
    pub to: Option<u32>,
    /// The number of the packet.
    pub packet: u32,
}

/// A resource of a host that can be busy: a row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A part of the HCA of a rail.
    Rail(u32, HcaPart),
    /// The MPI calls of a rank.
    Calls(u32),
    /// The processor of a rank.
    Processor(u32),
}

/// A part of an HCA or of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HcaPart {
    /// The bus from memory to the HCA; both directions if it is half duplex.
    BusDown,
    /// The bus from the HCA to memory.
    BusUp,
    /// The link from the HCA.
    LinkOut,
    /// The link to the HCA.
    LinkIn,
    /// The HCA's buffer.
    Buffer,
}

impl HcaPart {
    /// Every part.
    pub const ALL: [HcaPart; 5] = [
        HcaPart::BusDown,
        HcaPart::BusUp,
        HcaPart::LinkOut,
        HcaPart::LinkIn,
        HcaPart::Buffer,
    ];
}

/// An activity of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A processor: an MPI call of the program.
    Call,
    /// A processor: the program's own computing.
    Compute,
    /// A processor: a reading of the clock.
    Clock,
    /// A processor: a poll that finds nothing.
    Look,
    /// A processor: a poll for out-of-band messages.
    Listen,
    /// A processor: a short call.
    Short,
    /// A processor: the work of a send.
    Send,
    /// A processor: the work of a receive.
    Receive,
    /// A processor: a step of the protocol without a data packet.
    Control,
    /// A processor: a copy.
    Copy,
    /// A processor: a copy that waits for memory in use by others.
    Memory,
    /// A processor: a post of a request.
    Post,
    /// A processor: a post of a receive.
    PostReceive,
    /// A processor: a registration of memory.
    Register,
    /// A processor: a poll that finds a write.
    Notice,
    /// A processor: idle, in a wait.
    Wait,
    /// A bus: the fetch of a work request.
    WorkRequest,
    /// A bus: the request to read memory.
    Ask,
    /// A bus or buffer: a read of memory.
    Read,
    /// A bus or buffer: a write to memory.
    Write,
    /// A bus: the write of a completion.
    Completion,
    /// A link: a packet of a request.
    Packet,
    /// A link: a packet of a response.
    Answer,
    /// A link: an acknowledgement.
    Acknowledgement,
    /// A processor: work within MPI on the rank's own memory, such as the sums of a reduction.
    Local,
}

impl Activity {
    const ALL: [Activity; 25] = [
        Activity::Call,
        Activity::Compute,
        Activity::Clock,
        Activity::Look,
        Activity::Listen,
        Activity::Short,
        Activity::Send,
        Activity::Receive,
        Activity::Control,
        Activity::Copy,
        Activity::Memory,
        Activity::Post,
        Activity::PostReceive,
        Activity::Register,
        Activity::Notice,
        Activity::Wait,
        Activity::WorkRequest,
        Activity::Ask,
        Activity::Read,
        Activity::Write,
        Activity::Completion,
        Activity::Packet,
        Activity::Answer,
        Activity::Acknowledgement,
        Activity::Local,
    ];
}

const KINDS: [RequestKind; 5] = [
    RequestKind::Write,
    RequestKind::Send,
    RequestKind::Read,
    RequestKind::CompareAndSwap,
    RequestKind::FetchAndAdd,
];

impl Span {
    pub(crate) fn encode(&self) -> [u64; SPAN] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let track = match self.track {
            Track::Rail(rail, part) => rail << 4 | part as u32,
            Track::Calls(rank) => rank << 4 | 14,
            Track::Processor(rank) => rank << 4 | 15,
        };
        let (message, kind, len, from, to, packet) = match self.of {
            None => (0, 0, 0, 0, 0, 0),
            Some(of) => (
                of.message,
                of.kind as u32 + 1,
                of.len,
                of.from,
                of.to.unwrap_or(NONE),
                of.packet,
            ),
        };
        [
            self.start,
            self.end,
            message,
            pair(self.host, track),
            pair(self.bytes, len),
            pair(from, to),
            pair(self.name << 16 | kind << 8 | self.activity as u32, packet),
        ]
    }

    /// Decodes a span. None: the words encode none.
    pub(crate) fn decode(words: [u64; SPAN]) -> Option<Span> {
        let [start, end, message, place, sizes, ranks, rest] = words;
        let (high, low) = (|word: u64| (word >> 32) as u32, |word: u64| word as u32);
        let number = low(place) >> 4;
        let track = match low(place) & 15 {
            14 => Track::Calls(number),
            15 => Track::Processor(number),
            part => Track::Rail(number, *HcaPart::ALL.get(part as usize)?),
        };
        let (what, packet) = (high(rest), low(rest));
        let of = match what >> 8 & 255 {
            0 => None,
            kind => Some(MessageRef {
                message,
                kind: *KINDS.get(kind as usize - 1)?,
                len: low(sizes),
                from: high(ranks),
                to: Some(low(ranks)).filter(|to| *to != NONE),
                packet,
            }),
        };
        (start <= end).then_some(Span {
            start,
            end,
            host: high(place),
            track,
            activity: *Activity::ALL.get((what & 255) as usize)?,
            bytes: high(sizes),
            name: what >> 16,
            of,
        })
    }
}

/// An activity and its object.
#[derive(Clone, Copy)]
pub(crate) struct Doing {
    pub activity: Activity,
    pub bytes: u32,
    /// The message and its packet.
    pub message: u32,
    pub packet: u32,
}

impl Activity {
    /// The activity, without a message.
    pub(crate) fn alone(self, bytes: usize) -> Doing {
        self.packet(bytes as u64, NONE, 0)
    }

    pub(crate) fn packet(self, bytes: u64, message: u32, packet: u32) -> Doing {
        Doing {
            activity: self,
            bytes: bytes as u32,
            message,
            packet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_comes_back_as_it_was() {
        for (number, activity) in Activity::ALL.into_iter().enumerate() {
            assert_eq!(activity as usize, number);
            for (number, kind) in KINDS.into_iter().enumerate() {
                assert_eq!(kind as usize, number);
                for track in [
                    Track::Calls(9999),
                    Track::Processor(3),
                    Track::Rail(2, HcaPart::Buffer),
                ] {
                    let span = Span {
                        start: 5,
                        end: 1 << 50,
                        host: 77,
                        track,
                        activity,
                        bytes: 1 << 31,
                        name: 400,
                        of: (number != 1).then_some(MessageRef {
                            message: 1 << 40,
                            kind,
                            len: 12345,
                            from: 1,
                            to: (number == 2).then_some(2),
                            packet: 9,
                        }),
                    };
                    assert_eq!(Span::decode(span.encode()), Some(span));
                }
            }
        }
        assert_eq!(Span::decode([u64::MAX; SPAN]), None);
    }
}
