//! The search for a machine that reaches the times of its series: first a speed from which only
//! additions are needed, then the additions.
//!
//! Invariant: equal inputs give equal results. Predictions are made in batches, so that they run at
//! once.

use super::series::{Property, SeriesKind};
use super::trial::{Speed, Trial};

/// The series of a kind: its sizes, and the times of one message that a machine must reach, in
/// microseconds.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub kind: SeriesKind,
    pub sizes: Vec<usize>,
    pub times: Vec<f64>,
    /// The sizes among them that were measured. The others should be reached, but no part becomes
    /// faster for their sake.
    pub measured: Vec<usize>,
}

impl Wanted {
    /// For each size that was measured, the predicted time as a multiple of the wanted one.
    pub(super) fn measured<'a>(
        &'a self,
        found: &'a [f64],
    ) -> impl Iterator<Item = (usize, f64)> + 'a {
        let all = self.sizes.iter().zip(&self.times).zip(found);
        let own = all.filter(|((size, _), _)| self.measured.contains(size));
        own.map(|((size, time), found)| (*size, found / time))
    }
}

/// For each series, the predicted times at its sizes.
pub(super) type Predicted = Vec<Vec<f64>>;

/// The factors on times of processors and chips that are tried, from the slowest machine.
const TIMES: [f64; 6] = [0.85, 0.65, 0.45, 0.3, 0.18, 0.08];
/// The factors on rates of links and slots that are tried.
const LANES: [f64; 6] = [1.02, 1.05, 1.1, 1.18, 1.3, 1.5];
/// The number of steps by which curves approach the times.
const STEPS: usize = 6;
/// The mean error at which measured times count as reached.
const REACHED: f64 = 0.002;
/// The share of its error that a step must leave at most to justify another one.
const HELPS: f64 = 0.8;
/// The share by which a message of a stream may be faster before it gets an interval.
const LACKING: f64 = 0.002;
/// The share by which a time may exceed the wanted one before parts must become faster.
const OVER: f64 = 0.004;
/// The shortest message whose time depends on rates of links more than on processors, in bytes.
const LONG: usize = 64 << 10;

/// Finds the speed of a machine from which additions alone reach the measured times. `predict`
/// returns the predicted times of all series for each of several machines.
pub(super) fn speed<E>(
    wanted: &[Wanted],
    mut predict: impl FnMut(&[Trial]) -> Result<Vec<Predicted>, E>,
) -> Result<Speed, E> {
    let found = predict(&[Trial::of(Speed::OWN)])?;
    let own = found.into_iter().next().unwrap_or_default();
    match over(wanted, &own, |_| true) > OVER {
        true => faster(wanted, own, &mut predict),
        false => Ok(Speed::OWN),
    }
}

/// The speed from which additions reach the measured times, given the times at the base's speed.
fn faster<E>(
    wanted: &[Wanted],
    own: Predicted,
    predict: &mut impl FnMut(&[Trial]) -> Result<Vec<Predicted>, E>,
) -> Result<Speed, E> {
    let short = |size: usize| size < LONG;
    let mut best = (Speed::OWN, own);
    let bare = Speed {
        is_bare: true,
        ..Speed::OWN
    };
    best = least(wanted, best, vec![bare], |_| true, predict)?;
    for copies in [false, true] {
        if over(wanted, &best.1, short) > OVER {
            let speeds = TIMES.into_iter().map(|times| Speed {
                is_bare: true,
                times,
                copies: if copies { 1.0 / times } else { 1.0 },
                lanes: 1.0,
            });
            best = least(wanted, best, speeds.collect(), short, predict)?;
        }
    }
    if over(wanted, &best.1, |_| true) > OVER {
        let lanes = LANES.into_iter().map(|lanes| Speed { lanes, ..best.0 });
        let lanes: Vec<Speed> = lanes.collect();
        best = least(wanted, best, lanes, |_| true, predict)?;
    }
    Ok(best.0)
}

