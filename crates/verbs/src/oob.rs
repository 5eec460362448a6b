//! Out-of-band messages: a rank's [`ReliableDatagrams`] over a carrier of datagrams, and the cards
//! by which ranks find each other.

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use super::datagrams::Datagrams;
use super::reliable_datagram::ReliableDatagrams;
use super::socket::Socket;
use device::{Address, Device, Error, Result};

/// A directory in which ranks publish their cards before they can communicate, such as a launcher's
/// key-value store.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
///
/// use device::Result;
/// use verbs::Directory;
///
/// /// A directory for ranks of one process.
/// struct Shared {
///     rank: usize,
///     cards: Arc<Mutex<HashMap<usize, Vec<u8>>>>,
/// }
///
/// impl Directory for Shared {
///     fn publish(&mut self, card: &[u8]) -> Result<()> {
///         self.cards.lock().unwrap().insert(self.rank, card.to_vec());
///         Ok(())
///     }
///     fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>> {
///         Ok(self.cards.lock().unwrap().get(&peer).cloned())
///     }
/// }
///
/// let cards = Arc::default();
/// let mut one = Shared { rank: 0, cards: Arc::clone(&cards) };
/// let mut other = Shared { rank: 1, cards };
/// assert_eq!(other.find(0)?, None);
/// one.publish(b"card")?;
/// assert_eq!(other.find(0)?.unwrap(), b"card");
/// # Ok::<(), device::Error>(())
/// ```
pub trait Directory: Send {
    /// Publishes this rank's card for all others.
    fn publish(&mut self, card: &[u8]) -> Result<()>;

    /// A peer's card, without waiting. `None`: it is not published yet; ask again later.
    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>>;
}

/// A carrier of datagrams between ranks, which may lose some.
pub(super) trait Carrier: Send {
    /// The address that peers send to.
    fn address(&self) -> Address;

    /// Passes every arrived datagram to `take`.
    fn collect(&mut self, device: &mut dyn Device, take: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// True if it takes another datagram.
    fn has_room(&self) -> bool;

    /// Sends a datagram.
    fn send(&mut self, device: &mut dyn Device, to: Address, datagram: &[u8]) -> Result<()>;

    /// True if no datagram is being sent.
    fn is_settled(&self) -> bool;

    /// A descriptor that is readable when a datagram has arrived. None: the device's events report
    /// it.
    fn fd(&self) -> Option<RawFd>;

    /// Ends the device's use of memory.
    fn close(&mut self, device: &mut dyn Device);
}

/// The first delay before a card is asked for again, in nanoseconds.
const ASK_AGAIN: u64 = 1_000_000;
/// The longest such delay, in nanoseconds.
const ASK_SELDOM: u64 = 50_000_000;

pub(crate) struct OutOfBand {
    mail: ReliableDatagrams,
    ranks: usize,
    directory: Box<dyn Directory>,
    carrier: Box<dyn Carrier>,
    addresses: BTreeMap<usize, Address>,
    /// For each rank whose card is not known yet: the time of the next question, and the delay
    /// after that.
    asked: BTreeMap<usize, (u64, u64)>,
}

impl OutOfBand {
    /// Opens the messages of rank `rank`. `ip` is the address of the network interface below a
    /// device without datagrams.
    pub(crate) fn open(
        device: &mut dyn Device,
        ip: u128,
        rank: usize,
        ranks: usize,
        mut directory: Box<dyn Directory>,
    ) -> Result<OutOfBand> {
        let carrier: Box<dyn Carrier> = match device.attributes().datagrams {
            true => Box::new(Datagrams::open(device)?),
            false => Box::new(Socket::open(&device.attributes().name, ip)?),
        };
        let secret = secret()?;
        directory.publish(&card(secret, carrier.address()))?;
        Ok(OutOfBand {
            mail: ReliableDatagrams::new(rank, secret),
            ranks,
            directory,
            carrier,
            addresses: BTreeMap::new(),
            asked: BTreeMap::new(),
        })
    }

    pub(crate) fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        if peer >= self.ranks {
            let ranks = self.ranks;
            return Err(Error::Invalid(format!(
                "rank {peer} does not exist: the job has {ranks} ranks"
            )));
        }
        self.mail.oob_send(peer, words);
        Ok(())
    }

