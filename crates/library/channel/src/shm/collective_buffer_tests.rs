//! The rules of rounds, tested in memory of this process, so that Miri can check every access.

use super::*;

use crate::doorbell::Doorbell;
use crate::shm::heap::Heap;

/// The distance of members that are assumed to be near, or far and written to past the cache.
fn reach(near: bool) -> CacheDistance {
    CacheDistance::new(near, SHORT + 1)
}

/// The handles of all members of one buffer.
fn buffers(ranks: usize) -> Vec<CollectiveBuffer> {
    let heap = Heap::new(ranks * AREA);
    let doorbells: Vec<Doorbell> = (0..ranks).map(|_| Doorbell::default()).collect();
    let memory = Arc::new((heap, doorbells));
    let hold = |me| {
        let (heap, doorbells) = &*memory;
        // SAFETY: the areas follow one another, zeroed; the buffer keeps the areas and the
        // doorbells.
        let member = |at| unsafe { Member::new(heap.base().add(at * AREA), &doorbells[at]) };
        let members = (0..ranks).map(member).collect();
        CollectiveBuffer::new(members, me, 1, reach(true), memory.clone())
    };
    (0..ranks).map(hold).collect()
}

fn publish(round: &mut Round, note: u32, bytes: &mut [u8]) -> bool {
    // SAFETY: the slice stays until the call returns.
    let vector = unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) };
    round.publish(note, &vector, bytes.len())
}

#[test]
fn vectors_of_all_lengths_are_read_as_they_were_published() {
    let lengths = [0, 1, 8, SHORT - 1, SHORT, SHORT + 1, 4096, MOST_BYTES];
    for near in [true, false] {
        let mut all = buffers(2);
        all.iter_mut()
            .for_each(|buffer| buffer.vectors.reach = reach(near));
        for (number, len) in lengths.into_iter().enumerate() {
            let note = NOTES - 1 - number as u32;
            let mut sent: Vec<u8> = (0..len).map(|at| (at % 251 + number) as u8).collect();
            assert!(publish(&mut all[0].begin(), note, &mut sent));
            let mut round = all[1].begin();
            let published = round.published(0).unwrap();
            assert_eq!(published.note(), note);
            assert_eq!(published.bytes(len), sent);
            let at = len / 3;
            let mut copy = vec![0; len - at];
            // SAFETY: the vector stays until the copy is done.
            let target = unsafe { Buffer::dense(copy.as_mut_ptr(), copy.len()) };
            round.published(0).unwrap().copy_to(&target, at, len);
            assert_eq!(copy, sent[at..]);
            round.end(Wake::Member(0));
            all[0].begin().end(Wake::Nobody);
        }
    }
}

#[test]
fn a_vector_is_published_once_a_round() {
    let mut all = buffers(2);
    assert!(all[1].begin().published(0).is_none());
    for (note, byte) in [(3, 7), (4, 8)] {
        // The second pass repeats the step: it must change nothing.
        assert!(publish(&mut all[0].begin(), note, &mut [byte]));
    }
    let mut round = all[1].begin();
    let published = round.published(0).unwrap();
    assert_eq!((published.note(), published.bytes(1)), (3, &[7][..]));
    all[0].begin().end(Wake::Nobody);
    assert!(publish(&mut all[0].begin(), 5, &mut [9]));
    let mut round = all[1].begin();
    assert_eq!(round.published(0).unwrap().bytes(1), [7]);
}

#[test]
fn no_slot_is_written_again_before_all_members_have_ended_its_round() {
    let mut all = buffers(3);
    for number in 0..ROUNDS_AHEAD {
        assert!(publish(&mut all[0].begin(), 0, &mut [number as u8]));
        all[0].begin().end(Wake::Nobody);
    }
    assert!(!publish(&mut all[0].begin(), 0, &mut [100]));
    all[1].begin().end(Wake::Member(0));
    assert!(!publish(&mut all[0].begin(), 0, &mut [100]));
    assert_eq!(all[2].begin().published(0).unwrap().bytes(1), [0]);
    all[2].begin().end(Wake::Member(0));
    assert!(publish(&mut all[0].begin(), 0, &mut [100]));
    assert_eq!(all[2].begin().published(0).unwrap().bytes(1), [1]);
}

