//! The results of a study as an HTML page: curves with the published figures as marks, statements
//! with their verdicts, tables, and the assumptions about the machines.

use bench::modelled::Curve;
use fabric::System;
use fabric::catalogue::{Catalogue, UncertainValue};
use fabric::components::Part;
use results::plot::Panel;
use results::report::{
    Block, Made, Page, Plot, Section, Series, Strip, StripRange, Strips, assumptions,
};
use results::sizes::size_label;
use results::table::distinct;

use crate::answer::{Better, Range, ranges};
use crate::check::{At, Check, factor};
use crate::outcome::Results;
use crate::pictures;
use crate::show;
use crate::verdict::Verdict;

/// The HTML page of one study's results.
pub(crate) fn page(results: &Results) -> Page {
    let mut sections = Vec::new();
    sections.extend(answers(results));
    sections.push(Section::new("Curves", curves(results)));
    sections.push(Section::new("Statements", statements(results)));
    sections.push(Section::new("Values", values(results)));
    let table = Block::Table(show::configurations(results));
    sections.push(Section::new("Configurations", vec![table]));
    sections.push(assumptions(&uncertain([results].into_iter())));
    Page {
        title: format!("{}, again", results.document.document),
        lead: lead(results),
        sections,
        made: Some(Made::here()),
        ..Page::default()
    }
}

/// The short answer of the study, for the top of its page.
fn lead(results: &Results) -> String {
    let judged = results.judge();
    let count = |verdict| {
        judged
            .iter()
            .filter(|judged| judged.verdict == verdict)
            .count()
    };
    let mut sentences = show::sentences(results);
    sentences.push(format!(
        "Of the {} statements of this document, {} hold on modelled machines and {} differ; {} are contradicted by other statements or by \
         physics, {} are settings of the experiments, and {} are not modelled.",
        judged.len(),
        count(Verdict::Holds),
        count(Verdict::Differs),
        count(Verdict::Contradicted),
        count(Verdict::Setting),
        count(Verdict::NotModelled),
    ));
    sentences.join(" ")
}

fn answers(results: &Results) -> Option<Section> {
    let (question, table) = show::answers(results)?;
    let mut blocks: Vec<Block> = strips(results).map(Block::from).into_iter().collect();
    blocks.push(Block::Folded(question, table));
    Some(Section::new("Answer", blocks))
}

/// The answers of all comparisons of the same two machines, as strips along the message size.
/// `None`: the document has no comparisons.
fn strips(results: &Results) -> Option<Strips> {
    let comparisons = &results.document.comparisons;
    let sides = &comparisons.first()?.names;
    let mut rows: Vec<(String, Vec<Range>)> = Vec::new();
    for comparison in comparisons.iter().filter(|one| one.names == *sides) {
        for (measure, _) in show::compared(results) {
            let name = format!("{}, {}", measure.title().to_lowercase(), comparison.policy);
            let [first, second] = [&comparison.first, &comparison.second];
            rows.push((name, ranges(&results.curves, &measure.name, first, second)));
        }
    }
    let sizes = rows.iter().flat_map(|(_, ranges)| ranges);
    let mut sizes: Vec<usize> = sizes.flat_map(|range| range.sizes).collect();
    sizes.extend(
        show::compared(results)
            .flat_map(|(_, measured)| &measured.curves)
            .flat_map(|curve| curve.points.iter().map(|point| point.0)),
    );
    sizes.sort_unstable();
    sizes.dedup();
    let strip = |(name, ranges): (String, Vec<Range>)| Strip {
        name,
        ranges: ranges.iter().map(|range| shown(range, &sizes)).collect(),
    };
    Some(Strips {
        title: format!("Is {} better than {}?", sides[0], sides[1]),
        across: "message size".into(),
        positions: sizes.iter().map(|&size| size_label(size)).collect(),
        sides: sides.clone(),
        rows: rows.into_iter().map(strip).collect(),
        caption: "Differences up to 2 % count as none. A touch or the pointer shows the greatest difference of a range.".into(),
    })
}

/// A range of sizes as positions in the list `sizes`.
fn shown(range: &Range, sizes: &[usize]) -> StripRange {
    let place = |size: usize| sizes.partition_point(|known| *known < size);
    StripRange {
        positions: range.sizes.map(place),
        better: match range.better {
            Better::First => Some(0),
            Better::Second => Some(1),
            Better::Neither => None,
        },
        note: match range.better {
            Better::Neither => String::new(),
            _ => format!("up to {:.0} %", (range.most - 1.0) * 100.0),
        },
    }
}

