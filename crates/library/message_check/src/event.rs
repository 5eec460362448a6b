//! The notes of a rank about its calls of messages and collective operations, and their encoding in
//! 64-bit words.

/// The number of 64-bit words of an encoded event.
pub const WORDS: usize = rma_check::WORDS;

/// The number of blocks in an [`Event::Blocks`], and of runs in an [`Event::Type`].
pub const PARTS: usize = 4;

/// The number of an operation that is not predefined, in [`Event::Collective`].
pub const USER_OP: u32 = 0xfff_ffff;

/// The first number of a datatype that is not predefined.
pub const FIRST_TYPE: u32 = 0x1000;

/// The code of the first event. Lower codes belong to events of `rma_check`.
const FIRST: u64 = 64;

/// An event that a rank notes for the search for errors of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The rank is a member of a communicator.
    Comm {
        /// The number of the communicator, equal on all members.
        comm: u64,
        /// The number of members, of both groups of an intercommunicator.
        size: u32,
        /// The number of the rank in its group.
        me: u32,
        /// The origin of the communicator.
        origin: Origin,
        /// True for an intercommunicator.
        is_inter: bool,
    },
    /// Runs of the signature of a datatype that is not predefined, in order.
    Type {
        /// The number that the rank gives to the datatype.
        ty: u32,
        /// True if these are the first runs of the datatype.
        is_first: bool,
        /// True if the signature has more runs than are noted.
        is_cut: bool,
        /// The runs. A run of no elements is none.
        runs: [Run; PARTS],
    },
    /// The rank calls a collective operation. The form (blocking, nonblocking, persistent) is in
    /// the call's name.
    Collective {
        /// The number of the communicator.
        comm: u64,
        /// The root: its number in the communicator, or its world rank in an intercommunicator.
        root: Option<u32>,
        /// The handle of a predefined operation, [`USER_OP`], or 0 without an operation.
        op: u32,
        /// The elements that the rank gives.
        gives: Option<Data>,
        /// The elements that the rank gets, or for each block of them.
        gets: Option<Data>,
        /// A digest of the counts that all ranks must pass alike; 0 without such counts.
        counts: u32,
    },
    /// Blocks of the collective operation that the rank notes next.
    Blocks {
        /// True for blocks that the rank gives.
        are_given: bool,
        /// The member whose block is the first of these.
        first: u32,
        /// The blocks of consecutive members.
        blocks: [Option<Data>; PARTS],
    },
    /// The rank calls a procedure that sends.
    Send {
        /// The number of the communicator.
        comm: u64,
        /// The world rank of the receiver.
        to: u32,
        /// The tag of the message.
        tag: i32,
        /// The elements that are sent.
        data: Data,
        /// True if the procedure makes a persistent request and sends nothing yet.
        is_init: bool,
    },
    /// The rank calls a procedure that receives.
    Receive {
        /// The number of the communicator.
        comm: u64,
        /// The world rank of the sender; `None`: any.
        from: Option<u32>,
        /// The tag; `None`: any.
        tag: Option<i32>,
        /// The elements for which there is room.
        data: Data,
        /// True if the procedure makes a persistent request and receives nothing yet.
        is_init: bool,
        /// True if the call sends as well, which it has noted before.
        is_second: bool,
    },
    /// A matched probe has claimed a message.
    Claimed {
        /// The number of the communicator.
        comm: u64,
        /// The world rank of the sender.
        from: u32,
        /// The tag of the message.
        tag: i32,
        /// The handle of the message.
        message: u32,
    },
    /// The rank calls a procedure that receives a claimed message.
    ReceiveClaimed {
        /// The handle of the message.
        message: u32,
        /// The elements for which there is room.
        data: Data,
    },
    /// The present call has made a request for what it has noted.
    Request {
        /// The handle of the request.
        request: u32,
        /// True for a persistent request, which is inactive.
        is_persistent: bool,
    },
    /// The rank starts a persistent request.
    Start {
        /// The handle of the request.
        request: u32,
    },
    /// A request is complete, or the receive of the present call if `request` is 0.
    Done {
        /// The handle of the request.
        request: u32,
        /// The world rank of the sender and the tag of a received message.
        met: Option<(u32, i32)>,
        /// The end of the request.
        end: End,
    },
    /// The present call has failed.
    Failed {
        /// True if it has matched a message, so that the message is gone.
        has_matched: bool,
    },
    /// The call has made an object.
    Made {
        /// The kind of the object.
        kind: Kind,
        /// The handle of the object.
        handle: u32,
    },
    /// The call has freed an object.
    Freed {
        /// The kind of the object.
        kind: Kind,
        /// The handle of the object.
        handle: u32,
    },
    /// The rank calls `MPI_Finalize`.
    Finalize,
}

