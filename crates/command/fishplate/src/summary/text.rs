//! The summary of a job as text of at most 80 columns.

use std::cmp::Reverse;

use profile::{Pair, ProcedureUse, RankTimes, ResourceUse, Summary};
use results::table::significant;
use results::terminal;

/// The width of the text, in columns.
const WIDTH: usize = 80;
/// The width of the labels, in columns.
const LABEL: usize = 15;
/// The most procedures that the text lists.
const PROCEDURES: usize = 4;
/// The most pairs of ranks that the text lists.
const PAIRS: usize = 3;
/// Procedures with a smaller share of the time in MPI than this are not shown.
const LEAST_SHARE: f64 = 0.001;
/// The most resources that the text lists.
const RESOURCES: usize = 3;
/// The most rails with connections from strangers that the text lists.
const VISITED: usize = 2;
/// The columns of the table of messages: the largest size in bytes, and the label. The last column
/// has all larger messages.
const COLUMNS: [(u64, &str); 5] = [
    (64, "≤ 64 B"),
    (1 << 10, "≤ 1 KiB"),
    (16 << 10, "≤ 16 KiB"),
    (256 << 10, "≤ 256 KiB"),
    (u64::MAX, "larger"),
];
/// The most ranks for which the communication matrix has a column each.
const MOST_COLUMNS: usize = 16;
/// The most pairs of ranks that are listed if there are more ranks.
const MOST_PAIRS: usize = 16;

/// The text of the summary of a job.
pub(super) fn summary(summary: &Summary) -> String {
    let mut lines = vec![title(summary)];
    if summary.is_empty() {
        lines[0] += "; no rank has called MPI_Init";
        return lines.remove(0) + "\n";
    }
    lines.push(labelled("time", &times(summary)));
    if summary.fast {
        let how = "the fast way: messages by their cost lines, no protocols";
        lines.push(labelled("computed", how));
    }
    if summary.partial {
        let why = "a rank has ended without MPI_Finalize";
        lines.push(labelled("incomplete", why));
    }
    lines.push(labelled("time in MPI", &time_in_mpi(summary)));
    lines.extend(procedures(&summary.procedures));
    lines.extend(messages(summary));
    if let Some(pairs) = heaviest(summary) {
        lines.push(labelled("heaviest", &pairs));
    }
    let resources = summary.resources.iter().take(RESOURCES);
    lines.extend(resources.enumerate().map(|(at, resource)| {
        let label = if at == 0 { "busiest" } else { "" };
        labelled(label, &busy(resource))
    }));
    if let Some(times) = outages(summary) {
        lines.push(labelled("outages", &times));
    }
    if let Some(counts) = strangers(summary) {
        lines.push(labelled("strangers", &counts));
    }
    let sentence = |label: &str, sentence: &String| {
        let label = format!("  {label:LABEL$}");
        terminal::beside(&label, label.len(), sentence, Some(WIDTH))
    };
    let left_out = summary.left_out.sentences("the machine has no storage");
    lines.extend(left_out.iter().map(|said| sentence("left out", said)));
    let other = summary.other_choices.map(|number| {
        format!("{number} tests and waits found other requests complete than in the recorded run, and waited for the recorded ones.")
    });
    lines.extend(other.map(|said| sentence("other choices", &said)));
    lines.join("\n") + "\n"
}

/// The outages of the rank that had no path to a peer for the longest time.
fn outages(summary: &Summary) -> Option<String> {
    let all = &summary.outages;
    let worst = all
        .iter()
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let times = match worst.count {
        1 => "once".into(),
        count => format!("{count} times"),
    };
    let time = duration(worst.seconds);
    let rank = worst.rank;
    let ranks = match all.len() {
        1 => String::new(),
        more => format!("; {more} ranks had some"),
    };
    Some(format!(
        "rank {rank} had no path to a peer {times}, for {time} in all{ranks}"
    ))
}

fn labelled(label: &str, text: &str) -> String {
    format!("  {label:<LABEL$}{text}")
}

