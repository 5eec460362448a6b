//! The states of the connection to one peer.
//!
//! ```text
//!            hello                 queue pairs connected       the peer is ready, or has written
//! Opening ----------> Connecting ------------------> Connected ------------------> Ready
//!                         |                                                          ^
//!                         +---------------- (the peer is ready already) -------------+
//! ```
//!
//! From `Ready` each end says goodbye once, in either order: `SaidBye`, `HeardBye`, `Closed`.
//!
//! While no link works, an end that has not said goodbye is `Severed`, and goes back to its state
//! with the first link that works again. A peer that cannot be reached any more is `Lost`, for
//! good.
//!
//! Invariant: a rank writes to its peer only from `Ready` on, while a link works, and not after
//! its own goodbye. Before `Ready` the peer may be unable to take the write; after the goodbye it
//! may be gone.

/// The state of the connection to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// The peer's hello has not arrived.
    Opening,
    /// The device is connecting the queue pairs of this end.
    Connecting(Announced),
    /// This end is connected, and has replied to the peer. The peer's end may not be connected yet.
    Connected,
    /// Both ends are connected.
    Ready,
    /// This rank has said that it will write no more.
    SaidBye,
    /// The peer has said that it will write no more.
    HeardBye,
    /// Both ends have said goodbye: neither writes any more.
    Closed,
    /// No link works. The connection returns to the contained state with the next link that works.
    Severed(Before),
    /// The peer cannot be reached any more.
    Lost,
}

/// The state of a connection before its last link failed, to which it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// A severed connection returns to [`Connection::Connected`].
    Connected,
    /// A severed connection returns to [`Connection::Ready`].
    Ready,
    /// A severed connection returns to [`Connection::HeardBye`].
    HeardBye,
}

/// The contents of the peer's hello that matter until this end is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    /// True if the peer has memory for rings.
    pub rings: bool,
    /// True if the peer's end is connected.
    pub ready: bool,
    /// True if the peer has not received this rank's hello.
    pub answer: bool,
}

/// The reply that the peer gets once this end is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A hello that says that this end is connected.
    Hello,
    /// The peer knows the addresses of this end, so `Ready` alone is sent.
    Ready,
}

/// The reason why a message of the peer violates the protocol.
pub(super) type Violation = &'static str;

impl Connection {
    /// Records that the peer's hello has arrived.
    pub(super) fn hello(&mut self, announced: Announced) -> Result<(), Violation> {
        match self {
            Connection::Opening => {
                *self = Connection::Connecting(announced);
                Ok(())
            }
            _ => Err("it said hello twice"),
        }
    }

    /// Records that the device needs the peer's end before it can connect the queue pairs. True:
    /// the peer has not got this rank's hello, which must be sent now. Only the first call returns
    /// true.
    pub(super) fn waits_for_device(&mut self) -> bool {
        match self {
            Connection::Connecting(announced) => std::mem::take(&mut announced.answer),
            _ => unreachable!("no queue pair is being connected in state {self:?}"),
        }
    }

    /// Records that the queue pairs of this end are connected. Returns the reply for the peer.
    pub(super) fn connected(&mut self) -> Reply {
        let Connection::Connecting(announced) = *self else {
            unreachable!("no queue pair is being connected in state {self:?}");
        };
        *self = match announced.ready {
            true => Connection::Ready,
            false => Connection::Connected,
        };
        match announced.answer {
            true => Reply::Hello,
            false => Reply::Ready,
        }
    }

    /// Records that the peer's end is connected: the peer has reported it, or has written to this
    /// rank. True: this makes the connection ready.
    #[inline(always)]
    pub(super) fn peer_ready(&mut self) -> Result<bool, Violation> {
        match self {
            Connection::Connected => {
                *self = Connection::Ready;
                Ok(true)
            }
            Connection::Severed(before @ Before::Connected) => {
                *before = Before::Ready;
                Ok(true)
            }
            Connection::Connecting(announced) => {
                announced.ready = true;
                Ok(false)
            }
            Connection::Opening => Err("it is ready before it has said hello"),
            _ => Ok(false),
        }
    }

    /// Records that the peer has said goodbye: it will write no more.
    pub(super) fn on_bye(&mut self) -> Result<(), Violation> {
        *self = match self {
            Connection::Ready => Connection::HeardBye,
            Connection::SaidBye => Connection::Closed,
            Connection::Severed(Before::Ready) => Connection::Severed(Before::HeardBye),
            // The goodbye of a lost peer arrived late.
            Connection::Lost => Connection::Lost,
            Connection::HeardBye | Connection::Closed | Connection::Severed(Before::HeardBye) => {
                return Err("it said goodbye twice");
            }
            _ => return Err("it said goodbye before the connection was ready"),
        };
        Ok(())
    }

    /// Records that this rank has said goodbye: it will write no more.
    pub(super) fn say_bye(&mut self) {
        *self = match self {
            Connection::Ready => Connection::SaidBye,
            Connection::HeardBye => Connection::Closed,
            _ => unreachable!("no goodbye in state {self:?}"),
        };
    }

    /// Records that the last link has failed. True: this rank waits for a link that works.
    pub(super) fn sever(&mut self) -> bool {
        let before = match self {
            Connection::Connected => Before::Connected,
            Connection::Ready => Before::Ready,
            Connection::HeardBye => Before::HeardBye,
            Connection::Severed(_) => return true,
            // Links of a connection that is not made do not carry anything. After the goodbye
            // nothing is to be written.
            Connection::Opening
            | Connection::Connecting(_)
            | Connection::SaidBye
            | Connection::Closed
            | Connection::Lost => return false,
        };
        *self = Connection::Severed(before);
        true
    }

