//! The packet of ready-to-receive announcements: buffers of posted receives, of one envelope
//! (context, source, tag) or of several.
//!
//! The buffers stand in runs. A run has one envelope and consecutive receives; its shape is its
//! numbers of receives and rails. The head of the packet holds the envelope and the shape of the
//! first run. The body holds how many packets of the sender the receiver has processed, the buffers
//! of the first run, and each further run behind its envelope and shape. A packet with one buffer
//! has a body of 36 bytes over one rail; each further buffer of its run takes 28, or 56 over eight
//! rails, and each further run 20.

use super::codec::{Body as _, Reader};
use super::{Envelope, ReadyToReceive, Target, encode};
use crate::matching::Key;

/// Length in bytes of an encoded [`Target`] without the keys of its rails.
const TARGET: usize = 24;
/// Length in bytes of the encoded envelope and shape of a run.
const RUN: usize = 20;
/// A flag in the encoded [`Progress`], see [`Progress::amid`].
const AMID: u64 = 1 << 63;

/// The number of the sender's packets that the receiver has processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of packets of the sender that the receiver has processed.
    pub(crate) seen: u64,
    /// True if the receiver has also processed part of the next packet.
    pub(crate) amid: bool,
}

/// The shape of a run: its numbers of receives and rails, encoded in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Number of posted receives with the run's envelope that precede its first one.
    behind: u16,
    count: u8,
    rails: u8,
}

impl Shape {
    fn encode(self) -> u32 {
        u32::from(self.behind) | u32::from(self.count) << 16 | u32::from(self.rails) << 24
    }

    fn decode(word: u32) -> Shape {
        Shape {
            behind: word as u16,
            count: (word >> 16) as u8,
            rails: (word >> 24) as u8,
        }
    }
}

/// The buffers of consecutive posted receives that have one envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) key: Key,
    /// Number of posted receives with this envelope that precede the first receive of the run.
    pub(crate) behind: usize,
    pub(crate) targets: Vec<Target>,
}

/// Decodes the runs of an announcement packet with this envelope and token in its head. `None`: the
/// packet is malformed.
pub(crate) fn decode_runs(key: Key, token: u32, body: &[u8]) -> Option<(Progress, Vec<Run>)> {
    let mut from = Reader(body);
    let word = from.u64()?;
    let progress = Progress {
        seen: word & !AMID,
        amid: word & AMID != 0,
    };
    let (mut key, mut shape) = (key, Shape::decode(token));
    let mut runs = Vec::new();
    loop {
        if shape.count == 0 {
            return None;
        }
        let len = TARGET + 4 * usize::from(shape.rails);
        let mut target = || Target::decode(from.bytes(len)?);
        let targets: Option<Vec<Target>> = (0..shape.count).map(|_| target()).collect();
        runs.push(Run {
            key,
            behind: shape.behind.into(),
            targets: targets?,
        });
        if from.is_empty() {
            return Some((progress, runs));
        }
        key = Key {
            context: from.u64()?,
            source: from.u32()? as i32,
            tag: from.u32()? as i32,
        };
        shape = Shape::decode(from.u32()?);
    }
}

/// A packet of announcements that is being filled.
pub(crate) struct AnnouncementPacket {
    /// The greatest length of the packet's body in bytes.
    room: usize,
    body: Vec<u8>,
    /// Key and shape of the first run.
    first: Option<(Key, Shape)>,
    /// Key and shape of the last run, and the offset of its shape in the body. No offset: the last
    /// run is also the first, so that its shape is in the head.
    last: Option<(Key, Shape, Option<usize>)>,
}

impl AnnouncementPacket {
    /// A packet without announcements, with a body of `room` bytes at most.
    pub(crate) fn new(progress: Progress, room: usize) -> AnnouncementPacket {
        let amid = if progress.amid { AMID } else { 0 };
        AnnouncementPacket {
            room,
            body: (progress.seen | amid).to_ne_bytes().to_vec(),
            first: None,
            last: None,
        }
    }

    /// Adds the buffer of a receive with `behind` posted receives of its envelope before it. False:
    /// the packet has no room for it, or `behind` is too large.
    pub(crate) fn add(&mut self, key: Key, behind: usize, target: &Target) -> bool {
        let Ok(behind) = u16::try_from(behind) else {
            return false;
        };
        let bytes = encode(target);
        let rails = ((bytes.len() - TARGET) / 4) as u8;
        let follows = |(last, shape, _): &(Key, Shape, Option<usize>)| {
            *last == key
                && shape.rails == rails
                && shape.count < u8::MAX
                && behind.checked_sub(shape.count.into()) == Some(shape.behind)
        };
        let continues = self.last.as_ref().is_some_and(follows);
        let head = if continues || self.last.is_none() {
            0
        } else {
            RUN
        };
        if self.body.len() + head + bytes.len() > self.room {
            return false;
        }
        if !continues {
            self.begin_run(key, behind, rails);
        }
        if let Some((_, shape, at)) = &mut self.last {
            shape.count += 1;
            match *at {
                Some(at) => self.body[at..at + 4].copy_from_slice(&shape.encode().to_ne_bytes()),
                None => self.first = Some((key, *shape)),
            }
        }
        self.body.extend(bytes);
        true
    }

