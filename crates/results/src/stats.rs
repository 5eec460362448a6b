//! Medians, percentiles, and rounding to significant digits.

/// The middle value, or the mean of the two middle values. NaN for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The smallest value of `sorted` that at least `percent` of the values do not exceed (nearest
/// rank). NaN for an empty slice.
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

/// The largest value. NaN for an empty slice.
pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// `value` rounded to `count` significant digits, at least 1.
///
/// ```
/// assert_eq!(results::stats::round_to(2.51449, 4), 2.514);
/// ```
pub fn round_to(value: f64, count: usize) -> f64 {
    let decimals = count.saturating_sub(1);
    format!("{value:.decimals$e}").parse().unwrap_or(value)
}

/// `value` rounded to six significant digits, as JSON shows measurements: more than any
/// measurement has.
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
    use super::*;

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
