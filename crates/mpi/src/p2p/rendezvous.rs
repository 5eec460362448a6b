//! Moving a message that its sender has offered: the receiver reads it from the sender's memory, in pieces, so that
//! packets are looked at in between.
//!
//! From some length on the sender is asked to help: it writes pieces while the receiver reads others, each taking the
//! next one that nobody has (`channel::share`). Where cores share a cache the sender's pieces come through the ring, which
//! two cores do faster than one can copy, and the receiver reads only while none come. Where memory may not be read, the
//! receiver asks for packets instead.

use std::ops::Range;

use channel::{Channel, Channels, CopyResult, End, Exposure, OneSided, Put};
use datatype::Buffer;

use super::Messages;
use super::rdma::Write;
use super::ready_to_receive::Word;
use super::receive::received;
use super::send::fill;
use crate::matching::Key;
use crate::packet::{Contents, Envelope, Invitation, Kind, Offer};
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// How much of a message is moved before packets are looked at again.
const PIECE: usize = 128 << 10;
/// The smallest piece of a message that two move together, and the one that goes through the ring.
const LEAST_PIECE: usize = 32 << 10;
/// How many pieces a sender takes at once to put them into the ring.
const RUN: u32 = 8;
/// How many looks a receiver waits for the sender's next piece before it reads one itself: some tens of microseconds.
const PATIENCE: u32 = 512;
/// How much is held in between when the receiver's buffer is not in one piece.
const UNPACK_BYTES: usize = 64 << 10;

/// An offer that has met its receive.
pub(super) struct Fetch {
    pub(super) peer: usize,
    pub(super) receive: RequestId,
    /// The sender's request.
    pub(super) sender: u32,
    pub(super) offer: Offer,
    together: Option<Together>,
}

/// A message that sender and receiver move together.
#[derive(Clone, Copy)]
struct Together {
    generation: u32,
    pieces: u32,
    piece: usize,
    /// How many the receiver reads at once.
    run: u32,
    /// How many are here, where they come through the ring and only the receiver knows.
    here: Option<u32>,
    /// Looks without one before the receiver takes pieces itself; none if it does so at once.
    patience: u32,
}

/// What a long message needs besides its fetching.
pub(super) enum Chore {
    Help(Help),
    Write(Write),
    /// What a peer has told ahead, or revokes.
    Hear(usize, Word),
    /// A number by which nobody will tell of a write.
    Forget(u32),
    /// The device's access to a buffer ends.
    Retract(Exposure),
}

/// An invitation that this rank, the sender, has accepted.
pub(super) struct Help {
    peer: usize,
    request: RequestId,
    invitation: Invitation,
    /// Pieces that have been taken and found no room in the ring yet; none at first.
    taken: Option<Range<u32>>,
}

/// What a step of a fetch came to.
enum Step {
    /// So many bytes are here now, counted from the beginning.
    Here(usize),
    /// Nothing to do for us: the sender still writes its last piece.
    Waiting,
    Refused,
}

impl Messages {
    /// An offer has met its receive: fetch it.
    pub(super) fn accept(
        &mut self,
        id: RequestId,
        peer: usize,
        sent: Key,
        request: u32,
        offer: Offer,
    ) {
        self.met_otherwise(id, 2);
        let Some(receive) = self.requests.receive_mut(id) else {
            return;
        };
        receive.key = sent;
        receive.announced = offer.len as usize;
        self.fetches.push_back(Fetch {
            peer,
            receive: id,
            sender: request,
            offer,
            together: None,
        });
    }

    /// Moves the next piece of the next offered message. True if anything moved.
    #[inline]
    pub fn fetch(&mut self, channels: &mut Channels) -> Result<bool> {
        if self.fetches.is_empty() && self.chores.is_empty() {
            return Ok(false);
        }
        self.next_chore(channels)?;
        let next = self.fetches.front_mut();
        match next.and_then(|fetch| fetch.together.as_mut()) {
            Some(together) if together.patience > 0 => {
                together.patience -= 1;
                std::hint::spin_loop();
                Ok(true)
            }
            _ => self.fetch_next(channels),
        }
    }