/// The origin of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A call has made the communicator.
    Made,
    /// The communicator is `MPI_COMM_WORLD`.
    World,
    /// The communicator is `MPI_COMM_SELF`.
    Alone,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The operation is complete.
    Complete,
    /// The operation has been cancelled.
    Cancelled,
    /// The program has freed the request.
    Freed,
}

/// The kind of an object that a program frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A communicator.
    Comm,
    /// A datatype.
    Datatype,
    /// A file.
    File,
    /// A group.
    Group,
    /// A reduction operation.
    Op,
    /// A window.
    Win,
}

impl Kind {
    /// All kinds of objects.
    pub const ALL: [Kind; 6] = [
        Kind::Comm,
        Kind::Datatype,
        Kind::File,
        Kind::Group,
        Kind::Op,
        Kind::Win,
    ];

    /// The word for an object of this kind, with its article.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Comm => "a communicator",
            Kind::Datatype => "a datatype",
            Kind::File => "a file",
            Kind::Group => "a group",
            Kind::Op => "an operation",
            Kind::Win => "a window",
        }
    }
}

/// A number of elements of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The handle of a predefined datatype, or the number that the rank gives to another one.
    pub ty: u32,
    /// The number of elements.
    pub count: u64,
}

/// Consecutive elements of one basic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Run {
    /// The handle of the basic type.
    pub basic: u16,
    /// The number of elements.
    pub count: u64,
}

const COUNT_BITS: u32 = 40;
const RUN_BITS: u32 = 48;
const NONE: u64 = u64::MAX;

impl Data {
    /// No elements.
    pub const EMPTY: Data = Data { ty: 0, count: 0 };

    fn encode(self) -> u64 {
        u64::from(self.ty) << COUNT_BITS | self.count.min((1 << COUNT_BITS) - 1)
    }

    fn decode(word: u64) -> Data {
        Data {
            ty: (word >> COUNT_BITS) as u32,
            count: word & ((1 << COUNT_BITS) - 1),
        }
    }
}

fn optional(data: Option<Data>) -> u64 {
    data.map_or(NONE, Data::encode)
}

fn present(word: u64) -> Option<Data> {
    (word != NONE).then(|| Data::decode(word))
}

impl Run {
    fn encode(self) -> u64 {
        u64::from(self.basic) << RUN_BITS | self.count.min((1 << RUN_BITS) - 1)
    }

