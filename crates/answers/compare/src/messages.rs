//! The messages between the ranks: a sentence for text, a plot and a table for the page.

use profile::{Messages, SizeClass};
use results::report::{Axis, Block, Plot, Section, Series};
use results::sizes::size_label;
use results::table::Table;

use crate::report::Comparison;

/// The least share of the bytes that makes the sentence name a size class, in percent.
const NAMED: u64 = 10;

/// The messages with the recommended number of ranks, on the first machine that ran with it; and
/// the name of that machine. `None`: no machine ran with it.
fn shown(comparison: &Comparison) -> Option<(&Messages, &str)> {
    let ranks = comparison.advice.ranks;
    let mut rows = comparison.rows.iter().filter(|row| row.ranks == ranks);
    let (row, summary) = rows.find_map(|row| Some((row, row.summary()?)))?;
    let name = comparison.machines[row.machine].name.as_str();
    Some((&summary.messages, name))
}

fn up_to(class: &SizeClass) -> String {
    size_label(class.up_to as usize)
}

fn percent(part: u64, all: u64) -> u64 {
    (u128::from(part) * 100 / u128::from(all.max(1))) as u64
}

/// A sentence with the number of messages, their median size, and the size classes with most bytes;
/// `None` without messages.
pub(crate) fn sentence(comparison: &Comparison) -> Option<String> {
    let (messages, name) = shown(comparison)?;
    let mut before = 0;
    let middle = messages.by_size.iter().find(|class| {
        before += class.count;
        before * 2 >= messages.count
    })?;
    let share = |class: &&SizeClass| percent(class.bytes, messages.bytes);
    let named = messages
        .by_size
        .iter()
        .filter(|class| share(class) >= NAMED);
    let named = named.map(|class| format!("{} % in those up to {}", share(&class), up_to(class)));
    let named: Vec<String> = named.collect();
    let of_bytes = match named.is_empty() {
        true => String::new(),
        false => format!("; of their bytes {}", named.join(", ")),
    };
    Some(format!(
        "{} messages between {} ranks, on {name}, half of them up to {}{of_bytes}.",
        messages.count,
        comparison.advice.ranks,
        up_to(middle)
    ))
}

/// The number of messages by size class: a plot, and a folded table of the numbers. `None`: no
/// machine ran with the recommended number of ranks.
pub(crate) fn section(comparison: &Comparison) -> Option<Section> {
    let (messages, name) = shown(comparison)?;
    let classes: Vec<&SizeClass> = messages.by_size.iter().collect();
    let points = classes.iter().enumerate();
    let points = points.map(|(at, class)| (at as f64, class.count as f64));
    let names = classes.iter().map(|class| up_to(class)).collect();
    let plot = Plot {
        title: "Messages by size".into(),
        x: Axis::named("size, up to", names),
        y: Axis::linear("messages", ""),
        series: vec![Series::bars("messages", points.collect())],
        ..Plot::default()
    };
    let rows = classes.iter().map(|class| {
        let share = percent(class.bytes, messages.bytes);
        vec![up_to(class), class.count.to_string(), format!("{share} %")]
    });
    let header = ["up to", "messages", "bytes"].map(String::from);
    let table = Table {
        header: header.into(),
        rows: rows.collect(),
        right_aligned: vec![0, 1, 2],
    };
    let title = format!(
        "Messages between {} ranks, on {name}",
        comparison.advice.ranks
    );
    let numbers = Block::Folded("Their numbers and bytes".into(), table);
    Some(Section::new(title, vec![plot.into(), numbers]))
}
