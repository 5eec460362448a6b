//! The resources of a machine that messages occupy: for each rail of each host the engine, the bus
//! to and from the HCA, the HCA's buffer for both directions, the link out and in; and the links
//! between switches. Each serves one message at a time, in the order in which messages reach it.
//!
//! A message goes through its resources one after the other, and its first byte does not wait for
//! its last: a resource that is busy moves the whole rest of its path. Links between switches are
//! reserved when the first byte reaches them (crate `crossing`). What a message waits is
//! added to the time of its line. A message of one packet does not wait for all of a long one,
//! because an HCA reads the packets of different peers in turns: it waits for what an HCA holds at
//! most.

use allocator_api2::alloc::Global;
use crossing::{Crossings, Step, Train};
use fabric::packet::{PLAIN, RETH, packets};
use fabric::{Bytes, Costs, Network, System};

/// A resource that serves one message at a time: the time from which on it is free.
type Free = u64;

/// The bytes of packets that an HCA holds, which a message of one packet waits for at most.
const HELD: u64 = 32 << 10;

/// The shortest piece of a long message, in bytes. Long messages to different peers are sent piece
/// by piece in turns, as an HCA sends their packets.
const PIECE: u64 = 16 << 10;
/// The most pieces of a message.
const MOST_PIECES: u64 = 16;

/// The resources of one rail of a host, in a line of a cache.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Port {
    chip: Free,
    down: Free,
    up: Free,
    buffer: Free,
    out: Free,
    into: Free,
}

/// The times for which a message occupies the resources of a rail, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Busy {
    chip: u64,
    down: u64,
    link: u64,
    up: u64,
    /// The time in the HCA's buffer, on the path in or out.
    buffer: u64,
    /// The bytes on a link, headers included.
    bytes: u64,
    /// The longest wait for one link or bus.
    most: u64,
}

/// A rail of the system.
struct Rail {
    costs: Costs,
    half_duplex: bool,
    /// The first rail on the same card, whose engine and bus it uses.
    card: usize,
    /// The network; `None`: the number of switches between hosts is fixed.
    network: Option<Network>,
    /// The number of switches between two hosts, if it is fixed.
    hops: u32,
    /// The links between switches.
    crossings: Crossings<Global>,
    /// The latency of a cable, and that of a switch with another.
    cable: u64,
    hop: u64,
    /// The times of messages by length, of the last length.
    last: (u64, Busy),
}

/// The resources of all hosts.
pub(crate) struct Resources {
    rails: Vec<Rail>,
    ports: Vec<Port>,
    /// The shortest transfer that is cut into shares of all rails, in bytes.
    striped: u64,
}

/// A message between two hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// The reservations of a piece of a message at its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// The time that it has waited so far.
    pub waited: u64,
    /// The time at which its first byte leaves the host.
    pub gone: u64,
    /// The time at which its first byte reaches the last link.
    pub reaches: u64,
    /// The time at which the next piece may follow it.
    pub next: u64,
    /// The time from its first byte to the next piece where nothing waits.
    pub time: u64,
    /// The number of the rail.
    pub rail: u32,
}

impl Resources {
    pub(crate) fn new(system: &System, striped: u64) -> Resources {
        let count = system.rails.count();
        let rails = (0..count).map(|number| {
            let costs = Costs::of(system, number);
            let rail = *costs.rail();
            let network = system.network(&rail);
            Rail {
                half_duplex: costs.half_duplex(),
                card: first_on(system, number) as usize,
                network,
                hops: rail.hops.unwrap_or(0),
                crossings: Crossings::new_in(Global, system, &rail),
                cable: rail.flight(0).picos(),
                hop: rail.flight(1).saturating_sub(rail.flight(0)).picos(),
                last: (u64::MAX, Busy::default()),
                costs,
            }
        });
        Resources {
            rails: rails.collect(),
            ports: vec![Port::default(); system.nodes as usize * count as usize],
            striped,
        }
    }

    /// Lets links between switches carry any number of messages at once.
    pub(crate) fn widen_links(&mut self) {
        let rails = self.rails.iter_mut();
        rails.for_each(|rail| rail.crossings.widen());
    }

    /// The time for which a message occupies the engine of its connection.
    pub(crate) fn engine(&self) -> u64 {
        self.rails[0].costs.engine().picos()
    }

    /// The pages of a buffer, by which registrations are kept.
    pub(crate) fn pages(&self, bytes: u64) -> u64 {
        self.rails[0].costs.pages(Bytes(bytes))
    }

