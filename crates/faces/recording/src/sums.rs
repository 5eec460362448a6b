//! The times in calls, summed by procedure, communicator and phase of the program.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use trace::Inside;

/// A procedure, and the rank's number of the communicator of its calls, if they have one.
type Kind = (&'static str, Option<i64>);
/// The number of calls, and the ticks in them.
type Sum = (u64, u64);

/// The sums of the calls of a rank.
#[derive(Default)]
pub(crate) struct Sums {
    /// The kinds of calls, with their numbers.
    kinds: FxHashMap<Kind, u32>,
    /// The kind of each call in the part, by the call's number.
    of_call: Vec<u32>,
    /// The sum of each kind in this phase.
    sums: Vec<Sum>,
    /// The level of the last call of MPI_Pcontrol.
    phase: Option<i64>,
    /// The sums of earlier phases, by phase and kind.
    earlier: BTreeMap<(Option<i64>, u32), Sum>,
}

/// The mark of a call without a kind.
const NONE: u32 = u32::MAX;

impl Sums {
    /// Keeps what kind of call has this number in the part.
    pub(crate) fn know(&mut self, number: u64, kind: Kind) {
        let number = number as usize;
        if self.of_call.len() <= number {
            self.of_call.resize(number + 1, NONE);
        }
        if self.of_call[number] == NONE {
            let next = self.kinds.len() as u32;
            self.of_call[number] = *self.kinds.entry(kind).or_insert(next);
            self.sums.resize(self.kinds.len(), (0, 0));
        }
    }

    /// Adds a call of the part that has taken this number of ticks.
    pub(crate) fn add(&mut self, number: u64, ticks: u64) {
        let sum = &mut self.sums[self.of_call[number as usize] as usize];
        *sum = (sum.0 + 1, sum.1 + ticks);
    }

    /// Begins a phase of the program.
    pub(crate) fn begin(&mut self, phase: i64) {
        self.end_phase();
        self.phase = Some(phase);
    }

    fn end_phase(&mut self) {
        let used = self.sums.iter_mut().enumerate().filter(|of| of.1.0 > 0);
        for (kind, sum) in used {
            let earlier = self.earlier.entry((self.phase, kind as u32)).or_default();
            *earlier = (earlier.0 + sum.0, earlier.1 + sum.1);
            *sum = (0, 0);
        }
    }

    /// The sums of all phases so far. `nanos` turns ticks into nanoseconds.
    pub(crate) fn all(&mut self, nanos: impl Fn(u64) -> u64) -> Vec<Inside> {
        self.end_phase();
        let mut kinds = vec![("", None); self.kinds.len()];
        for (kind, number) in &self.kinds {
            kinds[*number as usize] = *kind;
        }
        let all = self
            .earlier
            .iter()
            .map(|(&(phase, kind), &(calls, ticks))| {
                let (procedure, comm) = kinds[kind as usize];
                Inside {
                    procedure: procedure.into(),
                    comm,
                    phase,
                    calls,
                    nanos: nanos(ticks),
                }
            });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_by_procedure_communicator_and_phase() {
        let mut sums = Sums::default();
        let known = [
            (8, ("MPI_Send", Some(257))),
            (9, ("MPI_Wait", None)),
            (10, ("MPI_Send", Some(4096))),
            (11, ("MPI_Send", Some(257))),
        ];
        for (number, kind) in known {
            sums.know(number, kind);
        }
        sums.add(8, 1);
        sums.add(9, 20);
        sums.begin(2);
        sums.add(8, 300);
        sums.add(11, 4000);
        sums.begin(1);
        sums.begin(2);
        sums.add(10, 50_000);
        sums.add(8, 600_000);
        let all = sums.all(|ticks| 2 * ticks);
        let all = all.iter().map(|one| {
            let name = one.procedure.as_str();
            (name, one.comm, one.phase, one.calls, one.nanos)
        });
        let wanted = [
            ("MPI_Send", Some(257), None, 1, 2),
            ("MPI_Wait", None, None, 1, 40),
            ("MPI_Send", Some(257), Some(2), 3, 1_208_600),
            ("MPI_Send", Some(4096), Some(2), 1, 100_000),
        ];
        assert_eq!(all.collect::<Vec<_>>(), wanted);
    }
}
