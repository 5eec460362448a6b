//! The promises of every transport, as tests that run on any transport.

use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datatype::Buffer;

use crate::{
    Done, Exposed, Exposure, Family, Head, More, Put, RemoteKey, Result, Token, Transfer,
    Transport, ZeroCopy,
};

/// Tests all promises of packets. `make` builds the connected transports of a job of that many
/// ranks.
pub(crate) fn promises<C: Transport + Send>(make: impl Fn(usize) -> Vec<C>) {
    packets_of_all_lengths_arrive_whole_and_in_order(pair(&make));
    both_ways_at_once(pair(&make));
    a_full_channel_takes_nothing_and_room_comes_back(pair(&make));
    the_longest_body_always_finds_room_once_all_is_consumed(pair(&make));
    a_receiver_that_has_enough_gets_the_rest_later(pair(&make));
    many_peers_are_all_heard(make(12));
}

pub(crate) fn pair<C>(make: &impl Fn(usize) -> Vec<C>) -> (C, C) {
    let mut both = make(2).into_iter();
    (both.next().unwrap(), both.next().unwrap())
}

/// The bytes of a slice as a buffer to read from, for transfers that end before the slice does.
pub(crate) fn memory(bytes: &[u8]) -> Buffer {
    // SAFETY: the tests keep the slice until its exposure is retracted, and do not change it while
    // a transfer is in flight.
    unsafe { Buffer::dense(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// The bytes of a slice as a buffer to write to, for transfers that end before the slice does.
pub(crate) fn room(bytes: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the slice until its exposure is retracted, and do not use it while a
    // transfer is in flight.
    unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) }
}

/// The token of operation `id` among point-to-point messages.
pub(crate) fn token(id: u64) -> Token {
    Token::new(Family::Messages, id)
}

/// Exposes a whole buffer to a peer for messages.
pub(crate) fn exposed(
    by: &mut impl ZeroCopy,
    peer: usize,
    buffer: &Buffer,
    exposed: Exposed,
) -> Exposure {
    let exposure = by.expose(peer, buffer, buffer.len(), exposed, Family::Messages);
    exposure.unwrap().unwrap()
}

/// Tests the promises of zero copy, between ranks 0 and 1, which are connected.
pub(crate) fn zero_copy_promises<T: Transport + ZeroCopy>(mut a: T, mut b: T) {
    let sent: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
    let mut received = vec![0; sent.len()];
    let from = exposed(&mut a, 1, &memory(&sent), Exposed::ToRead);
    let to = exposed(&mut b, 0, &room(&mut received), Exposed::ToWrite);
    let token = token(7);
    let read = b.read(0, &from.key(), &to, 0..sent.len(), token).unwrap();
    finish(&mut a, &mut b, read);
    assert_eq!(received, sent);
    received.fill(0);
    let written = a.write(1, &from, &to.key(), 0..5000, token).unwrap();
    finish(&mut b, &mut a, written);
    assert_eq!(received[..5000], sent[..5000]);
    assert!(received[5000..].iter().all(|byte| *byte == 0));
    // Any range, of the whole memory or of a part.
    received.fill(0);
    let read = b.read(0, &from.key(), &to, 300..70_001, token).unwrap();
    finish(&mut a, &mut b, read);
    assert!(received[300..70_001] == sent[300..70_001]);
    assert!(
        received[..300]
            .iter()
            .chain(&received[70_001..])
            .all(|byte| *byte == 0)
    );
    let part = to.key().part(70_001..99_999).unwrap();
    let written = a.write(1, &from, &part, 9..29_998, token).unwrap();
    finish(&mut b, &mut a, written);
    assert!(received[70_010..99_999] == sent[9..29_998]);
    assert!(
        received[70_001..70_010]
            .iter()
            .chain(&received[99_999..])
            .all(|byte| *byte == 0)
    );
    // No byte beyond the key or the exposure can be accessed.
    let whole = sent.len();
    assert!(b.read(0, &from.key(), &to, 1..whole + 1, token).is_err());
    assert!(a.write(1, &from, &part, 0..29_999, token).is_err());
    assert!(to.key().part(1..whole + 1).is_none());
    b.retract(to).unwrap();
    // This rank's own end of a transfer needs no key.
    received.fill(0);
    let own = b.prepare(0, &room(&mut received), sent.len(), Exposed::ToWrite);
    let own = own.unwrap().unwrap();
    each_family_hears_of_its_own_transfers(&mut a, &mut b, &from.key(), &own);
    assert!(received[..50_000] == sent[..50_000]);
    a.retract(from).unwrap();
    b.retract(own).unwrap();
    one_key_reads_and_writes(&mut a, &mut b);
}

/// Accesses as in a window: the owner of the memory has no part in those of its peer.
fn one_key_reads_and_writes<T: Transport + ZeroCopy>(a: &mut T, b: &mut T) {
    let (mut owned, mut back) = (vec![0; 5000], vec![0; 4000]);
    let sent: Vec<u8> = (0..4000).map(|at| (at % 253) as u8).collect();
    let owner = b.expose(0, &room(&mut owned), 5000, Exposed::ToBoth, Family::Windows);
    let owner = owner.unwrap().unwrap();
    assert!(a.can_start(1));
    let part = owner.key().part(700..4700).unwrap();
    let from = a.prepare(1, &memory(&sent), 4000, Exposed::ToRead);
    let from = from.unwrap().unwrap();
    let written = a.write(1, &from, &part, 0..4000, token(7)).unwrap();
    finish(b, a, written);
    let to = a.prepare(1, &room(&mut back), 4000, Exposed::ToWrite);
    let to = to.unwrap().unwrap();
    let read = a.read(1, &part, &to, 0..4000, token(7)).unwrap();
    finish(b, a, read);
    assert!(back == sent && owned[700..4700] == sent);
    assert!(
        owned[..700]
            .iter()
            .chain(&owned[4700..])
            .all(|byte| *byte == 0)
    );
    a.retract(from).unwrap();
    a.retract(to).unwrap();
    b.retract(owner).unwrap();
}

/// Completions are reported to the family of their token.
fn each_family_hears_of_its_own_transfers<T: Transport + ZeroCopy>(
    a: &mut T,
    b: &mut T,
    from: &RemoteKey,
    to: &Exposure,
) {
    const EACH: usize = 3;
    let families = [Family::Messages, Family::Collectives];
    let mut started = [0; 2];
    for id in 0..EACH as u64 {
        for (family, started) in families.into_iter().zip(&mut started) {
            let read = b.read(0, from, to, 0..50_000, Token::new(family, id));
            *started += usize::from(read.unwrap() == Transfer::Started);
        }
    }
    // Either all transfers between two ranks are synchronous, or none.
    assert!(matches!(started, [0, 0] | [EACH, EACH]));
    for (family, started) in families.into_iter().zip(started) {
        let mut done: Vec<Done> = Vec::new();
        for _ in 0..PATIENCE {
            done.extend(std::iter::from_fn(|| b.done(family)));
            if done.len() == started {
                break;
            }
            take(a, |_, _, _| ()).unwrap();
            take(b, |_, _, _| ()).unwrap();
        }
        let expected = (0..started as u64).map(|id| Done {
            peer: 0,
            token: Token::new(family, id),
        });
        assert_eq!(done, expected.collect::<Vec<_>>());
    }
}

/// Lets both ranks poll until the transfer that `ours` has started is complete.
fn finish<T: Transport + ZeroCopy>(theirs: &mut T, ours: &mut T, transfer: Transfer) {
    assert_ne!(transfer, Transfer::Refused);
    for _ in 0..PATIENCE {
        if transfer == Transfer::Done {
            return;
        }
        if let Some(done) = ours.done(Family::Messages) {
            assert_eq!(done.token, token(7));
            return;
        }
        take(theirs, |_, _, _| ()).unwrap();
        take(ours, |_, _, _| ()).unwrap();
    }
    panic!("the transfer is never complete");
}

/// Consumes every packet that has arrived.
pub(crate) fn take(
    channel: &mut impl Transport,
    mut each: impl FnMut(usize, Head, &[u8]),
) -> Result<usize> {
    channel.poll(|peer, head, body| {
        each(peer, head, body);
        More::Wanted
    })
}

/// The length of [`PATTERN`]: prime, so that no two adjacent blocks of a body are equal.
const PERIOD: usize = 8191;

/// The bytes from which bodies are copied, because the tests spend much of their time on bodies.
static PATTERN: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..PERIOD).map(|at| (at + at / 251) as u8).collect());

