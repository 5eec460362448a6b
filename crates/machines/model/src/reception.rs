//! The reception of packets by a queue pair: the expected packet, duplicates, and packets that
//! arrive too early (IBA 9.7.5, 9.8).

use device::Transport;

/// The state of a queue pair as the responder to its peer's requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reception {
    /// The epoch of the peer whose packets are accepted.
    peer_life: u32,
    /// The last epoch of the peer whose packets are dropped: they belong to a connection that has
    /// ended.
    past_life: u32,
    /// The sequence number of the message that is expected next.
    expected: u32,
    /// The number of the expected packet in the expected message.
    expected_packet: u32,
    /// True if the missing packet has been reported to the peer.
    complained: bool,
    /// True while the rest of an incomplete unreliable message is dropped.
    dropping: bool,
}

/// The numbers by which an arriving packet is ordered.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    /// The epoch of the requester that sent the packet.
    pub life: u32,
    /// The sequence number of the packet's message.
    pub sequence: u32,
    /// The number of the packet in its message.
    pub packet: u32,
}

/// The kinds of packets, by what their receiver does with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Admission {
    /// The packet is the expected next one.
    Next,
    /// A packet that is dropped without a reply: it follows a missing or a refused one.
    Dropped,
    /// A packet of an earlier connection of the queue pair: it is treated as lost.
    Lost,
    /// A packet that shows that an earlier one is missing. A NAK reports the missing packet to the
    /// peer.
    Missing { sequence: u32, packet: u32 },
    /// A packet that was received before: its response was lost, or is in flight.
    Duplicate,
}

impl Reception {
    /// Classifies an arriving packet by comparing it with the expected one.
    #[inline]
    pub(crate) fn admit(&mut self, transport: Transport, packet: Packet) -> Admission {
        match transport {
            Transport::Ud => Admission::Next,
            Transport::Uc => self.admit_unreliable(packet),
            Transport::Rc => self.admit_reliable(packet),
        }
    }

    /// Accepts a message that begins with its first packet and continues without a gap; otherwise
    /// the rest of the message is dropped.
    fn admit_unreliable(&mut self, of: Packet) -> Admission {
        let is_due = of.sequence == self.expected && of.packet == self.expected_packet;
        let is_next = of.packet == 0 || !self.dropping && is_due;
        if of.packet == 0 {
            self.expected = of.sequence;
        }
        self.dropping = !is_next;
        self.expected_packet = of.packet + 1;
        match is_next {
            true => Admission::Next,
            false => Admission::Dropped,
        }
    }

    #[inline]
    fn admit_reliable(&mut self, of: Packet) -> Admission {
        if (of.life.wrapping_sub(self.past_life) as i32) <= 0 {
            // A packet of a connection that has ended.
            return Admission::Lost;
        }
        if self.peer_life != of.life {
            // A packet of an earlier connection, or the first of a new one.
            let is_old = (of.life.wrapping_sub(self.peer_life) as i32) < 0;
            if is_old || (self.expected, of.sequence, of.packet) != (0, 0, 0) {
                return Admission::Lost;
            }
            self.peer_life = of.life;
        }
        let ahead = of.sequence.wrapping_sub(self.expected) as i32;
        if ahead == 0 && of.packet == self.expected_packet {
            self.complained = false;
            return Admission::Next;
        }
        let is_early = ahead > 0 || ahead == 0 && of.packet > self.expected_packet;
        match is_early {
            true if std::mem::replace(&mut self.complained, true) => Admission::Dropped,
            true => Admission::Missing {
                sequence: self.expected,
                packet: self.expected_packet,
            },
            false => Admission::Duplicate,
        }
    }

    /// Records that the expected packet has been accepted.
    pub(crate) fn take_packet(&mut self, transport: Transport) {
        self.expected_packet += u32::from(transport == Transport::Rc);
    }

