//! The messages by which two ranks give up a link, and take it back.
//!
//! They travel out of band, in order, and survive the loss of any rail.

use super::notice::NOTICE_NUMBERS;

/// A message about one link, which it names by the rails of both ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkMessage {
    /// The numbers of the link's rails: the sender's, and the receiver's.
    pub rails: (u8, u8),
    pub word: LinkWord,
}

/// The contents of a control message about a link.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LinkWord {
    /// The fence of the sender's end of the link: the end is drained, and reports what it has
    /// received.
    Fence(Fence),
    /// The sender asks to connect the link again in this epoch.
    Join { epoch: u32, address: QpAddresses },
    /// The sender's end is connected in this epoch.
    Joined { epoch: u32, address: QpAddresses },
    /// Probes of the sender have succeeded in this epoch.
    Alive { epoch: u32 },
}

/// The addresses of the queue pairs of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QpAddresses {
    pub control: device::Address,
    pub bulk: device::Address,
    /// The queue pair for reads. `None`: reads have no queue pair of their own.
    pub reads: Option<device::Address>,
}

impl QpAddresses {
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        for end in [self.control, self.bulk].iter().chain(&self.reads) {
            bytes.extend(end.port.to_le_bytes());
            bytes.extend(end.qp.to_le_bytes());
        }
    }

    /// Reads what `encode` wrote, from the beginning of `bytes`. `reads`: the end has a queue pair
    /// for reads.
    pub(super) fn decode(bytes: &mut &[u8], reads: bool) -> Result<QpAddresses, String> {
        let mut end = || -> Result<device::Address, String> {
            Ok(device::Address {
                port: u128::from_le_bytes(take(bytes)?),
                qp: u32::from_le_bytes(take(bytes)?),
            })
        };
        Ok(QpAddresses {
            control: end()?,
            bulk: end()?,
            reads: reads.then(end).transpose()?,
        })
    }
}

/// The state of an end that has been drained: nothing that is confirmed here is written again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fence {
    /// The epoch of the link that ends.
    pub epoch: u32,
    /// The number of the sender's last packet that this end has received: consumed from a ring, or
    /// arrived as a message. It replaces a tail that was lost with the link.
    pub received: u64,
    /// The number of the last message that this end allows the peer to send.
    pub granted: u64,
    /// The number of times that this end has restarted its grants. A fence of a link that carried
    /// no messages repeats an earlier number, and changes no grant.
    pub restarts: u32,
    /// The number of the last packet that this end has sent: grants in packets up to it are older
    /// than this fence.
    pub sent: u64,
    /// The number of the next notice that this end will expect. A peer may learn of later ones
    /// before it receives the fence.
    pub next_notice: u32,
    /// Every notice that this end still expects from the peer, with the set of shares that have
    /// been reported. An earlier notice that is missing here has arrived whole.
    pub expected: Vec<(u32, u8)>,
}

impl Fence {
    /// True if the sender of the fence has received the notice of this share of transfer `number`.
    pub(super) fn confirms(&self, number: u32, share: usize) -> bool {
        let found = self
            .expected
            .iter()
            .find(|(expected, _)| *expected == number);
        match found {
            Some((_, shares)) => shares >> share & 1 == 1,
            // The numbers wrap around.
            None => number.wrapping_sub(self.next_notice) & NOTICE_NUMBERS > NOTICE_NUMBERS / 2,
        }
    }
}

const FENCE: u8 = 0;
const JOIN: u8 = 1;
const JOINED: u8 = 2;
const ALIVE: u8 = 3;

