//! Summaries of the errors of predictions, by kind of figure.

use results::stats::{median, percentile, round_to};
use results::table::aligned;
use serde_json::{Value, json};

use crate::check::CLOSE;

/// The kinds of figures, in the order of the report.
pub(crate) const CLASSES: [&str; 11] = [
    "latency to 128 B",
    "latency 129 B to 63 KiB",
    "latency from 64 KiB",
    "message rate",
    "stream to 256 B",
    "bandwidth 257 B to 1 KiB",
    "bandwidth to 63 KiB",
    "bandwidth from 64 KiB",
    "collective operation",
    "quotient of machines",
    "sockets over IPoIB",
];
/// The name of the row about figures of all kinds.
pub(super) const ALL: &str = "all";

/// The absolute relative errors of predictions, in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Errors(Vec<f64>);

/// The errors of each kind that has figures, and then of figures of all kinds.
pub(super) fn by_class(
    all: impl Iterator<Item = (&'static str, f64)> + Clone,
) -> Vec<(&'static str, Errors)> {
    let of = |class: Option<&str>| {
        let own = all
            .clone()
            .filter(|(own, _)| class.is_none_or(|class| class == *own));
        let mut errors: Vec<f64> = own.map(|(_, error)| error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        Errors(errors)
    };
    let classes = CLASSES.iter().map(|class| (*class, of(Some(class))));
    let mut found: Vec<_> = classes.filter(|(_, errors)| !errors.0.is_empty()).collect();
    found.push((ALL, of(None)));
    found
}

impl Errors {
    fn within(&self, share: f64) -> f64 {
        let close = self.0.iter().filter(|error| **error <= share).count();
        close as f64 / self.0.len() as f64
    }

    pub(super) fn json(&self, class: &str) -> Value {
        let percent = |share: f64| round_to(share * 100.0, 3);
        json!({
            "kind": class, "figures": self.0.len(), "median_percent": percent(median(&self.0)),
            "percentile_90_percent": percent(percentile(&self.0, 90.0)),
            "within_10_percent": percent(self.within(CLOSE)),
        })
    }
}

/// The errors by kind of figure, as a table.
pub(super) fn table(all: &[(&'static str, Errors)]) -> String {
    let row = |(class, errors): &(&str, Errors)| {
        let percent = |share: f64| match share.is_nan() {
            true => "–".into(),
            false => format!("{:.1} %", share * 100.0),
        };
        vec![
            (*class).to_owned(),
            errors.0.len().to_string(),
            percent(median(&errors.0)),
            percent(percentile(&errors.0, 90.0)),
            percent(errors.within(CLOSE)),
        ]
    };
    let header = [
        "kind",
        "figures",
        "median",
        "90th percentile",
        "within 10 %",
    ];
    let header = header.map(String::from).to_vec();
    aligned(header, all.iter().map(row).collect(), |column| column == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_summed_up_by_kind() {
        let errors = [0.01, -0.02, 0.03, -0.2].map(|error| (CLASSES[0], error));
        let other = [(CLASSES[7], 0.5)];
        let found = by_class(errors.into_iter().chain(other));
        let classes: Vec<&str> = found.iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, [CLASSES[0], CLASSES[7], ALL]);
        let first = found[0].1.json("x");
        assert_eq!(
            first.to_string(),
            r#"{"figures":4,"kind":"x","median_percent":2.5,"percentile_90_percent":20.0,"within_10_percent":75.0}"#
        );
        assert!(table(&found).contains("50.0 %"));
    }

    #[test]
    fn without_figures_there_is_no_error() {
        let found = by_class([].into_iter());
        assert_eq!(found, [(ALL, Errors::default())]);
        assert!(table(&found).contains('–'));
    }
}
