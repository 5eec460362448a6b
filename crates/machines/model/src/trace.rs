//! The record of a run as a file for trace viewers: JSON in the trace event format, which Perfetto
//! (ui.perfetto.dev) opens. Each host is shown as a process. It has a row for each part of its HCAs
//! and two for each rank: its calls and its processor. Arrows lead from the post of a message to
//! the write of its first packet to memory.

use std::collections::{BTreeMap, HashSet};
use std::io;

use sim::Time;

pub use super::record::MOST;
pub use super::span::{Activity, HcaPart, MessageRef, RequestKind, Span, Track};

/// A row of a trace viewer: a resource of a host, with the row's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of the resource's host.
    pub host: u32,
    /// The resource.
    pub track: Track,
    /// The name of the row.
    pub name: String,
}

/// The record of a run: all spans, with the names of calls.
#[derive(Debug, Default)]
pub struct Record {
    /// The recorded spans, in the order of recording.
    pub spans: Vec<Span>,
    /// The names of calls, by number.
    pub names: Vec<String>,
    /// The number of spans that did not fit into the log.
    pub lost: u64,
}

impl Record {
    /// The time at which the last span ends.
    pub fn end(&self) -> Time {
        self.spans.iter().map(|span| span.end).max().unwrap_or(0)
    }