    /// The processor time in which a rank registers a buffer with its HCAs.
    pub(crate) fn registration(&self, bytes: u64) -> u64 {
        let cards = self
            .rails
            .iter()
            .enumerate()
            .filter(|(at, rail)| rail.card == *at);
        let each = self.rails[0].costs.register(Bytes(bytes)).picos();
        each * cards.count() as u64
    }

    /// The time by which a message between two hosts flies longer than one between hosts 0 and 1.
    pub(crate) fn farther(&self, from: u32, to: u32) -> i64 {
        let rail = &self.rails[0];
        let hops = |from, to| i64::from(rail.hops(from, to));
        (hops(from, to) - hops(0, 1)) * rail.hop as i64
    }

    /// Reads the state of a host's first rail, so that it is in a cache when a message arrives.
    pub(crate) fn touch(&self, host: u32) {
        std::hint::black_box(self.ports[host as usize * self.rails.len()].into);
    }

    /// The bytes of the next piece of a message of `bytes` bytes.
    pub(crate) fn piece(bytes: u64) -> u64 {
        PIECE.max(bytes.div_ceil(MOST_PIECES))
    }

    /// True if a piece of `bytes` bytes is cut into shares of all rails.
    pub(crate) fn is_striped(&self, bytes: u64) -> bool {
        bytes >= self.striped && self.rails.len() > 1
    }

    /// The number of rails.
    pub(crate) fn rails(&self) -> usize {
        self.rails.len()
    }

    /// Reserves the resources of the sending host for a piece whose first byte is there at `at`, on
    /// the rail that is free first.
    pub(crate) fn leave(&mut self, path: Path, at: u64) -> Left {
        let first = path.from as usize * self.rails.len();
        let rails = 0..self.rails.len();
        let rail = rails.min_by_key(|rail| self.ports[first + rail].out.max(at));
        self.leave_by(path, rail.unwrap_or(0), at)
    }

    /// Reserves the resources of the sending host, on this rail, for a piece whose first byte is
    /// there at `at`.
    pub(crate) fn leave_by(&mut self, path: Path, rail: usize, at: u64) -> Left {
        let busy = self.rails[rail].busy(path.bytes);
        let (half_duplex, card) = (self.rails[rail].half_duplex, self.rails[rail].card);
        let first = path.from as usize * self.rails.len();
        let slot = &mut self.ports[first + card];
        let mut now = take(&mut slot.chip, at, busy.chip);
        let bus = match half_duplex {
            true => &mut slot.up,
            false => &mut slot.down,
        };
        now = busy.take(bus, now, busy.down);
        now = busy.share(&mut slot.buffer, at, now);
        now = busy.take(&mut self.ports[first + rail].out, now, busy.link);
        let own = &mut self.rails[rail];
        let hops = u64::from(own.hops(path.from, path.to));
        Left {
            waited: now - at,
            next: now + busy.link,
            time: busy.link,
            gone: now,
            reaches: now + own.cable + hops * own.hop,
            rail: rail as u32,
        }
    }

    /// True if a message meets links between switches.
    pub(crate) fn crosses(&self, path: Path, rail: u32) -> bool {
        let crossings = &self.rails[rail as usize].crossings;
        crossings.crosses((path.from, path.to))
    }

    /// The train of a piece that has left, with the time at which it reaches its first link between
    /// switches. `None`: it meets none.
    pub(crate) fn train(&mut self, path: Path, left: &Left) -> Option<(Train, u64)> {
        let own = &mut self.rails[left.rail as usize];
        let hosts = (path.from, path.to);
        let route = own.crossings.choose(hosts, left.gone);
        let train = own.crossings.train(hosts, route)?;
        Some((train, own.crossings.first(left.gone)))
    }

    /// Lets a train, now at its next link between switches, enter that link.
    pub(crate) fn enter(&mut self, train: &mut Train, rail: u32, bytes: u64, now: u64) -> Step {
        let own = &mut self.rails[rail as usize];
        let busy = own.busy(bytes);
        own.crossings
            .enter(train, now, busy.bytes, busy.most < u64::MAX)
    }

    /// Reserves the resources of the receiving host for a piece that left on this rail, and whose
    /// first byte is at the last link at `at`; returns the time that it waits there.
    pub(crate) fn arrive(&mut self, path: Path, rail: u32, at: u64) -> u64 {
        let rail = rail as usize;
        let (busy, card) = (self.rails[rail].busy(path.bytes), self.rails[rail].card);
        let first = path.to as usize * self.rails.len();
        let now = busy.take(&mut self.ports[first + rail].into, at, busy.link);
        let slot = &mut self.ports[first + card];
        let now = busy.share(&mut slot.buffer, at, now);
        busy.take(&mut slot.up, now, busy.up) - at
    }
}