/// The first of `speeds` from which additions reach the wanted times at the sizes `at`, or else
/// the one that comes nearest. `own` is the speed so far.
fn least<E>(
    wanted: &[Wanted],
    own: (Speed, Predicted),
    speeds: Vec<Speed>,
    at: impl Fn(usize) -> bool,
    predict: &mut impl FnMut(&[Trial]) -> Result<Vec<Predicted>, E>,
) -> Result<(Speed, Predicted), E> {
    let trials: Vec<Trial> = speeds.iter().map(|speed| Trial::of(*speed)).collect();
    let found = predict(&trials)?;
    let mut best = own;
    let mut nearest = over(wanted, &best.1, &at);
    for (speed, found) in speeds.into_iter().zip(found) {
        if nearest <= OVER {
            break;
        }
        let own = over(wanted, &found, &at);
        if own < nearest - 1e-6 {
            (nearest, best) = (own, (speed, found));
        }
    }
    Ok(best)
}

/// The greatest share by which a predicted time exceeds the measured one, at the sizes `at`.
fn over(wanted: &[Wanted], found: &Predicted, at: impl Fn(usize) -> bool) -> f64 {
    let each = wanted.iter().zip(found);
    let each = each.flat_map(|(wanted, found)| wanted.measured(found));
    each.filter(|(size, _)| at(*size))
        .map(|(_, times)| times - 1.0)
        .fold(0.0, f64::max)
}

/// The mean error of the predicted times, and that of the measured ones.
fn errors(wanted: &[Wanted], found: &Predicted) -> [f64; 2] {
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let pairs = || wanted.iter().zip(found);
    let all = pairs().flat_map(|(wanted, found)| wanted.times.iter().zip(found));
    let all = all.map(|(time, found)| (found / time).ln().abs());
    let measured = pairs().flat_map(|(wanted, found)| wanted.measured(found));
    let measured = measured.map(|(_, times)| times.ln().abs());
    [mean(all.collect()), mean(measured.collect())]
}

/// Adds times by length to a machine of this speed until the wanted times are reached, or steps do
/// not help any more. `predict` as for [`speed`]. Returns also the times that it predicts.
pub(super) fn approach<E>(
    wanted: &[Wanted],
    speed: Speed,
    mut predict: impl FnMut(&[Trial]) -> Result<Vec<Predicted>, E>,
) -> Result<(Trial, Predicted), E> {
    let mut trial = Trial::of(speed);
    let mut one = |trial: &Trial| -> Result<Predicted, E> {
        let found = predict(std::slice::from_ref(trial))?;
        Ok(found.into_iter().next().unwrap_or_default())
    };
    let mut found = one(&trial)?;
    // The measured times count as much as all others together.
    let sum = |found: &Predicted| errors(wanted, found).iter().sum::<f64>();
    let mut best = (sum(&found), trial.clone(), found.clone());
    let mut slopes: Vec<Vec<f64>> = wanted
        .iter()
        .map(|one| vec![1.0; one.sizes.len()])
        .collect();
    for _ in 0..STEPS {
        let before = (trial.clone(), found);
        for ((wanted, found), slopes) in wanted.iter().zip(&before.1).zip(&slopes) {
            add(trial.curve(wanted.kind), wanted, found, slopes);
        }
        found = one(&trial)?;
        for (number, wanted) in wanted.iter().enumerate() {
            let curves = [&before.0, &trial].map(|trial| trial.clone().curve(wanted.kind).clone());
            let times = [&before.1[number], &found[number]];
            learn(&mut slopes[number], &curves, times);
        }
        let own = sum(&found);
        let is_reached = errors(wanted, &found)[1] < REACHED && own > best.0 * HELPS;
        if own < best.0 {
            best = (own, trial.clone(), found.clone());
        }
        if is_reached {
            break;
        }
    }
    Ok((best.1, best.2))
}

