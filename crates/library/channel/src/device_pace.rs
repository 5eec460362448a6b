//! The frequency of polls of devices. A poll of some devices is a system call, which takes longer
//! than a packet in shared memory: while such packets arrive, those devices are polled less often.

/// Number of polls without a packet in shared memory after which devices are polled each time.
const SHM_MOVES: u32 = 1024;
/// Number of polls from one poll of the devices to the next, while packets arrive in shared memory.
const SELDOM: u32 = 128;

/// The state that decides which polls of one rank include its devices.
pub(crate) struct DevicePace {
    /// True if a poll of the devices is a system call.
    is_costly: bool,
    /// Number of polls since the last packet in shared memory, up to [`SHM_MOVES`].
    since_shm: u32,
    polls: u32,
}

impl DevicePace {
    /// The pace for devices. `is_costly`: a poll of them is a system call.
    pub(crate) fn new(is_costly: bool) -> DevicePace {
        DevicePace {
            is_costly,
            since_shm: u32::MAX,
            polls: 0,
        }
    }

    /// True if the devices are to be polled now. Counts this poll.
    #[inline]
    pub(crate) fn polls_now(&mut self) -> bool {
        if !self.is_costly || self.since_shm >= SHM_MOVES {
            return true;
        }
        self.since_shm += 1;
        self.polls = self.polls.wrapping_add(1);
        self.polls.is_multiple_of(SELDOM)
    }

    /// Records that packets have arrived in shared memory.
    pub(crate) fn shm_moved(&mut self) {
        self.since_shm = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costly_devices_are_polled_seldom_while_shared_memory_brings_packets() {
        let polled = |is_costly, polls: u32| {
            let mut pace = DevicePace {
                is_costly,
                since_shm: u32::MAX,
                polls: 0,
            };
            assert!(pace.polls_now());
            pace.shm_moved();
            (0..polls).filter(|_| pace.polls_now()).count() as u32
        };
        assert_eq!(polled(false, 1000), 1000);
        assert_eq!(polled(true, SHM_MOVES), SHM_MOVES / SELDOM);
        assert_eq!(polled(true, SHM_MOVES + 100), SHM_MOVES / SELDOM + 100);
    }
}
