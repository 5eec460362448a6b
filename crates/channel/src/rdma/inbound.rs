//! The receiver's end of a ring: where the next packet will be.

use super::layout::{Content, Info, Layout, SIZE_CLASSES, TRAILER, WORD, padded, subpacket};
use super::outbound::Place;
use super::registered::Block;
use crate::Head;

pub struct Inbound {
    layout: Layout,
    /// Where the ring begins in its block.
    base: usize,
    /// Sequence number of the last packet taken.
    taken: u64,
    next: [u32; SIZE_CLASSES],
    /// Packets taken from each lane since the sender was last told.
    since: [u32; SIZE_CLASSES],
    /// One part in so many of a lane is told about.
    credit: u32,
    /// The sender should be told.
    pub owes: bool,
    /// Only a completion tells that a packet is whole: how many have been told of.
    told: Option<u64>,
    /// In the middle of a slot with several packets: where it is, its length, where the next one begins.
    within: Option<(Place, Info, usize)>,
}

/// A packet that is here.
pub struct Arrived {
    pub head: Head,
    /// Where its body lies in the block.
    pub body: std::ops::Range<usize>,
    /// The sender has taken so many packets, lower half.
    pub tail: u32,
    /// To be given back when the packet has been looked at.
    slot: Option<Place>,
    next: Option<(Place, Info, usize)>,
}

/// What a peer wrote that cannot be.
pub type Nonsense = String;

impl Inbound {
    pub fn new(layout: Layout, base: usize, credit: usize, by_completion: bool) -> Inbound {
        Inbound {
            layout,
            base,
            taken: 0,
            next: [0; SIZE_CLASSES],
            since: [0; SIZE_CLASSES],
            credit: credit.max(1) as u32,
            owes: false,
            told: by_completion.then_some(0),
            within: None,
        }
    }

    /// Sequence number of the last packet taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// A completion says that one more packet is here.
    pub fn completion(&mut self) {
        if let Some(told) = &mut self.told {
            *told += 1;
        }
    }

    /// The number of packets taken, which the sender will hear now.
    #[inline(always)]
    pub fn tell(&mut self) -> u64 {
        self.owes = false;
        self.since = [0; SIZE_CLASSES];
        self.taken
    }

    /// Looks for the next packet.
    #[inline(always)]
    pub fn look(&mut self, block: &Block) -> Result<Option<Arrived>, Nonsense> {
        if self.within.is_some() {
            return self.next_within(block);
        }
        if self.told == Some(self.taken) {
            return Ok(None);
        }
        let expected = self.taken + 1;
        for (number, lane) in self.layout.lanes().iter().enumerate() {
            let slot = self.next[number];
            let end = self.base + lane.end(slot);
            if block.load(end - WORD) == expected {
                return self.open(block, Place { lane: number, slot }).map(Some);
            }
        }
        match self.told {
            None => self.check_nothing(block, expected),
            Some(told) => Err(format!(
                "a completion says that {told} packets have come, but number {expected} is not there"
            )),
        }
    }

    /// No flag may be from further ahead than the ring is long.
    #[inline(always)]
    fn check_nothing(&self, block: &Block, expected: u64) -> Result<Option<Arrived>, Nonsense> {
        for (number, lane) in self.layout.lanes().iter().enumerate() {
            let flag = block.load(self.base + lane.end(self.next[number]) - WORD);
            if flag > expected + self.layout.slots() as u64 {
                return Err(format!("packet {flag} where {expected} is the next"));
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn open(&mut self, block: &Block, place: Place) -> Result<Arrived, Nonsense> {
        let lane = &self.layout.lanes()[place.lane];
        let trailer = self.base + lane.end(place.slot) - TRAILER;
        let word = block.load(trailer + 3 * WORD);
        let info = Info::decode(word)
            .filter(|info| padded(info.len as usize) <= lane.body())
            .ok_or_else(|| format!("a packet that says {word:#x} of itself"))?;
        if info.content == Content::Packets {
            let at = trailer - padded(info.len as usize);
            self.within = Some((place, info, at));
            let first = self.next_within(block)?;
            return first.ok_or_else(|| "a slot of no packets".to_string());
        }
        let body = trailer - padded(info.len as usize);
        Ok(Arrived {
            head: std::array::from_fn(|word| block.load(trailer + word * WORD)),
            body: body..body + info.len as usize,
            tail: info.tail,
            slot: Some(place),
            next: None,
        })
    }

    #[inline(never)]
    fn next_within(&mut self, block: &Block) -> Result<Option<Arrived>, Nonsense> {
        let Some((place, info, at)) = self.within else {
            return Ok(None);
        };
        let trailer = self.base + self.layout.lanes()[place.lane].end(place.slot) - TRAILER;
        let content = block.bytes(at, trailer - at);
        let (head, body, next) = subpacket(content, 0)
            .ok_or_else(|| format!("{} bytes that are no packet", content.len()))?;
        let more = at + next < trailer;
        Ok(Some(Arrived {
            head,
            body: at + body.start..at + body.end,
            tail: info.tail,
            slot: (!more).then_some(place),
            next: more.then_some((place, info, at + next)),
        }))
    }

    /// A packet has come as a message: it must be the next one, and one that the peer may send.
    pub fn check_message(&self, sequence: u64, granted: u64) -> Result<(), Nonsense> {
        let expected = self.taken + 1;
        if sequence > granted {
            return Err(format!("packet {sequence} where it may send {granted}"));
        }
        if sequence != expected {
            return Err(format!("packet {sequence} where {expected} is the next"));
        }
        Ok(())
    }

    /// That packet has been looked at.
    pub fn take_message(&mut self) {
        self.taken += 1;
    }

    /// The packet has been looked at.
    #[inline(always)]
    pub fn take(&mut self, arrived: Arrived) {
        self.within = arrived.next;
        if let Some(place) = arrived.slot {
            let lane = &self.layout.lanes()[place.lane];
            self.taken += 1;
            self.next[place.lane] = lane.after(place.slot);
            self.since[place.lane] += 1;
            self.owes |= self.since[place.lane] * self.credit >= lane.count;
        }
    }
}
