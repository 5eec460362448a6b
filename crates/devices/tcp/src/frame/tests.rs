//! Two machines back to back: seeded runs against a model of what must happen, and a stream cut at
//! every byte. [`strangers`] break the rules.

mod strangers;

use std::collections::VecDeque;

use device::{Access, Completed, Operation, Remote, Slice, Status, Work};
use proptest::prelude::*;

use super::header::{Header, Kind};
use super::machine::{BUSY_NS, LONG, QUIET_NS};
use super::*;

/// The address of the first byte of the memory of one end.
const BASE: u64 = 0x1000;
/// The length of the memory of one end, in bytes.
const LEN: usize = 64 << 10;
/// The number of bytes at each end of the memory that are not registered.
const MARGIN: usize = 4 << 10;
/// The offset of bytes that stay as they are: payload, and what peers read.
const SOURCE: usize = MARGIN;
/// The offset of bytes that peers write to.
const TARGET: usize = 16 << 10;
/// The offset of bytes that receives and answers go to.
const RESULT: usize = 40 << 10;
const KEY: u32 = 77;
const LONGEST_PAYLOAD: usize = 5000;

/// One end's memory and queues.
struct End {
    memory: Vec<u8>,
    access: Access,
    receives: VecDeque<Receive>,
    done: Vec<Done>,
    wrote: usize,
}

impl End {
    fn new(salt: u8) -> End {
        let byte = |at: usize| match at {
            TARGET.. => 0,
            _ => (at * 31 + at / 251) as u8 ^ salt,
        };
        End {
            memory: (0..LEN).map(byte).collect(),
            access: Access::ALL,
            receives: VecDeque::new(),
            done: Vec::new(),
            wrote: 0,
        }
    }

    fn at(&self, address: u64) -> usize {
        (address - BASE) as usize
    }
}

impl Host for End {
    fn allows(&self, key: u32, address: u64, len: u64, right: Right) -> bool {
        let may = match right {
            Right::LocalRead => true,
            Right::LocalWrite => self.access.local_write,
            Right::RemoteWrite => self.access.remote_write,
            Right::RemoteRead => self.access.remote_read,
            Right::RemoteAtomic => self.access.remote_atomic,
        };
        let first = BASE + MARGIN as u64;
        let end = BASE + LEN as u64 - MARGIN as u64;
        let is_inside = address >= first && address.checked_add(len).is_some_and(|at| at <= end);
        key == KEY && may && is_inside
    }

