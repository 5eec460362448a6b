//! The promises of a transport, on real shared memory between threads.

use super::*;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::suite::{memory, room, take, token};
use crate::{Exposed, Exposure, Family, RemoteKey, Transfer, ZeroCopy};

const FAR: Cores = Cores {
    near: false,
    non_temporal_from: 1024,
};

/// The empty file of a segment, as a launcher makes it.
fn empty_segment() -> OwnedFd {
    // SAFETY: the name is a C string, and the descriptor is new and nobody else's.
    let fd = unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING);
        assert!(fd >= 0);
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: the call takes and returns numbers.
    let sealed = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
    assert_eq!(sealed, 0);
    fd
}

/// A segment for this many ranks, none of which has attached.
pub(super) fn one_segment(ranks: usize) -> Segment {
    Segment::open(empty_segment(), ranks, Shape::new(4, 16 << 10).unwrap()).unwrap()
}

fn pair(shape: Shape) -> (Shm, Shm) {
    let [a, b] = <[Shm; 2]>::try_from(all(2, shape)).ok().unwrap();
    (a, b)
}

fn all(ranks: usize, shape: Shape) -> Vec<Shm> {
    let fd = empty_segment();
    let open = |rank| {
        let segment = Segment::open(fd.try_clone().unwrap(), ranks, shape).unwrap();
        Shm::attach(segment, rank, LocalRanks::all(ranks), true, FAR).unwrap()
    };
    (0..ranks).map(open).collect()
}

#[test]
fn it_keeps_the_promises_of_a_channel() {
    let shape = Shape::new(16, 16 << 10).unwrap();
    crate::suite::promises(|ranks| all(ranks, shape));
    crate::suite::promises(|ranks| all(ranks, Shape::new(4, 16 << 10).unwrap()));
}

#[test]
fn a_full_ring_takes_nothing_and_room_comes_back() {
    let (mut a, mut b) = pair(Shape::new(8, 16 << 10).unwrap());
    let mut taken = 0;
    while a.put(1, [taken, 0, 0], 8, |body| body.fill(1)).unwrap() != Put::Full {
        taken += 1;
    }
    assert_eq!(taken, 8);
    let mut seen = 0;
    while seen < taken {
        take(&mut b, |_, head, _| {
            assert_eq!(head[0], seen);
            seen += 1;
        })
        .unwrap();
    }
    assert_eq!(
        a.put(1, [8, 0, 0], 2048, |body| body.fill(2)).unwrap(),
        Put::AcceptedPollNow
    );
}

#[test]
fn a_peer_that_claims_an_impossible_length_is_named() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    let (mut a, mut b) = pair(shape);
    assert_eq!(a.put(1, [0; 3], 0, |_| {}).unwrap(), Put::Accepted);
    use crate::ring::{Memory, Slot};
    b.segment
        .ring(0, 1, None)
        .unwrap()
        .slot(0)
        .contents(|contents| contents.len = u32::MAX);
    let error = take(&mut b, |_, _, _| panic!("handed on"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("rank 0") && error.contains("4294967295"),
        "{error}"
    );
}

#[test]
fn ranks_with_other_rings_are_told_apart() {
    let fd = empty_segment();
    let open = |slots| {
        let shape = Shape::new(slots, 64 << 10).unwrap();
        Segment::open(fd.try_clone().unwrap(), 2, shape)
    };
    let _first = open(64).unwrap();
    let error = open(128).err().unwrap().to_string();
    assert!(
        error.contains("128 slots") && error.contains("FISHPLATE_RING_SLOTS"),
        "{error}"
    );
}

#[test]
fn ranks_that_open_a_segment_at_the_same_time_agree() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    for _ in 0..50 {
        let fd = empty_segment();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| Segment::open(fd.try_clone().unwrap(), 4, shape).unwrap());
            }
        });
    }
}

#[test]
fn no_rank_changes_the_length_of_the_segment() {
    let fd = empty_segment();
    let file = std::fs::File::from(fd.try_clone().unwrap());
    let segment = Segment::open(fd, 2, Shape::new(4, 16 << 10).unwrap()).unwrap();
    let length = file.metadata().unwrap().len();
    assert!(length > 0);
    for other in [0, length - 1, length + 1] {
        let refused = file.set_len(other).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    }
    // The same number of ranks opens the segment again; another number is refused.
    drop(segment);
    let join = |ranks| {
        Segment::open(
            file.try_clone().unwrap().into(),
            ranks,
            Shape::new(4, 16 << 10).unwrap(),
        )
    };
    assert!(join(2).is_ok());
    let other = join(64).err().unwrap();
    assert!(matches!(other.fault(), Fault::Mismatch(_)), "{other}");
}

#[test]
fn a_segment_that_others_shaped_differently_is_refused() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    // The first rank's segment may be smaller, larger, or not be a segment at all.
    for ranks in [1, 3] {
        let fd = empty_segment();
        Segment::open(fd.try_clone().unwrap(), ranks, shape).unwrap();
        let error = Segment::open(fd, 2, shape).err().unwrap().to_string();
        assert!(error.contains("same version of the library"), "{error}");
    }
    let fd = empty_segment();
    use std::os::unix::fs::FileExt;
    let other = std::fs::File::from(fd.try_clone().unwrap());
    other.write_all_at(b"another library", 0).unwrap();
    assert!(Segment::open(fd, 2, shape).is_err());
}

#[test]
fn it_keeps_the_promises_of_zero_copy() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    let (a, mut b) = pair(shape);
    match b.capabilities(0).zero_copy {
        Some(zero_copy) => {
            assert!(zero_copy.read && zero_copy.synchronous);
            crate::suite::zero_copy_promises(a, b);
        }
        None => println!("this machine does not let a process read another one's memory"),
    }
}

