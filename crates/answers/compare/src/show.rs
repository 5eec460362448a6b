//! A comparison as tables and text.

use profile::Summary;
use results::table::Table;

use crate::bounds::Bounds;
use crate::machine::Hardware;
use crate::report::Comparison;
use crate::row::{EQUAL, Outcome, Row};
use crate::setting::{PER_HOST, PLACEMENT};
pub(crate) use crate::words::{or_dash, percent, ratio, time};
use crate::work::Measure;
use crate::{check, measured, messages, money};

/// The comparison as text, at most 100 columns wide.
pub(crate) fn text(comparison: &Comparison) -> String {
    let mut text = format!(
        "{}: {}, replayed on {} machines, {} a host{}\n\n",
        comparison.program,
        recordings(comparison),
        comparison.machines.len(),
        match comparison.per_host {
            1 => "1 rank".into(),
            many => format!("{many} ranks"),
        },
        settings(comparison)
    );
    let check = check::show::text(comparison, wrapped);
    if !check.is_empty() {
        text += &check;
        text.push('\n');
    }
    text += &times(comparison).text();
    text += &format!(
        "\n{}\n",
        wrapped(&measured::sentences(comparison).join(" "))
    );
    text += &refused(comparison);
    for remark in remarks(comparison) {
        text += &format!("\n{}\n", wrapped(&remark));
    }
    text += &money::text(comparison, wrapped);
    if let Some(table) = shares(comparison, false) {
        text += &format!("\n{}:\n\n{}", shares_of(comparison), table.text());
    }
    if let Some(sentence) = fullest_links(comparison) {
        text += &format!("\n{}\n", wrapped(&sentence));
    }
    if let Some(sentence) = messages::sentence(comparison) {
        text += &format!("\n{}\n", wrapped(&sentence));
    }
    if let Some(table) = deciding(comparison) {
        text += &format!("\n{}", table.text());
    }
    text + "\n" + &wrapped(&comparison.advice.sentence()) + "\n"
}

/// The clause about the placement and the other settings; empty without any.
fn settings(comparison: &Comparison) -> String {
    let placement = (!comparison.placement.is_packed())
        .then(|| format!(", placement {}", comparison.placement.name));
    let others = comparison.setting.iter();
    let others = others.filter(|one| ![PLACEMENT, PER_HOST].contains(&one.name));
    let others = others.map(|one| format!(", {}", one.words()));
    placement.into_iter().chain(others).collect()
}

/// The clause about the number of recordings.
fn recordings(comparison: &Comparison) -> String {
    let numbers = comparison.recorded.iter().map(|of| of.recordings);
    let numbers = results::table::distinct(numbers);
    if let Some(program) = &comparison.trace {
        return match numbers.as_slice() {
            [1] => format!("a trace of `{program}`"),
            _ => format!("traces of `{program}`"),
        };
    }
    match numbers.as_slice() {
        [1] => "recorded once for each number of ranks".into(),
        [number] => format!("recorded {number} times for each number of ranks"),
        many => {
            let (least, most) = (many.iter().min(), many.iter().max());
            let [least, most] = [least, most].map(|number| number.copied().unwrap_or(0));
            format!("recorded {least} to {most} times for each number of ranks")
        }
    }
}

/// Remarks about the recordings and about efficiencies that seem impossible.
pub(crate) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks = Vec::new();
    let unaligned = comparison
        .recorded
        .iter()
        .filter(|of| !of.aligned && of.recordings > 1);
    let unaligned: Vec<String> = unaligned.map(|of| of.ranks.to_string()).collect();
    if !unaligned.is_empty() {
        remarks.push(format!(
            "The calls of {} ranks differ from recording to recording (the program decides by time), so the recording in the \
             middle counts as a whole.",
            unaligned.join(" and of ")
        ));
    }
    remarks.extend(crate::remarks::of_recordings(comparison).map(String::from));
    remarks.extend(check::show::remark(comparison));
    let notes = comparison.notes.iter();
    remarks.extend(notes.map(|note| format!("The trace notes: {note}")));
    let scaled = comparison
        .machines
        .iter()
        .filter(|machine| machine.compute_scale != 1.0);
    let scaled: Vec<String> = scaled
        .map(|machine| format!("{} takes {:.3} times", machine.name, machine.compute_scale))
        .collect();
    if !scaled.is_empty() {
        remarks.push(format!(
            "Computing on {} the time that it takes on this computer (--speed).",
            scaled.join(", on ")
        ));
    }
    remarks.extend(chosen_hosts(comparison));
    remarks.extend(changed_values(comparison));
    let fewest = comparison.sweep().into_iter().min().unwrap_or(1);
    let computing = |ranks: usize| {
        let of = comparison.recorded.iter().find(|of| of.ranks == ranks)?;
        Some(of.computing)
    };
    for ranks in comparison.sweep() {
        let rows = comparison.rows.iter().filter(|row| row.ranks == ranks);
        let efficiencies = rows.filter_map(|row| comparison.efficiency(row));
        let highest = efficiencies.reduce(f64::max).unwrap_or(0.0);
        let (Some(here), Some(there)) = (computing(ranks), computing(fewest)) else {
            continue;
        };
        if highest <= 1.0 + EQUAL || there <= 0.0 {
            continue;
        }
        let change = (here / there - 1.0) * 100.0;
        let why = match change < 0.0 {
            true => format!(
                "all {ranks} ranks together compute {:.0} % less than {fewest} ranks do, perhaps because smaller parts fit into caches",
                -change
            ),
            false => "the ranks compute no less, so they wait less for each other".into(),
        };
        remarks.push(format!(
            "The efficiency of {ranks} ranks is above 100 %: {why}."
        ));
    }
    remarks.extend(crate::remarks::estimated(comparison));
    remarks.extend(crate::remarks::other_choices(comparison));
    remarks.extend(crate::remarks::unknown_bounds(comparison));
    remarks.extend(crate::remarks::left_out(comparison));
    remarks
}

