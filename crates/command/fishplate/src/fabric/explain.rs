//! `fishplate fabric explain`: the breakdown of one message's time, as a table or as JSON.

use ::fabric::accuracy::{Accuracy, Case, FigureKind};
use ::fabric::explain::{Path, StepCost, explain, total};
use ::fabric::limits::{Limit, both_ways, limits, one_way};
use ::fabric::{Bytes, Costs, Nanos, Operation, Rail, System};
use channel::rdma::PacketWrite;
use knobs::{KnobValue, RdmaDesign};
use model::explain::{MessagePart, Packet, message, message_with_pointers};
use serde_json::{Value, json};

use super::print;

/// A request to explain the time of one message.
pub(super) struct Request<'a> {
    /// The name of the system in the catalogue, or a file.
    pub(super) name: &'a str,
    pub(super) size: Bytes,
    pub(super) what: Explained,
    /// The number of switches on the path, if the user gave one.
    pub(super) hops: Option<u32>,
    pub(super) rail: u32,
}

/// The kind of message to explain.
pub(super) enum Explained {
    /// A verbs operation, and its name in the output.
    Device(Operation, &'static str),
    /// An MPI message, over the RDMA transport of this design.
    Mpi(RdmaDesign),
}

/// The breakdown of the time of a requested message.
struct Breakdown {
    /// The name of the verbs operation in the output.
    verb: &'static str,
    hops: u32,
    /// The case of the machine, which determines the errors of its predictions.
    case: Case,
    /// The steps, in parts where the message has several writes.
    parts: Vec<MessagePart>,
    limits: Vec<Limit>,
    /// Summaries of all rails of the system, if it has several.
    rails: Vec<RailSummary>,
}

impl Breakdown {
    fn sum(&self) -> Nanos {
        sum(&self.parts)
    }
}

/// The summary of one rail of a system with several.
struct RailSummary {
    rail: Rail,
    /// The payload rate of long writes in one direction, in MB/s.
    carries: f64,
    /// The name of the resource that limits the rate `carries`.
    limit: &'static str,
}

impl RailSummary {
    fn of(system: &System, number: u32) -> RailSummary {
        let costs = Costs::of(system, number);
        let limits = limits(&costs, LONG);
        let least = one_way(&limits);
        RailSummary {
            rail: *costs.rail(),
            carries: least.map_or(0.0, |least| least.one_way.as_mb_per_sec()),
            limit: least.map_or("", |least| least.resource.name()),
        }
    }
}

/// The size from which on streams are limited by their bottleneck.
const LONG_STREAM: Bytes = Bytes(64 << 10);
/// The size of the writes whose rate is given as a rail's bandwidth.
const LONG: Bytes = Bytes(1 << 20);

impl Request<'_> {
    pub(super) fn explain(&self, json: bool) -> Result<(), String> {
        let breakdown = self.breakdown()?;
        match json {
            true => say!("{}", self.object(&breakdown)),
            false => self.show(&breakdown),
        }
        Ok(())
    }

    fn breakdown(&self) -> Result<Breakdown, String> {
        let system = super::system(self.name)?;
        let path = Path::new(&system, self.rail, self.hops)
            .map_err(|wrong| format!("--{}: {}: {}", wrong.key, self.name, wrong.why))?;
        let costs = Costs::of(&system, path.rail);
        // An MPI message is computed for this library, not for the one that the machine names.
        let is_of_devices = matches!(self.what, Explained::Device(..));
        let (parts, verb, limits) = match self.what {
            Explained::Device(operation, verb) => {
                let steps = explain(&costs, self.size, operation, path.hops);
                (one_part(steps), verb, limits(&costs, self.size))
            }
            Explained::Mpi(design) => {
                let parts = mpi(&costs, self.size, design, path.hops)?;
                (parts, "message of MPI", Vec::new())
            }
        };
        let hops = path.hops;
        let count = system.rails.count();
        let rails = (0..count).filter(|_| count > 1);
        Ok(Breakdown {
            verb,
            hops,
            case: Case::of(&system, is_of_devices),
            parts,
            limits,
            rails: rails.map(|rail| RailSummary::of(&system, rail)).collect(),
        })
    }

