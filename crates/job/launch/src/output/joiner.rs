//! Beginnings of lines without a prefix, which wait a short time for the rest of their line.
//!
//! A program may write a line in several pieces, and another rank may write between them. The
//! beginning of a line waits here until its rest arrives, and then both are passed on at once. The
//! wait is bounded, because the beginning may be all: a prompt, or a bar that grows.
//!
//! Invariant: the bytes of each rank are passed on unchanged and in their order. This is a state
//! machine: it has no clock, and the caller gives the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The length of the longest line, in bytes, that is kept until it is complete.
pub(super) const LINE_LIMIT: usize = 64 << 10;
/// The longest time for which the beginning of a line waits.
///
/// Two writes that follow each other are microseconds apart. A rank that loses its core between
/// them, to four other processes there, has it again after 35 ms (the median; 56 ms for nine in
/// ten). A person notices delays from 100 ms on.
const WAIT: Duration = Duration::from_millis(50);
/// The most bytes of all ranks that wait. Those of one rank are limited by [`LINE_LIMIT`].
const WAITING_LIMIT: usize = 4 << 20;

/// The beginning of a line.
struct Beginning {
    bytes: Vec<u8>,
    /// The time at which it is passed on, complete or not.
    due: Instant,
}

/// The beginnings of lines of all ranks for one output stream.
#[derive(Default)]
pub(super) struct LineJoiner {
    /// The ranks with a beginning, which is never empty.
    waiting: BTreeMap<usize, Beginning>,
    waiting_bytes: usize,
}

impl LineJoiner {
    /// Takes bytes that a rank has written until `now`. Adds what need not wait to `out`.
    pub(super) fn add(&mut self, rank: usize, bytes: &[u8], now: Instant, out: &mut Vec<u8>) {
        let newline = bytes.iter().rposition(|&byte| byte == b'\n');
        let (lines, beginning) = bytes.split_at(newline.map_or(0, |at| at + 1));
        if !lines.is_empty() {
            self.end(rank, out);
            out.extend_from_slice(lines);
        }
        if beginning.is_empty() {
            return;
        }
        let waiting = self.waiting.entry(rank).or_insert_with(|| Beginning {
            bytes: Vec::new(),
            due: now + WAIT,
        });
        waiting.bytes.extend_from_slice(beginning);
        self.waiting_bytes += beginning.len();
        if waiting.bytes.len() > LINE_LIMIT {
            self.end(rank, out);
        }
        if self.waiting_bytes > WAITING_LIMIT {
            self.end_all(out);
        }
    }

