//! The memory of a window that other members access straight: it is exposed once, and every member
//! knows the keys of all.
//!
//! Invariant: memory without a key is accessed by messages.

use channel::{Capabilities, Exposed, Exposure, RemoteKey, Router, Transport, ZeroCopy};
use datatype::Buffer;

use crate::Result;
use crate::p2p::protocol::Limits;

/// Bytes of the keys of a member in an agreement.
pub(crate) const KEYS: usize = 2 * KEY;
const KEY: usize = 1 + RemoteKey::MOST_BYTES;

/// The memory of a window that this rank exposes, and the keys of its members.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    /// For ranks of this host, and for devices.
    exposures: [Option<Exposure>; 2],
    /// By member; none where its memory is accessed by messages only.
    keys: Box<[RemoteKey]>,
}

/// The lengths, in bytes, from which accesses to a target go straight to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortest {
    pub(super) put: usize,
    pub(super) get: usize,
    /// One of several runs.
    pub(super) run: usize,
}

impl Remote {
    /// Exposes memory to the ranks of this host and to the others, where there are any: each side
    /// has one of its ranks in `peers`.
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

    /// The memory is exposed to devices.
    pub(crate) fn opens_to_devices(&self) -> bool {
        self.exposures[1].is_some()
    }

    /// The keys that the other members need.
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

    /// Takes the keys of all members: the world rank, the bytes of its part, and its keys. This
    /// rank's own keys are for others.
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

    /// Ends the exposure. No member accesses the memory any more.
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

    /// The lengths from which an access is faster than the exchange of two messages. Messages wait
    /// for the target's process, which may compute or sleep: where a device needs it not, all
    /// accesses are the device's.
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
            // A message carries short runs together.
            run: match zero_copy.synchronous {
                true => get,
                false => get.max(limits.eager_to(peer)),
            },
        }
    }
}
