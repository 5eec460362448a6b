use super::*;
use WindowLock::*;

/// Three members of one window, each with a mapping of its own. `stripe`: the requested length.
fn members(stripe: u64) -> Vec<WindowMemory> {
    let layout = WindowLayout::new([100, 0, 50_000].into_iter(), true).unwrap();
    let mut made = SharedMemory::new(layout.bytes()).unwrap();
    let name = made.name().unwrap();
    let others = [(); 2].map(|()| SharedMemory::open(name, layout.bytes()).unwrap());
    made.close();
    let all = [made].into_iter().chain(others).enumerate();
    let worlds = [5, 6, 7];
    all.map(|(me, memory)| WindowMemory::new(memory, &layout, (worlds.into(), me), stripe))
        .collect()
}

#[test]
fn parts_lie_apart_and_are_the_same_memory_everywhere() {
    let all = members(0);
    for member in 0..3 {
        assert_eq!(
            all[1].part(member).as_dense().unwrap().0,
            all[1].start(member)
        );
    }
    all[0].part(2).unpack(49_990, &[7; 10]);
    let mut read = [0; 20];
    assert_eq!(all[2].part(2).pack(49_980, &mut read), 20);
    assert_eq!(read[..10], [0; 10]);
    assert_eq!(read[10..], [7; 10]);
    let tight = WindowLayout::new([100, 3].into_iter(), false).unwrap();
    assert_eq!(tight.parts[1].start, tight.parts[0].end);
    assert_eq!(tight.parts[0].start % PAGE, 0);
    assert_eq!(WindowLayout::new([usize::MAX, 1].into_iter(), true), None);
}

#[test]
fn a_range_has_the_stripes_of_its_bytes() {
    let all = members(4096);
    let one = &all[0];
    let of = |first, len| one.stripes(first, len);
    assert_eq!(of(0, 1), of(100, 3996));
    assert_eq!(of(0, 4097), of(0, 1).and(of(4096, 1)));
    assert_ne!(of(0, 1), of(4096, 1));
    assert_eq!(of(5000, 0), of(4096, 1));
    assert_eq!(of(1, 1 << 30), Stripes(u64::MAX));
    assert_eq!(
        (one.left_in_stripe(0), one.left_in_stripe(4097)),
        (4096, 4095)
    );
    // A requested length is limited, and rounded up to a power of two.
    assert_eq!(members(100)[0].left_in_stripe(0), 128);
    assert_eq!(members(1)[0].left_in_stripe(0), 64);
}

#[test]
fn only_one_holds_a_stripe() {
    let all = members(64);
    let times = 20_000;
    std::thread::scope(|scope| {
        for one in &all {
            scope.spawn(move || {
                for turn in 0..times {
                    // The two integers of each second iteration lie in different stripes.
                    let stripes = one.stripes(1024, 8).and(one.stripes(4096 * (turn % 2), 8));
                    let _held = one.hold(2, stripes).unwrap();
                    let mut word = [0; 8];
                    one.part(2).pack(1024, &mut word);
                    let next = u64::from_ne_bytes(word) + 1;
                    one.part(2).unpack(1024, &next.to_ne_bytes());
                }
            });
        }
    });
    let mut word = [0; 8];
    all[0].part(2).pack(1024, &mut word);
    assert_eq!(u64::from_ne_bytes(word), 3 * times as u64);
}

#[test]
fn a_window_lock_is_granted_in_the_order_of_requests() {
    let all = members(0);
    let one = &all[0];
    let requests = [Shared, Shared, Exclusive, Shared].map(|kind| one.request(2, kind));
    let granted = |at: usize| one.is_granted(&requests[at]);
    // A shared lock lets the next shared request in; the exclusive request waits for both.
    assert!(!granted(1) && granted(0) && granted(1) && !granted(2) && !granted(3));
    one.release(2, Shared);
    assert!(!granted(2));
    one.release(2, Shared);
    assert!(granted(2) && !granted(3));
    one.release(2, Exclusive);
    assert!(granted(3));
    // The parts of other members have locks of their own.
    assert!(one.is_granted(&one.request(1, Exclusive)));
}

#[test]
fn those_who_wait_for_a_window_lock_are_known() {
    let all = members(0);
    all[1].begin_wait(2);
    all[2].begin_wait(0);
    let waiting = |target| all[0].waiting(target).collect::<Vec<_>>();
    assert_eq!(
        (waiting(2), waiting(0), waiting(1)),
        (vec![1], vec![2], vec![])
    );
    all[1].end_wait(2);
    assert!(waiting(2).is_empty());
}

#[test]
fn the_end_of_a_member_that_holds_a_stripe_is_noticed() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let process = child.id();
    assert!(!has_ended(process) && !has_ended(std::process::id()));
    child.wait().unwrap();
    assert!(has_ended(process));
    let all = members(64);
    all[0].member(0).process.store(process, Ordering::Relaxed);
    // The stripe stays locked, for requests of a set and of one lock.
    std::mem::forget(all[0].hold_one(2, 70).unwrap());
    let gone = |error: Error| matches!(error.fault(), Fault::Gone { peer: 5 });
    assert!(all[1].hold(2, all[1].stripes(60, 8)).is_err_and(gone));
    assert!(all[1].hold_one(2, 127).is_err_and(gone));
    drop(all[1].hold_one(2, 63).unwrap());
    // In another PID namespace the number has no meaning.
    all[0].member(0).space.store(1, Ordering::Relaxed);
    assert!(!all[1].has_ended(1) && !all[1].has_ended(77));
}