    /// The time at which a beginning is due. `None`: nothing waits.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.due).min()
    }

    /// Adds the beginnings that are due at `now` to `out`, the earliest first.
    pub(super) fn check(&mut self, now: Instant, out: &mut Vec<u8>) {
        let due = self.waiting.iter().filter(|(_, it)| it.due <= now);
        let mut due: Vec<(Instant, usize)> = due.map(|(&rank, it)| (it.due, rank)).collect();
        due.sort_unstable();
        due.into_iter().for_each(|(_, rank)| self.end(rank, out));
    }

    /// Adds the beginning of a rank to `out`: more cannot come, or it has waited long enough.
    pub(super) fn end(&mut self, rank: usize, out: &mut Vec<u8>) {
        if let Some(waiting) = self.waiting.remove(&rank) {
            self.waiting_bytes -= waiting.bytes.len();
            out.extend_from_slice(&waiting.bytes);
        }
    }

    /// Adds the beginnings of all ranks to `out`.
    pub(super) fn end_all(&mut self, out: &mut Vec<u8>) {
        self.waiting_bytes = 0;
        let all = std::mem::take(&mut self.waiting).into_values();
        all.for_each(|waiting| out.extend_from_slice(&waiting.bytes));
    }

    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A joiner, its output, and a clock that only the test moves.
    struct Bench {
        joiner: LineJoiner,
        now: Instant,
        out: Vec<u8>,
    }

    impl Bench {
        fn new() -> Self {
            Bench {
                joiner: LineJoiner::default(),
                now: Instant::now(),
                out: Vec::new(),
            }
        }

        fn add(&mut self, rank: usize, text: &str) {
            let bytes = text.as_bytes();
            self.joiner.add(rank, bytes, self.now, &mut self.out);
        }

        fn pass(&mut self, millis: u64) {
            self.now += Duration::from_millis(millis);
            self.joiner.check(self.now, &mut self.out);
        }

        /// The output since the last call.
        fn seen(&mut self) -> String {
            String::from_utf8(std::mem::take(&mut self.out)).unwrap()
        }
    }

    #[test]
    fn pieces_of_a_line_are_joined_although_another_rank_writes_between_them() {
        let mut bench = Bench::new();
        bench.add(0, "abc");
        bench.pass(5);
        bench.add(1, "xyz\n");
        assert_eq!(bench.seen(), "xyz\n");
        bench.pass(5);
        bench.add(0, "de");
        bench.pass(5);
        bench.add(0, "f\nnext\nlast");
        assert_eq!(bench.seen(), "abcdef\nnext\n");
        bench.add(0, " line\n");
        assert_eq!(bench.seen(), "last line\n");
        assert_eq!(bench.joiner.next(), None);
    }

    #[test]
    fn whole_lines_do_not_wait() {
        let mut bench = Bench::new();
        bench.add(0, "a\nb\n");
        assert!(bench.joiner.is_empty() && bench.joiner.next().is_none());
        assert_eq!(bench.seen(), "a\nb\n");
    }

    /// The time counts from the first piece, so that pieces which follow closely do not delay it.
    #[test]
    fn a_prompt_is_seen_after_the_wait() {
        let mut bench = Bench::new();
        bench.add(3, "Enter ");
        assert_eq!(bench.joiner.next(), Some(bench.now + WAIT));
        bench.pass(49);
        bench.add(3, "n: ");
        assert_eq!(bench.seen(), "");
        bench.pass(1);
        assert_eq!(bench.seen(), "Enter n: ");
        assert_eq!(bench.joiner.next(), None);
        // The next bytes are the beginning of a line again, with a time of its own.
        bench.add(3, "...");
        bench.pass(49);
        assert_eq!(bench.seen(), "");
        bench.pass(1);
        assert_eq!(bench.seen(), "...");
    }

    #[test]
    fn beginnings_that_are_due_come_in_the_order_of_their_times() {
        let mut bench = Bench::new();
        bench.add(7, "first ");
        bench.pass(1);
        bench.add(2, "second ");
        bench.pass(1);
        bench.add(1, "third");
        bench.pass(49);
        assert_eq!(bench.seen(), "first second ");
        bench.pass(1);
        assert_eq!(bench.seen(), "third");
    }

    #[test]
    fn the_end_of_a_rank_passes_on_its_beginning_and_no_other() {
        let mut bench = Bench::new();
        bench.add(0, "of 0");
        bench.add(1, "of 1");
        bench.joiner.end(0, &mut bench.out);
        assert_eq!(bench.seen(), "of 0");
        bench.joiner.end(0, &mut bench.out);
        assert_eq!(bench.seen(), "");
        bench.joiner.end_all(&mut bench.out);
        assert_eq!(bench.seen(), "of 1");
        assert!(bench.joiner.is_empty());
    }

    #[test]
    fn the_bytes_that_wait_are_bounded() {
        let mut bench = Bench::new();
        let long = "x".repeat(LINE_LIMIT);
        bench.add(0, &long);
        assert_eq!(bench.seen(), "");
        bench.add(0, "y");
        assert!(bench.seen() == format!("{long}y"));
        let ranks = WAITING_LIMIT / LINE_LIMIT;
        (0..ranks).for_each(|rank| bench.add(rank, &long));
        assert_eq!(bench.seen(), "");
        bench.add(ranks, "z");
        assert_eq!(bench.seen().len(), WAITING_LIMIT + 1);
        assert!(bench.joiner.is_empty() && bench.joiner.waiting_bytes == 0);
    }

    proptest! {
        /// Each rank's bytes arrive unchanged, in their order, and no later than promised.
        #[test]
        fn nothing_is_lost_and_nothing_is_late(
            steps in prop::collection::vec((0usize..3, "[a-z\n]{0,6}", 0u64..30), 0..60),
        ) {
            let mut bench = Bench::new();
            let mut written = vec![String::new(); 3];
            for (rank, text, millis) in steps {
                // The letters of a rank are its own, so that the output shows their order.
                let own = |letter: char| match letter {
                    '\n' => '\n',
                    _ => char::from(b'A' + (letter as u8 - b'a') % 8 + 8 * rank as u8),
                };
                let text: String = text.chars().map(own).collect();
                written[rank].push_str(&text);
                bench.add(rank, &text);
                let lines: usize = written.iter().map(|text| text.matches('\n').count()).sum();
                prop_assert_eq!(bench.out.iter().filter(|&&byte| byte == b'\n').count(), lines);
                bench.pass(millis);
                prop_assert!(bench.joiner.next().is_none_or(|next| next > bench.now));
            }
            bench.pass(50);
            prop_assert!(bench.joiner.is_empty());
            let text = bench.seen();
            for (rank, written) in written.iter().enumerate() {
                let range = (b'A' + 8 * rank as u8)..(b'A' + 8 * (rank as u8 + 1));
                let mine = |text: &str| -> String {
                    text.chars().filter(|&letter| range.contains(&(letter as u8))).collect()
                };
                prop_assert_eq!(mine(&text), mine(written));
            }
        }
    }
}
