//! The ticks of axes: their positions, and their texts.

/// The exponents of the powers of two to label on an axis of sizes from `left` to `right`, which
/// are exponents too: at most a dozen, at equal distances.
pub fn doublings(left: f64, right: f64) -> Vec<f64> {
    let (first, last) = (left.ceil() as i32, right.floor() as i32);
    let apart = (last - first) / 12 + 1;
    (first..=last)
        .step_by(apart as usize)
        .map(f64::from)
        .collect()
}

/// The ends of an axis of sizes whose points reach from `left` to `right`; all are exponents of
/// two. A range with fewer than two powers of two is extended to the powers around it, so that no
/// axis has a single label.
pub fn around_doublings(left: f64, right: f64) -> (f64, f64) {
    match right.floor() - left.ceil() >= 1.0 {
        true => (left, right),
        false => (left.ceil() - 1.0, right.floor() + 1.0),
    }
}

/// The ticks of a logarithmic axis, as common logarithms, between the ends `low` and `high`: 1, 2
/// and 5 times every power of ten; over a wide range only the powers, over a narrow one all digits
/// or equal steps.
pub fn decades(low: f64, high: f64) -> Vec<f64> {
    const POWERS: &[f64] = &[1.0];
    const FEW: &[f64] = &[1.0, 2.0, 5.0];
    const ALL: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let at = |digits: &[f64]| -> Vec<f64> {
        let decades = low.floor() as i32..=high.ceil() as i32;
        let ticks = decades.flat_map(|decade| {
            let place = move |digit: &f64| f64::from(decade) + digit.log10();
            digits.iter().map(place)
        });
        ticks.filter(|tick| (low..=high).contains(tick)).collect()
    };
    if high - low > 3.5 {
        return at(POWERS);
    }
    let ticks = [FEW, ALL].map(at).into_iter().find(|all| all.len() > 1);
    ticks.unwrap_or_else(|| {
        let between = between(10f64.powf(low), 10f64.powf(high));
        between.into_iter().map(f64::log10).collect()
    })
}

/// Five to ten ticks from 0 to `high`, at 1, 2 or 5 times a power of ten.
pub fn steps(high: f64) -> Vec<f64> {
    let step = step(high);
    (0..=(high / step) as u32)
        .map(|n| f64::from(n) * step)
        .collect()
}

/// Five to ten ticks from `low` to `high`, multiples of 1, 2 or 5 times a power of ten.
pub fn between(low: f64, high: f64) -> Vec<f64> {
    let step = step(high - low);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// The distance of ticks that fits five to ten times into `range`: 1, 2 or 5 times a power of ten.
fn step(range: f64) -> f64 {
    let decade = 10f64.powf(range.log10().floor());
    let steps = [0.1, 0.2, 0.5, 1.0].map(|part| part * decade);
    let step = steps.into_iter().find(|step| range / step <= 10.0);
    step.unwrap_or(decade)
}

/// The text of a number on an axis, without trailing zeros.
pub fn plain(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        let ticks = decades(low.log10(), high.log10());
        ticks.iter().map(|y| plain(10f64.powf(*y))).collect()
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(doublings(0.0, 4.0), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(doublings(0.0, 22.0).len(), 12);
        assert_eq!(labels(0.2, 12.0), ["0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(labels(1.0, 1e5).len(), 6);
        assert_eq!(plain(20_000.0), "20000");
    }

    #[test]
    fn no_axis_has_a_single_label() {
        assert_eq!(labels(1.5, 3.5), ["2", "3"]);
        assert_eq!(labels(2.5, 2.71), ["2.5", "2.55", "2.6", "2.65", "2.7"]);
        assert_eq!(around_doublings(3.0, 3.0), (2.0, 4.0));
        assert_eq!(around_doublings(10.58, 11.0), (10.0, 12.0));
        assert_eq!(around_doublings(10.2, 10.8), (10.0, 11.0));
        assert_eq!(around_doublings(0.0, 22.0), (0.0, 22.0));
    }

    #[test]
    fn linear_axes_have_round_ticks_from_0() {
        assert_eq!(
            steps(6800.0),
            [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0]
        );
        assert_eq!(steps(1.1), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
    }
}
