//! Accesses to exposed memory of a peer: reads and writes in which the peer has no part.

use channel::{Exposed, RemoteKey, Router, Transfer, ZeroCopy};
use datatype::Buffer;

use super::transfers::{Accessed, Stage};
use super::{Messages, token_of};
use crate::Result;
use crate::request::Operation;

impl Messages {
    /// Moves the bytes of a buffer to or from the memory that a remote key of a peer names. The key
    /// names as many bytes as the buffer has.
    ///
    /// # Errors
    /// The peer does not expose what the key names, or a transport failed.
    pub(crate) fn access(
        &mut self,
        router: &mut Router,
        peer: usize,
        (buffer, exposed): (&Buffer, Exposed),
        key: &RemoteKey,
    ) -> Result<Accessed> {
        let len = buffer.len();
        let Some(exposure) = router.prepare(peer, buffer, len, exposed)? else {
            return Ok(Accessed::Refused);
        };
        let id = self.requests.add(Operation::Access { peer })?;
        let token = token_of(id);
        let moved = match exposed {
            Exposed::ToRead => router.write(peer, &exposure, key, 0..len, token),
            _ => router.read(peer, key, &exposure, 0..len, token),
        };
        if let Ok(Transfer::Started) = moved {
            self.transfers.begin(peer, id, exposure, Stage::Accessing);
            return Ok(Accessed::Started(id));
        }
        router.retract(exposure)?;
        self.requests.complete(id, crate::Status::EMPTY);
        self.requests.take(id)?;
        match moved? {
            Transfer::Done => Ok(Accessed::Done),
            _ => Ok(Accessed::Refused),
        }
    }
}
