//! The cores that each rank of a host may use, and whether each rank can have a core of its own.
//!
//! Ranks are bound to cores before they attach to the shared memory, if at all, so every rank
//! publishes on its board which cores it may use. Invariant: unless this rank alone may use enough
//! cores for all, there is no answer before all ranks have published their cores.

use datatype::double::ask;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Number of cores in an affinity mask of the usual length.
const CORES: usize = 1024;
const WORDS: usize = CORES / 64;
/// Value of `count` for a rank that does not know its cores, or has a CPU quota below their number.
const UNKNOWN: u32 = u32::MAX;

/// The cores that a rank may use, published in shared memory.
#[repr(C)]
pub(crate) struct Affinity {
    /// Number of cores; zero until the rank has published them.
    count: AtomicU32,
    cores: [AtomicU64; WORDS],
}

impl Affinity {
    fn show(&self, cores: Option<Mask>) {
        let Mask(words) = cores.unwrap_or_default();
        for (word, shown) in words.iter().zip(&self.cores) {
            shown.store(*word, Ordering::Relaxed);
        }
        let count = cores.map_or(UNKNOWN, |cores| cores.count() as u32);
        self.count.store(count, Ordering::Release);
    }

    fn is_shown(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    /// The published cores; `None` if the rank does not know them.
    fn cores(&self) -> Option<Mask> {
        let known = self.count.load(Ordering::Acquire) != UNKNOWN;
        let word = |word: usize| self.cores[word].load(Ordering::Relaxed);
        known.then(|| Mask(std::array::from_fn(word)))
    }
}

/// The check, by one rank, whether each rank of the host can have a core of its own.
pub(crate) struct CoreAssignment {
    /// The number of ranks on this host.
    ranks: usize,
    /// Number of ranks, counted from local rank 0, that are known to have published their cores.
    shown: usize,
    /// True if this rank may use at least as many cores as there are ranks on the host, so that one
    /// is left for it.
    roomy: bool,
}

impl CoreAssignment {
    /// Publishes the cores of the calling thread on this rank's board, for the `ranks` ranks of
    /// this host.
    pub(crate) fn join(own: &Affinity, ranks: usize) -> CoreAssignment {
        // With a CPU quota below the number of cores in the mask, the mask does not limit which are
        // used.
        let real = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let allowed = ask(|_| ranks).unwrap_or_else(real);
        own.show(Mask::of_this_thread().filter(|cores| cores.count() <= allowed));
        CoreAssignment {
            ranks,
            shown: 0,
            roomy: ranks <= allowed,
        }
    }

    /// True if each rank can have a core of its own. `None`: not all ranks have published their
    /// cores yet. `affinity` returns the published cores of a local rank.
    pub(crate) fn has_core_each<'a>(
        &mut self,
        affinity: impl Fn(usize) -> &'a Affinity,
    ) -> Option<bool> {
        if self.roomy {
            return Some(true);
        }
        while self.shown < self.ranks {
            if !affinity(self.shown).is_shown() {
                return None;
            }
            self.shown += 1;
        }
        let cores: Option<Vec<Mask>> = (0..self.ranks).map(|at| affinity(at).cores()).collect();
        Some(cores.is_some_and(|cores| each_gets_one(&cores)))
    }
}

/// A set of cores.
#[derive(Clone, Copy, Default)]
struct Mask([u64; WORDS]);

