//! The work that is posted on one link, the prediction of its end, and what its completions show
//! about the link's bandwidth.

use super::assignment::{HORIZON, SHORTEST_PIECE};
use super::estimate::{Estimate, capacity, duration, rate};

/// The latency of a link whose device states none, in nanoseconds.
const USUAL_LATENCY: u64 = 1_000;
/// The longest latency that a link's measurement is believed, in nanoseconds.
const MOST_LATENCY: u64 = 1_000_000_000;
/// The shortest time of back-to-back completions that makes a sample, in nanoseconds: polls find
/// completions some hundred nanoseconds late.
const RUN: u64 = 10_000;
/// A sample takes at least this multiple of the time by which its completions may be found late.
const LATE_SHARE: u64 = 5;
/// The work that a link of a long latency holds, as a multiple of its round trip: less than two
/// would leave it idle between pieces.
const TRIPS: u64 = 3;
/// The longest usual time from a post to its completion that is learned where the peer's process
/// polls, in nanoseconds. Longer times are caused by computing of the process.
const MOST_ANSWER: u64 = 30_000_000;
/// The horizon divided by this number is the longest work whose whole time counts as time of an
/// answer. Of the time of longer work only the proportional part counts.
const COUNTED: u64 = 8;
/// A time shorter than the usual one lowers the usual one by their difference divided by this
/// number.
const FORGET: u64 = 8;
/// The length of a short packet, by which the home link is chosen, in bytes.
const SHORT: u64 = 1 << 10;
/// The number of posts that are kept with times of their own. Later ones are merged into the last.
const POSTS: usize = 16;

/// The properties of a link from which predictions start.
#[derive(Clone, Copy, Debug)]
pub(in crate::rdma) struct LinkTraits {
    /// The bandwidth of payload in one direction, in bytes per second. 0: unknown.
    pub bandwidth: u64,
    /// The time from the post of a short write to its arrival, in nanoseconds.
    pub latency_ns: u64,
    /// The number of the local card. Links of one card share its slot.
    pub card: usize,
    /// True if work completes only while the peer's process polls, and not by the peer's hardware.
    pub polled: bool,
}

/// Bulk work that was posted to a link at about one time.
#[derive(Clone, Copy, Default)]
struct Posts {
    first: u64,
    last: u64,
    bytes: u64,
    /// True if earlier work had not completed at the time of the post.
    is_behind: bool,
}

/// The state of one link by which the policies choose: its bandwidth, its latency and its posted
/// work.
#[derive(Clone)]
pub(super) struct LinkState {
    pub estimate: Estimate,
    pub latency: u64,
    /// The shortest time from a post to its completion that was observed, in nanoseconds. If it
    /// exceeds the horizon, it is a latency that the device does not report.
    trip: Option<u64>,
    /// True if requests complete only while the peer's process polls.
    polled: bool,
    /// The usual time from a post on the idle link to its completion, in nanoseconds, where the
    /// peer's process polls. It contains the time in which that process has no processor.
    answer: u64,
    /// The bandwidth that the device states, in bytes per second.
    pub stated: u64,
    /// The time from the post of a packet of [`SHORT`] bytes to its arrival, by the attributes.
    pub short_arrival: u64,
    /// The position in [`Links::slots`](super::links::Links::slots) of the card's slot that the
    /// link shares with others. `None`: it shares none.
    pub slot: Option<usize>,
    /// The predicted time at which the posted packets have left, in nanoseconds.
    pub packets_until: u64,
    /// The predicted time at which the posted bulk work has left, in nanoseconds.
    bulk_until: u64,
    /// The number of bulk bytes that are posted to the link and not complete.
    outstanding: u64,
    /// The time of the latest bulk post to the link, in nanoseconds.
    pub last_used: u64,
    posts: [Posts; POSTS],
    /// The position of the oldest entry of `posts`.
    oldest: usize,
    /// The number of entries of `posts` in use.
    used: usize,
    /// The time of the last completion, and the greatest delay with which it was found. `None`: the
    /// delay is unknown, or no more work was posted.
    previous: Option<(u64, u64)>,
    run: Run,
}

/// Consecutive completions of a link or slot that has not been idle since `start`.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    start: Option<u64>,
    bytes: u64,
}

impl Run {
    pub(super) fn restart(&mut self, start: Option<u64>) {
        *self = Run { start, bytes: 0 };
    }

