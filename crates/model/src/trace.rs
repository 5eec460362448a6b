//! A record as a file for people to look at: JSON in the trace event format, which Perfetto (ui.perfetto.dev) opens. Each
//! host is a process; in it are a lane for each part of its HCAs and two for each rank, its calls and its processor.
//! Arrows lead from where a message was posted to where its last packet reached memory.

use std::collections::{BTreeMap, HashSet};
use std::io;

use sim::Time;

pub use super::record::{Act, Kind, Lane, MOST, Of, Part, Span};

/// All that was recorded.
#[derive(Debug, Default)]
pub struct Record {
    pub spans: Vec<Span>,
    /// Of calls.
    pub names: Vec<String>,
    /// Spans that came when the record was full.
    pub lost: u64,
}

impl Record {
    /// When the last of it ended.
    pub fn end(&self) -> Time {
        self.spans.iter().map(|span| span.end).max().unwrap_or(0)
    }

    /// Writes it. Times in the file are microseconds, to the picosecond.
    pub fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_key(|span| (span.host, order(span.lane), span.start, span.end));
        // Their numbers begin with 1: viewers take 0 for the system's.
        let mut lanes = BTreeMap::new();
        for span in &spans {
            let number = lanes.len() + 1;
            let lane = (span.host, order(span.lane));
            lanes.entry(lane).or_insert((number, span.lane));
        }
        // Both ways of a bus that is half duplex are noted as one.
        let up = |(_, lane): &(usize, Lane)| matches!(lane, Lane::Rail(_, Part::BusUp));
        let full_duplex = lanes.values().any(up);
        write!(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let mut first = true;
        let mut event = |text: std::fmt::Arguments| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            write!(to, "{comma}\n{text}")
        };
        let mut last_host = None;
        for (&(host, _), &(number, lane)) in &lanes {
            let (pid, name) = (host + 1, lane_name(lane, full_duplex));
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
        let posted = spans.iter().filter(|span| span.act == Act::Post);
        let posted: HashSet<u64> = posted.filter_map(|span| Some(span.of?.message)).collect();
        let mut arrived = HashSet::new();
        for span in spans {
            let (start, time) = (micros(span.start), micros(span.end - span.start));
            let number = lanes
                .get(&(span.host, order(span.lane)))
                .map_or(0, |&(number, _)| number);
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
            if span.act == Act::Post {
                event(format_args!(
                    r#"{{"ph":"s","cat":"message","name":"message","id":{id},{place}}}"#
                ))?;
            } else if span.act == Act::Write && posted.contains(&id) && arrived.insert(id) {
                event(format_args!(
                    r#"{{"ph":"f","bp":"e","cat":"message","name":"message","id":{id},{place}}}"#
                ))?;
            }
        }
        writeln!(to, "\n]}}")
    }

    /// What a span says to a person.
    fn title(&self, span: &Span) -> String {
        let plain = match span.act {
            Act::Call => return self.name(span.name),
            Act::Copy => return format!("copy {}", size(span.bytes)),
            Act::Compute => "compute",
            Act::Clock => "read the clock",
            Act::Look => "look",
            Act::Listen => "listen for new peers",
            Act::Short => "short call",
            Act::Send => "prepare a packet",
            Act::Receive => "take a packet",
            Act::Control => "take a control packet",
            Act::Memory => "wait for memory that others use",
            Act::PostReceive => "post a receive",
            Act::Register => "register memory",
            Act::Notice => "notice",
            Act::Wait => "wait",
            Act::Completion => "completion",
            Act::WorkRequest => "fetch a work request",
            Act::Post
            | Act::Ask
            | Act::Read
            | Act::Write
            | Act::Packet
            | Act::Answer
            | Act::Acknowledgement => "",
        };
        let Some(of) = span.of.filter(|_| plain.is_empty()) else {
            return plain.into();
        };
        let to = of.to.map_or("nobody".into(), |rank| format!("rank {rank}"));
        let what = match of.kind {
            Kind::Write => format!("write {}", size(of.len)),
            Kind::Send => format!("send {}", size(of.len)),
            Kind::Read => format!("read {}", size(of.len)),
            Kind::CompareAndSwap => "compare and swap".into(),
            Kind::FetchAndAdd => "fetch and add".into(),
        };
        let asks = of.kind.is_answered();
        let towards = if asks { "from" } else { "to" };
        match span.act {
            Act::Post => format!("post: {what} {towards} {to}"),
            Act::Acknowledgement => format!("acknowledge to rank {}", of.from),
            Act::Answer => format!("answer rank {}: {what}", of.from),
            Act::Ask | Act::Read if asks => format!("answer rank {}: {what}", of.from),
            Act::Ask => format!("ask memory: {what} {towards} {to}"),
            Act::Write if !asks => format!("{what} from rank {}", of.from),
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

/// Bytes as a person says them.
fn size(bytes: u32) -> String {
    match bytes {
        0 => "0 B".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Lanes of a host in the order in which they are to be shown: ranks first, then rails.
fn order(lane: Lane) -> (bool, u32, u32) {
    match lane {
        Lane::Calls(rank) => (false, rank, 0),
        Lane::Processor(rank) => (false, rank, 1),
        Lane::Rail(rail, part) => (true, rail, part as u32),
    }
}

fn lane_name(lane: Lane, full_duplex: bool) -> String {
    let (rail, part) = match lane {
        Lane::Calls(rank) => return format!("rank {rank}: calls"),
        Lane::Processor(rank) => return format!("rank {rank}: CPU"),
        Lane::Rail(rail, part) => (rail, part),
    };
    let part = match part {
        Part::BusDown if full_duplex => "PCI, memory to HCA",
        Part::BusDown => "PCI, both ways",
        Part::BusUp => "PCI, HCA to memory",
        Part::LinkOut => "link, out",
        Part::LinkIn => "link, in",
        Part::Buffer => "HCA buffer",
    };
    format!("rail {rail}: {part}")
}
