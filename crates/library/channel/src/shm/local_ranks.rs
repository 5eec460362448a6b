//! The ranks of a job that share the memory of this host, and the *local rank* of each: its index
//! among them.

/// The entry of a rank that is on another host.
const ELSEWHERE: u32 = u32::MAX;

/// The ranks of this host: world ranks to local ranks, and back.
#[derive(Clone, Debug)]
pub(crate) struct LocalRanks {
    /// For each world rank, its local rank or [`ELSEWHERE`].
    of: Vec<u32>,
    /// For each local rank, its world rank.
    ranks: Vec<u32>,
}

impl LocalRanks {
    /// All ranks of a job of `ranks` ranks, on one host.
    #[cfg(test)]
    pub(crate) fn all(ranks: usize) -> LocalRanks {
        let ranks: Vec<u32> = (0..ranks as u32).collect();
        LocalRanks {
            of: ranks.clone(),
            ranks,
        }
    }

    /// The world ranks `ranks`, in the order of their local ranks, of a job of `job` ranks.
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

    /// The number of ranks of the whole job.
    pub(crate) fn job(&self) -> usize {
        self.of.len()
    }

    /// The number of ranks on this host.
    pub(crate) fn count(&self) -> usize {
        self.ranks.len()
    }

    /// The local rank of a world rank. `None`: it is on another host.
    #[inline(always)]
    pub(crate) fn of(&self, rank: usize) -> Option<usize> {
        match self.of.get(rank) {
            Some(&place) if place != ELSEWHERE => Some(place as usize),
            _ => None,
        }
    }

    /// The world rank of a local rank. `None`: no rank has that local rank.
    pub(crate) fn rank(&self, place: usize) -> Option<usize> {
        self.ranks.get(place).map(|rank| *rank as usize)
    }
}
