//! Effects of real machines that a modelled machine omitted in a run. The user is informed of them.

use crate::read::RankRecord;

/// The effects of real machines that a modelled machine omitted in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct LeftOut {
    /// Bytes that the ranks have read from files through MPI in no virtual time: the machine has no
    /// storage.
    pub free_bytes_read: u64,
    /// Bytes that the ranks have written to files through MPI in no virtual time.
    pub free_bytes_written: u64,
    /// True if a rank requested MPI_THREAD_MULTIPLE, and got MPI_THREAD_SERIALIZED.
    pub lacks_threads: bool,
    /// The reason why the program's own clocks show the time of this computer instead of virtual
    /// time.
    pub real_clocks: Option<String>,
}

impl LeftOut {
    /// The effects that the ranks have recorded as left out.
    pub(crate) fn of(records: &[RankRecord], real_clocks: Option<String>) -> LeftOut {
        let sum = |bytes: fn(&RankRecord) -> u64| {
            let all = records.iter().map(bytes);
            all.fold(0, u64::saturating_add)
        };
        LeftOut {
            free_bytes_read: sum(|record| record.free_files.0),
            free_bytes_written: sum(|record| record.free_files.1),
            lacks_threads: records.iter().any(|record| record.lacks_threads),
            real_clocks,
        }
    }

    /// Joins the omissions of two runs; of numbers of bytes it keeps the greater.
    pub fn or_more(self, other: &LeftOut) -> LeftOut {
        LeftOut {
            free_bytes_read: self.free_bytes_read.max(other.free_bytes_read),
            free_bytes_written: self.free_bytes_written.max(other.free_bytes_written),
            lacks_threads: self.lacks_threads || other.lacks_threads,
            real_clocks: self.real_clocks.or_else(|| other.real_clocks.clone()),
        }
    }

    /// The effects that depend on the run of the program itself, and not on what it moves.
    pub fn of_program(&self) -> LeftOut {
        LeftOut {
            free_bytes_read: 0,
            free_bytes_written: 0,
            ..self.clone()
        }
    }

    /// True if no effect is known to be left out.
    pub fn is_empty(&self) -> bool {
        *self == LeftOut::default()
    }

    /// A sentence about each effect that is left out. `no_storage` is the clause that says which
    /// machines have no storage.
    pub fn sentences(&self, no_storage: &str) -> Vec<String> {
        let written = (self.free_bytes_written, "wrote", "to files");
        let read = (self.free_bytes_read, "read", "from files");
        let moved = [written, read].into_iter().filter(|(bytes, ..)| *bytes > 0);
        let moved = moved.map(|(bytes, did, files)| format!("{did} {} {files}", amount(bytes)));
        let moved: Vec<String> = moved.collect();
        let mut sentences = Vec::new();
        if !moved.is_empty() {
            let moved = moved.join(" and ");
            sentences.push(format!(
                "The program {moved}, which takes no time: {no_storage}."
            ));
        }
        if self.lacks_threads {
            sentences.push(
                "The program asked for MPI_THREAD_MULTIPLE; modelled machines grant MPI_THREAD_SERIALIZED."
                    .into(),
            );
        }
        if let Some(reason) = &self.real_clocks {
            sentences.push(format!(
                "The program's own clocks show this computer's time: {reason}."
            ));
        }
        sentences
    }
}

/// A number of bytes in decimal units, as for storage devices.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..10_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.0} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_left_out_needs_no_sentence() {
        let left_out = LeftOut::of(&[RankRecord::default()], None);
        assert!(left_out.is_empty() && left_out.sentences("").is_empty());
    }

    #[test]
    fn files_are_summed_over_ranks() {
        let rank = |read, written| RankRecord {
            free_files: (read, written),
            ..RankRecord::default()
        };
        let left_out = LeftOut::of(&[rank(0, 30_000_000), rank(900, 10_400_000)], None);
        let says = left_out.sentences("no machine has a storage");
        assert_eq!(
            says,
            [
                "The program wrote 40 MB to files and read 900 B from files, which takes no time: no machine has a storage."
            ]
        );
    }

    #[test]
    fn threads_and_clocks_have_a_sentence_each() {
        let asked = RankRecord {
            lacks_threads: true,
            ..RankRecord::default()
        };
        let says = LeftOut::of(&[asked], Some("./a is written in Go".into())).sentences("");
        assert!(says[0].contains("MPI_THREAD_SERIALIZED"), "{says:?}");
        assert!(says[1].ends_with("time: ./a is written in Go."), "{says:?}");
    }
}
