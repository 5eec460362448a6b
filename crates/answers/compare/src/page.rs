//! A comparison as an HTML page.

use fabric::catalogue::UncertainValue;
use results::report::{Axis, Block, Made, Page, Plot, Section, Series, assumptions};
use results::table::{Table, significant};

use crate::bounds::Bounds;
use crate::machine::Hardware;
use crate::report::Comparison;
use crate::row::{Outcome, Row};
use crate::show;
use crate::{check, measured, messages, money, networks};

/// The page of a comparison. `uncertain` has the inferred and assumed values of each machine.
pub(crate) fn page_of(
    comparison: &Comparison,
    uncertain: &[(String, Vec<UncertainValue>)],
) -> Page {
    let mut results = vec![Block::from(picture(comparison))];
    results.push(Block::Text(measured::sentences(comparison).join(" ")));
    results.extend(scaling(comparison).map(Block::from));
    results.push(show::times(comparison).into());
    let refused = comparison
        .rows
        .iter()
        .filter_map(|row| refusal(comparison, row));
    results.extend(refused);
    results.extend(show::remarks(comparison).into_iter().map(Block::Text));
    let mut sections = vec![
        Section::new("Time", results),
        machines(comparison),
        match show::shares(comparison, true) {
            Some(table) => {
                let links = show::fullest_links(comparison).map(Block::Text);
                let blocks = std::iter::once(Block::from(table)).chain(links);
                Section::new(
                    "What bounds the program",
                    blocks.chain([terms(comparison)]).collect(),
                )
            }
            None => Section::new("Words", vec![terms(comparison)]),
        },
    ];
    sections.extend(money::section(comparison));
    sections.extend(networks::section(comparison));
    sections.extend(check::show::section(comparison));
    sections.extend(messages::section(comparison));
    sections.extend(show::deciding(comparison).map(|table| {
        let text = "Each inferred or assumed value of the two best machines was changed by 20 % in both directions. These values alone change \
                    the answer:";
        Section::new("How sure the answer is", vec![Block::Text(text.into()), table.into()])
    }));
    sections.extend(show::exchange(comparison).map(hosts));
    sections.push(assumptions(uncertain));
    Page {
        title: format!(
            "{} on {} machines",
            comparison.program,
            comparison.machines.len()
        ),
        answer: comparison.advice.headline(),
        certainty: comparison.advice.certainty_word().into(),
        lead: comparison.advice.sentence(),
        sections,
        made: Some(Made::here()),
    }
}

