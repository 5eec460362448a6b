//! The division of a host's cores among the ranks of a job.

use super::cpu_list::CpuList;
use super::topology::{HardwareThread, Level, Topology};

/// Disjoint shares of the cores of `topology`, one for each rank: all with the same number of whole
/// cores, which is as large as possible. The cores of a share have a cache, a NUMA node or a socket
/// in common if one has enough cores left. `None`: there are more ranks than cores.
pub(crate) fn shares(topology: &Topology, ranks: usize) -> Option<Vec<CpuList>> {
    let mut left: Vec<&[HardwareThread]> = topology.parts(Level::Core).collect();
    let each = left.len().checked_div(ranks).filter(|&each| each > 0)?;
    Some((0..ranks).map(|_| take(&mut left, each)).collect())
}

/// Removes `count` cores from `left`, within the smallest part of the machine that has that many
/// left.
fn take(left: &mut Vec<&[HardwareThread]>, count: usize) -> CpuList {
    let levels = [Level::Cache, Level::Numa, Level::Socket];
    let place = levels.into_iter().find_map(|level| {
        let mut start = 0;
        let mut parts = left.chunk_by(|one, other| one[0].part(level) == other[0].part(level));
        parts.find_map(|part| {
            start += part.len();
            (part.len() >= count).then(|| start - part.len())
        })
    });
    let first = place.unwrap_or(0);
    let taken = left.drain(first..first + count);
    taken.flatten().map(|thread| thread.number).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::binding::made_up::MadeUpMachine;

    fn shown(machine: &MadeUpMachine, allowed: &str, ranks: usize) -> Option<Vec<String>> {
        let allowed = CpuList::parse(allowed).unwrap();
        let shares = shares(&Topology::read(machine.root(), &allowed), ranks)?;
        Some(shares.iter().map(CpuList::to_string).collect())
    }

    #[test]
    fn shares_are_whole_cores() {
        let machine = MadeUpMachine::new(1, 4, 2);
        for (ranks, expected) in [
            (1, vec!["0-7"]),
            (2, vec!["0-1,4-5", "2-3,6-7"]),
            (3, vec!["0,4", "1,5", "2,6"]),
            (4, vec!["0,4", "1,5", "2,6", "3,7"]),
        ] {
            assert_eq!(shown(&machine, "0-7", ranks).unwrap(), expected);
        }
        assert_eq!(shown(&machine, "0-7", 5), None);
        assert_eq!(shown(&machine, "0-7", 0), None);
        // Both threads of core 0, one of core 1.
        assert_eq!(shown(&machine, "0,4-5", 2).unwrap(), ["0,4", "5"]);
    }

    #[test]
    fn a_share_stays_in_a_socket_while_one_has_room() {
        let machine = MadeUpMachine::new(2, 8, 1);
        let expected = ["0-4", "8-12", "5-7,13-14"];
        assert_eq!(shown(&machine, "0-15", 3).unwrap(), expected);
        assert_eq!(shown(&machine, "0-15", 2).unwrap(), ["0-7", "8-15"]);
    }

    proptest! {
        #[test]
        fn shares_are_equal_and_disjoint_and_inside_the_mask(
            sockets in 1usize..4,
            cores in 1usize..6,
            threads in 1usize..3,
            holes in proptest::collection::btree_set(0usize..36, 0..12),
            ranks in 1usize..12,
        ) {
            let count = sockets * cores * threads;
            let allowed: CpuList = (0..count).filter(|number| !holes.contains(number)).collect();
            let topology = Topology::made_up([sockets, cores, threads], &allowed);
            let all = topology.parts(Level::Core).count();
            let Some(shares) = shares(&topology, ranks) else {
                prop_assert!(ranks > all);
                return Ok(());
            };
            prop_assert_eq!(shares.len(), ranks);
            let mut taken = CpuList::default();
            for share in &shares {
                prop_assert!(share.without(&allowed).is_empty());
                prop_assert!(share.iter().all(|number| !taken.contains(number)));
                let part = topology.within(share);
                // Whole cores, as far as the mask has them, and the same number for each rank.
                prop_assert_eq!(part.parts(Level::Core).count(), all / ranks);
                for core in topology.parts(Level::Core) {
                    let inside = core.iter().filter(|thread| share.contains(thread.number)).count();
                    prop_assert!(inside == 0 || inside == core.len());
                }
                taken = taken.iter().chain(share.iter()).collect();
            }
            // The first share lies within one socket if a socket has enough cores.
            let largest = topology.parts(Level::Socket).map(|socket| {
                let list = socket.iter().map(|thread| thread.number).collect();
                topology.within(&list).parts(Level::Core).count()
            });
            if largest.max() >= Some(all / ranks) {
                prop_assert_eq!(topology.within(&shares[0]).parts(Level::Socket).count(), 1);
            }
        }
    }
}
