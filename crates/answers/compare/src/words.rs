//! Figures as words of tables.

use results::table::significant;

pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A time in the unit that fits it.
pub(crate) fn time(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    format!("{} {unit}", significant(seconds * scale))
}

pub(crate) fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".into())
}

pub(crate) fn ratio(value: Option<f64>) -> String {
    or_dash(value.map(|value| format!("{value:.2}")))
}
