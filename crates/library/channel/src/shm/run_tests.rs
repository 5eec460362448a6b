//! Messages of several runs that are read where they lie: every range, every boundary of a copy,
//! and lists that are not what they should be.

use super::exposures::Memory;
use super::tests::copying_pair;
use super::*;

use datatype::{Buffer, Predefined, Type};

use crate::run_list::{MOST_RUNS, RunList};
use crate::suite::{memory, room, token};
use crate::{Exposed, Exposure, Family, RemoteKey, Transfer, ZeroCopy};

/// The runs of the short message, as (offset, length): one of a few bytes, and none in order.
const RUNS: [(isize, i64); 4] = [(20_000, 7000), (100, 3), (30_000, 8192), (9_000, 5001)];
const LEN: usize = 7000 + 3 + 8192 + 5001;
/// The positions where its runs begin or end, and those beside them.
const BOUNDARIES: [usize; 13] = [
    0,
    1,
    6999,
    7000,
    7001,
    7002,
    7003,
    7004,
    15_194,
    15_195,
    15_196,
    LEN - 1,
    LEN,
];

/// The bytes in which the message lies.
fn span() -> Vec<u8> {
    (0..40_000u32).map(|at| (at % 251) as u8).collect()
}

/// The message in these bytes.
fn message(span: &[u8]) -> Buffer {
    let (offsets, lengths): (Vec<isize>, Vec<i64>) = RUNS.into_iter().unzip();
    let ty = Type::hindexed(&lengths, &offsets, &Predefined::BYTE.into()).unwrap();
    // SAFETY: the tests keep the bytes in place, and only read them.
    unsafe { Buffer::new(span.as_ptr().cast_mut(), 1, &ty) }
}

fn bytes_of(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.pack(0, &mut bytes);
    bytes
}

fn exposed(by: &mut Shm, buffer: &Buffer) -> Exposure {
    let exposure = by.expose(1, buffer, buffer.len(), Exposed::ToRead, Family::Messages);
    exposure.unwrap().unwrap()
}

/// The bytes that a read of `range` leaves in memory of the same length as the message.
fn read(by: &mut Shm, key: &RemoteKey, len: usize, range: std::ops::Range<usize>) -> Vec<u8> {
    let mut received = vec![0; len];
    let to = by.prepare(0, &room(&mut received), len, Exposed::ToWrite);
    let read = by.read(0, key, &to.unwrap().unwrap(), range, token(0));
    assert_eq!(read.unwrap(), Transfer::Done);
    received
}

#[test]
fn any_range_of_several_runs_is_read() {
    let Some((mut a, mut b)) = copying_pair() else {
        return;
    };
    let span = span();
    let message = message(&span);
    let (sent, from) = (bytes_of(&message), exposed(&mut a, &message));
    let others = exposed(&mut a, &memory(&span));
    for start in BOUNDARIES {
        for end in BOUNDARIES.into_iter().filter(|end| *end >= start) {
            let got = read(&mut b, &from.key(), LEN, start..end);
            assert!(got[start..end] == sent[start..end], "{start}..{end}");
            let mut around = got[..start].iter().chain(&got[end..]);
            assert!(around.all(|byte| *byte == 0), "{start}..{end}");
            // The runs of one exposure are not those of another.
            assert!(read(&mut b, &others.key(), 50, 0..50) == span[..50]);
        }
    }
    let part = from.key().part(4000..15_196).unwrap();
    assert!(read(&mut b, &part, 11_196, 3000..11_196)[3000..] == sent[7000..15_196]);
    // A receive buffer with gaps.
    let mut received = vec![0; 2 * LEN];
    let gaps = Type::vector(LEN as i64 / 50, 50, 100, &Predefined::BYTE.into()).unwrap();
    // SAFETY: nothing else uses the memory until the read has ended.
    let to = unsafe { Buffer::new(received.as_mut_ptr(), 1, &gaps) };
    let wanted = to.len();
    let to = b
        .prepare(0, &to, wanted, Exposed::ToWrite)
        .unwrap()
        .unwrap();
    let done = b.read(0, &from.key(), &to, 0..wanted, token(0)).unwrap();
    assert_eq!(done, Transfer::Done);
    let blocks = received.chunks(100).zip(sent[..wanted].chunks(50));
    blocks
        .for_each(|(got, sent)| assert!(got[..50] == *sent && got[50..].iter().all(|it| *it == 0)));
    let key = from.key();
    a.retract(from).unwrap();
    let to = room(&mut received);
    let to = b.prepare(0, &to, LEN, Exposed::ToWrite).unwrap().unwrap();
    let why = b.read(0, &key, &to, 0..LEN, token(0)).unwrap_err();
    assert!(why.to_string().contains("not exposed"), "{why}");
}

