//! Which ranks of a job share one memory, and where in it each has its place.

/// Ranks elsewhere have no place.
const ELSEWHERE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub struct LocalRanks {
    /// The place of each rank of the job.
    of: Vec<u32>,
    /// The rank at each place, in order.
    ranks: Vec<u32>,
}

impl LocalRanks {
    /// All ranks of a job of so many.
    pub fn all(ranks: usize) -> LocalRanks {
        let ranks: Vec<u32> = (0..ranks as u32).collect();
        LocalRanks {
            of: ranks.clone(),
            ranks,
        }
    }

    /// Some ranks of a job of so many, in order.
    pub fn some(ranks: impl Iterator<Item = usize>, job: usize) -> LocalRanks {
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

    /// Ranks of the job, here or elsewhere.
    pub fn job(&self) -> usize {
        self.of.len()
    }

    /// Ranks here.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// The place of a rank of the job, if it is here.
    #[inline(always)]
    pub fn of(&self, rank: usize) -> Option<usize> {
        match self.of.get(rank) {
            Some(&place) if place != ELSEWHERE => Some(place as usize),
            _ => None,
        }
    }

    /// The rank at a place, if the place exists.
    pub fn rank(&self, place: usize) -> Option<usize> {
        self.ranks.get(place).map(|rank| *rank as usize)
    }
}
