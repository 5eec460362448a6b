//! The bound of a program on a machine: the part with the greatest share of its time, except for
//! the start.
//!
//! The time of a run falls into: the *start* (what disappears where launch, connections,
//! registrations, communicators, windows and files are free); the mean computing of the ranks; the
//! mean of their work *inside MPI* on their own memory (sums of reductions, packing, functions of
//! the program that MPI calls), which every machine keeps; the time beyond both that remains on a
//! machine without any cost of communication; and the rest, which the network and
//! the storage cost. Of the rest the delay of computing by the *progress thread* of windows is a
//! share of its own. The remainder is divided in proportion to the time that disappears if one kind
//! of cost alone is idealised: *latency* (delays that messages share: chips, buses, cables,
//! switches), *bandwidth* (all rates in bytes), *contention* (waits for links between switches,
//! where messages cross some), *message rate* (work for each message, one after
//! the other: processors and libraries, and the engines of HCAs), and *storage* (files, on a
//! machine with a storage).
//!
//! Waiting on the machine without costs is divided by one more replay there, in which ranks with
//! equal calls compute equally long. The waiting that disappears is *imbalance* (one has more to do
//! than others) or *noise* (computing differs by chance); the waiting that remains is *dependence*:
//! nobody else has work, as in a serial part, at a master, or while a pipeline fills.

use profile::{RankTimes, Summary};

/// The shares of a run's time by cause, such as computing, latency and bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The shares, in the order of [`Bounds::NAMES`].
    pub shares: [f64; 12],
}

/// The times of the replays by which the time of a run is divided. In all of them the start is
/// free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replays {
    /// The time on the machine, in seconds.
    pub free: f64,
    /// The time on a machine whose communication costs nothing, in seconds.
    pub everything: f64,
    /// The time on that machine if ranks with equal calls also share their work evenly, in seconds.
    pub distributed: f64,
    /// The times on a machine without each of the costs [`SINGLE`](crate::ideal::Ideal::SINGLE), in
    /// seconds.
    pub single: [f64; 5],
}

impl Bounds {
    /// The names of the shares.
    pub const NAMES: [&str; 12] = [
        "computing",
        "imbalance",
        "latency",
        "bandwidth",
        "message rate",
        "storage",
        "start",
        "noise",
        "dependence",
        "inside MPI",
        "progress thread",
        "contention",
    ];
    /// The least share of contention, noise, dependence or progress thread that tables show.
    pub(crate) const LEAST: f64 = 0.005;
    const STORAGE: usize = 5;
    const START: usize = 6;
    const NOISE: usize = 7;
    const DEPENDENCE: usize = 8;
    const INSIDE: usize = 9;
    const THREAD: usize = 10;
    /// The number of the share of waits for links between switches.
    pub const CONTENTION: usize = 11;
    /// The numbers of the shares, in the order of the columns of tables.
    const ORDER: [usize; 12] = [
        Bounds::START,
        0,
        Bounds::INSIDE,
        1,
        Bounds::NOISE,
        Bounds::DEPENDENCE,
        Bounds::THREAD,
        2,
        3,
        Bounds::CONTENTION,
        4,
        Bounds::STORAGE,
    ];

    /// The shares of a run. `noise`: the part of the differences of computing between ranks that is
    /// due to chance, from 0 to 1.
    pub fn of(summary: &Summary, replays: &Replays, noise: f64) -> Bounds {
        let time = summary.virtual_s.unwrap_or(0.0);
        if time <= 0.0 {
            return Bounds { shares: [0.0; 12] };
        }
        let mean_of = |part: fn(&RankTimes) -> f64| {
            let sum: f64 = summary.per_rank.iter().map(part).sum();
            sum / summary.ranks.max(1) as f64
        };
        let thread = mean_of(|rank| rank.thread_s).min(time);
        let mean = mean_of(|rank| rank.compute_s - rank.thread_s).clamp(0.0, time - thread);
        let inside = mean_of(|rank| rank.inside_s).min(time - mean - thread);
        // On an ideal machine arriving messages never delay computing, so this delay is a cost of
        // the real machine.
        let busy = mean + inside;
        let free = replays.free.clamp(busy, time);
        // A replay without costs may take a little longer if the program then takes another path.
        let everything = replays.everything.clamp(busy, free);
        let mut saved = replays.single.map(|without| (free - without).max(0.0));
        // Endless rates remove the waits for links between switches too.
        let [_, bandwidth, _, _, contention] = &mut saved;
        *bandwidth = (*bandwidth - *contention).max(0.0);
        let sum: f64 = saved.iter().sum();
        let costs = (free - everything - thread).max(0.0);
        let thread = thread.min(free - everything);
        let [latency, bandwidth, rate, storage, contention] = match sum > 0.0 {
            true => saved.map(|saved| costs * saved / sum / time),
            // No single cost saves any time: divide the costs equally among the network's three.
            false => {
                let third = costs / 3.0 / time;
                [third, third, third, 0.0, 0.0]
            }
        };
        let distributed = replays.distributed.clamp(busy, everything);
        let uneven = everything - distributed;
        Bounds {
            shares: [
                mean / time,
                uneven * (1.0 - noise) / time,
                latency,
                bandwidth,
                rate,
                storage,
                (time - free) / time,
                uneven * noise / time,
                (distributed - busy) / time,
                inside / time,
                thread / time,
                contention,
            ],
        }
    }

