//! The times that the ranks of a recorded run have measured, over all ranks.

use std::collections::HashMap;

use trace::{Measured, Trace};

/// The times of a recorded run.
pub(crate) struct Times<'a> {
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
        (!ranks.is_empty()).then_some(Times { ranks, inside })
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
        all as f64 * 1e-9 / self.ranks.len() as f64
    }
}