fn title(summary: &Summary) -> String {
    let ranks = match summary.ranks {
        1 => "1 rank".into(),
        many => format!("{many} ranks"),
    };
    match &summary.fabric {
        Some(fabric) => format!(
            "fishplate: {ranks} on {fabric}, {} a host",
            summary.ranks_per_host
        ),
        None => format!("fishplate: {ranks}"),
    }
}

fn times(summary: &Summary) -> String {
    let wall = duration(summary.wall_s);
    match summary.virtual_s {
        Some(time) => format!("{} of virtual time, computed in {wall}", duration(time)),
        None => wall,
    }
}

fn time_in_mpi(summary: &Summary) -> String {
    let ranks = &summary.per_rank;
    let in_mpi: f64 = ranks.iter().map(|rank| rank.mpi_s).sum();
    let waited: Option<f64> = ranks.iter().map(|rank| rank.wait_s).sum();
    let waiting = waited
        .filter(|_| in_mpi > 0.0)
        .map_or(String::new(), |waited| {
            format!("; {} of it waiting", percent(waited / in_mpi))
        });
    if summary.fabric.is_some() && ranks.iter().all(|rank| rank.compute_s == 0.0) {
        return format!("all, as --compute is none{waiting}");
    }
    let shares = summary.mpi_share;
    let most = ranks.iter().max_by(|one, other| {
        let order = one.mpi_share().total_cmp(&other.mpi_share());
        order.then(other.rank.cmp(&one.rank))
    });
    let busiest = most
        .filter(|_| ranks.len() > 1)
        .map_or(String::new(), |RankTimes { rank, .. }| {
            format!(" (rank {rank})")
        });
    format!(
        "least {}, median {}, most {}{busiest}{waiting}",
        percent(shares.least),
        percent(shares.median),
        percent(shares.most)
    )
}

fn procedures(all: &[ProcedureUse]) -> Vec<String> {
    let total: f64 = all.iter().map(|procedure| procedure.seconds).sum();
    let shown = all.iter().take(PROCEDURES);
    let shown = shown.filter(|procedure| procedure.seconds >= LEAST_SHARE * total);
    let row = |(at, procedure): (usize, &ProcedureUse)| {
        let label = if at == 0 { "procedures" } else { "" };
        let share = percent(procedure.seconds / total.max(f64::MIN_POSITIVE));
        let each = duration(procedure.seconds / procedure.calls.max(1) as f64);
        let (name, calls) = (&procedure.name, procedure.calls);
        let noun = if calls == 1 { "call" } else { "calls" };
        labelled(
            label,
            &format!("{name:<26} {share:>5} {calls:>9} {noun:<5} of {each}"),
        )
    };
    shown.enumerate().map(row).collect()
}

fn messages(summary: &Summary) -> Vec<String> {
    let messages = &summary.messages;
    if messages.count == 0 {
        return vec![labelled("messages", "none")];
    }
    let mut columns: Vec<(&str, u64, u64)> =
        COLUMNS.iter().map(|(_, label)| (*label, 0, 0)).collect();
    for class in &messages.by_size {
        let column = COLUMNS.iter().position(|(most, _)| class.up_to <= *most);
        let (_, count, bytes) = &mut columns[column.unwrap_or(COLUMNS.len() - 1)];
        *count += class.count;
        *bytes += class.bytes;
    }
    columns.retain(|(_, count, _)| *count > 0);
    columns.push(("all", messages.count, messages.bytes));
    let row = |label: &str, cell: &dyn Fn(&(&str, u64, u64)) -> String| {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| format!("{:>9}", cell(column)))
            .collect();
        labelled(label, &cells.join(" "))
    };
    vec![
        row("messages", &|(label, ..)| label.to_string()),
        row("  number", &|(_, count, _)| count.to_string()),
        row("  bytes", &|(.., bytes)| amount(*bytes)),
    ]
}

/// The pairs of different ranks, those with the most bytes first.
fn heaviest_pairs(summary: &Summary) -> Vec<Pair> {
    let pairs = summary.matrix.iter().filter(|pair| pair.from != pair.to);
    let mut pairs: Vec<Pair> = pairs.copied().collect();
    pairs.sort_by_key(|pair| (Reverse((pair.bytes, pair.count)), pair.from, pair.to));
    pairs
}

