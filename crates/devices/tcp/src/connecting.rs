//! Connections from the call to the first frame, and their end.
//!
//! A connection counts as made once both ends have received a frame of the other over it: the end
//! that was called begins. So requests never leave over a connection of an earlier epoch of the
//! peer's queue pair. A connection that ends before is made again.

use std::os::fd::{AsFd, OwnedFd};

use device::State;
use secret::hello::{ANSWER, Caller};

use super::device::TcpDevice;
use super::events::Tag;
use super::frame::{Break, Machine};
use super::pair::{Call, CallStage, Hello, Interest, Introduction, LastCall, Line};
use super::wire;

/// The longest wait for the peer's connection attempt while requests wait, in nanoseconds.
pub(super) const SILENCE_NS: u64 = 10_000_000_000;
/// As `SILENCE_NS`, but for a peer that connected and ended the connection before its use.
const SECOND_CALL_NS: u64 = 1_000_000_000;
/// The first pause before a connection attempt (a call) is repeated, in nanoseconds.
const PAUSE_NS: u64 = 10_000_000;
/// The number of connection attempts (calls) after which a queue pair gives up its connection.
const TRIES: u32 = 10;
/// The number of refusals by the peer's kernel after which a call has failed: about 0.4 s.
const REFUSALS: u32 = 5;
/// The greatest number of calls that their queue pairs no longer need, and that continue only
/// because their peers wait for them.
const MOST_LAST_CALLS: usize = 256;

impl TcpDevice {
    /// Calls the peer of queue pair `at`: begins a TCP connection to it. `tries` is the number of
    /// attempts before.
    pub(super) fn call(&mut self, at: u32, tries: u32) {
        let now = self.now();
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let Some(peer) = pair.peer else { return };
        let to = self.own.reach(peer.port, (peer.qp >> 16) as u16);
        match wire::dial(self.own.at(0), to) {
            Ok(socket) if self.poller.add(Tag::Pair(at), &socket, Interest::OUTPUT) => {
                pair.tries = tries + 1;
                pair.line = Line::Calling(Box::new(Call {
                    socket,
                    since: now,
                    stage: CallStage::Connecting,
                }));
            }
            Ok(_) => self.call_failed(at, "the system watches no more sockets"),
            Err(why) if is_refusal(&why) => self.call_refused(at, tries + 1, &wire::words(&why)),
            Err(why) => self.call_failed(at, &wire::words(&why)),
        }
    }

