//! Computes the time of a loop's iteration on a machine from a replay, and the time of a run with
//! any number of iterations.
//!
//! An iteration begins when its last rank begins it: the run ends with its last rank, and the times
//! from one such moment to the next add up to the time of the loop. (The mean over the ranks would
//! count the filling of a pipeline as a part of each iteration.)
//!
//! The time of the iterations of a class is a *median of means*: they are divided into consecutive
//! blocks, and the median of the blocks' means is used. A single event, such as a connection that
//! is made late, disturbs only one block; and if two protocols alternate, each block has both,
//! while a plain median would be the time of one of them. Classes are weighted by their frequency,
//! so rare steps that take longer contribute to the time of an iteration.
//!
//! There is no prediction if the first and the last third of the iterations differ: then the time
//! of further ones is unknown.

use std::fmt;

use results::stats::median;

use crate::main_loop::Loop;

/// The fewest iterations from which a time is computed.
pub const LEAST_COUNTED: usize = 3;
/// The greatest difference between the first and the last third of the iterations, as a share, with
/// which they count as equally long.
const STEADY: f64 = 0.05;

/// The moments at which iterations begin on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// The numbers of iterations, ascending; the last one is the number of all iterations and
    /// stands for the end of the last. Some may be left out, but then rare kinds of iterations have
    /// no time of their own.
    pub iterations: Vec<usize>,
    /// For each rank, the virtual time at which each of `iterations` begins, in seconds.
    pub ranks: Vec<Vec<f64>>,
}

/// The time of a run, divided into start, iterations and rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The time of the start, in seconds.
    pub start: f64,
    /// The time of an iteration, in seconds.
    pub iteration: f64,
    /// The time of the run without the start and without the iterations, in seconds.
    pub rest: f64,
    /// The number of iterations from which `iteration` was computed.
    pub counted: usize,
}

/// The reason why there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoPrediction {
    /// Too few iterations can be counted.
    TooFew {
        /// The number of iterations that can be counted.
        counted: usize,
    },
    /// The iterations get longer or shorter.
    Drift {
        /// The time of an iteration in the first third, in seconds.
        first: f64,
        /// The time of an iteration in the last third, in seconds.
        last: f64,
    },
}

impl fmt::Display for NoPrediction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            NoPrediction::TooFew { counted } => write!(
                f,
                "only {counted} iterations count, and a prediction needs {LEAST_COUNTED}; give the program more"
            ),
            NoPrediction::Drift { first, last } => {
                let change = (last / first - 1.0) * 100.0;
                let direction = if change > 0.0 { "longer" } else { "shorter" };
                write!(
                    f,
                    "iterations in the last third take {:.0} % {direction} than in the first, so the time of further ones is unknown",
                    change.abs()
                )
            }
        }
    }
}

impl std::error::Error for NoPrediction {}

impl Prediction {
    /// Divides the time of a run into start, iterations and rest. The run took `whole` seconds, and
    /// its start `start` seconds.
    pub fn of(
        found: &Loop,
        moments: &Moments,
        start: f64,
        whole: f64,
    ) -> Result<Prediction, NoPrediction> {
        let divided = Prediction::unchecked(found, moments, start, whole)?;
        check_drift(&steps(found, moments), &shares(found))?;
        Ok(divided)
    }

    /// Divides the time of a run like [`of`](Prediction::of), but also if iterations get longer or
    /// shorter: enough to compare runs with the same computing, for which no further iterations are
    /// predicted.
    pub fn unchecked(
        found: &Loop,
        moments: &Moments,
        start: f64,
        whole: f64,
    ) -> Result<Prediction, NoPrediction> {
        let steps = steps(found, moments);
        let counted = steps.iter().map(|step| step.iterations).sum();
        if counted < LEAST_COUNTED || steps.len() < LEAST_COUNTED {
            return Err(NoPrediction::TooFew { counted });
        }
        let iteration = expected(&steps, &shares(found));
        Ok(Prediction {
            start,
            iteration,
            rest: whole - start - iteration * found.iterations() as f64,
            counted,
        })
    }

    /// The time of a run with this number of iterations, in seconds. With the number of the
    /// recording it is the time of the recorded run.
    pub fn total(&self, iterations: usize) -> f64 {
        self.start + self.rest + self.iteration * iterations as f64
    }
}