#[test]
fn a_member_that_has_seen_all_vectors_needs_no_look_at_the_members() {
    let mut all = buffers(3);
    for number in 0..3 * ROUNDS_AHEAD {
        for member in [1, 2] {
            assert!(publish(&mut all[member].begin(), 0, &mut []));
        }
        let mut first = all[0].begin();
        assert!(first.published(2).is_some() && first.published(1).is_some());
        assert!(publish(&mut first, 0, &mut []));
        first.end(Wake::Nobody);
        for member in [1, 2] {
            // The flag of member 0 says that it has seen all vectors.
            let mut round = all[member].begin();
            assert!(round.published(0).is_some());
            round.end(Wake::Nobody);
        }
        assert!(all.iter().all(|buffer| buffer.all_done == number));
    }
}

#[test]
fn vectors_seen_out_of_order_prove_nothing() {
    let mut all = buffers(3);
    for buffer in &mut all {
        assert!(publish(&mut buffer.begin(), 0, &mut []));
    }
    let mut round = all[1].begin();
    assert!(round.published(0).is_some() && round.published(0).is_some());
    assert!(round.published(2).is_some());
    round.end(Wake::Everybody);
    assert!(all[1].round == 1 && !all[1].has_seen_all());
}

#[test]
fn an_abandoned_round_ends_whether_its_vector_was_published_or_not() {
    let mut all = buffers(2);
    all[0].abandon();
    assert_eq!(all[0].round, 1);
    assert!(publish(&mut all[0].begin(), 0, &mut []));
    all[0].abandon();
    assert_eq!(all[0].round, 2);
    assert!(publish(&mut all[0].begin(), 1, &mut []));
    all[1].abandon();
    assert_eq!(all[1].begin().published(0).unwrap().note(), 0);
}

#[test]
fn members_in_threads_see_each_others_vectors() {
    let rounds = if cfg!(miri) { 12 } else { 2000 };
    std::thread::scope(|scope| {
        for mut buffer in buffers(3) {
            scope.spawn(move || {
                for number in 0..rounds {
                    let len = [8, SHORT + 8][number % 2];
                    let vector = |member| (number + member) as u8;
                    let mut sent = vec![vector(buffer.me); len];
                    while !publish(&mut buffer.begin(), number as u32, &mut sent) {
                        std::thread::yield_now();
                    }
                    for member in (0..3).rev() {
                        let mut round = buffer.begin();
                        while round.published(member).is_none() {
                            std::thread::yield_now();
                        }
                        let published = round.published(member).unwrap();
                        assert_eq!(published.note(), number as u32);
                        assert_eq!(published.bytes(len), vec![vector(member); len]);
                    }
                    buffer.begin().end(Wake::Nobody);
                    assert_eq!(buffer.all_done, number as u64);
                }
            });
        }
    });
}

#[test]
fn a_round_is_over_once_every_other_member_has_ended_it() {
    let mut all = buffers(3);
    // No round has begun yet.
    assert!(all[0].is_over() && all[0].may_go_on());
    for round in 1..=2 * ROUNDS_AHEAD {
        assert!(publish(&mut all[0].begin(), 0, &mut [1]));
        all[0].begin().end(Wake::Nobody);
        assert!(!all[0].is_over() && !all[0].may_go_on());
        all[1].begin().end(Wake::Member(0));
        // The event that was missing has happened, but member 2 has not ended the round yet.
        assert!(all[0].may_go_on());
        assert!(!all[0].is_over());
        assert_eq!(all[0].missing, Missing::End(2, round));
        assert!(!all[0].may_go_on());
        all[2].begin().end(Wake::Member(0));
        assert!(all[0].may_go_on() && all[0].is_over());
        // The members that ended the round last know at once that it is over.
        assert!(all[1].is_over() && all[2].is_over());
    }
}