/// Changes the curve of a series by what its times lack. `slopes`: the change of each time with its
/// point of the curve.
fn add(curve: &mut Vec<(usize, f64)>, wanted: &Wanted, found: &[f64], slopes: &[f64]) {
    if curve.is_empty() {
        *curve = wanted.sizes.iter().map(|size| (*size, 0.0)).collect();
    }
    let times = wanted.times.iter().zip(found).zip(slopes);
    for (point, ((time, found), slope)) in curve.iter_mut().zip(times) {
        point.1 = match wanted.kind.1 {
            Property::Latency => (point.1 + (time - found) / slope).max(0.0),
            // An interval has an effect only where it is longer than the time without it.
            Property::Stream if point.1 > 0.0 => point.1 * (time / found).clamp(0.5, 2.0),
            Property::Stream if *found < time * (1.0 - LACKING) => *time,
            Property::Stream => 0.0,
        };
    }
}

/// Learns the slopes from a step: a message may have several requests, each of which is delayed.
fn learn(slopes: &mut [f64], curves: &[Vec<(usize, f64)>; 2], times: [&Vec<f64>; 2]) {
    let [from, to] = curves;
    for (at, slope) in slopes.iter_mut().enumerate() {
        let point = |curve: &[(usize, f64)]| curve.get(at).map_or(0.0, |point| point.1);
        let by = point(to) - point(from);
        // Steps that are smaller than the resolution of times teach nothing.
        if by.abs() > 1e-3 {
            *slope = ((times[1][at] - times[0][at]) / by).clamp(0.5, 4.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::{Level, Property};
    use super::*;

    const SIZES: [usize; 3] = [8, 16 << 10, 1 << 20];

    /// A machine whose latencies are 1 µs of fixed times, copies and bytes, and whose streams need
    /// a processor.
    fn machine(trial: &Trial) -> Predicted {
        let at = |curve: &[(usize, f64)], size: usize| {
            let point = curve.iter().find(|point| point.0 == size);
            point.map_or(0.0, |point| point.1)
        };
        let [delay, interval, ..] = &trial.curves;
        let speed = trial.speed;
        let latency = |size: usize| {
            let copied = size.min(16 << 10) as f64 / 1e4 / speed.copies;
            let times = if size == 16 << 10 { 2.0 } else { 1.0 };
            speed.times + copied + size as f64 / 1e4 / speed.lanes + times * at(delay, size)
        };
        let stream = |size: usize| {
            let own = 0.2 * speed.times + 0.05;
            own.max(at(interval, size) + 0.01).max(size as f64 / 1e4)
        };
        vec![SIZES.map(latency).into(), SIZES.map(stream).into()]
    }

    fn reached(latencies: [f64; 3], streams: [f64; 3]) -> (Trial, f64) {
        let wanted = [(Property::Latency, latencies), (Property::Stream, streams)];
        let wanted = wanted.map(|(property, times)| Wanted {
            kind: (Level::Messages, property),
            sizes: SIZES.into(),
            times: times.into(),
            measured: SIZES.into(),
        });
        let predict = |trials: &[Trial]| Ok::<_, ()>(trials.iter().map(machine).collect());
        let speed = speed(&wanted, predict).unwrap();
        let (trial, _) = approach(&wanted, speed, predict).unwrap();
        let error = errors(&wanted, &machine(&trial))[1];
        (trial, error)
    }

    #[test]
    fn slower_machines_get_additions_alone() {
        let (trial, error) = reached([1.4, 5.0, 120.0], [0.5, 1.7, 110.0]);
        assert!(error <= 0.002, "{error} {trial:?}");
        assert_eq!(trial.speed, Speed::OWN);
    }

    #[test]
    fn faster_machines_get_faster_parts_and_what_is_then_lacking() {
        let (trial, error) = reached([0.6, 2.5, 107.0], [0.1, 1.7, 106.0]);
        assert!(error <= 0.002, "{error} {trial:?}");
        assert!(
            trial.speed.times < 0.6 && trial.speed.copies > 1.0,
            "{trial:?}"
        );
        assert_eq!(trial.speed.lanes, 1.0);
        let (trial, error) = reached([1.0, 4.2, 90.0], [0.25, 1.7, 104.9]);
        assert!(error <= 0.01, "{error} {trial:?}");
        assert!(trial.speed.lanes > 1.1, "{trial:?}");
    }
}
