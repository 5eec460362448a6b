//! Several comparisons that differ in a setting, such as the placement of the job: the answers side
//! by side.

use results::report::{Block, Page, Section};
use results::table::Table;
use serde_json::{Value, json};

use crate::page::page_of;
use crate::report::Comparison;
use crate::row::{EQUAL, Row};
use crate::setting::{PER_HOST, words};
use crate::show;
use crate::work::Measure;
use fabric::catalogue::UncertainValue;

/// The comparisons as text, with a table of all answers at the end.
pub fn text(comparisons: &[Comparison]) -> String {
    let texts: Vec<String> = comparisons.iter().map(show::text).collect();
    let texts = texts.join("\n");
    match has_table(comparisons) {
        false => texts,
        true => format!(
            "{texts}\n{}:\n\n{}{}",
            title(comparisons),
            table(comparisons).text(),
            best_of_all(comparisons).map_or(String::new(), |best| format!("\n{best}\n"))
        ),
    }
}

/// True if answers are shown side by side.
fn has_table(comparisons: &[Comparison]) -> bool {
    comparisons.len() > 1 || comparisons.iter().any(|one| one.placement.is_several())
}

/// The comparisons as one JSON object.
pub fn json(comparisons: &[Comparison]) -> Value {
    match comparisons {
        [one] => crate::json::json(one),
        several => {
            let all = several.iter().map(crate::json::json);
            let answers = answers(several).into_iter().map(|one| {
                let names = |machine: usize| one.of.machines[machine].name.clone();
                let setting = one.of.setting.iter();
                let setting = setting.map(|one| (one.name.to_owned(), json!(one.value)));
                json!({
                    "setting": setting.collect::<serde_json::Map<_, _>>(),
                    "placement": one.of.placement.name,
                    "ranks_per_host": one.of.per_host,
                    "ranks": one.ranks,
                    "best": one.best().map(|row| names(row.machine)),
                    "lead": one.lead(),
                    "placements": one.of.placement.each.len(),
                    "holds_on": one.holds(),
                })
            });
            json!({
                "answers": answers.collect::<Vec<_>>(),
                "comparisons": all.collect::<Vec<_>>(),
            })
        }
    }
}

/// The page of the comparisons. `uncertain` has the inferred and assumed values of each machine.
pub fn page(comparisons: &[Comparison], uncertain: &[(String, Vec<UncertainValue>)]) -> Page {
    let mut pages = comparisons.iter().map(|one| page_of(one, uncertain));
    let mut whole = pages.next().unwrap_or_default();
    if let [first, others @ ..] = comparisons
        && has_table(comparisons)
    {
        let named = |mut section: Section, of: &Comparison| {
            section.heading = format!("{}: {}", words(&of.setting), section.heading);
            section
        };
        let own = std::mem::take(&mut whole.sections).into_iter();
        whole.lead = format!("{}: {}", words(&first.setting), whole.lead);
        let mut answers = vec![table(comparisons).into()];
        answers.extend(best_of_all(comparisons).map(Block::Text));
        whole
            .sections
            .push(Section::new(title(comparisons), answers));
        whole
            .sections
            .extend(own.map(|section| named(section, first)));
        for (of, page) in others.iter().zip(pages) {
            let answer = Section::new("the answer", vec![Block::Text(page.lead)]);
            let all = std::iter::once(answer).chain(page.sections);
            whole.sections.extend(all.map(|section| named(section, of)));
        }
    }
    whole
}

/// The rows of one comparison with one number of ranks.
struct Answer<'a> {
    of: &'a Comparison,
    ranks: usize,
    rows: Vec<&'a Row>,
}

impl Answer<'_> {
    /// The rows with their values, in ascending order.
    fn order(&self) -> Vec<(f64, &Row)> {
        let valued = self.rows.iter();
        let valued = valued.filter_map(|row| Some((self.of.advice.value(row)?, *row)));
        let mut order: Vec<(f64, &Row)> = valued.collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        order
    }

    fn best(&self) -> Option<&Row> {
        self.order().first().map(|first| first.1)
    }

    /// The value of the second machine divided by that of the best. `None`: there is one machine.
    fn lead(&self) -> Option<f64> {
        match self.order()[..] {
            [first, second, ..] => Some(second.0 / first.0),
            _ => None,
        }
    }

    /// The number of placements on which no machine is better than the best one by 2 % or more.
    fn holds(&self) -> Option<usize> {
        let best = self.best()?;
        let good = |at: &usize| {
            let rows = self.rows.iter();
            let values = rows.filter_map(|row| row.value_placed(self.of.advice.value(row)?, *at));
            let least = values.fold(f64::INFINITY, f64::min);
            let own = self.of.advice.value(best);
            let own = own.and_then(|value| best.value_placed(value, *at));
            own.is_some_and(|own| own <= least * (1.0 + EQUAL))
        };
        (!best.placed.is_empty()).then(|| (0..best.placed.len()).filter(good).count())
    }

    fn sentence(&self) -> String {
        let (Some(best), Some(lead)) = (self.best(), self.lead()) else {
            return "–".into();
        };
        let name = &self.of.machines[best.machine].name;
        let mut said = match lead < 1.0 + EQUAL {
            true => "equal".to_owned(),
            false => format!("{name} by {:.0} %", (lead - 1.0) * 100.0),
        };
        if let (Some(held), true) = (self.holds(), lead >= 1.0 + EQUAL) {
            said += &format!(", on {held} of {}", best.placed.len());
        }
        said
    }
}

