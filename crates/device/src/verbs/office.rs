//! Where a rank's [`Mail`] meets a device: a datagram queue pair, memory for what comes and goes, and the cards by which
//! ranks find each other.

use std::collections::BTreeMap;
use std::ptr;

use super::mail::{DATAGRAM, Mail};
use crate::{
    Access, Address, Completed, Completion, Cq, Device, Ending, Error, Operation, Qp, QpWanted,
    ReceiveQueue, Region, Result, Slice, Status, Transport, Work,
};

/// How ranks learn each other's cards, before they can talk: a launcher's key-value space, for instance.
pub trait Directory: Send {
    /// Makes this rank's card known to all others.
    fn publish(&mut self, card: &[u8]) -> Result<()>;

    /// A peer's card. `None`: it is not known yet, ask again later. Never waits.
    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>>;
}

/// Datagrams that may come before they are looked at, and leave before they are gone.
const RECEIVES: usize = 128;
const SENDS: usize = 32;
/// Nanoseconds until a card is asked for again: the first time, and the most.
const ASK_AGAIN: u64 = 1_000_000;
const ASK_SELDOM: u64 = 50_000_000;

pub struct Office {
    mail: Mail,
    ranks: usize,
    directory: Box<dyn Directory>,
    cq: Cq,
    qp: Qp,
    memory: Box<[u8]>,
    region: Region,
    /// Places that no send is using.
    free: Vec<usize>,
    addresses: BTreeMap<usize, Address>,
    /// Of ranks whose card is not known yet: when to ask again, and how long to wait after that.
    asked: BTreeMap<usize, (u64, u64)>,
}

impl Office {
    pub fn open(
        device: &mut dyn Device,
        rank: usize,
        ranks: usize,
        mut directory: Box<dyn Directory>,
    ) -> Result<Office> {
        let (name, mtu) = (&device.attributes().name, device.attributes().mtu);
        if mtu < DATAGRAM {
            return Err(Error::System(format!(
                "{name}: packets carry {mtu} bytes; at least {DATAGRAM} are needed (is the MTU of its network \
                 interface below 1500?)"
            )));
        }
        let cq = device.create_cq(RECEIVES + SENDS)?;
        let qp = device.create_qp(&QpWanted {
            transport: Transport::Ud,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            sends: SENDS,
            receives: RECEIVES,
            inline: 0,
        })?;
        let mut memory = vec![0; (RECEIVES + SENDS) * DATAGRAM].into_boxed_slice();
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        // SAFETY: the memory stays until `close`, and is read only where a completion says that it is ours.
        let region = unsafe { device.register(memory.as_mut_ptr(), memory.len(), access)? };
        let secret = secret()?;
        let address = device.address(qp)?;
        let mut office = Office {
            mail: Mail::new(rank, secret),
            ranks,
            cq,
            qp,
            memory,
            region,
            free: Vec::new(),
            addresses: BTreeMap::new(),
            asked: BTreeMap::new(),
            directory: Box::new(Nobody),
        };
        office.revive(device)?;
        directory.publish(&card(secret, address))?;
        office.directory = directory;
        Ok(office)
    }

    pub fn tell(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        if peer >= self.ranks {
            let ranks = self.ranks;
            return Err(Error::Invalid(format!(
                "there is no rank {peer} among {ranks}"
            )));
        }
        self.mail.tell(peer, words);
        Ok(())
    }

    pub fn told(&mut self) -> Option<(usize, Vec<u8>)> {
        self.mail.told()
    }

    pub fn has_arrived(&self) -> bool {
        self.mail.has_arrived()
    }

    /// All that was told has been heard, and nothing is on its way from here.
    pub fn is_settled(&self) -> bool {
        self.mail.is_settled() && self.free.len() == SENDS
    }

    /// When there is something to do, if nothing comes before.
    pub fn due(&self) -> Option<u64> {
        let asked = self.asked.values().map(|(when, _)| *when);
        asked.chain(self.mail.due()).min()
    }

    /// Takes what has come, and sends what is to be sent.
    pub fn tend(&mut self, device: &mut dyn Device, now: u64) -> Result<()> {
        self.collect(device, now)?;
        self.ask(now)?;
        while !self.free.is_empty()
            && let Some((peer, datagram)) = self.mail.outgoing(now)
        {
            self.send(device, peer, &datagram)?;
        }
        Ok(())
    }

