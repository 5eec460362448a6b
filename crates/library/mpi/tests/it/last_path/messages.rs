//! Traffic of messages between partners: every call that completes requests, probes, blocking
//! calls, persistent requests, receives from any source, cancelled operations.

use mpi::comm::WORLD;
use mpi::request::{Finished, RequestId};
use mpi::{ANY_SOURCE, Class, Mode, Result, State, Status};

use super::player::Player;
use crate::common::{out, pattern, room};

/// A message of a round.
#[derive(Clone, Copy)]
struct Message {
    from: usize,
    to: usize,
    round: u64,
    number: usize,
}

impl Message {
    fn len(&self) -> usize {
        match (self.number + self.round as usize + self.from) % 8 {
            0 => 70_000,
            1 | 2 => 18_000,
            3 => 2_000,
            _ => 40,
        }
    }

    fn body(&self) -> Vec<u8> {
        let seed = self.from * 17 + self.to * 5 + self.number * 3 + self.round as usize;
        pattern(self.len(), seed)
    }

    fn mode(&self) -> Mode {
        match (self.number + self.from) % 5 {
            4 => Mode::Synchronous,
            _ => Mode::Standard,
        }
    }

    /// Messages of a sender share tags where none is lost, so that they must come in order.
    fn tag(&self, player: &Player) -> i32 {
        let number = match player.case.is_for_ever() {
            true => self.round as usize * 128 + self.number,
            false => self.number % 3,
        };
        (number * player.case.ranks + self.from) as i32
    }
}

/// A request in progress.
struct Slot {
    id: Result<RequestId>,
    message: Message,
    /// Memory of a receive.
    room: Option<Vec<u8>>,
    since: u64,
    is_open: bool,
}

/// The requests of a rank in a round.
pub(super) struct Mail {
    slots: Vec<Slot>,
    /// Memory of the sends.
    bodies: Vec<Vec<u8>>,
}

impl Mail {
    /// Posts the receives and sends of a round, in one of the two orders.
    fn post(player: &Player, round: u64) -> Mail {
        let mut mail = Mail {
            slots: Vec::new(),
            bodies: Vec::new(),
        };
        let receives_first = player.draw(3) > 0;
        if receives_first {
            mail.post_receives(player, round, None);
        }
        mail.post_sends(player, round);
        if !receives_first {
            mail.post_receives(player, round, None);
        }
        mail
    }

    /// Posts the receives of a round. `source`: instead of the sender's rank.
    fn post_receives(&mut self, player: &Player, round: u64, source: Option<i32>) {
        for message in messages(player, round, false) {
            let mut memory = vec![0; message.len()];
            let tag = message.tag(player);
            let source = source.unwrap_or(message.from as i32);
            let since = player.rank.now();
            let id = player
                .rank
                .lock()
                .receive(room(&mut memory), source, tag, WORLD);
            self.slots.push(Slot {
                id,
                message,
                room: Some(memory),
                since,
                is_open: true,
            });
        }
    }

    fn post_sends(&mut self, player: &Player, round: u64) {
        for message in messages(player, round, true) {
            let body = message.body();
            let (to, tag) = (message.to as i32, message.tag(player));
            let since = player.rank.now();
            let buffer = out(&body);
            let id = player
                .rank
                .lock()
                .send(message.mode(), &buffer, to, tag, WORLD);
            self.bodies.push(body);
            self.slots.push(Slot {
                id,
                message,
                room: None,
                since,
                is_open: true,
            });
        }
    }

