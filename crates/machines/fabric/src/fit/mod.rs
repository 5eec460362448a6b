//! Fits a machine to figures that were measured on it: a few values of the catalogue that no
//! document states move towards what the figures say.
//!
//! A value moves, alone or with others of its host, inside stated bounds, by a transform: its
//! logarithm within a factor, a share within an interval. The catalogue's value is the centre of a
//! prior, so that a value which the figures do not determine stays as it is. The search is that of
//! Gauss and Newton with finite differences. Predictions come from a simulator and are constant in
//! pieces, so a difference is taken over several percent.
//!
//! Invariant: equal inputs give equal results. No random numbers, and ties fall to the first value
//! of the catalogue.

mod free;
mod linear;

pub use free::{FreeValue, Movement, movements};

use linear::solve;

/// Most values that are moved.
pub const MOST: usize = 6;
/// Steps of the search.
const STEPS: usize = 6;
/// A reduction of the objective below this is no reason to move a further value.
const WORTH: f64 = 0.5;
/// Residuals beyond this many standard deviations count linearly: the model may be unable to
/// explain a figure, and that must not bend all others.
const HUBER: f64 = 3.0;

/// A measured figure of the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The figure.
    pub value: f64,
    /// Its standard deviation, as a share: that of measurements, and of the model.
    pub deviation: f64,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Movements of the result: their places in the list, and their coordinates.
    pub moved: Vec<(usize, f64)>,
    /// Predictions with the catalogue's values.
    pub before: Vec<f64>,
    /// Predictions with the moved values.
    pub after: Vec<f64>,
    /// For each figure, its prediction if the others alone determine the values.
    pub left_out: Vec<f64>,
}

/// Coordinates of movements: their places and positions. Movements that are not named stay.
pub type Coordinates = Vec<(usize, f64)>;

/// Fits a machine to figures by its movements `free`. `predict` gives the predictions of all
/// figures for each of several coordinates.
pub fn fit<E>(
    free: &[Movement],
    figures: &[Observation],
    mut predict: impl FnMut(&[Coordinates]) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Fitted, E> {
    // The catalogue's values, and each movement alone a step away from them.
    let mut trials = vec![Coordinates::new()];
    trials.extend(
        free.iter()
            .enumerate()
            .map(|(at, one)| vec![(at, one.step())]),
    );
    let found = predict(&trials)?;
    let (before, slopes) = found.split_first().expect("as many predictions as trials");
    let slopes: Vec<Vec<f64>> = free
        .iter()
        .zip(slopes)
        .map(|(one, moved)| differences(before, moved, one.step()))
        .collect();
    let chosen = choose(free, figures, before, &slopes);
    let mut problem = Problem {
        free,
        figures,
        at: chosen.iter().map(|at| (*at, 0.0)).collect(),
        found: before.clone(),
        slopes: chosen.iter().map(|at| slopes[*at].clone()).collect(),
    };
    for _ in 0..STEPS {
        if !problem.advance(&mut predict)? {
            break;
        }
    }
    let left_out = problem.left_out(&mut predict)?;
    Ok(Fitted {
        moved: problem.at.clone(),
        before: before.clone(),
        after: problem.found,
        left_out,
    })
}

/// The change of each prediction's logarithm by the change of a coordinate.
fn differences(from: &[f64], to: &[f64], step: f64) -> Vec<f64> {
    let pairs = from.iter().zip(to);
    pairs.map(|(from, to)| (to / from).ln() / step).collect()
}

/// The values whose movement explains most, the best first.
fn choose(
    free: &[Movement],
    figures: &[Observation],
    found: &[f64],
    slopes: &[Vec<f64>],
) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    let residuals = residuals(figures, found);
    let objective = |places: &[usize]| {
        let own: Vec<&[f64]> = places.iter().map(|at| slopes[*at].as_slice()).collect();
        let zero = vec![0.0; places.len()];
        let free: Vec<&Movement> = places.iter().map(|at| &free[*at]).collect();
        let moved = step_of(&free, figures, &residuals, &own, &zero, None);
        let predicted: Vec<f64> = (0..figures.len())
            .map(|row| {
                let shift: f64 = own
                    .iter()
                    .zip(&moved)
                    .map(|(slope, by)| slope[row] * by)
                    .sum();
                residuals[row] - shift
            })
            .collect();
        cost(figures, &predicted)
            + moved
                .iter()
                .zip(&free)
                .map(|(by, one)| one.penalty(*by))
                .sum::<f64>()
    };
    let mut least = objective(&[]);
    loop {
        let mut best: Option<(usize, f64)> = None;
        let values: usize = chosen.iter().map(|at| free[*at].values.len()).sum();
        let fits = |at: &usize| {
            let is_new = chosen
                .iter()
                .all(|other| !free[*other].shares_with(&free[*at]));
            is_new && values + free[*at].values.len() <= MOST
        };
        for at in (0..free.len()).filter(fits) {
            if slopes[at]
                .iter()
                .all(|slope| slope.abs() < 1e-9 || !slope.is_finite())
            {
                continue;
            }
            let with = [chosen.as_slice(), &[at]].concat();
            let reached = objective(&with);
            if best.is_none_or(|(_, best)| reached < best - 1e-9) {
                best = Some((at, reached));
            }
        }
        match best {
            Some((at, reached)) if reached < least - WORTH => {
                chosen.push(at);
                least = reached;
            }
            _ => break,
        }
    }
    chosen
}

