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
