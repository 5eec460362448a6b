//! Statistics of many measured times.

use perf::measure::Latency;
use perf::show::half_peak;
use proptest::prelude::*;

proptest! {
    #[test]
    fn percentiles_are_ordered_and_between_the_extremes(
        picos in prop::collection::vec(0u64..1_000_000_000, 1..400),
        parts in prop::sample::select(vec![1.0, 2.0]),
    ) {
        let found = Latency::of(&picos, parts);
        let ordered = [found.min, found.median, found.p99, found.p999, found.max];
        // The median of an even number of values may lie between two of them; percentiles are
        // always measured values.
        prop_assert!(ordered.is_sorted() || picos.len() < 3, "{:?}", found);
        prop_assert!((found.min..=found.max).contains(&found.median));
        prop_assert!(found.min <= found.mean * (1.0 + 1e-12) && found.mean <= found.max * (1.0 + 1e-12));
        let most = *picos.iter().max().unwrap() as f64 / parts / 1e6;
        prop_assert_eq!(found.max, most);
    }

    #[test]
    fn half_of_the_peak_is_within_the_sizes(values in prop::collection::vec(0.1f64..1e5, 1..24)) {
        let points: Vec<(usize, f64)> = values.iter().enumerate().map(|(at, value)| (2 << at, *value)).collect();
        if let Some((size, peak)) = half_peak(&points) {
            prop_assert!(size > 2.0 && size <= points.last().unwrap().0 as f64);
            prop_assert!(values.iter().all(|value| *value <= peak));
        }
    }
}
