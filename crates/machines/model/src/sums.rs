//! The times for which the resources of a machine are busy during a run, summed up.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::span::{Activity, HcaPart};

/// A kind of work of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessorWork {
    /// Copies within the host's memory.
    Copies,
    /// Computing of the program, outside MPI.
    Computing,
    /// The library's work for messages: sends, receives, posts, polls.
    Library,
    /// Work within MPI on the rank's own memory: the sums of reductions, packing.
    Local,
}

impl ProcessorWork {
    pub(crate) const ALL: [ProcessorWork; 4] = [
        ProcessorWork::Copies,
        ProcessorWork::Computing,
        ProcessorWork::Library,
        ProcessorWork::Local,
    ];

    /// The kind of work of an activity. `None`: the processor is idle.
    fn of(activity: Activity) -> Option<ProcessorWork> {
        match activity {
            Activity::Wait => None,
            Activity::Copy | Activity::Memory => Some(ProcessorWork::Copies),
            Activity::Compute => Some(ProcessorWork::Computing),
            Activity::Local => Some(ProcessorWork::Local),
            _ => Some(ProcessorWork::Library),
        }
    }
}

/// The times for which a machine's resources have been busy.
pub(crate) struct Sums {
    /// The busy times by adapter and part. The time of a part that ports of a card share is summed
    /// at the port that uses it.
    pub parts: Vec<[Time; HcaPart::ALL.len()]>,
    /// The busy times of each adapter's chip: with work requests, and with answers. The time of a
    /// chip that ports of a card share is summed likewise.
    pub chips: Vec<[Time; 2]>,
    /// The busy times of processors, by rank and kind of work.
    pub processors: Vec<[Time; ProcessorWork::ALL.len()]>,
}

impl Sums {
    pub(crate) fn new(memory: WorldMemory) -> Sums {
        Sums {
            parts: Vec::new_in(memory),
            chips: Vec::new_in(memory),
            processors: Vec::new_in(memory),
        }
    }

    /// Sets the numbers of the machine's adapters and ranks.
    pub(crate) fn make_room(&mut self, adapters: usize, ranks: usize) {
        self.parts.resize(adapters, Default::default());
        self.chips.resize(adapters, Default::default());
        self.processors.resize(ranks, Default::default());
    }

    /// Records that a part of an adapter is busy for `time`.
    #[inline]
    pub(crate) fn add_part(&mut self, adapter: u32, part: HcaPart, time: Time) {
        self.parts[adapter as usize][part as usize] += time;
    }

    /// Records that the chip of an adapter is busy for `time` with a work request.
    #[inline]
    pub(crate) fn add_request(&mut self, adapter: u32, time: Time) {
        self.chips[adapter as usize][0] += time;
    }

    /// Records that the chip of an adapter is busy for `time` with an answer.
    #[inline]
    pub(crate) fn add_answer(&mut self, adapter: u32, time: Time) {
        self.chips[adapter as usize][1] += time;
    }

    /// Records that the processor of a rank is busy for `time`, unless the activity is a wait.
    #[inline]
    pub(crate) fn add_processor(&mut self, rank: u32, activity: Activity, time: Time) {
        if let Some(work) = ProcessorWork::of(activity) {
            self.processors[rank as usize][work as usize] += time;
        }
    }
}
