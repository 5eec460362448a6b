//! The rules of rounds, over memory of this process, so that Miri can check every access.

use super::*;

use crate::shm::heap::Heap;

/// The holds of all members of a buffer.
fn buffers(ranks: usize) -> Vec<CollectiveBuffer> {
    let heap = Heap::new(ranks * AREA);
    let doorbells: Vec<Doorbell> = (0..ranks).map(|_| Doorbell::default()).collect();
    let memory = Arc::new((heap, doorbells));
    let hold = |me| {
        let (heap, doorbells) = &*memory;
        // SAFETY: the areas lie one behind the other, zeroed; the buffer keeps them and the
        // doorbells.
        let member = |at| unsafe { Member::new(heap.base().add(at * AREA), &doorbells[at]) };
        let members = (0..ranks).map(member).collect();
        CollectiveBuffer::new(members, me, 1, SHORT - 1, memory.clone())
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
    let mut all = buffers(2);
    for (number, len) in [0, 1, 8, SHORT - 1, SHORT, SHORT + 1, 4096, MOST_BYTES]
        .into_iter()
        .enumerate()
    {
        let note = NOTES - 1 - number as u32;
        let mut sent = vec![number as u8 + 1; len];
        assert!(publish(&mut all[0].begin(), note, &mut sent));
        let mut round = all[1].begin();
        let published = round.published(0).unwrap();
        assert_eq!(published.note(), note);
        assert_eq!(published.bytes(len), sent);
        round.end(Wake::Member(0));
        all[0].begin().end(Wake::Nobody);
    }
}

#[test]
fn a_vector_is_published_once_a_round() {
    let mut all = buffers(2);
    assert!(all[1].begin().published(0).is_none());
    for (note, byte) in [(3, 7), (4, 8)] {
        // The second time, by a resumed step.
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
            // Member 0 says that it had seen all.
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
fn an_abandoned_round_ends_if_its_vector_was_published() {
    let mut all = buffers(2);
    all[0].abandon();
    assert_eq!(all[0].round, 0);
    assert!(publish(&mut all[0].begin(), 0, &mut []));
    all[0].abandon();
    assert_eq!(all[0].round, 1);
    assert!(publish(&mut all[0].begin(), 1, &mut []));
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
