//! What resources did and when, for people to look at.
//!
//! A [`Net`] that records keeps one [`Span`] for each time that a processor, a bus, a link or an HCA's buffer was busy.
//! [`write`] makes a file of them that Perfetto and Chrome's `about:tracing` open: a process for each host, in it a lane for
//! each rank's processor and for each resource of its HCAs.

use std::collections::BTreeSet;
use std::io;

use fabric::Resource;
use sim::Time;
use sim::memory::{Shared, Vec};

use super::Net;

/// Something was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: Time,
    pub end: Time,
    pub host: u32,
    pub lane: Lane,
    pub act: Act,
    pub bytes: u32,
}

/// What was busy, on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// The processor of a rank.
    Rank(u32),
    /// Part of the HCA of a rail.
    Rail(u32, Resource),
}

/// With what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Call,
    Send,
    Receive,
    Control,
    Copy,
    Post,
    PostReceive,
    Notice,
    WorkRequest,
    Read,
    Write,
    Completion,
    Packet,
    Acknowledgement,
}

impl Act {
    pub fn name(self) -> &'static str {
        match self {
            Act::Call => "call",
            Act::Send => "send",
            Act::Receive => "receive",
            Act::Control => "control packet",
            Act::Copy => "copy",
            Act::Post => "post",
            Act::PostReceive => "post a receive",
            Act::Notice => "notice",
            Act::WorkRequest => "work request",
            Act::Read => "read",
            Act::Write => "write",
            Act::Completion => "completion",
            Act::Packet => "packet",
            Act::Acknowledgement => "acknowledgement",
        }
    }
}

pub(super) struct Record {
    on: bool,
    spans: Vec<Span>,
}

impl Record {
    pub fn new(memory: Shared) -> Record {
        Record {
            on: false,
            spans: Vec::new_in(memory),
        }
    }
}

impl Net {
    /// The same machine, which keeps a record of what its resources do.
    pub fn recording(mut self) -> Net {
        self.record.on = true;
        self
    }

    /// What has happened since the last time; it is forgotten here.
    pub fn take_record(&mut self) -> std::vec::Vec<Span> {
        let spans = self.record.spans.to_vec();
        self.record.spans = Vec::new_in(self.memory);
        spans
    }

    #[inline]
    pub(super) fn note_rail(
        &mut self,
        adapter: u32,
        resource: Resource,
        end: Time,
        time: Time,
        act: Act,
        bytes: u64,
    ) {
        if self.record.on && time > 0 {
            let own = &self.adapters[adapter as usize];
            let (host, rail) = (own.host, own.rail);
            let resource = match resource {
                Resource::BusUp if self.half_duplex => Resource::BusDown,
                other => other,
            };
            self.record.spans.push(Span {
                start: end - time,
                end,
                host,
                lane: Lane::Rail(rail, resource),
                act,
                bytes: bytes as u32,
            });
        }
    }

    #[inline]
    pub(super) fn note_rank(&mut self, rank: u32, start: Time, time: Time, act: Act, bytes: usize) {
        if self.record.on && time > 0 {
            self.record.spans.push(Span {
                start,
                end: start + time,
                host: self.ranks[rank as usize].host,
                lane: Lane::Rank(rank),
                act,
                bytes: bytes as u32,
            });
        }
    }
}

/// Writes spans in the JSON trace event format. Times in it are microseconds, to the picosecond.
pub fn write(spans: &[Span], to: &mut dyn io::Write) -> io::Result<()> {
    let lanes: BTreeSet<(u32, Lane)> = spans.iter().map(|span| (span.host, span.lane)).collect();
    let hosts: BTreeSet<u32> = lanes.iter().map(|&(host, _)| host).collect();
    writeln!(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for host in hosts {
        writeln!(
            to,
            r#"{{"ph":"M","name":"process_name","pid":{host},"args":{{"name":"host {host}"}}}},"#
        )?;
    }
    for (host, lane) in lanes {
        let (number, name) = (number(lane), name(lane));
        writeln!(
            to,
            r#"{{"ph":"M","name":"thread_name","pid":{host},"tid":{number},"args":{{"name":"{name}"}}}},"#
        )?;
    }
    for (at, span) in spans.iter().enumerate() {
        let (start, time) = (micros(span.start), micros(span.end - span.start));
        let (name, host, lane) = (span.act.name(), span.host, number(span.lane));
        let comma = if at + 1 < spans.len() { "," } else { "" };
        writeln!(
            to,
            r#"{{"ph":"X","name":"{name}","pid":{host},"tid":{lane},"ts":{start},"dur":{time},"args":{{"bytes":{}}}}}{comma}"#,
            span.bytes
        )?;
    }
    writeln!(to, "]}}")
}

fn micros(time: Time) -> String {
    format!("{}.{:06}", time / 1_000_000, time % 1_000_000)
}

/// Lanes of a host in the order in which they are to be shown: rails first, then ranks.
fn number(lane: Lane) -> u64 {
    match lane {
        Lane::Rail(rail, resource) => u64::from(rail) * 16 + resource as u64,
        Lane::Rank(rank) => 1000 + u64::from(rank),
    }
}

fn name(lane: Lane) -> String {
    match lane {
        Lane::Rank(rank) => format!("rank {rank}"),
        Lane::Rail(rail, resource) => format!("rail {rail}: {}", resource.name()),
    }
}
