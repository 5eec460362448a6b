//! Prices, costs and what a budget buys, as text and on the page.

use results::report::{Axis, Block, Plot, Section, Series};
use results::table::Table;

use crate::cost::{amount, runs};
use crate::front;
use crate::report::Comparison;
use crate::row::Row;
use crate::words::{or_dash, ratio, time};
use crate::work::Measure;

/// The table of prices and the sentences about it, or the reasons why prices are missing; empty if
/// no machine has a price.
pub(crate) fn text(comparison: &Comparison, wrapped: fn(&str) -> String) -> String {
    let Some(table) = table(comparison) else {
        return String::new();
    };
    let sentences = sentences(comparison).join(" ");
    format!(
        "\n{}:\n\n{}\n{}\n",
        note(comparison),
        table.text(),
        wrapped(&sentences)
    )
}

/// The section of the page about time and price. `None`: no machine has a price.
pub(crate) fn section(comparison: &Comparison) -> Option<Section> {
    let table = table(comparison)?;
    let mut blocks: Vec<Block> = picture(comparison).map(Block::from).into_iter().collect();
    blocks.push(Block::Text(format!("{}.", note(comparison))));
    blocks.push(table.into());
    blocks.push(Block::Text(sentences(comparison).join(" ")));
    Some(Section::new("Time and price", blocks))
}

fn note(comparison: &Comparison) -> &'static str {
    match comparison.advice.by_money {
        true => "Price times time, relative to the first machine, decides between machines",
        false => "Time alone decides, because a price is missing",
    }
}

fn table(comparison: &Comparison) -> Option<Table> {
    if comparison.rows.iter().all(|row| row.cost.is_err()) {
        return None;
    }
    let has_budget = comparison.terms.budget.is_some();
    let rows = comparison.rows.iter().map(|row| {
        let cost = row.cost.as_ref().ok();
        let mut cells = vec![
            comparison.machines[row.machine].name.clone(),
            row.ranks.to_string(),
            row.cost
                .as_ref()
                .map_or_else(Clone::clone, |cost| cost.word()),
            or_dash(
                row.money()
                    .zip(cost)
                    .map(|(money, cost)| amount(money, cost.price.currency())),
            ),
            or_dash(row.value.map(|seconds| runs(3600.0 / seconds))),
            ratio(relative(comparison, row)),
            or_dash(
                front::is_on(&comparison.rows, row).map(|is_on| match is_on {
                    true => "yes".into(),
                    false => "no".into(),
                }),
            ),
        ];
        if has_budget {
            let bought = cost.and_then(|cost| cost.bought);
            cells.push(or_dash(bought.map(|bought| bought.hosts.to_string())));
            cells.push(or_dash(
                bought
                    .zip(row.value)
                    .map(|(bought, seconds)| runs(bought.runs(seconds))),
            ));
        }
        cells
    });
    let header = [
        "machine",
        "ranks",
        "price",
        "cost a run",
        "runs/h",
        "price × time",
        "front",
    ];
    let budget = ["bought", "their runs"];
    let header = header.iter().chain(budget.iter().filter(|_| has_budget));
    let header: Vec<String> = header.map(|word| (*word).to_owned()).collect();
    Some(Table::new(header, rows.collect(), 1))
}

/// The sentences below the table: what a run is, how hosts are paid, the front, and the budget.
fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut sentences = Vec::new();
    if !matches!(comparison.measure, Measure::Iterations(_)) {
        let what = match comparison.measure {
            Measure::Rest => "the time without the start",
            _ => "the loop as it ran",
        };
        sentences.push(format!(
            "A run is {what}; --iterations COUNT gives that of a longer one."
        ));
    }
    let costs = || {
        comparison
            .rows
            .iter()
            .filter_map(|row| row.cost.as_ref().ok())
    };
    if costs().any(|cost| !cost.is_hourly) {
        let share = match (comparison.terms.budget, comparison.terms.cluster) {
            (Some(budget), _) => format!("of its part of the hosts that {budget} buys"),
            (None, Some(hosts)) => format!("of its part of a cluster of {hosts} hosts"),
            (None, None) => "of its hosts alone".into(),
        };
        sentences.push(format!(
            "The price of a job is that {share}, with cards, cables and switches; its cost spreads it over {} years of use (--life), without energy.",
            comparison.terms.years
        ));
    }
    sentences.extend(front_sentence(comparison));
    sentences.extend(budget(comparison));
    sentences
}

