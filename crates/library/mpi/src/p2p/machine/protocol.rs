//! The protocols, the settings that bound them, and the facts about a message on which the choice
//! depends.

use channel::{Capabilities, End, MessageCosts, PathCosts, Preferred};
use knobs::{ProtocolChoice, Rendezvous};

/// The protocol by which a message is moved: the method and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The sender writes to a buffer that the receiver has announced.
    ReadyToReceive,
    /// One packet, at once.
    Eager,
    /// Several packets with nothing between them, at once.
    EagerPieces,
    /// Both ranks copy, after an announcement.
    CooperativeCopy,
    /// The receiver reads the sender's memory, after an announcement.
    ReadRendezvous,
    /// The sender writes to the receiver's memory, after an announcement and the receiver's answer.
    WriteRendezvous,
    /// The sender sends packets, after an announcement and the receiver's answer.
    Packets,
}

impl Protocol {
    /// Name of the protocol in reports.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::ReadyToReceive => "ready to receive",
            Protocol::Eager => "eager",
            Protocol::EagerPieces => "eager pieces",
            Protocol::CooperativeCopy => "cooperative copy",
            Protocol::ReadRendezvous => "read rendezvous",
            Protocol::WriteRendezvous => "write rendezvous",
            Protocol::Packets => "rendezvous by packets",
        }
    }
}

impl Protocol {
    /// True if the message moves without an announcement by its sender. The first rows of the table
    /// have these protocols.
    pub(crate) fn is_at_once(self) -> bool {
        matches!(
            self,
            Protocol::ReadyToReceive | Protocol::Eager | Protocol::EagerPieces
        )
    }

    /// The protocol of a setting; `None` where costs decide.
    pub fn of_setting(choice: ProtocolChoice) -> Option<Protocol> {
        Some(match choice {
            ProtocolChoice::Auto => return None,
            ProtocolChoice::Eager => Protocol::Eager,
            ProtocolChoice::EagerPieces => Protocol::EagerPieces,
            ProtocolChoice::ReadyToReceive => Protocol::ReadyToReceive,
            ProtocolChoice::CooperativeCopy => Protocol::CooperativeCopy,
            ProtocolChoice::ReadRendezvous => Protocol::ReadRendezvous,
            ProtocolChoice::WriteRendezvous => Protocol::WriteRendezvous,
            ProtocolChoice::Packets => Protocol::Packets,
        })
    }
}

/// The source of the estimated costs of copies by processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyCostSource {
    /// Estimates that the transports make.
    Estimated,
    /// Times of messages, which receivers measure.
    Learned,
}

impl CopyCostSource {
    /// The source where times of messages cannot be measured.
    pub(crate) fn without_learning(self) -> CopyCostSource {
        match self {
            CopyCostSource::Learned => CopyCostSource::Estimated,
            other => other,
        }
    }
}

/// The use of shared sends for the messages of one length to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// No message is shared: all leave in pieces.
    Never,
    /// All messages are shared, by a setting.
    Forced,
    /// The receiver prefers reads (true) or packets. `None`: it does not know, and both are tried.
    Preferred(Option<Preferred>),
}

/// The settings that limit which protocols a message may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The longest message that is sent eagerly by the user's setting, in bytes. `None`: the limit
    /// is that of each peer's transport.
    pub eager: Option<usize>,
    /// Longest message that is sent eagerly in several packets where packets are not
    /// [pipelined](Capabilities::pipelined), in bytes.
    pub pieces: usize,
    /// The limit [`pieces`](Limits::pieces) for blocking sends, in bytes.
    pub blocking_pieces: usize,
    /// Shortest message that is copied straight from another process's memory, in bytes.
    pub single_copy: usize,
    /// The shortest message that both ranks copy together, in bytes.
    pub cooperative: usize,
    /// Unexpected bytes from one peer beyond which the peer must announce every message.
    pub unexpected: usize,
    /// The choice between read and write rendezvous.
    pub rendezvous: Rendezvous,
    /// True if receives may be announced before their messages.
    pub announces: bool,
    /// Source of the costs of copies by processors.
    pub copy_costs: CopyCostSource,
    /// True if receives are announced even to senders that have not used earlier announcements.
    pub announces_all: bool,
    /// The protocol to use wherever it applies, whatever its cost.
    pub forced: Option<Protocol>,
}

