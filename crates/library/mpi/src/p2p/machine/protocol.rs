//! The protocols, the settings that bound them, and one message as a choice among them sees it.

use channel::{Capabilities, End, MessageCosts, PathCosts};
use knobs::{ProtocolChoice, Rendezvous};

/// A protocol: the method by which one message is moved.
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
    /// The message moves without an announcement by its sender. These are the first rows of the
    /// table.
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

/// Source of the costs of copies by processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyCostSource {
    /// The estimates of the transports.
    Estimated,
    /// Times of messages, which receivers learn.
    Learned,
    /// A file of the user's.
    Given,
}

/// The settings that bound protocols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The user's longest message that is sent eagerly, in bytes. `None`: as each peer's transport
    /// says.
    pub eager: Option<usize>,
    /// Longest message that is sent eagerly in several packets where packets are not
    /// [pipelined](Capabilities::pipelined), in bytes.
    pub pieces: usize,
    /// [`pieces`](Limits::pieces) for blocking sends, in bytes.
    pub blocking_pieces: usize,
    /// Shortest message that is copied straight from another process's memory, in bytes.
    pub single_copy: usize,
    /// Shortest message that both ranks copy, in bytes.
    pub cooperative: usize,
    /// Unexpected bytes from one peer beyond which the peer must announce every message.
    pub unexpected: usize,
    /// The choice between read and write rendezvous.
    pub rendezvous: Rendezvous,
    /// Receives may be announced before their message.
    pub announces: bool,
    /// Source of the costs of copies by processors.
    pub copy_costs: CopyCostSource,
    /// Receives are announced whether or not that has been of use.
    pub announces_all: bool,
    /// The protocol that is taken where it applies, whatever it costs.
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

/// One message to one peer, as far as the deciding rank knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    /// The deciding rank's role.
    pub end: End,
    /// Length of the message in bytes.
    pub len: usize,
    /// The sender waits for the match.
    pub synchronous: bool,
    /// The call waits until the program can use the buffer again.
    pub blocking: bool,
    /// The receiver has no room for unexpected bytes.
    pub headers_only: bool,
    /// The receiver has announced a buffer for this message.
    pub has_rtr: bool,
    /// The sender reads messages of the receiver's over the same rails.
    pub crossed: bool,
    /// The sender has decided to announce the message.
    pub announced: bool,
    /// The sender's and the receiver's buffers are one run of bytes each. A sender assumes it of
    /// its receiver.
    pub one_run: [bool; 2],
    /// The receiver holds a key to the message.
    pub readable: bool,
    /// The deciding rank's buffer can be exposed, as far as is known.
    pub exposable: bool,
    /// The capabilities of the transport to the peer.
    pub peer: &'a Capabilities,
    /// The settings.
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

    /// The message fits one packet.
    pub(crate) fn whole(&self) -> bool {
        self.len <= self.limits.whole(self.peer)
    }

    /// The message may leave at once, in one packet.
    pub(crate) fn is_eager(&self) -> bool {
        self.is_sender() && !self.headers_only && self.whole()
    }

    /// The message may leave at once, in several packets.
    pub(crate) fn is_in_pieces(&self) -> bool {
        self.is_sender()
            && !self.headers_only
            && !self.synchronous
            && !self.whole()
            && self.len <= self.longest_in_pieces()
    }

    /// The message must be announced, because it may not leave at once.
    pub(crate) fn is_announced(&self) -> bool {
        !self.is_sender() || self.announced || !(self.is_eager() || self.is_in_pieces())
    }

    /// A device can move the message between the two buffers.
    pub(crate) fn is_direct(&self) -> bool {
        self.one_run == [true; 2] && self.exposable
    }

    /// The time until both ranks can go on, by the steps of a protocol, in nanoseconds.
    pub(crate) fn time(&self, steps: fn(&PathCosts, u64) -> MessageCosts) -> u64 {
        steps(&self.peer.cost, self.len as u64).both()
    }
}
