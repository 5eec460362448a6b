//! The ranks of a job that share one memory, and the place of each in it.

/// The place of a rank on another host.
const ELSEWHERE: u32 = u32::MAX;

/// The ranks of this host.
#[derive(Clone, Debug)]
pub(crate) struct LocalRanks {
    /// The place of each rank of the job.
    of: Vec<u32>,
    /// The rank at each place, in order.
    ranks: Vec<u32>,
}

impl LocalRanks {
    /// All ranks of a job of `ranks` ranks.
    #[cfg(test)]
    pub(crate) fn all(ranks: usize) -> LocalRanks {
        let ranks: Vec<u32> = (0..ranks as u32).collect();
        LocalRanks {
            of: ranks.clone(),
            ranks,
        }
    }

    /// These ranks, in order, of a job of `job` ranks.
    pub(crate) fn some(ranks: impl Iterator<Item = usize>, job: usize) -> LocalRanks {
        let mut places = LocalRanks {
            of: vec![ELSEWHERE; job],
            ranks: Vec::new(),
        };
        for rank in ranks {
            places.of[rank] = places.ranks.len() as u32;
            places.ranks.push(rank as u32);
        }
        places
    }

    /// Number of ranks of the job.
    pub(crate) fn job(&self) -> usize {
        self.of.len()
    }

    /// Number of ranks of this host.
    pub(crate) fn count(&self) -> usize {
        self.ranks.len()
    }

    /// The place of a rank of the job, if it is on this host.
    #[inline(always)]
    pub(crate) fn of(&self, rank: usize) -> Option<usize> {
        match self.of.get(rank) {
            Some(&place) if place != ELSEWHERE => Some(place as usize),
            _ => None,
        }
    }

    /// The rank at a place, if the place exists.
    pub(crate) fn rank(&self, place: usize) -> Option<usize> {
        self.ranks.get(place).map(|rank| *rank as usize)
    }
}
