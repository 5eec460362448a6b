//! The rings of HPCC's benchmark b_eff: each rank exchanges 2,000,000 B with both neighbours, by
//! MPI_Sendrecv and by nonblocking calls, and the shorter time of the slowest rank counts.
//!
//! The ranks of a random ring are filled in by linear probing, so neighbours of a block of ranks
//! stay together more often than by chance.

use results::stats;
use trace::Trace;

use super::calls::{self, program};
use model::placement::RankOrder;
use sim::Random;

/// The bytes of each message.
pub(super) const BYTES: u64 = 2_000_000;

/// The ranks of a ring, in its order.
pub(super) fn natural(ranks: usize) -> Vec<usize> {
    (0..ranks).collect()
}

/// The ranks of a ring as HPCC fills it: each rank in turn takes a random position, or the next
/// free one after it.
pub(super) fn random(ranks: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut ring: Vec<Option<usize>> = vec![None; ranks];
    for rank in 0..ranks {
        let mut at = random.below(ranks as u64) as usize;
        while ring[at].is_some() {
            at = (at + 1) % ranks;
        }
        ring[at] = Some(rank);
    }
    ring.into_iter().flatten().collect()
}

/// The program: both kinds of exchanges, each timed.
pub(super) fn trace(ring: &[usize]) -> Trace {
    let ranks = ring.len();
    let mut places = vec![0; ranks];
    for (place, &rank) in ring.iter().enumerate() {
        places[rank] = place;
    }
    program(ranks, |calls| {
        let place = places[calls.rank];
        let (right, left) = (ring[(place + 1) % ranks], ring[(place + ranks - 1) % ranks]);
        calls.timed(|calls| {
            calls.exchange(right, left, BYTES);
            calls.exchange(left, right, BYTES);
        });
        calls.timed(|calls| calls.exchange_at_once(&[right, left], &[left, right], BYTES));
    })
}

/// The rate that HPCC prints: bytes that a rank sends each second.
pub(super) fn rate(outcome: &fast::Outcome) -> f64 {
    let slowest = |part| stats::max(&calls::times(outcome, part));
    (2 * BYTES) as f64 / slowest(0).min(slowest(1))
}

/// The share of the busiest node's traffic that leaves it, in the mean of many random rings: for
/// 24, 28 and 36 ranks a node the values for 2, 4, 8 and 16 nodes. It converts the published rates,
/// so that it cancels; a test compares it with [`random`].
const SHARES: [(u32, RankOrder, [f64; 4]); 5] = [
    (24, RankOrder::Block, [0.413, 0.736, 0.908, 0.984]),
    (28, RankOrder::Block, [0.407, 0.730, 0.903, 0.980]),
    (36, RankOrder::Block, [0.405, 0.721, 0.894, 0.971]),
    (24, RankOrder::Cyclic, [0.534, 0.845, 0.967, 0.999]),
    (36, RankOrder::Cyclic, [0.525, 0.825, 0.950, 0.996]),
];

/// The share of the busiest node's traffic that leaves it. `None`: no share is known.
pub(super) fn share(nodes: u32, per_node: u32, order: RankOrder) -> Option<f64> {
    if per_node == 1 || nodes >= 32 {
        return Some(1.0);
    }
    let column = [2, 4, 8, 16].iter().position(|own| *own == nodes)?;
    let known = |(ranks, of, _): &&(u32, RankOrder, _)| (*ranks, *of) == (per_node, order);
    Some(SHARES.iter().find(known)?.2[column])
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::placement::Job;

    /// The share of the busiest node's traffic that leaves it, in the mean of `rings` rings.
    fn measured(job: Job, rings: u64) -> f64 {
        let busiest = |seed| {
            let ring = random(job.ranks(), seed);
            let mut leaving = vec![0u32; job.nodes as usize];
            for (place, &rank) in ring.iter().enumerate() {
                let (own, next) = (job.node(rank), job.node(ring[(place + 1) % ring.len()]));
                if own != next {
                    leaving[own] += 1;
                    leaving[next] += 1;
                }
            }
            f64::from(leaving.into_iter().max().unwrap_or(0)) / f64::from(2 * job.per_node)
        };
        (0..rings).map(busiest).sum::<f64>() / rings as f64
    }

    #[test]
    fn the_share_of_the_busiest_node_is_that_of_hpccs_filling() {
        for (per_node, order, shares) in SHARES {
            for (nodes, share) in [2, 4, 8, 16].into_iter().zip(shares) {
                let job = Job {
                    hosts: nodes,
                    nodes,
                    per_node,
                    order,
                };
                let found = measured(job, 4000 / u64::from(nodes));
                let error = found / share - 1.0;
                assert!(error.abs() < 0.01, "{job:?}: {found}, not {share}");
            }
        }
        assert_eq!(share(32, 36, RankOrder::Block), Some(1.0));
        assert_eq!(share(16, 1, RankOrder::Cyclic), Some(1.0));
        assert_eq!(share(3, 36, RankOrder::Block), None);
    }

    #[test]
    fn a_ring_has_each_rank_once() {
        let mut ring = random(500, 3);
        assert_ne!(ring, natural(500));
        ring.sort_unstable();
        assert_eq!(ring, natural(500));
    }
}