    fn place(&mut self, address: u64, bytes: &[u8]) {
        assert!(
            self.allows(KEY, address, bytes.len() as u64, Right::LocalWrite),
            "{address:#x} and {} bytes lie outside of the region",
            bytes.len()
        );
        let at = self.at(address);
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn copy(&self, address: u64, len: usize, into: &mut Vec<u8>) {
        let at = self.at(address);
        into.extend_from_slice(&self.memory[at..at + len]);
    }

    fn change(&mut self, address: u64, change: Change) -> u64 {
        assert!(self.allows(KEY, address, 8, Right::RemoteAtomic));
        let at = self.at(address);
        let word = &mut self.memory[at..at + 8];
        let old = u64::from_ne_bytes(word.try_into().unwrap());
        let new = match change {
            Change::Add(summand) => old.wrapping_add(summand),
            Change::Swap(expected, new) if expected == old => new,
            Change::Swap(..) => old,
        };
        word.copy_from_slice(&new.to_ne_bytes());
        old
    }

    fn receive(&mut self) -> Option<Receive> {
        self.receives.pop_front()
    }

    fn wrote(&mut self, key: u32) {
        assert_eq!(key, KEY);
        self.wrote += 1;
    }

    fn complete(&mut self, done: Done, _is_shared: bool) {
        self.done.push(done);
    }
}

/// Random numbers that a seed repeats (xorshift*, G. Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

fn slice(at: usize, len: usize) -> Slice {
    Slice {
        address: BASE + at as u64,
        len: len as u32,
        lkey: KEY,
    }
}

fn remote(at: usize) -> Remote {
    Remote {
        address: BASE + at as u64,
        rkey: KEY,
    }
}

fn receive(id: u64, into: &[Slice]) -> Receive {
    let mut slices = [slice(0, 0); RECEIVE_SLICES];
    slices[..into.len()].copy_from_slice(into);
    Receive {
        id,
        into: slices,
        slices: into.len(),
        is_shared: false,
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
    fn new(depth: usize) -> Wire {
        Wire {
            ends: [End::new(0), End::new(0x55)],
            machines: [Machine::new(depth), Machine::new(depth)],
            ways: Default::default(),
            now: 0,
        }
    }

    fn post(&mut self, from: usize, work: &Work, taken: usize) {
        let len: u32 = work.local.iter().map(|slice| slice.len).sum();
        let machine = &mut self.machines[from];
        let end = &self.ends[from];
        let waits = !machine.outgoing().is_empty();
        let head = machine.begin(work, len);
        let carries = matches!(
            work.operation,
            Operation::Write { .. } | Operation::Send { .. }
        );
        let payload = if carries { work.local } else { &[] };
        let mut bytes = head.to_vec();
        for one in payload {
            end.copy(one.address, one.len as usize, &mut bytes);
        }
        let sent = if waits { 0 } else { taken.min(bytes.len()) };
        self.ways[1 - from].extend(&bytes[..sent]);
        if sent < bytes.len() {
            machine.keep(&head, payload, sent, work.inline, end);
        }
    }

    /// Sends up to `most` of the bytes that wait at an end.
    fn flush(&mut self, from: usize, most: usize) {
        let machine = &mut self.machines[from];
        let end = &self.ends[from];
        let mut pieces = [Piece::Bytes(&[]); 4];
        let count = machine.outgoing().gather(end, &mut pieces).unwrap();
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
    fn deliver(&mut self, to: usize, most: usize, least: usize) -> Result<(), Break> {
        let machine = &mut self.machines[to];
        let end = &mut self.ends[to];
        let way = &mut self.ways[to];
        let now = self.now;
        let mut bytes: Vec<u8> = way.drain(..most.min(way.len())).collect();
        if let Some((address, len)) = machine.direct(least, end).filter(|_| !bytes.is_empty()) {
            let rest = bytes.split_off(len.min(bytes.len()));
            end.place(address, &bytes);
            machine.received(bytes.len(), || now, end)?;
            bytes = rest;
        }
        let used = machine.receive(&bytes, || now, end)?;
        assert!(used == bytes.len() || machine.is_stalled());
        for byte in bytes[used..].iter().rev() {
            way.push_front(*byte);
        }
        Ok(())
    }

    /// Delivers everything, until nothing moves.
    fn settle(&mut self) {
        let mut still = 0;
        // Bytes that have come may lead to bytes that go.
        while still < 3 {
            let before = self.ways.each_ref().map(VecDeque::len);
            for end in 0..2 {
                self.now += BUSY_NS;
                let now = self.now;
                if self.machines[end].owes(true, || now) {
                    self.machines[end].queue_acknowledgement();
                }
                self.flush(end, usize::MAX);
                self.deliver(end, usize::MAX, 64).unwrap();
            }
            let is_still = self.machines.iter().all(|one| one.outgoing().is_empty());
            match is_still && self.ways.each_ref().map(VecDeque::len) == before {
                true => still += 1,
                false => still = 0,
            }
        }
    }
}

/// The expected results of the requests of one end, and of those of its peer.
#[derive(Default)]
struct Model {
    /// The ids, kinds and lengths of the completions of signaled requests, in order.
    reports: Vec<(u64, Completed, u32)>,
    /// The ids, lengths and immediates of consumed receives, in order.
    received: Vec<(u64, u32, Option<u32>)>,
    /// The number of receives that this end needs.
    needed: u64,
    posted: u64,
    writes: usize,
    /// The offsets of results in memory, each with the expected bytes.
    results: Vec<(usize, Vec<u8>)>,
}

/// An operation of one of five kinds, with the kind of its completion. Reads are from offset `at`;
/// all others go to offset `place` among the targets.
fn some_operation(
    kind: usize,
    (at, place): (usize, usize),
    immediate: Option<u32>,
    id: u64,
) -> (Operation, Completed) {
    match kind {
        0 | 1 => (
            Operation::Write {
                to: remote(TARGET + place),
                immediate,
            },
            Completed::Write,
        ),
        2 => (Operation::Send { immediate }, Completed::Send),
        3 => (Operation::Read { from: remote(at) }, Completed::Read),
        _ => (
            Operation::FetchAndAdd {
                at: remote(TARGET + place / 8 * 8),
                add: id,
            },
            Completed::Atomic,
        ),
    }
}

/// Posts a random request of an end, and records the expected results.
fn post_randomly(
    wire: &mut Wire,
    models: &mut [Model; 2],
    targets: &mut [Vec<u8>; 2],
    (from, id): (usize, u64),
    random: &mut Random,
) {
    let to = 1 - from;
    let len = match random.below(4) {
        0 => 0,
        1 => random.below(LONGEST_PAYLOAD),
        _ => random.below(64),
    };
    let at = SOURCE + random.below(2000);
    let cut = random.below(len + 1);
    let local = [slice(at, cut), slice(at + cut, len - cut)];
    let bytes = wire.ends[from].memory[at..at + len].to_vec();
    let signaled = random.below(3) == 0;
    let immediate = (random.below(2) == 0).then_some(id as u32);
    let place = random.below(19_000);
    let result = RESULT + random.below(7000);
    let (operation, of) = some_operation(random.below(5), (at, place), immediate, id);
    let mut reported = 0;
    let mut own = local;
    match operation {
        Operation::Write { .. } => {
            targets[to][place..place + len].copy_from_slice(&bytes);
            models[to].writes += usize::from(len > 0);
        }
        Operation::Read { .. } => {
            own = [slice(result, cut), slice(result + cut, len - cut)];
            reported = len as u32;
            let theirs = wire.ends[to].memory[at..at + len].to_vec();
            models[from].results.push((result, theirs));
        }
        Operation::FetchAndAdd { .. } => {
            own = [slice(result, 8), slice(0, 0)];
            reported = 8;
            let place = place / 8 * 8;
            let word = &mut targets[to][place..place + 8];
            let old = word.to_vec();
            let sum = u64::from_ne_bytes(word.try_into().unwrap()).wrapping_add(id);
            word.copy_from_slice(&sum.to_ne_bytes());
            models[from].results.push((result, old));
        }
        _ => {}
    }
    let sends = matches!(operation, Operation::Send { .. });
    if sends || operation.has_immediate() {
        let number = models[to].needed;
        models[to].received.push((number, len as u32, immediate));
        models[to].needed += 1;
    }
    if signaled {
        models[from].reports.push((id, of, reported));
    }
    let work = Work {
        id,
        operation,
        local: &own,
        inline: sends,
        signaled,
        to: None,
    };
    let taken = random.below(2 * LONGEST_PAYLOAD);
    wire.post(from, &work, taken);
}

/// Runs random requests in both directions, cut at random bytes, against the models.
fn run(seed: u64) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut wire = Wire::new(64);
    let mut models = [Model::default(), Model::default()];
    let mut targets = [vec![0; RESULT - TARGET], vec![0; RESULT - TARGET]];
    let mut id = 0;
    for _ in 0..600 {
        let end = random.below(2);
        match random.below(6) {
            // The depth bounds the requests in flight.
            0 if wire.machines[end].requests.in_flight() < 60 => {
                id += 1;
                post_randomly(&mut wire, &mut models, &mut targets, (end, id), &mut random);
            }
            1 if models[end].posted < models[end].needed + 3 => {
                let number = models[end].posted;
                models[end].posted += 1;
                let into = [slice(RESULT + 12_000, 2500), slice(RESULT + 15_000, 2500)];
                wire.ends[end].receives.push_back(receive(number, &into));
            }
            2 => wire.flush(end, random.below(4000)),
            3 => {
                wire.now += random.below(2 * BUSY_NS as usize) as u64;
                let now = wire.now;
                if wire.machines[end].owes(random.below(2) == 0, || now) {
                    wire.machines[end].queue_acknowledgement();
                }
            }
            _ => {
                let most = 1 + random.below(3000);
                wire.deliver(end, most, 1 + random.below(500)).unwrap();
            }
        }
    }
    for (end, model) in wire.ends.iter_mut().zip(&models) {
        let into = [slice(RESULT + 12_000, 5000)];
        let missing = model.posted..model.needed;
        end.receives
            .extend(missing.map(|number| receive(number, &into)));
    }
    wire.settle();
    for (end, model) in wire.ends.iter().zip(&models) {
        let sent = end.done.iter().filter(|done| done.retires > 0);
        let sent: Vec<_> = sent.map(|done| (done.id, done.of, done.bytes)).collect();
        assert_eq!(sent, model.reports, "seed {seed}");
        let received = end.done.iter().filter(|done| done.retires == 0);
        let received = received.map(|done| (done.id, done.bytes, done.immediate));
        assert_eq!(received.collect::<Vec<_>>(), model.received, "seed {seed}");
        assert!(end.done.iter().all(|done| done.status == Status::Success));
        assert_eq!(end.wrote, model.writes, "seed {seed}");
    }
    for (end, target) in wire.ends.iter().zip(&targets) {
        assert!(end.memory[TARGET..RESULT] == target[..], "seed {seed}");
    }
    // Later results may lie over earlier ones; the last is whole.
    for (end, model) in wire.ends.iter().zip(&models) {
        if let Some((at, bytes)) = model.results.last() {
            assert!(
                end.memory[*at..at + bytes.len()] == bytes[..],
                "seed {seed}"
            );
        }
    }
}

#[test]
fn whatever_is_posted_happens_once_and_in_order_however_the_bytes_come() {
    (0..400).for_each(run);
}

/// The bytes of one of each kind of frame, and the end that has sent them.
fn one_of_each() -> (Vec<u8>, Wire) {
    let mut wire = Wire::new(64);
    let operations = [
        Operation::Write {
            to: remote(TARGET + 3),
            immediate: Some(9),
        },
        Operation::Send { immediate: None },
        Operation::Read {
            from: remote(SOURCE),
        },
        Operation::FetchAndAdd {
            at: remote(TARGET + 1000),
            add: 5,
        },
        Operation::CompareAndSwap {
            at: remote(TARGET + 1000),
            compare: 5,
            swap: 6,
        },
        Operation::Write {
            to: remote(TARGET + 2000),
            immediate: None,
        },
    ];
    for (id, operation) in (0..).zip(operations) {
        let atomic = matches!(id, 3 | 4);
        let local = [slice(RESULT, if atomic { 8 } else { 40 })];
        let local = match operation {
            Operation::Write { .. } | Operation::Send { .. } => [slice(SOURCE, 40)],
            _ => local,
        };
        let work = Work {
            id,
            operation,
            local: &local,
            inline: false,
            signaled: true,
            to: None,
        };
        wire.post(0, &work, usize::MAX);
    }
    let bytes = wire.ways[1].drain(..).collect();
    wire.ends[1].receives.extend([
        receive(0, &[]),
        receive(1, &[slice(RESULT, 13), slice(RESULT + 100, 100)]),
    ]);
    (bytes, wire)
}

#[test]
fn a_stream_may_be_cut_at_every_byte() {
    let whole = {
        let (bytes, mut wire) = one_of_each();
        wire.ways[1].extend(bytes);
        wire.settle();
        wire
    };
    assert_eq!(whole.ends[0].done.len(), 6);
    assert_eq!(whole.ends[1].done.len(), 2);
    assert_eq!(whole.ends[1].memory[TARGET + 1000], 6);
    let len = one_of_each().0.len();
    for cut in 0..=len {
        for least in [1, usize::MAX] {
            let (bytes, mut wire) = one_of_each();
            wire.ways[1].extend(&bytes[..cut]);
            wire.deliver(1, usize::MAX, least).unwrap();
            wire.ways[1].extend(&bytes[cut..]);
            wire.deliver(1, usize::MAX, least).unwrap();
            wire.settle();
            for (end, same) in wire.ends.iter().zip(&whole.ends) {
                assert!(end.memory == same.memory, "cut at {cut}");
                assert_eq!(end.done, same.done, "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_region_that_goes_in_the_middle_of_a_write_is_left_alone() {
    let (bytes, mut wire) = one_of_each();
    wire.ways[1].extend(&bytes[..header::HEADER + 10]);
    wire.deliver(1, usize::MAX, usize::MAX).unwrap();
    let before = wire.ends[1].memory.clone();
    wire.ends[1].access = Access::default();
    assert_eq!(wire.machines[1].direct(1, &wire.ends[1]), None);
    wire.ways[1].extend(&bytes[header::HEADER + 10..]);
    let end = wire.deliver(1, usize::MAX, 1);
    assert_eq!(end, Err(Break::Refuse(Status::RemoteAccess)));
    assert!(wire.ends[1].memory == before);
}

#[test]
fn a_refused_request_fails_and_those_behind_it_are_flushed() {
    let mut wire = Wire::new(64);
    let local = [slice(SOURCE, 8)];
    for (id, at) in [(1, TARGET), (2, LEN - MARGIN - 7), (3, TARGET)] {
        let to = remote(at);
        let work = Work {
            id,
            operation: Operation::Write {
                to,
                immediate: None,
            },
            local: &local,
            inline: false,
            signaled: id != 2,
            to: None,
        };
        wire.post(0, &work, usize::MAX);
    }
    let why = wire.deliver(1, usize::MAX, usize::MAX).unwrap_err();
    assert_eq!(why, Break::Refuse(Status::RemoteAccess));
    wire.machines[1].fail(why, &mut wire.ends[1]);
    wire.flush(1, usize::MAX);
    let why = wire.deliver(0, usize::MAX, usize::MAX).unwrap_err();
    assert_eq!(why, Break::Refused(Status::RemoteAccess));
    wire.machines[0].fail(why, &mut wire.ends[0]);
    let done: Vec<_> = wire.ends[0]
        .done
        .iter()
        .map(|one| (one.id, one.status))
        .collect();
    let expected = [
        (1, Status::Success),
        (2, Status::RemoteAccess),
        (3, Status::Flushed),
    ];
    assert_eq!(done, expected);
}

#[test]
fn an_acknowledgement_goes_out_alone_only_if_the_peer_waits_for_it() {
    let write = |wire: &mut Wire, from: usize, len: usize, signaled: bool| {
        let local = [slice(SOURCE, len)];
        let to = remote(TARGET);
        let work = Work {
            id: 1,
            operation: Operation::Write {
                to,
                immediate: None,
            },
            local: &local,
            inline: false,
            signaled,
            to: None,
        };
        wire.post(from, &work, usize::MAX);
        wire.deliver(1 - from, usize::MAX, usize::MAX).unwrap();
    };
    let mut wire = Wire::new(16);
    let owes = |wire: &Wire, quiet, now| wire.machines[1].owes(quiet, || now);
    write(&mut wire, 0, 8, false);
    assert!(!owes(&wire, true, u64::MAX), "nobody waits");
    write(&mut wire, 0, 8, true);
    assert!(!owes(&wire, true, QUIET_NS - 1) && owes(&wire, true, QUIET_NS));
    assert!(!owes(&wire, false, BUSY_NS - 1) && owes(&wire, false, BUSY_NS));
    // A frame of the other direction carries it.
    write(&mut wire, 1, 8, false);
    assert!(!owes(&wire, true, u64::MAX));
    assert_eq!(wire.ends[0].done.len(), 1);
    // A long request, and a queue that is half full, ask for it at once.
    write(&mut wire, 0, LONG as usize, true);
    assert!(owes(&wire, false, 0));
    // Those behind it do not, while that one is on its way and 256 KiB have not left.
    let mut wire = Wire::new(64);
    for number in 0..=16 {
        write(&mut wire, 0, LONG as usize, true);
        assert_eq!(owes(&wire, false, 0), number % 16 == 0, "{number}");
        assert!(owes(&wire, true, QUIET_NS));
        wire.machines[1].acknowledge();
    }
    let mut wire = Wire::new(16);
    for _ in 0..8 {
        assert!(!owes(&wire, true, u64::MAX));
        write(&mut wire, 0, 8, false);
    }
    assert!(owes(&wire, false, 0));
}

proptest! {
    #[test]
    fn a_header_says_what_was_put_into_it(
        kind in 1u8..9,
        words in any::<(u16, u32, u64, u32, u32)>(),
    ) {
        let mut bytes = Header::of(Kind::Write, words.0).encode();
        bytes[0] = kind;
        bytes[8..16].copy_from_slice(&words.2.to_le_bytes());
        bytes[16..20].copy_from_slice(&words.3.to_le_bytes());
        bytes[20..].copy_from_slice(&words.4.to_le_bytes());
        let len = match kind { 4 => 8, 5 => 16, 7 | 8 => 0, _ => words.1 };
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        let header = Header::decode(&bytes).unwrap();
        prop_assert_eq!(header.encode(), bytes);
        bytes[1] = 0x80;
        prop_assert_eq!(Header::decode(&bytes), None);
    }
}
