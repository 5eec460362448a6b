//! The model's word for an answer, by its errors on systems that it had not seen
//! ([`fabric::accuracy`]).

use fabric::accuracy::{Case, Certainty, FigureKind, Side, certainty};

use crate::machine::Machine;
use crate::row::Row;

/// The shares of a time that the network costs, by the kind of figure that it is like: delays are
/// those of short messages, work for each message that of streams of short messages, and bytes
/// those of long ones. With the name of the share.
const COSTS: [(FigureKind, &str); 3] = [
    (FigureKind::ShortLatency, "latency"),
    (FigureKind::ShortStream, "message rate"),
    (FigureKind::LongBandwidth, "bandwidth"),
];

/// The model's word for an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelWord {
    /// The knowledge of the two machines.
    pub case: Case,
    /// The word.
    pub certainty: Certainty,
}

/// The model's word for the order of two machines. `rows` and `values`: those of the best machine
/// and of the challenger; the value is what decides, a time or price times time. `None`: the
/// machines are one, or nobody knows what the network costs.
pub(crate) fn of_model(
    machines: [&Machine; 2],
    rows: [&Row; 2],
    values: [f64; 2],
    margin: f64,
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
        |kind| case.ratio_factor(kind),
    );
    Some(ModelWord { case, certainty })
}

/// The shares of a row's time by [`COSTS`].
fn costs(row: &Row) -> Option<[(FigureKind, f64); 3]> {
    let [latency, bandwidth, rate] = row.bounds?.network();
    let shares = [latency, rate, bandwidth];
    Some(std::array::from_fn(|at| (COSTS[at].0, shares[at])))
}

impl ModelWord {
    /// The machines, and the factor of each cost that nine in ten published ratios keep.
    pub(crate) fn errors(&self) -> String {
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