fn answers(comparisons: &[Comparison]) -> Vec<Answer<'_>> {
    let mut answers = Vec::new();
    let sweep = comparisons.iter().flat_map(Comparison::sweep);
    for ranks in results::table::distinct(sweep) {
        for of in comparisons {
            let rows = of.rows.iter().filter(|row| row.ranks == ranks);
            let rows: Vec<&Row> = rows.collect();
            if !rows.is_empty() {
                answers.push(Answer { of, ranks, rows });
            }
        }
    }
    answers
}

/// The table of answers: a row for each number of ranks and setting.
fn table(comparisons: &[Comparison]) -> Table {
    let machines = comparisons.iter().flat_map(|one| &one.machines);
    let names = results::table::distinct(machines.map(|machine| machine.name.as_str()));
    let settings = setting_names(comparisons);
    let header = std::iter::once("ranks").chain(settings.iter().copied());
    let header = header.chain(names).chain(["best"]).map(String::from);
    let is_of_iterations = are_of_iterations(comparisons);
    let rows = answers(comparisons).into_iter().map(|answer| {
        let times = answer.rows.iter().map(|row| cell(row, is_of_iterations));
        let value = |name: &&str| {
            let mut all = answer.of.setting.iter();
            let found = all.find(|one| one.name == *name);
            found.map_or_else(String::new, |one| one.value.clone())
        };
        let first = std::iter::once(answer.ranks.to_string());
        let first = first.chain(settings.iter().map(value));
        first.chain(times).chain([answer.sentence()]).collect()
    });
    Table {
        header: header.collect(),
        rows: rows.collect(),
        right_aligned: vec![0],
    }
}

/// The compared time of a row, or that of an iteration, with its range over several placements.
fn cell(row: &Row, is_of_iterations: bool) -> String {
    let Some(value) = row.value else {
        return "–".into();
    };
    // Rows may count different numbers of iterations.
    let scale = match row.iteration.filter(|_| is_of_iterations) {
        Some(iteration) => iteration / value,
        None => 1.0,
    };
    let time = |seconds: f64| show::time(seconds * scale);
    match row.placed_range() {
        None => time(value),
        Some((least, most)) => {
            format!("{} ({} to {})", time(value), time(least), time(most))
        }
    }
}

/// True if a loop decides in all comparisons, so that times of its iterations are shown.
fn are_of_iterations(comparisons: &[Comparison]) -> bool {
    let mut measures = comparisons.iter().map(|one| one.measure);
    measures.all(|measure| matches!(measure, Measure::Loop | Measure::WholeLoop))
}

/// The names of the settings of the comparisons.
fn setting_names(comparisons: &[Comparison]) -> Vec<&'static str> {
    let all = comparisons.iter().flat_map(|one| &one.setting);
    results::table::distinct(all.map(|one| one.name))
}

/// The sentence about the best of all settings and numbers of ranks. `None`: the settings are
/// placements alone, which nobody chooses, or values of the comparisons cannot be compared.
fn best_of_all(comparisons: &[Comparison]) -> Option<String> {
    if !setting_names(comparisons).contains(&PER_HOST) {
        return None;
    }
    let criteria = comparisons.iter();
    let criteria = criteria.map(|one| (one.measure, one.advice.by_money));
    let of_iterations = are_of_iterations(comparisons);
    let by_money = comparisons.iter().any(|one| one.advice.by_money);
    let by_iteration = of_iterations && !by_money;
    if !by_iteration && results::table::distinct(criteria).len() > 1 {
        return None;
    }
    let answers = answers(comparisons).into_iter();
    let valued = answers.filter_map(|one| {
        let (value, row) = *one.order().first()?;
        let value = match by_iteration {
            true => row.iteration?,
            false => value,
        };
        Some((value, one))
    });
    let (_, best) = valued.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let row = best.best()?;
    Some(format!(
        "Best of all: {} with {} ranks, {} ({}).",
        best.of.machines[row.machine].name,
        best.ranks,
        words(&best.of.setting),
        cell(row, of_iterations),
    ))
}

/// The title of the table of answers.
fn title(comparisons: &[Comparison]) -> String {
    let by = format!(
        "The answers by {}",
        setting_names(comparisons).join(" and ")
    );
    match are_of_iterations(comparisons) {
        true => by + ", with times of an iteration",
        false => by,
    }
}
