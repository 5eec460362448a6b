//! An MPI library: the costs of its work, and the choices by which libraries differ.

use crate::components::{InvalidValue, part};
use crate::curve::Curve;
use crate::quantity::{Quantity, Raw};
use crate::release::Release;
use crate::units::{Bytes, Nanos};

part! {
    /// An MPI library on a host's processor, above the verbs: the costs of its work, and its
    /// protocols. One without an eager limit stands for no library in particular.
    Software "software" {
        value send: Nanos, "Processor: a send, from the call to the posted work request.";
        value receive: Nanos, "Processor: a receive, from the noticed arrival to the return of the call.";
        value control: Nanos, "Processor: a protocol step that is not part of a packet, such as writing a ring's tail to the peer.";
        value eager: Option<Bytes>, "Longest message that it sends eagerly; \"none\": no library in particular.";
        value buffers: Option<u32>, "Receive buffers, each for one of the longest eager messages, that a peer may fill; \"none\": as this library.";
        optional segment: Option<Bytes>, "Longest packet of an eager message, which leaves in several if it is longer; may be left out: an eager message is one packet.";
        optional blocking: Option<Bytes>, "Longest eager message of a blocking send, which its sender copies, whatever its length; may be left out: as other sends. Needs segment.";
        value copied: Option<Bytes>, "Longest eager message that its sender copies; a longer one leaves from the program's memory. \"none\": any.";
        value zero_copy: ZeroCopy, "Movement of messages above the eager limit: read, write or none.";
        value header: Option<Bytes>, "Bytes that it adds to an eager message; \"none\": as this library.";
        value inline: Option<Bytes>, "Largest inline payload that it asks for; \"none\": that of the HCA.";
        value coalesces: bool, "True if it sends several short messages in one packet while earlier ones are on their way.";
        value shared_queue: bool, "True if eager and zero-copy messages share a queue pair.";
        optional library: Option<Release>, "Release of a library whose choices of algorithms collectives follow; may be left out: the choices of this library.";
        value uncut: Option<Bytes>, "Longest message that it does not cut into stripes for several rails; \"none\": the policy of this library.";
        list rendezvous: Curve, "Additional time of a message that is not sent eagerly, by its length, such as for look-ups of registrations; it occupies nothing. May be left out: none.";
        optional indirect: Option<Nanos>, "Additional time of an eager message over an HCA that is not direct; it occupies nothing. May be left out: none.";
        optional indirect_inline: Option<Bytes>, "Largest inline payload that it asks for on an HCA that is not direct; may be left out: as on others.";
        list delay: Curve, "Additional time until a message has arrived, by its length, of a calibration; it occupies nothing. May be left out: none.";
        list interval: Curve, "Least time from one message of a rank to its next, by its length, of a calibration: the processor's for eager messages, and the HCA's for others. May be left out: none.";
    }
    check |software| {
        software.rendezvous.check("rendezvous")?;
        software.delay.check("delay")?;
        software.interval.check("interval")?;
        InvalidValue::unless(software.eager.is_none_or(|eager| eager.0 > 0), "eager", || {
            "a library sends at least 1 B eagerly".into()
        })?;
        InvalidValue::unless(software.buffers.is_none_or(|count| (2..=1024).contains(&count)), "buffers", || {
            "that is not a number of buffers; valid are 2 to 1024".into()
        })?;
        InvalidValue::unless(software.segment.is_none_or(|size| (1 << 10..=16 << 20).contains(&size.0)), "segment", || {
            "that is not a length of packets; valid are 1 KiB to 16 MiB".into()
        })?;
        InvalidValue::unless(software.blocking.is_none() || software.segment.is_some(), "blocking", || {
            "a message of that length leaves in several packets: give their length as segment".into()
        })?;
        InvalidValue::unless(software.header.is_none_or(|header| header.0 <= 256), "header", || {
            "more than 256 B of header are not possible".into()
        })
    }
}

impl Software {
    /// True if this is a particular library, with protocols or algorithms of its own.
    pub fn is_library(&self) -> bool {
        self.eager.is_some() || self.library.is_some()
    }

    /// The costs of this software's work, with the protocols of no library in particular.
    pub fn costs_alone(&self) -> Software {
        Software {
            eager: None,
            buffers: None,
            segment: None,
            blocking: None,
            copied: None,
            zero_copy: ZeroCopy::Read,
            header: None,
            inline: None,
            coalesces: true,
            shared_queue: false,
            library: None,
            uncut: None,
            rendezvous: Curve::default(),
            indirect: None,
            indirect_inline: None,
            ..*self
        }
    }
}

/// The protocol of a message that is not sent eagerly: how it moves after it was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroCopy {
    /// The receiver reads the data of a long message from the sender's memory.
    Read,
    /// The sender writes the data into the receiver's memory, after an answer of the receiver.
    Write,
    /// A long message is copied at both ends, in pieces.
    None,
}

const KINDS: [(ZeroCopy, &str); 3] = [
    (ZeroCopy::Read, "read"),
    (ZeroCopy::Write, "write"),
    (ZeroCopy::None, "none"),
];

impl Quantity for ZeroCopy {
    const VALID: &'static str = "\"read\", \"write\" or \"none\"";

    fn read(raw: &Raw) -> Option<ZeroCopy> {
        let Raw::Text(text) = raw else { return None };
        let known = KINDS.iter().find(|(_, word)| word == text);
        known.map(|(kind, _)| *kind)
    }
    fn show(&self) -> String {
        KINDS[*self as usize].1.to_owned()
    }
    fn to_word(&self) -> u64 {
        *self as u64
    }
    fn from_word(word: u64) -> Option<ZeroCopy> {
        let known = KINDS.get(usize::try_from(word).ok()?);
        known.map(|(kind, _)| *kind)
    }
}