/// A remark about the hosts that the user has chosen for all machines; `None` if there are none.
fn chosen_hosts(comparison: &Comparison) -> Option<String> {
    let first = comparison.machines.first()?;
    let word = first.host.as_ref()?;
    let Hardware { host, software, .. } = &first.hardware;
    Some(format!(
        "All machines have {host} hosts, with the costs of the MPI library of {software} (--host {word})."
    ))
}

/// A remark about the values that the user has changed; `None` if there are none.
fn changed_values(comparison: &Comparison) -> Option<String> {
    let machines = comparison.machines.iter();
    let changed = machines.filter(|machine| !machine.changes.is_empty());
    let changed: Vec<String> = changed
        .map(|machine| {
            let changes = machine.changes.iter().map(ToString::to_string);
            let changes: Vec<String> = changes.collect();
            format!("{} of {}", changes.join(", "), machine.name)
        })
        .collect();
    let all = changed.join("; ");
    (!all.is_empty()).then(|| format!("Changed values (--set): {all}."))
}

/// The table of the networks of the best machine and its challenger, each in the hosts of both: the
/// values, divided by that of the best machine. `None`: their hosts do not differ.
pub(crate) fn exchange(comparison: &Comparison) -> Option<Table> {
    let of = comparison.advice.exchange.as_ref()?;
    let named = of.names.iter().zip(&of.hosts);
    let header = named.map(|(name, host)| format!("in the hosts of {name} ({host})"));
    let rows = of.names.iter().zip(of.values).map(|(name, values)| {
        let values = values.map(|value| format!("{:.2}", value / of.values[0][0]));
        std::iter::once(name.clone()).chain(values).collect()
    });
    let header = std::iter::once("network of".to_owned()).chain(header);
    Some(Table::new(header.collect(), rows.collect(), 1))
}

/// The widest line of running text, in columns.
const WIDE: usize = 96;

/// Running text, wrapped into lines.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + word.chars().count() >= WIDE {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.join("\n")
}

/// The busiest resource that is not a processor, for a table; a processor if there are no others.
fn busiest(summary: &Summary) -> Option<String> {
    let mut resources = summary.resources.iter();
    let network = resources.find(|one| !one.name.contains("processor"));
    let resource = network.or(summary.resources.first())?;
    // Drop the rank of a name such as "processor of rank 3 (computing)".
    let name = resource.name.split(" of rank ").next()?;
    Some(format!("{name} {}", percent(resource.share)))
}

/// The table of times.
pub(crate) fn times(comparison: &Comparison) -> Table {
    let sweeps = comparison.sweep().len() > 1;
    let has_loop = comparison.measure != Measure::Rest;
    let wanted = match comparison.measure {
        Measure::Iterations(number) => Some(format!("{number} iterations")),
        _ => None,
    };
    let mut header = vec!["machine", "ranks", "time", "start"];
    if has_loop {
        header.push("iteration");
    }
    header.extend(wanted.as_deref());
    let is_placed = comparison.placement.is_several();
    if is_placed {
        header.push("placements");
    }
    header.extend(["speed-up", "spread"]);
    if sweeps {
        header.push("eff.");
    }
    header.extend(["in MPI", "bound by"]);
    let rows = comparison.rows.iter().map(|row| {
        let summary = row.summary();
        let mut cells = vec![
            comparison.machines[row.machine].name.clone(),
            row.ranks.to_string(),
            or_dash(row.time().map(time)),
            or_dash(row.start.map(time)),
        ];
        if has_loop {
            cells.push(or_dash(row.iteration.map(time)));
        }
        if wanted.is_some() {
            cells.push(or_dash(row.value.map(time)));
        }
        if is_placed {
            cells.push(or_dash(row.placed_spread().map(percent)));
        }
        let spread = row.spread();
        cells.push(ratio(comparison.speed_up(row)));
        cells.push(match spread {
            Some(spread) => format!("{:.1} %", spread * 100.0),
            None if comparison.has_one_recording(row.ranks) => "unknown".into(),
            None => "–".into(),
        });
        if sweeps {
            cells.push(or_dash(comparison.efficiency(row).map(percent)));
        }
        cells.push(or_dash(
            summary.map(|summary| percent(summary.mpi_share.median)),
        ));
        cells.push(match (&row.bounds, &row.no_bounds) {
            (None, Some(_)) => "unknown".into(),
            (bounds, _) => or_dash(bounds.map(|bounds| bounds.name().into())),
        });
        cells
    });
    let header: Vec<String> = header.into_iter().map(String::from).collect();
    let last = header.len() - 1;
    let is_left = |column: &usize| [0, last].contains(column);
    Table {
        right_aligned: (0..header.len())
            .filter(|column| !is_left(column))
            .collect(),
        header,
        rows: rows.collect(),
    }
}

