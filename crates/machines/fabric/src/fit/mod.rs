//! The fit of a machine to figures that were measured on it: a few values of the catalogue that no
//! document states are moved so that the predictions approach the figures.
//!
//! A value moves, alone or together with others of its host, inside stated bounds, through a
//! transform: the logarithm of a time or rate within a factor, a share within an interval. The
//! catalogue's value is the centre of a prior, so a value that the figures do not determine stays
//! as it is. The search is Gauss-Newton with finite differences. Predictions come from a simulator
//! and are piecewise constant, so a difference covers several percent.
//!
//! Invariant: equal inputs give equal results. There are no random numbers, and of equal values the
//! first one of the catalogue is selected.

mod free;
mod linear;

pub use free::{FreeValue, Movement, movements};

use linear::solve;

/// The greatest number of values that one fit changes.
pub const MOST: usize = 6;
/// The greatest number of steps in the search of a fit.
const STEPS: usize = 6;
/// The least reduction of the objective that justifies to move a further value.
const WORTH: f64 = 0.5;
/// The number of standard deviations beyond which a residual counts linearly: the model may be
/// unable to explain a figure, and that must not distort all others.
const HUBER: f64 = 3.0;

/// A measured figure to which a machine is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The measured figure.
    pub value: f64,
    /// The standard deviation of the figure, as a share of it: that of the measurement and of the
    /// model.
    pub deviation: f64,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The movements of the result: their indices in the list, and their coordinates.
    pub moved: Vec<(usize, f64)>,
    /// The prediction of each figure with the catalogue's values.
    pub before: Vec<f64>,
    /// The prediction of each figure with the fitted values.
    pub after: Vec<f64>,
    /// For each figure, its prediction if the values are determined by the other figures alone.
    pub left_out: Vec<f64>,
}

/// Movements by their indices in the list, with their coordinates. All other movements are at 0.
pub type Coordinates = Vec<(usize, f64)>;

/// Fits a machine to `figures` by moving it along some of the movements `free`. `predict` returns
/// the predictions of all figures for each of several sets of coordinates.
pub fn fit<E>(
    free: &[Movement],
    figures: &[Observation],
    mut predict: impl FnMut(&[Coordinates]) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Fitted, E> {
    // The catalogue's values, and then each movement alone one step away from them.
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

/// The change of each prediction's logarithm, divided by the change of the coordinate.
fn differences(from: &[f64], to: &[f64], step: f64) -> Vec<f64> {
    let pairs = from.iter().zip(to);
    pairs.map(|(from, to)| (to / from).ln() / step).collect()
}

/// The movements that explain the figures best, by their indices in `free`, the best first.
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

/// The logarithm of each measured figure divided by its prediction.
fn residuals(figures: &[Observation], found: &[f64]) -> Vec<f64> {
    let pairs = figures.iter().zip(found);
    pairs.map(|(one, found)| (one.value / found).ln()).collect()
}

/// The cost of residuals: quadratic up to [`HUBER`] standard deviations, and linear beyond.
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

/// The Gauss-Newton step from the coordinates `at`, with weights that make squares of the linear
/// parts of [`cost`]. `without`: the number of a figure to leave out.
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

/// The state of the search of a fit.
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

    /// Makes one step. Returns whether the objective became smaller by more than 1 %.
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
        // The slopes depend on the coordinates.
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

    /// For each figure, its prediction from values that are fitted to the other figures alone. The
    /// fit takes one step of the solver from the values for all figures.
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
