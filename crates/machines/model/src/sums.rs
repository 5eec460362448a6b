//! For each resource the time for which it has been busy, summed as it is booked.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::span::{Activity, HcaPart};

/// Work of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessorWork {
    /// Copies within memory.
    Copies,
    /// The program's computing.
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

    /// The work of an activity. None: the processor is idle.
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

/// The sums of a machine.
pub(crate) struct Sums {
    /// By adapter and part. Parts that ports of a card share are summed at each port.
    pub parts: Vec<[Time; HcaPart::ALL.len()]>,
    /// By adapter: work requests, and answers. The chip is shared as well.
    pub chips: Vec<[Time; 2]>,
    /// By rank and work.
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

    /// Makes room for the machine's adapters and ranks.
    pub(crate) fn make_room(&mut self, adapters: usize, ranks: usize) {
        self.parts.resize(adapters, Default::default());
        self.chips.resize(adapters, Default::default());
        self.processors.resize(ranks, Default::default());
    }

    /// A part of an adapter is busy for `time`.
    #[inline]
    pub(crate) fn add_part(&mut self, adapter: u32, part: HcaPart, time: Time) {
        self.parts[adapter as usize][part as usize] += time;
    }

    /// The chip of an adapter is busy for `time` with a work request.
    #[inline]
    pub(crate) fn add_request(&mut self, adapter: u32, time: Time) {
        self.chips[adapter as usize][0] += time;
    }

    /// The chip of an adapter is busy for `time` with an answer.
    #[inline]
    pub(crate) fn add_answer(&mut self, adapter: u32, time: Time) {
        self.chips[adapter as usize][1] += time;
    }

    /// The processor of a rank is busy for `time`.
    #[inline]
    pub(crate) fn add_processor(&mut self, rank: u32, activity: Activity, time: Time) {
        if let Some(work) = ProcessorWork::of(activity) {
            self.processors[rank as usize][work as usize] += time;
        }
    }
}
