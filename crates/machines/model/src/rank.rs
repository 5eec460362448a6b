//! A rank's inbox: arrived data that waits until the rank continues, in the order in which it
//! becomes visible.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::lookahead::NearEvents;
use super::pinned::Pinned;
use super::written_regions::WrittenRegions;
use super::{Clocked, Event, MachineModel};
use device::{Error, PortChange, Result};

pub(super) struct Rank {
    pub host: u32,
    pub gone: bool,
    /// The time that its processor takes, in percent of a normal one's.
    pub slowness: u32,
    /// Its host has no core beside those of the ranks, so its progress thread takes the rank's.
    pub shares_core: bool,
    /// Its work and its messages cost nothing: it makes or frees an object where that is free.
    pub is_free: bool,
    news: Vec<News>,
    /// The place of the oldest entry.
    first: usize,
    /// Data has become visible since the rank last polled its memory (`written`), and since it last
    /// waited (`fresh`).
    pub written: bool,
    pub fresh: bool,
    pub written_regions: WrittenRegions,
    /// Its queue pairs, and the rail of its last post.
    pub qps: Vec<u32>,
    pub rail: u32,
    pub pinned: Pinned,
    /// The pending events that may write to this rank, where ranks run ahead.
    pub near_events: NearEvents,
    /// The rails whose ports are down, one bit each, and the changes that it has not taken.
    pub down: u32,
    pub changes: Vec<(u32, PortChange)>,
    /// The out-of-band messages for it, in the order of their arrival.
    words: Vec<Word>,
    /// The number of out-of-band messages that have arrived.
    heard: usize,
}

