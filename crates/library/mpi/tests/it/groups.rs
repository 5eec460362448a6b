//! Operations on groups, compared with simple ones on lists.

use mpi::group::{Comparison, EMPTY, Groups, Members};
use mpi::{Class, PROC_NULL, UNDEFINED};
use proptest::prelude::*;

/// Distinct ranks of a job of 60 in any order; sometimes the first ones in order.
fn list() -> impl Strategy<Value = Vec<u32>> {
    let some = Just((0..60).collect::<Vec<u32>>()).prop_shuffle();
    let some = (some, 0..40_usize).prop_map(|(ranks, length)| ranks[..length].to_vec());
    let first = (0..40_u32).prop_map(|length| (0..length).collect());
    prop_oneof![3 => some, 1 => first]
}

fn listed(members: &Members) -> Vec<u32> {
    members.iter().map(|rank| rank as u32).collect()
}

proptest! {
    #[test]
    fn members_and_places_are_each_others_inverse(ranks in list()) {
        let members = Members::from(ranks.clone());
        prop_assert_eq!(members.len(), ranks.len());
        for (place, &rank) in ranks.iter().enumerate() {
            prop_assert_eq!(members.world(place), Some(rank as usize));
            prop_assert_eq!(members.rank_of(rank as usize), Some(place));
        }
        prop_assert_eq!(members.world(ranks.len()), None);
        prop_assert_eq!(members.rank_of(60), None);
    }

    #[test]
    fn set_operations_keep_the_order_of_the_standard(a in list(), b in list()) {
        let (one, other) = (Members::from(a.clone()), Members::from(b.clone()));
        let both: Vec<u32> = a.iter().copied().filter(|rank| b.contains(rank)).collect();
        let first: Vec<u32> = a.iter().copied().filter(|rank| !b.contains(rank)).collect();
        let second = b.iter().copied().filter(|rank| !a.contains(rank));
        prop_assert_eq!(listed(&one.union(&other)), a.iter().copied().chain(second).collect::<Vec<_>>());
        prop_assert_eq!(listed(&one.intersection(&other)), both);
        prop_assert_eq!(listed(&one.difference(&other)), first);
    }

    #[test]
    fn comparison_sees_order_and_members(a in list(), b in list()) {
        let sorted = |list: &[u32]| { let mut list = list.to_vec(); list.sort(); list };
        let expected = match (a == b, sorted(&a) == sorted(&b)) {
            (true, _) => Comparison::Ident,
            (_, true) => Comparison::Similar,
            _ => Comparison::Unequal,
        };
        prop_assert_eq!(Members::from(a.clone()).compare(&Members::from(b)), expected);
        let mut turned = a.clone();
        turned.reverse();
        let expected = if a.len() < 2 { Comparison::Ident } else { Comparison::Similar };
        prop_assert_eq!(Members::from(a).compare(&Members::from(turned)), expected);
    }

    #[test]
    fn translation_finds_the_same_rank(a in list(), b in list(), times in 1..30_usize) {
        let (one, other) = (Members::from(a.clone()), Members::from(b.clone()));
        let mut ranks: Vec<i32> = (0..a.len() as i32).collect::<Vec<_>>().repeat(times);
        ranks.push(PROC_NULL);
        let place = |&rank: &i32| match rank {
            PROC_NULL => PROC_NULL,
            _ => b.iter().position(|&of| of == a[rank as usize]).map_or(UNDEFINED, |place| place as i32),
        };
        let expected: Vec<i32> = ranks.iter().map(place).collect();
        prop_assert_eq!(one.translate(&ranks, &other).unwrap(), expected);
    }

    #[test]
    fn inclusion_and_exclusion_share_the_group_out(a in list(), picks in list()) {
        let members = Members::from(a.clone());
        let picks: Vec<i32> = picks.into_iter().map(|pick| pick as i32).collect();
        if picks.iter().any(|&pick| pick as usize >= a.len()) {
            prop_assert_eq!(members.incl(&picks).unwrap_err().class, Class::RANK);
            prop_assert_eq!(members.excl(&picks).unwrap_err().class, Class::RANK);
        } else {
            let chosen: Vec<u32> = picks.iter().map(|&pick| a[pick as usize]).collect();
            let left: Vec<u32> = a.iter().copied().filter(|rank| !chosen.contains(rank)).collect();
            prop_assert_eq!(listed(&members.incl(&picks).unwrap()), chosen);
            prop_assert_eq!(listed(&members.excl(&picks).unwrap()), left);
        }
    }

    #[test]
    fn a_range_is_the_ranks_it_stands_for(size in 1..50_i32, first in 0..50_i32, last in 0..50_i32, stride in -7..8_i32) {
        let members = Members::from((0..size as u32).map(|rank| rank + 3).collect::<Vec<_>>());
        let leads = stride != 0 && (last - first) * stride >= 0;
        let ranks: Vec<i32> = match leads {
            true => (0..=(last - first) / stride).map(|step| first + step * stride).collect(),
            false => Vec::new(),
        };
        let range = [[first, last, stride]];
        match members.range_incl(&range) {
            Ok(picked) => {
                prop_assert!(leads);
                prop_assert_eq!(&picked, &members.incl(&ranks).unwrap());
                prop_assert_eq!(members.range_excl(&range).unwrap(), members.excl(&ranks).unwrap());
            }
            Err(error) => {
                let outside = ranks.iter().any(|&rank| rank >= size);
                prop_assert_eq!(error.class, if leads { Class::RANK } else { Class::ARG });
                prop_assert!(!leads || outside);
            }
        }
    }
}