impl LinkMessage {
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.rails.0, self.rails.1]);
        let address = |bytes: &mut Vec<u8>, address: &QpAddresses| {
            bytes.push(address.reads.is_some().into());
            address.encode(bytes);
        };
        match &self.word {
            LinkWord::Fence(fence) => {
                bytes.push(FENCE);
                bytes.extend(fence.epoch.to_le_bytes());
                bytes.extend(fence.received.to_le_bytes());
                bytes.extend(fence.granted.to_le_bytes());
                bytes.extend(fence.restarts.to_le_bytes());
                bytes.extend(fence.sent.to_le_bytes());
                bytes.extend(fence.next_notice.to_le_bytes());
                bytes.extend((fence.expected.len() as u32).to_le_bytes());
                for (number, shares) in &fence.expected {
                    bytes.extend(number.to_le_bytes());
                    bytes.push(*shares);
                }
            }
            LinkWord::Join { epoch, address: at } => {
                bytes.push(JOIN);
                bytes.extend(epoch.to_le_bytes());
                address(bytes, at);
            }
            LinkWord::Joined { epoch, address: at } => {
                bytes.push(JOINED);
                bytes.extend(epoch.to_le_bytes());
                address(bytes, at);
            }
            LinkWord::Alive { epoch } => {
                bytes.push(ALIVE);
                bytes.extend(epoch.to_le_bytes());
            }
        }
    }

    /// Reads what `encode` wrote, from the beginning of `bytes`. The error describes the fault.
    pub(super) fn decode(bytes: &mut &[u8]) -> Result<LinkMessage, String> {
        let [ours, theirs, kind] = take(bytes)?;
        let epoch = u32::from_le_bytes(take(bytes)?);
        let word = match kind {
            FENCE => {
                let received = u64::from_le_bytes(take(bytes)?);
                let granted = u64::from_le_bytes(take(bytes)?);
                let restarts = u32::from_le_bytes(take(bytes)?);
                let sent = u64::from_le_bytes(take(bytes)?);
                let next_notice = u32::from_le_bytes(take(bytes)?);
                let count = u32::from_le_bytes(take(bytes)?) as usize;
                if bytes.len() != 5 * count {
                    return Err(format!("a fence with {count} notices of another length"));
                }
                let mut notice = || -> Result<(u32, u8), String> {
                    let number = u32::from_le_bytes(take(bytes)?);
                    let [shares] = take(bytes)?;
                    Ok((number, shares))
                };
                LinkWord::Fence(Fence {
                    epoch,
                    received,
                    granted,
                    restarts,
                    sent,
                    next_notice,
                    expected: (0..count).map(|_| notice()).collect::<Result<_, _>>()?,
                })
            }
            JOIN => LinkWord::Join {
                epoch,
                address: address(bytes)?,
            },
            JOINED => LinkWord::Joined {
                epoch,
                address: address(bytes)?,
            },
            ALIVE => LinkWord::Alive { epoch },
            other => return Err(format!("a word about a link of unknown kind {other}")),
        };
        Ok(LinkMessage {
            rails: (ours, theirs),
            word,
        })
    }
}

fn address(from: &mut &[u8]) -> Result<QpAddresses, String> {
    match take(from)? {
        [reads @ 0..=1] => QpAddresses::decode(from, reads == 1),
        [other] => Err(format!("queue pairs of unknown kind {other}")),
    }
}

/// Takes the next `N` bytes of `from`. An error: fewer are left.
pub(super) fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], String> {
    let (bytes, rest) = from
        .split_first_chunk()
        .ok_or_else(|| "a handshake message that is too short".to_string())?;
    *from = rest;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_and_nothing_else_does() {
        let address = |port, qp| device::Address { port, qp };
        let address = QpAddresses {
            control: address(u128::MAX, 3),
            bulk: address(4, u32::MAX),
            reads: None,
        };
        let reads = Some(address.bulk);
        let fence = Fence {
            epoch: 9,
            received: 1 << 40,
            granted: 77,
            restarts: 2,
            sent: 1 << 50,
            next_notice: 6,
            expected: vec![(5, 0b11), (u32::MAX >> 6, 0)],
        };
        for word in [
            LinkWord::Fence(fence),
            LinkWord::Fence(Fence::default()),
            LinkWord::Join { epoch: 1, address },
            LinkWord::Joined {
                epoch: 2,
                address: QpAddresses { reads, ..address },
            },
            LinkWord::Alive { epoch: 3 },
        ] {
            let rails = (3, 1);
            let message = LinkMessage { rails, word };
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(LinkMessage::decode(&mut rest), Ok(message));
            assert!(rest.is_empty());
            for len in 0..bytes.len() {
                assert!(LinkMessage::decode(&mut &bytes[..len]).is_err());
            }
        }
        assert!(LinkMessage::decode(&mut &[0, 0, 9, 0, 0, 0, 0][..]).is_err());
    }

    #[test]
    fn a_fence_confirms_what_it_does_not_expect_any_more() {
        let fence = Fence {
            expected: vec![(5, 0b10)],
            next_notice: 7,
            ..Fence::default()
        };
        assert!(fence.confirms(5, 1) && !fence.confirms(5, 0));
        assert!(fence.confirms(6, 0), "it has arrived whole");
        assert!(!fence.confirms(7, 0), "it was expected after the fence");
        assert!(
            fence.confirms(NOTICE_NUMBERS, 0),
            "before the numbers began again"
        );
    }
}