    /// Ends a connection attempt (call) that has failed for good.
    #[cold]
    pub(super) fn call_failed(&mut self, at: u32, why: &str) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let to = pair
            .peer
            .map(|peer| self.own.reach(peer.port, (peer.qp >> 16) as u16));
        let to = to.map_or(String::new(), |to| format!(" {to}"));
        self.note(format!("no connection to{to}: {why}"));
        self.lose(at);
    }

    /// Handles the refusal of a call: the peer does not listen, because none of its queue pairs may
    /// be called. The called one may not have been reset yet.
    fn call_refused(&mut self, at: u32, tries: u32, why: &str) {
        match tries < REFUSALS {
            true => self.call_again(at, tries, why),
            false => self.call_failed(at, why),
        }
    }

    /// Handles a connection attempt (call) that has failed but may succeed later: the peer dropped
    /// it, perhaps because this rank was late.
    fn call_again(&mut self, at: u32, tries: u32, why: &str) {
        if tries >= TRIES {
            return self.call_failed(at, why);
        }
        let until = self.now() + (PAUSE_NS << tries.min(7));
        if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
            pair.line = Line::Resting { until, tries };
        }
    }

    /// Progresses the connection attempt (call) of queue pair `at`.
    pub(super) fn go_on_calling(&mut self, at: u32) {
        let Some(introduction) = self.introduction(at) else {
            return;
        };
        let secret = self.calls.secret().clone();
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let Line::Calling(call) = &mut pair.line else {
            return;
        };
        let tries = pair.tries;
        match call.go_on(&secret, &introduction) {
            Ok(CallEnd::Waits) => {}
            Ok(CallEnd::Hello) => {
                self.poller
                    .change(Tag::Pair(at), &call.socket, Interest::INPUT);
            }
            Ok(CallEnd::Done) => {
                if let Line::Calling(call) = std::mem::replace(&mut pair.line, Line::Idle) {
                    self.poller.forget(&call.socket);
                    self.attach(at, call.socket);
                }
            }
            Err(CallError::NoListener(why)) => self.call_refused(at, tries, &why),
            Err(CallError::Refused(why)) => self.call_failed(at, &why),
            Err(CallError::Dropped(why)) => self.call_again(at, tries, &why),
        }
    }

    /// The introduction of a queue pair to its peer. `None`: it has no peer.
    fn introduction(&self, at: u32) -> Option<Introduction> {
        let peer = self.pairs.get(at as usize)?.as_ref()?.peer?;
        Some(Introduction {
            to: peer.qp & 0xffff,
            from: self.own_address(at),
        })
    }

    /// Continues a call that its queue pair no longer needs, because the peer would wait for it.
    pub(super) fn call_in_vain(&mut self, at: u32, call: Box<Call>) {
        let Some(introduction) = self.introduction(at) else {
            return;
        };
        if self.last_calls.len() == MOST_LAST_CALLS {
            self.last_calls.remove(0);
        }
        let number = self.polls;
        let interest = match call.stage {
            CallStage::Connecting => Interest::OUTPUT,
            CallStage::Hello(..) => Interest::INPUT,
        };
        self.poller
            .change(Tag::Last(number), &call.socket, interest);
        self.last_calls.push(LastCall {
            number,
            call,
            introduction,
        });
    }

    pub(super) fn go_on_in_vain(&mut self, number: u32) {
        let now = self.now();
        let mut at = 0;
        // Several calls may have this number: all of them continue.
        while at < self.last_calls.len() {
            let last = &mut self.last_calls[at];
            if last.number != number {
                at += 1;
                continue;
            }
            match last.call.go_on(self.calls.secret(), &last.introduction) {
                Ok(CallEnd::Waits) => at += 1,
                Ok(CallEnd::Hello) => {
                    let socket = &last.call.socket;
                    self.poller
                        .change(Tag::Last(number), socket, Interest::INPUT);
                    at += 1;
                }
                Ok(CallEnd::Done) => {
                    let last = self.last_calls.remove(at);
                    self.poller.forget(&last.call.socket);
                    wire::end(&last.call.socket);
                    self.ending.push_back((last.call.socket, now));
                }
                Err(_) => {
                    self.last_calls.remove(at);
                }
            }
        }
    }

    /// Accepts waiting connections of callers. False: there were none.
    pub(super) fn accept(&mut self) -> bool {
        let now = self.now();
        let poller = &self.poller;
        let watch =
            |number, socket: &OwnedFd| poller.add(Tag::Unproven(number), socket, Interest::INPUT);
        let (origins, words) = self.calls.accept(now, watch);
        let any = !origins.is_empty();
        for from in origins {
            let waiting = self.pairs.iter_mut().flatten();
            for pair in waiting {
                let peer = pair.peer.map(|peer| self.own.reach(peer.port, 0).ip());
                if let Line::Waiting { until } = &mut pair.line
                    && peer == Some(from.ip())
                {
                    // The peer has begun to call, so its silence no longer matters.
                    *until = None;
                }
            }
        }
        self.warn(words);
        any
    }

    /// Progresses the handshake of the incoming connection with this number.
    pub(super) fn progress_hello(&mut self, number: u32) {
        let (call, words) = self.calls.progress_hello(number);
        self.warn(words);
        let Some((call, socket)) = call else { return };
        self.poller.forget(&socket);
        let Some(Some(pair)) = self.pairs.get(call.to as usize) else {
            return;
        };
        let is_peer = pair.state == State::Rts && pair.peer == Some(call.from);
        let is_free = match &pair.line {
            // The newer call is of the caller's current epoch.
            Line::Open(_) => !pair.is_ready,
            Line::Waiting { .. } => true,
            // The peer has reset its queue pair, and this end has not yet.
            Line::Gone => false,
            Line::Idle | Line::Resting { .. } | Line::Calling(_) => false,
        };
        match is_peer && is_free && !pair.is_caller {
            true => self.attach(call.to, socket),
            false => {
                let now = self.now();
                self.calls.park(call, socket, now);
            }
        }
    }

    /// Makes `socket` the connection that carries the frames of the queue pair.
    pub(super) fn attach(&mut self, at: u32, socket: OwnedFd) {
        self.has_connected = true;
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let is_watched = self.poller.add(Tag::Pair(at), &socket, Interest::INPUT);
        // The caller begins when it receives this greeting. A new connection has room for it.
        let is_greeted =
            pair.is_caller || wire::send_bytes(socket.as_fd(), &Machine::greeting()).is_ok();
        // An earlier connection leaves the poller as it is closed.
        pair.line = Line::Open(socket);
        pair.is_near = false;
        pair.interest = Interest::INPUT;
        pair.is_ready = false;
        if !is_watched {
            self.note("the system watches no more sockets".into());
            self.lose(at);
        } else if !is_greeted {
            self.broken(at, Break::Lost);
        }
    }

    /// Lets frames leave over a connection once both ends have received a frame of the other.
    #[inline]
    pub(super) fn become_ready(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        if pair.is_ready || !pair.machine.has_heard() {
            return;
        }
        pair.is_ready = true;
        pair.check_distance();
        self.has_connected = true;
        // The peer waits for the first frame. Any will do.
        if pair.is_caller && pair.machine.outgoing().is_empty() {
            pair.machine.queue_acknowledgement();
        }
        self.write(at);
        self.update_listener(at);
    }

    /// Handles the end of a connection, for this reason.
    #[cold]
    pub(super) fn broken(&mut self, at: u32, why: Break) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        match (why, pair.is_ready, pair.is_caller) {
            (Break::Lost, true, _) => self.lose(at),
            // The peer has given up this connection, and may call again.
            (Break::Lost, false, false) => {
                if let Line::Open(socket) = std::mem::replace(&mut pair.line, Line::Idle) {
                    self.poller.forget(&socket);
                }
                let until = self.now() + SECOND_CALL_NS;
                self.wait_for_call(at, until);
                self.take_parked(at);
            }
            // The peer may be about to reset its queue pair.
            (Break::Lost, false, true) => {
                if let Line::Open(socket) = std::mem::replace(&mut pair.line, Line::Idle) {
                    self.poller.forget(&socket);
                }
                let tries = pair.tries;
                self.call_again(at, tries, "the peer ended the connection");
            }
            // The peer's queue pair has failed.
            (Break::Refused(_), false, _) => self.lose(at),
            _ => self.fail(at, why),
        }
    }

    fn wait_for_call(&mut self, at: u32, until: u64) {
        if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
            pair.line = Line::Waiting { until: Some(until) };
        }
    }

    /// Uses a connection of the peer that was accepted before this end was ready for it.
    pub(super) fn take_parked(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return;
        };
        let call = pair.peer.map(|from| Introduction { to: at, from });
        if let Some(socket) = call.and_then(|call| self.calls.unpark(&call)) {
            self.attach(at, socket);
        }
    }

    /// Ends the connection of a queue pair: the peer has ended it, or cannot be reached.
    #[cold]
    pub(super) fn lose(&mut self, at: u32) {
        self.end_line(at);
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        if pair.state != State::Rts {
            return;
        }
        pair.line = Line::Gone;
        self.update_listener(at);
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return;
        };
        if pair.machine.is_awaiting() {
            self.fail(at, Break::Lost);
        }
        self.has_connected = true;
    }
}