impl Mask {
    /// The affinity mask of the calling thread; `None` if the kernel does not report it.
    fn of_this_thread() -> Option<Mask> {
        let mut cores = Mask::default();
        let room = size_of_val(&cores.0);
        // SAFETY: the kernel writes at most `room` bytes, a set of bits in words, into words that
        // are ours.
        let done = unsafe { libc::sched_getaffinity(0, room, cores.0.as_mut_ptr().cast()) };
        (done == 0).then_some(cores)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn add(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }

    fn without(&self, others: &Mask) -> impl Iterator<Item = usize> + use<> {
        let left: [u64; WORDS] = std::array::from_fn(|word| self.0[word] & !others.0[word]);
        (0..WORDS).flat_map(move |word| {
            let mut bits = left[word];
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        })
    }
}

/// True if each rank can have a core to itself (a maximum bipartite matching). Ranks get a core one
/// after the other; if other ranks own all cores of a rank, owners move to other cores, along the
/// shortest augmenting path.
fn each_gets_one(ranks: &[Mask]) -> bool {
    let mut owner = [None; CORES];
    let mut owned = vec![None; ranks.len()];
    for rank in 0..ranks.len() {
        let mut seen = Mask::default();
        // The rank that would take each core seen so far.
        let mut taker = [rank; CORES];
        let mut movers = vec![rank];
        let mut next = 0;
        let free = 'search: loop {
            let Some(&mover) = movers.get(next) else {
                return false;
            };
            next += 1;
            for core in ranks[mover].without(&seen) {
                seen.add(core);
                taker[core] = mover;
                match owner[core] {
                    Some(other) => movers.push(other),
                    None => break 'search core,
                }
            }
        };
        let mut given = Some(free);
        while let Some(core) = given {
            owner[core] = Some(taker[core]);
            given = owned[taker[core]].replace(core);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(cores: &[usize]) -> Mask {
        let mut set = Mask::default();
        cores.iter().for_each(|core| set.add(*core));
        set
    }

    fn suffice(ranks: &[&[usize]]) -> bool {
        let ranks: Vec<Mask> = ranks.iter().map(|rank| cores(rank)).collect();
        each_gets_one(&ranks)
    }

    #[test]
    fn bound_to_a_core_each() {
        assert!(suffice(&[&[0], &[1]]));
        assert!(suffice(&[&[1023], &[64], &[63]]));
        assert!(!suffice(&[&[1], &[1]]));
        assert!(!suffice(&[&[0], &[1], &[0]]));
    }

    #[test]
    fn groups_with_the_same_cores() {
        assert!(suffice(&[&[0, 1], &[0, 1], &[2, 3], &[2, 3]]));
        // There are as many cores as ranks, but the first three ranks share two of them.
        assert!(!suffice(&[&[0, 1], &[0, 1], &[0, 1], &[2, 3]]));
    }

    #[test]
    fn who_can_move_on_does() {
        // Each rank gets the first free core, which the next one needs.
        assert!(suffice(&[&[0, 1], &[0, 2], &[0]]));
        assert!(suffice(&[&[0, 1], &[1, 2], &[2, 3], &[0]]));
        assert!(!suffice(&[&[0, 1], &[1, 2], &[2, 0], &[0, 1, 2]]));
    }

    #[test]
    fn many_ranks() {
        let all: Vec<usize> = (0..CORES).collect();
        let mut ranks = vec![cores(&all); CORES];
        ranks.push(cores(&[7]));
        assert!(!each_gets_one(&ranks));
        ranks.remove(0);
        assert!(each_gets_one(&ranks));
    }

    /// An assignment of `ranks` ranks, whose first may use `allowed` cores.
    fn crowd(ranks: usize, allowed: usize) -> CoreAssignment {
        CoreAssignment {
            ranks,
            shown: 0,
            roomy: ranks <= allowed,
        }
    }

    fn boards(ranks: usize) -> Vec<Affinity> {
        let board = |_| Affinity {
            count: AtomicU32::new(0),
            cores: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        (0..ranks).map(board).collect()
    }

    #[test]
    fn nothing_is_said_before_all_have_shown_their_cores() {
        let boards = boards(3);
        let mut crowd = crowd(3, 1);
        for rank in [0, 2, 1] {
            assert_eq!(crowd.has_core_each(|at| &boards[at]), None);
            boards[rank].show(Some(cores(&[rank])));
        }
        assert_eq!(crowd.has_core_each(|at| &boards[at]), Some(true));
    }

    #[test]
    fn a_rank_with_a_core_for_each_needs_no_peer() {
        let boards = boards(3);
        assert_eq!(crowd(3, 3).has_core_each(|at| &boards[at]), Some(true));
    }

    #[test]
    fn what_a_rank_does_not_know_is_no_core() {
        let boards = boards(2);
        boards[0].show(Some(cores(&[0])));
        boards[1].show(None);
        assert_eq!(crowd(2, 1).has_core_each(|at| &boards[at]), Some(false));
    }
}