#[test]
fn a_member_that_is_ahead_has_ended_the_round_too() {
    let mut all = buffers(2);
    for _ in 0..ROUNDS_AHEAD {
        all[1].begin().end(Wake::Nobody);
    }
    all[0].begin().end(Wake::Nobody);
    assert!(all[0].is_over());
    assert!(!all[1].is_over());
}

#[test]
fn a_step_may_go_on_once_the_vector_has_come_that_it_missed() {
    let mut all = buffers(3);
    assert!(all[0].begin().published(2).is_none());
    assert_eq!(all[0].missing, Missing::Vector(2));
    assert!(publish(&mut all[1].begin(), 0, &mut [1]));
    assert!(!all[0].may_go_on(), "another member's vector was missing");
    assert!(publish(&mut all[2].begin(), 0, &mut [1]));
    assert!(all[0].may_go_on());
    all[0].begin().end(Wake::Nobody);
    // In the next round the flag of the last round is ignored.
    assert!(all[0].begin().published(2).is_none());
    assert!(!all[0].may_go_on());
    all[2].begin().end(Wake::Nobody);
    assert!(publish(&mut all[2].begin(), 0, &mut [2]));
    assert!(all[0].may_go_on());
}

/// True if the member is found gone within [`LOOKS`] polls.
fn finds_gone(buffer: &mut CollectiveBuffer, member: usize) -> bool {
    (0..LOOKS).any(|_| {
        let is_missed = buffer.begin().published(member).is_none();
        is_missed && buffer.gone() == Some(member)
    })
}

#[test]
fn a_member_that_ends_a_round_without_a_vector_is_found_gone() {
    let mut all = buffers(3);
    assert!(!finds_gone(&mut all[0], 1));
    // A member that has published is not gone, though it has ended the round.
    assert!(publish(&mut all[1].begin(), 0, &mut [1]));
    all[1].begin().end(Wake::Nobody);
    assert!(!finds_gone(&mut all[0], 1));
    assert!(!finds_gone(&mut all[0], 2));
    assert!((0..LOOKS).all(|_| !all[0].may_go_on()));
    all[2].begin().end(Wake::Nobody);
    // A repeated step finds the same.
    assert!((0..LOOKS).any(|_| all[0].may_go_on()));
    assert!(all[0].begin().published(2).is_none());
    assert_eq!(all[0].gone(), Some(2));
    all[0].begin().end(Wake::Nobody);
    // In the next round the member is not gone yet.
    assert!(!finds_gone(&mut all[0], 2));
}

#[test]
fn a_step_without_a_slot_may_go_on_once_the_slowest_member_has_ended_its_round() {
    let mut all = buffers(3);
    for _ in 0..ROUNDS_AHEAD {
        assert!(publish(&mut all[0].begin(), 0, &mut [1]));
        all[0].begin().end(Wake::Nobody);
        all[1].begin().end(Wake::Nobody);
    }
    assert!(!publish(&mut all[0].begin(), 0, &mut [1]));
    assert_eq!(all[0].missing, Missing::End(2, 1));
    assert!(!all[0].may_go_on());
    all[2].begin().end(Wake::Member(0));
    assert!(all[0].may_go_on());
    assert!(publish(&mut all[0].begin(), 0, &mut [1]));
}

/// The byte that fills a member's vector in a round.
fn byte(member: usize, round: u64) -> u8 {
    (member as u64 * 100 + round) as u8
}

/// The lengths of the vectors of successive rounds.
fn lengths(round: u64) -> usize {
    let all = [MOST_BYTES, SHORT + 1, 3000, MOST_BYTES - 64, 70_000];
    match cfg!(miri) {
        true => SHORT + 1,
        false => all[round as usize * 7 / 3 % all.len()],
    }
}

