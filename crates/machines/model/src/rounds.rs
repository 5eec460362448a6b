//! Round robin of an adapter: the streams whose next packet can be read from memory take turns, and
//! each reads one packet at a time.

use sim::memory::{Vec, WorldMemory};

use super::message::NONE;

/// The packets that an HCA reads from memory for a queue pair: those of its own requests (even
/// number of the stream), or of responses to its peer (odd number).
#[derive(Clone, Copy)]
struct Stream {
    /// True if the stream takes part in its adapter's round robin.
    joined: bool,
    next: u32,
}

/// The round robin of one adapter: a list of streams.
#[derive(Clone, Copy)]
struct Round {
    first: u32,
    last: u32,
    /// The stream of which a packet is being read from memory.
    reading: u32,
    /// True while reads from memory wait for the link.
    paused: bool,
}

/// The round robins in which adapters read packets of their streams.
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

    /// Adds the two streams of a queue pair. They take part in no round robin yet.
    pub(crate) fn add(&mut self) {
        let outside = Stream {
            joined: false,
            next: NONE,
        };
        self.streams.extend([outside; 2]);
    }

    /// Appends a stream to an adapter's list. False: the stream takes part already.
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

    /// True if an adapter can begin to read a packet of some stream.
    pub(crate) fn can_read(&self, adapter: u32) -> bool {
        let own = &self.rounds[adapter as usize];
        own.reading == NONE && !own.paused && own.first != NONE
    }

    /// Makes an adapter's reads wait for the link.
    pub(crate) fn pause(&mut self, adapter: u32) {
        self.rounds[adapter as usize].paused = true;
    }

    /// Takes the first stream out of an adapter's list. The stream still takes part.
    pub(crate) fn take_first(&mut self, adapter: u32) -> u32 {
        let own = &mut self.rounds[adapter as usize];
        let first = own.first;
        own.first = self.streams[first as usize].next;
        if own.first == NONE {
            own.last = NONE;
        }
        first
    }

    /// Records that a stream that was taken out has no packet to read, so it takes part no longer.
    pub(crate) fn leave(&mut self, stream: u32) {
        self.streams[stream as usize].joined = false;
    }

    /// Records that a packet of a stream that was taken out is being read.
    pub(crate) fn begin(&mut self, adapter: u32, stream: u32) {
        self.rounds[adapter as usize].reading = stream;
    }

    /// Ends a pause and a read. Returns the stream whose packet has been read, if any.
    pub(crate) fn end(&mut self, adapter: u32) -> Option<u32> {
        let own = &mut self.rounds[adapter as usize];
        own.paused = false;
        Some(std::mem::replace(&mut own.reading, NONE)).filter(|stream| *stream != NONE)
    }

    /// Puts a stream whose packet has been read at the end of the list again, if it has more
    /// packets.
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
