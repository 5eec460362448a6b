use super::*;

/// The positions of vectors of these lengths, and the number of times that all pages were wanted.
fn positions(lengths: impl Iterator<Item = usize>, is_near: bool) -> (Vec<(usize, usize)>, usize) {
    let (mut positions, mut populated) = (Positions::new(), 0);
    let next = |(round, len)| (positions.next(round, len, is_near, || populated += 1), len);
    let all = (1..).zip(lengths).map(next).collect();
    (all, populated)
}

fn overlap((one, len): (usize, usize), (other, more): (usize, usize)) -> bool {
    one < other + more && other < one + len
}

#[test]
fn vectors_that_others_may_read_are_apart_and_inside() {
    let of = |at: usize| [SHORT + 1, MOST_BYTES, GAINS, 3000, 50_001, MOST_BYTES - 1][at * at % 6];
    for is_near in [true, false] {
        let (all, _) = positions((0..400).map(of), is_near);
        for (at, one) in all.iter().enumerate() {
            assert!(one.0 + one.1 <= LONG && one.0.is_multiple_of(LINE));
            let before = &all[at.saturating_sub(SLOTS)..at];
            assert!(before.iter().all(|other| !overlap(*one, *other)), "{at}");
        }
    }
}

#[test]
fn only_near_members_use_all_of_the_memory_and_only_for_many_long_vectors() {
    let reach = |len: usize, count: usize, is_near: bool| {
        let (all, populated) = positions(std::iter::repeat_n(len, count), is_near);
        let end = all.iter().map(|(at, len)| at + len).max();
        (end.unwrap_or(0), populated)
    };
    let len = 32 << 10;
    let places = (PLACES - 1) * MOST_BYTES;
    assert_eq!(reach(len, PAYS / len - 1, true), (places + len, 0));
    assert_eq!(reach(len, 2 * LONG / len, true), (LONG, 1));
    assert_eq!(reach(len, 2 * LONG / len, false), (places + len, 0));
    let short = GAINS - LINE;
    assert_eq!(reach(short, 2 * LONG / short, true), (places + short, 0));
}

#[test]
fn members_of_a_pair_write_to_the_places_that_they_have_read() {
    let mut members = [Places::of(0), Places::of(1)];
    let mut last = [None; 2];
    for round in 1..20 {
        let written = [0, 1].map(|at: usize| members[at].next(round).unwrap());
        assert_ne!(written[0], written[1]);
        if round > 1 {
            assert_eq!(last, written.map(Some));
        }
        for (reader, writer) in [(0, 1), (1, 0)] {
            let place = Place::of(written[writer].word()).unwrap();
            // A step that is repeated reads again.
            members[reader].read(round, place);
            members[reader].read(round, place);
            last[reader] = Some(place);
        }
    }
}

#[test]
fn a_place_is_free_for_one_member_at_most() {
    // Bits of a round: 1, 2: the member publishes; 4, 8: it reads what the other has published.
    for seed in 0..1000u64 {
        let mut members = [Places::of(0), Places::of(1)];
        let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for round in 1..50 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let does = |bit: u32| bits >> (60 + bit) & 1 == 1;
            let written = [0, 1].map(|at: usize| match does(at as u32) {
                true => members[at].next(round),
                false => None,
            });
            for (reader, writer) in [(0, 1), (1, 0)] {
                if let Some(place) = written[writer].filter(|_| does(2 + reader as u32)) {
                    members[reader].read(round, place);
                }
            }
            let held = members.iter().flat_map(|of| {
                let read = of.read.map(|(_, place)| place);
                of.free[..of.count].iter().copied().chain(read)
            });
            let held: Vec<Place> = held.collect();
            let distinct = |at: usize| !held[..at].contains(&held[at]);
            assert!((0..held.len()).all(distinct), "seed {seed}, round {round}");
        }
    }
}

#[test]
fn vectors_in_one_direction_leave_the_places() {
    let (mut writer, mut reader) = (Places::of(1), Places::of(0));
    for round in 1..10 {
        let place = writer.next(round);
        assert_eq!(place.is_some(), round <= PLACES_EACH as u64);
        place
            .into_iter()
            .for_each(|place| reader.read(round, place));
    }
    let taken = (10..20).filter_map(|round| reader.next(round)).count();
    assert_eq!(taken, 2 * PLACES_EACH);
}
