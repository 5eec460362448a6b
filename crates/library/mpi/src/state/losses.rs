//! Peers that cannot be reached any more, and what follows for the operations of a rank.
//!
//! A lost peer stays lost. Every operation that needs it fails with the error of its loss: those in
//! progress fail at once, later ones when they start or complete. Operations with other peers go
//! on.
//!
//! - A receive from any source may still be satisfied by another peer. A wait for it reports the
//!   loss once for each communicator, and the receive stays active. If no other member is left,
//!   every wait reports it.
//! - A member that leaves a collective operation because of a loss notifies all others, which may
//!   wait for it: from then on no collective operation works on that communicator.
//!
//! Invariant: without a loss none of this costs an instruction on the paths of messages.

use channel::{Family, ZeroCopy};

use crate::comm::{COLLECTIVE, Comms, bare};
use crate::error::Cause;
use crate::matching::Key;
use crate::request::{Operation, Request, RequestId};
use crate::state::Engine;
use crate::{ANY_SOURCE, Class, Error, Result};

impl Engine {
    /// Records a failure that concerns one peer or one communicator. Returns any other error.
    #[cold]
    pub(crate) fn contain(&mut self, comms: &Comms, error: Error) -> Result<()> {
        match error.cause {
            Cause::LostPeer(peer) => self.lose(comms, peer, error),
            Cause::LeftCollective { context, .. } => {
                self.on_left(comms, context, error);
                Ok(())
            }
            Cause::Local => Err(error),
        }
    }

    /// Records the loss of a peer, and fails the operations that need it.
    fn lose(&mut self, comms: &Comms, peer: usize, error: Error) -> Result<()> {
        // A transfer that completed before the loss has not failed.
        while let Some(done) = self.router.done(Family::Messages) {
            self.messages.transfer_done(&done);
        }
        if !self.messages.losses.add(peer, error.clone()) {
            return Ok(());
        }
        self.router.lose(peer);
        self.messages.forget_peer(peer, error.class);
        let requests = self.messages.requests.iter();
        let needing = requests.filter(|(_, request)| needs(comms, request, peer));
        let failed: Vec<RequestId> = needing.map(|(id, _)| id).collect();
        for id in failed {
            self.messages.fail(id, error.class);
        }
        self.last_error = Some(error);
        self.alarm(comms);
        // Tasks are driven, and find that they cannot go on.
        self.messages.requests.completions += 1;
        self.messages.end_accesses(&mut self.router)
    }

    /// Makes waits for receives from any source report (by *alarms*) the losses that have not been
    /// reported on their communicators.
    fn alarm(&mut self, comms: &Comms) {
        let requests = self.messages.requests.iter();
        let wild = requests.filter_map(|(id, request)| match &request.operation {
            Operation::Receive(receive) if receive.key.source == ANY_SOURCE => {
                request.is_open().then_some((id, receive.key.context))
            }
            _ => None,
        });
        let wild: Vec<(RequestId, u64)> = wild.collect();
        for (id, context) in &wild {
            if let Some((error, for_ever)) = self.untold_of(comms, *context) {
                self.messages.requests.alarm(*id, error.class, for_ever);
            }
        }
        for (_, context) in wild {
            self.messages.losses.mark_reported(context);
        }
    }

    /// The loss that a wait for a receive from any source on this communicator is to report. True:
    /// every such wait is to report it.
    fn untold_of(&self, comms: &Comms, context: u64) -> Option<(Error, bool)> {
        let mut all = comms.iter();
        let comm = all.find(|comm| comm.core.context == context)?;
        self.messages.losses.untold(comm)
    }

    /// Checks a receive that has just been posted, or matched. It fails if its sender is lost; one
    /// from any source gets an alarm if a loss is to be reported.
    #[cold]
    pub(crate) fn check_posted(&mut self, comms: &Comms, id: RequestId, key: &Key) {
        let request = self.messages.requests.get(id);
        if self.messages.losses.len() == 0 || !request.is_some_and(Request::is_open) {
            return;
        }
        if key.source == ANY_SOURCE {
            if let Some((error, for_ever)) = self.untold_of(comms, key.context) {
                self.messages.requests.alarm(id, error.class, for_ever);
                self.last_error = Some(error);
                self.messages.losses.mark_reported(key.context);
            }
        } else if let Some(error) = self.loss_of(comms, key) {
            self.messages.fail(id, error.class);
            self.last_error = Some(error);
        }
    }

    /// Checks a probe that has found nothing.
    ///
    /// # Errors
    /// No message with this key can arrive, or a loss is to be reported.
    #[cold]
    pub(crate) fn check_probed(&mut self, comms: &Comms, key: &Key) -> Result<()> {
        let error = match key.source {
            ANY_SOURCE => {
                let untold = self.untold_of(comms, key.context);
                self.messages.losses.mark_reported(key.context);
                untold.map(|(error, _)| error)
            }
            _ => self.loss_of(comms, key),
        };
        error.map_or(Ok(()), Err)
    }

