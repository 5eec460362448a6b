//! The placements of the job on which an answer stays the same.

use crate::advice::Advice;
use crate::row::{EQUAL, Row};

impl Advice {
    /// Counts the placements on which the answer stays the same.
    pub(crate) fn count_placements(&mut self, rows: &[Row]) {
        let here = || rows.iter().filter(|row| row.ranks == self.ranks);
        let count = here().map(|row| row.placed.len()).max().unwrap_or(0);
        let Some(best) = self.best().filter(|_| count > 1) else {
            return;
        };
        let holds = |at: &usize| {
            let values = here().filter_map(|row| {
                let value = row.value_placed(self.value(row)?, *at)?;
                Some((row.machine, value))
            });
            let values: Vec<(usize, f64)> = values.collect();
            let least = values.iter().map(|of| of.1).fold(f64::INFINITY, f64::min);
            let is_good = |machine: usize| {
                let mut values = values.iter();
                values.any(|of| of.0 == machine && of.1 <= least * (1.0 + EQUAL))
            };
            match self.rival {
                Some(_) => is_good(best),
                None => self.equals.iter().all(|machine| is_good(*machine)),
            }
        };
        let held = (0..count).filter(holds).count();
        self.placements = Some((held, count));
        let vary = |row: &Row| row.placed.iter().any(|run| run.draw.variation.is_some());
        self.nodes_vary = here().any(vary);
    }

    /// True if the answer is another one with some placement.
    pub(crate) fn depends_on_placement(&self) -> bool {
        self.placements.is_some_and(|(held, all)| held < all)
    }

    /// The sentence about the placements; empty if there is one.
    pub(crate) fn placements_sentence(&self) -> String {
        let what = match self.nodes_vary {
            true => "draws of nodes that vary",
            false => "random placements",
        };
        match self.placements {
            None => String::new(),
            Some((held, all)) if held == all => format!(" It holds on all {all} {what}."),
            Some((held, all)) => format!(" It holds on {held} of {all} {what}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::placement::{Placement, PlacementRule};
    use profile::Summary;

    use super::*;
    use crate::Request;
    use crate::placements::{Draw, PlacedRun};
    use crate::plan::tests::request;

    /// Rows of two machines with these compared times on three placements.
    fn rows(request: &Request, seconds: [[f64; 3]; 2]) -> Vec<Row> {
        let run = |(seed, seconds): (u64, &f64)| PlacedRun {
            draw: Draw {
                placement: Placement::Rule(PlacementRule::Random, seed),
                variation: None,
            },
            summary: Summary::default(),
            value: Some(*seconds),
        };
        let rows = seconds.iter().enumerate().map(|(machine, seconds)| Row {
            value: Some(seconds[1]),
            placed: (1..).zip(seconds).map(run).collect(),
            ..Row::new(request, machine, 8, Ok(Summary::default()))
        });
        rows.collect()
    }

    #[test]
    fn an_answer_holds_on_the_placements_with_the_same_best_machine() {
        let request = request(&["qdr", "edr"], &[8]);
        let held = |seconds: [[f64; 3]; 2]| {
            let rows = rows(&request, seconds);
            let mut advice = Advice::of(&rows, &request.machines);
            advice.count_placements(&rows);
            advice.placements
        };
        assert_eq!(held([[2.0, 3.0, 4.0], [1.0, 1.5, 2.0]]), Some((3, 3)));
        assert_eq!(held([[2.0, 3.0, 1.9], [1.0, 1.5, 2.0]]), Some((2, 3)));
        // Equal machines have to stay equal.
        assert_eq!(held([[1.0, 1.0, 1.0], [1.0, 1.0, 1.1]]), Some((2, 3)));
    }
}
