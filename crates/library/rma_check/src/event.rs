//! The notes of a rank about its accesses to windows, and their encoding in 64-bit words.

use datatype::{Op, Predefined};

/// The number of 64-bit words of an encoded event.
pub const WORDS: usize = 6;

/// An event that a rank notes for the search for conflicts: an access, or what begins, orders or
/// ends accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The rank gives memory to a new window.
    Made {
        /// The number of the window.
        window: u64,
        /// The address of the first byte; 0 in a dynamic window.
        base: u64,
        /// The length of the memory in bytes.
        len: u64,
    },
    /// The window is freed.
    Freed {
        /// The number of the freed window.
        window: u64,
    },
    /// The rank's call of `MPI_Win_fence` returns.
    Fenced {
        /// The number of the window.
        window: u64,
    },
    /// The rank's `MPI_Win_post` opens an exposure epoch.
    Posted {
        /// The number of the window.
        window: u64,
    },
    /// The rank's `MPI_Win_wait` has ended an exposure epoch.
    Waited {
        /// The number of the window.
        window: u64,
    },
    /// The rank locks its own part of a window.
    Locked {
        /// The number of the window.
        window: u64,
        /// True if the lock is exclusive.
        is_exclusive: bool,
    },
    /// Accesses of the rank to a target, or to all targets, have ended: at the target or, with
    /// `is_local`, at least at the origin.
    Ended {
        /// The number of the window.
        window: u64,
        /// The world rank of the target whose accesses are complete. `None`: all targets.
        target: Option<u32>,
        /// True if the accesses have ended at the origin only: its buffers are free.
        is_local: bool,
        /// True if the locks of the targets are released as well.
        unlocks: bool,
    },
    /// The rank has started an access to a target.
    Accessed(Access),
    /// A call of the rank uses its own memory, some of which belongs to a window.
    Used {
        /// The addresses of the accessed bytes in the target's memory.
        runs: Runs,
        /// True if the call of the target writes the bytes.
        is_written: bool,
    },
    /// The call that used the rank's own memory returns, so that its use has ended.
    Returned,
}

/// An access of an origin to a target's part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number of the window.
    pub window: u64,
    /// The world rank of the target.
    pub target: u32,
    /// The kind of the access.
    pub kind: Kind,
    /// The epoch of the origin in which it makes the access.
    pub epoch: Epoch,
    /// The bytes, as offsets from the start of the target's part of the window.
    pub runs: Runs,
    /// True if the access has a request: its completion shows the end of a fetch, and no event
    /// does.
    pub has_request: bool,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `MPI_Put`.
    Put,
    /// `MPI_Get`.
    Get,
    /// An accumulate. A compare-and-swap is one with `MPI_REPLACE`.
    Accumulate {
        /// The reduction operation of the accumulate.
        op: Op,
        /// The basic type of an element.
        ty: Predefined,
        /// True if the old contents are returned to the origin.
        fetches: bool,
    },
}

/// The kind of epoch in which an origin accesses a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// The access is between two fences.
    Fence,
    /// The access is between `MPI_Win_start` and `MPI_Win_complete`.
    Start,
    /// The access is under a shared lock.
    Shared,
    /// The access is under an exclusive lock.
    Exclusive,
}

/// Runs of bytes of equal length at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// The offset or address of the first byte of the first run.
    pub start: u64,
    /// The length of each run in bytes.
    pub len: u64,
    /// Bytes from the start of a run to the start of the next.
    pub stride: u32,
    /// The number of runs.
    pub count: u32,
}

impl Runs {
    /// A single run of `len` bytes from `start` on.
    pub fn one(start: u64, len: u64) -> Runs {
        Runs {
            start,
            len,
            stride: 0,
            count: 1,
        }
    }

    /// Joins a run to these, if it has their length and continues them. True: it has been joined.
    pub fn join(&mut self, start: u64, len: u64) -> bool {
        let Some(distance) = start.checked_sub(self.start) else {
            return false;
        };
        if self.count == 1 && distance == self.len {
            self.len += len;
            return true;
        }
        let stride = match self.count {
            1 => distance,
            _ => self.stride.into(),
        };
        let continues = len == self.len && stride >= len;
        let Ok(stride) = u32::try_from(stride) else {
            return false;
        };
        if !continues
            || distance != u64::from(stride) * u64::from(self.count)
            || self.count == u32::MAX
        {
            return false;
        }
        (self.stride, self.count) = (stride, self.count + 1);
        true
    }