#[test]
fn what_is_copied_is_read_from_the_copy_and_the_rest_from_its_runs() {
    let Some((mut a, mut b)) = copying_pair() else {
        return;
    };
    let span = span();
    let message = message(&span);
    let sent = bytes_of(&message);
    // The copy differs from the message, which shows where a byte was read.
    let copy: Vec<u8> = sent.iter().map(|byte| 255 - byte).collect();
    for copied in BOUNDARIES {
        let from = exposed(&mut a, &message);
        if copied > 0 {
            assert!(a.advance_copy(&from, copy.as_ptr() as usize, copied));
        }
        b.claim(0, &from.key()).unwrap();
        let wanted = [&copy[..copied], &sent[copied..]].concat();
        for start in BOUNDARIES {
            let got = read(&mut b, &from.key(), LEN, start..LEN);
            assert!(
                got[start..] == wanted[start..],
                "{copied} copied, from {start}"
            );
        }
        a.retract(from).unwrap();
    }
}

#[test]
fn the_most_runs_are_read_and_more_are_not_exposed() {
    let Some((mut a, mut b)) = copying_pair() else {
        return;
    };
    const RUN: usize = 4096;
    const STRIDE: usize = RUN + 8;
    let span: Vec<u8> = (0..(MOST_RUNS + 1) * STRIDE)
        .map(|at| (at % 253) as u8)
        .collect();
    let vector = |runs: usize, run: usize, stride: usize| {
        let ty = Type::vector(
            runs as i64,
            run as i64,
            stride as i64,
            &Predefined::BYTE.into(),
        );
        // SAFETY: the bytes stay in place, and are only read.
        unsafe { Buffer::new(span.as_ptr().cast_mut(), 1, &ty.unwrap()) }
    };
    let message = vector(MOST_RUNS, RUN, STRIDE);
    let (sent, from) = (bytes_of(&message), exposed(&mut a, &message));
    // With the copy the read has more parts than one call takes.
    let copy = vec![7; 5];
    assert!(a.advance_copy(&from, copy.as_ptr() as usize, copy.len()));
    b.claim(0, &from.key()).unwrap();
    let got = read(&mut b, &from.key(), sent.len(), 0..sent.len());
    assert!(got[..5] == copy && got[5..] == sent[5..]);
    let mut may = |buffer: &Buffer, exposed, family| {
        let exposure = a.expose(1, buffer, buffer.len(), exposed, family).unwrap();
        exposure.is_some()
    };
    assert!(!may(
        &vector(MOST_RUNS + 1, RUN, STRIDE),
        Exposed::ToRead,
        Family::Messages
    ));
    assert!(!may(
        &vector(MOST_RUNS, RUN - 1, STRIDE),
        Exposed::ToRead,
        Family::Messages
    ));
    // Runs are exposed for messages alone, and only to be read.
    assert!(!may(&message, Exposed::ToWrite, Family::Messages));
    assert!(!may(&message, Exposed::ToBoth, Family::Messages));
    assert!(!may(&message, Exposed::ToRead, Family::Collectives));
    assert!(!may(&message, Exposed::ToRead, Family::Windows));
}

