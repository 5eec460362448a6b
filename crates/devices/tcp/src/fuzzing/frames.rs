//! Frames: two machines back to back, whose owners post, register and deregister as a script says,
//! over a wire that cuts anywhere, changes bytes, and carries frames that nobody has posted.
//!
//! The promises, whatever comes:
//! - a byte is placed in registered memory alone, and only where its region allows it;
//! - a request completes once and in order, a receive that was taken completes once;
//! - the memory that an end holds grows by no more than the bytes that have come to it and those
//!   that its owner has posted.

use std::collections::VecDeque;

use device::{Access, Operation, Region, Remote, Slice, Work};
use fuzz_input::Script;

use crate::frame::{Break, Change, Done, Host, Machine, Piece, RECEIVE_SLICES, Receive, Right};
use crate::regions::Regions;

/// The address of the first byte of the memory of one end.
const BASE: u64 = 0x1000;
/// The length of the memory of one end, in bytes.
const LEN: usize = 4096;
/// The depth of a send queue, in requests.
const DEPTH: usize = 8;
/// The header of a frame, in bytes.
const HEADER: usize = 24;
/// The longest payload that an owner posts, in bytes.
const LONGEST: usize = 1500;
/// The most bytes that wait on the wire.
const MOST_ON_WIRE: usize = 1 << 14;

/// Runs a script. Panics where a promise is broken.
pub fn frames(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut wire = Wire {
        ends: [End::new(), End::new()],
        machines: [Machine::new(DEPTH), Machine::new(DEPTH)],
        ways: Default::default(),
        now: 0,
    };
    while !script.is_over() {
        let end = script.below(2);
        match script.below(10) {
            0 => wire.inject(end, script.bytes(40)),
            1 => {
                let frame = wire.some_frame(end, &mut script);
                wire.inject(end, &frame);
            }
            2 | 3 => wire.post(end, &mut script),
            4 => wire.ends[end].post_receive(&mut script),
            5 => wire.flush(end, script.below(4096)),
            6 | 7 => wire.deliver(end, 1 + script.below(2048), 1 + script.below(64)),
            8 => wire.change(end, &mut script),
            _ => wire.ends[end].change_regions(&mut script),
        }
        wire.check_memory();
    }
    wire.begin_anew(Break::Ended);
}

/// One end's memory and queues.
struct End {
    memory: Vec<u8>,
    regions: Regions,
    live: Vec<(Region, Access)>,
    receives: VecDeque<Receive>,
    /// The number of the last posted request.
    posted: u64,
    /// The number of the last completed request.
    completed: u64,
    /// The number of entries of the send queue in use.
    held: usize,
    /// The requests that asked for a completion and have had none.
    signaled: VecDeque<u64>,
    /// The id of the receive that a frame uses.
    taken: Option<u64>,
    /// The number of bytes that have arrived.
    came: usize,
    /// The number of bytes that the owner has posted.
    own: usize,
}

impl End {
    fn new() -> End {
        let mut end = End {
            memory: vec![0; LEN],
            regions: Regions::default(),
            live: Vec::new(),
            receives: VecDeque::new(),
            posted: 0,
            completed: 0,
            held: 0,
            signaled: VecDeque::new(),
            taken: None,
            came: 0,
            own: 0,
        };
        end.register(256, 2048, Access::ALL);
        end
    }

    fn register(&mut self, at: usize, len: usize, access: Access) {
        let region = self
            .regions
            .add(BASE + at as u64, len as u64, access)
            .expect("room for some regions");
        self.live.push((region, access));
    }

    fn change_regions(&mut self, script: &mut Script) {
        if self.live.len() < 4 && !script.is_one_in(4) {
            let at = script.below(LEN);
            let len = script.below(LEN - at) + 1;
            let access = Access {
                local_write: script.is_one_in(2),
                remote_write: script.is_one_in(2),
                remote_read: script.is_one_in(2),
                remote_atomic: script.is_one_in(2),
            };
            self.register(at, len, access);
        } else if !self.live.is_empty() {
            let (region, _) = self.live.swap_remove(script.below(self.live.len()));
            assert!(self.regions.remove(region.lkey));
        }
    }