/// The time between two successive moments of a run.
#[derive(Clone, Copy)]
struct Step {
    /// The class of the step's iteration; 0 if the step has several iterations.
    class: usize,
    iterations: usize,
    /// The mean time of an iteration in the step, in seconds.
    time: f64,
}

/// The steps from iteration [`Loop::counted`] on. If the last iteration is the only one of its
/// class, it is left out.
fn steps(found: &Loop, moments: &Moments) -> Vec<Step> {
    let begins = moments
        .iterations
        .iter()
        .enumerate()
        .map(|(at, iteration)| {
            let of_ranks = moments.ranks.iter().map(|times| times[at]);
            (*iteration, of_ranks.fold(f64::NEG_INFINITY, f64::max))
        });
    let begins: Vec<(usize, f64)> = begins
        .filter(|(iteration, _)| *iteration >= found.counted)
        .collect();
    let is_each = begins.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
    let step = |pair: &[(usize, f64)]| {
        let iterations = pair[1].0 - pair[0].0;
        Step {
            class: if is_each {
                found.class_of[pair[0].0]
            } else {
                0
            },
            iterations,
            time: (pair[1].1 - pair[0].1) / iterations as f64,
        }
    };
    let mut steps: Vec<Step> = begins.windows(2).map(step).collect();
    if is_each && ends_differently(found) {
        steps.pop();
    }
    steps
}

/// The most parts of the iterations that are left out in turn: as many as recordings.
const MOST_PARTS: usize = 9;
/// The fewest parts: with two there is no median.
const LEAST_PARTS: usize = 3;

/// The time of an iteration, in seconds, with a part of the successive iterations left out, for
/// each part. Empty: there are too few iterations.
pub(crate) fn without_parts(found: &Loop, moments: &Moments) -> Vec<f64> {
    let steps = steps(found, moments);
    let parts = MOST_PARTS.min(steps.len() / LEAST_COUNTED);
    if parts < LEAST_PARTS {
        return Vec::new();
    }
    let bound = |part: usize| part * steps.len() / parts;
    let left_out = |part: usize| {
        let kept = [&steps[..bound(part)], &steps[bound(part + 1)..]].concat();
        expected(&kept, &shares(found))
    };
    (0..parts).map(left_out).collect()
}

/// True if the last iteration is the only one of its class: it then includes calls of the program's
/// end, and further iterations do not take its time.
fn ends_differently(found: &Loop) -> bool {
    let last = found.class_of.last();
    last.is_some_and(|class| found.classes[*class].iterations == 1)
}

/// The share of each class among the iterations.
fn shares(found: &Loop) -> Vec<f64> {
    let all = found.iterations() as f64;
    let classes = found.classes.iter();
    classes.map(|class| class.iterations as f64 / all).collect()
}

/// The expected time of an iteration, in seconds: the time of each class in these steps, weighted
/// by the share of the class.
fn expected(steps: &[Step], shares: &[f64]) -> f64 {
    weighted(&times_of_classes(steps, shares.len()), shares)
}

/// The mean time of the classes that have a time, weighted by their shares.
fn weighted(times: &[Option<f64>], shares: &[f64]) -> f64 {
    let known = || {
        times
            .iter()
            .zip(shares)
            .filter_map(|(time, share)| Some(((*time)?, share)))
    };
    let sum: f64 = known().map(|(time, share)| time * share).sum();
    sum / known().map(|(_, share)| share).sum::<f64>()
}

/// The time of each class in these steps, in seconds; `None` for a class that does not occur in
/// them.
fn times_of_classes(steps: &[Step], classes: usize) -> Vec<Option<f64>> {
    let mut times = vec![Vec::new(); classes];
    for step in steps {
        times[step.class].push(step.time);
    }
    times.iter().map(|times| median_of_means(times)).collect()
}

/// The median of the means of consecutive blocks. There are about as many blocks as values in each.
fn median_of_means(times: &[f64]) -> Option<f64> {
    let size = times.len().isqrt();
    let mut blocks = times.chunks_exact(size.max(1));
    let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
    let mut means: Vec<f64> = blocks.by_ref().map(mean).collect();
    if means.len() < 3 && !blocks.remainder().is_empty() {
        means.push(mean(blocks.remainder()));
    }
    (!means.is_empty()).then(|| median(&means))
}