    /// The error of the peer that sends the messages with this envelope, if it is lost.
    fn loss_of(&self, comms: &Comms, key: &Key) -> Option<Error> {
        let peer = comms.source_of(key)?;
        self.messages.losses.error_of(peer).cloned()
    }

    /// The error of a loss with this class: of a peer, or of a communicator on which a member has
    /// left a collective operation.
    #[cold]
    pub(crate) fn loss_with(&self, class: Class) -> Option<Error> {
        self.messages.losses.last_of(class)
    }

    /// True if some peer is lost, or some communicator cannot be used for collective operations any
    /// more.
    pub(crate) fn has_losses(&self) -> bool {
        self.messages.watches_losses()
    }

    /// Checks that a message that an operation of the library awaits can still arrive.
    ///
    /// # Errors
    /// The message cannot arrive.
    pub(crate) fn check_awaited(&self, comms: &Comms, key: &Key) -> Result<()> {
        if !self.has_losses() {
            return Ok(());
        }
        match self.loss_of(comms, key) {
            Some(error) => Err(error),
            None if key.context & COLLECTIVE != 0 => self.check_collective(comms, key.context),
            None => Ok(()),
        }
    }

    /// Checks that collective operations are possible on a communicator.
    ///
    /// # Errors
    /// A member is lost, or has left an earlier operation.
    #[cold]
    pub(crate) fn check_collective(&self, comms: &Comms, context: u64) -> Result<()> {
        let Some(comm) = comms.of_context(context) else {
            return Ok(());
        };
        let losses = &self.messages.losses;
        let left = losses.left(comm.core.context);
        let lost = left.or_else(|| losses.of_members(comm));
        lost.map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Notifies the other members of a communicator, once, that this rank has left a collective
    /// operation because of a loss.
    #[cold]
    pub(crate) fn leave_collective(&mut self, comms: &Comms, context: u64, error: &Error) {
        let context = bare(context);
        if matches!(error.cause, Cause::Local) || self.messages.losses.left(context).is_some() {
            return;
        }
        let Some(comm) = comms.of_context(context) else {
            return;
        };
        self.messages.losses.leave(context, error.clone(), true);
        let core = comm.core.joint();
        let me = core.members.world(core.rank);
        for peer in core.members.iter() {
            if Some(peer) != me && self.messages.losses.error_of(peer).is_none() {
                let key = Key {
                    context,
                    source: core.rank as i32,
                    tag: 0,
                };
                self.messages.notify_left(peer, key, error);
            }
        }
        self.messages.watch_losses();
        let _ = self.messages.flush(&mut self.router);
    }

    /// Records that a member has left a collective operation, and takes part in no further one on
    /// this communicator.
    fn on_left(&mut self, comms: &Comms, context: u64, error: Error) {
        self.messages.watch_losses();
        let is_known = comms.handle_of(context).is_some();
        self.messages.losses.leave(context, error, is_known);
        self.messages.requests.completions += 1;
    }

    /// Connects to the peers that this rank waits for, so that a dead path to one is noticed. For a
    /// receive from any source it contacts all members only if contact needs no connection.
    pub(crate) fn contact_awaited(&mut self, comms: &Comms) -> Result<()> {
        let all = self.router.machine().abilities().reaches_freely;
        let requests = self.messages.requests.iter();
        let received = requests.filter_map(|(_, request)| match &request.operation {
            Operation::Receive(receive) if request.is_open() => Some(&receive.key),
            _ => None,
        });
        let keys = received.chain(&self.messages.awaited);
        let senders = keys.flat_map(|key| senders(comms, key, all));
        let awaited: Vec<usize> = senders.collect();
        awaited
            .into_iter()
            .try_for_each(|peer| Ok(self.router.contact(peer)?))
    }
}

/// True if an operation in progress needs this peer.
fn needs(comms: &Comms, request: &Request, peer: usize) -> bool {
    match &request.operation {
        _ if !request.is_open() => false,
        Operation::Send(send) => send.peer == peer,
        Operation::Access { peer: accessed } => *accessed == peer,
        Operation::Receive(receive) => comms.source_of(&receive.key) == Some(peer),
        _ => false,
    }
}

/// The peers to be contacted because they may send the message with this envelope. For any source:
/// all members if `all`, otherwise none.
fn senders(comms: &Comms, key: &Key, all: bool) -> Vec<usize> {
    if key.source != ANY_SOURCE {
        return comms.source_of(key).into_iter().collect();
    }
    match comms.of_context(key.context).filter(|_| all) {
        Some(comm) => comm.core.numbered(key.context).iter().collect(),
        None => Vec::new(),
    }
}
