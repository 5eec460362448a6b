//! Moving a message that its sender has offered: the receiver reads it from the sender's memory, in pieces, so that
//! packets are looked at in between.
//!
//! From some length on the sender is asked to help: it writes pieces while the receiver reads others, each taking the
//! next one that nobody has (`channel::share`). Where memory may not be read, the receiver asks for packets instead.

use channel::{Bulk, Channel, Channels, End, Exposure, OneSided};
use datatype::Buffer;

use super::Messages;
use super::ahead::Word;
use super::rdma::Write;
use super::receive::received;
use crate::matching::Key;
use crate::packet::{Envelope, Invitation, Kind, Offer};
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// How much of a message is moved before packets are looked at again.
const PIECE: usize = 128 << 10;
/// The smallest piece of a message that two move together.
const LEAST_PIECE: usize = 16 << 10;
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
        self.fetch_next(channels)
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
        }
        let step = match fetch.together {
            _ if wanted == 0 => Step::Here(0),
            Some(together) => read_together(channels, &fetch, &buffer, wanted, together)?,
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
        let piece = (wanted / 4)
            .next_multiple_of(4096)
            .clamp(LEAST_PIECE, PIECE);
        let together = Together {
            generation: share.open(),
            pieces: wanted.div_ceil(piece) as u32,
            piece,
        };
        let invitation = Invitation {
            address: address as u64,
            len: wanted as u64,
            generation: together.generation,
            piece: piece as u32,
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

    /// Writes the next piece of a message of ours.
    fn help(&mut self, channels: &mut Channels, help: Help) -> Result<()> {
        let Invitation {
            address,
            len,
            generation,
            piece,
        } = help.invitation;
        let (piece, len) = (piece as usize, len as usize);
        let (peer, request) = (help.peer, help.request);
        let taken = match self.requests.send_mut(request) {
            // A message that is complete needs no help, and a receiver that cannot be written to gets none.
            Some(send) if send.buffer.len() >= len && channels.can_read(peer) => {
                let pieces = len.div_ceil(piece) as u32;
                let claimed = channels
                    .share(peer, End::Sender)
                    .and_then(|share| share.claim(generation, pieces));
                claimed.map(|at| (at as usize * piece, send.buffer.clone()))
            }
            _ => None,
        };
        let Some((position, buffer)) = taken else {
            return Ok(());
        };
        self.chores.push_front(Chore::Help(help));
        let bytes = piece.min(len - position);
        let written = buffer.with_dense(position, bytes, |bytes| {
            channels.write(peer, address + position as u64, bytes)
        });
        match written {
            Some(Ok(Bulk::Done)) => {}
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(Bulk::Refused)) | None => return Err(lost(peer, bytes)),
        }
        if let Some(share) = channels.share(peer, End::Sender) {
            share.moved();
        }
        Ok(())
    }
}

/// The receiver's next piece of a message that the sender writes too.
fn read_together(
    channels: &mut Channels,
    fetch: &Fetch,
    buffer: &Buffer,
    wanted: usize,
    together: Together,
) -> Result<Step> {
    let Together {
        generation,
        pieces,
        piece,
    } = together;
    let share = |channels: &Channels| {
        channels
            .share(fetch.peer, End::Receiver)
            .map(|share| share.is_complete(pieces))
    };
    let claimed = channels
        .share(fetch.peer, End::Receiver)
        .and_then(|share| share.claim(generation, pieces));
    if let Some(at) = claimed {
        let position = at as usize * piece;
        let bytes = piece.min(wanted - position);
        let read = read_into(buffer, position, bytes, |position, room| {
            channels.read(fetch.peer, fetch.offer.address + position as u64, room)
        })?;
        if read == Bulk::Refused {
            return Err(lost(fetch.peer, bytes));
        }
        if let Some(share) = channels.share(fetch.peer, End::Receiver) {
            share.moved();
        }
    }
    Ok(if share(channels) == Some(true) {
        Step::Here(wanted)
    } else {
        Step::Waiting
    })
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
        Bulk::Done => Step::Here(arrived + piece),
        Bulk::Refused => Step::Refused,
    })
}

/// Reads bytes `position..position + len` of a message to where they belong in `buffer`.
fn read_into(
    buffer: &Buffer,
    position: usize,
    len: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> channel::Result<Bulk>,
) -> Result<Bulk> {
    if let Some(answer) = buffer.with_dense_mut(position, len, |room| read(position, room)) {
        return Ok(answer?);
    }
    let mut room = vec![0; len.min(UNPACK_BYTES)];
    let mut done = 0;
    while done < len {
        let piece = room.len().min(len - done);
        if read(position + done, &mut room[..piece])? == Bulk::Refused {
            return Ok(Bulk::Refused);
        }
        done += buffer.unpack(position + done, &room[..piece]);
    }
    Ok(Bulk::Done)
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
