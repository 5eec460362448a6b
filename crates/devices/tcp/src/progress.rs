//! The work of a poll: connections are read and written.
//!
//! Bytes reach memory only through system calls. Connections with recent traffic (*hot*) are read
//! with every poll; all others share one call of epoll, which is made seldom while there are hot
//! ones.

use std::os::fd::AsFd;

use device::Work;

use super::device::{STAGING, Split, TcpDevice};
use super::events::Tag;
use super::frame::{Break, Piece};
use super::pair::{Interest, Line};
use super::wire;

/// The part of the staging memory that is used behind a payload that is received straight into its
/// destination, in bytes: often the next payload is long as well, and only its header should be
/// staged.
const BETWEEN: usize = 256;
/// The shortest payload that is received straight into its destination, in bytes.
const DIRECT: usize = 2 << 10;
/// The most bytes that one poll reads from one connection.
const TURN: usize = 1 << 20;
/// The most hot connections: with more, one call of epoll for all is cheaper.
const MOST_HOT: usize = 2;
/// The number of polls without an arrival after which a connection is no longer hot.
const HEAT: u32 = 4096;
/// The number of polls of hot connections between two calls of epoll for all others.
const SELDOM: u32 = 64;
/// The number of polls between two readings of the clock for rare duties.
const CLOCK: u32 = 256;

impl TcpDevice {
    /// Reads what has arrived over connections, and sends what waits.
    #[inline]
    pub(super) fn progress(&mut self) {
        self.corks = false;
        if !self.corked.is_empty() {
            self.send_corked();
        }
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
            match self.sleeps_soon {
                true => self.acknowledge_all(),
                false => self.acknowledge(),
            }
        }
        self.sleeps_soon = false;
        if !self.stalled.is_empty() {
            self.resume();
        }
        if self.polls.is_multiple_of(CLOCK) {
            self.check_paths();
        }
    }

    /// Reads the connection of queue pair `at`, the hot one at this position.
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

    /// Serves the sockets for which the poller reports events.
    fn serve_others(&mut self) {
        let mut news = Vec::new();
        self.poller.poll(&mut news);
        for tag in news {
            match tag {
                Tag::Listener => {
                    self.accept();
                }
                Tag::Unproven(number) => self.progress_hello(number),
                Tag::Pair(at) => self.serve(at),
                Tag::Last(number) => self.go_on_in_vain(number),
            }
        }
    }

    /// Serves the connection of a queue pair, which has an event.
    fn serve(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        match pair.line {
            Line::Calling(_) => return self.go_on_calling(at),
            // No event is awaited: only an error is reported.
            Line::Open(ref socket) if pair.machine.is_stalled() => {
                if wire::outcome(socket).is_err() {
                    self.broken(at, Break::Lost);
                    return;
                }
            }
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

    /// Reads what has arrived over a connection. False: nothing has.
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

    /// Progresses connections whose next frame waits for a receive.
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
                pair.machine.queue_acknowledgement();
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
                pair.machine.queue_acknowledgement();
                self.write(at);
            }
        }
    }

    /// Sends the bytes of a queue pair that wait for its socket, as far as the socket takes them.
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
        let mut departures = 0;
        let flushed = match self.split(at) {
            Some(split) => split.flush(&mut departures),
            None => Ok(()),
        };
        self.departures += departures;
        flushed
    }

    /// Updates the events that the poller awaits for the connection of a queue pair.
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

    /// Corks the frame of `len` bytes that the queue pair has kept last. If enough bytes are
    /// corked, they leave.
    pub(super) fn corked(&mut self, at: u32, len: usize) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        if !pair.cork.is_in() {
            self.corked.push(at);
        }
        if pair.cork.add(len) {
            self.corked.retain(|other| *other != at);
            pair.cork.out();
            self.write(at);
        }
    }

    /// Sends all corked frames.
    pub(super) fn send_corked(&mut self) {
        let mut corked = std::mem::take(&mut self.corked);
        for at in corked.drain(..) {
            if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
                pair.cork.out();
            }
            self.write(at);
        }
        self.corked = corked;
    }

    /// Executes a request whose arguments have been checked.
    #[inline]
    pub(super) fn execute(&mut self, at: u32, work: &Work, len: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let is_corked = pair.cork.joins(self.polls) || self.corks;
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
        let waits = is_corked || !is_ready || !machine.outgoing().is_empty();
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
            // SAFETY: the poster's promise about the memory of its request.
            match unsafe { wire::send_frame(socket.as_fd(), &head, payload) } {
                Ok(bytes) => sent = bytes,
                Err(_) => is_lost = true,
            }
        }
        if is_lost {
            return self.lose(at);
        }
        let payload_len = if is_sent_from { len as usize } else { 0 };
        let frame_len = head.len() + payload_len;
        if sent < frame_len {
            machine.keep(&head, payload, sent, work.inline, &place);
        }
        self.departures += u64::from(sent > 0);
        if sent < frame_len {
            match is_corked {
                true => self.corked(at, frame_len),
                false => self.update_interest(at),
            }
        }
    }
}

/// The result of one read from a socket.
enum Read {
    Nothing,
    /// The number of bytes read, and true if the socket had no more.
    Some(usize, bool),
}

impl Split<'_> {
    /// Sends the bytes that wait for the socket, as far as the socket takes them. Adds the number
    /// of system calls to `departures`.
    fn flush(self, departures: &mut u64) -> Result<(), Break> {
        let Split {
            machine,
            line: Line::Open(socket),
            place,
            is_ready: true,
            ..
        } = self
        else {
            return Ok(());
        };
        while !machine.outgoing().is_empty() {
            let mut pieces = [Piece::Bytes(&[]); wire::PIECES];
            let count = machine.outgoing().gather(&place, &mut pieces)?;
            let wanted: usize = pieces[..count].iter().map(Piece::len).sum();
            let sent = wire::send(socket.as_fd(), &pieces[..count]).map_err(|_| Break::Lost)?;
            *departures += 1;
            machine.sent(sent);
            if sent < wanted {
                break;
            }
        }
        Ok(())
    }

    /// Reads bytes from the socket, long payload straight into its destination.
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
                let count = unsafe { wire::receive(socket.as_fd(), to, &mut staging[..BETWEEN]) };
                (count, to.1 + BETWEEN)
            }
            None => {
                let room = match machine.was_long(DIRECT) {
                    true => BETWEEN,
                    false => STAGING,
                };
                let count = wire::receive_bytes(socket.as_fd(), &mut staging[..room]);
                (count, room)
            }
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

    /// Executes the received bytes behind a frame that waited for a receive.
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
