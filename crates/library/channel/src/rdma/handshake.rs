//! The messages of the handshake, which ranks exchange out of band.

use device::LinkLayer;

use super::config::Config;
use super::fence::{LinkMessage, QpAddresses, take};
use super::pairing::Network;
use super::rail_set::RailSet;

/// The version of the ring's layout and of the messages of the handshake.
const VERSION: u8 = 8;

/// The flag of a hello with [`Hello::ready`].
const READY: u8 = 1;
/// The flag of a hello with [`Hello::rings`].
const RINGS: u8 = 2;
/// The flag of a hello with [`Hello::shared`].
const SHARED: u8 = 4;

/// The flag, for one rail in a hello, that its link layer is Ethernet.
const ETHERNET: u8 = 1;
/// The flag of one rail in a hello: [`LinkAddress::unordered`].
const UNORDERED: u8 = 2;
/// The flag, for one rail in a hello, that its link layer is TCP.
const INTERNET: u8 = 4;
/// The flag, for one rail in a hello, that it has a queue pair for reads.
const READS: u8 = 8;

/// A message of the handshake.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HandshakeMessage {
    /// A hello: the addresses of the sender's end of the connection.
    Hello(Box<Hello>),
    /// The sender's end is connected: the receiver may write to it.
    Ready,
    /// Every write of the sender has completed, and no other follows.
    Bye,
    /// A message about a link that has failed, or that works again.
    Link(LinkMessage),
    /// The sender has given up the receiver, and expects nothing of it.
    GaveUp,
    /// The lower half of the number of the last message that the sender, which has said goodbye,
    /// grants.
    Grant(u32),
}

/// The contents of a hello: one end of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hello {
    pub config: Config,
    /// True if this end is connected already.
    pub ready: bool,
    /// True if this end has memory for rings. Unless both ends have it, packets travel as messages.
    pub rings: bool,
    /// True if this end sends transfers through the queue pairs of packets, where that is possible.
    pub shared: bool,
    /// The number of messages that this end accepts before it grants more.
    pub credits: u32,
    /// The address of the memory that the peer writes to, which is equal on all rails.
    pub address: u64,
    /// One entry for each rail of this end, in ascending order of rails.
    pub links: Vec<LinkAddress>,
}

/// The part of a hello that belongs to one rail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkAddress {
    pub rail: usize,
    pub network: Network,
    /// True if writes to this end are not placed in order: poll completions, not memory.
    pub unordered: bool,
    /// The estimated bandwidth of the rail in bytes per second.
    pub bandwidth: u64,
    /// The estimated latency of the rail in nanoseconds.
    pub latency_ns: u32,
    /// The remote key (rkey) of the memory that the peer writes to.
    pub rkey: u32,
    pub queue_pairs: QpAddresses,
}

impl Hello {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let flags = (u8::from(self.ready) * READY)
            | (u8::from(self.rings) * RINGS)
            | (u8::from(self.shared) * SHARED);
        let rails = self.links.iter();
        let rails = rails.fold(RailSet::default(), |set, link| set.with(link.rail));
        bytes.extend([
            super::config::number(self.config.design),
            flags,
            rails.mask(),
        ]);
        for size in [self.config.ring_bytes, self.config.chunk] {
            bytes.extend((size as u64).to_le_bytes());
        }
        bytes.extend(self.address.to_le_bytes());
        bytes.extend(self.credits.to_le_bytes());
        for link in &self.links {
            let layer = match link.network.link_layer {
                LinkLayer::InfiniBand => 0,
                LinkLayer::Ethernet => ETHERNET,
                LinkLayer::Internet => INTERNET,
            };
            let reads = link.queue_pairs.reads.is_some();
            let flags = (u8::from(link.unordered) * UNORDERED) | (u8::from(reads) * READS);
            bytes.push(layer | flags);
            bytes.extend(link.network.subnet.to_le_bytes());
            bytes.extend(link.bandwidth.to_le_bytes());
            bytes.extend(link.latency_ns.to_le_bytes());
            bytes.extend(link.rkey.to_le_bytes());
            link.queue_pairs.encode(bytes);
        }
    }

    fn decode(bytes: &mut &[u8], ours: &Config) -> Result<Hello, String> {
        let design = u8::from_le_bytes(take(bytes)?);
        let flags = u8::from_le_bytes(take(bytes)?);
        let rails = RailSet::of_mask(u8::from_le_bytes(take(bytes)?));
        let theirs = [
            u64::from_le_bytes(take(bytes)?),
            u64::from_le_bytes(take(bytes)?),
        ];
        let wanted = [ours.ring_bytes as u64, ours.chunk as u64];
        if (design, theirs) != (super::config::number(ours.design), wanted) {
            return Err(format!(
                "it has rings of {} bytes, chunks of {} and design {design}, we have {} and {} and design {}: \
                 give all ranks the same FISHPLATE_RDMA_* settings",
                theirs[0],
                theirs[1],
                wanted[0],
                wanted[1],
                super::config::number(ours.design),
            ));
        }
        let address = u64::from_le_bytes(take(bytes)?);
        let credits = u32::from_le_bytes(take(bytes)?);
        let mut link = |rail| -> Result<LinkAddress, String> {
            let flags = u8::from_le_bytes(take(bytes)?);
            Ok(LinkAddress {
                rail,
                network: Network {
                    link_layer: match flags & (ETHERNET | INTERNET) {
                        0 => LinkLayer::InfiniBand,
                        ETHERNET => LinkLayer::Ethernet,
                        _ => LinkLayer::Internet,
                    },
                    subnet: u64::from_le_bytes(take(bytes)?),
                },
                unordered: flags & UNORDERED != 0,
                bandwidth: u64::from_le_bytes(take(bytes)?),
                latency_ns: u32::from_le_bytes(take(bytes)?),
                rkey: u32::from_le_bytes(take(bytes)?),
                queue_pairs: QpAddresses::decode(bytes, flags & READS != 0)?,
            })
        };
        Ok(Hello {
            config: *ours,
            ready: flags & READY != 0,
            rings: flags & RINGS != 0,
            shared: flags & SHARED != 0,
            credits,
            address,
            links: rails.iter().map(&mut link).collect::<Result<_, _>>()?,
        })
    }
}