    pub(crate) fn oob_recv(&mut self) -> Option<(usize, Vec<u8>)> {
        self.mail.oob_recv()
    }

    pub(crate) fn has_arrived(&self) -> bool {
        self.mail.has_arrived()
    }

    /// True if every message has been acknowledged and no datagram is being sent.
    pub(crate) fn is_settled(&self) -> bool {
        self.mail.is_settled() && self.carrier.is_settled()
    }

    /// A descriptor that is readable when messages may have arrived. None: the device's events
    /// report them.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.carrier.fd()
    }

    /// The time of the next retransmission or question, if nothing arrives before.
    pub(crate) fn due(&self) -> Option<u64> {
        let asked = self.asked.values().map(|(when, _)| *when);
        asked.chain(self.mail.due()).min()
    }

    /// Takes arrived datagrams, and sends those that are due.
    pub(crate) fn tend(&mut self, device: &mut dyn Device, now: u64) -> Result<()> {
        let OutOfBand {
            mail,
            ranks,
            carrier,
            ..
        } = self;
        carrier.collect(device, &mut |datagram| mail.incoming(datagram, *ranks, now))?;
        self.ask(now)?;
        while self.carrier.has_room()
            && let Some((peer, datagram)) = self.mail.outgoing(now)
        {
            if let Some(&to) = self.addresses.get(&peer) {
                self.carrier.send(device, to, &datagram)?;
            }
        }
        Ok(())
    }

    /// Asks the directory for the cards of ranks with waiting messages.
    fn ask(&mut self, now: u64) -> Result<()> {
        let strangers: Vec<usize> = self.mail.strangers().collect();
        for peer in strangers {
            let (when, patience) = self.asked.get(&peer).copied().unwrap_or((now, ASK_AGAIN));
            if now < when {
                continue;
            }
            match self.directory.find(peer)? {
                Some(card) => {
                    let (secret, address) = read_card(&card).ok_or_else(|| {
                        Error::System(format!(
                            "the card that rank {peer} published is malformed; do all ranks use the same version of \
                             the library?"
                        ))
                    })?;
                    self.asked.remove(&peer);
                    self.addresses.insert(peer, address);
                    self.mail.introduce(peer, secret);
                }
                None => {
                    let later = (now + patience, (2 * patience).min(ASK_SELDOM));
                    self.asked.insert(peer, later);
                }
            }
        }
        Ok(())
    }

    /// Ends the device's use of memory.
    pub(crate) fn close(&mut self, device: &mut dyn Device) {
        self.carrier.close(device);
    }
}

const CARD_VERSION: u8 = 1;
const CARD: usize = 1 + 8 + 16 + 4;

fn card(secret: u64, address: Address) -> Vec<u8> {
    let mut card = vec![CARD_VERSION];
    card.extend(secret.to_le_bytes());
    card.extend(address.port.to_le_bytes());
    card.extend(address.qp.to_le_bytes());
    card
}

fn read_card(card: &[u8]) -> Option<(u64, Address)> {
    if card.len() != CARD || card[0] != CARD_VERSION {
        return None;
    }
    let address = Address {
        port: u128::from_le_bytes(card[9..25].try_into().ok()?),
        qp: u32::from_le_bytes(card[25..].try_into().ok()?),
    };
    Some((u64::from_le_bytes(card[1..9].try_into().ok()?), address))
}

/// A random number that cannot be guessed.
pub(super) fn secret() -> Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: memory for the bytes asked for.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got == bytes.len() as isize {
        true => Ok(u64::from_ne_bytes(bytes)),
        false => Err(Error::System(format!(
            "getrandom: {}",
            std::io::Error::last_os_error()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_says_what_was_put_on_it() {
        let address = Address {
            port: u128::MAX - 5,
            qp: 0x00ab_cdef,
        };
        let card = card(7, address);
        assert_eq!(read_card(&card), Some((7, address)));
        assert_eq!(read_card(&card[1..]), None);
        assert_eq!(read_card(&[]), None);
    }
}
