//! `fishplate run --explain`: a rank's choices of protocols, rails and algorithms of collectives,
//! and who makes progress for its windows, as tables or as JSON. The short tables fit a screen:
//! they have a row for each message size at which the choice changes.

mod costs;

use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;

use results::sizes::size_label;
use results::table::{lines, significant};
use serde::Deserialize;

use costs::KnownCost;

/// The width of the tables if there is no terminal, in columns.
const WIDTH: usize = 100;
/// The least width of the column of rejected choices, in columns: that of a long choice.
const LEAST: usize = 28;

/// The value of `--explain` for the whole explanation on standard error.
const ALL: &str = "all";

/// The destination and the format of an explanation.
pub(crate) struct ExplainOutput {
    /// The file to write. `None`: standard error.
    file: Option<(PathBuf, File)>,
    json: bool,
    /// True if all sizes and all rejected choices are shown.
    whole: bool,
}

/// The layout of the tables: their width, and whether they show all sizes and choices.
#[derive(Clone, Copy)]
struct Form {
    width: usize,
    whole: bool,
}

/// The choices of one rank, decoded from its JSON.
#[derive(Deserialize)]
struct Explanation {
    rank: usize,
    peers: Vec<PeerKind>,
    #[serde(default)]
    collectives: Vec<CollectiveChoices>,
    #[serde(default)]
    windows: Vec<Windows>,
    /// The costs of messages' paths that the ranks of the host know.
    #[serde(default)]
    costs: Vec<KnownCost>,
}

/// The windows of a rank that have the same flavor, such as those of MPI_Win_allocate.
#[derive(Deserialize)]
struct Windows {
    flavor: String,
    count: u64,
    progress: Vec<WindowProgress>,
}

/// The component (memory, thread or calls) that makes progress at the target of an operation.
#[derive(Deserialize)]
struct WindowProgress {
    operations: String,
    by: String,
}

/// The algorithms of one collective operation, by message size.
#[derive(Deserialize)]
struct CollectiveChoices {
    collective: String,
    sizes: Vec<AlgorithmChoice>,
}

#[derive(Deserialize)]
struct AlgorithmChoice {
    size: usize,
    algorithm: String,
    /// The time of the algorithm in nanoseconds: predicted, or within a host measured. `None`: not
    /// known yet, so limits of size have chosen the algorithm.
    predicted_ns: Option<u64>,
    not_taken: Vec<Choice>,
}

/// The peers for which the rank makes equal choices.
#[derive(Deserialize)]
struct PeerKind {
    ranks: Vec<usize>,
    transport: String,
    rails: usize,
    /// The names of the devices, in the order of rails. Empty for modelled devices.
    #[serde(default)]
    devices: Vec<String>,
    sizes: Vec<SizeChoice>,
}

#[derive(Deserialize)]
struct SizeChoice {
    size: usize,
    protocol: String,
    predicted_ns: u64,
    not_taken: Vec<Choice>,
    rails: Option<Rails>,
}

#[derive(Deserialize)]
struct Rails {
    choice: String,
    predicted_ns: u64,
    not_taken: Vec<Choice>,
    limit: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    choice: String,
    predicted_ns: u64,
    /// The reason why the rank cannot use this choice, although it is faster than the chosen one.
    #[serde(default)]
    ruled_out_by: Option<String>,
}

impl ExplainOutput {
    /// Opens the output: the file `place`, or standard error. A file gets the whole explanation.
    pub(crate) fn open(place: Option<PathBuf>, json: bool) -> Result<ExplainOutput, String> {
        let whole = place.is_some();
        let file = place.filter(|place| place.as_os_str() != ALL);
        let file = file.map(|path| match File::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(why) => Err(format!("--explain={}: {why}", path.display())),
        });
        Ok(ExplainOutput {
            file: file.transpose()?,
            json,
            whole,
        })
    }

    /// Writes rank 0's explanation, given as JSON.
    pub(crate) fn show(self, explained: Option<&str>) -> Result<(), String> {
        let Some(json) = explained else {
            return Err(
                "--explain: rank 0 has explained nothing: it does so in MPI_Finalize of this library"
                    .into(),
            );
        };
        let text = match self.json {
            true => format!("{json}\n"),
            false => {
                let width = match self.file.is_none() && stderr().is_terminal() {
                    true => terminal_width(),
                    false => WIDTH,
                };
                let explained = serde_json::from_str(json);
                let explained = explained
                    .map_err(|why| format!("--explain: rank 0's answer is damaged: {why}"));
                let whole = self.whole;
                tables(&explained?, Form { width, whole })
            }
        };
        match self.file {
            None => stderr().write_all(text.as_bytes()).or(Ok(())),
            Some((path, mut file)) => file
                .write_all(text.as_bytes())
                .map_err(|why| format!("--explain={}: {why}", path.display())),
        }
    }
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(stderr());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH } else { columns }
}