/// An out-of-band message on its way.
struct Word {
    at: Time,
    from: u32,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct News {
    at: Time,
    what: Arrival,
    /// Wakes a waiting rank.
    wakes: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Arrival {
    /// Bytes of a message for registered memory.
    Bytes {
        message: u32,
        from: u32,
        len: u32,
        key: u32,
        to: u64,
    },
    Completion {
        cq: u32,
    },
    Word,
}

impl Rank {
    pub(crate) fn new(memory: WorldMemory, host: u32, slowness: u32) -> Rank {
        Rank {
            host,
            gone: false,
            slowness,
            shares_core: false,
            is_free: false,
            news: Vec::new_in(memory),
            first: 0,
            written: false,
            fresh: false,
            written_regions: WrittenRegions::new(memory),
            qps: Vec::new_in(memory),
            rail: 0,
            pinned: Pinned::new(memory),
            near_events: NearEvents::new(memory),
            down: 0,
            changes: Vec::new_in(memory),
            words: Vec::new_in(memory),
            heard: 0,
        }
    }

    /// The time of the next entry that wakes a waiting rank.
    pub(crate) fn next_news(&self) -> Option<Time> {
        self.news[self.first..]
            .iter()
            .find(|news| news.wakes)
            .map(|news| news.at)
    }
}

impl MachineModel {
    /// The number of rails of a rank's host.
    pub(super) fn rails_of(&self, rank: u32) -> u32 {
        self.system.rails_of(self.ranks[rank as usize].host).len() as u32
    }

    /// Adds an entry that becomes visible to a rank.
    #[inline]
    pub(super) fn announce(
        &mut self,
        rank: u32,
        at: Time,
        what: Arrival,
        wakes: bool,
        clock: &mut Clocked,
    ) {
        let own = &mut self.ranks[rank as usize];
        if own.gone {
            return;
        }
        if let Arrival::Bytes { message, .. } = what {
            self.messages[message].uses += 1;
        }
        let mut place = own.news.len();
        while place > own.first && own.news[place - 1].at > at {
            place -= 1;
        }
        own.news.insert(place, News { at, what, wakes });
        if wakes && clock.is_waiting(rank) {
            clock.at(at, Event::Wake { rank });
        }
    }

    /// Something becomes visible to a rank, which may wait for it. A rank that ran ahead and waits
    /// since a later time, or since just now, may have seen it already.
    pub(super) fn wake(&mut self, rank: u32, clock: &mut Clocked) {
        let since = clock.of(rank);
        let waited = self.lookahead.is_none() || since < clock.now();
        let news = || self.ranks[rank as usize].next_news();
        if waited || news().is_some_and(|at| at <= since) {
            clock.wake(rank);
        }
    }

    /// Delivers everything that has become visible by a rank's time. Called only where the rank's
    /// memory can be accessed.
    #[inline]
    pub(super) fn receive_news(&mut self, rank: u32, now: Time) {
        loop {
            let own = &mut self.ranks[rank as usize];
            match own.news.get(own.first) {
                Some(news) if news.at <= now => {
                    let news = *news;
                    own.first += 1;
                    own.fresh |= news.wakes;
                    self.happen(rank, news.what);
                }
                Some(_) => {
                    if own.first >= 1024 {
                        own.news.drain(..own.first);
                        own.first = 0;
                    }
                    return;
                }
                None => {
                    own.news.clear();
                    own.first = 0;
                    return;
                }
            }
        }
    }

    fn happen(&mut self, rank: u32, what: Arrival) {
        match what {
            Arrival::Bytes {
                message,
                from,
                len,
                key,
                to,
            } => {
                if self.regions.stands(key) {
                    let piece =
                        &self.messages[message].payload[from as usize..(from + len) as usize];
                    // SAFETY: the piece was checked against the region's bounds and rights when it
                    // arrived, and the region is still registered, so its owner keeps the memory
                    // and expects it to change. This is that rank's process.
                    unsafe {
                        std::ptr::copy_nonoverlapping(piece.as_ptr(), to as *mut u8, len as usize)
                    };
                    let own = &mut self.ranks[rank as usize];
                    own.written = true;
                    own.written_regions.add(key);
                }
                self.messages.release(message);
            }
            Arrival::Completion { cq } => self.completion_is_visible(cq),
            Arrival::Word => self.ranks[rank as usize].heard += 1,
        }
    }

    /// Sends an out-of-band message, which takes `latency`. While no path to the peer's host
    /// carries anything it waits: on a real machine it is sent again and again.
    pub(super) fn oob_send(
        &mut self,
        from: u32,
        to: usize,
        bytes: &[u8],
        latency: Time,
        clock: &mut Clocked,
    ) -> Result<()> {
        let memory = self.memory;
        let (ranks, runs_ahead) = (self.ranks.len(), self.lookahead.is_some());
        let Some(theirs) = self.ranks.get(to) else {
            return Err(Error::Invalid(format!("rank {to} of {ranks}")));
        };
        let hosts = (self.ranks[from as usize].host, theirs.host);
        let leaves = self.path_opens(hosts.0, hosts.1, clock.of(from));
        let Some(at) = leaves.checked_add(latency) else {
            return Ok(());
        };
        let own = &mut self.ranks[to];
        if own.gone {
            return Ok(());
        }
        let mut copy = Vec::new_in(memory);
        copy.extend_from_slice(bytes);
        // A rank that runs ahead sends before others that are earlier.
        let order = |at: Time, from: u32| (at, if runs_ahead { from } else { 0 });
        let mut place = own.words.len();
        while place > own.heard
            && order(own.words[place - 1].at, own.words[place - 1].from) > order(at, from)
        {
            place -= 1;
        }
        let word = Word {
            at,
            from,
            bytes: copy,
        };
        own.words.insert(place, word);
        self.announce(to as u32, at, Arrival::Word, true, clock);
        Ok(())
    }

    pub(super) fn oob_recv(&mut self, rank: u32) -> Option<(usize, std::vec::Vec<u8>)> {
        let own = &mut self.ranks[rank as usize];
        if own.heard == 0 {
            return None;
        }
        own.heard -= 1;
        let word = own.words.remove(0);
        Some((word.from as usize, word.bytes.to_vec()))
    }

    /// Ends a rank's part: its memory is not accessed from now on.
    pub(super) fn leave(&mut self, rank: u32) {
        let own = &mut self.ranks[rank as usize];
        own.gone = true;
        let first = std::mem::take(&mut own.first);
        let news = std::mem::replace(&mut own.news, Vec::new_in(self.memory));
        for news in &news[first..] {
            if let Arrival::Bytes { message, .. } = news.what {
                self.messages.release(message);
            }
        }
        self.ranks[rank as usize].words.clear();
        self.regions.forget(rank);
        while let Some(q) = self.ranks[rank as usize].qps.pop() {
            if self.qps[q as usize].alive {
                self.destroy_qp(q);
            }
        }
    }
}