    /// The numbers of the shares that tables of these rows show, in their order. Storage is shown
    /// if a machine has one; contention, noise, dependence and progress thread above 0.5 %; work
    /// inside MPI above 1 %.
    pub fn shown(rows: impl Iterator<Item = Bounds> + Clone) -> Vec<usize> {
        const LEAST_INSIDE: f64 = 0.01;
        let some =
            |share: usize, least: f64| rows.clone().any(|bounds| bounds.shares[share] > least);
        let is_shown = |share: &usize| match *share {
            Bounds::STORAGE => some(Bounds::STORAGE, 0.0),
            Bounds::CONTENTION | Bounds::NOISE | Bounds::DEPENDENCE | Bounds::THREAD => {
                some(*share, Bounds::LEAST)
            }
            Bounds::INSIDE => some(Bounds::INSIDE, LEAST_INSIDE),
            _ => true,
        };
        Bounds::ORDER.into_iter().filter(is_shown).collect()
    }

    /// The name of the greatest share except the start; the first of equal ones.
    pub fn name(&self) -> &'static str {
        let mut best = 0;
        for at in 1..self.shares.len() {
            if at != Bounds::START && self.shares[at] > self.shares[best] {
                best = at;
            }
        }
        Bounds::NAMES[best]
    }

    /// The shares of latency, bandwidth (with contention) and message rate, relative to the time
    /// without the start.
    pub fn network(&self) -> [f64; 3] {
        let rest = 1.0 - self.start();
        let contention = self.shares[Bounds::CONTENTION];
        [(2, 0.0), (3, contention), (4, 0.0)].map(|(at, more)| match rest > 0.0 {
            true => (self.shares[at] + more) / rest,
            false => 0.0,
        })
    }

    /// Bounds of a run that only computes, except for this share of latency.
    #[cfg(test)]
    pub(crate) fn of_latency(share: f64) -> Bounds {
        let mut bounds = Bounds { shares: [0.0; 12] };
        (bounds.shares[0], bounds.shares[2]) = (1.0 - share, share);
        bounds
    }

    /// The share of the start in the run's time.
    pub fn start(&self) -> f64 {
        self.shares[Bounds::START]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(time: f64, computed: [f64; 2]) -> Summary {
        let rank = |(rank, compute_s)| RankTimes {
            rank,
            compute_s,
            mpi_s: time - compute_s,
            wait_s: None,
            inside_s: 0.0,
            thread_s: 0.0,
        };
        Summary {
            ranks: 2,
            virtual_s: Some(time),
            per_rank: computed.into_iter().enumerate().map(rank).collect(),
            ..Summary::default()
        }
    }

    fn bounds(
        time: f64,
        computed: [f64; 2],
        free: f64,
        everything: f64,
        single: [f64; 5],
    ) -> Bounds {
        let replays = Replays {
            free,
            everything,
            distributed: 0.0,
            single,
        };
        Bounds::of(&summary(time, computed), &replays, 0.0)
    }

    #[test]
    fn the_greatest_share_is_the_bound() {
        for (time, computed, everything, single, name) in [
            (
                10.0,
                [8.0, 8.0],
                8.0,
                [9.0, 9.5, 9.9, 10.0, 10.0],
                "computing",
            ),
            (
                10.0,
                [1.0, 9.0],
                9.5,
                [9.9, 9.9, 9.9, 10.0, 10.0],
                "computing",
            ),
            (
                10.0,
                [0.0, 9.0],
                9.5,
                [9.9, 9.9, 9.9, 10.0, 10.0],
                "imbalance",
            ),
            (
                10.0,
                [1.0, 1.0],
                2.0,
                [4.0, 9.0, 8.0, 10.0, 10.0],
                "latency",
            ),
            (
                10.0,
                [1.0, 1.0],
                2.0,
                [9.0, 3.0, 8.0, 10.0, 10.0],
                "bandwidth",
            ),
            (
                10.0,
                [1.0, 1.0],
                2.0,
                [9.0, 8.0, 3.0, 10.0, 10.0],
                "message rate",
            ),
            (10.0, [1.0, 1.0], 2.0, [9.0, 8.0, 7.0, 2.0, 10.0], "storage"),
            (
                10.0,
                [1.0, 1.0],
                2.0,
                [9.0, 8.0, 7.0, 9.0, 2.0],
                "contention",
            ),
        ] {
            let bounds = bounds(time, computed, time, everything, single);
            assert_eq!(bounds.name(), name, "{bounds:?}");
            let sum: f64 = bounds.shares.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{bounds:?}");
        }
    }

    #[test]
    fn the_waits_at_links_are_no_part_of_bandwidth() {
        let bounds = bounds(10.0, [2.0, 2.0], 10.0, 2.0, [10.0, 4.0, 8.0, 10.0, 6.0]);
        let [bandwidth, rate, contention] = [3, 4, Bounds::CONTENTION].map(|at| bounds.shares[at]);
        for (share, wanted) in [(bandwidth, 0.2), (rate, 0.2), (contention, 0.4)] {
            assert!((share - wanted).abs() < 1e-9, "{bounds:?}");
        }
    }

    #[test]
    fn the_start_is_a_share_and_no_bound() {
        // Of ten seconds six are the start; a second of the rest is latency.
        let bounds = bounds(10.0, [3.0, 3.0], 4.0, 3.0, [3.0, 4.0, 4.0, 4.0, 10.0]);
        let sum: f64 = bounds.shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{bounds:?}");
        assert!((bounds.start() - 0.6).abs() < 1e-9, "{bounds:?}");
        assert!((bounds.shares[2] - 0.1).abs() < 1e-9, "{bounds:?}");
        assert_eq!(bounds.name(), "computing");
    }

    #[test]
    fn work_inside_mpi_is_neither_computing_nor_waiting() {
        let mut summary = summary(10.0, [5.0, 5.0]);
        for rank in &mut summary.per_rank {
            rank.inside_s = 2.0;
        }
        let replays = Replays {
            free: 10.0,
            everything: 8.0,
            distributed: 7.0,
            single: [9.0, 10.0, 10.0, 10.0, 10.0],
        };
        let bounds = Bounds::of(&summary, &replays, 0.0);
        let sum: f64 = bounds.shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{bounds:?}");
        for (share, wanted) in [(0, 0.5), (1, 0.1), (2, 0.2), (Bounds::INSIDE, 0.2)] {
            let found = bounds.shares[share];
            assert!((found - wanted).abs() < 1e-9, "{share} {bounds:?}");
        }
    }

    #[test]
    fn the_delay_by_the_progress_thread_is_no_computing() {
        let mut summary = summary(10.0, [5.0, 5.0]);
        for rank in &mut summary.per_rank {
            rank.thread_s = 1.0;
        }
        let replays = Replays {
            free: 10.0,
            everything: 7.0,
            distributed: 4.0,
            single: [9.0, 10.0, 10.0, 10.0, 10.0],
        };
        let bounds = Bounds::of(&summary, &replays, 0.0);
        let sum: f64 = bounds.shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{bounds:?}");
        for (share, wanted) in [(0, 0.4), (1, 0.3), (2, 0.2), (Bounds::THREAD, 0.1)] {
            let found = bounds.shares[share];
            assert!((found - wanted).abs() < 1e-9, "{share} {bounds:?}");
        }
    }

    #[test]
    fn waiting_is_imbalance_noise_and_dependence() {
        let replays = Replays {
            free: 10.0,
            everything: 9.0,
            distributed: 7.0,
            single: [9.0, 10.0, 10.0, 10.0, 10.0],
        };
        // Of four seconds of waiting two go if the work is shared evenly.
        let bounds = Bounds::of(&summary(10.0, [5.0, 5.0]), &replays, 0.75);
        let shares = [1, Bounds::NOISE, Bounds::DEPENDENCE].map(|at| bounds.shares[at]);
        for (share, wanted) in shares.into_iter().zip([0.05, 0.15, 0.2]) {
            assert!((share - wanted).abs() < 1e-9, "{bounds:?}");
        }
    }

    #[test]
    fn a_replay_that_takes_longer_without_costs_counts_as_no_saving() {
        let bounds = bounds(10.0, [9.0, 9.0], 10.0, 10.5, [11.0, 9.9, 10.0, 10.0, 10.0]);
        assert_eq!(bounds.shares[2..6], [0.0; 4]);
    }
}
