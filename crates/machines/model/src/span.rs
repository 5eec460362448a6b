//! Spans: times in which a resource was busy, and its activity. They are the entries of a record.

use sim::Time;

use super::message::NONE;
pub use super::message::RequestKind;

/// The length of an encoded span, in words of 64 bits.
pub(crate) const SPAN: usize = 7;

/// A time in which a resource was busy, with its activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The time at which the activity started.
    pub start: Time,
    /// The time at which the activity ended.
    pub end: Time,
    /// The number of the resource's host.
    pub host: u32,
    /// The resource that was busy.
    pub track: Track,
    /// The activity in which the resource was busy.
    pub activity: Activity,
    /// The number of bytes that the resource moved.
    pub bytes: u32,
    /// For an MPI call, the number of its name.
    pub name: u32,
    /// The message that the resource served, if it served one.
    pub of: Option<MessageRef>,
}

/// The message, and the packet of it, that a resource served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRef {
    /// The number of the message among all messages of the run.
    pub message: u64,
    /// The operation of the message.
    pub kind: RequestKind,
    /// The length of the message, in bytes.
    pub len: u32,
    /// The rank that sent the message.
    pub from: u32,
    /// The rank that receives the message. A datagram may have no receiver.
    pub to: Option<u32>,
    /// The number of the packet in the message.
    pub packet: u32,
}

/// A resource of a host that can be busy: a row of a trace viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A part of the HCA of a rail: the number of the rail, and the part.
    Rail(u32, HcaPart),
    /// The MPI calls of the rank with this number.
    Calls(u32),
    /// The processor of the rank with this number.
    Processor(u32),
}

/// A part of an HCA or of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HcaPart {
    /// The bus from memory to the HCA; both directions if it is half duplex.
    BusDown,
    /// The bus from the HCA to memory.
    BusUp,
    /// The link from the HCA to its switch.
    LinkOut,
    /// The link from the switch to the HCA.
    LinkIn,
    /// The buffer within the HCA.
    Buffer,
}

impl HcaPart {
    /// All parts, in the order of a trace viewer's rows.
    pub const ALL: [HcaPart; 5] = [
        HcaPart::BusDown,
        HcaPart::BusUp,
        HcaPart::LinkOut,
        HcaPart::LinkIn,
        HcaPart::Buffer,
    ];
}

/// An activity of a resource. Each variant names the kind of resource first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A processor: executing an MPI call of the program.
    Call,
    /// A processor: executing the program's own computing.
    Compute,
    /// A processor: reading the clock.
    Clock,
    /// A processor: polling, and finding nothing.
    Look,
    /// A processor: polling for out-of-band messages.
    Listen,
    /// A processor: executing a short call of the library.
    Short,
    /// A processor: the library's work for a send, without the post of its work request.
    Send,
    /// A processor: the library's work for a receive.
    Receive,
    /// A processor: a step of the protocol without a data packet.
    Control,
    /// A processor: copying within the host's memory.
    Copy,
    /// A processor: waiting, during a copy, for memory that others use.
    Memory,
    /// A processor: posting a work request.
    Post,
    /// A processor: posting a receive.
    PostReceive,
    /// A processor: registering memory.
    Register,
    /// A processor: polling, and finding a write or completions.
    Notice,
    /// A processor: idle in a wait.
    Wait,
    /// A bus: the fetch of a work request.
    WorkRequest,
    /// A bus: the HCA's request to read memory.
    Ask,
    /// A bus or buffer: a read of memory.
    Read,
    /// A bus or buffer: a write to memory.
    Write,
    /// A bus: the write of a completion queue entry.
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

    /// Decodes a span. `None`: the words are not an encoded span.
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

/// An activity with its size, its message and its packet.
#[derive(Clone, Copy)]
pub(crate) struct Doing {
    pub activity: Activity,
    pub bytes: u32,
    /// The number of the message; `NONE` without one.
    pub message: u32,
    /// The number of the packet in the message.
    pub packet: u32,
}

impl Activity {
    /// This activity with `bytes` bytes, without a message.
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
