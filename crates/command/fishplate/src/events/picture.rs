//! The events of a run as a timeline: a lane for the calls and for the processor of each rank, and
//! for each part of an HCA, and an arrow for each message.

use std::collections::HashMap;

use model::trace::{Activity, HcaPart, Record, Row, Span, Track};
use results::plot::{Arrow, Bar, Lane, Timeline};
use results::style::Colour;
use sim::Time;

/// The most events that a picture shows: more than that many bars are no longer legible.
const MOST_EVENTS: usize = 1500;
/// The most lanes of a picture.
const MOST_LANES: usize = 40;

/// The kinds of bars, in the order of the legend.
const KINDS: [(&str, Colour); 6] = [
    ("MPI call", Colour(0, 114, 178)),
    ("the program", Colour(86, 180, 233)),
    ("the library's work", Colour(230, 159, 0)),
    ("waiting", Colour(214, 214, 214)),
    ("bus", Colour(0, 158, 115)),
    ("link", Colour(213, 94, 0)),
];

/// The picture of a part of a run, or without `part` from the first call to the first
/// `MPI_Finalize`. Its notes say what it leaves out.
pub(super) fn draw(record: &Record, part: Option<(Time, Time)>, title: String) -> Timeline {
    let mut notes = Vec::new();
    let rows = chosen_rows(record.rows(), &mut notes);
    let (first, last) = part.unwrap_or_else(|| calls(record));
    let last = last.min(record.end().max(first + 1));
    let shown = |span: &&Span| {
        let is_drawn = lane(&rows, span.host, span.track).is_some();
        is_drawn && span.start < last && span.end > first
    };
    let mut spans: Vec<&Span> = record.sorted().into_iter().filter(shown).collect();
    let last = match later_than_most(&spans) {
        None => last,
        Some(cut) => {
            let all = spans.len();
            spans.retain(|span| span.start < cut);
            notes.push(format!(
                "{} of {all} events are drawn, to {} µs: --trace-part FROM..UNTIL draws others, and a file that ends in .json has all.",
                spans.len(),
                micros(cut)
            ));
            cut
        }
    };
    let mut lanes: Vec<Lane> = rows.iter().map(|row| empty(row, &rows)).collect();
    for span in &spans {
        if let Some(at) = lane(&rows, span.host, span.track) {
            add(&mut lanes[at], bar(record, span));
        }
    }
    Timeline {
        title,
        quantity: "virtual time".into(),
        span: (micros(first), micros(last)),
        kinds: KINDS.to_vec(),
        lanes,
        arrows: arrows(record, &rows, (first, last)),
        notes,
    }
}

/// The rows that fit into a picture: without those of HCAs if there are too many, and then the
/// first.
fn chosen_rows(mut rows: Vec<Row>, notes: &mut Vec<String>) -> Vec<Row> {
    if rows.len() > MOST_LANES {
        rows.retain(|row| !matches!(row.track, Track::Rail(..)));
        notes.push("The HCAs are left out.".into());
    }
    if rows.len() > MOST_LANES {
        notes.push(format!("{} of {} rows are drawn.", MOST_LANES, rows.len()));
        rows.truncate(MOST_LANES);
    }
    rows
}

fn lane(rows: &[Row], host: u32, track: Track) -> Option<usize> {
    rows.iter()
        .position(|row| row.host == host && row.track == track)
}

fn empty(row: &Row, rows: &[Row]) -> Lane {
    let first = rows.iter().find(|other| other.host == row.host);
    Lane {
        name: format!("host {}, {}", row.host, row.name),
        begins_group: first == Some(row),
        bars: Vec::new(),
    }
}

/// The time from the first call to the first that ends MPI; all of the run without calls.
fn calls(record: &Record) -> (Time, Time) {
    let calls = record.spans.iter();
    let calls = calls.filter(|span| span.activity == Activity::Call);
    let first = calls.clone().map(|call| call.start).min().unwrap_or(0);
    let last = calls.filter(|call| record.title(call) == "MPI_Finalize");
    let last = last.map(|call| call.start).min();
    let last = last.filter(|last| *last > first);
    (first, last.unwrap_or(record.end()))
}

/// The start of the first event that is too many.
fn later_than_most(spans: &[&Span]) -> Option<Time> {
    let mut starts: Vec<Time> = spans.iter().map(|span| span.start).collect();
    starts.sort_unstable();
    starts.get(MOST_EVENTS).copied()
}

fn bar(record: &Record, span: &Span) -> Bar {
    let kind = match (span.track, span.activity) {
        (Track::Rail(_, HcaPart::LinkIn | HcaPart::LinkOut), _) => 5,
        (Track::Rail(..), _) => 4,
        (_, Activity::Call) => 0,
        (_, Activity::Compute) => 1,
        (_, Activity::Wait | Activity::Look | Activity::Listen | Activity::Memory) => 3,
        _ => 2,
    };
    Bar {
        from: micros(span.start),
        until: micros(span.end),
        kind,
        text: match kind {
            3 => "wait".into(),
            _ => record.title(span),
        },
    }
}

/// Adds a bar to a lane. Waits that follow each other become one.
fn add(lane: &mut Lane, bar: Bar) {
    match lane.bars.last_mut() {
        Some(last) if last.kind == 3 && bar.kind == 3 && bar.from <= last.until + 1e-6 => {
            last.until = last.until.max(bar.until);
        }
        _ => lane.bars.push(bar),
    }
}