    fn begin_run(&mut self, key: Key, behind: u16, rails: u8) {
        let shape = Shape {
            behind,
            count: 0,
            rails,
        };
        let at = self.last.is_some().then(|| {
            self.body.extend(key.context.to_ne_bytes());
            self.body.extend(key.source.to_ne_bytes());
            self.body.extend(key.tag.to_ne_bytes());
            self.body.extend(shape.encode().to_ne_bytes());
            self.body.len() - 4
        });
        self.last = Some((key, shape, at));
    }

    /// The envelope and the body of the packet. `None`: it announces nothing.
    pub(crate) fn finish(self) -> Option<(Envelope, Vec<u8>)> {
        let (key, shape) = self.first?;
        let envelope = Envelope {
            kind: ReadyToReceive::Announce.into(),
            key,
            token: shape.encode(),
        };
        Some((envelope, self.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::RemoteKey;
    use proptest::prelude::*;

    fn key(tag: i32) -> Key {
        Key {
            context: 5,
            source: 1,
            tag,
        }
    }

    fn target(receive: u32, rails: usize) -> Target {
        let mut bytes = vec![1; 8];
        bytes.extend((0..4 * rails).map(|_| 2));
        Target {
            len: 4096,
            notice: receive + 7,
            receive,
            key: RemoteKey::decode(&bytes, 4096).unwrap(),
        }
    }

    const PROGRESS_MADE: Progress = Progress {
        seen: 77,
        amid: true,
    };

    fn packed(added: &[(i32, usize, Target)], room: usize) -> (Envelope, Vec<u8>) {
        let mut packet = AnnouncementPacket::new(PROGRESS_MADE, room);
        for (tag, behind, target) in added {
            assert!(packet.add(key(*tag), *behind, target));
        }
        packet.finish().unwrap()
    }

    #[test]
    fn consecutive_receives_share_their_key() {
        let added = [
            (3, 2, target(1, 1)),
            (3, 3, target(2, 1)),
            (4, 0, target(3, 1)),
            (3, 4, target(4, 1)),
            (3, 9, target(5, 1)),
        ];
        let (head, body) = packed(&added, 16 << 10);
        let (progress, runs) = decode_runs(head.key, head.token, &body).unwrap();
        assert_eq!(progress, PROGRESS_MADE);
        let shapes: Vec<_> = runs
            .iter()
            .map(|run| (run.key.tag, run.behind, run.targets.len()))
            .collect();
        assert_eq!(shapes, [(3, 2, 2), (4, 0, 1), (3, 4, 1), (3, 9, 1)]);
        assert_eq!(body.len(), 8 + 5 * 28 + 3 * RUN);
    }

    #[test]
    fn a_batch_costs_little_more_than_its_keys() {
        for (rails, one, sixteen) in [(1, 36, 456), (2, 40, 520), (8, 64, 904)] {
            let run = |count: u32| -> Vec<_> {
                let numbers = 0..count;
                numbers
                    .map(|at| (3, at as usize, target(at, rails)))
                    .collect()
            };
            assert_eq!(packed(&run(1), 1 << 10).1.len(), one);
            assert_eq!(packed(&run(16), 1 << 10).1.len(), sixteen);
        }
    }

    #[test]
    fn a_packet_is_never_longer_than_its_room() {
        let mut packet = AnnouncementPacket::new(PROGRESS_MADE, 100);
        let added = (0..10).filter(|at| packet.add(key(0), *at, &target(0, 1)));
        assert_eq!(added.count(), 3);
        assert!(packet.finish().unwrap().1.len() <= 100);
        let packet = AnnouncementPacket::new(PROGRESS_MADE, 100);
        assert!(packet.finish().is_none());
        let mut packet = AnnouncementPacket::new(PROGRESS_MADE, 100);
        assert!(
            !packet.add(key(0), 1 << 16, &target(0, 1)),
            "too far behind"
        );
    }

    proptest! {
        #[test]
        fn every_packet_comes_back_as_it_was(
            added in prop::collection::vec((0..3i32, 0usize..4, any::<u32>(), 0usize..9), 1..300),
        ) {
            let added: Vec<_> = added
                .into_iter()
                .map(|(tag, behind, receive, rails)| (tag, behind, target(receive >> 1, rails)))
                .collect();
            let (head, body) = packed(&added, 1 << 20);
            let (_, runs) = decode_runs(head.key, head.token, &body).unwrap();
            let flat: Vec<_> = runs
                .iter()
                .flat_map(|run| {
                    let numbered = run.targets.iter().enumerate();
                    numbered.map(|(at, target)| (run.key.tag, run.behind + at, *target))
                })
                .collect();
            prop_assert_eq!(flat, added);
            for len in [0, 7, body.len() - 1] {
                prop_assert!(decode_runs(head.key, head.token, &body[..len]).is_none());
            }
        }

        #[test]
        fn no_bytes_end_the_decoder(
            token in any::<u32>(), bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = decode_runs(key(0), token, &bytes);
        }
    }
}