/// The plots: first those that answer the document's question, then one for each measurement.
pub(crate) fn curves(results: &Results) -> Vec<Block> {
    let answering = pictures::answering(results).into_iter();
    let answering = answering.flat_map(|(_, _, panels)| panels);
    let mut blocks: Vec<Block> = answering
        .map(|panel| plot(&panel, results).into())
        .collect();
    for (measure, panel) in pictures::measurements(results) {
        let mut plot = plot(&panel, results);
        plot.caption = pictures::with_remarks(results, &measure.name, plot.caption);
        plot.series.extend(published(results, &measure.name));
        if plot.series.iter().any(|series| series.colour_of.is_some()) {
            plot.caption = format!(
                "Lines: predicted. Marks without a line: published. {}",
                plot.caption
            );
        }
        blocks.push(plot.into());
    }
    blocks
}

fn plot(panel: &Panel, results: &Results) -> Plot {
    Plot {
        caption: format!("Conditions: {}.", pictures::conditions(results)),
        ..Plot::from(panel)
    }
}

/// The published figures of a measurement, as marks in the colours of their curves.
fn published(results: &Results, of: &str) -> Vec<Series> {
    let checks = results
        .document
        .claims
        .iter()
        .flat_map(|claim| &claim.checks);
    let points: Vec<(&str, (f64, f64))> = checks
        .filter_map(|check| point(results, of, check))
        .collect();
    let names = distinct(points.iter().map(|point| point.0));
    let marks = names.into_iter().map(|name| {
        let own = points.iter().filter(|point| point.0 == name);
        let own = own.map(|point| point.1).collect();
        Series::marks(format!("{name}, published"), own).with_colour_of(name)
    });
    marks.collect()
}

/// The curve and the coordinates of a published figure of a measurement. `None`: the check has no
/// such figure.
fn point<'a>(results: &Results, of: &str, check: &'a Check) -> Option<(&'a str, (f64, f64))> {
    let (own, name, published, unit) = match check {
        Check::Value {
            of,
            curve,
            published,
            unit,
            ..
        }
        | Check::Swept {
            of,
            curve,
            published,
            unit,
            ..
        } => (of, curve, published, unit),
        _ => return None,
    };
    let curve = results.curves.curve(of, name).filter(|_| own == of)?;
    let place = match check {
        Check::Value {
            at: At::Size(size), ..
        } => *size,
        Check::Value { .. } => highest(curve)?,
        Check::Swept { at, .. } => {
            let swept = &results.curves.0.get(of)?.swept;
            let number = swept.iter().position(|value| value == at)?;
            curve.points.get(number)?.0
        }
        _ => return None,
    };
    let measured = results.curves.unit(of);
    let factor = factor(measured, unit.as_deref().unwrap_or(measured.name()))?;
    Some((name, (place as f64, measured.scaled(published / factor))))
}

/// The size at which a curve has its highest value.
fn highest(curve: &Curve) -> Option<usize> {
    let points = curve.points.iter();
    let highest = points.max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(highest.0)
}

/// The statements with their verdicts, and the statements about a machine with another
/// interpretation.
pub(crate) fn statements(results: &Results) -> Vec<Block> {
    let mut blocks = vec![Block::Table(show::claims(&results.judge()))];
    if let Some(table) = show::other_readings(results) {
        blocks.push(Block::Text("With the other reading of a machine:".into()));
        blocks.push(Block::Table(table));
    }
    blocks
}

/// The tables with the values of the curves, each folded behind its title.
fn values(results: &Results) -> Vec<Block> {
    let tables = show::values(results).into_iter();
    tables
        .map(|(title, table)| Block::Folded(title, table))
        .collect()
}

/// For each machine of these studies, its inferred and assumed values.
pub(crate) fn uncertain<'a>(
    all: impl Iterator<Item = &'a Results>,
) -> Vec<(String, Vec<UncertainValue>)> {
    let mut found: Vec<(String, Vec<UncertainValue>)> = Vec::new();
    for results in all {
        let mut catalogue = Catalogue::builtin();
        for machine in &results.document.machines {
            // Some statements are about machines that are refused; those have no values.
            let _ = catalogue.add(&machine.name, &machine.text);
        }
        for curve in &results.document.curves {
            let is_known = found.iter().any(|(name, _)| *name == curve.fabric);
            if let (false, Ok(sheet)) = (is_known, catalogue.sheet(System::KIND, &curve.fabric)) {
                found.push((curve.fabric.clone(), sheet.uncertain()));
            }
        }
    }
    found
}
