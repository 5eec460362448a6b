//! TCP alone: two ends and a network that loses, delays and reorders segments.

use std::collections::VecDeque;

use ipoib::frame::Head;
use ipoib::tcp::Connection;
use proptest::prelude::*;

const PAYLOAD: usize = 100;
const WINDOW: usize = 1000;

/// One direction of a network. A number decides the fate of each segment: 0 loses it, 1 makes it
/// overtake the others, and all other numbers deliver it in order.
struct Pipe {
    on_way: VecDeque<(Head, Vec<u8>)>,
    fates: Vec<u8>,
    sent: usize,
}

impl Pipe {
    fn new(fates: &[u8]) -> Pipe {
        Pipe {
            on_way: VecDeque::new(),
            fates: fates.to_vec(),
            sent: 0,
        }
    }

    fn put(&mut self, head: Head, payload: Vec<u8>) {
        let fate = self.fates.get(self.sent).copied().unwrap_or(u8::MAX);
        self.sent += 1;
        match fate {
            0 => {}
            1 => self.on_way.push_front((head, payload)),
            _ => self.on_way.push_back((head, payload)),
        }
    }
}

proptest! {
    #[test]
    fn all_bytes_come_once_and_in_order(
        len in 1usize..20_000,
        fates in prop::collection::vec(0u8..8, 0..300),
        answers in prop::collection::vec(0u8..8, 0..300),
        reads in 1usize..2000,
        nodelay in any::<bool>(),
    ) {
        let bytes: Vec<u8> = (0..len).map(|place| ((place * 31) >> 3) as u8).collect();
        let mut ends = [0, 1].map(|_| Connection::new(PAYLOAD, WINDOW, nodelay));
        let mut pipes = [Pipe::new(&fates), Pipe::new(&answers)];
        let (mut written, mut read, mut now) = (0, Vec::<u8>::new(), 0);
        let mut quiet = 0;
        while read.len() < len {
            written += ends[0].write(&bytes[written..]);
            let mut moved = false;
            for (end, pipe) in ends.iter_mut().zip(&mut pipes) {
                while let Some(segment) = end.segment(now) {
                    prop_assert!(segment.payload.len() <= PAYLOAD);
                    pipe.put(segment.head, segment.payload);
                    moved = true;
                }
                if let Some(head) = end.acknowledgement(true) {
                    pipe.put(head, Vec::new());
                    moved = true;
                }
            }
            // No more than the window is unread, and only a few windows are in flight.
            let on_way: usize = pipes[0].on_way.iter().map(|(_, payload)| payload.len()).sum();
            prop_assert!(ends[1].readable() <= WINDOW && on_way <= 4 * WINDOW);
            for (from, to) in [(0, 1), (1, 0)] {
                if let Some((head, payload)) = pipes[from].on_way.pop_front() {
                    ends[to].take(head, &payload, now);
                    moved = true;
                }
            }
            let mut buffer = vec![0; reads];
            let count = ends[1].read(&mut buffer);
            read.extend(&buffer[..count]);
            quiet = if moved || count > 0 { 0 } else { quiet + 1 };
            if quiet > 0 {
                // Only a timer can resolve this.
                now = ends[0].timer().expect("bytes are missing, and no timer runs");
                ends[0].expire(now);
                prop_assert!(quiet < 3, "it does not go on");
            }
            now += 1000;
        }
        prop_assert_eq!(read, bytes);
    }
}

/// The lengths of the segments that may be sent now.
fn sent(end: &mut Connection) -> Vec<usize> {
    std::iter::from_fn(|| end.segment(0))
        .map(|segment| segment.payload.len())
        .collect()
}

#[test]
fn a_short_segment_waits_while_others_are_in_flight() {
    let mut end = Connection::new(PAYLOAD, WINDOW, false);
    end.write(&[1; 30]);
    assert_eq!(sent(&mut end), [30], "nothing is in flight");
    end.write(&[1; 150]);
    assert_eq!(sent(&mut end), [100], "50 bytes wait");
    end.set_nodelay(true);
    assert_eq!(sent(&mut end), [50]);
}

#[test]
fn the_peer_s_window_ends_a_burst() {
    let mut end = Connection::new(PAYLOAD, WINDOW, true);
    assert_eq!(end.write(&[1; 5000]), WINDOW, "the send buffer");
    assert_eq!(sent(&mut end), [100; 10]);
    assert_eq!(end.room(), 0);
}

#[test]
fn every_second_full_segment_is_acknowledged() {
    let mut end = Connection::new(PAYLOAD, WINDOW, true);
    let mut take = |sequence| {
        let head = Head::Segment {
            sequence,
            acknowledged: 0,
            window: 1000,
            gap: false,
        };
        end.take(head, &[1; PAYLOAD], 0);
        end.acknowledgement(false).is_some()
    };
    assert_eq!(
        [0, 100, 200, 300].map(&mut take),
        [false, true, false, true]
    );
    assert!(take(600), "a gap is reported at once");
    assert!(end.acknowledgement(true).is_none(), "and only once");
}