/// The pieces of the body of a packet, each with its range in the body.
fn pieces(number: u64, len: usize) -> impl Iterator<Item = (Range<usize>, &'static [u8])> {
    let mut begun = 0;
    std::iter::from_fn(move || {
        let from = (number as usize * 31 + begun) % PERIOD;
        let piece = &PATTERN[from..PERIOD.min(from + len - begun)];
        begun += piece.len();
        (!piece.is_empty()).then_some((begun - piece.len()..begun, piece))
    })
}

fn fill(number: u64, body: &mut [u8]) {
    for (range, piece) in pieces(number, body.len()) {
        body[range].copy_from_slice(piece);
    }
}

fn check(number: u64, body: &[u8]) {
    assert!(
        pieces(number, body.len()).all(|(range, piece)| &body[range] == piece),
        "packet {number} of {} bytes is damaged",
        body.len()
    );
}

/// The time limit of a thread that waits for another thread, which may have failed.
struct Deadline(std::time::Instant);

impl Deadline {
    fn begin() -> Deadline {
        Deadline(std::time::Instant::now() + std::time::Duration::from_secs(100))
    }

    fn idle(&self) {
        let now = std::time::Instant::now();
        assert!(now < self.0, "the other thread makes no progress");
        std::thread::yield_now();
    }
}