/// The state of a connection attempt (call) after its socket has been polled again.
enum CallEnd {
    Waits,
    /// The kernels are connected, and the peer has the first message.
    Hello,
    Done,
}

/// The reason why a connection attempt (call) has failed.
enum CallError {
    /// Nothing listens at the peer's address.
    NoListener(String),
    /// The attempt would fail again.
    Refused(String),
    /// The connection ended before the peer had accepted it: a later attempt may succeed.
    Dropped(String),
}

/// True if nothing listens at the peer's port.
fn is_refusal(why: &std::io::Error) -> bool {
    why.kind() == std::io::ErrorKind::ConnectionRefused
}

impl Call {
    fn go_on(
        &mut self,
        secret: &secret::Secret,
        introduction: &Introduction,
    ) -> Result<CallEnd, CallError> {
        let dropped = |why: std::io::Error| CallError::Dropped(wire::words(&why));
        match &mut self.stage {
            CallStage::Connecting => {
                let refused = |why: std::io::Error| CallError::Refused(wire::words(&why));
                wire::outcome(&self.socket).map_err(|why| match is_refusal(&why) {
                    true => CallError::NoListener(wire::words(&why)),
                    false => refused(why),
                })?;
                wire::prepare(&self.socket).map_err(refused)?;
                let begun = Caller::call(secret, introduction.encode());
                let (caller, message) = begun.map_err(refused)?;
                // A new connection has room for it.
                match wire::send_bytes(self.socket.as_fd(), &message) {
                    Ok(sent) if sent == message.len() => {}
                    Ok(_) => return Err(CallError::Dropped("it takes no bytes".into())),
                    Err(why) => return Err(dropped(why)),
                }
                self.stage = CallStage::Hello(Box::new(Hello {
                    caller: Some(caller),
                    bytes: [0; ANSWER],
                    have: 0,
                }));
                Ok(CallEnd::Hello)
            }
            CallStage::Hello(hello) => {
                let Hello {
                    caller,
                    bytes,
                    have,
                } = &mut **hello;
                match wire::receive_bytes(self.socket.as_fd(), &mut bytes[*have..]) {
                    Ok(None) => return Ok(CallEnd::Waits),
                    Ok(Some(0)) => {
                        return Err(CallError::Dropped("the peer ended the connection".into()));
                    }
                    Ok(Some(count)) => *have += count,
                    Err(why) => return Err(dropped(why)),
                }
                if *have < ANSWER {
                    return Ok(CallEnd::Waits);
                }
                let Some(caller) = caller.take() else {
                    return Ok(CallEnd::Waits);
                };
                let proof = caller.check_answer(bytes);
                let proof = proof.map_err(|why| CallError::Refused(why.to_string()))?;
                match wire::send_bytes(self.socket.as_fd(), &proof) {
                    Ok(sent) if sent == proof.len() => Ok(CallEnd::Done),
                    _ => Err(CallError::Dropped("the peer ended the connection".into())),
                }
            }
        }
    }
}
