//! The times that the ranks of a recorded run have measured, over all ranks.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde_json::{Value, json};
use trace::{Inside, Measured, Trace};

/// The calls of all ranks of one group, such as those in one communicator, and their nanoseconds.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    nanos: u64,
}

/// The sums of groups of calls, with the names of the groups.
type Sums = Vec<(String, Sum)>;

/// The predefined communicators by their numbers in a trace.
const PREDEFINED: [(i64, &str); 2] = [
    (trace::WORLD, "MPI_COMM_WORLD"),
    (trace::SELF, "MPI_COMM_SELF"),
];

/// The times of a recorded run.
pub(crate) struct Times<'a> {
    trace: &'a Trace,
    ranks: Vec<&'a Measured>,
    /// The nanoseconds in the calls of each procedure, of all ranks.
    inside: HashMap<&'a str, u64>,
}

impl<'a> Times<'a> {
    /// The times in a trace. `None`: its ranks have measured none.
    pub(crate) fn of(trace: &'a Trace) -> Option<Times<'a>> {
        let ranks = trace.ranks.iter().filter_map(|rank| rank.measured.as_ref());
        let ranks: Vec<&Measured> = ranks.collect();
        let mut inside = HashMap::new();
        for one in ranks.iter().flat_map(|rank| &rank.inside) {
            let sum: &mut u64 = inside.entry(one.procedure.as_str()).or_default();
            *sum = sum.saturating_add(one.nanos);
        }
        (!ranks.is_empty()).then_some(Times {
            trace,
            ranks,
            inside,
        })
    }

    /// The longest time of a rank from MPI_Init to MPI_Finalize, in seconds.
    pub(crate) fn elapsed(&self) -> f64 {
        let all = self.ranks.iter().map(|rank| rank.elapsed);
        all.max().unwrap_or(0) as f64 * 1e-9
    }

    /// The mean time of a rank outside MPI, in seconds.
    pub(crate) fn outside(&self) -> f64 {
        let all = self.ranks.iter().map(|rank| rank.outside as f64);
        all.sum::<f64>() * 1e-9 / self.ranks.len() as f64
    }

    /// The mean time of a rank in the calls of a procedure, in seconds.
    pub(crate) fn inside(&self, procedure: &str) -> f64 {
        let all = self.inside.get(procedure).copied().unwrap_or(0);
        self.seconds(all)
    }

    /// The part of each rank, in seconds, of a sum of nanoseconds of all ranks.
    fn seconds(&self, nanos: u64) -> f64 {
        nanos as f64 * 1e-9 / self.ranks.len() as f64
    }

    /// The sums of groups of calls. `group`: the group of some calls of a rank, as a key by which
    /// groups are sorted, and its name.
    fn groups<K: Ord>(&self, group: impl Fn(usize, &Inside) -> (K, String)) -> Sums {
        let mut sums: BTreeMap<(K, String), Sum> = BTreeMap::new();
        for (rank, calls) in self.trace.ranks.iter().enumerate() {
            for one in calls.measured.iter().flat_map(|times| &times.inside) {
                let sum = sums.entry(group(rank, one)).or_default();
                sum.calls = sum.calls.saturating_add(one.calls);
                sum.nanos = sum.nanos.saturating_add(one.nanos);
            }
        }
        sums.into_iter()
            .map(|((_, name), sum)| (name, sum))
            .collect()
    }

    /// The sums by communicators: the predefined ones, those of each other size, and the calls that
    /// have none.
    fn by_comm(&self) -> Sums {
        let all = self.ranks.iter().flat_map(|rank| &rank.inside);
        let is_made = |comm: i64| PREDEFINED.iter().all(|known| known.0 != comm);
        let made = all.filter_map(|one| one.comm).any(is_made);
        let sizes = made.then(|| trace::comm_sizes(self.trace).ok()).flatten();
        self.groups(|rank, one| {
            let Some(comm) = one.comm else {
                return ((3, 0), "without a communicator".into());
            };
            if let Some((number, name)) = PREDEFINED.iter().find(|known| known.0 == comm) {
                return ((0, *number), (*name).into());
            }
            let size = sizes.as_ref().and_then(|sizes| sizes[rank].get(&comm));
            match size {
                Some(size) => (
                    (1, -(*size as i64)),
                    format!("communicators of {size} ranks"),
                ),
                None => ((2, 0), "communicators of unknown size".into()),
            }
        })
    }

    /// The sums by phases of the program.
    fn by_phase(&self) -> Sums {
        self.groups(|_, one| match one.phase {
            None => (None, "before any MPI_Pcontrol".into()),
            Some(level) => (Some(level), format!("MPI_Pcontrol({level})")),
        })
    }

    /// The sums as lines, by communicators and by phases, where there are several.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        for (title, sums) in [
            ("by communicator", self.by_comm()),
            ("by phase", self.by_phase()),
        ] {
            if sums.len() < 2 {
                continue;
            }
            let _ = writeln!(text, "  inside MPI     {title}");
            for (name, sum) in sums {
                let seconds = crate::summary::duration(self.seconds(sum.nanos));
                let _ = writeln!(
                    text,
                    "    {name:<28} {:>12}  {seconds:>8} a rank",
                    sum.calls
                );
            }
        }
        text
    }

    /// The sums by communicators and by phases.
    pub(crate) fn json(&self) -> [(&'static str, Value); 2] {
        let rows = |sums: Sums| {
            let rows = sums.into_iter().map(|(name, sum)| {
                json!({"name": name, "calls": sum.calls, "inside_s_per_rank": self.seconds(sum.nanos)})
            });
            Value::Array(rows.collect())
        };
        [
            ("communicators", rows(self.by_comm())),
            ("phases", rows(self.by_phase())),
        ]
    }
}
