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
    let mut read: Vec<[Place; 2]> = Vec::new();
    for round in 1..20 {
        let written = [0, 1].map(|at: usize| members[at].next().unwrap());
        assert_ne!(written[0], written[1]);
        if let Some(before) = read.len().checked_sub(2) {
            assert_eq!(written, read[before]);
        }
        let [first, second] = written.map(|place| Place::of(place.word()).unwrap());
        for (reader, place) in [(0, second), (1, first)] {
            // A step that is repeated reads again.
            members[reader].read(round, place);
            members[reader].read(round, place);
        }
        read.push([second, first]);
    }
}

/// A member may be ahead: it has ended a round in which the other still reads both vectors.
#[test]
fn no_place_is_written_while_either_member_may_read_it() {
    for seed in 0..2000u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut bit = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            random >> 63 == 1
        };
        let mut members = [Places::of(0), Places::of(1)];
        // By member, its vectors: the place, if it published one.
        let mut written: [Vec<Option<Place>>; 2] = Default::default();
        // By member, the number of rounds that it has ended.
        let mut ended = [0, 0];
        let reads: Vec<[bool; 2]> = (0..60).map(|_| [bit(), bit()]).collect();
        while ended.iter().any(|&ended| ended < 50) {
            let me = usize::from(bit());
            let (other, round) = (1 - me, ended[me]);
            if round == 50 {
                continue;
            }
            if written[me].len() == round {
                let place = if bit() { members[me].next() } else { None };
                if let Some(place) = place {
                    // The vectors of rounds that a member has not ended.
                    let open = |of: usize, by: usize| written[of].iter().skip(ended[by]);
                    let mut read = [(0, 0), (0, 1), (1, 0), (1, 1)]
                        .into_iter()
                        .flat_map(|(of, by)| open(of, by).flatten());
                    assert!(
                        read.all(|other| *other != place),
                        "seed {seed}, round {round}"
                    );
                }
                written[me].push(place);
            } else if !reads[round][me] {
                ended[me] += 1;
            } else if let Some(place) = written[other].get(round) {
                if let Some(place) = place {
                    members[me].read(round as u64 + 1, *place);
                }
                ended[me] += 1;
            }
        }
    }
}

#[test]
fn vectors_in_one_direction_leave_the_places() {
    let (mut writer, mut reader) = (Places::of(1), Places::of(0));
    for round in 1..10 {
        let place = writer.next();
        assert_eq!(place.is_some(), round <= PLACES_EACH as u64);
        place
            .into_iter()
            .for_each(|place| reader.read(round, place));
    }
    // The last one that was read is not free yet.
    let taken = std::iter::from_fn(|| reader.next()).count();
    assert_eq!(taken, 2 * PLACES_EACH - 1);
}