    /// The requests in progress, with their places.
    fn open(&self) -> Vec<(usize, RequestId)> {
        let open = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.is_open);
        open.filter_map(|(at, slot)| Some((at, *slot.id.as_ref().ok()?)))
            .collect()
    }

    /// Judges the requests whose call has failed.
    fn judge_calls(&mut self, player: &Player) {
        for at in 0..self.slots.len() {
            if let Err(error) = self.slots[at].id.clone() {
                self.judge(player, "the call", at, Err(error));
            }
        }
    }

    /// Judges the end of a request, and checks what it has received.
    fn judge(&mut self, player: &Player, what: &str, at: usize, result: Result<Status>) {
        let slot = &mut self.slots[at];
        let (me, message) = (player.me(), slot.message);
        let peer = if message.from == me {
            message.to
        } else {
            message.from
        };
        slot.is_open = false;
        let ended = player.ended(what, Some(peer), slot.since, result);
        match (ended, slot.room.take()) {
            (Some(status), Some(memory)) => check(player, &message, &status, &memory),
            (None, Some(memory)) => player.bury(memory),
            (_, None) => (),
        }
    }
}

fn check(player: &Player, message: &Message, status: &Status, memory: &[u8]) {
    let found = (status.source, status.tag, status.bytes);
    let tag = message.tag(player);
    assert_eq!(found, (message.from as i32, tag, message.len() as u64));
    assert!(
        memory == message.body(),
        "wrong bytes from {}",
        message.from
    );
}

/// The messages that a rank sends in a round, or those that it receives.
fn messages(player: &Player, round: u64, sends: bool) -> Vec<Message> {
    let me = player.me();
    let mut messages = Vec::new();
    for partner in player.partners(round) {
        let (from, to) = if sends { (me, partner) } else { (partner, me) };
        messages.extend((0..player.case.requests).map(|number| Message {
            from,
            to,
            round,
            number,
        }));
    }
    messages
}

/// Posts the requests of a round, and completes them by the function `complete`.
pub(super) fn exchange(player: &Player, round: u64, complete: fn(&Player, &mut Mail)) {
    let mut mail = Mail::post(player, round);
    mail.judge_calls(player);
    complete(player, &mut mail);
    assert!(mail.open().is_empty());
}

fn status(finished: Finished) -> Status {
    assert!(finished.gone);
    finished.status
}

fn finish(state: &mut State, id: RequestId) -> Result<Option<Status>> {
    Ok(state.requests_mut().finish(id)?.map(status))
}

/// One request after the other, in any order.
pub(super) fn by_wait(player: &Player, mail: &mut Mail) {
    let mut open = mail.open();
    while !open.is_empty() {
        let (at, id) = open.swap_remove(player.draw(open.len() as u64) as usize);
        let finished = player.wait(id).map(status);
        mail.judge(player, "MPI_Wait", at, finished);
    }
}

/// All requests in one call, which a loss ends early.
pub(super) fn by_waitall(player: &Player, mail: &mut Mail) {
    while !mail.open().is_empty() {
        let open = mail.open();
        let waiting = mpi::Waiting {
            operation: "MPI_Waitall",
            requests: &[],
        };
        let all_or_loss = player
            .rank
            .wait_until(&waiting, |state| Ok(is_over(state, &open)?.then_some(())));
        all_or_loss.unwrap();
        finish_complete(player, mail, "MPI_Waitall");
    }
}

/// All requests are complete, or one has failed because of a loss.
fn is_over(state: &State, open: &[(usize, RequestId)]) -> Result<bool> {
    let mut all = true;
    for (_, id) in open {
        match state.requests().peek(*id)? {
            Some(status) if state.is_loss(status.error) => return Ok(true),
            found => all &= found.is_some(),
        }
    }
    Ok(all)
}

/// Finishes the requests that are complete. True if one was.
fn finish_complete(player: &Player, mail: &mut Mail, what: &str) -> bool {
    let mut any = false;
    for (at, id) in mail.open() {
        let finished = finish(&mut player.rank.lock(), id);
        if let Some(finished) = finished.transpose() {
            mail.judge(player, what, at, finished);
            any = true;
        }
    }
    any
}

