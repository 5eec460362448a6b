//! The kinds of packets, in families.

/// Declares the kinds of packets: an enum for each family of kinds, and [`Kind`] for all of them,
/// with their codes in heads of packets.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $high:literal {
        $($(#[$kind_doc:meta])* $kind:ident = $low:literal),+ $(,)?
    })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) enum $family { $($(#[$kind_doc])* $kind),+ }
        )+

        /// The kind of a packet, by family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($(#[$doc])* $family($family)),+ }

        impl Kind {
            /// The number of the kind, which the lowest byte of a head contains.
            pub(crate) const fn code(self) -> u8 {
                match self {
                    $($(Kind::$family($family::$kind) => $high << 4 | $low,)+)+
                }
            }

            /// The kind with this code. `None`: no packet has it.
            #[inline(always)]
            pub(crate) fn from_code(code: u8) -> Option<Kind> {
                const {
                    $($(assert!($high < 16 && $low < 16);)+)+
                }
                $($(
                    if code == $high << 4 | $low {
                        return Some(Kind::$family($family::$kind));
                    }
                )+)+
                None
            }

            /// All kinds of packets.
            #[cfg(any(test, feature = "fuzzing"))]
            pub(crate) const ALL: &[Kind] = &[$($(Kind::$family($family::$kind)),+),+];
        }

        $(
            impl From<$family> for Kind {
                #[inline(always)]
                fn from(kind: $family) -> Kind {
                    Kind::$family(kind)
                }
            }
        )+
    };
}

families! {
    /// Messages that leave at once.
    Eager = 1 {
        /// A whole message in one packet.
        Whole = 1,
        /// A whole message whose sender waits for its match. Token: the sender's request.
        Synchronous = 2,
        /// The first piece of a message in several packets. Token: the length of the message.
        FirstPiece = 3,
        /// A further piece of a message in several packets.
        NextPiece = 4,
    }
    /// Messages that stay with their sender until a receive is matched.
    Rendezvous = 2 {
        /// Request to send (RTS): the message is announced. Token: the sender's request. Body:
        /// `Offer`.
        RequestToSend = 1,
        /// The receiver asks for the message as packets. Token: the sender's request. Body:
        /// `ClearToSend`.
        ClearToSend = 2,
        /// The receiver asks for a write to its buffer. Token: the sender's request. Body:
        /// `Target`.
        ClearToWrite = 3,
        /// A piece of the message. Token: the receiver's request.
        Data = 4,
        /// The receiver has the message, or has matched it. Token: the sender's request.
        Finished = 5,
    }
    /// Messages that both ranks copy together.
    Cooperative = 3 {
        /// The receiver asks the sender to copy pieces too. Token: the sender's request. Body:
        /// `Invitation`.
        Invite = 1,
        /// A piece of the message. Token: the receiver's request. Argument: the number of the
        /// piece.
        Pushed = 2,
        /// The system has refused the sender's copy of a piece: the receiver copies it. Token: the
        /// sender's request. Argument: the number of the piece.
        Returned = 3,
    }
    /// Receives that are announced before their message.
    ReadyToReceive = 4 {
        /// Ready to receive (RTR): buffers of posted receives. The envelope is that of the first
        /// ones. Token and body: those of an `AnnouncementPacket`.
        Announce = 1,
        /// The sender writes the message to an announced buffer. Token: the receiver's request.
        /// Body: `Started`.
        Start = 2,
        /// The receiver revokes an announcement. Token: the receiver's request.
        Revoke = 3,
        /// The sender's answer to `Revoke`: it will not write to the buffer. Token: the receiver's
        /// request.
        Revoked = 4,
    }
    /// Flow control of unexpected messages.
    Flow = 5 {
        /// The receiver has no room for more unexpected bytes: the sender must announce every
        /// message.
        HeadersOnly = 1,
        /// The receiver has room for unexpected bytes again.
        BodiesAllowed = 2,
    }
    /// Cancellation of sends.
    Cancellation = 6 {
        /// The sender asks the receiver to drop a message that it cancels. Envelope of the message;
        /// token: the sender's request.
        Cancel = 1,
        /// The receiver has dropped the message to be cancelled. Token: the sender's request.
        Cancelled = 2,
        /// The message to be cancelled had already been matched. Token: the sender's request.
        TooLate = 3,
    }
    /// Consequences of lost peers.
    Loss = 7 {
        /// The sender has left a collective operation on the communicator of the envelope, and
        /// takes part in none there any more. Token: the class of the error. Body: its text.
        LeftCollective = 1,
    }
}