/// The section about network and hosts.
fn hosts(table: Table) -> Section {
    let text = "The network of a machine is its cards, rails, cables and switches. Each was replayed in the hosts of both machines, with their \
                slots, their MPI library and their processors. The values are relative to the best machine; those of one column differ by \
                the network alone.";
    Section::new(
        "Host and network",
        vec![table.into(), Block::Text(text.into())],
    )
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

/// The picture of a comparison: the time of each machine with each number of ranks, as a bar of its
/// parts.
pub fn picture(comparison: &Comparison) -> Plot {
    let rows = comparison.sweep().into_iter().flat_map(|ranks| {
        let machines = 0..comparison.machines.len();
        machines.filter_map(move |machine| comparison.row(machine, ranks))
    });
    let rows: Vec<&Row> = rows.filter(|row| row.time().is_some()).collect();
    let has_one = comparison.sweep().len() == 1;
    let names = rows.iter().map(|row| {
        let name = &comparison.machines[row.machine].name;
        match has_one {
            true => name.clone(),
            false => format!("{name}, {}", row.ranks),
        }
    });
    let unit = Unit::of(rows.iter().filter_map(|row| row.time()));
    let is_divided = rows.iter().any(|row| row.bounds.is_some());
    let parts = Bounds::shown(rows.iter().filter_map(|row| row.bounds)).into_iter();
    let series = parts.filter(|_| is_divided).map(|bound| {
        let name = Bounds::NAMES[bound];
        let part = |row: &Row| {
            let share = row.bounds.map_or(0.0, |of| of.shares[bound]);
            share * row.time().unwrap_or(0.0) * unit.per_second
        };
        let points = rows
            .iter()
            .enumerate()
            .map(|(at, row)| (at as f64, part(row)));
        Series::stacked(name, points.collect())
    });
    let mut series: Vec<Series> = series.collect();
    if rows.iter().any(|row| row.bounds.is_none()) {
        let whole = |row: &Row| match row.bounds {
            None => row.time().unwrap_or(0.0) * unit.per_second,
            Some(_) => 0.0,
        };
        let points = rows.iter().enumerate();
        let points = points.map(|(at, row)| (at as f64, whole(row)));
        series.push(Series::stacked("not divided", points.collect()));
    }
    let spreads = rows.iter().enumerate().filter_map(|(at, row)| {
        let end = |of: fn(f64, f64) -> f64| {
            let usual = row.value?;
            let value = row.without.iter().copied().fold(usual, of);
            Some((row.time()? + value - usual) * unit.per_second)
        };
        Some((at as f64, end(f64::min)?, end(f64::max)?))
    });
    // The band belongs to the last part, which ends where the whole bar ends.
    series.last_mut().expect("a time has parts").band = Some(spreads.collect());
    let (title, across) = match comparison.sweep()[..] {
        [ranks] => (
            format!("Time of {ranks} ranks, by what it is spent on"),
            "machine",
        ),
        _ => ("Time by what it is spent on".into(), "machine, ranks"),
    };
    Plot {
        title,
        x: Axis::named(across, names.collect()),
        y: Axis::linear("time", unit.name),
        series,
        caption: CAPTION.into(),
        ..Plot::default()
    }
}

const CAPTION: &str = "Virtual time on modelled machines, with computing that one computer has recorded. A thin line at the end of a bar is the spread of \
     the recordings.";

/// The unit of the times in a plot.
struct Unit {
    name: &'static str,
    per_second: f64,
}

impl Unit {
    /// The unit in which the longest of these times, given in seconds, has few digits.
    fn of(times: impl Iterator<Item = f64>) -> Unit {
        let (name, per_second) = match times.fold(0.0, f64::max) {
            longest if longest >= 1.0 => ("s", 1.0),
            longest if longest >= 1e-3 => ("ms", 1e3),
            _ => ("µs", 1e6),
        };
        Unit { name, per_second }
    }
}

/// The time as a function of the number of ranks, with a line for each machine; `None` if there are
/// too few numbers of ranks.
fn scaling(comparison: &Comparison) -> Option<Plot> {
    let sweep = comparison.sweep();
    if sweep.len() < 3 {
        return None;
    }
    let machines = comparison.machines.iter().enumerate();
    let lines = machines.map(|(at, machine)| {
        let points = sweep.iter().filter_map(|&ranks| {
            let time = comparison.row(at, ranks)?.time()?;
            Some((ranks as f64, time * 1e3))
        });
        Series::line(machine.name.as_str(), points.collect())
    });
    Some(Plot {
        title: "Time by ranks".into(),
        x: Axis::linear("ranks", ""),
        y: Axis::logarithmic("time", "ms"),
        series: lines.collect(),
        ..Plot::default()
    })
}

/// The terms of the tables, with explanations.
fn terms(comparison: &Comparison) -> Block {
    let shown = Bounds::shown(comparison.rows.iter().filter_map(|row| row.bounds));
    let contention = Bounds::NAMES[Bounds::CONTENTION];
    let is_shown =
        |(term, _): &(&str, &str)| *term != contention || shown.contains(&Bounds::CONTENTION);
    let rows = TERMS.into_iter().filter(is_shown);
    let rows = rows.map(|(term, meaning)| vec![term.to_owned(), meaning.to_owned()]);
    let header = vec!["word".to_owned(), "meaning".to_owned()];
    Block::Folded(
        "The words of this page".into(),
        Table::of_text(header, rows.collect()),
    )
}

const TERMS: [(&str, &str); 18] = [
    (
        "time",
        "virtual time from the start of the first rank to the end of the last one",
    ),
    (
        "spread",
        "difference of the longest and the shortest time if one recording is left out, as a share of the time",
    ),
    (
        "start",
        "time that goes if launch, connections, registrations, communicators, windows and files are free",
    ),
    (
        "iteration",
        "time of an iteration of the program's loop, once the start is over",
    ),
    (
        "speed-up",
        "time that decides (of the loop, or without the start) on the first machine over that on this one, with as many ranks",
    ),
    (
        "eff.",
        "parallel efficiency, beside the fewest ranks on this machine: 100 % if twice the ranks need half the time",
    ),
    (
        "in MPI",
        "share of the time that the ranks spend in calls of MPI, on average",
    ),
    ("computing", "computing of the ranks, on average"),
    (
        "imbalance",
        "time that would remain on a network without any cost, beyond computing, and that goes if ranks with equal calls compute equally long",
    ),
    (
        "noise",
        "part of that time that is chance: ranks with equal calls were disturbed while they were recorded",
    ),
    (
        "dependence",
        "time on such a network that does not go then: a rank waits, and no other has work for it (a serial part, a master, a pipeline that fills)",
    ),
    (
        "inside MPI",
        "work within MPI calls on the ranks' own memory, on average: sums of reductions, packing, the program's operations; every machine has it",
    ),
    (
        "progress thread",
        "time by which the thread that serves windows made computing longer, on hosts without a free core",
    ),
    (
        "latency",
        "time that goes if all delays cost nothing: chips, buses, cables, switches",
    ),
    (
        "bandwidth",
        "time that goes if all rates of bytes are endless",
    ),
    (
        "contention",
        "time that goes if links between switches carry any number of messages at once",
    ),
    (
        "message rate",
        "time that goes if the work for each message costs nothing: processors, libraries, engines of cards",
    ),
    (
        "busiest resource",
        "resource of the machine that works for the greatest share of the time",
    ),
];

/// The section about the parts and key figures of each machine.
fn machines(comparison: &Comparison) -> Section {
    let header = [
        "machine", "rails", "link", "latency", "peak", "card", "year", "host", "library",
    ];
    let rows = comparison.machines.iter().map(|machine| {
        let Hardware {
            rails,
            figures,
            card,
            host,
            software,
            ..
        } = &machine.hardware;
        let peak = figures.peak.bits_per_sec() as f64 / 8e9 * f64::from(*rails);
        vec![
            machine.name.clone(),
            rails.to_string(),
            format!(
                "{} Gb/s",
                significant(figures.link.bits_per_sec() as f64 / 1e9)
            ),
            format!("{} µs", significant(figures.latency.picos() as f64 / 1e6)),
            format!("{} GB/s", significant(peak)),
            card.clone(),
            figures.year.to_string(),
            host.clone(),
            software.clone(),
        ]
    });
    let mut header: Vec<String> = header.map(String::from).into();
    let mut rows: Vec<Vec<String>> = rows.collect();
    if comparison
        .machines
        .iter()
        .any(|machine| machine.hardware.price.is_some())
    {
        header.push("price of a host".into());
        for (row, machine) in rows.iter_mut().zip(&comparison.machines) {
            let price = machine.hardware.price;
            row.push(price.map_or("–".into(), |price| price.word()));
        }
    }
    let is_left = |column: usize| column == 0 || (5..9).contains(&column) && column != 6;
    let table = Table {
        right_aligned: (0..header.len())
            .filter(|&column| !is_left(column))
            .collect(),
        header,
        rows,
    };
    let text = "Latency is the time of a write of 8 B between the hosts that are furthest apart, without MPI; the peak is that of all rails \
                together. The command \"fishplate fabric show NAME\" prints every value with its source.";
    Section::new("The machines", vec![table.into(), Block::Text(text.into())])
}