#[test]
fn a_member_ahead_overwrites_no_long_vector_that_others_may_read() {
    for lengths in [|_| if cfg!(miri) { SHORT + 1 } else { MOST_BYTES }, lengths] {
        let mut all = buffers(3);
        // Member 1 is as far ahead of member 2 as allowed, until the memory is used again.
        for round in 1..=40 {
            for member in [0, 1] {
                let mut sent = vec![byte(member, round); lengths(round)];
                assert!(publish(&mut all[member].begin(), 0, &mut sent));
                all[member].begin().end(Wake::Nobody);
            }
            if round < ROUNDS_AHEAD {
                continue;
            }
            assert!(!publish(&mut all[1].begin(), 0, &mut [0xff; SHORT + 1]));
            let behind = round + 1 - ROUNDS_AHEAD;
            let len = lengths(behind);
            for member in [0, 1] {
                let mut reader = all[2].begin();
                let published = reader.published(member).unwrap();
                assert_eq!(published.bytes(len), vec![byte(member, behind); len]);
            }
            all[2].begin().end(Wake::Everybody);
        }
    }
}

#[test]
fn a_vector_of_several_buffers_is_filled_once_and_only_where_nobody_reads() {
    let mut all = buffers(2);
    let len = |round: u64| [3, SHORT + 5][round as usize % 2];
    let in_order = |buffer: &mut CollectiveBuffer, note, len: usize, byte: u8| {
        let mut bytes = vec![byte; len];
        let (first, second) = bytes.split_at_mut(len / 2);
        // SAFETY: both slices stay until the call returns.
        let parts =
            [first, second].map(|part| unsafe { Buffer::dense(part.as_mut_ptr(), part.len()) });
        buffer
            .begin()
            .publish_in_order(note, parts.into_iter(), len)
    };
    for round in 1..=ROUNDS_AHEAD {
        assert!(in_order(&mut all[0], 9, len(round), round as u8));
        // The second time the step is repeated, and must not fill again.
        assert!(in_order(&mut all[0], 9, len(round), 0xff));
        all[0].begin().end(Wake::Nobody);
    }
    // Member 1 may read the last vector of this slot.
    assert!(!in_order(&mut all[0], 9, 3, 0xff));
    for round in 1..=ROUNDS_AHEAD {
        let mut reader = all[1].begin();
        let published = reader.published(0).unwrap();
        assert_eq!(published.note(), 9);
        assert_eq!(published.bytes(len(round)), vec![round as u8; len(round)]);
        reader.end(Wake::Nobody);
    }
    // A vector without bytes is only a note.
    assert!(in_order(&mut all[0], 7, 0, 0));
    assert_eq!(all[1].begin().published(0).unwrap().note(), 7);
}

#[test]
fn a_measurement_reads_the_end_of_another_member() {
    let mut all = buffers(2);
    let measure = |buffer: &mut CollectiveBuffer| {
        (0..100).for_each(|_| buffer.measure());
        buffer.latest_end.get()
    };
    for round in 1..=ROUNDS_AHEAD {
        all[0].begin().end(Wake::Nobody);
        // The own end says nothing, and no search for a slot forgets that.
        assert!(all[0].has_slot(round));
        assert_eq!(measure(&mut all[0]), round - 1);
        all[1].begin().end(Wake::Nobody);
        assert_eq!(measure(&mut all[0]), round);
    }
}

#[test]
fn members_in_threads_use_each_others_memory_until_all_have_ended() {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    const MEMBERS: usize = 3;
    let rounds = if cfg!(miri) { 8 } else { 1500 };
    // Memory outside the buffer, as used by members that copy directly.
    let words: [AtomicU64; MEMBERS] = Default::default();
    std::thread::scope(|scope| {
        for mut buffer in buffers(MEMBERS) {
            let words = &words;
            scope.spawn(move || {
                for number in 1..=rounds {
                    let ours = &words[buffer.me];
                    ours.store(number, Relaxed);
                    while !publish(&mut buffer.begin(), 0, &mut []) {
                        std::thread::yield_now();
                    }
                    for (member, word) in words.iter().enumerate() {
                        while buffer.begin().published(member).is_none() {
                            std::thread::yield_now();
                        }
                        assert_eq!(word.load(Relaxed), number, "of member {member}");
                    }
                    buffer.begin().end(Wake::Everybody);
                    while !buffer.is_over() {
                        while !buffer.may_go_on() {
                            std::thread::yield_now();
                        }
                    }
                    ours.store(u64::MAX, Relaxed);
                }
            });
        }
    });
}