    fn object(&self, breakdown: &Breakdown) -> Value {
        let sum = breakdown.sum();
        let row = |part: &str, row: &StepCost| {
            let mut row = json!({"step": row.step, "busy": row.resource.map(|r| r.name()), "count": row.count,
                "ns": row.time.as_nanos()});
            if !part.is_empty() {
                row["part"] = part.into();
            }
            row
        };
        let rows = breakdown.parts.iter();
        let rows = rows.flat_map(|part| part.steps.iter().map(move |step| row(part.name, step)));
        let interval = self.latencies(breakdown);
        let interval = interval.map(|one| one.interval(sum.as_nanos()));
        let limits = breakdown.limits.iter().map(|limit| {
            json!({"resource": limit.resource.name(),
                "one_way_mb_per_s": limit.one_way.as_mb_per_sec(),
                "both_ways_mb_per_s": limit.both_ways.as_mb_per_sec()})
        });
        let mut object = json!({"system": self.name, "operation": breakdown.verb, "bytes": self.size.0,
            "hops": breakdown.hops, "rail": self.rail, "rows": rows.collect::<Vec<_>>(),
            "total_ns": sum.as_nanos(), "interval_90_ns": interval, "limits": limits.collect::<Vec<_>>()});
        if let Explained::Mpi(design) = self.what {
            object["design"] = design.show().into();
        }
        if !breakdown.rails.is_empty() {
            let rail = |one: &RailSummary| {
                json!({"link_gb_per_s": one.rail.link_rate().as_gb_per_sec(), "one_way_mb_per_s": one.carries,
                    "limit": one.limit, "socket": one.rail.socket, "card": one.rail.card, "subnet": one.rail.subnet})
            };
            object["rails"] = breakdown.rails.iter().map(rail).collect();
        }
        object
    }

    fn show(&self, breakdown: &Breakdown) {
        let switches = match breakdown.hops {
            0 => "no switch".to_owned(),
            1 => "1 switch".to_owned(),
            many => format!("{many} switches"),
        };
        let (name, size, verb) = (self.name, self.size, breakdown.verb);
        let design = match self.what {
            Explained::Mpi(design) => format!(", design {}", design.show()),
            Explained::Device(..) => String::new(),
        };
        tell!(
            "{name}: one {verb} of {size}{design}, {switches} on the path, machine otherwise idle"
        );
        let mut rows: Vec<[String; 4]> = Vec::new();
        for part in &breakdown.parts {
            if !part.name.is_empty() {
                let time = format!("({:.1})", total(&part.steps).as_nanos());
                rows.push([
                    format!("{}:", part.name),
                    String::new(),
                    String::new(),
                    time,
                ]);
            }
            let inset = if part.name.is_empty() { "" } else { "  " };
            for row in &part.steps {
                let busy = row.resource.map_or("", |resource| resource.name());
                let time = format!("{:.1}", row.time.as_nanos());
                let step = format!("{inset}{}", row.step);
                rows.push([step, busy.into(), row.count.to_string(), time]);
            }
        }
        let sum = breakdown.sum().as_nanos();
        rows.push([
            "sum".into(),
            String::new(),
            String::new(),
            format!("{sum:.1}"),
        ]);
        print(["step", "occupies", "count", "ns"], rows, 2);
        if let Some(one) = self.latencies(breakdown) {
            let [low, high] = one.interval(sum);
            tell!(
                "Nine in ten published latencies of this size are {low:.0} to {high:.0} ns where {sum:.0} ns is predicted."
            );
        }
        show_limits(&breakdown.limits);
        self.show_bandwidth(breakdown);
        self.show_rails(&breakdown.rails);
    }

    /// The accuracy of predicted latencies of this size, if it is known.
    fn latencies(&self, breakdown: &Breakdown) -> Option<Accuracy> {
        FigureKind::latency(self.size.0).accuracy(breakdown.case)
    }