    /// A part of a region, or something near it.
    fn some_slice(&self, script: &mut Script, most: usize) -> Slice {
        let len = script.below(most + 1) as u32;
        let Some(at) = script.below(self.live.len() + 1).checked_sub(1) else {
            let address = script.of(&[0, BASE - 1, u64::MAX - 7, BASE + LEN as u64]);
            let lkey = u32::from(script.byte());
            return Slice { address, len, lkey };
        };
        let (region, _) = self.live[at];
        let room = region.len.saturating_sub(len.into());
        let address = match script.below(4) {
            0 => region.address,
            1 => region.address + room,
            2 => region.address + room + 1,
            _ => region.address + script.below(256) as u64 * 8 % (room + 1),
        };
        let lkey = region.lkey;
        Slice { address, len, lkey }
    }

    fn post_receive(&mut self, script: &mut Script) {
        if self.receives.len() == 8 {
            return;
        }
        let none = Slice {
            address: 0,
            len: 0,
            lkey: 0,
        };
        let slices = script.below(RECEIVE_SLICES + 1);
        let mut into = [none; RECEIVE_SLICES];
        for slice in &mut into[..slices] {
            *slice = self.some_slice(script, 200);
        }
        self.receives.push_back(Receive {
            id: u64::from(script.byte()),
            into,
            slices,
            is_shared: script.is_one_in(2),
        });
    }

    /// Panics unless a region that is registered now allows a change of these bytes.
    fn check(&self, address: u64, len: usize, may: impl Fn(&Access) -> bool) {
        let end = address + len as u64;
        let allows = |(region, access): &(Region, Access)| {
            may(access) && address >= region.address && end <= region.address + region.len
        };
        assert!(
            len == 0 || self.live.iter().any(allows),
            "{len} bytes at {address:#x} are not of a region that allows it"
        );
    }

    fn at(&self, address: u64) -> usize {
        (address - BASE) as usize
    }
}

impl Host for End {
    fn allows(&self, key: u32, address: u64, len: u64, right: Right) -> bool {
        self.regions.allows(key, address, len, right)
    }

    fn place(&mut self, address: u64, bytes: &[u8]) {
        self.check(address, bytes.len(), |access| {
            access.local_write || access.remote_write
        });
        let at = self.at(address);
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn copy(&self, address: u64, len: usize, into: &mut Vec<u8>) {
        let at = self.at(address);
        into.extend_from_slice(&self.memory[at..at + len]);
    }

    fn change(&mut self, address: u64, change: Change) -> u64 {
        assert!(
            address.is_multiple_of(8),
            "{address:#x} is no address of a word"
        );
        self.check(address, 8, |access| access.remote_atomic);
        let at = self.at(address);
        let word = &mut self.memory[at..at + 8];
        let old = u64::from_ne_bytes(std::array::from_fn(|at| word[at]));
        let new = match change {
            Change::Add(summand) => old.wrapping_add(summand),
            Change::Swap(expected, new) if expected == old => new,
            Change::Swap(..) => old,
        };
        word.copy_from_slice(&new.to_ne_bytes());
        old
    }

    fn receive(&mut self) -> Option<Receive> {
        assert!(self.taken.is_none(), "two receives are in use");
        let receive = self.receives.pop_front()?;
        self.taken = Some(receive.id);
        Some(receive)
    }

    fn wrote(&mut self, _key: u32) {}

    fn complete(&mut self, done: Done, _is_shared: bool) {
        if done.retires == 0 {
            assert_eq!(self.taken.take(), Some(done.id), "a receive was not in use");
            return;
        }
        assert!(
            done.id > self.completed && done.id <= self.posted,
            "request {} completes after {} of {}",
            done.id,
            self.completed,
            self.posted
        );
        self.completed = done.id;
        let due = self.signaled.front().copied();
        assert!(
            due.is_none_or(|due| due >= done.id),
            "a request never completes"
        );
        if due == Some(done.id) {
            self.signaled.pop_front();
        }
        let left = self.held.checked_sub(done.retires as usize);
        self.held = left.expect("more requests complete than were posted");
    }
}

/// Both ends with the bytes on their way.
struct Wire {
    ends: [End; 2],
    machines: [Machine; 2],
    /// The bytes on their way to each end.
    ways: [VecDeque<u8>; 2],
    now: u64,
}

impl Wire {
    /// Adds bytes that nobody has sent to those on their way to an end.
    fn inject(&mut self, to: usize, bytes: &[u8]) {
        if self.ways[to].len() < MOST_ON_WIRE {
            self.ways[to].extend(bytes);
        }
    }