/// The first rail on the card of a rail.
fn first_on(system: &System, rail: u32) -> u32 {
    let card = |number: u32| system.rail(number).card;
    let first = (0..rail).find(|other| card(*other) == card(rail));
    first.unwrap_or(rail)
}

impl Busy {
    /// Reserves a link or a bus for `time` from `at` on; returns the start.
    fn take(&self, free: &mut Free, at: u64, time: u64) -> u64 {
        take(free, at, time).min(at.saturating_add(self.most))
    }

    /// Reserves the buffer for a transfer that has come at `at` and begins at `now`; returns its
    /// start. Packets of both directions take turns there, so a transfer waits only if the buffer
    /// would end it later than the link.
    fn share(&self, free: &mut Free, at: u64, now: u64) -> u64 {
        if self.buffer == 0 {
            return now;
        }
        let ends = take(free, at, self.buffer) + self.buffer;
        let starts = now.max(ends.saturating_sub(self.link));
        starts.min(now.saturating_add(self.most))
    }
}

/// Reserves a resource for `busy` from `at` on; returns the start of the reservation.
fn take(free: &mut Free, at: u64, busy: u64) -> u64 {
    let start = at.max(*free);
    *free = start + busy;
    start
}

impl Rail {
    /// The number of switches between two hosts.
    fn hops(&self, from: u32, to: u32) -> u32 {
        match self.network {
            Some(network) => network.hops(from, to),
            None => self.hops,
        }
    }

    /// The times for which a message of `bytes` bytes occupies the resources.
    fn busy(&mut self, bytes: u64) -> Busy {
        if self.last.0 == bytes {
            return self.last.1;
        }
        let (costs, payload) = (&self.costs, Bytes(bytes));
        let wire = |piece: Bytes| costs.wire(piece.0.next_multiple_of(4) + PLAIN);
        let count = packets(payload, costs.mtu()).max(1);
        let first = costs.wire(PLAIN + RETH).saturating_sub(costs.wire(PLAIN));
        let on_link = match bytes {
            0 => costs.wire(PLAIN + RETH),
            _ => costs.pieces(payload, wire) + first,
        };
        let headers = count * PLAIN + RETH;
        let busy = Busy {
            chip: costs.chip().picos(),
            down: match costs.fits_inline(payload) {
                true => 0,
                false => costs.pieces(payload, |piece| costs.read(piece)).picos(),
            },
            link: on_link.picos(),
            up: costs.pieces(payload, |piece| costs.write(piece)).picos(),
            buffer: costs.internal(payload).picos(),
            bytes: bytes + headers,
            most: match count {
                1 => costs.wire(HELD).picos(),
                _ => u64::MAX,
            },
        };
        self.last = (bytes, busy);
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    fn resources(machine: &str) -> Resources {
        let system = Catalogue::builtin().system(machine).unwrap();
        Resources::new(&system.with_nodes(4).unwrap(), 16 << 10)
    }

    #[test]
    fn a_message_alone_waits_for_nothing() {
        let mut all = resources("edr");
        let path = Path {
            from: 0,
            to: 1,
            bytes: 1 << 20,
        };
        let left = all.leave(path, 5_000);
        assert_eq!(
            (left.waited, all.arrive(path, left.rail, left.reaches)),
            (0, 0)
        );
    }

    #[test]
    fn two_messages_to_one_host_share_its_link() {
        let mut all = resources("edr");
        let path = |from| Path {
            from,
            to: 0,
            bytes: 1 << 20,
        };
        let (one, two) = (all.leave(path(1), 0), all.leave(path(2), 0));
        assert_eq!((one.waited, two.waited), (0, 0));
        let waits = [(1, one), (2, two)]
            .map(|(from, left)| all.arrive(path(from), left.rail, left.reaches));
        assert_eq!(waits[0], 0);
        let link = all.rails[0].busy(1 << 20).link;
        assert!(
            waits[1] > link * 9 / 10 && waits[1] < link * 11 / 10,
            "{waits:?} {link}"
        );
    }

    #[test]
    fn long_messages_use_all_rails() {
        let mut all = resources("2xqdr");
        assert!(all.is_striped(1 << 20) && !all.is_striped(64));
        let path = Path {
            from: 0,
            to: 1,
            bytes: 1 << 20,
        };
        let rails = [0; 2].map(|_| all.leave(path, 0).rail);
        assert_eq!(rails, [0, 1], "the rail that is free first");
    }
}