    /// The offset or address behind the last byte of the runs.
    pub(crate) fn end(&self) -> u64 {
        let before = u64::from(self.stride).saturating_mul(u64::from(self.count.saturating_sub(1)));
        self.start.saturating_add(before).saturating_add(self.len)
    }

    /// These runs with `base` added to their start.
    pub(crate) fn moved(mut self, base: u64) -> Runs {
        self.start = self.start.wrapping_add(base);
        self
    }

    /// The first range of bytes that these runs and `other` have in common: its start, and its end.
    pub(crate) fn common(&self, other: &Runs) -> Option<(u64, u64)> {
        let (fewer, more) = match self.count <= other.count {
            true => (self, other),
            false => (other, self),
        };
        let mut first = fewer.start;
        for _ in 0..fewer.count {
            let end = first.saturating_add(fewer.len);
            let at = match (first + 1).saturating_sub(more.start + more.len) {
                _ if more.stride == 0 => 0,
                beyond => beyond.div_ceil(more.stride.into()),
            };
            let start = more.start.saturating_add(at * u64::from(more.stride));
            if at < u64::from(more.count) && start < end {
                let common = (start.max(first), end.min(start + more.len));
                if common.0 < common.1 {
                    return Some(common);
                }
            }
            first = first.saturating_add(fewer.stride.into());
        }
        None
    }
}

/// The encoded target of an event that concerns all targets.
const ALL: u32 = u32::MAX;

impl Event {
    /// Encodes the event of the rank with world rank `rank`.
    pub fn encode(&self, rank: u32) -> [u64; WORDS] {
        let head = |number: u64, flags: u64| number << 56 | flags << 32 | u64::from(rank);
        let plain = |number, window| [head(number, 0), window, 0, 0, 0, 0];
        match *self {
            Event::Made { window, base, len } => [head(1, 0), window, base, len, 0, 0],
            Event::Freed { window } => plain(2, window),
            Event::Fenced { window } => plain(3, window),
            Event::Posted { window } => plain(4, window),
            Event::Waited { window } => plain(5, window),
            Event::Locked {
                window,
                is_exclusive,
            } => [head(6, is_exclusive.into()), window, 0, 0, 0, 0],
            Event::Ended {
                window,
                target,
                is_local,
                unlocks,
            } => {
                let flags = u64::from(is_local) | u64::from(unlocks) << 1;
                let target = target.unwrap_or(ALL).into();
                [head(7, flags), window, target, 0, 0, 0]
            }
            Event::Accessed(access) => {
                let (kind, op, ty, fetches) = match access.kind {
                    Kind::Put => (0, 0, 0, false),
                    Kind::Get => (1, 0, 0, false),
                    Kind::Accumulate { op, ty, fetches } => (2, op.handle(), ty.handle(), fetches),
                };
                let flags = kind
                    | u64::from(fetches) << 2
                    | u64::from(access.has_request) << 3
                    | (access.epoch as u64) << 4;
                let types = (op as u64) << 16 | ty as u64;
                let [start, len, shape] = encode(access.runs);
                let place = types << 32 | u64::from(access.target);
                [head(8, flags), access.window, place, start, len, shape]
            }
            Event::Used { runs, is_written } => {
                let [start, len, shape] = encode(runs);
                [head(9, is_written.into()), 0, 0, start, len, shape]
            }
            Event::Returned => plain(10, 0),
        }
    }

