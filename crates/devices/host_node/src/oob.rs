//! Out-of-band messages: a rank's [`ReliableDatagrams`], carried as datagrams on each rail.
//!
//! Every datagram leaves on every rail that leads to its peer, so that messages survive the loss of
//! all rails but one. After an error a rail or route pauses for a short time: a network that is
//! down may come back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::RawFd;

use super::card::{self, Card, Place};
use super::datagram::PURPOSE;
use super::datagrams::Datagrams;
use super::probes::{Kernel, Probes};
use super::reliable_datagram::ReliableDatagrams;
use super::socket::Socket;
use super::whereabouts::Whereabouts;
use device::{Address, Device, Error, HostDevice, MOST_NOTES, Result, Signs};
use secret::Secret;
use secret::codes::Codes;

/// A directory in which ranks publish their cards before they can communicate, such as a launcher's
/// key-value store. [`Board`](crate::Board) is one for ranks of one process.
pub trait Directory: Send {
    /// Publishes this rank's card for all others.
    fn publish(&mut self, card: &[u8]) -> Result<()>;

    /// A peer's card, without waiting. `None`: it is not published yet; call again later.
    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>>;
}

/// A carrier of datagrams between ranks on one rail. It may lose datagrams.
pub(crate) trait Carrier: Send {
    /// The address of this rank, to which peers send datagrams.
    fn address(&self) -> Address;

    /// Passes arrived datagrams, at most about [`MOST_TAKEN`], to `take`, each with its sender's
    /// socket address if it has one. True: there may be more.
    fn collect(&mut self, device: &mut dyn Device, take: &mut Take) -> Result<bool>;

    /// True if the carrier has room for another datagram.
    fn has_room(&self) -> bool;

    /// Sends a datagram.
    fn send(&mut self, device: &mut dyn Device, to: Address, datagram: &[u8]) -> Result<()>;

    /// The socket address of a peer for probes by the kernel. `None`: kernels do not have it.
    fn kernel(&self, to: Address) -> Option<Kernel>;

    /// Restarts the carrier after an error. Datagrams in flight are lost.
    fn revive(&mut self, device: &mut dyn Device) -> Result<()>;

    /// True if the carrier is sending no datagram.
    fn is_settled(&self) -> bool;

    /// A descriptor that is readable when a datagram has arrived. `None`: the device's events
    /// report arrivals.
    fn fd(&self) -> Option<RawFd>;

    /// Destroys the carrier's queue pair, and ends the device's access to its buffers. A carrier
    /// without a device has nothing to do.
    fn close(&mut self, device: &mut dyn Device);
}

/// A function that handles an arrived datagram and its sender's socket address.
pub(crate) type Take<'a> = dyn FnMut(&[u8], Option<SocketAddr>) + 'a;

/// The greatest number of datagrams that one call receives from a rail: a flood of strangers'
/// datagrams delays the rank's own work by less than a millisecond at a time.
pub(crate) const MOST_TAKEN: usize = 64;

/// The first delay before the directory is queried again for a card, in nanoseconds.
const ASK_AGAIN: u64 = 1_000_000;
/// The longest delay before the directory is queried again for a card, in nanoseconds.
const ASK_SELDOM: u64 = 50_000_000;
/// The first delay before a rail or route is tried again after an error, in nanoseconds.
const TRY_AGAIN: u64 = 250_000_000;
/// The longest delay before a rail or route is tried again after an error, in nanoseconds.
const TRY_SELDOM: u64 = 1_000_000_000;

pub(crate) struct OutOfBand {
    mail: ReliableDatagrams,
    ranks: usize,
    directory: Box<dyn Directory>,
    /// The carriers by rail. Each sends every datagram, and the receiver drops the repetitions.
    carriers: Vec<RailCarrier>,
    whereabouts: Whereabouts,
    known: BTreeMap<usize, Known>,
    /// Ranks whose cards are needed although no message waits for them.
    wanted: BTreeSet<usize>,
    probes: Probes,
    /// For each rank whose card is not known yet: the time of the next query, and the delay after
    /// that, both in nanoseconds.
    asked: BTreeMap<usize, (u64, u64)>,
    /// True if a carrier may have more datagrams than the last call has received.
    has_more: bool,
    /// Reports about strangers for the user, each with its rail.
    warnings: Vec<(usize, String)>,
    /// Reports for the user about errors of rails.
    notes: Vec<String>,
}