    /// Records that the expected message has been accepted.
    pub(crate) fn take_message(&mut self) {
        self.expected = self.expected.wrapping_add(1);
        self.expected_packet = 0;
    }

    /// Records that a message has been refused, so that its further packets arrive too early. The
    /// peer of a reliable connection gets one report.
    pub(crate) fn refuse(&mut self, transport: Transport) {
        match transport {
            Transport::Rc => self.complained = true,
            Transport::Uc => self.dropping = true,
            Transport::Ud => {}
        }
    }

    /// The message and packet from which a peer in the epoch `life` must send again, if its message
    /// `sequence` got no acknowledgement.
    pub(crate) fn resumption(&self, life: u32, sequence: u32) -> (u32, u32) {
        if self.peer_life != life {
            return (sequence, 0);
        }
        match self.expected.wrapping_sub(sequence) as i32 {
            0 => (sequence, self.expected_packet),
            // The whole message has arrived; the acknowledgement was lost.
            1.. => (sequence, u32::MAX),
            _ => (sequence, 0),
        }
    }

    /// Ends a connection: packets of the accepted epoch of the peer are dropped from now on, also
    /// after a new connection.
    pub(crate) fn reset(&mut self) {
        *self = Reception {
            peer_life: self.peer_life,
            past_life: self.peer_life,
            ..Reception::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(life: u32, sequence: u32, packet: u32) -> Packet {
        Packet {
            life,
            sequence,
            packet,
        }
    }

    #[test]
    fn a_reliable_connection_takes_each_packet_once_and_in_order() {
        let mut own = Reception::default();
        let admit = |own: &mut Reception, sequence, number| {
            own.admit(Transport::Rc, packet(1, sequence, number))
        };
        assert_eq!(admit(&mut own, 0, 0), Admission::Next);
        own.take_packet(Transport::Rc);
        let missing = Admission::Missing {
            sequence: 0,
            packet: 1,
        };
        assert_eq!(admit(&mut own, 1, 0), missing);
        assert_eq!(admit(&mut own, 0, 2), Admission::Dropped, "told once");
        assert_eq!(own.resumption(1, 0), (0, 1));
        assert_eq!(admit(&mut own, 0, 0), Admission::Duplicate);
        assert_eq!(admit(&mut own, 0, 1), Admission::Next);
        own.take_packet(Transport::Rc);
        own.take_message();
        assert_eq!(own.resumption(1, 0), (0, u32::MAX));
        assert_eq!(own.resumption(2, 0), (0, 0));
        assert_eq!(admit(&mut own, 1, 0), Admission::Next);
        own.refuse(Transport::Rc);
        assert_eq!(admit(&mut own, 1, 1), Admission::Dropped, "refused");
    }

    #[test]
    fn packets_of_a_connection_that_has_ended_are_lost() {
        let mut own = Reception::default();
        assert_eq!(own.admit(Transport::Rc, packet(3, 0, 0)), Admission::Next);
        own.take_message();
        own.reset();
        for life in [2, 3] {
            assert_eq!(
                own.admit(Transport::Rc, packet(life, 0, 0)),
                Admission::Lost
            );
        }
        let first = [(4, 1, 0), (4, 0, 1), (4, 0, 0), (3, 0, 0)];
        let found = first.map(|(life, sequence, number)| {
            own.admit(Transport::Rc, packet(life, sequence, number))
        });
        let lost = Admission::Lost;
        assert_eq!(found, [lost, lost, Admission::Next, lost]);
    }

    #[test]
    fn an_unreliable_message_with_a_gap_is_dropped_to_its_end() {
        let mut own = Reception::default();
        let packets = [(0, 0), (0, 1), (0, 3), (0, 4), (1, 1), (2, 0), (2, 1)];
        let found = packets.map(|(sequence, number)| {
            own.admit(Transport::Uc, packet(1, sequence, number)) == Admission::Next
        });
        assert_eq!(found, [true, true, false, false, false, true, true]);
    }
}