/// The text of the explanation: a table for each kind of peer, then collectives and windows.
fn tables(explained: &Explanation, form: Form) -> String {
    let rank = explained.rank;
    if explained.peers.is_empty() {
        return format!("Rank {rank} has no peers, so it had nothing to choose.\n");
    }
    let tables = explained.peers.iter().map(|kind| {
        let rails = match kind.rails {
            0 | 1 => String::new(),
            many if kind.devices.is_empty() => format!(", {many} rails"),
            many => format!(", {many} rails: {}", kind.devices.join(", ")),
        };
        let (members, transport) = (members(&kind.ranks), &kind.transport);
        format!(
            "Messages of rank {rank} to {members} ({transport}{rails}); predicted times in µs:\n{}",
            table(kind, form)
        )
    });
    let mut text = tables.collect::<Vec<_>>().join("\n");
    let sizes = || explained.peers.iter().flat_map(|kind| &kind.sizes);
    let announced = |choice: &Choice| choice.choice == ANNOUNCED;
    text += &ruled_out(sizes());
    if sizes().any(|size| size.not_taken.iter().any(announced)) {
        text +=
            "Ready to receive is taken where the receiver has announced its buffer beforehand.\n";
    }
    if sizes().any(|size| size.protocol.contains(SHARED)) {
        text += "A shared send does not wait for its receive: the receiver reads the message, or the sender copies it.\n";
    }
    if !explained.collectives.is_empty() {
        text += &match form.whole {
            true => collectives(&explained.collectives, form.width),
            false => algorithms(&explained.collectives, form.width),
        };
    }
    if !explained.windows.is_empty() {
        text += &windows(&explained.windows);
    }
    if form.whole && !explained.costs.is_empty() {
        text += &costs::table(&explained.costs);
    }
    if !form.whole {
        text += "\n--explain=all shows more sizes, and all choices that are not taken.\n";
    }
    text
}

/// A line for each protocol that is predicted to be faster than the chosen one, with the reason why
/// it cannot be used.
fn ruled_out<'a>(sizes: impl Iterator<Item = &'a SizeChoice>) -> String {
    let mut lines: Vec<(&str, &str, usize, usize)> = Vec::new();
    for size in sizes {
        for other in size
            .not_taken
            .iter()
            .filter(|other| other.choice != ANNOUNCED)
        {
            let Some(why) = other.ruled_out_by.as_deref() else {
                continue;
            };
            let known = lines
                .iter_mut()
                .find(|line| line.0 == other.choice && line.1 == why);
            match known {
                Some((_, _, from, to)) => {
                    (*from, *to) = ((*from).min(size.size), (*to).max(size.size))
                }
                None => lines.push((other.choice.as_str(), why, size.size, size.size)),
            }
        }
    }
    let line = |(choice, why, from, to): (&str, &str, usize, usize)| {
        let sizes = match from == to {
            true => format!("at {}", size_label(from)),
            false => format!("between {} and {}", size_label(from), size_label(to)),
        };
        format!(
            "The {choice} protocol is predicted to be faster {sizes}, but {why} rules it out.\n"
        )
    };
    lines.into_iter().map(line).collect()
}

/// A table with a row for each kind of windows.
fn windows(all: &[Windows]) -> String {
    let row = |of: &Windows| {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in &of.progress {
            match groups.iter_mut().find(|(by, _)| *by == one.by) {
                Some((_, operations)) => operations.push(&one.operations),
                None => groups.push((&one.by, vec![&one.operations])),
            }
        }
        let progress = groups.iter().map(|(by, operations)| {
            let by = match *by {
                "memory" => "not needed: loads and stores",
                "thread" => "thread, while it computes",
                "calls" => "its MPI calls",
                other => other,
            };
            format!("{}: {by}", operations.join(", "))
        });
        let progress = progress.collect::<Vec<_>>().join("; ");
        vec![of.flavor.clone(), of.count.to_string(), progress]
    };
    let header = ["made by", "windows", "progress at the target"];
    let header = header.map(String::from).to_vec();
    let table = lines(header, all.iter().map(row).collect(), 3);
    format!("\nWindows of the rank:\n{table}")
}

/// A table with a row for each collective operation and its algorithms.
fn algorithms(all: &[CollectiveChoices], width: usize) -> String {
    let names = all.iter().map(|of| of.collective.chars().count());
    let left = width.saturating_sub(names.max().unwrap_or(0).max(10) + 6);
    let row = |of: &CollectiveChoices| {
        let mut algorithms: Vec<String> = Vec::new();
        let mut last = "";
        for choice in &of.sizes {
            if choice.algorithm != last {
                let from = match last {
                    "" => String::new(),
                    _ => format!(" from {}", size_label(choice.size)),
                };
                last = &choice.algorithm;
                algorithms.push(format!("{last}{from}"));
            }
        }
        vec![of.collective.clone(), joined(algorithms, left)]
    };
    let header = ["collective", "algorithm"].map(String::from).to_vec();
    let table = lines(header, all.iter().map(row).collect(), 2);
    format!("\nCollectives on MPI_COMM_WORLD:\n{table}")
}

