//! The rounds of adapters: streams whose next packet can be read from memory, each of which reads
//! one packet in turn.

use sim::memory::{Vec, WorldMemory};

use super::message::NONE;

/// The packets that an HCA reads from memory for a queue pair: its own requests (an even number),
/// or responses to its peer.
#[derive(Clone, Copy)]
struct Stream {
    /// Part of its adapter's round.
    joined: bool,
    next: u32,
}

/// The round of one adapter.
#[derive(Clone, Copy)]
struct Round {
    first: u32,
    last: u32,
    /// The stream whose packet is being read.
    reading: u32,
    /// Reading waits for the link.
    paused: bool,
}

/// The rounds of all adapters.
pub(crate) struct Rounds {
    streams: Vec<Stream>,
    rounds: Vec<Round>,
}

impl Rounds {
    pub(crate) fn new(memory: WorldMemory, adapters: usize) -> Rounds {
        let mut rounds = Vec::new_in(memory);
        let round = Round {
            first: NONE,
            last: NONE,
            reading: NONE,
            paused: false,
        };
        rounds.resize(adapters, round);
        Rounds {
            streams: Vec::new_in(memory),
            rounds,
        }
    }

    /// Adds the two streams of a queue pair, which are in no round.
    pub(crate) fn add(&mut self) {
        let outside = Stream {
            joined: false,
            next: NONE,
        };
        self.streams.extend([outside; 2]);
    }

    /// Adds a stream to an adapter's round. False: it is in one.
    pub(crate) fn join(&mut self, adapter: u32, stream: u32) -> bool {
        let joins = !self.streams[stream as usize].joined;
        if joins {
            self.append(adapter, stream);
        }
        joins
    }

    fn append(&mut self, adapter: u32, stream: u32) {
        self.streams[stream as usize] = Stream {
            joined: true,
            next: NONE,
        };
        let own = &mut self.rounds[adapter as usize];
        match std::mem::replace(&mut own.last, stream) {
            NONE => own.first = stream,
            last => self.streams[last as usize].next = stream,
        }
    }

    /// True if an adapter can begin to read a packet of a stream.
    pub(crate) fn can_read(&self, adapter: u32) -> bool {
        let own = &self.rounds[adapter as usize];
        own.reading == NONE && !own.paused && own.first != NONE
    }

    /// Lets reading wait for the link.
    pub(crate) fn pause(&mut self, adapter: u32) {
        self.rounds[adapter as usize].paused = true;
    }

    /// Takes the first stream out of an adapter's round. It still counts as joined.
    pub(crate) fn take_first(&mut self, adapter: u32) -> u32 {
        let own = &mut self.rounds[adapter as usize];
        let first = own.first;
        own.first = self.streams[first as usize].next;
        if own.first == NONE {
            own.last = NONE;
        }
        first
    }

    /// A stream that was taken out has no packet to read now.
    pub(crate) fn leave(&mut self, stream: u32) {
        self.streams[stream as usize].joined = false;
    }

    /// A packet of a stream that was taken out is being read.
    pub(crate) fn begin(&mut self, adapter: u32, stream: u32) {
        self.rounds[adapter as usize].reading = stream;
    }

    /// Ends a pause and a read; returns the stream whose packet has been read.
    pub(crate) fn end(&mut self, adapter: u32) -> Option<u32> {
        let own = &mut self.rounds[adapter as usize];
        own.paused = false;
        Some(std::mem::replace(&mut own.reading, NONE)).filter(|stream| *stream != NONE)
    }

    /// A stream whose packet has been read goes to the end of the round, if it has more.
    pub(crate) fn go_on(&mut self, adapter: u32, stream: u32, more: bool) {
        match more {
            true => self.append(adapter, stream),
            false => self.leave(stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_read_in_turn() {
        let memory = sim::memory::Memory::private().unwrap();
        let mut rounds = Rounds::new(memory.shared(), 2);
        (0..2).for_each(|_| rounds.add());
        assert!(!rounds.can_read(1));
        assert!(rounds.join(1, 0) && rounds.join(1, 3) && !rounds.join(1, 0));
        assert!(rounds.can_read(1) && !rounds.can_read(0));
        let mut order = std::vec::Vec::new();
        for left in (0..4).rev() {
            let stream = rounds.take_first(1);
            rounds.begin(1, stream);
            assert!(!rounds.can_read(1), "one packet at a time");
            assert_eq!(rounds.end(1), Some(stream));
            order.push(stream);
            rounds.go_on(1, stream, left > 1);
        }
        assert_eq!(order, [0, 3, 0, 3]);
        assert!(!rounds.can_read(1) && rounds.join(1, 3));
        rounds.pause(1);
        assert!(!rounds.can_read(1));
        assert_eq!((rounds.end(1), rounds.can_read(1)), (None, true));
    }
}