    /// Writes the record in the trace event format. Times are in microseconds, with all digits down
    /// to the picosecond.
    pub fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let spans = self.sorted();
        // Numbers begin with 1: viewers reserve 0 for the system.
        let rows = self.rows().into_iter().zip(1..);
        let rows: BTreeMap<_, _> = rows
            .map(|(row, number)| ((row.host, order(row.track)), (number, row.name)))
            .collect();
        write!(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let mut first = true;
        let mut event = |text: std::fmt::Arguments| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            write!(to, "{comma}\n{text}")
        };
        let mut last_host = None;
        for (&(host, _), (number, name)) in &rows {
            let pid = host + 1;
            if last_host.replace(host) != Some(host) {
                event(format_args!(
                    r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"host {host}"}}}}"#
                ))?;
                event(format_args!(
                    r#"{{"ph":"M","name":"process_sort_index","pid":{pid},"args":{{"sort_index":{host}}}}}"#
                ))?;
            }
            event(format_args!(
                r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{number},"args":{{"name":"{name}"}}}}"#
            ))?;
            event(format_args!(
                r#"{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":{number},"args":{{"sort_index":{number}}}}}"#
            ))?;
        }
        let posted = spans.iter().filter(|span| span.activity == Activity::Post);
        let posted: HashSet<u64> = posted.filter_map(|span| Some(span.of?.message)).collect();
        let mut arrived = HashSet::new();
        for span in spans {
            let (start, time) = (micros(span.start), micros(span.end - span.start));
            let number = rows
                .get(&(span.host, order(span.track)))
                .map_or(0, |(number, _)| *number);
            let (pid, name) = (span.host + 1, self.title(span));
            let place = format_args!(r#""pid":{pid},"tid":{number},"ts":{start}"#);
            match span.of {
                None if span.bytes == 0 => event(format_args!(
                    r#"{{"ph":"X","name":"{name}",{place},"dur":{time}}}"#
                ))?,
                None => event(format_args!(
                    r#"{{"ph":"X","name":"{name}",{place},"dur":{time},"args":{{"bytes":{}}}}}"#,
                    span.bytes
                ))?,
                Some(of) => event(format_args!(
                    r#"{{"ph":"X","name":"{name}",{place},"dur":{time},"args":{{"message":{},"packet":{},"bytes":{}}}}}"#,
                    of.message, of.packet, span.bytes
                ))?,
            }
            let Some(of) = span.of else { continue };
            let id = of.message;
            if span.activity == Activity::Post {
                event(format_args!(
                    r#"{{"ph":"s","cat":"message","name":"message","id":{id},{place}}}"#
                ))?;
            } else if span.activity == Activity::Write && posted.contains(&id) && arrived.insert(id)
            {
                event(format_args!(
                    r#"{{"ph":"f","bp":"e","cat":"message","name":"message","id":{id},{place}}}"#
                ))?;
            }
        }
        writeln!(to, "\n]}}")
    }

    /// The spans by host, row and time.
    pub fn sorted(&self) -> Vec<&Span> {
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_key(|span| (span.host, order(span.track), span.start, span.end));
        spans
    }

    /// The rows that have spans: by host, ranks before rails.
    pub fn rows(&self) -> Vec<Row> {
        let tracks = self.spans.iter();
        let tracks = tracks.map(|span| ((span.host, order(span.track)), span.track));
        let tracks: BTreeMap<_, _> = tracks.collect();
        // Both directions of a half-duplex bus are recorded as one.
        let full_duplex = tracks
            .values()
            .any(|track| matches!(track, Track::Rail(_, HcaPart::BusUp)));
        let row = |((host, _), track)| Row {
            host,
            track,
            name: track_name(track, full_duplex),
        };
        tracks.into_iter().map(row).collect()
    }

    /// The title of a span, which a viewer shows.
    pub fn title(&self, span: &Span) -> String {
        let plain = match span.activity {
            Activity::Call => return self.name(span.name),
            Activity::Copy => return format!("copy {}", size(span.bytes)),
            Activity::Compute => "compute",
            Activity::Local => "work on own memory",
            Activity::Clock => "read the clock",
            Activity::Look => "look",
            Activity::Listen => "listen for new peers",
            Activity::Short => "short call",
            Activity::Send => "prepare a packet",
            Activity::Receive => "take a packet",
            Activity::Control => "take a control packet",
            Activity::Memory => "wait for memory that others use",
            Activity::PostReceive => "post a receive",
            Activity::Register => "register memory",
            Activity::Notice => "notice",
            Activity::Wait => "wait",
            Activity::Completion => "completion",
            Activity::WorkRequest => "fetch a work request",
            Activity::Post
            | Activity::Ask
            | Activity::Read
            | Activity::Write
            | Activity::Packet
            | Activity::Answer
            | Activity::Acknowledgement => "",
        };
        let Some(of) = span.of.filter(|_| plain.is_empty()) else {
            return plain.into();
        };
        let to = of.to.map_or("nobody".into(), |rank| format!("rank {rank}"));
        let what = match of.kind {
            RequestKind::Write => format!("write {}", size(of.len)),
            RequestKind::Send => format!("send {}", size(of.len)),
            RequestKind::Read => format!("read {}", size(of.len)),
            RequestKind::CompareAndSwap => "compare and swap".into(),
            RequestKind::FetchAndAdd => "fetch and add".into(),
        };
        let asks = of.kind.is_answered();
        let towards = if asks { "from" } else { "to" };
        match span.activity {
            Activity::Post => format!("post: {what} {towards} {to}"),
            Activity::Acknowledgement => format!("acknowledge to rank {}", of.from),
            Activity::Answer => format!("answer rank {}: {what}", of.from),
            Activity::Ask | Activity::Read if asks => format!("answer rank {}: {what}", of.from),
            Activity::Ask => format!("ask memory: {what} {towards} {to}"),
            Activity::Write if !asks => format!("{what} from rank {}", of.from),
            _ => format!("{what} {towards} {to}"),
        }
    }

    fn name(&self, number: u32) -> String {
        let name = self.names.get(number as usize);
        name.map_or("a call".into(), String::clone)
    }
}

fn micros(time: Time) -> String {
    format!("{}.{:06}", time / 1_000_000, time % 1_000_000)
}

/// A number of bytes as text, in short form.
fn size(bytes: u32) -> String {
    match bytes {
        0 => "0 B".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// The sorting key of a host's rows: ranks first, then rails.
fn order(track: Track) -> (bool, u32, u32) {
    match track {
        Track::Calls(rank) => (false, rank, 0),
        Track::Processor(rank) => (false, rank, 1),
        Track::Rail(rail, part) => (true, rail, part as u32),
    }
}

fn track_name(track: Track, full_duplex: bool) -> String {
    let (rail, part) = match track {
        Track::Calls(rank) => return format!("rank {rank}: calls"),
        Track::Processor(rank) => return format!("rank {rank}: CPU"),
        Track::Rail(rail, part) => (rail, part),
    };
    let part = match part {
        HcaPart::BusDown if full_duplex => "PCI, memory to HCA",
        HcaPart::BusDown => "PCI, both ways",
        HcaPart::BusUp => "PCI, HCA to memory",
        HcaPart::LinkOut => "link, out",
        HcaPart::LinkIn => "link, in",
        HcaPart::Buffer => "HCA buffer",
    };
    format!("rail {rail}: {part}")
}
