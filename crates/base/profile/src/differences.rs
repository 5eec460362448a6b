//! The differences between the MPI calls of a program in the replay of a compute trace and those in
//! its recording. They occur in programs whose calls depend on time.

use crate::read::RankRecord;
use crate::summary::{RankTimes, SECOND};

/// The computing that the replay of a compute trace had to add or to omit, because ranks made other
/// MPI calls than in the recording.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Differences {
    /// The computing that the replay charged before calls that are not in the recording, summed
    /// over all ranks, in seconds.
    pub invented_s: f64,
    /// The recorded computing that the replay omitted, summed over all ranks, in seconds.
    pub left_out_s: f64,
    /// The greater of `invented_s` and `left_out_s`, as a share of the recorded computing of all
    /// ranks.
    pub share: f64,
    /// The rank with the greatest sum of added and omitted computing.
    pub rank: usize,
    /// A description of the first call of that rank that differs.
    pub first: String,
}

impl Differences {
    /// The differences that the ranks have recorded. `None` if all of them made the recorded calls.
    pub(crate) fn of(records: &[RankRecord], times: &[RankTimes]) -> Option<Differences> {
        let ranks = records.iter().enumerate();
        let differing =
            ranks.filter_map(|(rank, record)| Some((rank, record.differences.as_ref()?)));
        let differing: Vec<_> = differing.collect();
        let most = differing.iter().rev();
        let (rank, (.., first)) =
            most.max_by_key(|(_, (one, other, _))| one.saturating_add(*other))?;
        let sum = |of: fn(&(u64, u64, String)) -> u64| {
            let picos = differing.iter().map(|(_, found)| of(found) as f64);
            picos.sum::<f64>() / SECOND
        };
        let (invented_s, left_out_s) = (sum(|found| found.0), sum(|found| found.1));
        let computed: f64 = times.iter().map(|rank| rank.compute_s).sum();
        let recorded = computed - invented_s + left_out_s;
        let most = invented_s.max(left_out_s);
        Some(Differences {
            invented_s,
            left_out_s,
            share: if most > 0.0 {
                most / recorded.max(most)
            } else {
                0.0
            },
            rank: *rank,
            first: first.clone(),
        })
    }

    /// A description of the first call that differs from the recording, with its rank.
    pub fn reason(&self) -> String {
        format!("rank {}: {}", self.rank, self.first)
    }

    /// The differences from the recording as a sentence for the user.
    pub fn sentence(&self) -> String {
        format!(
            "The program decides by time, and made other calls than in the recording: {:.1} % of the recorded computing \
             was left out, and {:.1} % was invented ({}).",
            self.percent(self.left_out_s),
            self.percent(self.invented_s),
            self.reason()
        )
    }

    fn percent(&self, seconds: f64) -> f64 {
        match self.invented_s.max(self.left_out_s) {
            0.0 => 0.0,
            most => seconds / most * self.share * 100.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_that_differs_most_gives_the_reason() {
        let record = |differences| RankRecord {
            differences,
            ..RankRecord::default()
        };
        let of = |invented, left_out, first: &str| Some((invented, left_out, first.to_owned()));
        let second = SECOND as u64;
        let records = [
            record(None),
            record(of(
                second,
                0,
                "its call 4 is MPI_Send, and MPI_Recv was recorded there",
            )),
            record(of(
                0,
                2 * second,
                "its call 7 is MPI_Bcast, and MPI_Recv was recorded there",
            )),
        ];
        let times = [5.0, 6.0, 28.0].map(|compute_s| RankTimes {
            compute_s,
            ..RankTimes::default()
        });
        let found = Differences::of(&records, &times).unwrap();
        assert_eq!(
            (found.invented_s, found.left_out_s, found.share),
            (1.0, 2.0, 0.05)
        );
        let says = found.sentence();
        let wanted = "5.0 % of the recorded computing was left out, and 2.5 % was invented (rank 2: its call 7 is MPI_Bcast";
        assert!(says.contains(wanted), "{says}");
        assert_eq!(Differences::of(&records[..1], &times), None);
    }
}
