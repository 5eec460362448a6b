//! The work of a poll: connections are read and written, calls go on, peers that are gone are
//! noticed.
//!
//! Nothing changes in memory until a system call is made. Connections with recent traffic are read
//! directly (*hot*); all others share one question to the kernel, which is asked seldom while there
//! are hot ones. Whether a path is dead, the kernel knows: it counts what it has sent again in vain.
//! A peer that computes and reads nothing is not gone: its kernel answers.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use device::{State, Work};
use secret::hello::{ANSWER, Caller};

use super::device::{Split, TcpDevice, words};
use super::events::Tag;
use super::frame::{Break, Machine, Piece};
use super::pair::{Call, CallStage, Interest, Introduction, LastCall, Line, Pair};
use super::wire;

/// The memory for bytes whose place is not known yet, in bytes.
pub(super) const STAGING: usize = 16 << 10;
/// The part of it behind a payload that is received to its place.
const BEHIND: usize = 4 << 10;
/// The shortest payload that is received to its place, in bytes.
const DIRECT: usize = 2 << 10;
/// The most bytes taken from a connection before the next has its turn.
const TURN: usize = 1 << 20;
/// The most hot connections: with more, one question for all is cheaper.
const MOST_HOT: usize = 2;
/// The number of polls without an arrival after which a connection is hot no more.
const HEAT: u32 = 4096;
/// The number of polls of hot connections from one question for all others to the next.
const SELDOM: u32 = 16;
/// The number of polls from one look at the clock for rare duties to the next.
const CLOCK: u32 = 256;
/// The time from one look at slow paths, calls and strangers to the next, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
/// The longest time for the kernels to connect, in nanoseconds.
const CONNECT_NS: u64 = 2_000_000_000;
/// The longest wait for the first sign of a caller while requests wait, in nanoseconds.
pub(super) const SILENCE_NS: u64 = 10_000_000_000;
/// As `SILENCE_NS`, of a caller that has given up a connection before its use.
const SECOND_CALL_NS: u64 = 1_000_000_000;
/// The time after which a call to a queue pair that has failed is refused, in nanoseconds: it may be
/// on its way to its next life.
const FAILED_NS: u64 = 300_000_000;
/// The first pause before a call is repeated, in nanoseconds, and the number of calls in all.
const PAUSE_NS: u64 = 10_000_000;
const TRIES: u32 = 10;
/// The most calls that go on for the peers only.
const MOST_LAST_CALLS: usize = 256;
/// The number of repetitions in vain, and of questions without an answer, from which on a path is
/// dead, about 0.6 s where the round trip is short, unless the peer's host is heard on another
/// connection: with many frames lost, some are lost several times.
const RESENT: u32 = 2;
const UNANSWERED: u32 = 3;
/// The time since the last sign of a host within which it counts as heard, in milliseconds.
const HEARD_MS: u32 = 350;
/// The number of repetitions in vain from which on a path is dead in any case: about 13 s.
const HOPELESS: u32 = 6;
/// The longest time that an ended connection is kept for the peer, in nanoseconds.
const ENDING_NS: u64 = 2_000_000_000;
/// The longest wait of a closing device until the peers' kernels have everything, in nanoseconds.
const LAST_BYTES_NS: u64 = 1_000_000_000;

impl TcpDevice {
    /// Takes what has come, and sends what waits.
    #[inline]
    pub(super) fn progress(&mut self) {
        self.is_fresh = false;
        self.has_read = false;
        self.polls = self.polls.wrapping_add(1);
        for at in (0..self.hot.len()).rev() {
            let pair = self.hot[at];
            self.serve_hot(at, pair);
        }
        if self.hot.is_empty() || self.polls.is_multiple_of(SELDOM) {
            self.serve_others();
        }
        if !self.owing.is_empty() {
            self.acknowledge();
        }
        if !self.stalled.is_empty() {
            self.resume();
        }
        if self.polls.is_multiple_of(CLOCK) {
            self.look();
        }
    }