/// Two ranks that can copy from each other's memory; `None` if the system does not allow it.
pub(super) fn copying_pair() -> Option<(Shm, Shm)> {
    let (mut a, mut b) = pair(Shape::new(8, 8 << 10).unwrap());
    let works = [a.capabilities(1), b.capabilities(0)].map(|it| it.zero_copy.is_some());
    if works != [true; 2] {
        println!("this machine does not let a process read another one's memory");
        return None;
    }
    Some((a, b))
}

/// A key with this number for `len` bytes.
fn key_of(number: u64, len: u64) -> RemoteKey {
    RemoteKey::decode(&number.to_ne_bytes(), len).unwrap()
}

#[test]
fn a_key_that_is_made_up_or_old_opens_no_memory() {
    let Some((mut a, mut b)) = copying_pair() else {
        return;
    };
    let (sent, mut received) = ([7u8; 4096], [0u8; 8192]);
    let expose = |a: &mut Shm| {
        let exposure = a.expose(1, &memory(&sent), 4096, Exposed::ToRead, Family::Messages);
        exposure.unwrap().unwrap()
    };
    let from = expose(&mut a);
    let into = room(&mut received);
    let to = b.prepare(0, &into, 8192, Exposed::ToWrite).unwrap();
    let to = to.unwrap();
    let mut error = |key: &RemoteKey, len| {
        let error = b.read(0, key, &to, 0..len, token(0)).unwrap_err();
        assert!(matches!(error.fault(), Fault::Broken { peer: 0, .. }));
        error.to_string()
    };
    let number = from.key().address;
    let address = sent.as_ptr() as u64;
    for wrong in [address, number + 1, number - 1, number ^ 1 << 40, u64::MAX] {
        let why = error(&key_of(wrong, 4096), 64);
        assert!(why.contains("not exposed"), "{why}");
    }
    error(&RemoteKey::NONE, 1);
    // A key for more bytes than are exposed gives access to none of them.
    for len in [4097, u64::MAX] {
        let why = error(&key_of(number, len), 64);
        assert!(why.contains("beyond the memory"), "{why}");
    }
    let why = error(&key_of(number, 4096), 4097);
    assert!(why.contains("beyond the memory"), "{why}");
    let behind = key_of(number, 8192).part(4096..4100).unwrap();
    let why = error(&behind, 4);
    assert!(why.contains("beyond the memory"), "{why}");
    // A buffer exposed for reads refuses a write.
    let write = b.write(0, &to, &from.key(), 0..64, token(0)).unwrap_err();
    assert!(write.to_string().contains("not exposed"), "{write}");
    // The key is void after its exposure, though the entry is reused.
    let old = from.key();
    a.retract(from).unwrap();
    let again = expose(&mut a);
    assert_ne!(again.key(), old);
    let why = b
        .read(0, &old, &to, 0..64, token(0))
        .unwrap_err()
        .to_string();
    assert!(why.contains("not exposed"), "{why}");
    assert!(received.iter().all(|byte| *byte == 0) && sent == [7; 4096]);
    let to = b.prepare(0, &room(&mut received), 4096, Exposed::ToWrite);
    let to = to.unwrap().unwrap();
    let read = b.read(0, &again.key(), &to, 0..4096, token(0)).unwrap();
    assert_eq!(read, Transfer::Done);
    assert!(received[..4096] == sent);
    a.retract(again).unwrap();
}

#[test]
fn a_full_table_exposes_nothing_more_until_an_exposure_ends() {
    let (mut a, _) = pair(Shape::new(8, 8 << 10).unwrap());
    let sent = [7u8; 64];
    let expose = |a: &mut Shm, family| {
        let exposure = a.expose(1, &memory(&sent), 64, Exposed::ToRead, family);
        exposure.unwrap()
    };
    let next = || expose(&mut a, Family::Messages);
    let mut exposed: Vec<Exposure> = std::iter::from_fn(next).collect();
    assert!(exposed.len() >= 512);
    // Neither collectives nor this rank's own end of a transfer need entries for messages.
    let collective = expose(&mut a, Family::Collectives).unwrap();
    a.retract(collective).unwrap();
    let own = a.prepare(1, &memory(&sent), 64, Exposed::ToRead).unwrap();
    assert!(!own.unwrap().is_held());
    a.retract(exposed.swap_remove(100)).unwrap();
    assert!(expose(&mut a, Family::Messages).is_some());
    assert!(expose(&mut a, Family::Messages).is_none());
}

#[test]
fn a_rank_that_may_not_copy_says_so() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    let segment = Segment::open(empty_segment(), 1, shape).unwrap();
    let mut never = Shm::attach(segment, 0, LocalRanks::all(1), false, FAR).unwrap();
    assert_eq!(never.capabilities(0).zero_copy, None);
}

#[test]
fn a_sleeper_is_woken_by_a_packet() {
    let (mut a, mut b) = pair(Shape::new(8, 16 << 10).unwrap());
    let sleeper = std::thread::spawn(move || {
        let bell = b.bell().unwrap();
        let mut seen = 0;
        while seen < 200 {
            let ordered = bell.arm(true);
            if b.is_quiet() {
                bell.wait(if ordered { 10_000_000_000 } else { 1_000_000 });
            } else {
                bell.disarm();
            }
            take(&mut b, |_, _, _| seen += 1).unwrap();
        }
    });
    for number in 0..200 {
        while a.put(1, [number, 0, 0], 0, |_| {}).unwrap() == Put::Full {
            std::thread::yield_now();
        }
        if number % 10 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    sleeper.join().unwrap();
}