fn named(comparison: &Comparison, row: &Row) -> String {
    let name = &comparison.machines[row.machine].name;
    match comparison.sweep().len() {
        1 => name.clone(),
        _ => format!("{name} with {} ranks", row.ranks),
    }
}

/// The sentence about the front of time and price.
fn front_sentence(comparison: &Comparison) -> Option<String> {
    let front = front::of(&comparison.rows);
    let each = front.iter().filter_map(|row| {
        let cost = row.cost.as_ref().ok()?;
        let time = time(row.value?);
        Some(format!(
            "{} ({time}, {})",
            named(comparison, row),
            cost.word()
        ))
    });
    let each: Vec<String> = each.collect();
    let others = match each.len() == comparison.rows.len() {
        true => "",
        false => {
            "; each other row is slower and no cheaper than one of these, or dearer and no faster"
        }
    };
    (comparison.rows.len() > 1 && !each.is_empty()).then(|| {
        format!(
            "On the front, from the fastest to the cheapest: {}{others}.",
            each.join(", ")
        )
    })
}

/// The sentence about what the budget buys of each machine, with the ranks of the answer.
fn budget(comparison: &Comparison) -> Option<String> {
    let budget = comparison.terms.budget?;
    let ranks = comparison.advice.ranks;
    let here = comparison.rows.iter().filter(|row| row.ranks == ranks);
    let mut bought: Vec<(f64, String)> = here
        .filter_map(|row| {
            let cost = row.cost.as_ref().ok()?;
            let of = cost.bought?;
            let number = of.runs(row.value?);
            let name = &comparison.machines[row.machine].name;
            let words = match cost.is_hourly {
                true => format!(
                    "{} hours of a host with {name}, {} runs in all",
                    of.hosts,
                    runs(number)
                ),
                false => format!(
                    "{} hosts with {name}, {} jobs at once, {} runs an hour",
                    of.hosts,
                    of.jobs,
                    runs(number)
                ),
            };
            Some((number, words))
        })
        .collect();
    bought.sort_by(|one, other| other.0.total_cmp(&one.0));
    let words: Vec<String> = bought.into_iter().map(|one| one.1).collect();
    (!words.is_empty()).then(|| {
        format!(
            "For {budget} and jobs of {ranks} ranks: {}.",
            words.join("; or ")
        )
    })
}

/// Price times time, divided by that of the first machine with a price and the same number of
/// ranks. `None`: a price or time is unknown, or currencies differ.
fn relative(comparison: &Comparison, row: &Row) -> Option<f64> {
    let mut rows = comparison.rows.iter();
    let first = rows.find(|other| other.ranks == row.ranks && other.money().is_some())?;
    let currency = |row: &Row| Some(row.cost.as_ref().ok()?.price.currency().to_owned());
    (currency(first) == currency(row)).then_some(row.money()? / first.money()?)
}

/// The picture of all rows by time and by the cost of an hour, with the front as a line. `None`: no
/// row has both.
fn picture(comparison: &Comparison) -> Option<Plot> {
    let place = |row: &Row| Some((row.value? * 1e3, row.cost.as_ref().ok()?.an_hour));
    let first = comparison
        .rows
        .iter()
        .find_map(|row| row.cost.as_ref().ok())?;
    let machines = comparison.machines.iter().enumerate();
    let series = machines.filter_map(|(at, machine)| {
        let rows = comparison.rows.iter().filter(|row| row.machine == at);
        let points: Vec<_> = rows.filter_map(place).collect();
        (!points.is_empty()).then(|| Series::marks(machine.name.as_str(), points))
    });
    let mut series: Vec<Series> = series.collect();
    let front: Vec<_> = front::of(&comparison.rows)
        .into_iter()
        .filter_map(place)
        .collect();
    if front.len() > 1 {
        series.push(Series::line("front", front));
    }
    (!series.is_empty()).then(|| Plot {
        title: "Time and price".into(),
        x: Axis::linear("time", "ms"),
        y: Axis::linear("cost of an hour of the job's hosts", first.price.currency()),
        series,
        caption: "A mark for each number of ranks. Left and low is better.".into(),
        ..Plot::default()
    })
}