    /// Adds a completion that was found at most `late` nanoseconds late. Returns the bandwidth
    /// since the start, in bytes per second, once the start is long enough ago.
    pub(super) fn add(&mut self, bytes: u64, now: u64, late: u64) -> Option<u64> {
        let start = *self.start.get_or_insert(now);
        self.bytes = self.bytes.saturating_add(bytes);
        let elapsed = now.saturating_sub(start);
        if elapsed < RUN.max(late.saturating_mul(LATE_SHARE)) {
            return None;
        }
        let sample = rate(self.bytes, elapsed);
        self.restart(Some(now));
        Some(sample)
    }
}

/// The bandwidth that a completion indicates, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    Exactly(u64),
    AtLeast(u64),
}

impl LinkState {
    pub(super) fn new(traits: &LinkTraits, bandwidth: u64) -> LinkState {
        let latency = match traits.latency_ns {
            0 => USUAL_LATENCY,
            stated => stated.min(MOST_LATENCY),
        };
        LinkState {
            estimate: Estimate::new(bandwidth),
            latency,
            trip: None,
            polled: traits.polled,
            answer: 0,
            stated: bandwidth,
            short_arrival: latency.saturating_add(duration(SHORT, bandwidth)),
            slot: None,
            packets_until: 0,
            bulk_until: 0,
            outstanding: 0,
            last_used: 0,
            posts: [Posts::default(); POSTS],
            oldest: 0,
            used: 0,
            previous: None,
            run: Run::default(),
        }
    }

    /// The time from the post of a short write to its completion, in nanoseconds.
    fn round_trip(&self) -> u64 {
        let learned = self.trip.unwrap_or(0).max(self.answer);
        match learned > HORIZON {
            true => learned.max(2 * self.latency),
            false => 2 * self.latency,
        }
    }

    /// The number of bulk bytes that are posted to the link and not complete.
    pub(super) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// The horizon: the most bulk bytes that may be posted and not complete. It limits bytes
    /// posted, and not time passed, so that a link without completions gets no more.
    pub(super) fn horizon(&self) -> u64 {
        capacity(self.estimate.pessimistic(), self.horizon_time()).max(SHORTEST_PIECE)
    }

    /// The time for which the link may be given work in advance, in nanoseconds.
    pub(super) fn horizon_time(&self) -> u64 {
        HORIZON.max(self.round_trip().saturating_mul(TRIPS))
    }

    /// The bulk bytes that the link may be given now, if it shares no slot.
    pub(super) fn room(&self) -> u64 {
        self.horizon().saturating_sub(self.outstanding)
    }

    /// The time at which the bulk work posted will have left. Work that is overdue is predicted to
    /// take as long again.
    pub(super) fn bulk_ready(&self, now: u64) -> u64 {
        if self.outstanding == 0 {
            return now;
        }
        let overdue = now.saturating_sub(self.bulk_until);
        let late = match overdue > self.round_trip() {
            true => overdue.min(HORIZON),
            false => 0,
        };
        self.bulk_until.max(now.saturating_add(late))
    }

    /// The time at which everything posted to the link will have left.
    pub(super) fn ready(&self, now: u64) -> u64 {
        let packets = self.packets_until.saturating_sub(now);
        self.bulk_ready(now).saturating_add(packets)
    }

    pub(super) fn posted(&mut self, bytes: u64, now: u64) {
        let is_behind = self.outstanding > 0;
        let start = match self.outstanding {
            0 => now,
            _ => self.bulk_until.max(now),
        };
        self.bulk_until = start.saturating_add(duration(bytes, self.estimate.pessimistic()));
        self.outstanding = self.outstanding.saturating_add(bytes);
        self.last_used = now;
        if self.used < POSTS {
            let place = (self.oldest + self.used) % POSTS;
            let (first, last) = (now, now);
            self.posts[place] = Posts {
                first,
                last,
                bytes,
                is_behind,
            };
            self.used += 1;
        } else {
            let newest = &mut self.posts[(self.oldest + POSTS - 1) % POSTS];
            newest.last = now;
            newest.bytes = newest.bytes.saturating_add(bytes);
        }
    }