    /// Prints the interval that contains nine in ten published bandwidths, as a prediction from the
    /// limit of the bottleneck.
    fn show_bandwidth(&self, breakdown: &Breakdown) {
        let Some(least) = one_way(&breakdown.limits) else {
            return;
        };
        let accuracy = FigureKind::bandwidth(self.size.0).accuracy(breakdown.case);
        let accuracy = accuracy.filter(|_| self.size >= LONG_STREAM);
        if let Some(one) = accuracy {
            let [low, high] = one.interval(least.one_way.as_mb_per_sec());
            tell!(
                "Nine in ten published bandwidths of this size are {low:.0} to {high:.0} MB/s where this is the bottleneck."
            );
        }
    }

    fn show_rails(&self, rails: &[RailSummary]) {
        if rails.is_empty() {
            return;
        }
        tell!(
            "\nRails (this is rail {}); rails of one card share its slot:",
            self.rail
        );
        let rows = rails.iter().enumerate().map(|(number, one)| {
            [
                number.to_string(),
                one.limit.to_owned(),
                format!("{:.0}", one.carries),
                format!("{:.0}", one.rail.link_rate().as_gb_per_sec()),
                one.rail.card.to_string(),
                one.rail.socket.to_string(),
                one.rail.subnet.to_string(),
            ]
        });
        let header = [
            "rail",
            "limit",
            "MB/s",
            "link, Gb/s",
            "card",
            "socket",
            "subnet",
        ];
        print(header, rows.collect(), 2);
    }
}

fn show_limits(limits: &[Limit]) {
    if limits.is_empty() {
        return;
    }
    tell!("\nUpper limits of RDMA writes of this size, in MB/s (* marks the bottleneck):");
    let (one, both) = (one_way(limits), both_ways(limits));
    let star = |least: bool, rate: f64| format!("{rate:.0}{}", if least { " *" } else { "  " });
    let rows = limits.iter().map(|limit| {
        [
            limit.resource.name().to_owned(),
            star(one == Some(limit), limit.one_way.as_mb_per_sec()),
            star(both == Some(limit), limit.both_ways.as_mb_per_sec()),
        ]
    });
    print(["resource", "one way", "both ways"], rows.collect(), 1);
}

/// The size of the announcement of a long message, in bytes.
const ANNOUNCEMENT: usize = 64;

/// The steps of an MPI message: one packet; or an announcement, and the read by the receiver, where
/// the design has that and it takes less time. Buffers are registered already. An error if the
/// message goes in several packets.
fn mpi(
    costs: &Costs,
    size: Bytes,
    design: RdmaDesign,
    hops: u32,
) -> Result<Vec<MessagePart>, String> {
    let longest = PacketWrite::longest(design);
    let len = usize::try_from(size.0).ok().filter(|len| *len <= longest);
    let packet = len.map(|len| packet(costs, len, design, hops));
    if design != RdmaDesign::ZeroCopy {
        return packet.ok_or_else(|| {
            format!(
                "--size {size}: with the design {} a message of more than {} goes in several packets, whose copies and writes overlap; \
                 measure it: FISHPLATE_RDMA_DESIGN={} fishplate bench latency --fabric NAME",
                design.show(),
                Bytes(longest as u64),
                design.show()
            )
        });
    }
    let announced = StepCost {
        step: "announce the message",
        resource: None,
        count: 1,
        time: sum(&self::packet(costs, ANNOUNCEMENT, design, hops)),
    };
    let read = explain(costs, size, Operation::Read, hops);
    let read = one_part(std::iter::once(announced).chain(read).collect());
    Ok(packet
        .filter(|packet| sum(packet) <= sum(&read))
        .unwrap_or(read))
}

fn packet(costs: &Costs, len: usize, design: RdmaDesign, hops: u32) -> Vec<MessagePart> {
    let of = |write: PacketWrite| Packet {
        len: write.len,
        inline: write.inline,
    };
    let data = of(PacketWrite::of(design, len));
    match PacketWrite::pointer(design) {
        Some(pointer) => message_with_pointers(costs, len, [data, of(pointer)], hops).into(),
        None => one_part(message(costs, len, data, hops)),
    }
}

fn one_part(steps: Vec<StepCost>) -> Vec<MessagePart> {
    vec![MessagePart { name: "", steps }]
}

fn sum(parts: &[MessagePart]) -> Nanos {
    parts.iter().map(|part| total(&part.steps)).sum()
}
