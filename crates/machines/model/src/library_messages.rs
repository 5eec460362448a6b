//! The messages of a rank's MPI library, for its times that occupy nothing, and for times by the
//! length of a message, which a calibration finds.

use fabric::{Bytes, Software};
use sim::Time;

use super::message::{Message, RequestKind};

/// The bytes that an eager message has beyond its body, at most: a library's header, with the
/// trailer and the padding of this one.
const HEAD: u64 = 256 + 64;
/// The longest packet of an eager message of no library in particular.
const OWN_PACKET: Bytes = Bytes(16 << 10);

/// The state of a rank's MPI library as a source of messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LibraryMessages {
    /// True if an MPI library uses the rank.
    pub is_attached: bool,
    /// The length of the eager message that is being sent. `None`: none is.
    sending: Option<u64>,
    /// The time before which the processor begins no other message.
    until: Time,
}

impl LibraryMessages {
    /// Begins the send of a message at `now`. Returns the time for which the processor still
    /// works on the previous message.
    pub(crate) fn begin(
        &mut self,
        software: &Software,
        (length, is_blocking): (u64, bool),
        now: Time,
    ) -> Time {
        let rest = self.until.saturating_sub(now);
        let blocking = software.blocking.filter(|_| is_blocking);
        let longest = blocking.max(software.eager).unwrap_or(OWN_PACKET);
        let is_eager = length <= longest.0;
        self.sending = is_eager.then_some(length);
        let interval = match is_eager {
            true => software.interval.at(length).picos(),
            false => 0,
        };
        self.until = now + rest + interval;
        rest
    }

    /// Ends the call of the program at `now`. Returns the time for which the processor still works
    /// on a message.
    pub(crate) fn end_call(&mut self, now: Time) -> Time {
        self.sending = None;
        std::mem::take(&mut self.until).saturating_sub(now)
    }

    /// The times of a request. `is_direct`: the library writes requests into the HCA itself.
    pub(crate) fn times(
        &self,
        software: &Software,
        request: &Message,
        is_direct: bool,
    ) -> LibraryTimes {
        if !self.is_attached {
            return LibraryTimes::default();
        }
        let bytes = u64::from(request.len);
        let packet = software.segment.or(software.eager).unwrap_or(OWN_PACKET);
        let is_eager = bytes <= packet.0 + HEAD;
        // A packet is a part of the message that is being sent, or all of it.
        let length = match self.sending {
            Some(length) if is_eager && bytes <= length + HEAD => length,
            _ => bytes,
        };
        let interval = match is_eager || request.kind == RequestKind::Send {
            true => 0,
            false => software.interval.at(length).picos(),
        };
        let steps = match is_eager {
            false => software.rendezvous.at(length),
            true => software.indirect.filter(|_| !is_direct).unwrap_or_default(),
        };
        let delay = software.delay.at(length).picos();
        LibraryTimes {
            steps: steps.picos(),
            delay: (!software.delay.is_empty()).then_some(delay),
            interval: (!software.interval.is_empty()).then_some(interval),
        }
    }
}

/// The times of a library's request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LibraryTimes {
    /// The time of the library's steps until the bytes are visible.
    pub steps: Time,
    /// The further time until then. `None`: that of the HCA.
    pub delay: Option<Time>,
    /// The least time until the next request of the queue pair. `None`: that of the HCA.
    pub interval: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::Nanos;
    use fabric::catalogue::Catalogue;
    use fabric::curve::{Curve, Point};

    fn software() -> Software {
        let sheet = Catalogue::builtin().sheet("software", "ucx").unwrap();
        let point = |bytes, picos| Point {
            bytes: Bytes(bytes),
            time: Nanos::from_picos(picos),
        };
        Software {
            interval: Curve::of(&[point(8, 500), point(1 << 20, 900)]).unwrap(),
            ..sheet.build().unwrap()
        }
    }

    #[test]
    fn the_processor_begins_a_message_when_the_interval_is_over() {
        let software = software();
        let mut own = LibraryMessages::default();
        assert_eq!(own.begin(&software, (8, false), 1000), 0);
        assert_eq!(own.begin(&software, (8, false), 1200), 300);
        assert_eq!(own.end_call(1700), 300);
        assert_eq!(own.end_call(1700), 0);
        // The adapter paces messages that are not eager.
        assert_eq!(own.begin(&software, (1 << 20, true), 5000), 0);
        assert_eq!(own.end_call(5000), 0);
    }
}