/// Number of polls after which an expected event must have happened.
const PATIENCE: usize = 100_000;

/// Puts a packet, and lets both ranks poll until it is accepted. Packets that arrive at `to`
/// meanwhile go to `heard`.
fn put_by<C: Transport>(
    from: &mut C,
    to: &mut C,
    peer: usize,
    head: Head,
    len: usize,
    mut heard: impl FnMut(usize, Head, &[u8]),
) {
    for _ in 0..PATIENCE {
        let put = from
            .put(peer, head, len, |body| fill(head[0], body))
            .unwrap();
        if put != Put::Full {
            return;
        }
        take(from, |_, head, _| panic!("unexpected {head:?}")).unwrap();
        take(to, &mut heard).unwrap();
    }
    panic!("no room for a packet of {len} bytes");
}

/// Lets both ranks poll until `count` packets have arrived at `to`.
fn take_by<C: Transport>(
    from: &mut C,
    to: &mut C,
    count: usize,
    mut each: impl FnMut(usize, Head, &[u8]),
) {
    let mut got = 0;
    for _ in 0..PATIENCE {
        if got == count {
            return;
        }
        got += take(to, &mut each).unwrap();
        take(from, |_, head, _| panic!("unexpected {head:?}")).unwrap();
    }
    panic!("{got} of {count} packets came");
}

fn packets_of_all_lengths_arrive_whole_and_in_order<C: Transport + Send>((mut a, mut b): (C, C)) {
    let most = a.longest_packet(1);
    let lengths: Vec<usize> = (0..2000)
        .map(|i| {
            [0, 1, 31, 32, 33, 64, 100, 1000, 4096, 2048, most][(i * 7 + i / 9) % 11].min(most)
        })
        .collect();
    let all_received = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let deadline = Deadline::begin();
            for (number, &len) in lengths.iter().enumerate() {
                let number = number as u64;
                while a
                    .put(1, [number, 2, 3], len, |body| fill(number, body))
                    .unwrap()
                    == Put::Full
                {
                    take(&mut a, |_, head, _| panic!("unexpected {head:?}")).unwrap();
                    deadline.idle();
                }
            }
            // Coalesced packets leave only while their sender polls.
            while !all_received.load(Ordering::Acquire) {
                deadline.idle();
                take(&mut a, |_, _, _| ()).unwrap();
            }
        });
        let deadline = Deadline::begin();
        let mut received = 0;
        while received < lengths.len() {
            let packets = take(&mut b, |peer, head, body| {
                assert_eq!((peer, head), (0, [received as u64, 2, 3]));
                assert_eq!(body.len(), lengths[received]);
                check(received as u64, body);
                received += 1;
            })
            .unwrap();
            if packets == 0 {
                deadline.idle();
            }
        }
        all_received.store(true, Ordering::Release);
    });
}

