//! Work-request ids: the 64-bit numbers that the caller posts with each request, and that its
//! completion returns.
//!
//! ```text
//! bits 62-63   56-61   48-55   0-47
//!      kind    zero    rail    marker, peer and role; peer and buffer; or buffer
//! ```

const KIND_SHIFT: u32 = 62;
const RAIL_SHIFT: u32 = 48;
const PAYLOAD: u64 = (1 << RAIL_SHIFT) - 1;
/// The bit of the payload that distinguishes a marker from other requests of a queue pair.
const MARKER: u64 = 1 << (RAIL_SHIFT - 1);
/// The number of bits of the number of a buffer in the memory of an endpoint.
const BUFFER_BITS: u32 = 8;

/// The purpose of a queue pair of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QpRole {
    /// The queue pair carries packets, tails and grants.
    Control = 0,
    /// Zero-copy transfers: writes, and reads where they have no queue pair of their own.
    Bulk = 1,
    /// The queue pair carries zero-copy reads over several links.
    Reads = 2,
}

/// The number of bits that encode a role.
const ROLE_BITS: u32 = 2;

/// A work-request id: its rail and its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrId {
    /// The rail of the queue to which the request was posted.
    pub rail: usize,
    pub subject: Subject,
}

/// The purpose of a work request, which decides how its completion is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A request of a queue pair's send queue, or a receive without memory in its receive queue.
    QueuePair { peer: usize, role: QpRole },
    /// A receive into a buffer in the memory of one endpoint.
    EndpointBuffer { peer: usize, buffer: usize },
    /// A receive into a buffer of a pool. The queue pair of the completion identifies the peer.
    PoolBuffer { buffer: usize },
    /// The last request of a queue pair that fails: its completion shows that the queue pair is
    /// drained.
    Marker { peer: usize, role: QpRole },
    /// A receive, without memory, for a notice. The queue pair of the completion identifies the
    /// peer.
    Notice,
}

impl WrId {
    pub(super) fn encode(self) -> u64 {
        let (kind, payload) = match self.subject {
            Subject::QueuePair { peer, role } => (0, (peer as u64) << ROLE_BITS | role as u64),
            Subject::Marker { peer, role } => {
                (0, MARKER | (peer as u64) << ROLE_BITS | role as u64)
            }
            Subject::EndpointBuffer { peer, buffer } => {
                debug_assert!(buffer >> BUFFER_BITS == 0);
                (1, (peer as u64) << BUFFER_BITS | buffer as u64)
            }
            Subject::PoolBuffer { buffer } => (2, buffer as u64),
            Subject::Notice => (3, 0),
        };
        debug_assert!(payload <= PAYLOAD);
        kind << KIND_SHIFT | (self.rail as u64) << RAIL_SHIFT | payload
    }

    #[inline]
    pub(super) fn decode(id: u64) -> WrId {
        let payload = id & PAYLOAD;
        let subject = match id >> KIND_SHIFT {
            0 => {
                let peer = ((payload & !MARKER) >> ROLE_BITS) as usize;
                let role = match payload & ((1 << ROLE_BITS) - 1) {
                    0 => QpRole::Control,
                    1 => QpRole::Bulk,
                    _ => QpRole::Reads,
                };
                match payload & MARKER {
                    0 => Subject::QueuePair { peer, role },
                    _ => Subject::Marker { peer, role },
                }
            }
            1 => Subject::EndpointBuffer {
                peer: (payload >> BUFFER_BITS) as usize,
                buffer: (payload & ((1 << BUFFER_BITS) - 1)) as usize,
            },
            2 => Subject::PoolBuffer {
                buffer: payload as usize,
            },
            _ => Subject::Notice,
        };
        WrId {
            rail: (id >> RAIL_SHIFT & 0xff) as usize,
            subject,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::rail_set::MAX_RAILS;
    use super::*;

    #[test]
    fn ids_come_back_as_they_were_and_none_stands_for_two_things() {
        let mut seen = HashSet::new();
        for rail in [0, 1, MAX_RAILS - 1] {
            let mut subjects = vec![Subject::Notice];
            for number in [0, 1, 2, 255] {
                subjects.push(Subject::PoolBuffer { buffer: number });
                for peer in [0, 1, 255, 256, 1 << 20] {
                    let buffer = number;
                    subjects.push(Subject::EndpointBuffer { peer, buffer });
                }
            }
            for peer in [0, 1, 2, 1 << 20] {
                for role in [QpRole::Control, QpRole::Bulk, QpRole::Reads] {
                    subjects.push(Subject::QueuePair { peer, role });
                    subjects.push(Subject::Marker { peer, role });
                }
            }
            for subject in subjects {
                let id = WrId { rail, subject };
                assert_eq!(WrId::decode(id.encode()), id);
                assert!(seen.insert(id.encode()), "{id:?}");
            }
        }
    }
}