    /// Decodes an event. Returns it with the world rank of its rank. `None`: the words are no
    /// event.
    pub fn decode(words: [u64; WORDS]) -> Option<(u32, Event)> {
        let [head, window, place, start, len, shape] = words;
        let (flags, rank) = (head >> 32 & 0xff_ffff, head as u32);
        let flag = |bit: u64| flags >> bit & 1 == 1;
        let runs = Runs {
            start,
            len,
            stride: (shape >> 32) as u32,
            count: shape as u32,
        };
        let event = match head >> 56 {
            1 => Event::Made {
                window,
                base: place,
                len: start,
            },
            2 => Event::Freed { window },
            3 => Event::Fenced { window },
            4 => Event::Posted { window },
            5 => Event::Waited { window },
            6 => Event::Locked {
                window,
                is_exclusive: flag(0),
            },
            7 => Event::Ended {
                window,
                target: Some(place as u32).filter(|target| *target != ALL),
                is_local: flag(0),
                unlocks: flag(1),
            },
            8 => {
                let kind = match flags & 3 {
                    0 => Kind::Put,
                    1 => Kind::Get,
                    _ => Kind::Accumulate {
                        op: Op::from_handle((place >> 48) as usize)?,
                        ty: Predefined::from_handle((place >> 32 & 0xffff) as usize)?,
                        fetches: flag(2),
                    },
                };
                let epochs = [Epoch::Fence, Epoch::Start, Epoch::Shared, Epoch::Exclusive];
                Event::Accessed(Access {
                    window,
                    target: place as u32,
                    kind,
                    epoch: *epochs.get((flags >> 4) as usize)?,
                    runs,
                    has_request: flag(3),
                })
            }
            9 => Event::Used {
                runs,
                is_written: flag(0),
            },
            10 => Event::Returned,
            _ => return None,
        };
        Some((rank, event))
    }
}

fn encode(runs: Runs) -> [u64; 3] {
    let shape = u64::from(runs.stride) << 32 | u64::from(runs.count);
    [runs.start, runs.len, shape]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_as_they_were() {
        let runs = Runs {
            start: 1 << 40,
            len: 24,
            stride: 48,
            count: 3000,
        };
        let accumulate = Kind::Accumulate {
            op: Op::Bxor,
            ty: Predefined::UINT64_T,
            fetches: true,
        };
        let access = |kind, epoch| {
            Event::Accessed(Access {
                window: u64::MAX,
                target: 9999,
                kind,
                epoch,
                runs,
                has_request: kind == Kind::Get,
            })
        };
        let ended = |target, is_local, unlocks| Event::Ended {
            window: 7,
            target,
            is_local,
            unlocks,
        };
        let window = 77;
        for event in [
            Event::Made {
                window,
                base: 1 << 47,
                len: 123,
            },
            Event::Freed { window },
            Event::Fenced { window },
            Event::Posted { window },
            Event::Waited { window },
            Event::Locked {
                window,
                is_exclusive: true,
            },
            ended(None, true, false),
            ended(Some(3), false, true),
            access(Kind::Put, Epoch::Fence),
            access(Kind::Get, Epoch::Start),
            access(accumulate, Epoch::Shared),
            access(accumulate, Epoch::Exclusive),
            Event::Used {
                runs,
                is_written: true,
            },
            Event::Returned,
        ] {
            assert_eq!(Event::decode(event.encode(12)), Some((12, event)));
        }
        assert_eq!(Event::decode([u64::MAX; WORDS]), None);
    }

    #[test]
    fn runs_join_and_have_bytes_in_common() {
        let mut runs = Runs::one(100, 8);
        assert!(runs.join(108, 4) && runs == Runs::one(100, 12));
        assert!(!runs.join(90, 12) && !runs.join(116, 8));
        assert!(runs.join(120, 12) && runs.join(140, 12) && !runs.join(161, 12));
        assert_eq!((runs.count, runs.stride, runs.end()), (3, 20, 152));
        let common = |start, len| runs.common(&Runs::one(start, len));
        assert_eq!(common(0, 100), None);
        assert_eq!(common(0, 101), Some((100, 101)));
        assert_eq!(common(112, 8), None);
        assert_eq!(common(112, 9), Some((120, 121)));
        assert_eq!(common(131, 300), Some((131, 132)));
        assert_eq!(common(152, 300), None);
        // Words of 8 bytes, which belong to the two runs in alternation.
        let [mut even, mut odd] = [Runs::one(0, 8), Runs::one(8, 8)];
        for at in 1..1000 {
            assert!(even.join(at * 16, 8) && odd.join(at * 16 + 8, 8));
        }
        assert_eq!(even.common(&odd), None);
        odd.len = 9;
        assert_eq!(even.common(&odd), Some((16, 17)));
        assert_eq!(odd.common(&even), Some((16, 17)));
    }
}
