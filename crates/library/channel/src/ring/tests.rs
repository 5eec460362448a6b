//! Tests of the ring in memory of this process, so that Miri can check every access.

use super::bodies::SHORT;
use super::*;
use crate::shm::Shape;
use crate::shm::heap;

type Ends = (
    Sender<crate::shm::SharedRing>,
    Receiver<crate::shm::SharedRing>,
);

/// The sender and the receiver of a ring of this shape.
fn ends(slots: usize, arena: usize) -> Ends {
    let (sending, receiving) = heap::ring(Shape::new(slots, arena).unwrap());
    (Sender::new(sending), Receiver::new(receiving))
}

fn byte(number: u64, at: usize) -> u8 {
    (number as usize * 31 + at * 7) as u8
}

fn put(sender: &mut Sender<impl Memory>, number: u64, len: usize) -> Put {
    sender.put([number, !number, 3], len, |body| {
        for (at, to) in body.iter_mut().enumerate() {
            *to = byte(number, at);
        }
    })
}

/// Consumes the next packet, which must be the one that `put` has put with this number.
fn take(receiver: &mut Receiver<impl Memory>, number: u64, len: usize) -> Published {
    assert_eq!(receiver.next_head(), [number, !number, 3]);
    let on_report = |heard: Heard| assert_eq!(heard.ours as u64, number + 1);
    let taken = receiver.take(on_report, |head, body| {
        assert_eq!((head, body.len()), ([number, !number, 3], len));
        assert!(
            body.iter()
                .enumerate()
                .all(|(at, got)| *got == byte(number, at))
        );
    });
    taken.unwrap().1
}

/// The report that the peer has consumed this number of packets.
fn all_taken(theirs: u32) -> Heard {
    Heard {
        theirs,
        ours: 0,
        cell: None,
    }
}

/// Every length up to `most`; under Miri only some.
fn lengths(most: usize) -> impl Iterator<Item = usize> {
    let step = if cfg!(miri) { 97 } else { 1 };
    (0..=INLINE + 1)
        .chain((INLINE + 2..most).step_by(step))
        .chain([SHORT - 1, SHORT, SHORT + 1, most])
        .filter(move |&len| len <= most)
}

#[test]
fn packets_of_all_lengths_arrive_whole() {
    for (slots, arena) in [(4, 8 << 10), (16, 32 << 10)] {
        let (mut sender, mut receiver) = ends(slots, arena);
        let most = sender.memory.arenas().max_body();
        for (number, len) in lengths(most).enumerate() {
            assert!(receiver.is_empty());
            assert_ne!(put(&mut sender, number as u64, len), Put::Full);
            assert!(!receiver.is_empty());
            take(&mut receiver, number as u64, len);
        }
    }
}

#[test]
fn arenas_and_line_counts_wrap_around() {
    let (mut sender, mut receiver) = ends(8, 8 << 10);
    // Two packets in flight, of lengths that leave an awkward rest at an arena's end. There are
    // enough of them for the 16-bit counts of lines to wrap.
    let packets = if cfg!(miri) { 60 } else { 20_000 };
    let len = |number: u64| [700, 33, 1000, 65, 512][number as usize % 5];
    assert_eq!(put(&mut sender, 0, len(0)), Put::Accepted);
    for number in 1..packets {
        assert_ne!(put(&mut sender, number, len(number)), Put::Full);
        take(&mut receiver, number - 1, len(number - 1));
    }
}

#[test]
fn a_full_ring_takes_nothing_until_a_quarter_has_been_taken() {
    let (mut sender, mut receiver) = ends(8, 8 << 10);
    for number in 0..8 {
        assert_eq!(put(&mut sender, number, 4), Put::Accepted);
    }
    assert_eq!(put(&mut sender, 8, 4), Put::Full);
    assert!(!take(&mut receiver, 0, 4).0);
    assert_eq!(put(&mut sender, 8, 4), Put::Full);
    assert!(take(&mut receiver, 1, 4).0);
    assert_eq!(put(&mut sender, 8, 4), Put::AcceptedPollNow);
    assert_eq!(put(&mut sender, 9, 4), Put::Accepted);
    assert_eq!(put(&mut sender, 10, 4), Put::Full);
    for number in 2..10 {
        take(&mut receiver, number, 4);
    }
    assert!(receiver.is_empty());
}

#[test]
fn a_full_arena_takes_nothing_until_its_lines_are_free() {
    let (mut sender, mut receiver) = ends(16, 8 << 10);
    let most = sender.memory.arenas().max_body();
    for number in 0..4 {
        assert_eq!(put(&mut sender, number, most), Put::Accepted);
    }
    assert_eq!(put(&mut sender, 4, most), Put::Full);
    // A body inside a slot still fits.
    assert_eq!(put(&mut sender, 4, INLINE), Put::Accepted);
    assert!(take(&mut receiver, 0, most).0);
    assert_eq!(put(&mut sender, 5, most), Put::AcceptedPollNow);
    for (number, len) in [(1, most), (2, most), (3, most), (4, INLINE), (5, most)] {
        take(&mut receiver, number, len);
    }
}

