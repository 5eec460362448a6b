//! A comparison as a page.

use fabric::catalogue::UncertainValue;
use profile::Summary;
use report::{Axis, Block, Made, Page, Plot, Section, Series, assumptions};

use crate::bounds::Bounds;
use crate::report::{Comparison, Outcome, Row};
use crate::show;

/// The page of a comparison. `uncertain` has the inferred and assumed values of each machine.
pub fn page(comparison: &Comparison, uncertain: &[(String, Vec<UncertainValue>)]) -> Page {
    let mut results = vec![time(comparison).into()];
    results.push(show::times(comparison).into());
    let refused = comparison
        .rows
        .iter()
        .filter_map(|row| refusal(comparison, row));
    results.extend(refused);
    results.extend(show::remarks(comparison).into_iter().map(Block::Text));
    let mut sections = vec![
        Section::new("Time", results),
        Section::new("What bounds the program", bounds(comparison)),
    ];
    sections.extend(show::sizes(comparison).map(|(title, table)| {
        let plot = messages(comparison).map(Block::from);
        Section::new(title, plot.into_iter().chain([table.into()]).collect())
    }));
    sections.extend(show::deciding(comparison).map(|table| {
        let text = "Each inferred or assumed value of the two best machines was changed by 20 % in both directions. These values alone change \
                    the answer:";
        Section::new("How sure the answer is", vec![Block::Text(text.into()), table.into()])
    }));
    sections.push(assumptions(uncertain));
    Page {
        title: format!(
            "{} on {} machines",
            comparison.program,
            comparison.machines.len()
        ),
        lead: comparison.advice.sentence(),
        sections,
        made: Some(Made::here()),
    }
}

fn refusal(comparison: &Comparison, row: &Row) -> Option<Block> {
    let Outcome::Refused(why) = &row.outcome else {
        return None;
    };
    let name = &comparison.machines[row.machine].name;
    Some(Block::Text(format!(
        "{name}, {} ranks: not replayed: {why}",
        row.ranks
    )))
}

/// The time by ranks with a line for each machine, or by machine for one number of ranks.
fn time(comparison: &Comparison) -> Plot {
    let sweep = comparison.sweep();
    let seconds = |machine: usize, ranks: usize| comparison.row(machine, ranks)?.time();
    let machines = comparison.machines.iter().enumerate();
    if let [ranks] = sweep[..] {
        let names = comparison
            .machines
            .iter()
            .map(|machine| machine.name.clone());
        let bars = machines.map(|(at, machine)| {
            let point = seconds(at, ranks).map(|time| (at as f64, time * 1e3));
            Series::bars(machine.name.as_str(), point.into_iter().collect())
        });
        return Plot {
            title: format!("Time of {ranks} ranks"),
            x: Axis::named("machine", names.collect()),
            y: Axis::linear("time", "ms"),
            series: bars.collect(),
            caption: CAPTION.into(),
            ..Plot::default()
        };
    }
    let lines = machines.map(|(at, machine)| {
        let points = sweep.iter().filter_map(|&ranks| {
            let time = seconds(at, ranks)?;
            Some((ranks as f64, time * 1e3))
        });
        Series::line(machine.name.as_str(), points.collect())
    });
    Plot {
        title: "Time by ranks".into(),
        x: Axis::linear("ranks", ""),
        y: Axis::logarithmic("time", "ms"),
        series: lines.collect(),
        caption: CAPTION.into(),
        ..Plot::default()
    }
}

const CAPTION: &str =
    "Virtual time on modelled machines, with the computing that was recorded on this computer.";

/// Shares of the time by machine, for the most ranks, and the table for all.
fn bounds(comparison: &Comparison) -> Vec<Block> {
    let ranks = comparison.advice.ranks;
    let names = comparison
        .machines
        .iter()
        .map(|machine| machine.name.clone());
    let series = Bounds::NAMES.iter().enumerate().map(|(bound, name)| {
        let machines = 0..comparison.machines.len();
        let points = machines.filter_map(|machine| {
            let bounds = comparison.row(machine, ranks)?.bounds?;
            Some((machine as f64, bounds.shares[bound] * 100.0))
        });
        Series::bars(*name, points.collect())
    });
    let plot = Plot {
        title: format!("Shares of the time, {ranks} ranks"),
        x: Axis::named("machine", names.collect()),
        y: Axis::linear("share of the time", "%"),
        series: series.collect(),
        ..Plot::default()
    };
    vec![plot.into(), show::shares(comparison).into()]
}

/// The number of messages by size.
fn messages(comparison: &Comparison) -> Option<Plot> {
    let ranks = comparison.advice.ranks;
    let mut rows = comparison.rows.iter().filter(|row| row.ranks == ranks);
    let Summary { messages, .. } = rows.find_map(|row| row.summary())?;
    let classes = messages.by_size.iter().filter(|class| class.count > 0);
    let points = classes.map(|class| (class.up_to.max(1) as f64, class.count as f64));
    Some(Plot {
        title: "Messages by size".into(),
        x: Axis::sizes("size, up to"),
        y: Axis::logarithmic("messages", ""),
        series: vec![Series::marks("messages", points.collect())],
        ..Plot::default()
    })
}