    /// Reads a hot connection, the one at this position.
    #[inline]
    fn serve_hot(&mut self, position: usize, at: u32) {
        let came = self.read(at);
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        pair.heat = if came {
            HEAT
        } else {
            pair.heat.saturating_sub(1)
        };
        if pair.heat == 0 && self.hot.get(position) == Some(&at) {
            self.hot.remove(position);
        }
        self.write(at);
    }

    /// Serves everything with news.
    fn serve_others(&mut self) {
        let mut news = Vec::new();
        self.poller.poll(&mut news);
        for tag in news {
            match tag {
                Tag::Listener => self.accept(),
                Tag::Unproven(number) => self.hear(number),
                Tag::Pair(at) => self.serve(at),
                Tag::Last(number) => self.go_on_in_vain(number),
            }
        }
    }

    /// Serves the connection of a queue pair, which has news.
    fn serve(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        match pair.line {
            Line::Calling(_) => return self.go_on_calling(at),
            Line::Open(_) => {}
            _ => return,
        }
        if self.read(at) && !self.hot.contains(&at) {
            if self.hot.len() < MOST_HOT {
                self.hot.push(at);
            }
            if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
                pair.heat = HEAT;
            }
        }
        self.write(at);
    }

    /// Takes what has come over a connection. False: nothing has.
    fn read(&mut self, at: u32) -> bool {
        let mut taken = 0;
        while taken < TURN {
            let Some(split) = self.split(at) else { break };
            match split.read() {
                Ok(Read::Nothing) => break,
                Ok(Read::Some(bytes, is_all)) => {
                    taken += bytes;
                    if is_all {
                        break;
                    }
                }
                Err(why) => {
                    self.broken(at, why);
                    return true;
                }
            }
        }
        self.has_read |= taken > 0;
        self.become_ready(at);
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return taken > 0;
        };
        if pair.machine.is_stalled() && !self.stalled.contains(&at) {
            self.stalled.push(at);
            self.update_interest(at);
        } else if pair.machine.is_asked() && !pair.is_owing {
            pair.is_owing = true;
            self.owing.push(at);
        }
        taken > 0
    }

    /// Goes on with connections whose next frame waits for a receive.
    #[cold]
    fn resume(&mut self) {
        for at in std::mem::take(&mut self.stalled) {
            let Some(mut split) = self.split(at) else {
                continue;
            };
            if split.place.receives.is_empty() {
                self.stalled.push(at);
                continue;
            }
            let end = split.take_rest();
            match end {
                Ok(()) => {
                    self.update_interest(at);
                    self.read(at);
                    self.write(at);
                }
                Err(why) => self.fail(at, why),
            }
        }
    }

    /// Sends acknowledgements that peers wait for.
    #[inline]
    fn acknowledge(&mut self) {
        let start = self.start;
        let mut now = None;
        for position in (0..self.owing.len()).rev() {
            let at = self.owing[position];
            let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
                self.owing.swap_remove(position);
                continue;
            };
            let clock = || *now.get_or_insert_with(|| start.elapsed().as_nanos() as u64);
            let is_open = matches!(pair.line, Line::Open(_));
            let tells = is_open && pair.machine.owes(true, clock);
            if tells {
                pair.machine.tell();
            }
            if tells || !is_open || !pair.machine.is_asked() {
                pair.is_owing = false;
                self.owing.swap_remove(position);
            }
            if tells {
                self.write(at);
            }
        }
    }

    /// Sends all acknowledgements that peers wait for, because this rank is about to sleep.
    pub(super) fn acknowledge_all(&mut self) {
        for at in std::mem::take(&mut self.owing) {
            let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
                continue;
            };
            pair.is_owing = false;
            if pair.machine.is_asked() && matches!(pair.line, Line::Open(_)) {
                pair.machine.tell();
                self.write(at);
            }
        }
    }

    /// Sends what waits, as far as the socket takes it.
    #[inline]
    pub(super) fn write(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return;
        };
        let has_output = !pair.machine.outgoing().is_empty();
        if !has_output && !pair.interest.output {
            return;
        }
        if has_output && let Err(why) = self.flush(at) {
            return self.broken(at, why);
        }
        self.update_interest(at);
    }

    fn flush(&mut self, at: u32) -> Result<(), Break> {
        let Some(Split {
            machine,
            line: Line::Open(socket),
            place,
            is_ready: true,
            ..
        }) = self.split(at)
        else {
            return Ok(());
        };
        while !machine.outgoing().is_empty() {
            let mut pieces = [Piece::Bytes(&[]); wire::PIECES];
            let count = machine.outgoing().gather(&place, &mut pieces)?;
            let wanted: usize = pieces[..count].iter().map(Piece::len).sum();
            let sent = wire::send(socket.as_fd(), &pieces[..count]).map_err(|_| Break::Lost)?;
            machine.sent(sent);
            if sent < wanted {
                break;
            }
        }
        Ok(())
    }

    /// Asks for the events that the connection of a queue pair needs.
    fn update_interest(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let Line::Open(socket) = &pair.line else {
            return;
        };
        let interest = Interest {
            input: !pair.machine.is_stalled(),
            output: pair.is_ready && !pair.machine.outgoing().is_empty(),
        };
        if interest != pair.interest {
            pair.interest = interest;
            self.poller.change(Tag::Pair(at), socket, interest);
        }
    }

    /// Executes a request whose arguments have been checked.
    #[inline]
    pub(super) fn execute(&mut self, at: u32, work: &Work, len: u32) {
        let Some(Split {
            machine,
            line,
            place,
            is_ready,
            ..
        }) = self.split(at)
        else {
            return;
        };
        let waits = !is_ready || !machine.outgoing().is_empty();
        let head = machine.begin(work, len);
        let is_sent_from = matches!(
            work.operation,
            device::Operation::Write { .. } | device::Operation::Send { .. }
        );
        let payload = if is_sent_from { work.local } else { &[] };
        let mut sent = 0;
        let mut is_lost = false;
        if let Line::Open(socket) = line
            && !waits
        {
            match wire::send_frame(socket.as_fd(), &head, payload) {
                Ok(bytes) => sent = bytes,
                Err(_) => is_lost = true,
            }
        }
        if is_lost {
            return self.lose(at);
        }
        let payload_len = if is_sent_from { len as usize } else { 0 };
        if sent < head.len() + payload_len {
            machine.keep(&head, payload, sent, work.inline, &place);
            self.update_interest(at);
        }
    }

    /// Frames may leave over a connection once both ends have heard the other.
    #[inline]
    fn become_ready(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        if pair.is_ready || !pair.machine.has_heard() {
            return;
        }
        pair.is_ready = true;
        self.has_connected = true;
        // The peer waits for the first frame. Any will do.
        if pair.is_caller && pair.machine.outgoing().is_empty() {
            pair.machine.tell();
        }
        self.write(at);
    }

    /// A connection has ended, for this reason.
    #[cold]
    fn broken(&mut self, at: u32, why: Break) {
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
            // It may be between two lives.
            (Break::Lost, false, true) => {
                if let Line::Open(socket) = std::mem::replace(&mut pair.line, Line::Idle) {
                    self.poller.forget(&socket);
                }
                let tries = pair.tries;
                self.call_again(at, tries, "the peer ended the connection");
            }
            // Its queue pair has failed.
            (Break::Refused(_), false, _) => self.lose(at),
            _ => self.fail(at, why),
        }
    }

    fn wait_for_call(&mut self, at: u32, until: u64) {
        if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
            pair.line = Line::Waiting { until: Some(until) };
        }
    }

    /// Takes a call of the peer that has come before this end was ready for it.
    pub(super) fn take_parked(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return;
        };
        let call = pair.peer.map(|from| Introduction { to: at, from });
        if let Some(socket) = call.and_then(|call| self.calls.unpark(&call)) {
            self.attach(at, socket);
        }
    }

    /// The peer has ended the connection, or cannot be reached.
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
        if pair.machine.is_awaiting() {
            self.fail(at, Break::Lost);
        }
        self.has_connected = true;
    }

    /// Calls the peer of a queue pair.
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
            Err(why) => self.call_failed(at, &words(&why)),
        }
    }

    /// A call has failed for good.
    #[cold]
    fn call_failed(&mut self, at: u32, why: &str) {
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

    /// A call has failed, and may succeed later: the peer dropped it, perhaps because this rank was
    /// late.
    fn call_again(&mut self, at: u32, tries: u32, why: &str) {
        if tries >= TRIES {
            return self.call_failed(at, why);
        }
        let until = self.now() + (PAUSE_NS << tries.min(7));
        if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
            pair.line = Line::Resting { until, tries };
        }
    }

    /// Goes on with a call.
    fn go_on_calling(&mut self, at: u32) {
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
            Err(CallError::Refused(why)) => self.call_failed(at, &why),
            Err(CallError::Dropped(why)) => self.call_again(at, tries, &why),
        }
    }

    /// The introduction of a queue pair to its peer.
    fn introduction(&self, at: u32) -> Option<Introduction> {
        let peer = self.pairs.get(at as usize)?.as_ref()?.peer?;
        Some(Introduction {
            to: peer.qp & 0xffff,
            from: self.own_address(at),
        })
    }

    /// A call is needed no more. It goes on for the peer, which would wait for it.
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

    fn go_on_in_vain(&mut self, number: u32) {
        let now = self.now();
        let mut at = 0;
        // The same number may name several: each is asked.
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

    /// Takes connections from the kernel.
    fn accept(&mut self) {
        let now = self.now();
        let poller = &self.poller;
        let watch =
            |number, socket: &OwnedFd| poller.add(Tag::Unproven(number), socket, Interest::INPUT);
        let (origins, words) = self.calls.accept(now, watch);
        for from in origins {
            let waiting = self.pairs.iter_mut().flatten();
            for pair in waiting {
                let peer = pair.peer.map(|peer| self.own.reach(peer.port, 0).ip());
                if let Line::Waiting { until } = &mut pair.line
                    && peer == Some(from.ip())
                {
                    // However long it computes now, it is there.
                    *until = None;
                }
            }
        }
        self.warn(words);
    }

    /// Goes on with the hello of a caller.
    fn hear(&mut self, number: u32) {
        let (call, words) = self.calls.hear(number);
        self.warn(words);
        let Some((call, socket)) = call else { return };
        self.poller.forget(&socket);
        let Some(Some(pair)) = self.pairs.get(call.to as usize) else {
            return;
        };
        let is_peer = pair.state == State::Rts && pair.peer == Some(call.from);
        let is_free = match &pair.line {
            // The newer call is of the current life of the caller.
            Line::Open(_) => !pair.is_ready,
            Line::Waiting { .. } | Line::Gone => true,
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

    /// Frames go over this connection from now on.
    pub(super) fn attach(&mut self, at: u32, socket: OwnedFd) {
        self.has_connected = true;
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let is_watched = self.poller.add(Tag::Pair(at), &socket, Interest::INPUT);
        // The caller begins when it hears this. A new connection has room for it.
        let is_greeted =
            pair.is_caller || wire::send_frame(socket.as_fd(), &Machine::greeting(), &[]).is_ok();
        // An earlier connection leaves the poller as it is closed.
        pair.line = Line::Open(socket);
        pair.interest = Interest::INPUT;
        pair.is_ready = false;
        if !is_watched {
            self.note("the system watches no more sockets".into());
            self.lose(at);
        } else if !is_greeted {
            self.broken(at, Break::Lost);
        }
    }

    /// Does what time brings, now and then.
    pub(super) fn look(&mut self) {
        let now = self.now();
        if now < self.looked_at + LOOK_NS {
            return;
        }
        self.looked_at = now;
        let words = self.calls.expire(now);
        self.warn(words);
        let is_over = |since: u64| now.saturating_sub(since) > ENDING_NS;
        while self
            .ending
            .front()
            .is_some_and(|(_, since)| is_over(*since))
        {
            self.ending.pop_front();
        }
        let pairs = &self.pairs;
        let answers = |at: u32| {
            let pair = pairs.get(at as usize).and_then(|pair| pair.as_ref());
            pair.is_some_and(|pair| pair.state != State::Error)
        };
        let refused = self
            .calls
            .unanswered(now.saturating_sub(FAILED_NS), answers);
        for socket in refused {
            let _ = wire::send_frame(socket.as_fd(), &Machine::farewell(), &[]);
            wire::end(&socket);
            self.ending.push_back((socket, now));
        }
        self.last_calls.retain(|last| !is_over(last.call.since));
        for at in 0..self.pairs.len() as u32 {
            self.look_at(at, now);
        }
    }

    fn look_at(&mut self, at: u32, now: u64) {
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return;
        };
        match &pair.line {
            Line::Resting { until, tries } if now >= *until => self.call(at, *tries),
            Line::Calling(call) => {
                let is_late = now.saturating_sub(call.since) > CONNECT_NS;
                match call.stage {
                    CallStage::Connecting if is_late => self.call_failed(at, "nobody answers"),
                    CallStage::Hello(..) if is_dead(&call.socket) => {
                        self.call_failed(at, "nobody answers any more");
                    }
                    _ => {}
                }
            }
            Line::Waiting { until: Some(until) } => {
                if now > *until && pair.machine.is_awaiting() {
                    self.call_failed(at, "it has not called");
                }
            }
            Line::Open(socket) if pair.machine.is_awaiting() => {
                let path = wire::path(socket).unwrap_or_default();
                let is_bad = path.resent >= RESENT || path.unanswered >= UNANSWERED;
                if path.resent >= HOPELESS || is_bad && !self.hears_otherwise(at) {
                    self.lose(at);
                } else if path.resent > 0 {
                    self.ask_otherwise(at);
                }
            }
            _ => {}
        }
    }

    /// The other connections of this device to the host of a queue pair's peer.
    fn others(&self, at: u32) -> Vec<u32> {
        let peer_of = |pair: &Pair| pair.peer.map(|peer| peer.port);
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return Vec::new();
        };
        let peer = peer_of(pair);
        let all = self.pairs.iter().flatten();
        let others =
            all.filter(|other| other.qp != pair.qp && other.is_ready && peer_of(other) == peer);
        others.map(|other| other.qp.0).collect()
    }

    /// The kernel of a peer's host has answered lately on another connection: what is lost is lost
    /// by chance.
    fn hears_otherwise(&self, at: u32) -> bool {
        let others = self.others(at);
        others.into_iter().any(|other| {
            let pair = self
                .pairs
                .get(other as usize)
                .and_then(|pair| pair.as_ref());
            let line = pair.map(|pair| &pair.line);
            let Some(Line::Open(socket)) = line else {
                return false;
            };
            wire::path(socket).is_ok_and(|path| path.heard_ms < HEARD_MS)
        })
    }

    /// Sends a frame that says nothing over other connections to a peer's host, so that its kernel
    /// answers.
    fn ask_otherwise(&mut self, at: u32) {
        for other in self.others(at) {
            let Some(Some(pair)) = self.pairs.get_mut(other as usize) else {
                continue;
            };
            if pair.machine.outgoing().is_empty() {
                pair.machine.tell();
                self.write(other);
            }
        }
    }

    /// Something must be looked at soon, though nothing comes.
    pub(super) fn is_due_soon(&self) -> bool {
        let pairs = self.pairs.iter().flatten();
        let mut lines = pairs.map(|pair| (&pair.line, pair.machine.is_awaiting()));
        let waits = lines.any(|(line, awaits)| match line {
            Line::Resting { .. } | Line::Calling(_) => true,
            Line::Open(_) | Line::Waiting { .. } => awaits,
            Line::Idle | Line::Gone => false,
        });
        waits || !self.calls.all_settled()
    }

    /// Waits until the peers' kernels have what has left, and leaves.
    pub(super) fn leave(&mut self) {
        for at in 0..self.pairs.len() as u32 {
            self.end_line(at);
        }
        let begin = Instant::now();
        while begin.elapsed().as_nanos() < u128::from(LAST_BYTES_NS) {
            let waits = |(socket, _): &(OwnedFd, u64)| wire::unacknowledged(socket) > 0;
            // A path that is dead would only cost time.
            if !self.ending.iter().any(|one| waits(one) && !is_dead(&one.0)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

/// The kernel has sent the same bytes again and again, or has asked, in vain.
fn is_dead(socket: &OwnedFd) -> bool {
    wire::path(socket).is_ok_and(|path| path.resent >= RESENT || path.unanswered >= UNANSWERED)
}

/// The result of one read.
enum Read {
    Nothing,
    /// The number of bytes, and whether the socket had no more.
    Some(usize, bool),
}

impl Split<'_> {
    /// Takes bytes from the socket, long payload straight to its place.
    #[inline]
    fn read(self) -> Result<Read, Break> {
        let Split {
            machine,
            line: Line::Open(socket),
            rest,
            staging,
            start,
            mut place,
            ..
        } = self
        else {
            return Ok(Read::Nothing);
        };
        if machine.is_stalled() {
            return Ok(Read::Nothing);
        }
        let now = || start.elapsed().as_nanos() as u64;
        let direct = machine.direct(DIRECT, &place);
        let (count, room) = match direct {
            Some(to) => {
                // SAFETY: the machine has checked that the peer may write there.
                let count = unsafe { wire::receive(socket.as_fd(), to, &mut staging[..BEHIND]) };
                (count, to.1 + BEHIND)
            }
            None => (wire::receive_bytes(socket.as_fd(), staging), STAGING),
        };
        let count = match count {
            Ok(Some(0)) | Err(_) => return Err(Break::Lost),
            Ok(None) => return Ok(Read::Nothing),
            Ok(Some(count)) => count,
        };
        let placed = direct.map_or(0, |(_, len)| count.min(len));
        if placed > 0 {
            machine.received(placed, now, &mut place)?;
        }
        let bytes = &staging[..count - placed];
        let used = machine.receive(bytes, now, &mut place)?;
        rest.extend_from_slice(&bytes[used..]);
        Ok(Read::Some(count, count < room))
    }

    /// Goes on with the bytes behind a frame that waited for a receive.
    fn take_rest(&mut self) -> Result<(), Break> {
        let start = self.start;
        let now = || start.elapsed().as_nanos() as u64;
        let used = self.machine.receive(self.rest, now, &mut self.place)?;
        self.rest.drain(..used);
        Ok(())
    }
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Memory(_, len) => *len,
        }
    }
}

/// The state of a call after another look.
enum CallEnd {
    Waits,
    /// The kernels are connected, and the peer has the first message.
    Hello,
    Done,
}

/// The reason why a call has failed.
enum CallError {
    /// It would fail again.
    Refused(String),
    /// The peer has dropped it.
    Dropped(String),
}

impl Call {
    fn go_on(
        &mut self,
        secret: &secret::Secret,
        introduction: &Introduction,
    ) -> Result<CallEnd, CallError> {
        let dropped = |why: std::io::Error| CallError::Dropped(words(&why));
        match &mut self.stage {
            CallStage::Connecting => {
                let refused = |why: std::io::Error| CallError::Refused(words(&why));
                wire::outcome(&self.socket).map_err(refused)?;
                wire::prepare(&self.socket).map_err(refused)?;
                let begun = Caller::call(secret, introduction.encode());
                let (caller, message) = begun.map_err(refused)?;
                // A new connection has room for it.
                match wire::send_frame(self.socket.as_fd(), &message, &[]) {
                    Ok(sent) if sent == message.len() => {}
                    Ok(_) => return Err(CallError::Dropped("it takes no bytes".into())),
                    Err(why) => return Err(dropped(why)),
                }
                self.stage = CallStage::Hello(Some(caller), [0; ANSWER], 0);
                Ok(CallEnd::Hello)
            }
            CallStage::Hello(caller, bytes, have) => {
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
                let proof = caller.hear(bytes);
                let proof = proof.map_err(|why| CallError::Refused(why.to_string()))?;
                match wire::send_frame(self.socket.as_fd(), &proof, &[]) {
                    Ok(sent) if sent == proof.len() => Ok(CallEnd::Done),
                    _ => Err(CallError::Dropped("the peer ended the connection".into())),
                }
            }
        }
    }
}