    fn collect(&mut self, device: &mut dyn Device, now: u64) -> Result<()> {
        let none = Completion {
            id: 0,
            qp: self.qp,
            status: Status::Success,
            of: Completed::Send,
            bytes: 0,
            immediate: None,
        };
        let mut some = [none; 16];
        loop {
            let count = device.poll(self.cq, &mut some)?;
            for one in &some[..count] {
                let place = one.id as usize;
                match one.status {
                    Status::Success if place >= RECEIVES => self.free.push(place),
                    Status::Success => {
                        self.take(place, one.bytes as usize, now);
                        self.post_receive(device, place)?;
                    }
                    // There is no way out of this port now, perhaps because its link is down. A datagram that is lost is
                    // sent again, and so is this one.
                    Status::LocalQpOperation | Status::Flushed => return self.revive(device),
                    status => {
                        return Err(Error::System(format!(
                            "{}: the queue pair by which ranks find each other has failed: {}",
                            device.attributes().name,
                            status.words()
                        )));
                    }
                }
            }
            if count < some.len() {
                return Ok(());
            }
        }
    }

    /// A datagram has come.
    fn take(&mut self, place: usize, len: usize, now: u64) {
        let mut datagram = vec![0; len.min(DATAGRAM)];
        // SAFETY: inside the memory, of which a completion has said that the device is done with this place.
        unsafe {
            let from = self.memory.as_ptr().add(place * DATAGRAM);
            ptr::copy_nonoverlapping(from, datagram.as_mut_ptr(), datagram.len());
        }
        self.mail.incoming(&datagram, self.ranks, now);
    }

    /// Begins, or begins anew with the same queue pair, which keeps its number: what was on its way is lost.
    fn revive(&mut self, device: &mut dyn Device) -> Result<()> {
        device.modify(self.qp, Ending::Reset)?;
        device.connect(self.qp, None)?;
        self.free = (RECEIVES..RECEIVES + SENDS).collect();
        (0..RECEIVES).try_for_each(|place| self.post_receive(device, place))
    }

    /// Asks for the cards of ranks that something is for.
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
                            "what rank {peer} has published of itself is no card; do all ranks use the same version of \
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

    fn slice(&self, place: usize, len: usize) -> Slice {
        Slice {
            address: self.region.address + (place * DATAGRAM) as u64,
            len: len as u32,
            lkey: self.region.lkey,
        }
    }

    fn post_receive(&mut self, device: &mut dyn Device, place: usize) -> Result<()> {
        let into = [self.slice(place, DATAGRAM)];
        // SAFETY: our own memory, left alone until the completion.
        unsafe { device.post_receive(ReceiveQueue::Own(self.qp), place as u64, &into) }
    }

    fn send(&mut self, device: &mut dyn Device, peer: usize, datagram: &[u8]) -> Result<()> {
        let (Some(&to), Some(place)) = (self.addresses.get(&peer), self.free.pop()) else {
            return Ok(());
        };
        let start = place * DATAGRAM;
        self.memory[start..start + datagram.len()].copy_from_slice(datagram);
        let local = [self.slice(place, datagram.len())];
        let work = Work {
            id: place as u64,
            operation: Operation::Send { immediate: None },
            local: &local,
            inline: false,
            signaled: true,
            to: Some(to),
        };
        // SAFETY: our own memory, left alone until the completion.
        unsafe { device.post(self.qp, &work) }
    }

    /// Ends the device's use of the memory.
    pub fn close(&mut self, device: &mut dyn Device) {
        // What the device says to this no longer matters.
        let _ = device.destroy_qp(self.qp);
        let _ = device.deregister(self.region);
    }
}

/// The directory until there is one.
struct Nobody;

impl Directory for Nobody {
    fn publish(&mut self, _card: &[u8]) -> Result<()> {
        Ok(())
    }

    fn find(&mut self, _peer: usize) -> Result<Option<Vec<u8>>> {
        Ok(None)
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

/// A number that nobody can guess.
fn secret() -> Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: a place for so many bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got == bytes.len() as isize {
        true => Ok(u64::from_ne_bytes(bytes)),
        false => Err(Error::System(format!(
            "no random number: {}",
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