/// The first request that is complete, again and again.
pub(super) fn by_waitany(player: &Player, mail: &mut Mail) {
    while !mail.open().is_empty() {
        let open = mail.open();
        let waiting = mpi::Waiting::in_call("MPI_Waitany");
        let first = player
            .rank
            .wait_until(&waiting, |state| first_of(state, &open));
        let (at, status) = first.unwrap();
        mail.judge(player, "MPI_Waitany", at, Ok(status));
    }
}

fn first_of(state: &mut State, open: &[(usize, RequestId)]) -> Result<Option<(usize, Status)>> {
    for (at, id) in open {
        if let Some(status) = finish(state, *id)? {
            return Ok(Some((*at, status)));
        }
    }
    Ok(None)
}

/// All requests that are complete, again and again.
pub(super) fn by_waitsome(player: &Player, mail: &mut Mail) {
    while !mail.open().is_empty() {
        let open = mail.open();
        let waiting = mpi::Waiting::in_call("MPI_Waitsome");
        let some = player
            .rank
            .wait_until(&waiting, |state| any_complete(state, &open));
        some.unwrap();
        assert!(finish_complete(player, mail, "MPI_Waitsome"));
    }
}

/// One of the requests is complete.
fn any_complete(state: &State, open: &[(usize, RequestId)]) -> Result<Option<()>> {
    for (_, id) in open {
        if state.requests().peek(*id)?.is_some() {
            return Ok(Some(()));
        }
    }
    Ok(None)
}

pub(super) fn by_test(player: &Player, mail: &mut Mail) {
    let mut open = mail.open();
    while !open.is_empty() {
        let (at, id) = open.swap_remove(player.draw(open.len() as u64) as usize);
        let since = mail.slots[at].since;
        let finished = player.poll("MPI_Test", since, |state| finish(state, id));
        mail.judge(player, "MPI_Test", at, finished);
    }
}

pub(super) fn by_testall(player: &Player, mail: &mut Mail) {
    while !mail.open().is_empty() {
        let open = mail.open();
        let since = mail.slots[open[0].0].since;
        let all = player.poll("MPI_Testall", since, |state| {
            Ok(is_over(state, &open)?.then_some(()))
        });
        all.unwrap();
        finish_complete(player, mail, "MPI_Testall");
    }
}

pub(super) fn by_testany(player: &Player, mail: &mut Mail) {
    while !mail.open().is_empty() {
        let open = mail.open();
        let since = mail.slots[open[0].0].since;
        let first = player.poll("MPI_Testany", since, |state| first_of(state, &open));
        let (at, status) = first.unwrap();
        mail.judge(player, "MPI_Testany", at, Ok(status));
    }
}

pub(super) fn by_testsome(player: &Player, mail: &mut Mail) {
    while !mail.open().is_empty() {
        let open = mail.open();
        let since = mail.slots[open[0].0].since;
        let some = player.poll("MPI_Testsome", since, |state| any_complete(state, &open));
        some.unwrap();
        assert!(finish_complete(player, mail, "MPI_Testsome"));
    }
}

/// Blocking calls, in an order in which no two partners wait for each other.
pub(super) fn blocking(player: &Player, round: u64, mode: Option<Mode>) {
    let me = player.me();
    let sends = messages(player, round, true);
    let receives = messages(player, round, false);
    for (send, receive) in sends.iter().zip(&receives) {
        let steps = [me > send.to, me < send.to];
        for is_receive in steps {
            match is_receive {
                true => receive_blocking(player, receive, receive.from as i32),
                false => send_blocking(player, send, mode.unwrap_or(send.mode())),
            }
        }
    }
}

fn send_blocking(player: &Player, message: &Message, mode: Mode) {
    let body = message.body();
    let (to, tag) = (message.to, message.tag(player));
    let since = player.rank.now();
    let sent = player
        .rank
        .send("MPI_Send", mode, out(&body), to as i32, tag, WORLD);
    if mode == Mode::Buffered {
        // Its copy is on its way.
        assert!(sent.is_ok() || player.may_fail(Some(to)));
    }
    player.done("MPI_Send", Some(to), since, sent);
}