/// A table with a row for each collective operation and each size at which its algorithm changes.
fn collectives(all: &[CollectiveChoices], width: usize) -> String {
    let header = ["collective", "from", "algorithm", "time", "not taken"];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut others = Vec::new();
    for of in all {
        let mut last = "";
        for choice in of.sizes.iter() {
            if choice.algorithm == last {
                continue;
            }
            let name = if last.is_empty() { &of.collective } else { "" };
            last = &choice.algorithm;
            let time = choice.predicted_ns.map_or("–".into(), micros);
            let size = size_label(choice.size);
            rows.push(vec![name.to_string(), size, last.to_string(), time]);
            others.push(&choice.not_taken);
        }
    }
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].len()]).max().unwrap_or(0)
    };
    let used: usize = (0..4).map(|column| widest(column) + 3).sum();
    let left = width.saturating_sub(used + 2).max(LEAST);
    for (row, others) in rows.iter_mut().zip(others) {
        row.push(in_lines(others.iter(), left));
    }
    let table = lines(header.map(String::from).to_vec(), rows, 5);
    format!("\nCollectives on MPI_COMM_WORLD; predicted or measured times in µs:\n{table}")
}

/// Name of messages that their receiver may read although their sends do not wait for it.
const SHARED: &str = "shared send";
/// The protocol that is only possible if the receiver has announced its buffer.
const ANNOUNCED: &str = "ready to receive";

fn table(kind: &PeerKind, form: Form) -> String {
    let several = kind.rails > 1;
    let mut header = vec!["from".to_string(), "protocol".into()];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let shown: Vec<&SizeChoice> = match form.whole {
        true => kind.sizes.iter().collect(),
        false => changes(&kind.sizes),
    };
    for choice in &shown {
        let mut row = vec![size_label(choice.size), choice.protocol.clone()];
        if several {
            let rails = choice.rails.as_ref();
            row.push(rails.map_or("–".into(), split));
        }
        row.push(micros(choice.predicted_ns));
        rows.push(row);
    }
    header.extend(several.then(|| "rails".to_string()));
    let others = if form.whole { "not taken" } else { "next best" };
    header.extend(["time".into(), others.into()]);
    let last = header.len() - 1;
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].len()]).max().unwrap_or(0)
    };
    // Each column has a blank on either side, and a line between it and the next.
    let used: usize = (0..last).map(|column| widest(column) + 3).sum();
    let left = form.width.saturating_sub(used + 2).max(LEAST);
    for (row, choice) in rows.iter_mut().zip(&shown) {
        row.push(match form.whole {
            true => not_taken(choice, several, left),
            false => in_lines(next_best(choice).into_iter(), left),
        });
    }
    lines(header, rows, last + 1)
}

/// The sizes at which the chosen protocol, or the kind of use of the rails, changes.
fn changes(sizes: &[SizeChoice]) -> Vec<&SizeChoice> {
    // "split 55:45" and "split 52:48" are the same kind of use.
    let kind = |choice: &SizeChoice| {
        let rails = choice.rails.as_ref().map(|rails| rails.choice.as_str());
        let rails = rails.map(|choice| match choice.starts_with("split ") {
            true => "split",
            false => choice,
        });
        (choice.protocol.clone(), rails.map(str::to_owned))
    };
    let mut chosen: Vec<&SizeChoice> = Vec::new();
    for choice in sizes {
        if chosen.last().is_none_or(|last| kind(last) != kind(choice)) {
            chosen.push(choice);
        }
    }
    chosen
}

/// The fastest protocol among the rejected ones.
fn next_best(choice: &SizeChoice) -> Option<&Choice> {
    let others = choice.not_taken.iter();
    let others = others.filter(|other| other.choice != ANNOUNCED);
    others.min_by_key(|other| other.predicted_ns)
}

fn split(rails: &Rails) -> String {
    let limit = rails.limit.as_ref();
    let limit = limit.map_or(String::new(), |limit| format!(", bound by {limit}"));
    format!("{} {}{limit}", rails.choice, micros(rails.predicted_ns))
}

/// The rejected choices, in lines of at most `width` characters. No choice is broken over two
/// lines.
fn not_taken(choice: &SizeChoice, several: bool, width: usize) -> String {
    let rails = choice.rails.iter().filter(|_| several);
    let rails = rails.flat_map(|rails| &rails.not_taken);
    in_lines(choice.not_taken.iter().chain(rails), width)
}

fn in_lines<'a>(choices: impl Iterator<Item = &'a Choice>, width: usize) -> String {
    let words = choices.map(|other| format!("{} {}", other.choice, micros(other.predicted_ns)));
    joined(words, width)
}

/// Joins parts by commas, in lines of at most `width` characters. No part is broken over two lines.
fn joined(parts: impl IntoIterator<Item = String>, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            // The part takes ", " before it, and perhaps a comma after it.
            Some(line) if line.chars().count() + part.chars().count() + 3 <= width => {
                *line += &format!(", {part}");
            }
            _ => lines.push(part),
        }
    }
    lines.join(",\n")
}

fn micros(nanos: u64) -> String {
    significant(nanos as f64 / 1e3)
}

/// The numbers of ranks as text, consecutive ones as ranges.
fn members(ranks: &[usize]) -> String {
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", launch::ranges(ranks))
}