fn heaviest(summary: &Summary) -> Option<String> {
    let pairs = heaviest_pairs(summary);
    let shown = pairs.iter().take(PAIRS);
    let words: Vec<String> = shown
        .map(|pair| format!("{} to {}: {}", pair.from, pair.to, amount(pair.bytes)))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The number of connections from strangers, by rank and rail. `None` if there were none.
fn strangers(summary: &Summary) -> Option<String> {
    let all = &summary.strangers;
    let total = all.iter().map(|one| one.count).fold(0, u64::saturating_add);
    let shown = all.iter().take(VISITED);
    let mut words: Vec<String> = shown
        .map(|one| format!("{} by rank {} on rail {}", one.count, one.rank, one.rail))
        .collect();
    if all.len() > VISITED {
        words.push("…".into());
    }
    (!all.is_empty()).then(|| format!("{total} dropped: {}", words.join(", ")))
}

fn busy(resource: &ResourceUse) -> String {
    let (name, host, share) = (&resource.name, resource.host, percent(resource.share));
    match resource.rail {
        Some(rail) => format!("host {host}, rail {rail}: {name} {share}"),
        None if name.starts_with("processor") => format!("{name} {share}"),
        None => format!("host {host}: {name} {share}"),
    }
}

/// The messages between ranks: for few ranks a matrix of bytes, otherwise the pairs with the most
/// bytes.
pub(super) fn matrix(summary: &Summary) -> String {
    if summary.matrix.is_empty() {
        return String::new();
    }
    let mut lines = Vec::new();
    if summary.ranks > MOST_COLUMNS {
        lines.push("  heaviest pairs".to_string());
        let row = |pair: &Pair| {
            let (from, to, count) = (pair.from, pair.to, pair.count);
            let bytes = amount(pair.bytes);
            format!("  {from:>7} to {to:<7} {count:>10} messages {bytes:>10}")
        };
        lines.extend(heaviest_pairs(summary).iter().take(MOST_PAIRS).map(row));
        return lines.join("\n") + "\n";
    }
    let most = summary.matrix.iter().map(|pair| pair.bytes).max();
    let (unit, label) = unit_of(most.unwrap_or(0), 999.5);
    lines.push(format!(
        "  {label} from each rank (row) to each rank (column)"
    ));
    let header: Vec<String> = (0..summary.ranks)
        .map(|rank| format!("{rank:>4}"))
        .collect();
    lines.push(format!("  {:>4}{}", "", header.concat()));
    for from in 0..summary.ranks as u64 {
        let cell = |to: u64| {
            let pair = summary
                .matrix
                .iter()
                .find(|pair| (pair.from, pair.to) == (from, to));
            let text = pair.map(|pair| format!("{:.0}", pair.bytes as f64 / unit));
            format!("{:>4}", text.as_deref().unwrap_or("."))
        };
        let cells: String = (0..summary.ranks as u64).map(cell).collect();
        lines.push(format!("  {from:>4}{cells}"));
    }
    lines.join("\n") + "\n"
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        share if share > 0.0 && share < 0.95 => format!("{share:.1} %"),
        share => format!("{share:.0} %"),
    }
}

/// A time with its unit, in three significant digits.
pub(crate) fn duration(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
    let unit = units.iter().find(|(unit, _)| seconds >= unit * 0.9995);
    let (unit, label) = unit.unwrap_or(&units[3]);
    format!("{} {label}", significant(seconds / unit))
}

/// The smallest unit in which `bytes` is less than `limit`: its size in bytes, and its label.
fn unit_of(bytes: u64, limit: f64) -> (f64, &'static str) {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let powers = units.iter().enumerate();
    let mut units = powers.map(|(power, label)| (1024f64.powi(power as i32), *label));
    let unit = units.find(|(unit, _)| (bytes as f64) < limit * unit);
    unit.unwrap_or((1024f64.powi(4), "TiB"))
}

/// A number of bytes with its unit, in three significant digits.
fn amount(bytes: u64) -> String {
    match unit_of(bytes, 1023.5) {
        (_, "B") => format!("{bytes} B"),
        (unit, label) => format!("{} {label}", significant(bytes as f64 / unit)),
    }
}

#[cfg(test)]
mod tests;
