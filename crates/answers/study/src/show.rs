//! The results of a study as tables and as lines of JSON.

use anyhow::Result;
use results::sizes::size_label;
use results::table::{Table, number, ratio};
use serde_json::json;

use crate::answer::{ranges, sentence, words};
use crate::benchmark::Benchmark;
use crate::curves::Measured;
use crate::document::{self, Comparison, Measure};
use crate::outcome::Results;
use crate::verdict::{Judged, Verdict};

/// JSON, one object per line: the statements, then the answers by size.
pub(crate) fn json(results: &Results) -> Result<String> {
    let mut lines = Vec::new();
    for judged in results.judge() {
        lines.push(serde_json::to_string(&judged)?);
    }
    for comparison in &results.document.comparisons {
        for (measure, _) in compared(results) {
            let answer = answer(results, &measure.name, comparison);
            let policy = &comparison.policy;
            lines.push(
                json!({"benchmark": measure.name, "policy": policy, "answer": answer}).to_string(),
            );
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// A row for each comparison and measurement: rail policy, measurement, and the answer by size.
pub(crate) fn answer_rows(results: &Results) -> Vec<Vec<String>> {
    let each = results.document.comparisons.iter().flat_map(|comparison| {
        compared(results).map(|(measure, _)| {
            let answer = answer(results, &measure.name, comparison);
            let title = measure.title().to_lowercase();
            vec![comparison.policy.clone(), title, answer]
        })
    });
    each.collect()
}

/// The answers, the statements with their verdicts, and all values. The answers are repeated at the
/// end, where a terminal still shows them.
pub(crate) fn text(results: &Results) -> String {
    let document = &results.document;
    let mut text = format!("{}\n", document.document);
    let answers_in_sentences: String = sentences(results).join("\n");
    if let Some((question, table)) = answers(results) {
        text += &format!("\n{answers_in_sentences}\n\n{question}\n{}", table.text());
    }
    text += &format!("\n{}", claims(&results.judge()).text());
    if let Some(table) = other_readings(results) {
        text += &format!("\n{}", table.text());
    }
    text += &format!("\n{}", configurations(results).text());
    for (title, table) in values(results) {
        text += &format!("\n{title}\n{}", table.text());
    }
    let remarks = results.measured();
    let remarks = remarks.flat_map(|(measure, _)| {
        let title = measure.title();
        let own = results.remarks(&measure.name).into_iter();
        own.map(move |remark| format!("{title}: {remark}"))
    });
    let remarks: Vec<String> = remarks.collect();
    if !remarks.is_empty() {
        text += &format!("\n{}\n", remarks.join("\n"));
    }
    if !answers_in_sentences.is_empty() {
        text += &format!("\n{answers_in_sentences}\n");
    }
    text
}

/// A table of the curves, with their machines and descriptions.
pub(crate) fn configurations(results: &Results) -> Table {
    let rows = results.document.curves.iter().map(|curve| {
        vec![
            curve.name.clone(),
            curve.fabric.clone(),
            curve.about.clone(),
        ]
    });
    let header = ["curve", "machine", ""].map(String::from).to_vec();
    Table::of_text(header, rows.collect())
}

/// A table of values for each measurement, with its title; then the tables of several measurements.
pub(crate) fn values(results: &Results) -> Vec<(String, Table)> {
    let measured = results.measured().map(|(measure, measured)| {
        let unit = measured.benchmark.unit().shown();
        let table = match measured.swept.is_empty() {
            true => by_size(results, measure, measured),
            false => by_value(measure, measured),
        };
        (format!("{}, {unit}", measure.title()), table)
    });
    let beside = results.document.tables.iter();
    let beside = beside.map(|table| (table.title.clone(), side_by_side(results, table)));
    measured.chain(beside).collect()
}

/// The measurements for which the comparisons are answered: those of MPI by message size.
pub(crate) fn compared(results: &Results) -> impl Iterator<Item = (&Measure, &Measured)> {
    results.measured().filter(|(_, measured)| {
        use Benchmark::*;
        measured.swept.is_empty() && matches!(measured.benchmark, Latency | Bw | Bibw)
    })
}

fn answer(results: &Results, of: &str, comparison: &Comparison) -> String {
    let Comparison {
        first,
        second,
        names: [one, other],
        ..
    } = comparison;
    words(&ranges(&results.curves, of, first, second), [one, other])
}

/// The question of a document with comparisons, and a table of the answers by size. `None`: the
/// document has no comparisons.
pub(crate) fn answers(results: &Results) -> Option<(String, Table)> {
    let comparison = results.document.comparisons.first()?;
    let [one, other] = &comparison.names;
    let question =
        format!("Is {one} better than {other}? By size (differences up to 2 % count as equal):");
    let header = [&format!("{one} with"), "", "better"].map(String::from);
    Some((
        question,
        Table::of_text(header.to_vec(), answer_rows(results)),
    ))
}

/// The answer of each comparison as a sentence.
pub(crate) fn sentences(results: &Results) -> Vec<String> {
    let all = results.document.comparisons.iter();
    all.map(|comparison| sentence(&results.curves, "bw", comparison))
        .collect()
}

/// A table of the values of all curves by size, and of the quotients that answer the question.
fn by_size(results: &Results, measure: &Measure, measured: &Measured) -> Table {
    let of = measure.name.as_str();
    let names: Vec<&str> = measured.curves.iter().map(|c| c.label.as_str()).collect();
    let pairs = results.document.comparisons.iter();
    let pairs: Vec<[&str; 2]> = pairs
        .map(|pair| [pair.first.as_str(), &pair.second])
        .filter(|pair| pair.iter().all(|name| names.contains(name)))
        .collect();
    let mut header = vec!["size".to_owned()];
    header.extend(names.iter().map(|name| (*name).to_owned()));
    header.extend(pairs.iter().map(|[one, other]| format!("{one} / {other}")));
    let Some(first) = measured.curves.first() else {
        return Table::default();
    };
    let row = |&(size, _): &(usize, f64)| {
        let at = |name: &str| results.curves.at(of, name, size).unwrap_or(f64::NAN);
        let mut row = vec![size_label(size)];
        let unit = measured.benchmark.unit();
        row.extend(names.iter().map(|name| number(at(name), unit)));
        row.extend(pairs.iter().map(|[one, other]| ratio(at(one) / at(other))));
        row
    };
    Table::new(header, first.points.iter().map(row).collect(), 0)
}

/// A table of the values of all curves, with a row for each value of the swept parameter.
fn by_value(measure: &Measure, measured: &Measured) -> Table {
    let over = measure.sweep.as_ref().map_or("", |sweep| &sweep.over);
    let mut header = vec![over.trim_start_matches('-').to_owned()];
    header.extend(measured.curves.iter().map(|curve| curve.label.clone()));
    let unit = measured.benchmark.unit();
    let row = |(at, value): (usize, &String)| {
        let mut row = vec![value.clone()];
        let values = measured.curves.iter().map(|curve| curve.points.get(at));
        row.extend(values.map(|point| number(point.map_or(f64::NAN, |(_, v)| *v), unit)));
        row
    };
    let rows = measured.swept.iter().enumerate().map(row).collect();
    Table::new(header, rows, 1)
}

/// A table with columns from several measurements, at the sizes that all of them have.
fn side_by_side(results: &Results, table: &document::Table) -> Table {
    let columns = &table.columns;
    let mut header = vec!["size".to_owned()];
    for column in columns {
        let unit = results.curves.unit(&column.of).shown();
        header.push(format!("{} {}, {unit}", column.curve, column.of));
    }
    let first = columns
        .first()
        .and_then(|c| results.curves.curve(&c.of, &c.curve));
    let row = |&(size, _): &(usize, f64)| -> Option<Vec<String>> {
        let mut row = vec![size_label(size)];
        for column in columns {
            let value = results.curves.at(&column.of, &column.curve, size)?;
            row.push(number(value, results.curves.unit(&column.of)));
        }
        Some(row)
    };
    let points = first.map_or(&[][..], |curve| &curve.points);
    Table::new(header, points.iter().filter_map(row).collect(), 0)
}

/// A table of statements with their verdicts.
pub(crate) fn claims(all: &[Judged]) -> Table {
    let row = |judged: &Judged| {
        vec![
            judged.claim.into(),
            judged.about.into(),
            verdict(judged),
            judged.measured.clone(),
            judged.role.name().into(),
        ]
    };
    let header = ["claim", "", "verdict", "measured", "role"].map(String::from);
    Table::of_text(header.to_vec(), all.iter().map(row).collect())
}

/// The verdict as text, with the error of a figure that differs.
pub(crate) fn verdict(judged: &Judged) -> String {
    let verdict = match (judged.verdict, &judged.figure) {
        (Verdict::Differs, Some(figure)) => {
            format!("differs by {:+.1} %", figure.error_percent)
        }
        (verdict, _) => verdict.name().into(),
    };
    match judged.repeats {
        Some(other) => format!("{verdict}; as {other}"),
        None => verdict,
    }
}

/// A table of the statements about a machine with another interpretation, with its results.
pub(crate) fn other_readings(results: &Results) -> Option<Table> {
    let [old, _] = results.document.other_reading.as_ref()?;
    let judged = results.judge();
    let rows = judged.iter().filter_map(|judged| {
        let other = judged.other_reading.as_ref()?;
        let holds = match other.holds {
            true => "holds",
            false => "does not hold",
        };
        Some(vec![
            judged.claim.into(),
            holds.into(),
            other.measured.clone(),
        ])
    });
    let header = ["claim", &format!("other reading of {old}"), "measured"].map(String::from);
    Some(Table::of_text(header.to_vec(), rows.collect()))
}