/// Both ranks send at the same time, and neither polls before its ring is full.
fn both_ways_at_once<C: Transport + Send>((a, b): (C, C)) {
    const EACH: u64 = 1000;
    let done = AtomicUsize::new(0);
    let talk = |mut channel: C, peer: usize| {
        let deadline = Deadline::begin();
        let (mut sent, mut heard) = (0, 0);
        while sent < EACH || heard < EACH {
            let len = (sent as usize * 37) % 700;
            if sent < EACH
                && channel
                    .put(peer, [sent, 0, sent], len, |body| fill(sent, body))
                    .unwrap()
                    != Put::Full
            {
                sent += 1;
                continue;
            }
            let packets = take(&mut channel, |from, head, body| {
                assert_eq!((from, head), (peer, [heard, 0, heard]));
                assert_eq!(body.len(), (heard as usize * 37) % 700);
                check(heard, body);
                heard += 1;
            })
            .unwrap();
            if packets == 0 {
                deadline.idle();
            }
        }
        // Coalesced packets leave only while their sender polls.
        done.fetch_add(1, Ordering::AcqRel);
        while done.load(Ordering::Acquire) < 2 {
            deadline.idle();
            take(&mut channel, |_, head, _| panic!("unexpected {head:?}")).unwrap();
        }
        channel
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| talk(a, 1));
        let other = scope.spawn(|| talk(b, 0));
        // Both transports exist until both ranks are done.
        let _both = (one.join().unwrap(), other.join().unwrap());
    });
}

fn a_full_channel_takes_nothing_and_room_comes_back<C: Transport>((mut a, mut b): (C, C)) {
    put_by(&mut a, &mut b, 1, [0, 0, 0], 8, |_, _, _| ());
    let mut taken = 1;
    while a
        .put(1, [taken, 0, 0], 8, |body| fill(taken, body))
        .unwrap()
        != Put::Full
    {
        taken += 1;
        assert!(taken < 1_000_000, "it is never full");
    }
    let mut seen = 0;
    take_by(&mut a, &mut b, taken as usize, |_, head, body| {
        assert_eq!(head[0], seen);
        check(seen, body);
        seen += 1;
    });
    let most = a.longest_packet(1);
    put_by(&mut a, &mut b, 1, [taken, 0, 0], most, |_, _, _| {
        panic!("too early")
    });
    take_by(&mut a, &mut b, 1, |_, head, body| {
        assert_eq!((head[0], body.len()), (taken, most));
        check(taken, body);
    });
}

fn the_longest_body_always_finds_room_once_all_is_consumed<C: Transport>((mut a, mut b): (C, C)) {
    let most = a.longest_packet(1);
    for round in 0..100u64 {
        // Bodies that leave an awkward rest at an arena's end.
        for len in [33 + round as usize * 17 % 1500, most] {
            put_by(&mut a, &mut b, 1, [round, 0, 0], len, |_, _, _| {
                panic!("too early")
            });
            take_by(&mut a, &mut b, 1, |_, _, body| {
                assert_eq!(body.len(), len);
                check(round, body);
            });
        }
    }
}

fn a_receiver_that_has_enough_gets_the_rest_later<C: Transport>((mut a, mut b): (C, C)) {
    let mut next = 0;
    let mut hear = |head: Head, body: &[u8]| {
        assert_eq!(head[0], next);
        check(next, body);
        next += 1;
        next
    };
    for number in 0..4u64 {
        put_by(&mut a, &mut b, 1, [number, 0, 0], 8, |_, head, body| {
            hear(head, body);
        });
    }
    let mut heard = 0;
    for _ in 0..PATIENCE {
        let got = b
            .poll(|_, head, body| {
                heard = hear(head, body);
                More::Enough
            })
            .unwrap();
        assert!(got <= 1);
        if heard == 4 {
            return;
        }
        take(&mut a, |_, _, _| ()).unwrap();
    }
    panic!("{heard} of 4 came");
}

fn many_peers_are_all_heard<C: Transport>(mut all: Vec<C>) {
    let ranks = all.len();
    let mut heard = vec![0u64; ranks];
    for round in 0..5 {
        for rank in (1..ranks).rev() {
            let (first, rest) = all.split_at_mut(1);
            let mut listen = |peer: usize, head: Head, body: &[u8]| {
                assert_eq!(head, [heard[peer], peer as u64, 0]);
                check(head[0], body);
                heard[peer] += 1;
            };
            put_by(
                &mut rest[rank - 1],
                &mut first[0],
                0,
                [round, rank as u64, 0],
                3,
                &mut listen,
            );
        }
        for _ in 0..PATIENCE {
            take(&mut all[0], |peer, head, body| {
                assert_eq!(head, [heard[peer], peer as u64, 0]);
                check(head[0], body);
                heard[peer] += 1;
            })
            .unwrap();
            if heard[1..].iter().all(|&count| count == round + 1) {
                break;
            }
            for sender in &mut all[1..] {
                take(sender, |_, head, _| panic!("unexpected {head:?}")).unwrap();
            }
        }
        assert!(
            heard[1..].iter().all(|&count| count == round + 1),
            "{heard:?}"
        );
    }
}