    #[inline(never)]
    fn fetch_next(&mut self, channels: &mut Channels) -> Result<bool> {
        let Some(mut fetch) = self.fetches.pop_front() else {
            return Ok(true);
        };
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return Ok(true);
        };
        let wanted = receive.announced.min(receive.buffer.len());
        let arrived = receive.arrived;
        let buffer = receive.buffer.clone();
        if wanted > 0 && self.fetch_by_rdma(channels, &fetch, &buffer, wanted)? {
            return Ok(true);
        }
        let single = fetch.offer.address != 0
            && wanted >= self.limits.single_copy
            && channels.can_read(fetch.peer);
        if single && fetch.together.is_none() && arrived == 0 {
            fetch.together = self.invite(channels, &fetch, &buffer, wanted)?;
            if fetch.together.is_some() {
                self.fetches.push_front(fetch);
                return Ok(true);
            }
        }
        let step = match &mut fetch.together {
            _ if wanted == 0 => Step::Here(0),
            Some(together) => {
                read_together(channels, fetch.peer, fetch.offer, &buffer, wanted, together)?
            }
            None if single => read_alone(channels, &fetch, &buffer, arrived, wanted)?,
            None => Step::Refused,
        };
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return Ok(true);
        };
        match step {
            Step::Here(bytes) if bytes == wanted => {
                receive.arrived = bytes;
                let status = received(&receive.buffer, receive.key, receive.announced);
                self.queue_short(
                    fetch.peer,
                    Envelope::about(Kind::Finished, fetch.sender),
                    &[],
                );
                self.requests.complete(fetch.receive, status);
            }
            Step::Here(bytes) => {
                receive.arrived = bytes;
                self.fetches.push_front(fetch);
            }
            Step::Waiting => self.fetches.push_front(fetch),
            Step::Refused => {
                receive.arrived = 0;
                let body = fetch.receive.0.to_ne_bytes();
                self.queue_short(
                    fetch.peer,
                    Envelope::about(Kind::ClearToSend, fetch.sender),
                    &body,
                );
            }
        }
        Ok(true)
    }

    /// Asks the sender to help with a message that is worth it.
    fn invite(
        &mut self,
        channels: &mut Channels,
        fetch: &Fetch,
        buffer: &Buffer,
        wanted: usize,
    ) -> Result<Option<Together>> {
        let Some((address, _)) = buffer.as_dense().filter(|_| wanted >= self.limits.together)
        else {
            return Ok(None);
        };
        let Some(share) = channels.share(fetch.peer, End::Receiver) else {
            return Ok(None);
        };
        let push = fetch.offer.near && LEAST_PIECE <= channels.max_body(fetch.peer);
        let (piece, run) = match push {
            true => (LEAST_PIECE, (PIECE / LEAST_PIECE) as u32),
            false => {
                let quarter = (wanted / 4).next_multiple_of(4096);
                (quarter.clamp(LEAST_PIECE, PIECE), 1)
            }
        };
        let together = Together {
            generation: share.open(),
            pieces: wanted.div_ceil(piece) as u32,
            piece,
            run,
            here: push.then_some(0),
            patience: if push { PATIENCE } else { 0 },
        };
        let invitation = Invitation {
            address: address as u64,
            len: wanted as u64,
            generation: together.generation,
            piece: piece as u32,
            push: push.then_some(fetch.receive.0),
        };
        self.queue_short(
            fetch.peer,
            Envelope::about(Kind::Invite, fetch.sender),
            &invitation.encode(),
        );
        self.flush(channels)?;
        Ok(Some(together))
    }

    /// This rank offered a message, and its receiver would like help.
    pub(super) fn accept_invitation(
        &mut self,
        peer: usize,
        request: RequestId,
        invitation: Invitation,
    ) {
        self.chores.push_back(Chore::Help(Help {
            peer,
            request,
            invitation,
            taken: None,
        }));
    }

    /// Does everything that takes no time, and one piece of what does.
    fn next_chore(&mut self, channels: &mut Channels) -> Result<()> {
        while let Some(chore) = self.chores.pop_front() {
            match chore {
                Chore::Help(help) => return self.help(channels, help),
                Chore::Write(write) => self.write_by_rdma(channels, &write)?,
                Chore::Hear(peer, word) => self.hear_ahead(channels, peer, &word)?,
                Chore::Forget(notice) => {
                    if let Some(rdma) = channels.rdma_mut() {
                        rdma.forget(notice);
                    }
                }
                Chore::Retract(exposure) => {
                    if let Some(rdma) = channels.rdma_mut() {
                        rdma.retract(exposure)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves the next piece of a message of ours.
    fn help(&mut self, channels: &mut Channels, mut help: Help) -> Result<()> {
        let Invitation {
            address,
            len,
            generation,
            piece,
            push,
        } = help.invitation;
        let (piece, len) = (piece as usize, len as usize);
        let peer = help.peer;
        if push.is_some() && piece > channels.max_body(peer) {
            self.nonsense(peer, "an invitation to send pieces that no packet can hold");
            return Ok(());
        }
        let buffer = match self.requests.send_mut(help.request) {
            // A message that is complete needs no help, and a receiver that cannot be written to gets none.
            Some(send) if send.buffer.len() >= len && channels.can_read(peer) => {
                send.buffer.clone()
            }
            _ => return Ok(()),
        };
        let most = if push.is_some() { RUN } else { 1 };
        if help.taken.is_none() {
            channels.has_opened(peer, generation);
        }
        let mut taken = match help.taken.take() {
            Some(run) if !run.is_empty() => run,
            _ => {
                let pieces = len.div_ceil(piece) as u32;
                let share = channels.share(peer, End::Sender);
                match share.and_then(|share| share.claim(generation, pieces, most)) {
                    Some(run) => run,
                    None => return Ok(()),
                }
            }
        };
        while !taken.is_empty() {
            let at = taken.start;
            let position = at as usize * piece;
            let bytes = piece.min(len - position);
            if let Some(receive) = push {
                let mut envelope = Envelope::about(Kind::Pushed, receive);
                envelope.key.tag = at as i32;
                let past = channels.past_cache(peer, bytes);
                let put = channels.put(peer, envelope.encode(), bytes, |room| {
                    fill(past, &buffer, position, room)
                })?;
                if put == Put::Full {
                    break;
                }
            } else {
                let written = buffer.with_dense(position, bytes, |bytes| {
                    channels.write(peer, address + position as u64, bytes)
                });
                match written {
                    Some(Ok(CopyResult::Done)) => {}
                    Some(Err(error)) => return Err(error.into()),
                    Some(Ok(CopyResult::Refused)) | None => return Err(lost(peer, bytes)),
                }
                if let Some(share) = channels.share(peer, End::Sender) {
                    share.moved(1);
                }
            }
            taken.start += 1;
        }
        help.taken = Some(taken);
        self.chores.push_front(Chore::Help(help));
        Ok(())
    }

    /// A piece has come through the ring.
    pub(super) fn take_pushed(
        &mut self,
        id: RequestId,
        at: usize,
        body: Contents,
    ) -> std::result::Result<(), &'static str> {
        let fetch = self.fetches.iter_mut().find(|fetch| fetch.receive == id);
        let together = fetch.and_then(|fetch| fetch.together.as_mut());
        let (Some(together), Some(receive)) = (together, self.requests.receive_mut(id)) else {
            return Err("a piece of a message that it was not asked for");
        };
        let wanted = receive.announced.min(receive.buffer.len());
        if together.here.is_none()
            || at >= together.pieces as usize
            || body.bytes.len() != together.piece.min(wanted - at * together.piece)
        {
            return Err("a piece that its message does not have");
        }
        body.unpack(&receive.buffer, at * together.piece);
        let here = together.here.map_or(0, |here| here + 1);
        together.here = Some(here);
        together.patience = if here < together.pieces { PATIENCE } else { 0 };
        Ok(())
    }
}

/// The receiver's next pieces of a message that the sender moves too.
fn read_together(
    channels: &mut Channels,
    peer: usize,
    offer: Offer,
    buffer: &Buffer,
    wanted: usize,
    together: &mut Together,
) -> Result<Step> {
    let share = channels.share(peer, End::Receiver);
    let is_complete = match together.here {
        Some(here) => here == together.pieces,
        None => share.is_some_and(|share| share.is_complete(together.pieces)),
    };
    if is_complete {
        return Ok(Step::Here(wanted));
    }
    let piece = together.piece;
    let claimed =
        share.and_then(|share| share.claim(together.generation, together.pieces, together.run));
    if let Some(run) = claimed {
        let position = run.start as usize * piece;
        let bytes = (run.len() * piece).min(wanted - position);
        let read = read_into(buffer, position, bytes, |position, room| {
            channels.read(peer, offer.address + position as u64, room)
        })?;
        if read == CopyResult::Refused {
            return Err(lost(peer, bytes));
        }
        match (&mut together.here, channels.share(peer, End::Receiver)) {
            (Some(here), _) => *here += run.len() as u32,
            (None, Some(share)) => share.moved(run.len() as u32),
            (None, None) => {}
        }
    }
    Ok(Step::Waiting)
}

fn read_alone(
    channels: &mut Channels,
    fetch: &Fetch,
    buffer: &Buffer,
    arrived: usize,
    wanted: usize,
) -> Result<Step> {
    let piece = (wanted - arrived).min(PIECE);
    let read = read_into(buffer, arrived, piece, |position, room| {
        channels.read(fetch.peer, fetch.offer.address + position as u64, room)
    })?;
    Ok(match read {
        CopyResult::Done => Step::Here(arrived + piece),
        CopyResult::Refused => Step::Refused,
    })
}

/// Reads bytes `position..position + len` of a message to where they belong in `buffer`.
fn read_into(
    buffer: &Buffer,
    position: usize,
    len: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> channel::Result<CopyResult>,
) -> Result<CopyResult> {
    if let Some(answer) = buffer.with_dense_mut(position, len, |room| read(position, room)) {
        return Ok(answer?);
    }
    let mut room = vec![0; len.min(UNPACK_BYTES)];
    let mut done = 0;
    while done < len {
        let piece = room.len().min(len - done);
        if read(position + done, &mut room[..piece])? == CopyResult::Refused {
            return Ok(CopyResult::Refused);
        }
        done += buffer.unpack(position + done, &room[..piece]);
    }
    Ok(CopyResult::Done)
}

/// A piece that was taken cannot be given back, so a system that changes its mind in between breaks the message.
#[cold]
fn lost(peer: usize, bytes: usize) -> Error {
    let detail = format!(
        "{bytes} bytes of a message exchanged with rank {peer} could not be copied between the two processes, though \
         the system allowed it before: set FISHPLATE_SINGLE_COPY=off"
    );
    Error::new(Class::OTHER, detail)
}
