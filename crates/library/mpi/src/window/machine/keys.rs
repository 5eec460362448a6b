//! The memory of a window that other members access without its process: it is exposed once, and
//! every member has the remote keys of all.
//!
//! Invariant: memory without a key is accessed by messages.

use channel::{Capabilities, Exposed, Exposure, RemoteKey, Router, Transport, ZeroCopy};
use datatype::Buffer;

use crate::Result;
use crate::p2p::protocol::Limits;

/// Bytes of a member's remote keys, as members exchange them.
pub(crate) const KEYS: usize = 2 * KEY;
const KEY: usize = 1 + RemoteKey::MOST_BYTES;

/// The memory of a window that this rank exposes, and the keys of its members.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    /// This rank's memory, exposed to ranks of this host, and exposed to devices.
    exposures: [Option<Exposure>; 2],
    /// The remote keys by member; [`RemoteKey::NONE`] if a member's memory is accessed only by
    /// messages.
    keys: Box<[RemoteKey]>,
}

/// The lengths, in bytes, from which accesses to a target are straight, without its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortest {
    pub(super) put: usize,
    pub(super) get: usize,
    /// The least length of each run of bytes, if an access consists of several runs.
    pub(super) run: usize,
}

impl Remote {
    /// Exposes memory to the ranks of this host, and to the ranks of others. `peers` has a rank of
    /// this host and a rank of another host, if there are any.
    ///
    /// # Errors
    /// A transport failed.
    pub(crate) fn expose(
        router: &mut Router,
        memory: &Buffer,
        peers: [Option<usize>; 2],
    ) -> Result<Remote> {
        let mut remote = Remote::default();
        for (place, peer) in remote.exposures.iter_mut().zip(peers) {
            let Some(peer) = peer.filter(|peer| router.capabilities(*peer).zero_copy.is_some())
            else {
                continue;
            };
            let (len, family) = (memory.len(), channel::Family::Windows);
            *place = router.expose(peer, memory, len, Exposed::ToBoth, family)?;
        }
        Ok(remote)
    }

    /// True if the window's memory is exposed to devices.
    pub(crate) fn opens_to_devices(&self) -> bool {
        self.exposures[1].is_some()
    }

    /// The encoded keys of this rank's memory, for the other members.
    pub(crate) fn own_keys(&self) -> [u8; KEYS] {
        let mut all = [0; KEYS];
        for (place, exposure) in all.chunks_exact_mut(KEY).zip(&self.exposures) {
            let mut key = Vec::with_capacity(RemoteKey::MOST_BYTES);
            if let Some(exposure) = exposure {
                exposure.key().encode(&mut key);
            }
            place[0] = key.len() as u8;
            place[1..][..key.len()].copy_from_slice(&key);
        }
        all
    }

    /// Stores the keys of all members. `members` has for each its world rank, the bytes of its
    /// part, and its encoded keys. This rank's own keys are not stored.
    pub(crate) fn take_keys<'a>(
        &mut self,
        router: &Router,
        me: Option<usize>,
        members: impl Iterator<Item = (usize, u64, &'a [u8])>,
    ) {
        let key = |(world, size, keys): (usize, u64, &[u8])| {
            if Some(world) == me {
                return None;
            }
            let beside = channel::MappedMemory::shares_memory(router, std::iter::once(world));
            let place = keys.chunks_exact(KEY).nth(usize::from(!beside))?;
            let (len, bytes) = place.split_first()?;
            RemoteKey::decode(bytes.get(..usize::from(*len))?, size)
        };
        self.keys = members
            .map(|member| key(member).unwrap_or_default())
            .collect();
        if self.keys.iter().all(RemoteKey::is_none) {
            self.keys = Box::default();
        }
    }

    pub(super) fn key(&self, member: u32) -> Option<&RemoteKey> {
        let key = self.keys.get(member as usize);
        key.filter(|key| !key.is_none())
    }

    /// Ends the exposure. To be called when no member accesses the memory any more.
    ///
    /// # Errors
    /// A transport failed.
    pub(crate) fn close(&mut self, router: &mut Router) -> Result<()> {
        let exposures = std::mem::take(&mut self.exposures);
        let mut all = exposures.into_iter().flatten();
        all.try_for_each(|exposure| Ok(router.retract(exposure)?))
    }
}

impl Shortest {
    const NEVER: Shortest = Shortest {
        put: usize::MAX,
        get: usize::MAX,
        run: usize::MAX,
    };

    /// The lengths from which a straight access is faster than an exchange of two messages.
    /// Messages wait for the target's process, which may compute or sleep: if a device does not
    /// need that process, all accesses are straight.
    pub(super) fn of(peer: &Capabilities, limits: &Limits) -> Shortest {
        let Some(zero_copy) = peer.zero_copy.filter(|zero_copy| zero_copy.read) else {
            return Shortest::NEVER;
        };
        let get = match zero_copy.synchronous {
            true => limits.single_copy,
            false if zero_copy.unattended => 0,
            false => {
                let shortest = peer.cost.shortest_access();
                shortest.map_or(limits.eager_to(peer), |shortest| shortest as usize)
            }
        };
        Shortest {
            put: match zero_copy.acknowledged {
                true => get,
                false => usize::MAX,
            },
            get,
            // A message carries several short runs together.
            run: match zero_copy.synchronous {
                true => get,
                false => get.max(limits.eager_to(peer)),
            },
        }
    }
}