fn receive_blocking(player: &Player, message: &Message, source: i32) {
    let mut memory = vec![0; message.len()];
    let tag = message.tag(player);
    let since = player.rank.now();
    let buffer = room(&mut memory);
    let got = player.rank.receive("MPI_Recv", buffer, source, tag, WORLD);
    match player.ended("MPI_Recv", Some(message.from), since, got) {
        Some(status) => check(player, message, &status, &memory),
        None => player.bury(memory),
    }
}

/// Buffered sends, then a flush of the buffer.
pub(super) fn buffered(player: &Player, round: u64) {
    let rank = player.rank;
    rank.attach_buffer(None, AUTOMATIC, 0).unwrap();
    blocking(player, round, Some(Mode::Buffered));
    let since = rank.now();
    let detached = rank.detach_buffer("MPI_Buffer_detach", None);
    player.done("MPI_Buffer_detach", None, since, detached.map(|_| ()));
}

/// `MPI_BUFFER_AUTOMATIC`.
const AUTOMATIC: usize = 2;

/// The kinds of probes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// `MPI_Probe`.
    Wait,
    /// `MPI_Iprobe`.
    Poll,
    /// `MPI_Mprobe`.
    WaitAndClaim,
    /// `MPI_Improbe`.
    PollAndClaim,
}

/// Receives after probes.
pub(super) fn probed(player: &Player, round: u64, probe: Probe) {
    let mut mail = Mail {
        slots: Vec::new(),
        bodies: Vec::new(),
    };
    mail.post_sends(player, round);
    mail.judge_calls(player);
    for message in messages(player, round, false) {
        match probe {
            Probe::Wait | Probe::Poll => {
                if find(player, &message, probe) {
                    receive_blocking(player, &message, message.from as i32);
                }
            }
            _ => claim(player, &message, probe),
        }
    }
    by_wait(player, &mut mail);
}

/// Probes for a message. True if it is there.
fn find(player: &Player, message: &Message, probe: Probe) -> bool {
    let (source, tag) = (message.from as i32, message.tag(player));
    let since = player.rank.now();
    let look = |state: &mut State| state.probe(source, tag, WORLD);
    let found = match probe {
        Probe::Poll => player.poll("MPI_Iprobe", since, look),
        _ => player.rank.probe("MPI_Probe", source, tag, WORLD),
    };
    let found = player.ended("a probe", Some(message.from), since, found);
    found.is_some()
}

fn claim(player: &Player, message: &Message, probe: Probe) {
    let (source, tag) = (message.from as i32, message.tag(player));
    let since = player.rank.now();
    let look = |state: &mut State| state.claim(source, tag, WORLD);
    let claimed = match probe {
        Probe::PollAndClaim => player.poll("MPI_Improbe", since, look),
        _ => player.rank.claim("MPI_Mprobe", source, tag, WORLD),
    };
    let handle = claimed.as_ref().map(|claimed| claimed.handle).ok();
    let status = claimed.map(|claimed| claimed.status);
    let found = player.ended("a matched probe", Some(message.from), since, status);
    let (Some(_), Some(handle)) = (found, handle) else {
        return;
    };
    let mut memory = vec![0; message.len()];
    let since = player.rank.now();
    let id = player
        .rank
        .lock()
        .receive_claimed(room(&mut memory), handle);
    let got = id.and_then(|id| player.wait(id).map(status_of));
    match player.ended("MPI_Mrecv", Some(message.from), since, got) {
        Some(status) => check(player, message, &status, &memory),
        None => player.bury(memory),
    }
}

fn status_of(finished: Finished) -> Status {
    finished.status
}