    fn decode(word: u64) -> Run {
        Run {
            basic: (word >> RUN_BITS) as u16,
            count: word & ((1 << RUN_BITS) - 1),
        }
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The code, the flags and the operands of an event.
type Parts = (u64, u64, [u64; WORDS - 1]);

impl Event {
    /// Encodes the event of the rank with world rank `rank`.
    pub fn encode(&self, rank: u32) -> [u64; WORDS] {
        let (code, flags, [a, b, c, d, e]) = self.calls().unwrap_or_else(|| self.states());
        let head = (FIRST + code) << 56 | flags << 32 | u64::from(rank);
        [head, a, b, c, d, e]
    }

    /// The parts of an event that describes a communicator, a datatype or the arguments of a call.
    fn calls(&self) -> Option<Parts> {
        Some(match *self {
            Event::Comm {
                comm,
                size,
                me,
                origin,
                is_inter,
            } => {
                let flags = origin as u64 | u64::from(is_inter) << 2;
                (0, flags, [comm, pair(size, me), 0, 0, 0])
            }
            Event::Type {
                ty,
                is_first,
                is_cut,
                runs,
            } => {
                let [a, b, c, d] = runs.map(Run::encode);
                let flags = u64::from(is_first) | u64::from(is_cut) << 1;
                (1, flags, [ty.into(), a, b, c, d])
            }
            Event::Collective {
                comm,
                root,
                op,
                gives,
                gets,
                counts,
            } => {
                let place = pair(root.unwrap_or(u32::MAX), op);
                let [gives, gets] = [gives, gets].map(optional);
                (2, 0, [comm, place, gives, gets, counts.into()])
            }
            Event::Blocks {
                are_given,
                first,
                blocks,
            } => {
                let [a, b, c, d] = blocks.map(optional);
                (3, are_given.into(), [first.into(), a, b, c, d])
            }
            Event::Send {
                comm,
                to,
                tag,
                data,
                is_init,
            } => {
                let place = pair(to, tag as u32);
                (4, is_init.into(), [comm, place, data.encode(), 0, 0])
            }
            Event::Receive {
                comm,
                from,
                tag,
                data,
                is_init,
                is_second,
            } => {
                let flags = u64::from(is_init) | u64::from(is_second) << 1;
                let place = pair(from.unwrap_or(u32::MAX), tag.unwrap_or(-1) as u32);
                (5, flags, [comm, place, data.encode(), 0, 0])
            }
            Event::Claimed {
                comm,
                from,
                tag,
                message,
            } => (6, 0, [comm, pair(from, tag as u32), message.into(), 0, 0]),
            Event::ReceiveClaimed { message, data } => {
                (7, 0, [message.into(), data.encode(), 0, 0, 0])
            }
            _ => return None,
        })
    }

    /// The parts of any other event.
    fn states(&self) -> Parts {
        let one = |code, flags: u64, word: u32| (code, flags, [word.into(), 0, 0, 0, 0]);
        match *self {
            Event::Request {
                request,
                is_persistent,
            } => one(8, is_persistent.into(), request),
            Event::Start { request } => one(9, 0, request),
            Event::Done { request, met, end } => {
                let flags = end as u64 | u64::from(met.is_some()) << 2;
                let (from, tag) = met.unwrap_or_default();
                (10, flags, [request.into(), pair(from, tag as u32), 0, 0, 0])
            }
            Event::Failed { has_matched } => one(11, has_matched.into(), 0),
            Event::Made { kind, handle } => one(12, kind as u64, handle),
            Event::Freed { kind, handle } => one(13, kind as u64, handle),
            _ => one(14, 0, 0),
        }
    }

    /// Decodes an event. Returns it with the world rank of its rank. `None`: the words are no
    /// event.
    pub fn decode(words: [u64; WORDS]) -> Option<(u32, Event)> {
        let [head, a, b, c, d, e] = words;
        let (flags, rank) = (head >> 32 & 0xff_ffff, head as u32);
        let flag = |bit: u64| flags >> bit & 1 == 1;
        let (high, low) = ((b >> 32) as u32, b as u32);
        let kind = Kind::ALL.get(flags as usize).copied();
        let event = match (head >> 56).checked_sub(FIRST)? {
            0 => Event::Comm {
                comm: a,
                size: high,
                me: low,
                origin: match flags & 3 {
                    0 => Origin::Made,
                    1 => Origin::World,
                    _ => Origin::Alone,
                },
                is_inter: flag(2),
            },
            1 => Event::Type {
                ty: a as u32,
                is_first: flag(0),
                is_cut: flag(1),
                runs: [b, c, d, e].map(Run::decode),
            },
            2 => Event::Collective {
                comm: a,
                root: Some(high).filter(|root| *root != u32::MAX),
                op: low,
                gives: present(c),
                gets: present(d),
                counts: e as u32,
            },
            3 => Event::Blocks {
                are_given: flag(0),
                first: a as u32,
                blocks: [b, c, d, e].map(present),
            },
            4 => Event::Send {
                comm: a,
                to: high,
                tag: low as i32,
                data: Data::decode(c),
                is_init: flag(0),
            },
            5 => Event::Receive {
                comm: a,
                from: Some(high).filter(|from| *from != u32::MAX),
                tag: Some(low as i32).filter(|tag| *tag >= 0),
                data: Data::decode(c),
                is_init: flag(0),
                is_second: flag(1),
            },
            6 => Event::Claimed {
                comm: a,
                from: high,
                tag: low as i32,
                message: c as u32,
            },
            7 => Event::ReceiveClaimed {
                message: a as u32,
                data: Data::decode(b),
            },
            8 => Event::Request {
                request: a as u32,
                is_persistent: flag(0),
            },
            9 => Event::Start { request: a as u32 },
            10 => Event::Done {
                request: a as u32,
                met: flag(2).then_some((high, low as i32)),
                end: match flags & 3 {
                    0 => End::Complete,
                    1 => End::Cancelled,
                    _ => End::Freed,
                },
            },
            11 => Event::Failed {
                has_matched: flag(0),
            },
            12 => Event::Made {
                kind: kind?,
                handle: a as u32,
            },
            13 => Event::Freed {
                kind: kind?,
                handle: a as u32,
            },
            14 => Event::Finalize,
            _ => return None,
        };
        Some((rank, event))
    }
}