/// The arrows of messages: from the post, or the first packet of what is read, to the first write
/// to memory. Where the HCAs are left out, an arrow ends at the rank's processor.
fn arrows(record: &Record, rows: &[Row], (first, last): (Time, Time)) -> Vec<Arrow> {
    let mut tails: HashMap<u64, (usize, Time)> = HashMap::new();
    let mut heads: HashMap<u64, (usize, Time)> = HashMap::new();
    let earlier = |ends: &mut HashMap<u64, (usize, Time)>, message, end: (usize, Time)| {
        let known = ends.entry(message).or_insert(end);
        if end.1 < known.1 {
            *known = end;
        }
    };
    for span in &record.spans {
        let Some(of) = span.of else { continue };
        let own = lane(rows, span.host, span.track);
        let reads = of.kind.is_answered();
        match (span.activity, own) {
            (Activity::Post, Some(at)) if !reads => earlier(&mut tails, of.message, (at, span.end)),
            (Activity::Answer, Some(at)) if reads => {
                earlier(&mut tails, of.message, (at, span.start));
            }
            (Activity::Write, Some(at)) => earlier(&mut heads, of.message, (at, span.start)),
            (Activity::Write, None) => {
                let rank = if reads { Some(of.from) } else { of.to };
                let row = rank.and_then(|rank| lane(rows, span.host, Track::Processor(rank)));
                if let Some(at) = row {
                    earlier(&mut heads, of.message, (at, span.end));
                }
            }
            _ => {}
        }
    }
    let mut arrows: Vec<Arrow> = Vec::new();
    for (message, from) in tails {
        let Some(to) = heads.get(&message) else {
            continue;
        };
        if from.1 >= first && to.1 <= last && from.0 != to.0 {
            arrows.push(Arrow {
                from: (from.0, micros(from.1)),
                to: (to.0, micros(to.1)),
            });
        }
    }
    arrows.sort_by(|one, other| {
        let key = |arrow: &Arrow| (arrow.from.1, arrow.to.1);
        let (one, other) = (key(one), key(other));
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    arrows
}

fn micros(time: Time) -> f64 {
    time as f64 * 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::trace::{MessageRef, RequestKind};

    const MICROSECOND: Time = 1_000_000;

    fn span(host: u32, track: Track, activity: Activity, times: (Time, Time)) -> Span {
        Span {
            start: times.0 * MICROSECOND,
            end: times.1 * MICROSECOND,
            host,
            track,
            activity,
            bytes: 0,
            name: 0,
            of: None,
        }
    }

    /// A message from rank 0 to rank 1: a call, a post, a wait in two parts, and the write.
    fn record() -> Record {
        let message = Some(MessageRef {
            message: 7,
            kind: RequestKind::Write,
            len: 8,
            from: 0,
            to: Some(1),
            packet: 0,
        });
        let up = Track::Rail(0, HcaPart::BusUp);
        Record {
            spans: vec![
                span(0, Track::Processor(0), Activity::Clock, (0, 5)),
                span(0, Track::Calls(0), Activity::Call, (10, 14)),
                Span {
                    of: message,
                    ..span(0, Track::Processor(0), Activity::Post, (10, 11))
                },
                span(0, Track::Processor(0), Activity::Look, (11, 12)),
                span(0, Track::Processor(0), Activity::Wait, (12, 20)),
                Span {
                    of: message,
                    ..span(1, up, Activity::Write, (15, 16))
                },
            ],
            names: vec!["MPI_Send".into()],
            lost: 0,
        }
    }

    #[test]
    fn a_message_has_bars_and_an_arrow() {
        let timeline = draw(&record(), None, "a title".into());
        let names: Vec<&str> = timeline.lanes.iter().map(|lane| &lane.name[..]).collect();
        assert_eq!(
            names,
            [
                "host 0, rank 0: calls",
                "host 0, rank 0: CPU",
                "host 1, rail 0: PCI, HCA to memory"
            ]
        );
        // What is before the first call is left out, and both waits are one bar.
        assert_eq!(timeline.span, (10.0, 20.0));
        let waits: Vec<(f64, f64)> = timeline.lanes[1].bars[1..]
            .iter()
            .map(|bar| (bar.from, bar.until))
            .collect();
        assert_eq!(waits, [(11.0, 20.0)]);
        let arrow = Arrow {
            from: (1, 11.0),
            to: (2, 15.0),
        };
        assert_eq!(timeline.arrows, [arrow]);
        assert!(timeline.notes.is_empty(), "{:?}", timeline.notes);
    }

    #[test]
    fn what_is_too_much_is_left_out_and_named() {
        let mut record = record();
        let part = Some((0, 4 * MICROSECOND));
        assert!(draw(&record, part, String::new()).arrows.is_empty());
        for at in 0..2 * MOST_EVENTS as Time {
            let times = (30 + at, 31 + at);
            record
                .spans
                .push(span(2, Track::Processor(2), Activity::Send, times));
        }
        let timeline = draw(&record, None, String::new());
        let [note] = &timeline.notes[..] else {
            panic!("{:?}", timeline.notes);
        };
        let begins = format!("{MOST_EVENTS} of {} events are drawn", 2 * MOST_EVENTS + 5);
        assert!(note.starts_with(&begins), "{note}");
        for rank in 0..2 * MOST_LANES as u32 {
            record
                .spans
                .push(span(rank, Track::Processor(rank), Activity::Send, (10, 11)));
        }
        let timeline = draw(&record, None, String::new());
        assert_eq!(timeline.lanes.len(), MOST_LANES);
        assert_eq!(timeline.notes[0], "The HCAs are left out.");
        assert!(
            timeline.notes[1].starts_with("40 of "),
            "{:?}",
            timeline.notes
        );
    }
}
