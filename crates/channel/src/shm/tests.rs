//! The promises of the channel, on real shared memory between threads.

use super::*;

/// Takes every packet that there is.
fn take(shm: &mut Shm, mut each: impl FnMut(usize, Head, &[u8])) -> Result<usize> {
    shm.get(|peer, head, body| {
        each(peer, head, body);
        More::Wanted
    })
}

fn pair(shape: Shape) -> (Shm, Shm) {
    let fd = Segment::create(2).unwrap();
    let open = |rank| {
        Shm::attach(
            Segment::open(fd.try_clone().unwrap(), shape).unwrap(),
            rank,
            true,
        )
        .unwrap()
    };
    (open(0), open(1))
}

fn body_of(number: u64, len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(move |at| (number as usize * 31 + at) as u8)
}

#[test]
fn packets_of_all_lengths_arrive_whole_and_in_order() {
    let shape = Shape::new(16, 16 << 10).unwrap();
    let (mut a, mut b) = pair(shape);
    let lengths: Vec<usize> = (0..5000)
        .map(|i| [0, 1, 31, 32, 33, 64, 100, 1000, 4096][(i * 7 + i / 9) % 9])
        .collect();
    let sent = lengths.clone();
    let sender = std::thread::spawn(move || {
        for (number, &len) in sent.iter().enumerate() {
            let fill = |body: &mut [u8]| {
                body.iter_mut()
                    .zip(body_of(number as u64, len))
                    .for_each(|(to, from)| *to = from)
            };
            while a.put(1, [number as u64, 2, 3], len, fill).unwrap() == Put::Full {
                std::thread::yield_now();
            }
        }
        a
    });
    let mut received = 0;
    while received < lengths.len() {
        take(&mut b, |peer, head, body| {
            assert_eq!((peer, head), (0, [received as u64, 2, 3]));
            assert_eq!(body.len(), lengths[received]);
            assert!(
                body.iter()
                    .copied()
                    .eq(body_of(received as u64, body.len()))
            );
            received += 1;
        })
        .unwrap();
    }
    let mut a = sender.join().unwrap();
    assert!(a.is_quiet() && b.is_quiet());
}

#[test]
fn a_full_ring_takes_nothing_and_room_comes_back() {
    let (mut a, mut b) = pair(Shape::new(8, 8 << 10).unwrap());
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
        Put::TakenLap
    );
}

#[test]
fn the_longest_body_always_finds_room_once_all_is_consumed() {
    let shape = Shape::new(64, 8 << 10).unwrap();
    let (mut a, mut b) = pair(shape);
    let most = a.max_body(1);
    for round in 0..100u64 {
        // Offsets that leave an awkward rest at the arena's end.
        for len in [33 + round as usize * 17 % 1500, most] {
            let put = a
                .put(1, [round, 0, 0], len, |body| body.fill(round as u8))
                .unwrap();
            assert_ne!(put, Put::Full);
            let mut got = 0;
            take(&mut b, |_, _, body| {
                assert!(body.len() == len && body.iter().all(|&byte| byte == round as u8));
                got += 1;
            })
            .unwrap();
            assert_eq!(got, 1);
        }
    }
}

#[test]
fn a_peer_that_claims_an_impossible_length_is_named() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    let (mut a, mut b) = pair(shape);
    assert_eq!(a.put(1, [0; 3], 0, |_| {}).unwrap(), Put::Taken);
    use crate::ring::{Memory, Slot};
    b.segment
        .ring(0, 1)
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
    let fd = Segment::create(2).unwrap();
    let _first = Segment::open(fd.try_clone().unwrap(), Shape::new(64, 64 << 10).unwrap()).unwrap();
    let error = Segment::open(fd, Shape::new(128, 64 << 10).unwrap())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("128 slots") && error.contains("FISHPLATE_RING_SLOTS"),
        "{error}"
    );
}

#[test]
fn many_peers_are_all_heard() {
    let ranks = 12;
    let fd = Segment::create(ranks).unwrap();
    let shape = Shape::new(8, 8 << 10).unwrap();
    let mut all: Vec<Shm> = (0..ranks)
        .map(|rank| {
            Shm::attach(
                Segment::open(fd.try_clone().unwrap(), shape).unwrap(),
                rank,
                true,
            )
            .unwrap()
        })
        .collect();
    let mut heard = vec![0u64; ranks];
    for round in 0..5 {
        for rank in (1..ranks).rev() {
            assert_eq!(
                all[rank]
                    .put(0, [round, rank as u64, 0], 3, |body| body.fill(rank as u8))
                    .unwrap(),
                Put::Taken
            );
        }
        for _ in 0..ranks * 2 {
            take(&mut all[0], |peer, head, body| {
                assert_eq!(head, [heard[peer], peer as u64, 0]);
                assert_eq!(body, [peer as u8; 3]);
                heard[peer] += 1;
            })
            .unwrap();
        }
        assert!(
            heard[1..].iter().all(|&count| count == round + 1),
            "{heard:?}"
        );
    }
}

#[test]
fn single_copy_reads_the_peer_or_says_no() {
    let shape = Shape::new(8, 8 << 10).unwrap();
    let (_a, mut b) = pair(shape);
    let source: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
    let mut target = vec![0; source.len()];
    match b.read(0, source.as_ptr() as u64, &mut target).unwrap() {
        Bulk::Done => assert_eq!(source, target),
        Bulk::Refused => assert!(!b.can_read(0)),
    }
    let fd = Segment::create(1).unwrap();
    let mut never = Shm::attach(Segment::open(fd, shape).unwrap(), 0, false).unwrap();
    assert!(!never.can_read(0));
}

#[test]
fn a_sleeper_is_woken_by_a_packet() {
    let (mut a, mut b) = pair(Shape::new(8, 8 << 10).unwrap());
    let sleeper = std::thread::spawn(move || {
        let bell = b.bell();
        let mut seen = 0;
        while seen < 200 {
            let ordered = bell.arm();
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
