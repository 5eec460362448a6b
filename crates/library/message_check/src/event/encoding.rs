//! The encoding of events in 64-bit words: a word of code, flags and rank, and five of operands.

use super::{Data, End, Event, Kind, Origin, Run, WORDS};

/// The code of the first event. Lower codes belong to events of `rma_check`.
const FIRST: u64 = 64;

const COUNT_BITS: u32 = 40;
const RUN_BITS: u32 = 48;
const NONE: u64 = u64::MAX;

impl Data {
    fn encode(self) -> u64 {
        u64::from(self.ty) << COUNT_BITS | self.count.min((1 << COUNT_BITS) - 1)
    }

    fn decode(word: u64) -> Data {
        Data {
            ty: (word >> COUNT_BITS) as u32,
            count: word & ((1 << COUNT_BITS) - 1),
        }
    }
}

fn optional(data: Option<Data>) -> u64 {
    data.map_or(NONE, Data::encode)
}

fn present(word: u64) -> Option<Data> {
    (word != NONE).then(|| Data::decode(word))
}

impl Run {
    fn encode(self) -> u64 {
        u64::from(self.basic) << RUN_BITS | self.count.min((1 << RUN_BITS) - 1)
    }

    fn decode(word: u64) -> Run {
        Run {
            basic: (word >> RUN_BITS) as u16,
            count: word & ((1 << RUN_BITS) - 1),
        }
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The code, the flags and the operands of an event.
type Parts = (u64, u64, [u64; WORDS - 1]);

impl Event {
    /// Encodes the event of the rank with world rank `rank`.
    pub fn encode(&self, rank: u32) -> [u64; WORDS] {
        let (code, flags, [a, b, c, d, e]) = self.calls().unwrap_or_else(|| self.states());
        let head = (FIRST + code) << 56 | flags << 32 | u64::from(rank);
        [head, a, b, c, d, e]
    }

    /// The parts of an event that describes a communicator, a datatype or the arguments of a call.
    fn calls(&self) -> Option<Parts> {
        Some(match *self {
            Event::Comm {
                comm,
                size,
                me,
                origin,
                is_inter,
            } => {
                let flags = origin as u64 | u64::from(is_inter) << 2;
                (0, flags, [comm, pair(size, me), 0, 0, 0])
            }
            Event::Type {
                ty,
                is_first,
                is_cut,
                runs,
            } => {
                let [a, b, c, d] = runs.map(Run::encode);
                let flags = u64::from(is_first) | u64::from(is_cut) << 1;
                (1, flags, [ty.into(), a, b, c, d])
            }
            Event::Collective {
                comm,
                root,
                op,
                gives,
                gets,
                counts,
            } => {
                let place = pair(root.unwrap_or(u32::MAX), op);
                let [gives, gets] = [gives, gets].map(optional);
                (2, 0, [comm, place, gives, gets, counts.into()])
            }
            Event::Blocks {
                are_given,
                first,
                blocks,
            } => {
                let [a, b, c, d] = blocks.map(optional);
                (3, are_given.into(), [first.into(), a, b, c, d])
            }
            Event::Send {
                comm,
                to,
                tag,
                data,
                is_init,
            } => {
                let place = pair(to, tag as u32);
                (4, is_init.into(), [comm, place, data.encode(), 0, 0])
            }
            Event::Receive {
                comm,
                from,
                tag,
                data,
                is_init,
                is_second,
            } => {
                let flags = u64::from(is_init) | u64::from(is_second) << 1;
                let place = pair(from.unwrap_or(u32::MAX), tag.unwrap_or(-1) as u32);
                (5, flags, [comm, place, data.encode(), 0, 0])
            }
            Event::Claimed {
                comm,
                from,
                tag,
                message,
            } => (6, 0, [comm, pair(from, tag as u32), message.into(), 0, 0]),
            Event::ReceiveClaimed { message, data } => {
                (7, 0, [message.into(), data.encode(), 0, 0, 0])
            }
            _ => return None,
        })
    }

    /// The parts of any other event.
    fn states(&self) -> Parts {
        let one = |code, flags: u64, word: u32| (code, flags, [word.into(), 0, 0, 0, 0]);
        match *self {
            Event::Request {
                request,
                is_persistent,
            } => one(8, is_persistent.into(), request),
            Event::Start { request } => one(9, 0, request),
            Event::Done { request, met, end } => {
                let flags = end as u64 | u64::from(met.is_some()) << 2;
                let (from, tag) = met.unwrap_or_default();
                (10, flags, [request.into(), pair(from, tag as u32), 0, 0, 0])
            }
            Event::Failed { has_matched } => one(11, has_matched.into(), 0),
            Event::Made { kind, handle } => one(12, kind as u64, handle),
            Event::Freed { kind, handle } => one(13, kind as u64, handle),
            _ => one(14, 0, 0),
        }
    }

    /// Decodes an event. Returns it with the world rank of its rank. `None`: the words are no
    /// event.
    pub fn decode(words: [u64; WORDS]) -> Option<(u32, Event)> {
        let [head, operands @ ..] = words;
        let (flags, rank) = (head >> 32 & 0xff_ffff, head as u32);
        let code = (head >> 56).checked_sub(FIRST)?;
        let event = Event::call(code, flags, operands);
        Some((rank, event.or_else(|| Event::state(code, flags, operands))?))
    }

    /// An event that describes a communicator, a datatype or the arguments of a call.
    fn call(code: u64, flags: u64, [a, b, c, d, e]: [u64; WORDS - 1]) -> Option<Event> {
        let flag = |bit: u64| flags >> bit & 1 == 1;
        let (high, low) = ((b >> 32) as u32, b as u32);
        Some(match code {
            0 => Event::Comm {
                comm: a,
                size: high,
                me: low,
                origin: match flags & 3 {
                    0 => Origin::Made,
                    1 => Origin::World,
                    _ => Origin::Alone,
                },
                is_inter: flag(2),
            },
            1 => Event::Type {
                ty: a as u32,
                is_first: flag(0),
                is_cut: flag(1),
                runs: [b, c, d, e].map(Run::decode),
            },
            2 => Event::Collective {
                comm: a,
                root: Some(high).filter(|root| *root != u32::MAX),
                op: low,
                gives: present(c),
                gets: present(d),
                counts: e as u32,
            },
            3 => Event::Blocks {
                are_given: flag(0),
                first: a as u32,
                blocks: [b, c, d, e].map(present),
            },
            4 => Event::Send {
                comm: a,
                to: high,
                tag: low as i32,
                data: Data::decode(c),
                is_init: flag(0),
            },
            5 => Event::Receive {
                comm: a,
                from: Some(high).filter(|from| *from != u32::MAX),
                tag: Some(low as i32).filter(|tag| *tag >= 0),
                data: Data::decode(c),
                is_init: flag(0),
                is_second: flag(1),
            },
            6 => Event::Claimed {
                comm: a,
                from: high,
                tag: low as i32,
                message: c as u32,
            },
            7 => Event::ReceiveClaimed {
                message: a as u32,
                data: Data::decode(b),
            },
            _ => return None,
        })
    }

    /// Any other event.
    fn state(code: u64, flags: u64, [a, b, ..]: [u64; WORDS - 1]) -> Option<Event> {
        let flag = |bit: u64| flags >> bit & 1 == 1;
        let (high, low) = ((b >> 32) as u32, b as u32);
        let kind = Kind::ALL.get(flags as usize).copied();
        Some(match code {
            8 => Event::Request {
                request: a as u32,
                is_persistent: flag(0),
            },
            9 => Event::Start { request: a as u32 },
            10 => Event::Done {
                request: a as u32,
                met: flag(2).then_some((high, low as i32)),
                end: match flags & 3 {
                    0 => End::Complete,
                    1 => End::Cancelled,
                    _ => End::Freed,
                },
            },
            11 => Event::Failed {
                has_matched: flag(0),
            },
            12 => Event::Made {
                kind: kind?,
                handle: a as u32,
            },
            13 => Event::Freed {
                kind: kind?,
                handle: a as u32,
            },
            14 => Event::Finalize,
            _ => return None,
        })
    }
}