    /// Records a completion that was found at most `late` nanoseconds late. Returns the bandwidth
    /// that follows from it.
    pub(super) fn completed(&mut self, bytes: u64, now: u64, late: Option<u64>) -> Option<Sample> {
        let posts = self.take(bytes);
        self.outstanding = self.outstanding.saturating_sub(bytes);
        let left = duration(self.outstanding, self.estimate.pessimistic());
        let until = now.saturating_add(left).saturating_sub(self.latency);
        self.bulk_until = until.max(now);
        let posts = posts?;
        let trip = now.saturating_sub(posts.last);
        if late.is_some_and(|late| late.saturating_mul(LATE_SHARE) <= trip) {
            self.trip = Some(self.trip.map_or(trip, |known| known.min(trip)));
        }
        if self.polled && !posts.is_behind {
            self.answered(bytes, now.saturating_sub(posts.first));
        }
        let sample = self.learned(posts, bytes, now, late);
        let found = late.map(|late| (now, late));
        self.previous = found.filter(|_| self.outstanding > 0);
        if self.previous.is_none() {
            self.run.restart(None);
        }
        sample
    }

    /// Learns that bytes posted on the idle link have completed after `time`. At most a part of the
    /// horizon counts, so that the time of long work on a slow link does not raise the horizon by
    /// itself.
    fn answered(&mut self, bytes: u64, time: u64) {
        let part = (self.horizon() / COUNTED).max(SHORTEST_PIECE);
        let time = (time / bytes.div_ceil(part).max(1)).min(MOST_ANSWER);
        self.answer = match time > self.answer {
            true => self.answer.midpoint(time),
            false => self.answer - (self.answer - time) / FORGET,
        };
    }

    /// A completion of `bytes` posted at `posts` ends at `now`. The bandwidth follows from the time
    /// between two completions if the later work was posted before the acknowledgement behind the
    /// earlier completion was in flight, however late the poll that found it. Otherwise the link
    /// may have idled between them, and the time also contains a round trip.
    fn learned(&mut self, posts: Posts, bytes: u64, now: u64, late: Option<u64>) -> Option<Sample> {
        let start = self.previous.map_or(0, |(at, _)| at).max(posts.first);
        let elapsed = now.saturating_sub(start);
        // Since the post at the latest: a bound that no late poll of an earlier completion breaks.
        let waited = now.saturating_sub(posts.first);
        if bytes == 0 || waited == 0 {
            return None;
        }
        let at_least = Sample::AtLeast(rate(bytes, waited));
        // If the end of earlier work is unknown, the time contains a part of that work's time.
        let Some(late) = late.filter(|_| !posts.is_behind || self.previous.is_some()) else {
            self.run.restart(None);
            return Some(at_least);
        };
        let streamed = posts.last.saturating_add(self.round_trip());
        let previous = (self.previous).filter(|(at, late)| streamed.saturating_add(*late) <= *at);
        if let Some((at, previously)) = previous {
            self.run.start = self.run.start.or(Some(at));
            let sample = self.run.add(bytes, now, late.max(previously));
            return sample.map(Sample::Exactly);
        }
        self.run.restart(Some(now));
        if elapsed
            < self
                .round_trip()
                .saturating_mul(8)
                .max(late.saturating_mul(LATE_SHARE))
        {
            return Some(at_least);
        }
        // An acknowledgement returns faster than a write arrives: between half a round trip and a
        // whole one of the write's latency.
        let known = posts
            .first
            .saturating_add(self.round_trip().saturating_mul(3) / 4);
        let overhead = known.saturating_sub(start);
        Some(Sample::Exactly(rate(bytes, elapsed - overhead)))
    }

    /// Removes `bytes` from the oldest posts to the link. Returns the times of those posts.
    fn take(&mut self, bytes: u64) -> Option<Posts> {
        let mut taken: Option<Posts> = None;
        let mut left = bytes;
        while self.used > 0 && (left > 0 || taken.is_none()) {
            let oldest = &mut self.posts[self.oldest];
            let earliest = taken.unwrap_or(*oldest);
            taken = Some(Posts {
                last: oldest.last,
                ..earliest
            });
            let part = left.min(oldest.bytes);
            oldest.bytes -= part;
            left -= part;
            if oldest.bytes == 0 {
                self.oldest = (self.oldest + 1) % POSTS;
                self.used -= 1;
            }
        }
        taken
    }

    /// Forgets all work posted on the link, which has failed or works again.
    pub(super) fn forget(&mut self) {
        self.outstanding = 0;
        self.packets_until = 0;
        self.used = 0;
        self.previous = None;
        self.run.restart(None);
    }
}