impl HandshakeMessage {
    /// The encoded message. A hello with one rail has 98 bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        match self {
            HandshakeMessage::Hello(hello) => {
                bytes.push(0);
                hello.encode(&mut bytes);
            }
            HandshakeMessage::Ready => bytes.push(1),
            HandshakeMessage::Bye => bytes.push(2),
            HandshakeMessage::GaveUp => bytes.push(4),
            HandshakeMessage::Grant(lower) => {
                bytes.push(5);
                bytes.extend(lower.to_le_bytes());
            }
            HandshakeMessage::Link(message) => {
                bytes.push(3);
                message.encode(&mut bytes);
            }
        }
        bytes
    }

    /// The message that a peer has sent, given this rank's configuration. The error describes its
    /// fault.
    pub(super) fn decode(bytes: &[u8], ours: &Config) -> Result<HandshakeMessage, String> {
        let mut rest = bytes;
        let version = u8::from_le_bytes(take(&mut rest)?);
        if version != VERSION {
            return Err(format!(
                "its version of the channel is {version}, ours {VERSION}"
            ));
        }
        let message = match u8::from_le_bytes(take(&mut rest)?) {
            0 => HandshakeMessage::Hello(Box::new(Hello::decode(&mut rest, ours)?)),
            1 => HandshakeMessage::Ready,
            2 => HandshakeMessage::Bye,
            3 => HandshakeMessage::Link(LinkMessage::decode(&mut rest)?),
            4 => HandshakeMessage::GaveUp,
            5 => HandshakeMessage::Grant(u32::from_le_bytes(take(&mut rest)?)),
            other => return Err(format!("a handshake message of unknown kind {other}")),
        };
        match rest {
            [] => Ok(message),
            _ => Err(format!(
                "a handshake message with {} surplus bytes",
                rest.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use device::Address;

    use super::*;

    fn hello(rails: &[usize]) -> Hello {
        let address = |port, qp| Address { port, qp };
        let link = |&rail: &usize| LinkAddress {
            rail,
            network: Network {
                link_layer: [
                    LinkLayer::InfiniBand,
                    LinkLayer::Ethernet,
                    LinkLayer::Internet,
                ][rail % 3],
                subnet: u64::MAX - rail as u64,
            },
            unordered: rail == 3,
            bandwidth: 1 << 40,
            latency_ns: 1000,
            rkey: u32::MAX - rail as u32,
            queue_pairs: QpAddresses {
                control: address(u128::MAX - 3, 17),
                bulk: address(rail as u128, u32::MAX),
                reads: (rails.len() > 1).then(|| address(7, rail as u32)),
            },
        };
        Hello {
            config: Config::default(),
            ready: true,
            rings: false,
            shared: true,
            credits: 5,
            address: 1 << 60,
            links: rails.iter().map(link).collect(),
        }
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let ours = Config::default();
        let hellos = [&[0][..], &[3], &[0, 1, 7]].map(hello);
        let hellos = hellos.map(|hello| HandshakeMessage::Hello(Box::new(hello)));
        for message in hellos.into_iter().chain([
            HandshakeMessage::Ready,
            HandshakeMessage::Bye,
            HandshakeMessage::GaveUp,
            HandshakeMessage::Grant(u32::MAX - 7),
        ]) {
            let bytes = message.encode();
            assert_eq!(HandshakeMessage::decode(&bytes, &ours), Ok(message));
            for len in 0..bytes.len() {
                assert!(HandshakeMessage::decode(&bytes[..len], &ours).is_err());
            }
            assert!(HandshakeMessage::decode(&[&bytes[..], &[0]].concat(), &ours).is_err());
        }
        assert!(HandshakeMessage::decode(&[VERSION, 9], &ours).is_err());
        assert!(HandshakeMessage::decode(&[VERSION + 1, 1], &ours).is_err());
    }

    #[test]
    fn ranks_with_other_settings_are_told_which() {
        let hello = HandshakeMessage::Hello(Box::new(hello(&[0])));
        let other = Config {
            chunk: 7,
            ..Config::default()
        };
        let error = HandshakeMessage::decode(&hello.encode(), &other).unwrap_err();
        assert!(
            error.contains("chunks of 16384") && error.contains("FISHPLATE_RDMA"),
            "{error}"
        );
    }

    #[test]
    fn a_hello_over_one_rail_has_the_length_that_figures_were_taken_with() {
        let hello = HandshakeMessage::Hello(Box::new(hello(&[0])));
        assert_eq!(hello.encode().len(), 98);
    }
}
