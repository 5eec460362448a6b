//! The notes of a rank about its calls of messages and collective operations, and their encoding in
//! 64-bit words.

mod encoding;

/// The number of 64-bit words of an encoded event.
pub const WORDS: usize = rma_check::WORDS;

/// The number of blocks in an [`Event::Blocks`], and of runs in an [`Event::Type`].
pub const PARTS: usize = 4;

/// The number of an operation that is not predefined, in [`Event::Collective`].
pub const USER_OP: u32 = 0xfff_ffff;

/// The first number of a datatype that is not predefined.
pub const FIRST_TYPE: u32 = 0x1000;

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

impl Data {
    /// No elements.
    pub const EMPTY: Data = Data { ty: 0, count: 0 };
}
