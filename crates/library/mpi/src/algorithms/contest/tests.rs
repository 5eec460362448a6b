use proptest::prelude::*;

use super::*;

const SUBJECT: Subject = Subject {
    collective: Collective::Allgather,
    length: 16,
};

/// Members each of which times its own calls.
struct Members {
    all: Vec<Contests>,
    taken: [u32; WAYS],
    compared: u32,
}

impl Members {
    fn new(count: usize) -> Members {
        Members {
            all: (0..count).map(|_| Contests::default()).collect(),
            taken: [0; WAYS],
            compared: 0,
        }
    }

    /// Makes one call on all members. `time`: the nanoseconds that a member needs by a [`Way`].
    fn call(&mut self, possible: [bool; WAYS], time: impl Fn(usize, usize) -> u64) -> Way {
        loop {
            let turns = self.all.iter_mut();
            let turns: Vec<_> = turns
                .map(|member| member.next(SUBJECT, Way::Buffer, || possible))
                .collect();
            if let Turn::Compare(_) = turns[0] {
                let mut sums = [0; WAYS];
                for turn in &turns {
                    let Turn::Compare(times) = turn else {
                        panic!("{turns:?}");
                    };
                    (0..WAYS).for_each(|way| sums[way] += times[way]);
                }
                self.compared += 1;
                let members = self.all.iter_mut();
                members.for_each(|member| member.compared(SUBJECT, sums));
                continue;
            }
            assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
            let Turn::Take { way, timed } = turns[0] else {
                unreachable!()
            };
            self.taken[way as usize] += 1;
            if timed {
                for (number, member) in self.all.iter_mut().enumerate() {
                    member.record(SUBJECT, way, time(number, way as usize));
                }
            }
            return way;
        }
    }
}

#[test]
fn only_long_moved_data_have_subjects() {
    let of = Subject::of;
    assert_eq!(of(Collective::Allreduce, 1 << 20), None);
    assert_eq!(of(Collective::Bcast, ALWAYS_SHARED - 1), None);
    assert_eq!(of(Collective::Bcast, usize::MAX), None);
    let (short, long) = (
        of(Collective::Bcast, 8 << 10),
        of(Collective::Bcast, 16 << 10),
    );
    assert!(short.is_some() && long.is_some() && short != long);
    assert_eq!(of(Collective::Bcast, 9 << 10), short);
    assert_eq!(
        of(Collective::Bcast, 1 << 30),
        of(Collective::Bcast, 1 << 40)
    );
}

#[test]
fn each_class_has_a_number_of_its_own() {
    let numbers = Subject::all().map(Subject::number);
    assert!(numbers.eq(0..Subject::COUNT));
}

#[test]
fn the_first_calls_use_the_best_kept_way_that_is_possible() {
    let kept = KeptWays::new(|subject, way| match subject == SUBJECT {
        true => [300, 100, 200][way],
        false => [300, 100, 0][way],
    });
    for (possible, best) in [
        ([true; WAYS], Way::Direct),
        ([true, false, true], Way::Messages),
    ] {
        let mut members = Members::new(2);
        members
            .all
            .iter_mut()
            .for_each(|it| it.begin_with(kept.clone()));
        let first = (0..PAUSE).all(|_| members.call(possible, |_, _| 100) == best);
        assert!(first && members.compared == 0);
    }
    // A variant without a cost may be the best.
    let other = Subject {
        collective: Collective::Bcast,
        ..SUBJECT
    };
    let mut contests = Contests::default();
    contests.begin_with(kept);
    let turn = contests.next(other, Way::Buffer, || [true; WAYS]);
    let way = Way::Buffer;
    assert_eq!(turn, Turn::Take { way, timed: false });
}

#[test]
fn the_fastest_way_wins_and_is_left_only_for_a_better_one() {
    let mut members = Members::new(3);
    for _ in 0..400 {
        members.call([true; WAYS], |_, way| [900, 2000, 300][way]);
    }
    assert_eq!(members.all[1].chosen(SUBJECT), Some(Way::Messages));
    assert_eq!(members.compared, 1);
    // A little better is not enough.
    for _ in 0..3000 {
        members.call([true; WAYS], |_, way| [295, 2000, 300][way]);
    }
    assert_eq!(members.all[1].chosen(SUBJECT), Some(Way::Messages));
    // The machine's state changes: one of the next contests shows that.
    for _ in 0..14_000 {
        members.call([true; WAYS], |_, way| [290, 100, 300][way]);
    }
    assert_eq!(members.all[1].chosen(SUBJECT), Some(Way::Direct));
}

#[test]
fn a_child_begins_with_what_has_won() {
    let mut members = Members::new(2);
    for _ in 0..400 {
        members.call([true; WAYS], |_, way| [900, 2000, 300][way]);
    }
    let mut child = members.all[0].inherited();
    let way = Way::Messages;
    let turn = child.next(SUBJECT, Way::Buffer, || [true; WAYS]);
    assert_eq!(turn, Turn::Take { way, timed: false });
}

#[test]
fn a_way_that_does_not_work_is_never_taken() {
    let mut members = Members::new(2);
    for _ in 0..5000 {
        members.call([true, false, true], |_, way| [500, 1, 400][way]);
    }
    assert_eq!(members.taken[Way::Direct as usize], 0);
    let mut members = Members::new(2);
    for _ in 0..5000 {
        members.call([true, false, false], |_, _| 500);
    }
    assert_eq!((members.compared, members.taken[0]), (0, 5000));
}

#[test]
fn one_interrupted_call_of_each_way_changes_nothing() {
    let mut members = Members::new(2);
    let calls = std::cell::Cell::new(0);
    for call in 0..400 {
        calls.set(call);
        members.call([true, false, true], |member, way| {
            let late = if member == 0 && calls.get() % 8 == 1 {
                1_000_000
            } else {
                0
            };
            [500, 0, 400][way] + late
        });
    }
    assert_eq!(members.all[0].chosen(SUBJECT), Some(Way::Messages));
}

proptest! {
    /// Whatever the times of the members are, all make equal choices, and the cost of contests
    /// is bounded.
    #[test]
    fn members_agree_and_lose_little(
        times in prop::collection::vec(prop::array::uniform3(1_000u64..4_000), 2..6),
    ) {
        let mut members = Members::new(times.len());
        let sum = |way: usize| times.iter().map(|own| own[way]).sum::<u64>();
        let least = (0..WAYS).map(sum).min().unwrap();
        let mut spent = 0;
        for _ in 0..2000 {
            spent += sum(members.call([true; WAYS], |member, way| times[member][way]) as usize);
        }
        let worst = (0..WAYS).map(sum).max().unwrap();
        // The calls before the first contest, and those of at most three contests.
        let lost = (u64::from(BEFORE) + 3 * (2 * 12)) * (worst - least);
        prop_assert!(spent <= 2000 * (least + least / MARGIN) + lost);
    }
}