    /// A header as a peer could make it.
    fn some_frame(&self, to: usize, script: &mut Script) -> Vec<u8> {
        let place = self.ends[to].some_slice(script, LONGEST);
        let kind = 1 + script.below(9) as u8;
        let len = match (kind, script.is_one_in(8)) {
            (_, true) => script.of(&[1, u32::MAX, 1 << 30]),
            (4, _) => 8,
            (5, _) => 16,
            (7 | 8, _) => 0,
            _ => place.len,
        };
        let mut bytes = vec![kind, script.below(9) as u8];
        bytes.extend(u16::from(script.byte()).to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(place.address.to_le_bytes());
        bytes.extend(place.lkey.to_le_bytes());
        bytes.extend(u32::from(script.byte()).to_le_bytes());
        bytes
    }

    /// Posts a request of the owner of an end, if there is room. The socket takes a part of it.
    fn post(&mut self, from: usize, script: &mut Script) {
        if self.ends[from].held == DEPTH || self.ways[1 - from].len() > MOST_ON_WIRE {
            return;
        }
        let kind = script.below(5);
        let there = self.ends[1 - from].some_slice(script, LONGEST);
        let len = if kind > 3 { 8 } else { there.len };
        let at = script.below(LEN - len as usize);
        let local = [Slice {
            address: BASE + at as u64,
            len,
            lkey: self.ends[from]
                .live
                .first()
                .map_or(0, |(region, _)| region.lkey),
        }];
        let to = Remote {
            address: there.address,
            rkey: there.lkey,
        };
        let immediate = script.is_one_in(2).then_some(7);
        let operation = match kind {
            0 | 1 => Operation::Write { to, immediate },
            2 => Operation::Send { immediate },
            3 => Operation::Read { from: to },
            _ => Operation::CompareAndSwap {
                at: to,
                compare: 0,
                swap: 1,
            },
        };
        let work = Work {
            id: self.ends[from].posted + 1,
            operation,
            local: &local,
            inline: script.is_one_in(2),
            signaled: script.is_one_in(2),
            to: None,
        };
        let machine = &mut self.machines[from];
        let end = &mut self.ends[from];
        let waits = !machine.outgoing().is_empty();
        let head = machine.begin(&work, len);
        (end.posted, end.held) = (work.id, end.held + 1);
        end.signaled.extend(work.signaled.then_some(work.id));
        end.own += HEADER + 16 + len as usize;
        let carries = kind < 3;
        let payload = if carries { &local[..] } else { &[] };
        let mut bytes = head.to_vec();
        for one in payload {
            end.copy(one.address, one.len as usize, &mut bytes);
        }
        let taken = if waits { 0 } else { script.below(2 * LONGEST) };
        let sent = taken.min(bytes.len());
        self.ways[1 - from].extend(&bytes[..sent]);
        if sent < bytes.len() {
            machine.keep(&head, payload, sent, work.inline, end);
        }
    }

    /// Lets the socket of an end take up to `most` of the bytes that wait.
    fn flush(&mut self, from: usize, most: usize) {
        if self.ways[1 - from].len() > MOST_ON_WIRE {
            return;
        }
        let machine = &mut self.machines[from];
        let end = &self.ends[from];
        let mut pieces = [Piece::Bytes(&[]); 4];
        let count = match machine.outgoing().gather(end, &mut pieces) {
            Ok(count) => count,
            Err(why) => return self.end(from, why),
        };
        let mut bytes = Vec::new();
        for piece in &pieces[..count] {
            match *piece {
                Piece::Bytes(some) => bytes.extend_from_slice(some),
                Piece::Memory(address, len) => end.copy(address, len, &mut bytes),
            }
        }
        let sent = most.min(bytes.len());
        self.ways[1 - from].extend(&bytes[..sent]);
        machine.sent(sent);
    }

    /// Delivers up to `most` bytes to an end, long payload straight into its destination.
    fn deliver(&mut self, to: usize, most: usize, least: usize) {
        let way = &mut self.ways[to];
        let bytes: Vec<u8> = way.drain(..most.min(way.len())).collect();
        self.ends[to].came += bytes.len();
        match self.take(to, &bytes, least) {
            Ok(used) => {
                assert!(
                    used == bytes.len() || self.machines[to].is_stalled(),
                    "bytes are left, and no frame waits for a receive"
                );
                self.ends[to].came -= bytes.len() - used;
                for byte in bytes[used..].iter().rev() {
                    self.ways[to].push_front(*byte);
                }
            }
            Err(why) => self.end(to, why),
        }
    }

    fn take(&mut self, to: usize, bytes: &[u8], least: usize) -> Result<usize, Break> {
        let now = self.now;
        let machine = &mut self.machines[to];
        let end = &mut self.ends[to];
        let mut placed = 0;
        let direct = machine.direct(least, end);
        if let Some((address, len)) = direct.filter(|_| !bytes.is_empty()) {
            placed = len.min(bytes.len());
            // The socket may use all of that memory.
            end.check(address, len, |access| {
                access.local_write || access.remote_write
            });
            end.place(address, &bytes[..placed]);
            machine.received(placed, || now, end)?;
        }
        let used = machine.receive(&bytes[placed..], || now, end)?;
        Ok(placed + used)
    }

    /// Changes a byte on its way to an end, lets time pass, or ends the connection as the owner of
    /// the end would.
    fn change(&mut self, end: usize, script: &mut Script) {
        match script.below(4) {
            0 | 1 => {
                let at = script.below(64);
                let mask = script.byte();
                if let Some(byte) = self.ways[end].get_mut(at) {
                    *byte ^= mask;
                }
            }
            2 => {
                self.now += 1000 * script.below(256) as u64;
                let now = self.now;
                let machine = &mut self.machines[end];
                if machine.owes(script.is_one_in(2), || now) {
                    machine.queue_acknowledgement();
                    self.ends[end].own += HEADER;
                }
            }
            _ => {
                let why = script.of(&[Break::Ended, Break::Lost]);
                self.end(end, why);
            }
        }
    }

    /// Ends the connection at one end; the other end learns of it.
    fn end(&mut self, first: usize, why: Break) {
        self.machines[first].fail(why, &mut self.ends[first]);
        // A refusal leaves before the connection ends.
        let mut pieces = [Piece::Bytes(&[]); 1];
        let outgoing = self.machines[first].outgoing();
        if let Ok(1) = outgoing.gather(&self.ends[first], &mut pieces)
            && let Piece::Bytes(refusal) = pieces[0]
        {
            assert_eq!(refusal.len(), HEADER);
            let way = &mut self.ways[1 - first];
            way.extend(refusal);
            let bytes: Vec<u8> = way.drain(..).collect();
            if let Err(why) = self.take(1 - first, &bytes, 1) {
                self.machines[1 - first].fail(why, &mut self.ends[1 - first]);
            }
        }
        self.begin_anew(Break::Lost);
    }

    /// Ends the connection at both ends: everything that was posted must have completed.
    fn begin_anew(&mut self, why: Break) {
        for (machine, end) in self.machines.iter_mut().zip(&mut self.ends) {
            machine.fail(why, end);
            assert!(!machine.is_awaiting() && end.signaled.is_empty());
            assert!(end.taken.is_none(), "a receive never completes");
            *machine = Machine::new(DEPTH);
            // Requests without a completion may have been executed.
            (end.held, end.came, end.own) = (0, 0, 0);
        }
        self.ways = Default::default();
    }

    fn check_memory(&self) {
        for (machine, end) in self.machines.iter().zip(&self.ends) {
            let held = machine.outgoing().held();
            assert!(
                held <= end.came + end.own,
                "{held} bytes are held for {} that came and {} of the owner",
                end.came,
                end.own
            );
        }
    }
}
