//! The check of the model as sentences, a table, JSON, and a section of the page.

use results::report::{Block, Section};
use results::table::Table;
use serde_json::{Value, json};

use super::{Check, Checked, Kind};
use crate::report::Comparison;
use crate::show::{percent, time};

/// The most procedures in the table of a check.
const MOST_SHOWN: usize = 8;
/// Procedures below this share of the recorded time are not in the table, unless they do not fit.
const SMALL: f64 = 0.005;

/// The share of the recorded time for which other processes had the cores of the ranks, from which
/// on the check says so.
const NOTICED: f64 = 0.01;

/// The check as text: sentences, and the table of the times; empty without one.
pub(crate) fn text(comparison: &Comparison, wrapped: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for check in &comparison.checks {
        text += &format!("{}\n", wrapped(&check.sentence()));
        if let Ok(checked) = &check.outcome {
            text += &format!("\n{}", checked.table().text());
        }
    }
    text
}

/// The section of the page about the recorded run; `None` without a check.
pub(crate) fn section(comparison: &Comparison) -> Option<Section> {
    let blocks = comparison.checks.iter().flat_map(|check| {
        let sentence = Block::Text(check.sentence());
        let table = check.outcome.as_ref().ok();
        let table = table.map(|checked| Block::from(checked.table()));
        std::iter::once(sentence).chain(table)
    });
    let blocks: Vec<Block> = blocks.collect();
    (!blocks.is_empty()).then(|| Section::new("The recorded run", blocks))
}

/// The remark for a user whose traces could be checked, and are not.
pub(crate) fn remark(comparison: &Comparison) -> Option<String> {
    let could = comparison.is_measured && comparison.checks.is_empty();
    could.then(|| {
        "The traces have measured times: with --recorded-on MACHINE the comparison first replays the machine of the \
         recording, and says how well that fits."
            .into()
    })
}

impl Check {
    /// The sentences about the check.
    fn sentence(&self) -> String {
        let Check {
            machine,
            ranks,
            per_host,
            is_placed_alike,
            outcome,
        } = self;
        let placed = match *per_host {
            all if all >= *ranks => "on one host".to_owned(),
            1 => "1 on each host".to_owned(),
            many => format!("{many} on each host"),
        };
        let beginning = format!("Check of the recorded run on {machine}, {ranks} ranks, {placed}");
        let mut said = match outcome {
            Err(why) => format!("{beginning}: not replayed: {why}."),
            Ok(checked) => format!("{beginning}: {}", checked.sentence()),
        };
        if !is_placed_alike {
            said += " The recorded ranks were not placed on hosts in blocks of equal size, as the replay places them.";
        }
        said
    }
}

impl Checked {
    fn sentence(&self) -> String {
        let whole = self.whole();
        let mut said = format!(
            "{} recorded, {} replayed ({}); computing + messages × latency + bytes / rate would be {} ({}).",
            time(whole.recorded),
            time(whole.replayed),
            signed(self.share(whole.error())),
            time(self.null),
            signed(self.share(self.null - whole.recorded))
        );
        if !self.is_usable() {
            said += &format!(
                " Other processes had the cores of the ranks for {} of the time, so the recorded times say little of the machine: record with a core for each rank.",
                percent(self.interrupted)
            );
            return said;
        }
        if self.interrupted > NOTICED {
            said += &format!(
                " Other processes had the cores of the ranks for {} of the time, which the replay has too.",
                percent(self.interrupted)
            );
        }
        let misfits = self.misfits();
        let named: Vec<String> = misfits
            .iter()
            .map(|kind| {
                let name = match kind.name.as_str() {
                    super::OUTSIDE => "the time outside MPI",
                    name => name,
                };
                format!("{name} ({} of the time)", signed(self.share(kind.error())))
            })
            .collect();
        said += &match named.as_slice() {
            [] => " Each kind of calls fits within 5 % of the time.".into(),
            [one] => format!(" One kind of calls does not fit: {one}."),
            many => format!(" These kinds of calls do not fit: {}.", many.join(", ")),
        };
        said
    }

    /// The table of the times, the whole first.
    fn table(&self) -> Table {
        let misfits = self.misfits();
        let is_shown = |(at, kind): &(usize, &Kind)| {
            let longest = kind.recorded.max(kind.replayed);
            let is_long = *at < 2 + MOST_SHOWN && self.share(longest) >= SMALL;
            *at < 2 || is_long || misfits.contains(kind)
        };
        let rows = self.kinds.iter().enumerate().filter(is_shown);
        let rows = rows.map(|(_, kind)| {
            vec![
                kind.name.clone(),
                time(kind.recorded),
                time(kind.replayed),
                signed(self.share(kind.error())),
            ]
        });
        let header = ["time of a rank", "recorded", "replayed", "difference"];
        Table::new(header.map(String::from).into(), rows.collect(), 1)
    }
}

/// A share of the recorded time with its sign, in percent.
fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// The checks as JSON.
pub(crate) fn json(comparison: &Comparison) -> Value {
    let checks = comparison.checks.iter().map(|check| {
        let mut object = json!({
            "machine": check.machine,
            "ranks": check.ranks,
            "ranks_per_host": check.per_host,
            "placed_alike": check.is_placed_alike,
        });
        match &check.outcome {
            Err(why) => object["not_replayed"] = json!(why),
            Ok(checked) => {
                let kinds = checked.kinds[1..].iter().map(kind_json);
                object["recorded_seconds"] = json!(checked.whole().recorded);
                object["replayed_seconds"] = json!(checked.whole().replayed);
                object["error"] = json!(checked.share(checked.whole().error()));
                object["null_model_seconds"] = json!(checked.null);
                object["network_seconds"] = json!(checked.network);
                object["interrupted"] = json!(checked.interrupted);
                object["factor"] = json!(checked.factor());
                object["kinds"] = json!(kinds.collect::<Vec<_>>());
            }
        }
        object
    });
    json!(checks.collect::<Vec<_>>())
}

fn kind_json(kind: &Kind) -> Value {
    json!({
        "name": kind.name,
        "recorded_seconds": kind.recorded,
        "replayed_seconds": kind.replayed,
    })
}