impl Limits {
    /// True if blocking sends and nonblocking ones use different protocols at some lengths.
    pub(crate) fn tells_blocking(&self) -> bool {
        self.blocking_pieces != self.pieces
    }

    /// Longest message that is sent eagerly to `peer`, in bytes.
    pub(crate) fn eager_to(&self, peer: &Capabilities) -> usize {
        self.eager.unwrap_or(peer.cost.eager as usize)
    }

    /// Longest message that is sent eagerly to `peer` in one packet, in bytes.
    pub(crate) fn whole(&self, peer: &Capabilities) -> usize {
        self.eager_to(peer).min(peer.piece)
    }
}

/// One message to one peer, as far as the rank that chooses its protocol knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    /// The role of the rank that chooses: sender or receiver.
    pub end: End,
    /// Length of the message in bytes.
    pub len: usize,
    /// True if the sender waits for the match.
    pub synchronous: bool,
    /// True if the call waits until the program can use the buffer again.
    pub blocking: bool,
    /// True if the receiver has no room for unexpected bytes.
    pub headers_only: bool,
    /// True if the receiver has announced a buffer for this message.
    pub has_rtr: bool,
    /// True if the sender is also reading messages of the receiver over the same rails.
    pub crossed: bool,
    /// True if the sender has decided to announce the message.
    pub announced: bool,
    /// For the sender's buffer, and for the receiver's: true if it is contiguous. A sender assumes
    /// that of the receiver's.
    pub one_run: [bool; 2],
    /// True if the receiver holds a remote key of the send buffer.
    pub readable: bool,
    /// True if the deciding rank's buffer can be exposed, as far as is known.
    pub exposable: bool,
    /// The capabilities of the transport to the peer.
    pub peer: &'a Capabilities,
    /// The settings that limit which protocols a message may use.
    pub limits: &'a Limits,
}

impl Case<'_> {
    /// The case of a message of `len` bytes that a sender starts to `peer`.
    pub(crate) fn of_sender<'a>(
        len: usize,
        peer: &'a Capabilities,
        limits: &'a Limits,
    ) -> Case<'a> {
        Case {
            end: End::Sender,
            len,
            synchronous: false,
            blocking: false,
            headers_only: false,
            has_rtr: false,
            crossed: false,
            announced: false,
            one_run: [true; 2],
            readable: false,
            exposable: true,
            peer,
            limits,
        }
    }

    /// Longest message that is sent eagerly in several packets, in bytes.
    fn longest_in_pieces(&self) -> usize {
        match (self.peer.pipelined, self.blocking) {
            (true, _) => self.limits.eager_to(self.peer),
            (false, true) => self.limits.blocking_pieces,
            (false, false) => self.limits.pieces,
        }
    }

    pub(crate) fn is_sender(&self) -> bool {
        self.end == End::Sender
    }

    /// True if the message is short enough to be sent eagerly in one packet.
    pub(crate) fn whole(&self) -> bool {
        self.len <= self.limits.whole(self.peer)
    }

    /// True if the message may leave at once, in one packet.
    pub(crate) fn is_eager(&self) -> bool {
        self.is_sender() && !self.headers_only && self.whole()
    }

    /// True if the message may leave at once, in several packets.
    pub(crate) fn is_in_pieces(&self) -> bool {
        self.is_sender()
            && !self.headers_only
            && !self.synchronous
            && !self.whole()
            && self.len <= self.longest_in_pieces()
    }

    /// True if the message must be announced, because it may not leave at once.
    pub(crate) fn is_announced(&self) -> bool {
        !self.is_sender() || self.announced || !(self.is_eager() || self.is_in_pieces())
    }

    /// True if a device can move the message between the two buffers without a copy.
    pub(crate) fn is_direct(&self) -> bool {
        self.one_run == [true; 2] && self.exposable
    }

    /// The time until both ranks can continue, in nanoseconds, if `steps` gives the costs of the
    /// protocol.
    pub(crate) fn time(&self, steps: fn(&PathCosts, u64) -> MessageCosts) -> u64 {
        steps(&self.peer.cost, self.len as u64).both()
    }
}
