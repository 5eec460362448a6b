//! Judges how certain an answer is, by the errors of the model on systems that were not used to
//! build it ([`fabric::accuracy`]).

use fabric::accuracy::{Case, Certainty, FigureKind, Side, certainty};

use crate::machine::Machine;
use crate::row::Row;

/// The costs of the network, each with the kind of figure whose error applies to it and with its
/// name. Delays are like latencies of short messages, work for each message like streams of short
/// messages, and bytes like bandwidths of long ones.
const COSTS: [(FigureKind, &str); 3] = [
    (FigureKind::ShortLatency, "latency"),
    (FigureKind::ShortStream, "message rate"),
    (FigureKind::LongBandwidth, "bandwidth"),
];

/// The certainty of an answer by the errors of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelWord {
    /// The case of the two machines: hosts and libraries are equal, named or assumed, or messages
    /// travel by TCP.
    pub case: Case,
    /// The certainty of the answer.
    pub certainty: Certainty,
    /// The factor by which the costs of the network of the recorded machine are off, by its check.
    /// `None`: there is no check, so the errors of published figures count.
    pub checked: Option<f64>,
}

/// The certainty of the order of two machines by the errors of the model. `rows` and `values` are
/// those of the best machine and of the challenger; a value is a time, or price times time.
/// `checked`: the factor of the check. `None`: the machines are the same, or the share of the
/// network in their times is unknown.
///
/// The check tells how well hosts and library of the recorded machine are known, and not more of
/// other networks than published ratios of machines with equal hosts do: their error remains.
pub(crate) fn of_model(
    machines: [&Machine; 2],
    rows: [&Row; 2],
    values: [f64; 2],
    margin: f64,
    checked: Option<f64>,
) -> Option<ModelWord> {
    let [best, rival] = machines;
    if best.equals(rival) {
        return None;
    }
    let case = Case::of_ratio(best.case(), rival.case(), best.has_equal_host(rival));
    let [of_best, of_rival] = rows.map(costs);
    let (of_best, of_rival) = (of_best?, of_rival?);
    let side = |time, shares| Side { time, shares };
    let certainty = certainty(
        side(values[0], &of_best),
        side(values[1], &of_rival),
        margin,
        |kind| match checked {
            Some(factor) => factor.max(Case::RatioEqual.ratio_factor(kind)),
            None => case.ratio_factor(kind),
        },
    );
    Some(ModelWord {
        case,
        certainty,
        checked,
    })
}

/// The shares of a row's time that each of [`COSTS`] has; `None` if they are unknown.
fn costs(row: &Row) -> Option<[(FigureKind, f64); 3]> {
    let [latency, bandwidth, rate] = row.bounds?.network();
    let shares = [latency, rate, bandwidth];
    Some(std::array::from_fn(|at| (COSTS[at].0, shares[at])))
}

impl ModelWord {
    /// A clause with the factor of the check; or else with the kind of the two machines, and, for
    /// each cost, the factor within which nine in ten published ratios are of the model's.
    pub(crate) fn errors(&self) -> String {
        if let Some(factor) = self.checked {
            return format!(
                "the costs of the network on the recorded machine are within a factor of {factor:.2} of what was recorded"
            );
        }
        let machines = match self.case {
            Case::RatioEqual => "two machines with equal hosts and libraries",
            Case::RatioNamed => "two machines whose hosts or libraries differ",
            Case::RatioTcp => "two machines of which one sends by TCP",
            _ => "two machines of which one has an assumed library",
        };
        let factor = |(kind, name): &(FigureKind, &str)| {
            let factor = self.case.ratio_factor(*kind);
            format!("{factor:.2} ({name})")
        };
        let [latency, rate, bandwidth] = COSTS.each_ref().map(factor);
        format!(
            "nine in ten published ratios of {machines} are within a factor of {latency}, {rate} or {bandwidth} of the model's"
        )
    }
}