#[test]
fn short_bodies_begin_again_once_the_peer_has_taken_all() {
    let (mut sender, mut receiver) = ends(8, 8 << 10);
    for number in 0..3u64 {
        assert_ne!(put(&mut sender, number, 100), Put::Full);
        assert_eq!(sender.places.handed_out[Which::Small as usize].offset, 128);
        take(&mut receiver, number, 100);
        // A packet of the other direction reports that everything has been consumed.
        sender.on_report(all_taken(number as u32 + 1));
    }
}

#[test]
fn impossible_packets_are_refused() {
    let (mut sender, mut receiver) = ends(8, 8 << 10);
    assert_eq!(put(&mut sender, 0, 100), Put::Accepted);
    let elsewhere = |offset: u32| {
        let (which, lines, taken) = (Which::Small, 2, 0);
        Elsewhere {
            which,
            offset,
            lines,
            taken,
            unused: 0,
        }
    };
    let mut spoil = |len: u32, offset: u32| {
        receiver.memory.slot(0).contents(|contents| {
            contents.len = len;
            elsewhere(offset).write(&mut contents.inline);
        });
        let taken = receiver.take(|_| {}, |_, _| panic!("handed on"));
        taken.map(|_| ()).unwrap_err()
    };
    assert!(matches!(spoil(u32::MAX, 0), Bad::Length(u32::MAX)));
    assert!(matches!(spoil(1025, 0), Bad::Length(1025)));
    assert!(matches!(spoil(100, 4000), Bad::Place(4000)));
    assert!(matches!(spoil(100, u32::MAX), Bad::Place(u32::MAX)));
}

#[test]
fn two_threads_exchange_packets_of_all_lengths() {
    let packets: u64 = if cfg!(miri) { 80 } else { 100_000 };
    let (mut sender, mut receiver) = ends(4, 8 << 10);
    let len = |number: u64| [0, 8, 32, 33, 500, 64, 1024, 1][(number * 5 % 8) as usize];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..packets {
                while put(&mut sender, number, len(number)) == Put::Full {
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..packets {
            while receiver.is_empty() {
                std::thread::yield_now();
            }
            take(&mut receiver, number, len(number));
        }
    });
}

/// Alternating messages use little memory, because a page costs microseconds when it is touched
/// first; long ones whose writes are slow use the whole arena in the end.
#[test]
fn the_used_part_of_the_wide_arena_grows_with_slow_long_bodies() {
    let (fast, slow) = (0, 6000);
    for (len, time, messages, pages) in [
        (3 << 10, slow, 10_000, 14..15),
        (15 << 10, fast, 10_000, 14..15),
        (16 << 10, fast, 20, 14..15),
        (16 << 10, fast, 1000, 100..120),
        (64 << 10, fast, 1000, 100..120),
        (16 << 10, slow, 100, 28..300),
        (16 << 10, slow, 10_000, 448..449),
    ] {
        let (mut sender, mut receiver) = ends(256, 2 << 20);
        sender.places.own_copy = 1;
        test_clock::set(time);
        let messages = if cfg!(miri) { 40 } else { messages };
        for number in 0..messages {
            assert_ne!(put(&mut sender, number, len), Put::Full);
            take(&mut receiver, number, len);
            sender.on_report(all_taken(number as u32 + 1));
        }
        let used = sender.places.used[Which::Wide as usize] / 4096;
        assert!(
            cfg!(miri) || pages.contains(&used),
            "{messages} of {len} bytes in {time} ns: {used} pages"
        );
    }
    test_clock::set(0);
}

/// A sender that finds no room uses more of its arena, and a slow receiver loses nothing.
#[test]
fn a_stream_uses_the_whole_arena() {
    let (mut sender, mut receiver) = ends(256, 2 << 20);
    let len = |number: u64| [2048, 5000, 40_000, 2500, 448 << 10][(number / 7) as usize % 5];
    let (mut sent, mut taken) = (0u64, 0u64);
    let messages = if cfg!(miri) { 30 } else { 3000 };
    while taken < messages {
        // Bursts, so that every state of the arena occurs.
        while sent < messages
            && sent - taken < 1 + sent % 60
            && put(&mut sender, sent, len(sent)) != Put::Full
        {
            sent += 1;
        }
        let until = taken + 1 + taken % 9;
        while taken < until.min(sent) {
            take(&mut receiver, taken, len(taken));
            taken += 1;
        }
    }
    assert!(cfg!(miri) || sender.places.unused == 0);
}

/// Both ranks' ends of the two rings of a pair with cells: each rank's sender and receiver.
fn pair_with_cells(shape: Shape) -> [Ends; 2] {
    let [(to_second, at_second), (to_first, at_first)] = heap::pair(shape);
    [
        (Sender::new(to_second), Receiver::new(at_first)),
        (Sender::new(to_first), Receiver::new(at_second)),
    ]
}