/// An error if the first and the last third of the steps differ: in the time of a class, or in the
/// frequency of classes.
fn check_drift(steps: &[Step], shares: &[f64]) -> Result<(), NoPrediction> {
    let third = steps.len() / 3;
    let thirds = [&steps[..third], &steps[steps.len() - third..]];
    let mut times = thirds.map(|steps| times_of_classes(steps, shares.len()));
    for class in 0..shares.len() {
        if times.iter().any(|times| times[class].is_none()) {
            times.iter_mut().for_each(|times| times[class] = None);
        }
    }
    let of_times = times.map(|times| weighted(&times, shares));
    let is_known = of_times.iter().all(|time| time.is_finite());
    let is_steady = |[first, last]: [f64; 2]| (last / first - 1.0).abs() <= STEADY;
    if is_known && !is_steady(of_times) {
        let [first, last] = of_times;
        return Err(NoPrediction::Drift { first, last });
    }
    // A difference of one iteration of a rare kind is due to chance, so it is allowed.
    let sums = thirds.map(|steps| steps.iter().map(|step| step.time).sum::<f64>());
    let longer = thirds[usize::from(sums[1] > sums[0])].iter();
    let longest = longer.map(|step| step.time).fold(0.0, f64::max);
    let more = (sums[1] - sums[0]).abs() - longest;
    match more > STEADY * sums[0].min(sums[1]) {
        true => {
            let [first, last] = sums.map(|sum| sum / third as f64);
            Err(NoPrediction::Drift { first, last })
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::main_loop::{By, Class};

    /// A loop whose iterations belong to these classes.
    fn of_classes(class_of: Vec<usize>) -> Loop {
        let most = class_of.iter().max().map_or(0, |most| most + 1);
        let class = |number| Class {
            representative: class_of.iter().position(|class| *class == number).unwrap(),
            iterations: class_of.iter().filter(|class| **class == number).count(),
        };
        Loop {
            by: By::Calls { any_size: false },
            boundaries: Vec::new(),
            counted: 1,
            classes: (0..most).map(class).collect(),
            class_of,
        }
    }

    /// The moments of two ranks for iterations that take these times; the second rank is always
    /// later.
    fn moments(times: &[f64]) -> Moments {
        let mut begin = 0.25;
        let mut begins = vec![begin];
        for time in times {
            begin += time;
            begins.push(begin);
        }
        let early = begins.iter().map(|begin| begin * 0.9).collect();
        Moments {
            iterations: (0..begins.len()).collect(),
            ranks: vec![early, begins],
        }
    }

    fn predicted(class_of: Vec<usize>, times: &[f64]) -> Result<Prediction, NoPrediction> {
        let whole = 0.25 + times.iter().sum::<f64>() + 0.125;
        Prediction::of(&of_classes(class_of), &moments(times), 0.2, whole)
    }

    fn is_about(value: f64, wanted: f64) -> bool {
        (value / wanted - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_run_is_its_start_its_iterations_and_the_rest() {
        // The first iteration takes longer, and is counted as rest.
        let mut times = vec![0.01; 100];
        times[0] = 0.03;
        let found = predicted(vec![0; 100], &times).unwrap();
        assert!(
            is_about(found.iteration, 0.01) && found.counted == 99,
            "{found:?}"
        );
        assert!(is_about(found.rest, 0.25 + 0.02 + 0.125 - 0.2), "{found:?}");
        assert!(is_about(found.total(100), 0.25 + 1.02 + 0.125));
        assert!(is_about(found.total(2000), 0.25 + 20.02 + 0.125));
    }

    #[test]
    fn rare_steps_count_as_often_as_they_come() {
        let class_of: Vec<usize> = (0..200).map(|step| usize::from(step % 20 == 19)).collect();
        let times: Vec<f64> = class_of.iter().map(|class| [0.01, 0.05][*class]).collect();
        let found = predicted(class_of, &times).unwrap();
        assert!(is_about(found.iteration, 0.012), "{found:?}");
    }

    #[test]
    fn an_end_of_its_own_class_belongs_to_the_rest() {
        let mut class_of = vec![0; 100];
        class_of[99] = 1;
        let mut times = vec![0.01; 100];
        times[99] = 3.0;
        let found = predicted(class_of, &times).unwrap();
        assert!(is_about(found.iteration, 0.01), "{found:?}");
        assert!(is_about(
            found.total(2000) - found.total(100),
            0.01 * 1900.0
        ));
        // If it belongs to the same class as others, it is counted with them.
        let found = predicted(vec![0; 100], &times).unwrap();
        assert_eq!(found.counted, 99);
    }

    #[test]
    fn alternating_steps_count_with_their_mean_and_one_event_does_not_count() {
        let mut times: Vec<f64> = (0..201).map(|step| [0.01, 0.03][step % 2]).collect();
        times[120] = 2.0;
        let found = predicted(vec![0; 201], &times).unwrap();
        assert!(is_about(found.iteration, 0.02), "{found:?}");
    }

    #[test]
    fn shrinking_steps_have_no_prediction() {
        // As the work of a matrix factorization by panels.
        let times: Vec<f64> = (0..60).map(|step| f64::from(60 - step).powi(2)).collect();
        let why = predicted(vec![0; 60], &times).unwrap_err();
        let text = why.to_string();
        assert!(matches!(why, NoPrediction::Drift { first, last } if first > 10.0 * last));
        assert!(text.contains("% shorter than in the first"), "{text}");
        let slightly: Vec<f64> = (0..60).map(|step| 1.0 + 0.0005 * f64::from(step)).collect();
        assert!(predicted(vec![0; 60], &slightly).is_ok());
        let more: Vec<f64> = (0..60).map(|step| 1.0 + 0.0015 * f64::from(step)).collect();
        assert!(predicted(vec![0; 60], &more).is_err());
    }

    #[test]
    fn long_steps_that_get_more_frequent_are_a_drift() {
        let is_long = |step: usize| usize::from(step.is_multiple_of(20 - step / 20));
        let class_of: Vec<usize> = (0..300).map(is_long).collect();
        let times: Vec<f64> = class_of.iter().map(|class| [0.01, 0.1][*class]).collect();
        assert!(matches!(
            predicted(class_of, &times),
            Err(NoPrediction::Drift { .. })
        ));
        // One rare iteration more or less is due to chance.
        let class_of: Vec<usize> = (0..100).map(|step| usize::from(step % 19 == 4)).collect();
        let times: Vec<f64> = class_of.iter().map(|class| [0.01, 0.05][*class]).collect();
        assert!(predicted(class_of, &times).is_ok());
    }

    #[test]
    fn parts_of_the_iterations_are_left_out_in_turn() {
        let parts = |times: &[f64]| {
            let found = of_classes(vec![0; times.len()]);
            without_parts(&found, &moments(times))
        };
        assert_eq!(parts(&[0.01; 9]), Vec::<f64>::new());
        assert_eq!(parts(&[0.01; 10]).len(), 3);
        let equal = parts(&[0.01; 101]);
        assert_eq!(equal.len(), 9);
        assert!(equal.iter().all(|time| is_about(*time, 0.01)), "{equal:?}");
        // Half of the iterations take longer, so each part that is left out changes the time.
        let halves: Vec<f64> = (0..101)
            .map(|step| if step < 51 { 0.01 } else { 0.02 })
            .collect();
        let halves = parts(&halves);
        assert!(halves[0] > halves[8], "{halves:?}");
    }

    #[test]
    fn few_iterations_have_no_prediction() {
        let why = predicted(vec![0; 3], &[1.0; 3]).unwrap_err();
        assert_eq!(why, NoPrediction::TooFew { counted: 2 });
        assert_eq!(
            why.to_string(),
            "only 2 iterations count, and a prediction needs 3; give the program more"
        );
        assert!(predicted(vec![0; 4], &[1.0; 4]).is_ok());
    }

    #[test]
    fn some_moments_may_be_left_out() {
        let times: Vec<f64> = (0..200)
            .map(|step| [0.01, 0.03][usize::from(step % 10 == 9)])
            .collect();
        let class_of = (0..200).map(|step| usize::from(step % 10 == 9)).collect();
        let all = moments(&times);
        let some = |all: &[f64]| all.iter().step_by(10).copied().collect::<Vec<f64>>();
        let some = Moments {
            iterations: (0..=200).step_by(10).collect(),
            ranks: all.ranks.iter().map(|times| some(times)).collect(),
        };
        let found = Prediction::of(&of_classes(class_of), &some, 0.0, 3.0).unwrap();
        assert!(is_about(found.iteration, 0.012), "{found:?}");
    }
}