#[test]
fn no_member_is_named_twice() {
    let members = Members::All(10);
    assert_eq!(members.incl(&[1, 2, 1]).unwrap_err().class, Class::RANK);
    assert_eq!(members.excl(&[1, 2, 1]).unwrap_err().class, Class::RANK);
    assert_eq!(
        members
            .range_incl(&[[0, 4, 2], [4, 9, 5]])
            .unwrap_err()
            .class,
        Class::RANK
    );
    assert_eq!(members.incl(&[-1]).unwrap_err().class, Class::RANK);
    let wild = [[0, 9, 1], [i32::MIN, i32::MAX, 1]];
    assert_eq!(members.range_incl(&wild).unwrap_err().class, Class::RANK);
}

#[test]
fn handles_know_null_empty_and_freed() {
    let mut groups = Groups::new(4);
    let five = groups.add(Members::All(5)).unwrap();
    assert_eq!(groups.get(five).unwrap().rank, Some(4));
    let none = groups.incl(five, &[]).unwrap();
    assert_eq!(none, EMPTY);
    assert_eq!(groups.compare(five, EMPTY).unwrap(), Comparison::Unequal);
    groups.free(EMPTY).unwrap();
    assert_eq!(groups.get(EMPTY).unwrap().rank, None);
    let turned = groups.incl(five, &[4, 3, 2, 1, 0]).unwrap();
    assert_eq!(groups.get(turned).unwrap().rank, Some(0));
    assert_eq!(groups.compare(five, turned).unwrap(), Comparison::Similar);
    assert_eq!(
        groups.translate(five, &[0, PROC_NULL], turned).unwrap(),
        [4, PROC_NULL]
    );
    groups.free(five).unwrap();
    for handle in [five, mpi::group::NULL, 0] {
        assert_eq!(groups.free(handle).unwrap_err().class, Class::GROUP);
        assert_eq!(
            groups.union(turned, handle).unwrap_err().class,
            Class::GROUP
        );
    }
}

/// More answers than there are handles: programs forget to free what they ask for at each access.
#[test]
fn the_group_of_an_object_has_one_handle() {
    let mut groups = Groups::new(1);
    let object = Members::from(vec![3, 1, 0]);
    let handle = groups.of_object(&object).unwrap();
    let made = groups.add(object.clone()).unwrap();
    assert_ne!(made, handle);
    for _ in 0..1 << 21 {
        assert_eq!(groups.of_object(&object).unwrap(), handle);
    }
    let equal = groups.of_object(&Members::from(vec![3, 1, 0])).unwrap();
    assert_ne!(equal, handle);
    assert_eq!(groups.compare(equal, handle).unwrap(), Comparison::Ident);
    for _ in 0..=1 << 21 {
        assert_eq!(groups.get(handle).unwrap().rank, Some(1));
        groups.free(handle).unwrap();
    }
    assert_eq!(groups.free(handle).unwrap_err().class, Class::GROUP);
    assert_eq!(groups.get(made).unwrap().rank, Some(1));
    let again = groups.of_object(&object).unwrap();
    assert_ne!(again, handle);
    assert_eq!(groups.of_object(&Members::All(0)).unwrap(), EMPTY);
    groups.free(again).unwrap();
}

/// A hundred thousand ranks: an operation in quadratic time would not end.
#[test]
fn large_groups_are_no_trouble() {
    let many: Vec<u32> = (0..200_000).rev().collect();
    let (all, even) = (
        Members::from(many.clone()),
        Members::from(many.into_iter().step_by(2).collect::<Vec<_>>()),
    );
    assert_eq!(all.union(&even), all);
    assert_eq!(all.difference(&even).len(), 100_000);
    assert_eq!(all.intersection(&even), even);
    assert_eq!(all.compare(&Members::All(200_000)), Comparison::Similar);
    let ranks: Vec<i32> = (0..100_000).collect();
    assert_eq!(even.translate(&ranks, &all).unwrap()[99_999], 199_998);
    assert_eq!(all.range_excl(&[[1, 199_999, 2]]).unwrap(), even);
}