fn refused(comparison: &Comparison) -> String {
    let mut text = String::new();
    for row in &comparison.rows {
        if let Outcome::Refused(why) = &row.outcome {
            let name = &comparison.machines[row.machine].name;
            let line = format!("{name}, {} ranks: not replayed: {why}", row.ranks);
            text += &format!("\n{}\n", wrapped(&line));
        }
    }
    text
}

/// The title of the table of shares.
fn shares_of(comparison: &Comparison) -> String {
    let has_shares = |row: &&Row| row.bounds.is_some();
    let ranks = comparison
        .rows
        .iter()
        .filter(has_shares)
        .map(|row| row.ranks);
    match results::table::distinct(ranks).as_slice() {
        [one] if comparison.sweep().len() > 1 => format!("Shares of the time with {one} ranks"),
        _ => "Shares of the time".into(),
    }
}

/// The table of the shares of the time; if `is_wide`, with the busiest resource. `None` if no row
/// is divided.
pub(crate) fn shares(comparison: &Comparison, is_wide: bool) -> Option<Table> {
    let shown = Bounds::shown(comparison.rows.iter().filter_map(|row| row.bounds));
    let names = shown.iter().map(|share| &Bounds::NAMES[*share]);
    let last = is_wide.then_some(&"busiest resource");
    let header = ["machine", "ranks"].iter().chain(names).chain(last);
    let header: Vec<String> = header.map(|name| name.to_string()).collect();
    let rows = comparison.rows.iter().filter_map(|row| {
        let bounds = row.bounds?;
        let name = comparison.machines[row.machine].name.clone();
        let cells = [name, row.ranks.to_string()].into_iter();
        let parts = shown.iter().map(|share| percent(bounds.shares[*share]));
        let busiest = is_wide.then(|| or_dash(row.summary().and_then(busiest)));
        Some(cells.chain(parts).chain(busiest).collect())
    });
    let table = Table {
        right_aligned: (1..header.len() - usize::from(is_wide)).collect(),
        header,
        rows: rows.collect(),
    };
    (!table.rows.is_empty()).then_some(table)
}

/// The sentence about the fullest link between switches of each machine, with the number of ranks
/// of the answer. `None`: contention costs no time.
pub(crate) fn fullest_links(comparison: &Comparison) -> Option<String> {
    let rows = comparison.rows.iter();
    let rows = rows.filter(|row| row.ranks == comparison.advice.ranks);
    let named = rows.filter_map(|row| {
        let link = row.summary()?.fullest_link.as_ref()?;
        let is_shared = row.bounds?.shares[Bounds::CONTENTION] > Bounds::LEAST;
        let rail = match comparison.machines[row.machine].hardware.rails {
            1 => String::new(),
            _ => format!(" of rail {}", link.rail.unwrap_or(0)),
        };
        let name = &comparison.machines[row.machine].name;
        let share = percent(link.share);
        is_shared.then(|| format!("{name} {}{rail}: full for {share} of the run", link.name))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("Fullest link between switches: {}.", named.join("; ")))
}

/// The table of the assumptions that would change the answer.
pub(crate) fn deciding(comparison: &Comparison) -> Option<Table> {
    let found = comparison.advice.sensitivity.as_ref()?;
    let rows: Vec<Vec<String>> = found
        .deciding
        .iter()
        .map(|one| {
            let values: Vec<String> = one
                .values
                .iter()
                .flatten()
                .map(|value| shorter(value))
                .collect();
            let assumption = &one.assumption;
            vec![
                assumption.name.clone(),
                assumption.value.clone(),
                values.join(" or "),
            ]
        })
        .collect();
    let header = ["value that decides", "is", "the answer changes with"];
    let table = Table::of_text(header.map(String::from).to_vec(), rows);
    (!table.rows.is_empty()).then_some(table)
}

/// A value in picoseconds in the unit that the catalogue uses; other values unchanged.
fn shorter(value: &str) -> String {
    let picos = value
        .strip_suffix(" ps")
        .and_then(|number| number.parse().ok());
    picos.map_or(value.to_owned(), |picos| {
        fabric::Nanos::from_picos(picos).to_string()
    })
}

#[cfg(test)]
mod tests;
