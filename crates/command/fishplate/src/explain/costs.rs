//! The measured costs of paths within a host, by which a rank chooses.

use results::sizes::size_label;
use results::table::lines;
use serde::Deserialize;

/// The source of a cost that earlier jobs have measured.
const EARLIER: &str = "earlier jobs";

/// The measured cost of a path for one class of messages or calls.
#[derive(Deserialize)]
pub(super) struct KnownCost {
    /// `fetch`, `medium` or the name of a collective.
    of: String,
    path: String,
    /// The least length of the class in bytes.
    from: usize,
    situation: String,
    ps_per_byte: u64,
    /// `this job` or `earlier jobs`.
    source: String,
}

/// A table of measured costs with a row for each class of messages or calls, whose paths are in the
/// order of their costs.
pub(super) fn table(all: &[KnownCost]) -> String {
    let mut classes: Vec<(&str, usize, &str, Vec<&KnownCost>)> = Vec::new();
    for cost in all {
        let class = (cost.of.as_str(), cost.from, cost.situation.as_str());
        match classes.iter_mut().find(|of| (of.0, of.1, of.2) == class) {
            Some(known) => known.3.push(cost),
            None => classes.push((class.0, class.1, class.2, vec![cost])),
        }
    }
    let row = |(of, from, situation, mut paths): (&str, usize, &str, Vec<&KnownCost>)| {
        paths.sort_by_key(|cost| cost.ps_per_byte);
        let paths = paths.into_iter().map(|cost| {
            let mark = if cost.source == EARLIER { "*" } else { "" };
            format!("{} {}{mark}", cost.path, cost.ps_per_byte)
        });
        let of = match of {
            "fetch" => "announced message",
            "medium" => "message that leaves at once",
            collective => collective,
        };
        let situation = match situation {
            "pair" => "2 members",
            "more" => "3 members or more",
            of_cores => of_cores,
        };
        let paths = paths.collect::<Vec<_>>().join(", ");
        vec![
            of.to_string(),
            size_label(from),
            situation.to_string(),
            paths,
        ]
    };
    let rows = classes.into_iter().map(row).collect();
    let header = ["for", "from", "cores or members", "ps a byte, least first"];
    let table = lines(header.map(String::from).to_vec(), rows, 4);
    let kept = match all.iter().any(|cost| cost.source == EARLIER) {
        true => "* of earlier jobs, from the user's cache.\n",
        false => "",
    };
    format!("\nMeasured costs within the host, by which choices are made:\n{table}{kept}")
}