/// A rank whose card is known: the routes to it, and its location.
struct Known {
    routes: Vec<Route>,
    /// The host and the addresses of the rank, as text for the user.
    place: String,
    /// True if the network namespaces of that rank and of this rank are known and differ.
    is_apart: bool,
}

struct RailCarrier {
    carrier: Box<dyn Carrier>,
    name: String,
    place: Place,
    refusals: Refusals,
    /// Number of received datagrams that no rank of the job has made.
    strangers: u64,
}

/// The path of datagrams to a peer over one rail.
struct Route {
    rail: usize,
    to: Address,
    refusals: Refusals,
}

/// The pause after errors: no attempt before the time `until`. The delay doubles with each error.
#[derive(Clone, Copy, Default)]
struct Refusals {
    until: u64,
    delay: u64,
}

impl Refusals {
    fn add(&mut self, now: u64) {
        self.delay = (2 * self.delay).clamp(TRY_AGAIN, TRY_SELDOM);
        self.until = now + self.delay;
    }
}

impl OutOfBand {
    /// Opens the out-of-band messages of rank `rank`. The codes of datagrams are made with the
    /// secret.
    pub(crate) fn open(
        devices: &mut [Box<dyn HostDevice>],
        rank: usize,
        ranks: usize,
        secret: &Secret,
        mut directory: Box<dyn Directory>,
    ) -> Result<OutOfBand> {
        let mut carriers = Vec::new();
        for device in devices {
            let attributes = device.attributes();
            let place = Place::of(attributes);
            let carrier: Box<dyn Carrier> = match device.interface_address() {
                Some(own) if !attributes.datagrams => {
                    Box::new(Socket::open(&attributes.name, own)?)
                }
                _ => Box::new(Datagrams::open(&mut **device)?),
            };
            carriers.push(RailCarrier {
                carrier,
                name: device.attributes().name.clone(),
                place,
                refusals: Refusals::default(),
                strangers: 0,
            });
        }
        let nonce = secret::nonce()
            .map_err(|why| Error::System(format!("the system gives no random bytes: {why}")))?;
        let entries = carriers
            .iter()
            .map(|own| (own.place, own.carrier.address()));
        let whereabouts = Whereabouts::own();
        let own = Card {
            nonce,
            whereabouts: whereabouts.clone(),
            entries: entries.collect(),
        };
        directory.publish(&card::write(&own))?;
        let itself = Known {
            routes: Vec::new(),
            place: own.words(),
            is_apart: false,
        };
        Ok(OutOfBand {
            mail: ReliableDatagrams::new(rank, nonce, Codes::new(secret, PURPOSE)),
            ranks,
            directory,
            carriers,
            whereabouts,
            known: BTreeMap::from([(rank, itself)]),
            wanted: BTreeSet::new(),
            probes: Probes::default(),
            asked: BTreeMap::new(),
            has_more: false,
            warnings: Vec::new(),
            notes: Vec::new(),
        })
    }

