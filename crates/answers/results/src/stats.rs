//! Medians with their confidence intervals, percentiles, and rounding to significant digits.

/// The middle value, or the mean of the two middle values. NaN for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The smallest value in `sorted` for which at least `percent` of all values are not larger
/// (nearest rank). NaN for an empty slice.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The smallest value. NaN for an empty slice.
pub fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::min)
}

/// The smallest of the values. NaN for an empty slice.
pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// The number of samples that the bootstrap of a confidence interval draws.
const RESAMPLES: usize = 1000;
/// The confidence of an interval, in percent.
const CONFIDENCE: f64 = 95.0;
/// The seed of the bootstrap's random numbers: equal values always give the same interval.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The interval that contains the median with a confidence of 95 %, by the bootstrap: it contains
/// the middle 95 % of the medians of random samples with replacement. `None` for fewer than two
/// values.
///
/// ```
/// let (low, high) = results::stats::median_interval(&[2.0, 1.0, 2.5]).unwrap();
/// assert!(1.0 <= low && low <= 2.0 && 2.0 <= high && high <= 2.5);
/// ```
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let sorted_values = sorted(values);
    let mut state = SEED;
    let mut sample = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for place in &mut sample {
            let random = (next(&mut state) >> 32) as usize;
            let at = (random * values.len()) >> 32;
            *place = sorted_values[at];
        }
        medians.push(median(&sample));
    }
    medians.sort_by(f64::total_cmp);
    let tail = (100.0 - CONFIDENCE) / 2.0;
    Some((
        percentile(&medians, tail),
        percentile(&medians, 100.0 - tail),
    ))
}

/// The upper bound of the quotient of two medians with a confidence of 95 %, by the bootstrap:
/// values at the same index belong together, and a sample draws both. With fewer than two indices
/// it is the quotient itself.
///
/// ```
/// use results::stats::ratio_bound;
///
/// assert_eq!(ratio_bound(&[3.0], &[2.0]), 1.5);
/// // The machine was slow in the second round, for both.
/// assert_eq!(ratio_bound(&[3.0, 9.0, 3.0], &[2.0, 6.0, 2.0]), 1.5);
/// ```
pub fn ratio_bound(above: &[f64], below: &[f64]) -> f64 {
    let count = above.len().min(below.len());
    if count < 2 {
        return median(above) / median(below);
    }
    let mut state = SEED;
    let mut ratios = Vec::with_capacity(RESAMPLES);
    let (mut one, mut other) = (vec![0.0; count], vec![0.0; count]);
    for _ in 0..RESAMPLES {
        for place in 0..count {
            let random = (next(&mut state) >> 32) as usize;
            let at = (random * count) >> 32;
            (one[place], other[place]) = (above[at], below[at]);
        }
        ratios.push(median(&one) / median(&other));
    }
    ratios.sort_by(f64::total_cmp);
    percentile(&ratios, CONFIDENCE)
}

/// The next number of the generator SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The quotient of the ends of a median's interval from which on rounds differ more than usual: on
/// a quiet machine they differ by less than a third.
pub const UNUSUAL: f64 = 1.5;

/// The quotient of the ends of the median's interval, if it is unusual. `None` if it is usual, or
/// if values are not positive.
pub fn unusual_spread(values: &[f64]) -> Option<f64> {
    let (low, high) = median_interval(values)?;
    let spread = high / low;
    (low > 0.0 && spread >= UNUSUAL).then_some(spread)
}

/// `value`, rounded to `count` significant digits, at least to 1.
///
/// ```
/// assert_eq!(results::stats::round_to(2.51449, 4), 2.514);
/// ```
pub fn round_to(value: f64, count: usize) -> f64 {
    let decimals = count.saturating_sub(1);
    format!("{value:.decimals$e}").parse().unwrap_or(value)
}

/// `value`, rounded to six significant digits for JSON: more than any measurement has.
pub fn digits(value: f64) -> f64 {
    round_to(value, 6)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rounds() -> impl Strategy<Value = Vec<f64>> {
        proptest::collection::vec(0.01..1e6f64, 2..12)
    }

    proptest! {
        #[test]
        fn an_interval_holds_the_median_within_the_extremes(values in rounds()) {
            let (low, high) = median_interval(&values).unwrap();
            prop_assert!(min(&values) <= low && low <= median(&values));
            prop_assert!(median(&values) <= high && high <= max(&values));
        }

        #[test]
        fn an_interval_depends_on_the_values_alone(values in rounds(), turn in 0usize..12) {
            let mut turned = values.clone();
            turned.rotate_left(turn % values.len());
            prop_assert_eq!(median_interval(&values), median_interval(&turned));
        }

        #[test]
        fn a_unit_changes_no_verdict(values in rounds()) {
            let doubled: Vec<f64> = values.iter().map(|value| value * 2.0).collect();
            prop_assert_eq!(unusual_spread(&values), unusual_spread(&doubled));
        }

        #[test]
        fn a_ratios_bound_is_between_the_ratios_of_extremes(values in rounds(), factor in 0.1..10f64) {
            let others: Vec<f64> = values.iter().rev().map(|value| value * factor).collect();
            let bound = ratio_bound(&values, &others);
            prop_assert!(min(&values) / max(&others) <= bound);
            prop_assert!(bound <= max(&values) / min(&others));
        }

        #[test]
        fn rounds_that_are_slow_for_both_widen_no_ratio(values in rounds(), factor in 0.1..10f64) {
            let others: Vec<f64> = values.iter().map(|value| value / factor).collect();
            prop_assert!((ratio_bound(&values, &others) / factor - 1.0).abs() < 1e-9);
        }

        #[test]
        fn equal_rounds_are_usual(value in 0.01..1e6f64, count in 2usize..12) {
            let values = vec![value; count];
            prop_assert_eq!(median_interval(&values), Some((value, value)));
            prop_assert_eq!(unusual_spread(&values), None);
        }
    }

    #[test]
    fn one_slow_round_of_many_is_no_reason_for_a_remark() {
        let mut rounds = vec![1.0; 15];
        rounds[3] = 400.0;
        assert_eq!(unusual_spread(&rounds), None);
        assert_eq!(
            unusual_spread(&[0.09, 2407.0, 2502.0, 0.1, 2300.0]),
            Some(2502.0 / 0.09)
        );
        assert_eq!(unusual_spread(&[5.0]), None);
        assert_eq!(unusual_spread(&[0.0, 5.0]), None);
    }

    #[test]
    fn median_of_odd_even_one_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), 100.0);
        assert_eq!(percentile(&values, 99.0), 198.0);
        assert_eq!(percentile(&values, 99.9), 200.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&values, 100.0), 200.0);
        assert_eq!(percentile(&[5.0], 90.0), 5.0);
    }

    #[test]
    fn extremes() {
        assert_eq!((min(&[2.0, 1.0]), max(&[2.0, 1.0])), (1.0, 2.0));
        assert!(min(&[]).is_nan());
    }
}