/// Consumes the rank's next packet, and passes its report to the rank's sender.
fn take_and_report((sender, receiver): &mut Ends, number: u64, len: usize) {
    let on_report = |heard| sender.on_report(heard);
    let taken = receiver.take(on_report, |head, body| {
        assert_eq!((head, body.len()), ([number, !number, 3], len));
        let mut bytes = body.iter().enumerate();
        assert!(bytes.all(|(at, got)| *got == byte(number, at)));
    });
    taken.unwrap();
}

/// The location of the body that this sender has put last.
fn last_place(sender: &Sender<crate::shm::SharedRing>) -> (Which, u32) {
    let slot = sender.memory.slot(sender.head.wrapping_sub(1));
    let elsewhere = slot.contents(|contents| Elsewhere::read(&contents.inline));
    (elsewhere.which, elsewhere.offset)
}

#[test]
fn an_answer_goes_to_the_memory_of_the_question() {
    let [mut first, mut second] = pair_with_cells(Shape::new(8, 128 << 10).unwrap());
    for (number, len) in [100, 2000, 2048, 9000, 16 << 10].into_iter().enumerate() {
        let number = number as u64;
        assert_eq!(put(&mut first.0, number, len), Put::Accepted);
        let question = last_place(&first.0);
        assert!(question.0.cells().is_some());
        take_and_report(&mut second, number, len);
        assert_eq!(put(&mut second.0, number, len), Put::Accepted);
        assert_eq!(last_place(&second.0), question);
        take_and_report(&mut first, number, len);
        // No line of an arena has been used.
        assert!(
            first
                .0
                .places
                .handed_out
                .iter()
                .all(|arena| arena.lines == 0)
        );
    }
}

/// A rank that only sends runs out of cells, and an answer brings one back.
#[test]
fn bodies_without_a_cell_go_to_the_arenas() {
    let [mut first, mut second] = pair_with_cells(Shape::new(64, 2 << 20).unwrap());
    for (len, arena) in [(100, Which::Small), (16 << 10, Which::Wide)] {
        let begin = u64::from(first.0.head);
        let mut number = begin;
        let mut cells = Vec::new();
        loop {
            assert_ne!(put(&mut first.0, number, len), Put::Full);
            number += 1;
            let (which, offset) = last_place(&first.0);
            if which == arena {
                break;
            }
            assert!(!cells.contains(&offset));
            cells.push(offset);
        }
        assert_eq!(cells.len(), 8);
        (begin..number).for_each(|number| take_and_report(&mut second, number, len));
        let answer = u64::from(second.0.head);
        assert_eq!(put(&mut second.0, answer, len), Put::Accepted);
        take_and_report(&mut first, answer, len);
        assert_eq!(put(&mut first.0, number, len), Put::Accepted);
        assert_eq!(last_place(&first.0).1, cells[7]);
        take_and_report(&mut second, number, len);
    }
    // A body longer than a cell goes to the wide arena, whatever cells the rank owns.
    let number = u64::from(second.0.head);
    assert_ne!(put(&mut second.0, number, (16 << 10) + 1), Put::Full);
    assert_eq!(last_place(&second.0).0, Which::Wide);
}

#[test]
fn messages_in_turn_are_settled_once_they_find_cells() {
    let [mut first, mut second] = pair_with_cells(Shape::new(64, 2 << 20).unwrap());
    assert!(!first.0.is_settled());
    for number in 0..if cfg!(miri) { 32 } else { 100 } {
        assert_eq!(put(&mut first.0, number, 16 << 10), Put::Accepted);
        take_and_report(&mut second, number, 16 << 10);
        assert_eq!(put(&mut second.0, number, 16 << 10), Put::Accepted);
        take_and_report(&mut first, number, 16 << 10);
    }
    assert!(first.0.is_settled() && second.0.is_settled());
    // A sender whose body found no cell is not settled any more.
    assert_ne!(put(&mut first.0, 0, 20 << 10), Put::Full);
    assert!(!first.0.is_settled());
}

#[test]
fn a_place_beyond_the_cells_is_refused() {
    let [mut first, mut second] = pair_with_cells(Shape::new(8, 128 << 10).unwrap());
    assert_eq!(put(&mut first.0, 0, 100), Put::Accepted);
    for (which, size) in [
        (Which::ShortCells, CellSize::Short),
        (Which::LongCells, CellSize::Long),
    ] {
        for offset in [size.bytes() - 99, size.bytes(), u32::MAX as usize] {
            let slot = second.1.memory.slot(0);
            slot.contents(|contents| {
                let elsewhere = Elsewhere {
                    which,
                    offset: offset as u32,
                    lines: 0,
                    taken: 0,
                    unused: 0,
                };
                elsewhere.write(&mut contents.inline);
            });
            let taken = second.1.take(|_| {}, |_, _| panic!("handed on"));
            assert!(matches!(taken.map(|_| ()), Err(Bad::Place(_))));
        }
    }
}