/// Persistent requests, each started twice.
pub(super) fn persistent(player: &Player, round: u64) {
    let mut requests = Vec::new();
    let sends = messages(player, round, true);
    let receives = messages(player, round, false);
    for message in sends.iter().chain(&receives) {
        let is_send = message.from == player.me();
        let peer = if is_send { message.to } else { message.from };
        let mut memory = message.body();
        let tag = message.tag(player);
        let mut state = player.rank.lock();
        let id = match is_send {
            true => state.send_init(message.mode(), out(&memory), peer as i32, tag, WORLD),
            false => state.receive_init(room(&mut memory), peer as i32, tag, WORLD),
        };
        requests.push((id.unwrap(), *message, memory, peer, is_send));
    }
    for _ in 0..2 {
        let since = player.rank.now();
        for (id, _, memory, _, is_send) in &mut requests {
            if !*is_send {
                memory.fill(0);
            }
            player.rank.start(*id).unwrap();
        }
        for (id, message, memory, peer, is_send) in &requests {
            let finished = player.wait(*id).map(|finished| {
                assert!(!finished.gone, "a persistent request stays");
                finished.status
            });
            let ended = player.ended("MPI_Wait", Some(*peer), since, finished);
            if let (Some(status), false) = (ended, is_send) {
                check(player, message, &status, memory);
            }
            assert!(!player.rank.lock().requests().is_active(*id).unwrap());
        }
    }
    for (id, _, memory, _, is_send) in requests {
        player.rank.lock().requests_mut().detach(id).unwrap();
        if !is_send && player.case.is_for_ever() {
            player.bury(memory);
        }
    }
}

/// Receives from any source. A loss is reported once for the communicator; those that it concerns
/// are then cancelled.
pub(super) fn from_any(player: &Player, round: u64) {
    let mut mail = Mail {
        slots: Vec::new(),
        bodies: Vec::new(),
    };
    let is_hopeless = player.has_lost();
    if !is_hopeless {
        mail.post_receives(player, round, Some(ANY_SOURCE));
    }
    mail.post_sends(player, round);
    if is_hopeless {
        // The loss has been reported.
        mail.post_receives(player, round, None);
        mail.judge_calls(player);
        return by_wait(player, &mut mail);
    }
    mail.judge_calls(player);
    for (at, id) in mail.open() {
        let mut reports = 0;
        let status = loop {
            let finished = player.wait(id).unwrap();
            if finished.gone {
                break finished.status;
            }
            let message = mail.slots[at].message;
            reports += 1;
            assert!(
                reports <= player.case.ranks,
                "a loss is reported again and again"
            );
            player.ended("a report", None, mail.slots[at].since, Ok(finished.status));
            if player.may_fail(Some(message.from)) {
                player.rank.lock().cancel(id).unwrap();
            }
        };
        match status.cancelled {
            true => {
                let peer = mail.slots[at].message.from;
                assert!(player.may_fail(Some(peer)));
                mail.slots[at].is_open = false;
                let memory = mail.slots[at].room.take();
                memory.into_iter().for_each(|memory| player.bury(memory));
            }
            false => mail.judge(player, "MPI_Wait", at, Ok(status)),
        }
    }
}

/// Operations that are cancelled, because nobody sends or receives what they need.
pub(super) fn cancelled(player: &Player, round: u64) {
    let tag = 1_000_000 + round as i32;
    for partner in player.partners(round) {
        let since = player.rank.now();
        let mut memory = vec![0; 100];
        let body = vec![1; 30_000];
        let mut state = player.rank.lock();
        let receive = state
            .receive(room(&mut memory), partner as i32, tag, WORLD)
            .unwrap();
        let send = state.send(
            Mode::Synchronous,
            &out(&body),
            partner as i32,
            tag + 1,
            WORLD,
        );
        drop(state);
        let send = send.unwrap();
        player.compute(player.draw(100_000));
        for id in [receive, send] {
            player.rank.lock().cancel(id).unwrap();
            let finished = player.wait(id).map(status_of);
            if let Some(status) = player.ended("a cancellation", Some(partner), since, finished) {
                assert!(status.cancelled && status.error == Class::SUCCESS);
            }
        }
        player.bury(memory);
    }
    exchange(player, round, by_wait);
}
