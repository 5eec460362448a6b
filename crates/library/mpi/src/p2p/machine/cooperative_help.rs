//! The packets of cooperative copies: an invitation, which the sender follows, pushed pieces, and
//! the return of a piece.

use channel::{End, Exposed, MappedMemory, Put, Router, ShortPath, Transfer, Transport, ZeroCopy};

use super::Messages;
use super::cooperative_copy::{Help, PUSHED_AT_ONCE};
use super::deferred::Action;
use super::token_of;
use crate::Result;
use crate::packet::{Contents, Control, Cooperative, Invitation};
use crate::request::RequestId;

impl Messages {
    /// Handles a packet about a cooperative copy.
    pub(super) fn on_cooperative(
        &mut self,
        kind: Cooperative,
        peer: usize,
        request: RequestId,
        argument: u64,
        body: Contents,
    ) -> std::result::Result<(), &'static str> {
        use crate::packet::Body as _;
        match kind {
            Cooperative::Invite => {
                let invitation =
                    Invitation::decode(body.bytes).ok_or("an invitation that cannot be read")?;
                self.deferred.push(Action::Help(Help {
                    peer,
                    request,
                    invitation,
                    exposure: None,
                    claimed: 0..0,
                }));
                Ok(())
            }
            Cooperative::Pushed => {
                let copy = self.fetches.cooperative(request);
                let (Some(copy), Some(receive)) = (copy, self.requests.receive_mut(request)) else {
                    return Err("a piece of a message that it was not asked for");
                };
                let at = usize::try_from(argument).unwrap_or(usize::MAX);
                copy.take(at, &receive.buffer, body)
            }
            Cooperative::Returned => match self.fetches.cooperative_of(peer, request.0) {
                Some(copy) => copy.take_back(argument),
                None => Err("a piece back of a message that it was not asked for"),
            },
        }
    }

    /// Copies the next pieces of a message that this rank sends.
    pub(super) fn help(&mut self, router: &mut Router, mut help: Help) -> Result<()> {
        let Invitation {
            len,
            generation,
            piece,
            push,
            key,
        } = help.invitation;
        let (piece, len, peer) = (piece as usize, len as usize, help.peer);
        if push.is_some() && piece > router.longest_packet(peer) {
            self.nonsense(peer, "an invitation to send pieces that no packet can hold");
            return Ok(());
        }
        let can_write = router.capabilities(peer).zero_copy.is_some();
        let buffer = match self.requests.send_mut(help.request) {
            // A complete message needs no help, and a receiver that cannot be written to gets none.
            Some(send) if send.buffer.len() >= len && can_write => send.buffer.clone(),
            _ => return Ok(()),
        };
        if help.exposure.is_none() {
            router.join_cooperation(peer, generation);
            help.exposure = router.prepare(peer, &buffer, len, Exposed::ToRead)?;
        }
        let Some(exposure) = &help.exposure else {
            return Ok(());
        };
        if help.claimed.is_empty() {
            let pieces = len.div_ceil(piece) as u32;
            let at_once = if push.is_some() { PUSHED_AT_ONCE } else { 1 };
            let counter = router.cooperation(peer, End::Sender);
            match counter.and_then(|counter| counter.claim(generation, pieces, at_once)) {
                Some(run) => help.claimed = run,
                None => return Ok(()),
            }
        }
        while !help.claimed.is_empty() {
            let at = help.claimed.start;
            let start = at as usize * piece;
            let end = len.min(start + piece);
            if let Some(receive) = push {
                let head = Control {
                    argument: at.into(),
                    ..Control::about(Cooperative::Pushed, receive)
                };
                let stores = router.stores(peer, end - start);
                let put = router.put(peer, head.encode(), end - start, |room| {
                    stores.fill(&buffer, start, room)
                })?;
                if put == Put::Full {
                    break;
                }
            } else {
                match router.write(peer, exposure, &key, start..end, token_of(help.request))? {
                    Transfer::Done => {}
                    _ => {
                        // The receiver copies this piece, and all that are left.
                        let head = Control {
                            argument: at.into(),
                            ..Control::about(Cooperative::Returned, help.request.0)
                        };
                        self.send_queue.push(peer, head, Vec::new());
                        return Ok(());
                    }
                }
                if let Some(counter) = router.cooperation(peer, End::Sender) {
                    counter.moved(1);
                }
            }
            help.claimed.start += 1;
        }
        self.deferred.put_back(Action::Help(help));
        Ok(())
    }
}