    /// Records that a link of the connection works again.
    pub(super) fn restore(&mut self) {
        if let Connection::Severed(before) = self {
            *self = match before {
                Before::Connected => Connection::Connected,
                Before::Ready => Connection::Ready,
                Before::HeardBye => Connection::HeardBye,
            };
        }
    }

    /// Records that the peer is lost. True: the connection was still being made.
    pub(super) fn lose(&mut self) -> bool {
        let was_being_made = matches!(
            self,
            Connection::Opening
                | Connection::Connecting(_)
                | Connection::Connected
                | Connection::Severed(Before::Connected)
        );
        *self = Connection::Lost;
        was_being_made
    }

    /// True if the connection has been made and a link works, even if an end has said goodbye.
    #[inline(always)]
    pub(super) fn is_ready(&self) -> bool {
        matches!(
            self,
            Connection::Ready | Connection::SaidBye | Connection::HeardBye | Connection::Closed
        )
    }

    /// True if both ends have said goodbye, or the peer is lost.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Connection::Closed | Connection::Lost)
    }

    /// True if this rank may write to the peer.
    #[inline(always)]
    pub(super) fn may_write(&self) -> bool {
        matches!(self, Connection::Ready | Connection::HeardBye)
    }

    /// True if this rank has said goodbye.
    pub(super) fn has_said_bye(&self) -> bool {
        matches!(self, Connection::SaidBye | Connection::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Announced = Announced {
        rings: true,
        ready: false,
        answer: true,
    };

    #[test]
    fn whoever_is_spoken_to_answers_with_a_hello_and_then_waits_for_ready() {
        let mut connection = Connection::Opening;
        connection.hello(FIRST).unwrap();
        assert_eq!(connection.connected(), Reply::Hello);
        assert!(!connection.is_ready() && !connection.may_write());
        assert!(connection.peer_ready().unwrap());
        assert!(connection.may_write());
        // The first packet says it once more.
        assert!(!connection.peer_ready().unwrap());
    }

    #[test]
    fn whoever_spoke_first_is_ready_with_the_answer() {
        let mut connection = Connection::Opening;
        let answer = Announced {
            ready: true,
            answer: false,
            ..FIRST
        };
        connection.hello(answer).unwrap();
        assert_eq!(connection.connected(), Reply::Ready);
        assert_eq!(connection, Connection::Ready);
    }

    #[test]
    fn a_device_that_needs_both_ends_lets_the_peer_hear_the_hello_once() {
        let mut connection = Connection::Opening;
        connection.hello(FIRST).unwrap();
        assert!(connection.waits_for_device());
        assert!(!connection.waits_for_device());
        // The peer is done first.
        assert!(!connection.peer_ready().unwrap());
        assert_eq!(connection.connected(), Reply::Ready);
        assert_eq!(connection, Connection::Ready);
    }

    #[test]
    fn goodbyes_come_in_either_order_and_once() {
        for says_first in [true, false] {
            let mut connection = Connection::Ready;
            if says_first {
                connection.say_bye();
                assert!(connection.has_said_bye() && !connection.may_write());
            }
            connection.on_bye().unwrap();
            assert!(connection.on_bye().is_err());
            if !says_first {
                assert!(connection.may_write());
                connection.say_bye();
            }
            assert_eq!(connection, Connection::Closed);
            assert!(connection.is_ready() && !connection.may_write());
        }
    }

    #[test]
    fn a_connection_without_a_link_goes_on_where_it_was() {
        for (state, heard) in [
            (Connection::Connected, Connection::Connected),
            (Connection::Ready, Connection::HeardBye),
        ] {
            let mut connection = state;
            assert!(connection.sever() && connection.sever());
            assert!(!connection.is_ready() && !connection.may_write() && !connection.is_over());
            if state == Connection::Ready {
                connection.on_bye().unwrap();
                assert!(connection.on_bye().is_err());
            }
            connection.restore();
            assert_eq!(connection, heard);
        }
        let mut connection = Connection::Connected;
        connection.sever();
        assert!(
            connection.peer_ready().unwrap(),
            "it becomes ready meanwhile"
        );
        connection.restore();
        assert_eq!(connection, Connection::Ready);
        for mut state in [Connection::Opening, Connection::SaidBye, Connection::Lost] {
            let before = state;
            assert!(!state.sever());
            state.restore();
            assert_eq!(state, before);
        }
    }

    #[test]
    fn a_lost_peer_stays_lost() {
        let mut connection = Connection::Opening;
        assert!(connection.lose(), "it was being made");
        assert!(!connection.lose() && connection.is_over());
        assert!(!connection.peer_ready().unwrap() && connection.on_bye().is_ok());
        assert!(!connection.sever());
        connection.restore();
        assert_eq!(connection, Connection::Lost);
        assert!(!connection.is_ready() && !connection.may_write());
        let mut severed = Connection::Severed(Before::Ready);
        assert!(!severed.lose());
    }

    #[test]
    fn a_peer_that_speaks_out_of_turn_is_found_out() {
        assert!(Connection::Opening.peer_ready().is_err());
        assert!(Connection::Opening.on_bye().is_err());
        assert!(Connection::Connected.on_bye().is_err());
        assert!(Connection::Connecting(FIRST).hello(FIRST).is_err());
        assert!(Connection::Ready.hello(FIRST).is_err());
    }
}
