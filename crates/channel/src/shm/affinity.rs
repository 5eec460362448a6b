//! Is there a core for each rank that shares this memory?
//!
//! Ranks are bound before they start MPI, if at all, each to the same cores or each to others: so every rank shows on its
//! board which ones it may use. What must always hold: a peer that has not done so yet is not counted on.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// As many cores as the kernel tells of in one answer of the usual length.
const CORES: usize = 1024;
const WORDS: usize = CORES / 64;
/// On a board: this rank could not find out which cores it may use, or they are not all that limits it.
const UNKNOWN: u32 = u32::MAX;

/// The cores that a rank may use, as its peers see it.
#[repr(C)]
pub(crate) struct Affinity {
    /// How many; zero until the rank has shown them.
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

    /// None if the rank does not know them.
    fn cores(&self) -> Option<Mask> {
        let known = self.count.load(Ordering::Acquire) != UNKNOWN;
        let word = |word: usize| self.cores[word].load(Ordering::Relaxed);
        known.then(|| Mask(std::array::from_fn(word)))
    }
}

/// What a rank finds out about the cores of all ranks here.
pub(crate) struct CoreAssignment {
    /// How many ranks are here, and how many of them, in order, have shown their cores.
    ranks: usize,
    shown: usize,
    /// Whatever the others have, one core is left for this rank.
    roomy: bool,
}

impl CoreAssignment {
    /// Shows the cores of the thread that calls to the `ranks` ranks that are here.
    pub(crate) fn join(own: &Affinity, ranks: usize) -> CoreAssignment {
        // Where a quota allows less than the mask, which cores they are says little.
        let allowed = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        own.show(Mask::of_this_thread().filter(|cores| cores.count() <= allowed));
        CoreAssignment {
            ranks,
            shown: 0,
            roomy: ranks <= allowed,
        }
    }

    /// Is there a core for each rank? None: not all of them have shown yet which they may use.
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
    /// None if the kernel does not say.
    fn of_this_thread() -> Option<Mask> {
        let mut cores = Mask::default();
        let room = size_of_val(&cores.0);
        // SAFETY: the kernel writes at most `room` bytes, a set of bits in words, into words that are ours.
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

/// Can each rank have a core to itself, of those it may use? One after the other is given one; if all of its cores have
/// been given away, those who have them move on to others, and so on (an augmenting path, the shortest first).
fn each_gets_one(ranks: &[Mask]) -> bool {
    let mut owner = [None; CORES];
    let mut owned = vec![None; ranks.len()];
    for rank in 0..ranks.len() {
        let mut seen = Mask::default();
        // Who would take each core that has been seen.
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
        // As many cores as ranks, but not where they are needed.
        assert!(!suffice(&[&[0, 1], &[0, 1], &[0, 1], &[2, 3]]));
    }

    #[test]
    fn who_can_move_on_does() {
        // Each takes the first free core, which the next needs.
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

    /// A crowd whose first rank has this many cores of its own.
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