#[test]
fn a_list_that_is_not_what_is_exposed_gives_access_to_nothing() {
    let Some((mut a, mut b)) = copying_pair() else {
        return;
    };
    let bytes = [9u8; 4096];
    let mut received = vec![0; 4096];
    let to = b.prepare(0, &room(&mut received), 4096, Exposed::ToWrite);
    let to = to.unwrap().unwrap();
    let start = bytes.as_ptr() as u64;
    let mut answer = |expose: &dyn Fn(&mut Shm) -> u64, len: usize| {
        let number = expose(&mut a);
        let key = RemoteKey::new(number, len, &[]);
        let read = b.read(0, &key, &to, 0..len.min(100), token(0));
        let written = b.write(0, &to, &key, 0..10, token(0));
        assert!(written.unwrap_err().to_string().contains("not exposed"));
        a.exposures.close(a.segment.exposed(a.place), number);
        read.map_err(|error| error.to_string())
    };
    // A short list lies beside its entry; a longer one lies in the memory of its owner.
    let mut with = |list: &[[u64; 2]], len: usize| {
        let long: Vec<[u64; 2]> = [&[[start, 1]; 40], list].concat();
        let answers = [(list, len), (&long[..], len + 40)].map(|(runs, len)| {
            let list = RunList::made_up(runs);
            let expose = |a: &mut Shm| {
                let (table, memory) = (a.segment.exposed(a.place), Memory::Runs(&list));
                let number =
                    (a.exposures).open(table, (memory, len), Exposed::ToRead, Family::Messages);
                number.unwrap()
            };
            answer(&expose, len)
        });
        assert_eq!(answers[0], answers[1]);
        answers[0].clone()
    };
    let good = [[start, 60], [start + 100, 40]];
    assert_eq!(with(&good, 100), Ok(Transfer::Done));
    let whole = u64::MAX - start;
    for (list, len) in [
        (vec![[start, 60], [start + 100, 39]], 100),
        (vec![[start, 60], [start + 100, 41]], 100),
        (vec![[start, 100], [start + 100, 0]], 100),
        (vec![[start, 101], [start, u64::MAX]], 100),
        (vec![[start, whole], [start, u64::MAX - whole + 101]], 100),
        (vec![[u64::MAX - 50, 60], [start, 40]], 100),
        (vec![[start, 1]; MOST_RUNS + 1], MOST_RUNS + 1),
    ] {
        let why = with(&list, len).unwrap_err();
        assert!(why.contains("a list of runs"), "{why}");
    }
    // The read of an unmapped run is refused, and the message comes in packets.
    assert_eq!(with(&[[start, 30], [8, 70]], 100), Ok(Transfer::Refused));
    // Words of an entry that no owner in its right mind writes: length and access, list, runs.
    let mut forged = |address: u64, extent: u64, runs: u64| {
        let words = [address, extent, runs];
        answer(
            &|a| a.exposures.forge(a.segment.exposed(a.place), words),
            100,
        )
    };
    let (read, both) = (100 << 2, 100 << 2 | 2);
    assert_eq!(forged(8, read, 20), Ok(Transfer::Refused));
    assert_eq!(forged(u64::MAX, read, 20), Ok(Transfer::Refused));
    let list: Vec<[u64; 2]> = (0..20).map(|run| [start + 9 * run, 5]).collect();
    let address = list.as_ptr() as u64;
    assert_eq!(forged(address, both, 20), Ok(Transfer::Done));
    for runs in [19, 21, MOST_RUNS as u64 + 1, 1 << 60, u64::MAX] {
        let why = forged(address, read, runs).unwrap_err();
        assert!(why.contains("a list of runs"), "{why}");
    }
    assert!(forged(address, 100 << 2 | 1, 20).is_err());
    let received = &received;
    assert!(received[..100] == [9; 100] && received[100..].iter().all(|byte| *byte == 0));
}