/// The logarithms of measured over predicted figures.
fn residuals(figures: &[Observation], found: &[f64]) -> Vec<f64> {
    let pairs = figures.iter().zip(found);
    pairs.map(|(one, found)| (one.value / found).ln()).collect()
}

/// The cost of residuals: squares, and lines beyond [`HUBER`].
fn cost(figures: &[Observation], residuals: &[f64]) -> f64 {
    let pairs = figures.iter().zip(residuals);
    let own = pairs.map(|(one, residual)| {
        let size = (residual / one.deviation).abs();
        match size <= HUBER {
            true => size * size,
            false => HUBER * (2.0 * size - HUBER),
        }
    });
    own.sum()
}

/// The step of Gauss and Newton from `at`, with weights that make squares of the lines of [`cost`].
/// `without`: a figure that does not count.
fn step_of(
    free: &[&Movement],
    figures: &[Observation],
    residuals: &[f64],
    slopes: &[&[f64]],
    at: &[f64],
    without: Option<usize>,
) -> Vec<f64> {
    let count = free.len();
    let mut matrix = vec![vec![0.0; count]; count];
    let mut right = vec![0.0; count];
    for (row, (one, residual)) in figures.iter().zip(residuals).enumerate() {
        if without == Some(row) {
            continue;
        }
        let size = (residual / one.deviation).abs();
        let weight = (HUBER / size).min(1.0) / (one.deviation * one.deviation);
        for line in 0..count {
            right[line] += weight * slopes[line][row] * residual;
            for column in 0..count {
                matrix[line][column] += weight * slopes[line][row] * slopes[column][row];
            }
        }
    }
    for (line, one) in free.iter().enumerate() {
        let weight = one.weight();
        matrix[line][line] += weight;
        right[line] -= weight * at[line];
    }
    let step = solve(matrix, right);
    step.iter().map(|by| by.clamp(-1.0, 1.0)).collect()
}

/// The state of a search.
struct Problem<'a> {
    free: &'a [Movement],
    figures: &'a [Observation],
    at: Coordinates,
    found: Vec<f64>,
    slopes: Vec<Vec<f64>>,
}

impl Problem<'_> {
    fn own(&self) -> Vec<&Movement> {
        self.at.iter().map(|(at, _)| &self.free[*at]).collect()
    }

    fn objective(&self, at: &Coordinates, found: &[f64]) -> f64 {
        let prior = at.iter().map(|(place, at)| self.free[*place].penalty(*at));
        cost(self.figures, &residuals(self.figures, found)) + prior.sum::<f64>()
    }

    fn step(&self, without: Option<usize>) -> Vec<f64> {
        let slopes: Vec<&[f64]> = self.slopes.iter().map(Vec::as_slice).collect();
        let at: Vec<f64> = self.at.iter().map(|(_, at)| *at).collect();
        let residuals = residuals(self.figures, &self.found);
        step_of(&self.own(), self.figures, &residuals, &slopes, &at, without)
    }

    fn moved(&self, by: &[f64], share: f64) -> Coordinates {
        let pairs = self.at.iter().zip(by);
        pairs
            .map(|((place, at), by)| (*place, at + by * share))
            .collect()
    }

    /// Goes one step, and returns whether the objective became smaller by 1 % or more.
    fn advance<E>(
        &mut self,
        predict: &mut impl FnMut(&[Coordinates]) -> Result<Vec<Vec<f64>>, E>,
    ) -> Result<bool, E> {
        if self.at.is_empty() {
            return Ok(false);
        }
        let by = self.step(None);
        let trials: Vec<Coordinates> = [1.0, 0.5, 0.25].map(|share| self.moved(&by, share)).into();
        let found = predict(&trials)?;
        let before = self.objective(&self.at, &self.found);
        let reached = trials
            .into_iter()
            .zip(found)
            .map(|(at, found)| (self.objective(&at, &found), at, found));
        let best = reached.min_by(|one, other| one.0.total_cmp(&other.0));
        let Some((objective, at, found)) = best.filter(|best| best.0 < before) else {
            return Ok(false);
        };
        (self.at, self.found) = (at, found);
        // The slopes change with the place.
        let trials: Vec<Coordinates> = (0..self.at.len())
            .map(|which| {
                let mut at = self.at.clone();
                at[which].1 += self.free[at[which].0].step();
                at
            })
            .collect();
        let moved = predict(&trials)?;
        self.slopes = self
            .at
            .iter()
            .zip(&moved)
            .map(|((place, _), moved)| differences(&self.found, moved, self.free[*place].step()))
            .collect();
        Ok(objective < 0.99 * before)
    }

    /// Predictions of each figure from values that the others determine: one step from the result.
    fn left_out<E>(
        &self,
        predict: &mut impl FnMut(&[Coordinates]) -> Result<Vec<Vec<f64>>, E>,
    ) -> Result<Vec<f64>, E> {
        let rows = 0..self.figures.len();
        let trials: Vec<Coordinates> = rows
            .map(|row| self.moved(&self.step(Some(row)), 1.0))
            .collect();
        let found = predict(&trials)?;
        Ok(found
            .iter()
            .enumerate()
            .map(|(row, found)| found[row])
            .collect())
    }
}

#[cfg(test)]
mod tests;