    pub(crate) fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        if peer >= self.ranks {
            let ranks = self.ranks;
            return Err(Error::Invalid(format!(
                "rank {peer} does not exist: this rank knows {ranks} ranks"
            )));
        }
        self.mail.oob_send(peer, words);
        Ok(())
    }

    /// Extends the job to ranks 0 to `ranks` - 1.
    pub(crate) fn add_ranks(&mut self, ranks: usize) {
        self.ranks = ranks;
    }

    pub(crate) fn oob_recv(&mut self) -> Option<(usize, Vec<u8>)> {
        self.mail.oob_recv()
    }

    pub(crate) fn has_arrived(&self) -> bool {
        self.mail.has_arrived()
    }

    /// The peers that have not received all messages and acknowledgements from this rank.
    pub(crate) fn unsettled(&self) -> Vec<usize> {
        self.mail.unsettled().collect()
    }

    /// True if no datagram is being sent over any rail.
    pub(crate) fn is_quiet(&self) -> bool {
        let settled = |own: &RailCarrier| own.refusals.until > 0 || own.carrier.is_settled();
        self.carriers.iter().all(settled)
    }

    /// Stops the delivery of messages to a peer: from now on they need not arrive.
    pub(crate) fn give_up(&mut self, peer: usize) {
        self.mail.give_up(peer);
        self.probes.forget(peer);
    }

    /// The host of a rank and its addresses, as text for the user.
    pub(crate) fn place_of(&self, rank: usize) -> String {
        let known = self.known.get(&rank);
        known.map_or(String::new(), |known| known.place.clone())
    }

    /// The signs that a peer is alive. Probes the peer's host if a probe is due.
    pub(crate) fn signs(&mut self, peer: usize, now: u64) -> Signs {
        let OutOfBand {
            mail,
            known,
            probes,
            carriers,
            wanted,
            ..
        } = self;
        let heard = mail.heard(peer);
        let Some(known) = known.get(&peer) else {
            wanted.insert(peer);
            return Signs {
                last: heard,
                ..Signs::default()
            };
        };
        let mut tell = true;
        let mut kernels = Vec::new();
        for route in &known.routes {
            let kernel = carriers[route.rail].carrier.kernel(route.to);
            match kernel.map(|kernel| (kernel, is_here(&kernel))) {
                Some((kernel, false)) => kernels.push(kernel),
                // An address of another host that is also one of this host leads back here.
                Some((_, true)) if known.is_apart => {}
                // An answer of this host's own kernel does not prove that a path works.
                Some((kernel, true)) => {
                    tell = false;
                    kernels.push(Kernel {
                        is_host: false,
                        ..kernel
                    });
                }
                None => tell = false,
            }
        }
        let answers = probes.ask(peer, kernels.into_iter(), || mail.sign(peer), now);
        Signs {
            last: heard.max(answers.answered),
            tell,
            refused: answers.refused.filter(|since| heard < Some(*since)),
            cut: None,
        }
    }

    /// True if the peer's host refuses datagrams to the peer once its process has ended.
    pub(crate) fn is_told_of_ends(&self, peer: usize) -> bool {
        let routes = self.known.get(&peer).map(|known| &known.routes[..]);
        routes.unwrap_or_default().iter().any(|route| {
            let kernel = self.carriers[route.rail].carrier.kernel(route.to);
            kernel.is_some_and(|kernel| kernel.is_socket)
        })
    }

    pub(crate) fn take_notes(&mut self) -> impl Iterator<Item = String> {
        self.notes.drain(..)
    }

    /// Descriptors that are readable when messages may have arrived. On other rails the devices'
    /// events report arrivals.
    pub(crate) fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.carriers.iter().filter_map(|own| own.carrier.fd())
    }

    /// The time of the next retransmission or directory query, if nothing arrives before.
    pub(crate) fn due(&self) -> Option<u64> {
        if self.has_more {
            return Some(0);
        }
        let asked = self.asked.values().map(|(when, _)| *when);
        asked.chain(self.mail.due()).min()
    }

    /// Receives arrived datagrams, and sends those that are due.
    pub(crate) fn progress(&mut self, devices: &mut [Box<dyn HostDevice>], now: u64) -> Result<()> {
        self.collect(devices, now);
        self.ask(now)?;
        while self.has_room(now)
            && let Some((peer, datagram)) = self.mail.outgoing(now)
        {
            self.send(devices, peer, &datagram, now);
        }
        Ok(())
    }

    fn collect(&mut self, devices: &mut [Box<dyn HostDevice>], now: u64) {
        let OutOfBand {
            mail,
            ranks,
            carriers,
            warnings,
            notes,
            ..
        } = self;
        let mut has_more = false;
        for (rail, (own, device)) in carriers.iter_mut().zip(devices).enumerate() {
            if own.refusals.until > now {
                continue;
            }
            let RailCarrier {
                carrier,
                name,
                strangers,
                ..
            } = own;
            let mut take = |datagram: &[u8], from: Option<SocketAddr>| {
                if mail.incoming(datagram, *ranks, now) {
                    return;
                }
                *strangers += 1;
                if *strangers == 1 {
                    warnings.push((rail, stranger(from)));
                }
            };
            let taken = match own.refusals.until {
                0 => carrier.collect(&mut **device, &mut take),
                _ => carrier.revive(&mut **device).map(|()| false),
            };
            match taken {
                Ok(more) => {
                    own.refusals.until = 0;
                    has_more |= more;
                }
                Err(why) => {
                    if notes.len() < MOST_NOTES {
                        notes.push(format!("{name}, by which ranks find each other: {why}"));
                    }
                    own.refusals.add(now);
                }
            }
        }
        self.has_more = has_more;
    }

    /// The number of datagrams that strangers have sent to a rail.
    pub(crate) fn strangers(&self, rail: usize) -> u64 {
        self.carriers.get(rail).map_or(0, |own| own.strangers)
    }

    /// Removes and returns the reports about strangers, each with its rail.
    pub(crate) fn take_warnings(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.warnings)
    }

    /// True if a working rail has room for another datagram.
    fn has_room(&self, now: u64) -> bool {
        let working = self.carriers.iter().filter(|own| own.works(now));
        working.into_iter().any(|own| own.carrier.has_room())
    }

    /// Sends a datagram to a peer over every rail that leads there, works and has room.
    fn send(
        &mut self,
        devices: &mut [Box<dyn HostDevice>],
        peer: usize,
        datagram: &[u8],
        now: u64,
    ) {
        let Some(known) = self.known.get_mut(&peer) else {
            return;
        };
        for route in &mut known.routes {
            let own = &mut self.carriers[route.rail];
            if !own.works(now) || route.refusals.until > now || !own.carrier.has_room() {
                continue;
            }
            match own
                .carrier
                .send(&mut *devices[route.rail], route.to, datagram)
            {
                Ok(()) => route.refusals = Refusals::default(),
                // This rail's port may be down, or the peer's rail out of reach.
                Err(_) => route.refusals.add(now),
            }
        }
    }

    /// Queries the directory for the cards that are needed, if a query is due.
    fn ask(&mut self, now: u64) -> Result<()> {
        let strangers = self.mail.strangers().chain(self.wanted.iter().copied());
        let strangers: BTreeSet<usize> = strangers.collect();
        for peer in strangers {
            let (when, patience) = self.asked.get(&peer).copied().unwrap_or((now, ASK_AGAIN));
            if now < when {
                continue;
            }
            match self.directory.find(peer)? {
                Some(card) => {
                    let card = card::read(&card).ok_or_else(|| {
                        Error::System(format!(
                            "the card that rank {peer} published is malformed; do all ranks use the same version of \
                             the library?"
                        ))
                    })?;
                    self.asked.remove(&peer);
                    self.know(peer, &card);
                }
                None => {
                    let later = (now + patience, (2 * patience).min(ASK_SELDOM));
                    self.asked.insert(peer, later);
                }
            }
        }
        Ok(())
    }

    fn know(&mut self, peer: usize, card: &Card) {
        let own: Vec<Place> = self.carriers.iter().map(|own| own.place).collect();
        let route = |(rail, to)| Route {
            rail,
            to,
            refusals: Refusals::default(),
        };
        let entries = card.entries_from(&self.whereabouts);
        let known = Known {
            routes: card::pair(&own, &entries).into_iter().map(route).collect(),
            place: card.words(),
            is_apart: card.whereabouts.is_apart_from(&self.whereabouts),
        };
        self.known.insert(peer, known);
        self.wanted.remove(&peer);
        self.mail.introduce(peer, card.nonce);
    }

    /// Ends the devices' use of memory.
    pub(crate) fn close(&mut self, devices: &mut [Box<dyn HostDevice>]) {
        for (own, device) in self.carriers.iter_mut().zip(devices) {
            own.carrier.close(&mut **device);
        }
    }
}

impl RailCarrier {
    fn works(&self, now: u64) -> bool {
        self.refusals.until == 0 || now >= self.refusals.until
    }
}

/// True if the address is one of this host.
fn is_here(kernel: &Kernel) -> bool {
    UdpSocket::bind((kernel.to.ip(), 0)).is_ok()
}

/// The report about the first datagram of strangers, for the user.
fn stranger(from: Option<SocketAddr>) -> String {
    let from = from.map_or("an unknown address".into(), |from| from.to_string());
    format!(
        "a datagram from {from} was dropped: no rank of this job has sent it to this one; later ones are only counted"
    )
}
